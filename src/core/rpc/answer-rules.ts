// Types of columns of the method table: how answers to a method are kept, and what they name.

/** How the answers to a method may be kept: a column of the method table. */
export type CacheRule =
  /**
   * They depend on the block parameter; calls with more parameters than `params` are not kept.
   * `named`: the result names the hash of its block. `needsBlock`: without the parameter nodes
   * differ in which block they take.
   */
  | {
      readonly kind: "block";
      readonly params: number;
      readonly named?: true;
      readonly needsBlock?: true;
    }
  /** They depend on the log filter that is the first parameter. */
  | { readonly kind: "logs" }
  /** They depend on the block whose hash is the first parameter. */
  | { readonly kind: "hash" }
  /** They depend on the block of the transaction whose hash is the first parameter. */
  | { readonly kind: "transaction" }
  /** They depend on the newest block. */
  | { readonly kind: "head" };

/** What kind of object an answer is, and which fields are compared with its question. */
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
