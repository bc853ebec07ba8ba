// The port to what operators do with providers and with the service.
import type { OperatorCordon, ProviderRef } from "../../hosted/operator/records.ts";
import type { QueryResult, ShownError } from "../../upstream/provider-query.ts";

/** The state of a circuit. */
export type CircuitState = "closed" | "open" | "half_open";

/** A transport of a provider before and after its waits were ended. */
export interface EndedWait {
  readonly transport: "http" | "ws";
  readonly was: CircuitState;
  readonly now: CircuitState;
}

/** What a provider answered to a test on one transport. */
export interface ProviderTest {
  readonly transport: "http" | "ws";
  readonly latencyMs: number;
  readonly chainId: number | null;
  readonly height: number | null;
  /** Null = it answered. */
  readonly error: ShownError | null;
}

/** A call that is asked of every provider of a set. */
export interface Comparison {
  readonly profile: string;
  readonly chain: string;
  readonly method: string;
  /** The JSON array of parameters. */
  readonly params: string;
}

/** What one provider answered. */
export interface ComparedAnswer {
  readonly provider: string;
  readonly alias: string;
  readonly transport: "http" | "ws";
  /** `skipped`: it was not asked, for this reason. */
  readonly answer: QueryResult | { readonly kind: "skipped"; readonly reason: string };
}

/** What came of reading the configuration again. */
export interface ReloadOutcome {
  /** Why the running configuration stays; null = it does not. */
  readonly problem: string | null;
  /** Tells one text of the file from another; null = it was not read. */
  readonly revision: string | null;
}

/** The same at this node. */
export interface ReloadedNode extends ReloadOutcome {
  /** Null = the service is one node. */
  readonly node: string | null;
  readonly areOthersAsked: boolean;
}

/** Who asked for something, as the lines of actions say. */
export interface Requester {
  readonly actor: string;
  readonly address: string;
}

/** What operators do. Null as a result = the provider, or its profile and chain, is not served. */
export interface OperatorProviders {
  cordons(): Promise<readonly OperatorCordon[]>;
  /** `full`: there are as many cordons as may be. */
  cordon(cordon: OperatorCordon): Promise<"done" | "unknown" | "full">;
  uncordon(ref: ProviderRef): Promise<void>;
  endWaits(ref: ProviderRef): readonly EndedWait[] | null;
  test(ref: ProviderRef): Promise<readonly ProviderTest[] | null>;
  compare(comparison: Comparison): Promise<readonly ComparedAnswer[] | null>;
  /**
   * Reads the configuration again and applies it; where that was done, the other nodes of a cluster
   * are asked to do the same with theirs.
   */
  reload(by: Requester): Promise<ReloadedNode>;
}
