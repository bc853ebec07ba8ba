// Where the answer to a call came from, as a value. Billing, evidence and metrics read it.

/** Where an answer came from. */
export type AnswerSource =
  /** Of a provider, a result or an error. */
  | "provider"
  /**
   * Of a provider, but for another call or subscription first: kept, joined, or served from a
   * filter of ours.
   */
  | "shared"
  /** Of the configuration. */
  | "local"
  /** There is none: the call was refused, or nobody answered. */
  | "none";
