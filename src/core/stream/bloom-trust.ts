// Whether the blooms of a chain may be believed when they say that a block holds nothing: earned
// block by block, lost at once. A value; knows no clock.

/** What is known of the blooms of one chain. */
export type BloomTrust =
  | { readonly kind: "learning"; readonly proven: number }
  | { readonly kind: "trusted" }
  /** A bloom left a log out. */
  | { readonly kind: "off"; readonly untilMs: number };

/** Blocks with logs of which two providers said the same, every log being in the bloom. */
const BLOCKS_TO_TRUST = 100;
const OFF_MS = 86_400_000;

/** The trust in blooms of a chain without any evidence. */
export const NO_TRUST: BloomTrust = { kind: "learning", proven: 0 };

/** The trust at this time: a day after a counterexample it is learnt anew. */
export function trustAt(trust: BloomTrust, nowMs: number): BloomTrust {
  return trust.kind === "off" && nowMs >= trust.untilMs ? NO_TRUST : trust;
}

/** The trust after a block whose bloom was right. */
export function proven(trust: BloomTrust): BloomTrust {
  if (trust.kind !== "learning") return trust;
  return trust.proven + 1 >= BLOCKS_TO_TRUST
    ? { kind: "trusted" }
    : { kind: "learning", proven: trust.proven + 1 };
}

/** The trust after a block whose bloom was wrong. */
export function disproved(nowMs: number): BloomTrust {
  return { kind: "off", untilMs: nowMs + OFF_MS };
}
