// What answers name of what was asked for: the type of a column of the method table.

/** What an answer names by which it is held against its question: a column of the method table. */
export type Naming =
  /** The block that the call names, by number or hash. */
  | "block"
  /** A transaction in that block, by its index. */
  | "indexed"
  /** The transaction whose hash is the first parameter, as `hash` or `transactionHash`. */
  | "transaction"
  | "receipt"
  /** Logs of a filter. */
  | "logs";
