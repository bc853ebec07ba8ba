// Reports one provider's health on one transport, for pages and metrics. Changes nothing.
import { type Breaker, openRemainingMs } from "../../core/provider/breaker.ts";
import { learnedMethods, learnedRange, prunedResources } from "../../core/provider/capability.ts";
import {
  type Cordon,
  circuitOf,
  type Health,
  limitedForMs,
  limitedMethods,
  type OpenedBy,
  type Outcomes,
} from "../../core/provider/health.ts";
import {
  type Histogram,
  type Percentiles,
  percentiles,
  providerReading,
} from "../../core/provider/latency.ts";
import type { Provider } from "../../core/provider/profile.ts";
import type { Resource } from "../../core/rpc/method.ts";

/** The health of one provider on one transport, for display; null = unknown. */
export interface HealthReport extends Percentiles {
  readonly breaker: Breaker["kind"];
  /** The same, with what else its past says of a circuit that is not open. */
  readonly circuit: CircuitCondition;
  /** Milliseconds until an open circuit becomes half-open; null in every other state. */
  readonly retryAfterMs: number | null;
  /** 0 = not rate-limited. */
  readonly rateLimitedForMs: number;
  /** Calls hang at it: it is asked after others. */
  readonly stalled: boolean;
  /** Methods with a rate limit of their own. */
  readonly limitedMethods: readonly string[];
  readonly cordon: Cordon | null;
  readonly height: number | null;
  readonly lagBlocks: number | null;
  /** Attempts since the start, without cancelled ones. */
  readonly calls: number;
  readonly outcomes: Readonly<Outcomes>;
  /** How often each cause opened the circuit, since the start. */
  readonly openings: Readonly<Record<OpenedBy, number>>;
  /** Decayed; null = no counted call within 10 minutes. */
  readonly successRate: number | null;
  readonly averageMs: number | null;
  readonly probeMs: number | null;
  /** Latencies of delivered answers, since the start. */
  readonly latencies: Readonly<Histogram>;
  readonly learned: {
    readonly methods: readonly string[];
    readonly maxBlockRange: number | null;
    /** What it does not have of old blocks. */
    readonly pruned: readonly Resource[];
    /** Over both transports. */
    readonly requestsPerSecond: number | null;
  };
}

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

/** How a provider is, over its transports. */
export interface ProviderSummary {
  readonly provider: Provider;
  /** Null = unknown. */
  readonly lagBlocks: number | null;
  /** The worst of its transports. */
  readonly circuit: CircuitOrCordon;
}

/** The state of the circuit of one health record. */
export function circuitStateOf(
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

/** The height and lag of a provider. */
type Position = Pick<HealthReport, "height" | "lagBlocks">;

/** The report of one health record at one moment. */
export function reportOf(health: Health, position: Position, nowMs: number): HealthReport {
  const breaker = circuitOf(health, nowMs);
  const known = providerReading(health.latency, nowMs);
  const { delivered, failed, rateLimited, neutral } = health.outcomes;
  return {
    breaker: breaker.kind,
    circuit: stateOf(breaker, health),
    retryAfterMs: breaker.kind === "open" ? openRemainingMs(breaker, nowMs) : null,
    rateLimitedForMs: limitedForMs(health.throttle, nowMs),
    stalled: health.stall.isStalled(nowMs),
    limitedMethods: limitedMethods(health, nowMs),
    cordon: health.wrongChain ? "wrong_chain" : health.cordon,
    ...position,
    calls: delivered + failed + rateLimited + neutral,
    outcomes: { ...health.outcomes },
    openings: { ...health.openings },
    successRate: known?.successRate ?? null,
    averageMs: known?.latencyMs ?? null,
    probeMs: health.probeMs,
    ...percentiles(health.latency),
    latencies: health.latency.histogram,
    learned: {
      methods: learnedMethods(health.facts, nowMs),
      maxBlockRange: learnedRange(health.facts, nowMs),
      pruned: prunedResources(health.facts, nowMs),
      requestsPerSecond: null,
    },
  };
}
