// A payment rail as documents describe it: names, chain, token and recipient. Contains no secret.

/** What a kind of rail is called, and what is said of every rail of it. */
export interface RailNames {
  /** As it stands in settings and documents. */
  readonly kind: string;
  /** MPP method. */
  readonly method: string;
  /** MPP intent: `charge` = its payments are purchases, `session` = calls paid one by one. */
  readonly intent: "charge" | "session";
  /** The names of this payment in each protocol. */
  readonly offers: readonly string[];
  /** The protocol by which the stock command line pays it; null = it does not. */
  readonly stockProtocol: "mpp" | "x402" | null;
  /** What its contracts on a local chain lack; null = nothing. */
  readonly localNote: string | null;
}

/** A configured rail. */
export interface RailTerms extends RailNames {
  readonly chainId: number;
  readonly token: string;
  /** From the token's EIP-712 domain; empty where the rail does not need it. */
  readonly tokenName: string;
  readonly tokenVersion: string;
  readonly recipient: string;
  /** Suggested deposit of a channel, nano-USD; null = the rail has no channels. */
  readonly depositN: bigint | null;
  /** Money on a local chain is worth nothing. */
  readonly local: boolean;
  /**
   * A node of a local chain; null for other chains: callers know nodes of those, and the URL of
   * ours may hold a secret.
   */
  readonly rpcUrl: string | null;
}
