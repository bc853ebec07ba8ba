// Logs finished calls: those that failed or took several attempts, provider errors that match no
// rule, and, at debug level, every call. Repetitions are limited. Knows no URLs, headers or
// provider addresses.
import type { Logger } from "pino";
import type { Attempt } from "../core/provider/attempt.ts";
import { noteSeen, noteUnknown } from "../core/provider-errors/error-samples.ts";
import type { Failure } from "../core/rpc/failure.ts";
import type { Runtime } from "../runtime.ts";
import type { Answer } from "../upstream/engine/answer.ts";
import { OVERTAKEN } from "../upstream/engine/refusal.ts";
import type { RoutedCall } from "../upstream/engine/router.ts";
import { redactedMessage, redactedMethod } from "./redacted-error.ts";
import type { RepeatLimiter } from "./repeat-limiter.ts";
import type { Series } from "./series.ts";

/**
 * Whether a provider failed, or was left for another. A hedge, or a recheck of `null`,
 * is nothing to warn of.
 */
function isRetried({ traces }: RoutedCall): boolean {
  if (traces.length < 2) return false;
  const isHedged = traces.some(({ attempt }) => attempt.hedgedAfterMs !== undefined);
  return traces.some(
    ({ attempt: { verdict } }) =>
      verdict !== null && !(isHedged && verdict.category === OVERTAKEN.category),
  );
}

/** Most attempts in one line: only calls in parts have more. */
const MAX_ATTEMPTS = 50;

/** Categories of errors that matched no rule. */
const UNKNOWN_CATEGORIES: ReadonlySet<string> = new Set(["unknown", "tx_rejected"]);

/** Logs calls. */
export class CallLog {
  readonly #log: Logger;
  readonly #runtime: Runtime;
  readonly #repeats: RepeatLimiter;

  constructor(log: Logger, runtime: Runtime, repeats: RepeatLimiter) {
    this.#log = log;
    this.#runtime = runtime;
    this.#repeats = repeats;
  }

  /** Logs a routed call at its end, and keeps samples of provider errors. */
  finished(to: Series, route: RoutedCall, answer: Answer, requestId: string): void {
    for (const { attempt, failure } of route.traces)
      if (failure !== null && !attempt.provider.guarded)
        this.#noteError(to, route, attempt, failure);
    const call = { to, route, answer, requestId };
    if (isRetried(route) || answer.outcome.kind === "fault") this.#warn(call);
    if (this.#log.isLevelEnabled("debug")) this.#log.debug(lineOf(call), "request");
  }

  /** Records an error by its category; one that matches no rule also by its shape, and logs it. */
  #noteError(
    to: Series,
    { request }: RoutedCall,
    { provider, verdict }: Attempt,
    failure: Failure,
  ): void {
    if (verdict === null) return;
    const { code, httpStatus } = failure;
    const { methodName: method } = request.call;
    const { category } = verdict;
    const message = String(failure.message);
    const nowMs = this.#runtime.wallMs();
    const about = { provider: provider.id, code, httpStatus };
    const redact = (text: string): string => redactedMessage(provider, text);
    const describe = () => ({ method: redactedMethod(method), sample: redact(message) });
    noteSeen(to.errors, { ...about, category, describe }, nowMs);
    if (!UNKNOWN_CATEGORIES.has(category)) return;
    const shape = noteUnknown(to.unknown, { ...about, method, message, redact }, nowMs);
    const cause = `unknown error of ${provider.id}`;
    if (shape === null || !this.#repeats.mayLog(to.profile, cause)) return;
    this.#log.warn(
      { profile: to.profile, chain: to.chain, ...shape },
      "a provider error that no rule knows; `error_rules` can say what it means",
    );
  }

  #warn(call: FinishedCall): void {
    if (!this.#log.isLevelEnabled("warn")) return;
    const { to, route, answer } = call;
    const { profile, chain } = to;
    const text =
      answer.outcome.kind === "fault" ? "request failed" : "request took more than one attempt";
    const cause = `${text}: ${profile} on ${chain}: ${whyOf(route)}`;
    if (this.#repeats.mayLog(profile, cause)) this.#log.warn({ cause, ...lineOf(call) }, text);
  }
}

interface FinishedCall {
  readonly to: Series;
  readonly route: RoutedCall;
  readonly answer: Answer;
  readonly requestId: string;
}

/** The result of the first attempt, or why there was none. */
function whyOf({ traces, plan }: RoutedCall): string {
  const [first] = traces;
  if (first === undefined)
    return `no provider to ask (${plan.excluded.map(({ reason }) => reason).join(", ")})`;
  return `${first.attempt.provider.id} ${first.attempt.verdict?.category ?? "answered"}`;
}

function lineOf({ route, answer, requestId }: FinishedCall) {
  const { request, traces, plan } = route;
  return {
    request_id: requestId,
    chain: request.tracker.set.chain.chainName,
    // What callers write may be anything, a key pasted into the wrong place as well.
    method: redactedMethod(request.call.methodName),
    strategy: request.strategy,
    outcome: answer.outcome.kind,
    /** Where the answer came from. */
    source: answer.source.kind,
    attempts: traces.slice(0, MAX_ATTEMPTS).map(({ attempt }) => ({
      provider: attempt.provider.id,
      category: attempt.verdict?.category ?? null,
      code: attempt.code,
      latency_ms: Math.round(attempt.latencyMs),
    })),
    excluded: plan.excluded.map(({ provider, reason }) => `${provider.id}: ${reason}`),
  };
}
