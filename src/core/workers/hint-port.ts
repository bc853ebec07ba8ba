// The port to the other nodes of a cluster for hints: short texts that save time, and that may be
// lost. Knows no database.

/** Tells every other process of the cluster, and hears them. */
export interface HintPort {
  /** Never waits and never fails; too many hints at a time lose the oldest. */
  tell(hint: string): void;
  /** The result cancels. */
  subscribe(receive: (hint: string) => void): () => void;
}
