// One sentence on a call: who was asked first and why, how each attempt ended, and what became of
// the call. Made of what was recorded alone: where a reason is not known, none is given. Pure.
import type { AnswerOf } from "../../api/contract-types.ts";
import type { CallEvent } from "../../api/use-feed.ts";
import { milliseconds, plural, textList } from "../../format/text.ts";
import { reasonText } from "../../health/outcomes.ts";

/** A call with the plan that it was routed by. */
export type Decision = AnswerOf<"GET /api/v1/operator/decisions/{id}">;
type Attempt = Decision["timeline"][number];

/** Most attempts or providers that are named one by one. */
const MOST_NAMED = 3;

/** Whether providers were asked, and why in this order is not known. */
export function lacksReasons({
  what_if: isRecorded,
  attempts,
  pinned,
}: Pick<CallEvent, "what_if" | "attempts" | "pinned">): boolean {
  return !isRecorded && attempts > 0 && !pinned;
}

/** What happened to a call, in a sentence. */
export function decisionSentence(decision: Decision): string {
  if (decision.timeline.length > 0) return `${textList(askedClauses(decision), "; ")}.`;
  const text = textList(unaskedClauses(decision), "; ");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** Of a call for which no provider was asked. */
function unaskedClauses(decision: Decision): readonly string[] {
  const { outcome, source, order, excluded, chain } = decision;
  const from = SOURCES[source]?.(decision);
  if (from !== undefined) return [from, ...endOf(decision)];
  if (outcome === "refused")
    return [`the service refused the call without asking a provider: ${whyOf(decision)}`];
  if (outcome === "answered") return ["the call was answered, and no attempt is recorded"];
  if (order.length > 0 || excluded.length === 0)
    return ["no attempt at a provider is recorded", ...endOf(decision)];
  const reasons = excluded.map(
    ({ provider, reason }) => `${provider} (${reason.replaceAll("_", " ")})`,
  );
  const all = chain === null ? "" : ` on ${chain}`;
  return [`no provider${all} could be asked: ${named(reasons)}`, ...endOf(decision)];
}

/** Of a call for which providers were asked. */
function askedClauses(decision: Decision): readonly string[] {
  const { source, hedge_over_budget: isOverBudget } = decision;
  const attempts = startedInOrder(decision.timeline);
  // They are recorded as they end: with a hedge the first one recorded need not have begun first.
  const isOrderKnown = attempts.every((each) => each.started_ms !== null) || !decision.hedged;
  if (source === "merged") return [mergedText(attempts), ...endOf(decision)];
  const clauses = attempts.flatMap((attempt, at) => {
    const before = attempts.slice(0, at).filter((each) => kindOf(each) === kindOf(attempt)).length;
    if (before > MOST_NAMED) return [];
    const more = attempts.filter((each) => kindOf(each) === kindOf(attempt)).length - before;
    if (before === MOST_NAMED) return [`and ${more} more ${kindOf(attempt)}`];
    if (at > 0 || !isOrderKnown) return [laterText(attempt)];
    const verb = attempts.length > 1 ? "was tried first" : "was asked";
    return [`${attempt.provider} ${verb}${whyFirst(decision, attempt)} and ${endText(attempt)}`];
  });
  const isAnswered = attempts.some(({ outcome }) => outcome === "success");
  const from = isAnswered || source === "provider" ? undefined : SOURCES[source]?.(decision);
  return [
    ...clauses,
    ...(isOverBudget ? ["a hedge was wanted, and over its budget"] : []),
    ...(from === undefined ? [] : [from]),
    ...endOf(decision),
  ];
}

/** Attempts as they began; one whose beginning is not known stays where it is. */
function startedInOrder(timeline: readonly Attempt[]): readonly Attempt[] {
  if (timeline.some(({ started_ms: start }) => start === null)) return timeline;
  return timeline.toSorted((left, right) => (left.started_ms ?? 0) - (right.started_ms ?? 0));
}

/** How an attempt ended, as one word for several. */
function kindOf({ outcome, category }: Attempt): "answered" | "were given up" | "failed" {
  if (outcome === "success") return "answered";
  return category === "overtaken" || category === "cancelled" ? "were given up" : "failed";
}

function laterText(attempt: Attempt): string {
  const { provider, hedged_after_ms: afterMs } = attempt;
  const beside = afterMs === null ? "" : `, asked beside it after ${milliseconds(afterMs)} ms,`;
  return `${provider}${beside} ${endText(attempt)}`;
}

/** Why the first one was asked first, as " as …"; "" = not known. */
function whyFirst(decision: Decision, { provider, transport }: Attempt): string {
  const { order, candidates, panic, pinned, strategy, lag_waived: isLagWaived } = decision;
  if (pinned) return ", to which the caller had pinned the call,";
  if (order[0] !== provider) return "";
  if (panic) return " while every circuit was open";
  if (order.length === 1) return " as the only candidate";
  const [first, ...others] = candidates;
  if (first === undefined || first.provider !== provider || first.transport !== transport)
    return "";
  if (first.circuit === "half_open") return " as its recovery trial";
  // Those that lag stand by their lag.
  if (isLagWaived) return "";
  const rivals = others.filter(({ tier }) => tier <= first.tier);
  const [next] = others;
  if (rivals.length === 0 && next !== undefined)
    return ` as the best candidate (next was ${next.provider}: ${next.decided_by})`;
  const isLeast = (of: (candidate: (typeof candidates)[number]) => number | null): boolean => {
    const own = of(first);
    return own !== null && rivals.every((rival) => own <= (of(rival) ?? Number.POSITIVE_INFINITY));
  };
  const reason = first.tier > 1 ? "" : ` (${first.decided_by})`;
  switch (strategy) {
    case "load-balanced":
    case "latency-weighted":
      return ` by a weighted draw${reason.replace("random, ", "")}`;
    case "priority":
      return isLeast((each) => each.priority) ? ` by its priority ${first.priority}` : "";
    case "cheapest":
      return isLeast((each) => each.price) ? ` as the cheapest${reason}` : "";
    case "fastest":
      return isLeast((each) => each.reading?.latency_ms ?? each.probe_ms)
        ? ` as the fastest${reason}`
        : "";
    case null:
      return "";
  }
}

const FAILURES: Readonly<Record<string, string>> = {
  timeout: "did not answer in time",
  execution_timeout: "timed out while it carried the call out",
  trace_timeout: "timed out while it traced",
  logs_timeout: "timed out while it searched logs",
  network: "lost its connection",
  unsent: "could not be reached",
  bad_body: "sent a broken answer",
};

/** How an attempt ended, and after how many milliseconds. */
function endText(attempt: Attempt): string {
  const { outcome, category, code, latency_ms: took } = attempt;
  const ms = `${milliseconds(took)} ms`;
  if (outcome === "success") return `answered in ${ms}`;
  if (kindOf(attempt) === "were given up") return `was given up after ${ms}`;
  const words = category === null ? "" : category.replaceAll("_", " ");
  if (code !== null && code >= 100 && code < 600) return `answered ${code} after ${ms}`;
  if (code !== null)
    return `answered with error ${code}${words === "" ? "" : ` (${words})`} after ${ms}`;
  const end = FAILURES[category ?? ""] ?? (words === "" ? "failed" : `failed (${words})`);
  return `${end} after ${ms}`;
}

function mergedText(attempts: readonly Attempt[]): string {
  const failed = attempts.filter((attempt) => kindOf(attempt) === "failed").length;
  const providers = [...new Set(attempts.map(({ provider }) => provider))];
  const part = failed === 0 ? "" : `, of which ${failed} failed`;
  return (
    `The answer was joined from parts: ${plural(attempts.length, "attempt")}${part}, ` +
    `at ${named(providers)}`
  );
}

function sharedText({ provider }: Decision): string {
  const whose = provider === null ? "an answer" : `an answer of ${provider}`;
  return `${whose} to another call or subscription was shared with this one`;
}

/** Whence an answer is that no attempt of the call gave. */
const SOURCES: Readonly<Partial<Record<Decision["source"], (decision: Decision) => string>>> = {
  cache: ({ provider, cache }) => {
    const whose = provider === null ? "" : ` of ${provider}`;
    const age = cache?.age_ms == null ? "" : `, ${milliseconds(cache.age_ms)} ms old`;
    return `the cache held an answer${whose}${age}`;
  },
  shared: sharedText,
  heads: () => "the service answered by itself, from what providers tell of their heads",
  accepted: () => "the transaction was answered as it was handed in: a provider had accepted it",
  local: () => "the service answered by itself, from its configuration",
};

/** What became of a call that was not answered. */
function endOf(decision: Decision): readonly string[] {
  switch (decision.outcome) {
    case "answered":
      return [];
    case "cancelled":
      return ["the caller left"];
    case "caller_error":
      return [`the caller got this error as its own: ${whyOf(decision)}`];
    case "refused":
      return [`the service refused the call: ${whyOf(decision)}`];
    case "failed":
      return [`the call failed: ${whyOf(decision)}`];
  }
}

function whyOf({ outcome, reason, cause }: Decision): string {
  if (reason === null) return "why is not recorded";
  const text = reasonText(`${outcome}.${reason}`);
  const exactly = (cause ?? "").replaceAll("_", " ");
  return exactly === "" || exactly === text ? text : `${text} (${exactly})`;
}

/** The first few, and how many more there are. */
function named(names: readonly string[]): string {
  const more = names.length - MOST_NAMED;
  const shown = names.slice(0, MOST_NAMED).join(", ");
  return more > 0 ? `${shown} and ${more} more` : shown;
}
