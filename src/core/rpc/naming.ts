// What answers are and name of what was asked for: the type of a column of the method table.

/** What an answer is, and names, by which it is held against its question. */
export type Naming =
  /** The block that the call names, by number or hash. */
  | "block"
  /** The receipts of that block. */
  | "receipts"
  /** A transaction in that block, by its index. */
  | "indexed"
  /** The transaction whose hash is the first parameter, as `hash` or `transactionHash`. */
  | "transaction"
  | "receipt"
  /** Logs of a filter. */
  | "logs"
  /** A number or bytes in hex, never `null`, which name nothing. */
  | "hex";
