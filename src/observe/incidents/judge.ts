// Judges a provider by what was counted of it over the last half minute, and by its circuit and
// probes where few calls were sent to it. Pure: each judgement is of one moment; `incident-book.ts`
// makes states of several. Knows no clock.
import type { CircuitOrCordon } from "../../upstream/health/health-report.ts";
import type { ProviderExclusion } from "../history/step-evidence.ts";

/** The states of a provider, the best first. */
export const PROVIDER_STATES = [
  "good",
  "recovered",
  "never_answered",
  "slow",
  "lagging",
  "limited",
  "failing",
  "down",
  "maintenance",
] as const;

/** How a provider is. `recovered`: its probes are good, and no call has tried it since. */
export type ProviderCondition = (typeof PROVIDER_STATES)[number];

/** The causes of incidents of a provider, the worst first. */
export const PROVIDER_CAUSES = ["failing", "limited", "lagging", "slow"] as const;
/** All causes; a chain is stalled that has no new block. */
export const INCIDENT_CAUSES = [...PROVIDER_CAUSES, "stalled"] as const;

/** What an incident is about. */
export type IncidentCause = (typeof INCIDENT_CAUSES)[number];

/** Attempts at a provider, without those that the service ended itself. */
export interface AttemptCounts {
  readonly attempts: number;
  /** Refused for a rate limit. */
  readonly limited: number;
  /** Not answered: errors of the server, time-outs, no connection, refused credentials. */
  readonly broken: number;
}

/** The median latency of the answers of one class of methods. */
export interface ClassLatency {
  readonly answers: number;
  readonly medianMs: number;
}

/** What is known of a provider at the end of a step. */
export interface JudgedProvider {
  /** Of the last three steps of ten seconds. */
  readonly window: AttemptCounts;
  /** Of the last step. */
  readonly latest: AttemptCounts;
  /** By class of methods, over the window; null = too few answers. */
  readonly latencies: readonly (ClassLatency | null)[];
  /** Of the faster one of the last two probes; null = fewer were answered. */
  readonly probeMs: number | null;
  readonly isLastProbeGood: boolean | null;
  readonly hasAnswered: boolean;
  readonly exclusion: ProviderExclusion | null;
  /** The worst of the last step; null = unknown. */
  readonly circuit: CircuitOrCordon | null;
  readonly lagBlocks: number | null;
  readonly maxLagBlocks: number;
  readonly isLimited: boolean;
  /** In how many of the last steps, of at most `FLAG_STEPS`, something held. */
  readonly steps: {
    /** Its circuit was open, within the window. */
    readonly open: number;
    /** Its last probe had failed, within the window. */
    readonly unanswered: number;
    /** It was too far behind, within the window. */
    readonly behind: number;
    /** It was rate-limited. */
    readonly limited: number;
  };
}

/** What a judgement says of one cause; `unclear`: nothing happened that says either. */
export type Finding =
  | {
      readonly kind: "bad";
      readonly state: ProviderCondition;
      /** What is known beside counted failures; null = these say it all. */
      readonly words: string | null;
    }
  | { readonly kind: "good" | "unclear" };

/** Steps of the window, and steps over which a limit is watched. */
export const WINDOW_STEPS = 3;
export const FLAG_STEPS = 6;
/** Attempts from which counts say more than the circuit. */
const ENOUGH_ATTEMPTS = 20;
/** Failures that are none by chance, whatever their share. */
const LEAST_FAILED = 5;
const FEW_ATTEMPTS = 100;
/** Failed shares that are bad: of many attempts, and of few. */
const BAD_SHARE = 0.1;
const BAD_SHARE_OF_FEW = 0.2;
const LEAST_LIMITED = 3;
/** Answers of a class that make a median. */
export const LEAST_ANSWERS = 5;
/** Slow is so much slower than the median of the peers, and so many times as slow. */
const SLOWER_MS = 300;
const SLOWER_TIMES = 2;

const GOOD: Finding = { kind: "good" };
const UNCLEAR: Finding = { kind: "unclear" };

function bad(state: ProviderCondition, words: string | null = null): Finding {
  return { kind: "bad", state, words };
}

/** Whether so many failures are too many. */
function isTooMany(failed: number, { attempts }: AttemptCounts): boolean {
  if (attempts < ENOUGH_ATTEMPTS || failed < LEAST_FAILED) return false;
  return failed / attempts >= badShareOf(attempts);
}

function badShareOf(attempts: number): number {
  return attempts < FEW_ATTEMPTS ? BAD_SHARE_OF_FEW : BAD_SHARE;
}

/** What is found of each cause. `peers`: the other providers of the set. */
export function judge(
  provider: JudgedProvider,
  peers: readonly JudgedProvider[],
): Readonly<Record<(typeof PROVIDER_CAUSES)[number], Finding>> {
  return {
    failing: failing(provider),
    limited: limited(provider),
    lagging: lagging(provider),
    slow: slow(provider, peers),
  };
}

const EXCLUSIONS = {
  auth: "credentials refused",
  wrong_chain: "answers for another chain",
} as const;

function failing(provider: JudgedProvider): Finding {
  const { window, latest, steps, exclusion, circuit } = provider;
  if (exclusion === "auth" || exclusion === "wrong_chain")
    return bad("failing", EXCLUSIONS[exclusion]);
  const answered = latest.attempts - latest.broken - latest.limited;
  if (answered === 0 && steps.unanswered >= 2)
    return provider.hasAnswered
      ? bad("down", "probes are not answered")
      : bad("never_answered", "has never answered");
  const failed = window.broken + window.limited;
  const isBroken =
    isTooMany(window.broken, window) ||
    (window.broken >= window.limited && isTooMany(failed, window));
  if (isBroken || isShut(provider)) return bad("failing");
  if (circuit === "open" || circuit === "half_open" || circuit === "cordoned") return UNCLEAR;
  if (provider.isLastProbeGood === false && answered === 0) return UNCLEAR;
  if (window.attempts > 0)
    return window.broken / window.attempts < BAD_SHARE_OF_FEW ? GOOD : UNCLEAR;
  return provider.isLastProbeGood === true ? GOOD : UNCLEAR;
}

/** Whether its circuit says more than counts, and says that it fails. */
function isShut({ latest, steps }: JudgedProvider): boolean {
  if (steps.open < 2) return false;
  const failed = latest.broken + latest.limited;
  if (latest.attempts > 0 && failed === 0) return false;
  return latest.attempts < ENOUGH_ATTEMPTS || isTooMany(failed, latest);
}

function limited({ window, steps, exclusion, isLimited }: JudgedProvider): Finding {
  if (exclusion === "quota") return bad("limited", "quota used up");
  const share = window.attempts === 0 ? 0 : window.limited / window.attempts;
  const isRefusing =
    isTooMany(window.limited, window) ||
    (window.limited > window.broken && isTooMany(window.limited + window.broken, window)) ||
    (window.attempts < ENOUGH_ATTEMPTS &&
      window.limited >= LEAST_LIMITED &&
      share >= BAD_SHARE_OF_FEW);
  if (isRefusing || steps.limited >= FLAG_STEPS - 1) return bad("limited");
  return isLimited || share >= BAD_SHARE ? UNCLEAR : GOOD;
}

function lagging({ lagBlocks, maxLagBlocks, isLastProbeGood, steps }: JudgedProvider): Finding {
  // What a dead provider told last is no lag.
  if (lagBlocks === null || isLastProbeGood === false) return UNCLEAR;
  if (lagBlocks <= maxLagBlocks) return GOOD;
  return steps.behind >= 2 ? bad("lagging", `${lagBlocks} blocks behind`) : UNCLEAR;
}

/**
 * Compares the answers of each class with the median of the peers; where there are too few, the
 * probes.
 */
function slow(provider: JudgedProvider, peers: readonly JudgedProvider[]): Finding {
  let compared = 0;
  let slower = 0;
  let worst: Comparison | null = null;
  for (const [at, own] of provider.latencies.entries()) {
    const others = medianOf(peers.flatMap(({ latencies }) => latencies[at]?.medianMs ?? []));
    if (own === null || others === null) continue;
    compared += own.answers;
    const comparison = { ms: own.medianMs, peersMs: others };
    if (!isSlower(comparison)) continue;
    slower += own.answers;
    if (worst === null || own.medianMs - others > worst.ms - worst.peersMs) worst = comparison;
  }
  if (compared >= ENOUGH_ATTEMPTS)
    return worst !== null && slower * 2 >= compared ? bad("slow", wordsOf(worst)) : GOOD;
  const peersMs = medianOf(peers.flatMap(({ probeMs }) => probeMs ?? []));
  if (provider.probeMs === null || peersMs === null || provider.isLastProbeGood === false)
    return UNCLEAR;
  const probes = { ms: provider.probeMs, peersMs };
  return isSlower(probes) ? bad("slow", `probes: ${wordsOf(probes)}`) : GOOD;
}

interface Comparison {
  readonly ms: number;
  readonly peersMs: number;
}

function isSlower({ ms, peersMs }: Comparison): boolean {
  return ms - peersMs >= SLOWER_MS && ms >= SLOWER_TIMES * peersMs;
}

function wordsOf({ ms, peersMs }: Comparison): string {
  return `${Math.round(ms)} ms, its peers ${Math.round(peersMs)} ms`;
}

function medianOf(values: readonly number[]): number | null {
  const sorted = values.toSorted((left, right) => left - right);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle];
  if (upper === undefined) return null;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? upper)) / 2;
}
