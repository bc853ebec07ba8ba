// Whether the logs blooms of a chain can be trusted when they say that a block has no matching
// logs. Trust is earned over many blocks and lost at the first counterexample. Pure; knows no
// clock.

/** The trust in the blooms of one chain. `proven` counts blocks. */
export type BloomTrust =
  | { readonly kind: "learning"; readonly proven: number }
  | { readonly kind: "trusted" }
  /** A bloom lacked a log that its block has. */
  | { readonly kind: "off"; readonly untilMs: number };

/** Blocks with logs, each confirmed by two providers and wholly covered by its bloom. */
const BLOCKS_TO_TRUST = 100;
const OFF_MS = 86_400_000;

/** The trust before any block was compared. */
export const NO_TRUST: BloomTrust = { kind: "learning", proven: 0 };

/** The trust at `nowMs`: distrust ends after a day, and learning starts again. */
export function trustAt(trust: BloomTrust, nowMs: number): BloomTrust {
  return trust.kind === "off" && nowMs >= trust.untilMs ? NO_TRUST : trust;
}

/** The trust after one more block whose bloom covered all of its logs. */
export function proven(trust: BloomTrust): BloomTrust {
  if (trust.kind !== "learning") return trust;
  return trust.proven + 1 >= BLOCKS_TO_TRUST
    ? { kind: "trusted" }
    : { kind: "learning", proven: trust.proven + 1 };
}

/** The trust after a block whose bloom lacked one of its logs. */
export function disproved(nowMs: number): BloomTrust {
  return { kind: "off", untilMs: nowMs + OFF_MS };
}
