// Blocks that callers have seen.

/** The newest block that a caller has seen. */
export interface SeenBlock {
  readonly number: number;
  /** Null = unknown. */
  readonly hash: string | null;
}
