// Reports one provider's health on one transport, for pages and metrics. Changes nothing.
import { type Breaker, openRemainingMs } from "../../core/provider/breaker.ts";
import { circuitOf, Health, limitedForMs, limitedMethods } from "../../core/provider/health.ts";
import { percentiles, providerReading } from "../../core/provider/latency.ts";
import type { Transport } from "../../core/provider/profile.ts";
import { unservedNames } from "../../core/provider/unserved-methods.ts";
import type { ProviderState } from "./provider-state.ts";

/**
 * The states of a provider's circuits, the worst last. Recovered = closed by good probes, and calls
 * have not confirmed it; never answered = neither a probe nor a call was answered yet, and it is
 * not open; cordoned = excluded until a probe.
 */
export const CIRCUIT_STATES = [
  "closed",
  "recovered",
  "never_answered",
  "half_open",
  "open",
  "cordoned",
] as const;

/** The state of a circuit, or of the worst of several. */
export type CircuitOrCordon = (typeof CIRCUIT_STATES)[number];

/** The state of a circuit. */
export type CircuitCondition = Exclude<CircuitOrCordon, "cordoned">;

/** The state of the circuit of one health record. */
function circuitStateOf(
  health: Pick<Health, "breaker" | "heardAtMs" | "hasAnswered" | "cordon" | "wrongChain">,
  nowMs: number,
): CircuitOrCordon {
  const isCordoned = health.wrongChain || health.cordon !== null;
  return isCordoned ? "cordoned" : stateOf(circuitOf(health, nowMs), health);
}

function stateOf(breaker: Breaker, { hasAnswered }: Pick<Health, "hasAnswered">): CircuitCondition {
  if (breaker.kind !== "open" && !hasAnswered) return "never_answered";
  return breaker.kind === "closed" && breaker.recovery !== undefined ? "recovered" : breaker.kind;
}

/** What its transports show of a provider together. */
export function summaryOf(state: ProviderState | null, nowMs: number) {
  const used = [state?.http ?? null, state?.ws ?? null].filter((health) => health !== null);
  const circuits = used.map((health) => CIRCUIT_STATES.indexOf(circuitStateOf(health, nowMs)));
  const worst = CIRCUIT_STATES[Math.max(0, ...circuits)] ?? "closed";
  const isCordoned = state !== null && state.cordon !== null;
  const probed = used.find(({ isLastProbeGood }) => isLastProbeGood !== null);
  const isWrongChain = used.some(({ wrongChain }) => wrongChain);
  const cordon = used.find((health) => health.cordon !== null)?.cordon ?? null;
  const refusal = isWrongChain ? ("wrong_chain" as const) : cordon;
  return {
    circuit: isCordoned ? ("cordoned" as const) : worst,
    /** Why it is not asked. */
    exclusion: isCordoned ? ("operator" as const) : refusal,
    hasAnswered: used.some(({ hasAnswered }) => hasAnswered),
    isLastProbeGood: probed?.isLastProbeGood ?? null,
    probeMs: probed?.probeMs ?? null,
    isLimited: used.some(({ throttle }) => limitedForMs(throttle, nowMs) > 0),
  };
}

/** The health of one provider on one transport, for display; null = unknown. */
export type HealthReport = ReturnType<typeof reportOf>;

/** The report of a provider on a transport at one moment; `state` null = it is not known. */
export function reportOf(
  state: ProviderState | null,
  transport: Transport,
  lagBlocks: number | null,
  nowMs: number,
) {
  const health = state?.[transport] ?? new Health();
  const unserved = state === null ? [] : unservedNames(state.unserved, nowMs);
  const breaker = circuitOf(health, nowMs);
  const known = providerReading(health.latency, nowMs);
  const { delivered, failed, rateLimited, neutral } = health.outcomes;
  return {
    breaker: breaker.kind,
    /** The same, with what else its past says of a circuit that is not open. */
    circuit: stateOf(breaker, health),
    /** Milliseconds until an open circuit becomes half-open; null in every other state. */
    retryAfterMs: breaker.kind === "open" ? openRemainingMs(breaker, nowMs) : null,
    /** 0 = not rate-limited. */
    rateLimitedForMs: limitedForMs(health.throttle, nowMs),
    /** Calls hang at it: it is asked after others. */
    stalled: health.stall.isStalled(nowMs),
    /** Methods with a rate limit of their own. */
    limitedMethods: limitedMethods(health, nowMs),
    cordon: health.wrongChain ? ("wrong_chain" as const) : health.cordon,
    height: state?.sample?.height ?? null,
    lagBlocks,
    /** Attempts since the start, without cancelled ones. */
    calls: delivered + failed + rateLimited + neutral,
    outcomes: { ...health.outcomes },
    /** How often each cause opened the circuit, since the start. */
    openings: { ...health.openings },
    /** Decayed; null = no counted call within 10 minutes. */
    successRate: known?.successRate ?? null,
    averageMs: known?.latencyMs ?? null,
    probeMs: health.probeMs,
    ...percentiles(health.latency),
    /** Latencies of delivered answers, since the start. */
    latencies: health.latency.histogram,
    learned: {
      methods: [...(health.facts?.methods(nowMs) ?? []), ...unserved],
      maxBlockRange: health.facts?.range(nowMs) ?? null,
      /** What it does not have of old blocks. */
      pruned: health.facts?.pruned(nowMs) ?? [],
      /** Over both transports. */
      requestsPerSecond: state?.rate.limit(nowMs) ?? null,
    },
  };
}
