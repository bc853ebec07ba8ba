// The health of one provider on one transport: circuit, rate limits, cordon, learned facts,
// latency. Attempts change it only here. Knows no clock, no other provider and no errors, only
// verdicts.

import { isFresh, leftMs } from "../fresh.ts";
import { isKnownByName, METHODS, type Method } from "../rpc/method.ts";
import type { Attempt, Effect, Verdict } from "./attempt.ts";
import { HEAD_FRESH_MS } from "./blocks/head.ts";
import * as circuit from "./breaker.ts";
import { BRIEF_MS, type CallEnding, LearnedFacts } from "./capability.ts";
import { LatencyRecord, observe, observeAtLeast, usualMs } from "./latency.ts";
import { takeCount } from "./silence.ts";
import { StallRecord } from "./stall.ts";

/** Why a provider is excluded until a probe shows that the reason is gone. */
export type Cordon = Extract<Effect, { kind: "cordon" }>["reason"];

/** Attempts by how they ended, since the start. */
export interface Outcomes {
  /** A result, or an error that answers the caller's own request. */
  delivered: number;
  failed: number;
  rateLimited: number;
  /** Neither success nor failure of the provider. */
  neutral: number;
  cancelled: number;
}

/** What opened a circuit: failures with a cause, or silence. */
export type OpenedBy = circuit.Cause | "silence";

/**
 * The health of one provider on one transport; changed in place, and only by `recordAttempt`, by
 * probes and by taking a permit.
 */
export class Health {
  breaker: circuit.Breaker = circuit.CLOSED;
  throttle: Throttle | null = null;
  /** Rate limits of single methods, by method index. */
  readonly methodThrottles = new Map<number, Throttle>();
  /** Set by probes, and by what is said to the service's own sockets; never by calls. */
  cordon: Cordon | null = null;
  /** Set by probes. */
  wrongChain = false;
  /** When the provider last said that it is behind; a head sample clears it. */
  behindAtMs = NEVER_MS;
  /** Null = nothing was learned yet. */
  facts: LearnedFacts | null = null;
  /** Latency of the latest successful probe; null = none. */
  probeMs: number | null = null;
  /** Whether its last probe was answered well; null = it was not probed. */
  isLastProbeGood: boolean | null = null;
  /** When it was last probed, successfully or not. */
  probedAtMs = NEVER_MS;
  /** How often calls hung at it of late. */
  readonly stall = new StallRecord();
  /** When it last sent any answer. */
  heardAtMs = NEVER_MS;
  /** A good probe, an answer to a call or a pushed head came at least once. */
  hasAnswered = false;
  /** When a silent attempt of each caller last counted as a timeout, by caller key. */
  readonly silences = new Map<string, number>();
  /** The event that last failed several attempts at once, so that it counts once; null = none. */
  incident: object | null = null;
  /** How often each cause opened the circuit, since the start. */
  readonly openings: Record<OpenedBy, number> = {
    silence: 0,
    timeout: 0,
    network: 0,
    server: 0,
    auth: 0,
  };
  readonly latency = new LatencyRecord();
  readonly outcomes: Outcomes = {
    delivered: 0,
    failed: 0,
    rateLimited: 0,
    neutral: 0,
    cancelled: 0,
  };
}

/** How an attempt ended. */
export interface AttemptEnding extends CallEnding {
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** The time (ms) of an event that never happened. */
export const NEVER_MS = Number.NEGATIVE_INFINITY;

/** Records a finished attempt and releases its trial permit. */
export function recordAttempt(
  health: Health,
  method: Method,
  attempt: Attempt,
  ending: AttemptEnding,
): void {
  const { verdict, latencyMs } = attempt;
  if (verdict === null) {
    health.heardAtMs = ending.nowMs;
    health.hasAnswered = true;
    if (attempt.overtaken === true && isLong(health, method, latencyMs))
      health.stall.overtaken(ending.nowMs);
    else health.stall.ended();
    if (health.breaker !== circuit.CLOSED) signal(health, "success", latencyMs, ending);
    health.facts?.unlearn(method);
    health.outcomes.delivered += 1;
    observe(health.latency, method, latencyMs, ending.nowMs);
    return;
  }
  if (verdict.category !== "cancelled") health.stall.ended();
  // A call alone never excludes a provider: what it says then is asked of a probe.
  const isCordon = verdict.effect.kind === "cordon";
  const held: Verdict = isCordon ? { ...verdict, effect: { kind: "avoid" } } : verdict;
  recordVerdict(health, method, { ...attempt, verdict: held }, ending);
  count(health, method, { verdict: held, latencyMs }, ending.nowMs);
}

/**
 * An attempt that the service itself ended: at its deadline, because its caller left, or because
 * another provider was faster.
 */
export interface CutAttempt extends Pick<Attempt, "latencyMs"> {
  readonly verdict: Verdict;
  /** Its provider was silent, now or when the attempt counted before. */
  readonly silent: boolean;
  /** It had been sent, and was given up for another provider or at its deadline. */
  readonly givenUp: boolean;
}

/**
 * Records an attempt that the service itself ended, and releases its trial permit. Does not change
 * the circuit: silence is counted by `recordSilence`, anything else is only a latency reading.
 */
export function recordCut(
  health: Health,
  method: Method,
  { verdict, latencyMs, silent, givenUp }: CutAttempt,
  ending: AttemptEnding,
): void {
  signal(health, "ignored", latencyMs, ending);
  if (givenUp && isLong(health, method, latencyMs)) health.stall.overtaken(ending.nowMs);
  if (!silent) observeAtLeast(health.latency, method, latencyMs, ending.nowMs);
  if (verdict.effect.kind === "ignored") health.outcomes.cancelled += 1;
  else {
    health.outcomes.failed += 1;
    observe(health.latency, method, null, ending.nowMs);
  }
}

/**
 * Counts a silent attempt as a timeout. False = an attempt of the same caller counted a short while
 * ago, and this one does not.
 */
export function recordSilence(
  health: Health,
  caller: string,
  latencyMs: number,
  ending: AttemptEnding,
): boolean {
  if (!takeCount(health.silences, caller, ending.nowMs)) return false;
  signal(health, "silence", latencyMs, ending);
  return true;
}

/** Records a verdict on a connection instead of a call. Does not count as an attempt. */
export function recordVerdict(
  health: Health,
  method: Method,
  {
    verdict,
    latencyMs,
    incident,
  }: Pick<Attempt, "incident"> & Pick<CutAttempt, "verdict" | "latencyMs">,
  ending: AttemptEnding,
): void {
  const known = incident !== undefined && incident === health.incident;
  health.incident = incident ?? health.incident;
  signal(health, known ? "ignored" : signalOf(verdict.effect), latencyMs, ending);
  recordEffect(health, method, verdict.effect, ending);
  // A provider that says what it cannot do has answered properly.
  if (verdict.effect.kind === "learn") health.hasAnswered = true;
}

/**
 * Records a successful probe that took `latencyMs`: an open circuit becomes half-open, and a
 * half-open one that no call tries closes in the end.
 */
export function recordGoodProbe(health: Health, latencyMs: number, nowMs: number): void {
  health.hasAnswered = true;
  health.isLastProbeGood = true;
  const moment = { startedAtMs: nowMs - latencyMs, nowMs };
  health.breaker = circuit.probed(circuitOf(health, nowMs), moment);
}

/** Records a probe that failed. */
export function recordFailedProbe(health: Health, nowMs: number): void {
  health.breaker = circuit.probeFailed(circuitOf(health, nowMs));
}

/** Records that another worker's circuit to this provider opened, or closed. */
export function recordCircuitHint(health: Health, kind: "opened" | "closed", nowMs: number): void {
  if (kind === "opened") health.breaker = circuit.warned(health.breaker);
  // Only good probes of its own transport count toward closing it.
  else if (health.breaker.kind === "open")
    health.breaker = circuit.probeFailed(
      circuit.probed(health.breaker, { startedAtMs: nowMs, nowMs }),
    );
}

/** Records what a provider said, without an attempt and without a failure. */
export function recordEffect(
  health: Health,
  method: Method,
  effect: Effect,
  ending: AttemptEnding,
): void {
  switch (effect.kind) {
    case "ignored":
    case "failure":
      return;
    case "cooldown":
      limit(health, method, effect, ending.nowMs);
      return;
    case "avoid":
      limit(health, method, { ms: BRIEF_MS, scope: "method" }, ending.nowMs);
      return;
    case "cordon":
      health.cordon = effect.reason;
      return;
    case "lag":
      health.behindAtMs = ending.nowMs;
      return;
    case "learn":
      health.facts ??= new LearnedFacts();
      return health.facts.learn(method, effect, ending);
  }
}

/** Milliseconds for which calls of a method are still rate-limited; 0 = they are not. */
export function methodLimitedForMs(
  { throttle, methodThrottles }: Health,
  method: Method,
  nowMs: number,
): number {
  const forMs = limitedForMs(throttle, nowMs);
  return methodThrottles.size === 0
    ? forMs
    : Math.max(forMs, limitedForMs(methodThrottles.get(method.index) ?? null, nowMs));
}

/** Names of the methods that have a rate limit of their own now. */
export function limitedMethods({ methodThrottles }: Health, nowMs: number): readonly string[] {
  return [...methodThrottles].flatMap(([index, throttle]) =>
    limitedForMs(throttle, nowMs) > 0 ? [METHODS[index]?.name ?? "added"] : [],
  );
}

/**
 * Whether the provider said within the last 30 s, and since its latest head sample, that it is
 * behind.
 */
export function isBehind(health: Health, nowMs: number): boolean {
  return isFresh(health.behindAtMs, HEAD_FRESH_MS, nowMs);
}

/** What counts as long where it is not known how long answers take. */
const LEAST_STALL_MS = 1_000;

function isLong({ latency }: Health, method: Method, latencyMs: number): boolean {
  return latencyMs > (usualMs(latency, method, 0.95) ?? LEAST_STALL_MS);
}

function signalOf(effect: Effect): circuit.Signal {
  if (effect.kind === "failure") return effect.cause;
  return effect.kind === "cordon" && effect.reason === "auth" ? "auth" : "ignored";
}

function signal(
  health: Health,
  heard: circuit.Signal | "silence",
  latencyMs: number,
  { nowMs, random }: AttemptEnding,
): void {
  const before = health.breaker.kind;
  const moment = { startedAtMs: nowMs - latencyMs, nowMs, chance: random() };
  health.breaker = circuit.next(health.breaker, heard === "silence" ? "timeout" : heard, moment);
  const hasOpened = health.breaker.kind === "open" && before !== "open";
  if (hasOpened && heard !== "success" && heard !== "ignored") health.openings[heard] += 1;
}

/** The circuit as it is at `nowMs`. */
export function circuitOf(
  { breaker, heardAtMs }: Pick<Health, "breaker" | "heardAtMs">,
  nowMs: number,
): circuit.Breaker {
  return circuit.settled(breaker, nowMs, heardAtMs);
}

/**
 * Ends every wait before the next call: an open circuit is half-open, and no limit or cordon that a
 * refusal began holds.
 */
export function endWaits(health: Health, nowMs: number): void {
  const { breaker } = health;
  if (breaker.kind === "open") health.breaker = circuit.settled({ ...breaker, waitMs: 0 }, nowMs);
  health.throttle = null;
  health.methodThrottles.clear();
  health.cordon = null;
}

function limit(
  health: Health,
  method: Method,
  { ms, scope }: Omit<Extract<Effect, { kind: "cooldown" }>, "kind">,
  nowMs: number,
): void {
  const { index } = method;
  // Unlisted methods share a row: a limit of one name says nothing of the others.
  if (scope === "method" && isKnownByName(method)) return;
  if (scope === "method")
    health.methodThrottles.set(
      index,
      throttled(health.methodThrottles.get(index) ?? null, ms, nowMs),
    );
  else health.throttle = throttled(health.throttle, ms, nowMs);
}

function count(
  health: Health,
  method: Method,
  { verdict, latencyMs }: Pick<CutAttempt, "verdict" | "latencyMs">,
  nowMs: number,
): void {
  const { latency, outcomes } = health;
  if (verdict.category === "cancelled") outcomes.cancelled += 1;
  else if (verdict.step === "return" && verdict.effect.kind === "ignored") {
    outcomes.delivered += 1;
    health.hasAnswered = true;
    observe(latency, method, latencyMs, nowMs);
  } else if (signalOf(verdict.effect) !== "ignored") {
    outcomes.failed += 1;
    observe(latency, method, null, nowMs);
  } else if (verdict.effect.kind === "cooldown") outcomes.rateLimited += 1;
  else outcomes.neutral += 1;
}

// The rate-limit state of one provider on one transport: limited until a time. A limited provider
// is asked later, never excluded. Knows neither who set the limit nor why.

/** A rate limit that was announced or assumed; null where there is none. */
export interface Throttle {
  readonly sinceMs: number;
  readonly forMs: number;
}

/** How long a provider counts as limited when it names no time. */
export const DEFAULT_COOLDOWN_MS = 30_000;
/** The longest rate limit that is accepted. */
export const MAX_COOLDOWN_MS = 600_000;

/** The state after a rate limit of `ms`; of two limits the one that ends later is kept. */
export function throttled(throttle: Throttle | null, ms: number, nowMs: number): Throttle {
  const forMs = Number.isNaN(ms) ? DEFAULT_COOLDOWN_MS : Math.min(MAX_COOLDOWN_MS, Math.max(0, ms));
  return throttle !== null && limitedForMs(throttle, nowMs) > forMs
    ? throttle
    : { sinceMs: nowMs, forMs };
}

/** Milliseconds until the limit ends; 0 = not limited. */
export function limitedForMs(throttle: Throttle | null, nowMs: number): number {
  return throttle === null ? 0 : leftMs(throttle.sinceMs, throttle.forMs, nowMs);
}
