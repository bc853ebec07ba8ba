// Which blocks have their logs checked with another provider, and how the result of a check is
// compared. Pure: sends no queries and draws no random numbers.
import type { Log } from "./chain-event.ts";
import type { LogKeys } from "./log-bloom.ts";
import type { LogFilter } from "./subscription.ts";

/** The modes of log verification: every block that needs it, a sample, or none. */
export const LOG_VERIFICATIONS = ["strict", "sampled", "off"] as const;

/** One of the modes. */
export type LogVerification = (typeof LOG_VERIFICATIONS)[number];

/** Least block time (ms) at which every block can be checked. */
const STRICT_FROM_MS = 1_000;

/** The mode of a provider set: the declared one, else by the block time of the chain. */
export function verificationOf({
  logVerification,
  chain,
}: {
  readonly logVerification: LogVerification | null;
  readonly chain: { readonly blockTimeMs: number };
}): LogVerification {
  return logVerification ?? (chain.blockTimeMs >= STRICT_FROM_MS ? "strict" : "sampled");
}

/** Why the logs of a block were told before another provider had confirmed them. */
export type Unconfirmed = "over_budget" | "unanswered";

/** What is known of a block when the decision is made. */
export interface BlockEvidence {
  /** Whether its bloom allows matching logs; `unknown` = there is no bloom that can be trusted. */
  readonly mayHold: "yes" | "no" | "unknown";
  /** The source has pushed matching logs. */
  readonly brought: boolean;
  /** Some provider left logs out recently. */
  readonly alarmed: boolean;
  /** At least half of the budget is unspent; otherwise `strict` only samples routine checks. */
  readonly roomy: boolean;
  /** A random number, uniform in [0, 1). */
  readonly chance: number;
}

/**
 * Whether a block is checked. `needed` checks take precedence over `routine` ones when the budget
 * is short.
 */
export type Need = "none" | "routine" | "needed";

const SAMPLE = 1 / 16;

/** Decides whether the logs of a block are checked. */
export function needOf(
  mode: LogVerification,
  { mayHold, brought, alarmed, roomy, chance }: BlockEvidence,
): Need {
  switch (mode) {
    case "off":
      return "none";
    case "strict":
      if (mayHold === "no") return "none";
      return brought && (roomy || !(alarmed || chance < SAMPLE)) ? "routine" : "needed";
    case "sampled":
      if (mayHold !== "no" && !brought) return "needed";
      return (alarmed && mayHold !== "no") || chance < SAMPLE ? "routine" : "none";
  }
}

/**
 * Compares the log indexes that a source pushed with the logs in the answers of others. `missing`:
 * the source left them out; `surplus`: only the source had them.
 */
export function differenceOf(pushed: ReadonlySet<number>, answered: readonly Log[]) {
  const indexes = new Set(answered.map((log) => log.logIndex));
  return {
    missing: answered.filter((log) => !pushed.has(log.logIndex)),
    surplus: [...pushed].filter((index) => !indexes.has(index)).length,
  };
}

/** Whether a log matches a filter. */
export function matchesFilter({ addresses, topics }: LogFilter, log: LogKeys): boolean {
  if (addresses.length > 0 && !addresses.includes(log.address)) return false;
  return topics.every(
    (choices, at) => choices.length === 0 || choices.includes(log.topics[at] ?? ""),
  );
}
