// What an operator reads of one process beside metrics: decisions, errors of providers and streams.
// Each answer of one process can be merged with those of the others. Shows real provider ids.
import { errorGroupOf } from "../core/provider-errors/category.ts";
import type { PlanChange } from "../core/routing/what-if.ts";
import { FAILOVER_REASONS, type FailoverReason } from "../upstream/stream/subscriber.ts";
import type { SubscriptionReport, Subscriptions } from "../upstream/stream/subscriptions.ts";
import { errorRuleFor } from "./error-rule.ts";
import { type CallFilter, matches } from "./feed/call-filter.ts";
import {
  type CallEvent,
  callEventOf,
  type DecisionView,
  decisionView,
  filteredDecisionOf,
  type WhatIfView,
  whatIfView,
} from "./feed/decision.ts";
import type { DecisionUse } from "./feed/kept-decisions.ts";
import { CHECK_RESULTS } from "./metrics.ts";
import type { Observer } from "./observer.ts";

/** What is asked for. */
export type ReportQuery =
  | { readonly kind: "decisions"; readonly filter: CallFilter; readonly limit: number }
  | { readonly kind: "decision"; readonly id: string }
  | { readonly kind: "what_if"; readonly id: string; readonly change: PlanChange }
  | { readonly kind: "errors" }
  | { readonly kind: "streams" };

/** The answer to each kind of question. */
export interface ReportAnswers {
  readonly decisions: {
    readonly calls: readonly CallEvent[];
    readonly uses: readonly DecisionUse[];
  };
  /** Null = it is not kept here. */
  readonly decision: DecisionView | null;
  readonly what_if: WhatIfView | null;
  readonly errors: { readonly total: number; readonly shapes: readonly ErrorShape[] };
  readonly streams: StreamsReport;
}

/** Reads reports of the whole service. */
export interface OperatorReports {
  /** Null = the other workers do not answer. */
  read<K extends ReportQuery["kind"]>(
    query: Extract<ReportQuery, { readonly kind: K }>,
  ): Promise<ReportAnswers[K] | null>;
}

/** A shape of errors of a provider. */
export interface ErrorShape {
  readonly profile: string;
  readonly chain: string;
  readonly provider: string;
  readonly method: string;
  readonly category: string;
  readonly group: string;
  readonly code: number | null;
  readonly http_status: number | null;
  readonly sample: string | null;
  readonly count: number;
  readonly first_seen: string | null;
  readonly last_seen: string;
  /** Only of errors that no rule knows. */
  readonly rule: {
    readonly yaml: string;
    readonly entry: { readonly [name: string]: unknown };
  } | null;
}

/** A subscription upstream. */
type StreamView = ReturnType<typeof streamView>;

/** The subscriptions of a service. */
export interface StreamsReport {
  readonly totals: StreamTotals;
  readonly streams: readonly StreamView[];
  readonly truncated: boolean;
}

/** Sums over all subscriptions. */
export interface StreamTotals {
  readonly streams: number;
  readonly subscribers: number;
  readonly events: number;
  readonly failovers: Readonly<Record<FailoverReason, number>>;
  readonly blocks_filled: number;
  readonly ended: number;
  readonly log_checks: Readonly<Record<string, number>>;
}

/** What reports are made of. */
export interface ReportParts {
  readonly observer: Pick<Observer, "feed" | "allSeries">;
  readonly subscriptions: Pick<Subscriptions, "reports" | "counts" | "checks">;
}

const MAX_STREAMS = 500;
const MAX_SHAPES = 1_000;

/** The report of this process. */
export function ownReport<K extends ReportQuery["kind"]>(
  parts: ReportParts,
  query: Extract<ReportQuery, { readonly kind: K }>,
): ReportAnswers[K];
export function ownReport(
  parts: ReportParts,
  query: ReportQuery,
): ReportAnswers[ReportQuery["kind"]] {
  const { feed } = parts.observer;
  switch (query.kind) {
    case "decisions": {
      const { filter, limit } = query;
      const kept = feed
        .decisions()
        .filter((decision) => matches(filter, filteredDecisionOf(decision)));
      const calls = kept.slice(0, limit).map((decision) => callEventOf(decision));
      return { calls, uses: [feed.use()] };
    }
    case "decision": {
      const decision = feed.decision(query.id);
      return decision === null ? null : decisionView(decision);
    }
    case "what_if": {
      const decision = feed.decision(query.id);
      return decision === null ? null : whatIfView(decision, query.change);
    }
    case "errors":
      return ownErrors(parts);
    case "streams":
      return ownStreams(parts);
  }
}

function ownErrors({ observer }: ReportParts): ReportAnswers["errors"] {
  const all = observer.allSeries();
  const unknown = all.flatMap(({ profile, chain, unknown: { shapes } }) =>
    Array.from(shapes.values(), (shape): ErrorShape => {
      const { provider, method, code, httpStatus, sample, count, lastMs } = shape;
      return {
        profile,
        chain,
        provider,
        method,
        category: "unknown",
        group: "unknown",
        code,
        http_status: httpStatus === 0 ? null : httpStatus,
        sample,
        count,
        first_seen: null,
        last_seen: new Date(lastMs).toISOString(),
        rule: errorRuleFor(shape),
      };
    }),
  );
  const known = all.flatMap(({ profile, chain, errors }) =>
    Array.from(errors.values()).flatMap(
      ({ httpStatus, firstMs, lastMs, category, sampledMs: _, ...rest }): readonly ErrorShape[] =>
        category === "unknown"
          ? []
          : [
              {
                profile,
                chain,
                ...rest,
                category,
                group: errorGroupOf(category),
                http_status: httpStatus === 0 ? null : httpStatus,
                first_seen: new Date(firstMs).toISOString(),
                last_seen: new Date(lastMs).toISOString(),
                rule: null,
              },
            ],
    ),
  );
  return sortedErrors([...unknown, ...known]);
}

/** Those that no rule knows first, each part newest first. */
function sortedErrors(shapes: readonly ErrorShape[]): ReportAnswers["errors"] {
  const total = shapes.reduce((sum, { count }) => sum + count, 0);
  const sorted = shapes.toSorted(
    (left, right) =>
      Number(left.category !== "unknown") - Number(right.category !== "unknown") ||
      (left.last_seen < right.last_seen ? 1 : -1),
  );
  return { total, shapes: sorted.slice(0, MAX_SHAPES) };
}

function ownStreams({ observer, subscriptions }: ReportParts): StreamsReport {
  const open = subscriptions.reports();
  const counts = subscriptions.counts();
  const checks = subscriptions.checks();
  const sum = <T>(list: readonly T[], of: (item: T) => number): number =>
    list.reduce((total, item) => total + of(item), 0);
  const failovers = Object.fromEntries(
    FAILOVER_REASONS.map((reason) => [reason, sum(counts, (each) => each.failovers[reason])]),
  ) as StreamTotals["failovers"];
  const totals: StreamTotals = {
    streams: open.length,
    subscribers: sum(open, ({ subscribers }) => subscribers),
    events: sum(open, ({ events }) => events),
    failovers,
    blocks_filled:
      sum(counts, ({ filledBlocks }) => filledBlocks) +
      sum(open, ({ filledBlocks }) => filledBlocks),
    ended: sum(counts, ({ ended }) => ended),
    log_checks: Object.fromEntries(
      CHECK_RESULTS.map(([name, member]) => [name, sum(checks, (each) => each[member])]),
    ),
  };
  const { worker } = observer.feed;
  const streams = open.map((report) => streamView(report, worker));
  return withinBounds(totals, streams, false);
}

function streamView(report: SubscriptionReport, worker: string) {
  const { provider, height, behind, filledBlocks, lagMs, ...stream } = report;
  return {
    ...stream,
    provider: provider?.id ?? null,
    block_height: height,
    blocks_behind: behind,
    blocks_filled: filledBlocks,
    lag_ms: lagMs === null ? null : Math.round(lagMs * 100) / 100,
    worker,
  };
}

/** The most subscribed ones first, as far as they are shown. */
function withinBounds(
  totals: StreamTotals,
  streams: readonly StreamView[],
  truncated: boolean,
): StreamsReport {
  const sorted = streams.toSorted((left, right) => right.subscribers - left.subscribers);
  return {
    totals,
    streams: sorted.slice(0, MAX_STREAMS),
    truncated: truncated || streams.length > MAX_STREAMS,
  };
}

/** How the answers of several processes to each kind of question become one. */
const MERGES: {
  readonly [K in ReportQuery["kind"]]: (answers: readonly ReportAnswers[K][]) => ReportAnswers[K];
} = {
  decisions: (answers) => ({
    calls: answers
      .flatMap(({ calls }) => calls)
      .sort((left, right) => (left.at < right.at ? 1 : -1)),
    uses: answers.flatMap(({ uses }) => uses),
  }),
  decision: (answers) => answers.find((answer) => answer !== null) ?? null,
  what_if: (answers) => answers.find((answer) => answer !== null) ?? null,
  errors: mergeErrors,
  streams: mergeStreams,
};

/** The answers of several processes as one; there is at least one. */
export function mergeReports<K extends ReportQuery["kind"]>(
  kind: K,
  answers: readonly ReportAnswers[K][],
): ReportAnswers[K] {
  return MERGES[kind](answers);
}

function mergeErrors(answers: readonly ReportAnswers["errors"][]): ReportAnswers["errors"] {
  const groups = Map.groupBy(
    answers.flatMap(({ shapes }) => shapes),
    ({ profile, chain, provider, category, code, sample }) =>
      JSON.stringify([
        profile,
        chain,
        provider,
        category,
        category === "unknown" ? [code, sample] : 0,
      ]),
  );
  const merged = Array.from(groups.values(), (same) => {
    const newest = same.reduce((best, each) => (each.last_seen > best.last_seen ? each : best));
    const firsts = same.flatMap(({ first_seen }) => (first_seen === null ? [] : [first_seen]));
    return {
      ...newest,
      count: same.reduce((sum, { count }) => sum + count, 0),
      first_seen: firsts.sort()[0] ?? null,
    };
  });
  return sortedErrors(merged);
}

function mergeStreams(answers: readonly StreamsReport[]): StreamsReport {
  const totals = answers.map((answer) => answer.totals);
  const sum = (of: (each: StreamTotals) => number): number =>
    totals.reduce((total, each) => total + of(each), 0);
  const names = [...new Set(totals.flatMap(({ log_checks }) => Object.keys(log_checks)))];
  const merged: StreamTotals = {
    streams: sum(({ streams }) => streams),
    subscribers: sum(({ subscribers }) => subscribers),
    events: sum(({ events }) => events),
    failovers: Object.fromEntries(
      FAILOVER_REASONS.map((reason) => [reason, sum(({ failovers }) => failovers[reason])]),
    ) as StreamTotals["failovers"],
    blocks_filled: sum(({ blocks_filled }) => blocks_filled),
    ended: sum(({ ended }) => ended),
    log_checks: Object.fromEntries(
      names.map((name) => [name, sum(({ log_checks }) => log_checks[name] ?? 0)]),
    ),
  };
  const truncated = answers.some((answer) => answer.truncated);
  return withinBounds(
    merged,
    answers.flatMap(({ streams }) => streams),
    truncated,
  );
}
