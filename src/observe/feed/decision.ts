// One decision: a call at its end, with the plan it was routed by, its attempts and where its
// answer came from, as far as it had any. Taken from the call so that nothing of the caller's
// request or answer is kept; shown to the operator with redacted errors.
import { type CallEnd, isProviderFailure } from "../../core/call-end.ts";
import { beginningOf } from "../../core/fields.ts";
import type { Attempt } from "../../core/provider/attempt.ts";
import { upstreamMsOf } from "../../core/provider/attempt.ts";
import type { Provider } from "../../core/provider/profile.ts";
import { NO_SOURCE, providerOf } from "../../core/routing/answer-source.ts";
import { type Considered, type Plan, positionOf } from "../../core/routing/plan.ts";
import {
  type Entrants,
  latencyWeights,
  STRATEGY_NAMES,
  type Strategy,
} from "../../core/routing/strategy.ts";
import {
  alternativePlan,
  consideredUnder,
  type PlanChange,
  positionReason,
} from "../../core/routing/what-if.ts";
import type { Answer, Outcome } from "../../upstream/engine/answer.ts";
import type { RoutedCall } from "../../upstream/engine/router.ts";
import { redactedMessage, redactedMethod } from "../redacted-error.ts";
import type { FilteredCall } from "./call-filter.ts";

/** The process that a decision is of. */
export interface DecisionOrigin {
  readonly worker: string;
  /** Begins the ids of its decisions. */
  readonly idPrefix: string;
}

/** One decision as it is kept: nothing that only its caller may see. */
export type RoutingDecision = Readonly<ReturnType<typeof decisionOf>>;

/** What was asked. */
export interface AskedCall {
  readonly methodName: string;
  readonly strategy: Strategy;
  readonly keyId: string | null;
  readonly pinned: boolean;
  readonly requestBytes: number;
}

/** A call that has ended. */
export interface EndedCall {
  /** Empty = not known. */
  readonly series: { readonly profile: string; readonly chain: string };
  /** Null = it was not routed. */
  readonly route: RoutedCall | null;
  /** Null = there is none: the call was interrupted, or refused unread. */
  readonly answer: Answer | null;
  readonly end: CallEnd;
  /** Null = the refusal of a handshake has none. */
  readonly requestId: string | null;
  /** It has no id: its caller gets no answer. */
  readonly isNotification: boolean;
  /** How long it took until its answer; null = until now. */
  readonly ms: number | null;
  /** Of a call that was not routed; null = it was not read. */
  readonly asked: AskedCall | null;
}

/** What is known of a decision beside its call. */
export interface DecisionFacts {
  readonly origin: DecisionOrigin;
  /** In the order of the decisions of the process. */
  readonly number: number;
  readonly wallMs: number;
  readonly nowMs: number;
}

/** A call that takes this long did not go well, even with a good answer. */
export const SLOW_MS = 1_000;
/** Characters of a message that are kept: more than are shown, so that no secret is cut. */
const MAX_MESSAGE_CHARS = 1_000;
/** Most attempts that are kept: only calls in parts have more. */
const MAX_ATTEMPTS = 64;

/** A decision, made of a call at its end. */
export function decisionOf(ended: EndedCall, { origin, number, wallMs, nowMs }: DecisionFacts) {
  const { route, answer, end, requestId, series } = ended;
  const plan = route?.plan ?? null;
  const traces = route?.traces ?? [];
  return {
    origin,
    number,
    wallMs,
    startedAtMs: route?.startedAtMs ?? nowMs,
    totalMs: totalMsOf(ended, nowMs),
    requestId,
    profile: series.profile,
    chain: series.chain,
    ...askedOf(ended),
    isNotification: ended.isNotification,
    answerBytes: answer === null ? null : bytesOf(answer.outcome),
    outcome: end.outcome,
    end,
    source: answer?.source ?? NO_SOURCE,
    /** The candidates of its plan. */
    order: plan?.candidates.map(({ provider }) => provider) ?? [],
    excluded: plan?.excluded ?? [],
    isPanic: plan?.panic === true,
    isLagWaived: plan?.lagWaived === true,
    /** Null = they were not recorded. */
    inputs: plan?.inputs ?? null,
    attempts: attemptsOf(traces),
    /** Of failed attempts, not yet redacted; null = no attempt has one. */
    messages: messagesOf(traces),
    cacheUse: route?.cacheUse ?? null,
    overBudget: route?.overBudget ?? false,
    rechecked: route?.rechecked ?? null,
  };
}

/** What was asked; null = it was not read. */
function askedOf({ route, asked }: EndedCall) {
  if (route === null) return asked ?? UNREAD;
  const { call, caller, strategy, pin } = route.request;
  return {
    /** As its caller wrote it: 128 characters at most, not redacted. */
    methodName: call.methodName,
    strategy,
    keyId: caller.keyId ?? null,
    pinned: pin !== null,
    requestBytes: call.body.length,
  };
}

const UNREAD = { methodName: null, strategy: null, keyId: null, pinned: false, requestBytes: null };

/** How long a routed call took; null = it was not routed. */
function totalMsOf({ route, ms }: EndedCall, nowMs: number): number | null {
  return route === null ? null : (ms ?? Math.max(0, nowMs - route.startedAtMs));
}

type Traces = RoutedCall["traces"];

function attemptsOf(traces: Traces): readonly Attempt[] {
  const [first] = traces;
  if (first !== undefined && traces.length === 1) return [first.attempt];
  return traces.slice(0, MAX_ATTEMPTS).map(({ attempt }) => attempt);
}

/** Messages of users' own providers are theirs alone. */
function messagesOf(traces: Traces): readonly (string | null)[] | null {
  if (traces.every(({ failure }) => failure === null)) return null;
  return traces
    .slice(0, MAX_ATTEMPTS)
    .map(({ attempt, failure }) =>
      failure === null || attempt.provider.guarded
        ? null
        : beginningOf(String(failure.message), MAX_MESSAGE_CHARS),
    );
}

function bytesOf(outcome: Outcome): number | null {
  switch (outcome.kind) {
    case "result":
      return outcome.end - outcome.start;
    case "error":
      return outcome.raw.length;
    case "stream":
    case "fault":
      return null;
  }
}

function failedProviders(attempts: readonly Attempt[]): readonly string[] {
  return attempts.filter(isFailed).map(({ provider }) => provider.id);
}

/** What filters look at in a call that has ended at `nowMs`. */
export function filteredCallOf(ended: EndedCall, nowMs: number): FilteredCall {
  const { route, answer, series, end } = ended;
  const traces = route?.traces ?? [];
  const { methodName, keyId } = askedOf(ended);
  return {
    profile: series.profile,
    chain: series.chain,
    methodName,
    keyId,
    outcome: end.outcome,
    provider: answer === null ? null : (providerOf(answer.source)?.id ?? null),
    failedProviders: failedProviders(traces.map(({ attempt }) => attempt)),
    attempts: traces.length,
    totalMs: totalMsOf(ended, nowMs),
  };
}

/** What filters look at in a decision. */
export function filteredDecisionOf(decision: RoutingDecision): FilteredCall {
  const { attempts, source } = decision;
  return {
    ...decision,
    provider: providerOf(source)?.id ?? null,
    failedProviders: failedProviders(attempts),
    attempts: attempts.length,
  };
}

/** How lists name a decision. */
export function decisionId({ origin, number }: RoutingDecision): string {
  return origin.idPrefix + number.toString(36);
}

/** One call of a caller at its end, as the live feed and lists show it. */
export type CallEvent = ReturnType<typeof callEventOf>;

/** A decision as the live feed and lists show it. */
export function callEventOf(decision: RoutingDecision) {
  const { attempts, source, methodName, totalMs, end } = decision;
  const upstreamMs = attempts.length === 0 ? null : upstreamMsOf(attempts);
  return {
    id: decisionId(decision),
    at: new Date(decision.wallMs).toISOString(),
    worker: decision.origin.worker,
    request_id: decision.requestId,
    profile: decision.profile === "" ? null : decision.profile,
    chain: decision.chain === "" ? null : decision.chain,
    method: methodName === null ? null : redactedMethod(methodName),
    strategy: decision.strategy,
    key_id: decision.keyId,
    request_bytes: decision.requestBytes,
    answer_bytes: decision.answerBytes,
    notification: decision.isNotification,
    total_ms: totalMs === null ? null : rounded(totalMs),
    upstream_ms: upstreamMs === null ? null : rounded(upstreamMs),
    added_ms: totalMs === null ? null : rounded(Math.max(0, totalMs - (upstreamMs ?? 0))),
    outcome: end.outcome,
    reason: end.reason,
    cause: end.cause === "" ? null : end.cause,
    source: source.kind,
    provider: providerOf(source)?.id ?? null,
    attempts: attempts.length,
    /** Failed attempts after which another provider was asked. */
    failovers: attempts.slice(0, -1).filter(isFailed).length,
    hedged: attempts.some(({ hedgedAfterMs }) => hedgedAfterMs !== undefined),
    pinned: decision.pinned,
    panic: decision.isPanic,
    error: lastErrorOf(decision),
    what_if: decision.inputs !== null,
  };
}

/** Not those that the service ended because another one had answered. */
function isFailed({ verdict }: Attempt): boolean {
  return verdict !== null && verdict.category !== "overtaken" && verdict.category !== "cancelled";
}

/** The last attempt that failed, as it may be shown; null = none did. */
function lastErrorOf({ attempts, messages }: RoutingDecision) {
  const at = attempts.findLastIndex(isFailed);
  const failed = attempts[at];
  const verdict = failed?.verdict ?? null;
  if (failed === undefined || verdict === null) return null;
  const { provider, code } = failed;
  const message = shownMessage(provider, messages?.[at] ?? null);
  return { provider: provider.id, category: verdict.category, code, message };
}

function shownMessage(provider: Provider, message: string | null): string | null {
  return message === null ? null : redactedMessage(provider, message);
}

/** A decision with all that is known of it, for the operator. */
export function decisionView(decision: RoutingDecision) {
  const { inputs, order, excluded, attempts, messages, strategy, cacheUse, startedAtMs } = decision;
  const own = strategy === null ? null : { strategy, without: null };
  const known = consideredById(inputs, own);
  const candidates = order.flatMap(({ id }) => known.get(id) ?? []);
  const hit = cacheUse?.result === "hit" ? cacheUse : null;
  return {
    ...callEventOf(decision),
    order: order.map(({ id }) => id),
    candidates:
      inputs === null || own === null
        ? []
        : candidateViews(candidates, own.strategy, inputs.settings),
    excluded: exclusionViews({ excluded }, known),
    timeline: attempts.map((attempt, at) =>
      attemptView(attempt, messages?.[at] ?? null, startedAtMs),
    ),
    cache:
      cacheUse === null
        ? null
        : {
            result: cacheUse.result,
            age_ms: hit === null ? null : rounded(hit.ageMs),
            class: hit?.class ?? null,
          },
    coalesced: decision.source.kind === "shared",
    hedge_over_budget: decision.overBudget,
    lag_waived: decision.isLagWaived,
    rechecked: decision.rechecked,
    strategies: STRATEGY_NAMES,
  };
}

/**
 * What the plan of a decision would have been. `unrecorded`: its inputs were not kept.
 * `unknown_provider`: it did not consider such a provider.
 */
export function whatIfView(decision: RoutingDecision, change: PlanChange) {
  const { inputs, order } = decision;
  if (inputs === null) return "unrecorded";
  const ids = inputs.considered.map(({ provider }) => provider.id);
  if (change.without !== null && !ids.includes(change.without)) return "unknown_provider";
  const other = alternativePlan(inputs, change);
  const { strategy, without } = change;
  const candidates = other.candidates.map(({ considered }) => considered);
  const views = candidateViews(candidates, strategy, inputs.settings);
  return {
    id: decisionId(decision),
    strategy,
    without,
    candidates: views.map((view, at) => ({
      ...view,
      first_share: other.candidates[at]?.firstShare ?? 0,
    })),
    excluded: exclusionViews(other, consideredById(inputs, change)),
    random: other.isRandom,
    same_first: other.candidates[0]?.considered.provider.id === order[0]?.id,
  };
}

/** Whom a plan considered, by their ids; `change` null = there was no plan. */
function consideredById(
  inputs: Plan["inputs"] | null,
  change: PlanChange | null,
): ReadonlyMap<string, Considered> {
  const considered = inputs == null || change === null ? [] : consideredUnder(inputs, change);
  return new Map(considered.map((each) => [each.provider.id, each]));
}

function candidateViews(
  candidates: readonly Considered[],
  strategy: Strategy,
  settings: Entrants["settings"],
) {
  const among: Entrants = { entrants: candidates, settings };
  const weights = strategy === "latency-weighted" ? latencyWeights(among) : null;
  return candidates.map((candidate) => {
    const { provider, transport, breaker, limited, stalled, reading, probeMs } = candidate;
    return {
      provider: provider.id,
      transport,
      tier: Math.ceil(positionOf(candidate)),
      circuit: breaker.kind,
      limited,
      stalled,
      backup: provider.backup,
      weight: provider.weight,
      priority: provider.priority,
      price: provider.price,
      region_rank: candidate.regionRank,
      reading:
        reading === null
          ? null
          : {
              calls: reading.calls,
              success_rate: reading.successRate,
              latency_ms: reading.latencyMs === null ? null : rounded(reading.latencyMs),
              age_ms: rounded(reading.ageMs),
            },
      latency_weight: weights?.get(provider.id) ?? null,
      probe_ms: probeMs === null ? null : rounded(probeMs),
      decided_by: positionReason(candidate, strategy, among),
    };
  });
}

function exclusionViews(
  { excluded }: Pick<Plan, "excluded">,
  known: ReadonlyMap<string, Considered>,
) {
  return excluded.map(({ provider, reason }) => {
    const considered = known.get(provider.id);
    return {
      provider: provider.id,
      reason,
      transport: considered?.transport ?? null,
      circuit: considered?.breaker.kind ?? null,
    };
  });
}

function attemptView(attempt: Attempt, message: string | null, callStartedMs: number) {
  const { provider, transport, startedAtMs, latencyMs, verdict, code } = attempt;
  const { hedgedAfterMs, batched } = attempt;
  return {
    provider: provider.id,
    transport,
    started_ms:
      startedAtMs === undefined ? null : rounded(Math.max(0, startedAtMs - callStartedMs)),
    latency_ms: rounded(latencyMs),
    outcome: verdict === null ? ("success" as const) : ("error" as const),
    category: verdict?.category ?? null,
    provider_failed: verdict !== null && isProviderFailure(verdict.category),
    step: verdict?.step ?? null,
    effect: verdict?.effect.kind ?? null,
    code,
    message: shownMessage(provider, message),
    hedged_after_ms: hedgedAfterMs === undefined ? null : rounded(hedgedAfterMs),
    batched: batched ?? null,
  };
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
