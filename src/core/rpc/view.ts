// The blocks at which the callers of one provider set are answered: values only.

/** A served tip in force, and the blocks that tags name under it. */
export interface View {
  /** The block that `latest` names. */
  readonly number: number;
  /** Null = no provider has told it. */
  readonly hash: string | null;
  /** The block that `safe` names; null = unknown, so the tag is sent as it was written. */
  readonly safe: number | null;
  readonly finalized: number | null;
  /** One operator alone defines the tip although others are configured. */
  readonly isAlone: boolean;
}
