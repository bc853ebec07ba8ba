// Which blocks have their logs checked with another provider, and what a check finds. Decides only;
// asks nobody and draws no chance.
import type { Log } from "./chain-event.ts";
import type { LogKeys } from "./log-bloom.ts";
import type { LogFilter } from "./subscription.ts";

/** How closely the logs of subscriptions are checked. */
export const LOG_VERIFICATIONS = ["strict", "sampled", "off"] as const;

/** One of the ways. */
export type LogVerification = (typeof LOG_VERIFICATIONS)[number];

/** Blocks at least this far apart leave time to check each of them. */
const STRICT_FROM_MS = 1_000;

/** How closely the logs of a chain are checked unless the configuration says so. */
export function usualVerification(blockTimeMs: number): LogVerification {
  return blockTimeMs >= STRICT_FROM_MS ? "strict" : "sampled";
}

/** What is known of a block when it is decided. */
export interface BlockEvidence {
  /** Whether it may hold logs that are wanted; `unknown` = there is no bloom to believe. */
  readonly mayHold: "yes" | "no" | "unknown";
  /** The source has told of logs that are wanted. */
  readonly brought: boolean;
  /** Logs were left out a short while ago. */
  readonly alarmed: boolean;
  /**
   * At least half of the budget is there: otherwise `strict` takes a sample of what need not be
   * checked.
   */
  readonly roomy: boolean;
  /** Uniform in [0, 1). */
  readonly chance: number;
}

/** Whether a block is checked: `needed` before `routine` where not all can be. */
export type Need = "none" | "routine" | "needed";

const SAMPLE = 1 / 16;

/** Whether a block has its logs checked. */
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

/** Logs that one side has and the other has not. */
export interface LogDifference {
  readonly missing: readonly Log[];
  readonly surplus: number;
}

/** What a source told of a block, against what was answered for it. */
export function differenceOf(told: ReadonlySet<number>, answered: readonly Log[]): LogDifference {
  const indexes = new Set(answered.map((log) => log.logIndex));
  return {
    missing: answered.filter((log) => !told.has(log.logIndex)),
    surplus: [...told].filter((index) => !indexes.has(index)).length,
  };
}

/** Whether a filter wants a log. */
export function wants({ addresses, topics }: LogFilter, log: LogKeys): boolean {
  if (addresses.length > 0 && !addresses.includes(log.address)) return false;
  return topics.every(
    (choices, at) => choices.length === 0 || choices.includes(log.topics[at] ?? ""),
  );
}
