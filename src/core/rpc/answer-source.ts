// Where the answer to a call came from, as a value. Billing, evidence and metrics read it.

/** Where an answer came from. */
export type AnswerSource =
  /** A provider: a result or an error. */
  | "provider"
  /**
   * A provider's answer to another call or subscription: cached, coalesced, or from a filter of
   * the service.
   */
  | "shared"
  /** The configuration. */
  | "local"
  /** No answer: the call was refused, or no provider answered. */
  | "none";
