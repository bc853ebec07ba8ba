// What a process adds to the counts of a step, so that providers can be judged.
import type { Provider } from "../../core/provider/profile.ts";
import type { ProviderFailures } from "./failure-counts.ts";

/** Why a provider is out of use, until an operator or a probe says otherwise. */
export type ProviderExclusion = "operator" | "auth" | "quota" | "wrong_chain";

/** What a process knows of a provider at the end of a step, beside its row. */
export interface ProviderEvidence {
  readonly provider: Pick<Provider, "id" | "alias">;
  readonly exclusion: ProviderExclusion | null;
  readonly hasAnswered: boolean;
  /** Null = it was not probed yet. */
  readonly isLastProbeGood: boolean | null;
  readonly probeMs: number | null;
  /** It refused calls for a rate limit, and the time that it named is not over. */
  readonly isLimited: boolean;
}

/** The same of a chain. */
export interface ChainEvidence {
  readonly profile: string;
  readonly chain: string;
  /** Null = unknown. */
  readonly head: number | null;
  /** Without a new block for so long it is stalled. */
  readonly stalledMs: number;
  readonly maxLagBlocks: number;
  readonly providers: readonly ProviderEvidence[];
}

/** What a process adds to the counts of a step. */
export interface StepEvidence {
  readonly chains: readonly ChainEvidence[];
  readonly failures: readonly ProviderFailures[];
}
