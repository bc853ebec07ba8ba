// What an operator reads of the whole service beside metrics: decisions, errors of providers and
// streams. Every process answers of itself, and the answers are merged. Shows real provider ids.
import type { PlanChange } from "../core/routing/what-if.ts";
import type { Bus, QuestionTopic } from "../core/workers/bus.ts";
import { FAILOVER_REASONS } from "../upstream/stream/subscriber.ts";
import type { SubscriptionReport, Subscriptions } from "../upstream/stream/subscriptions.ts";
import { type CallFilter, matches } from "./feed/call-filter.ts";
import { callEventOf, decisionView, filteredDecisionOf, whatIfView } from "./feed/decision.ts";
import { ownCallOf } from "./feed/own-call.ts";
import type { Interval } from "./history/history-report.ts";
import { CHECK_RESULTS } from "./metrics.ts";
import type { Observer } from "./observer.ts";

/** What reports are made of. */
export interface ReportParts {
  readonly observer: Pick<Observer, "errors" | "feed">;
  readonly subscriptions: Pick<Subscriptions, "reports" | "counts" | "checks">;
}

/** A worker that does not answer within this time is left out. */
const WORKER_MS = 2_000;
const MAX_STREAMS = 500;

/** A question about the service: what one process answers, and how the answers become one. */
export class ServiceReport<Query, Own, Whole> {
  readonly #topic: QuestionTopic<Query, { readonly answer: Own }>;
  readonly #own: (parts: ReportParts, query: Query) => Own;
  readonly #merge: (answers: readonly Own[]) => Whole;

  constructor(
    name: string,
    own: (parts: ReportParts, query: Query) => Own,
    merge: (answers: readonly Own[]) => Whole,
  ) {
    this.#topic = { name: `operator report: ${name}` };
    this.#own = own;
    this.#merge = merge;
  }

  serve(parts: ReportParts, bus: Bus): void {
    bus.serve(this.#topic, (query) => ({ answer: this.#own(parts, query) }));
  }

  /** Null = no worker answers. */
  async read(bus: Bus, message: Query): Promise<Whole | null> {
    const asked = { topic: this.#topic, message, timeoutMs: WORKER_MS };
    const replies = await Promise.all(bus.workers().map((id) => bus.request(id, asked)));
    const answers = replies.flatMap((reply) => (reply.ok ? [reply.value.answer] : []));
    return answers.length === 0 ? null : this.#merge(answers);
  }
}

/** Reads a report of the whole service; null = no worker answers. */
export type ReadReport = <Query, Own, Whole>(
  report: ServiceReport<Query, Own, Whole>,
  query: Query,
) => Promise<Whole | null>;

/** Answers for this process, and reads reports of the whole service. */
export function openReports(parts: ReportParts, bus: Bus): ReadReport {
  for (const report of [DECISIONS, DECISION, OWN_CALLS, WHAT_IF, ERRORS, STREAMS])
    report.serve(parts, bus);
  return (report, query) => report.read(bus, query);
}

/** Which decisions are asked for. */
interface DecisionsQuery {
  readonly filter: CallFilter;
  /** When they ended. */
  readonly ended: Interval;
  /** Only of this request: its call, or those of its batch. */
  readonly requestId?: string | undefined;
  readonly limit: number;
}

/** Decisions that match a filter, newest first, and how many are kept. */
export const DECISIONS = new ServiceReport(
  "decisions",
  ({ observer: { feed } }, { filter, ended, requestId: id, limit }: DecisionsQuery) => {
    const { fromMs, toMs } = ended;
    const kept = feed
      .decisions()
      .filter(({ wallMs }) => wallMs >= fromMs && wallMs < toMs)
      .filter(({ requestId }) => id === undefined || `${requestId ?? ""}-`.startsWith(`${id}-`))
      .filter((decision) => matches(filter, filteredDecisionOf(decision)));
    const calls = kept.slice(0, limit).map((decision) => callEventOf(decision));
    return { calls, use: feed.use() };
  },
  (answers) => ({
    calls: answers
      .flatMap(({ calls }) => calls)
      .sort((left, right) => (left.at < right.at ? 1 : -1)),
    uses: answers.map(({ use }) => use),
  }),
);

/** Selects calls that were made with some keys. */
export interface OwnCallsQuery {
  readonly keys: readonly string[];
  readonly filter: CallFilter;
  readonly limit: number;
}

/** Calls that were made with these keys, newest first, as their account is shown them. */
export const OWN_CALLS = new ServiceReport(
  "own_calls",
  ({ observer: { feed } }, { keys, filter, limit }: OwnCallsQuery) => {
    const own = new Set(keys);
    return feed
      .decisions()
      .filter(({ keyId }) => keyId !== null && own.has(keyId))
      .filter((decision) => matches(filter, filteredDecisionOf(decision)))
      .slice(0, limit)
      .map(ownCallOf);
  },
  (answers) => answers.flat().sort((left, right) => (left.at < right.at ? 1 : -1)),
);

/** One decision; null = it is not kept. */
export const DECISION = new ServiceReport(
  "decision",
  ({ observer: { feed } }, id: string) => {
    const decision = feed.decision(id);
    return decision === null ? null : decisionView(decision);
  },
  (answers) => answers.find((answer) => answer !== null) ?? null,
);

/** Another plan of a decision, or why there is none; null = the decision is not kept. */
export const WHAT_IF = new ServiceReport(
  "what_if",
  (
    { observer: { feed } },
    { id, change }: { readonly id: string; readonly change: PlanChange },
  ) => {
    const decision = feed.decision(id);
    return decision === null ? null : whatIfView(decision, change);
  },
  (answers) => answers.find((answer) => answer !== null) ?? null,
);

/** The errors of calls by shape. */
export const ERRORS = new ServiceReport(
  "errors",
  ({ observer: { errors } }, _: object) => ({ totals: errors.totals, shapes: errors.shapes() }),
  (answers) => answers,
);

/** The subscriptions upstream, the most subscribed first, and sums over all of them. */
export const STREAMS = new ServiceReport(
  "streams",
  ({ observer, subscriptions }, _: object) => {
    const open = subscriptions.reports();
    return {
      open: {
        streams: open.length,
        subscribers: sumOf(open, ({ subscribers }) => subscribers),
        events: sumOf(open, ({ events }) => events),
        filledBlocks: sumOf(open, ({ filledBlocks }) => filledBlocks),
      },
      counts: subscriptions.counts(),
      checks: subscriptions.checks(),
      streams: mostSubscribed(open.map((report) => workerStream(report, observer.feed.worker))),
    };
  },
  (answers) => {
    const open = answers.map((answer) => answer.open);
    const counts = answers.flatMap((answer) => answer.counts);
    const checks = answers.flatMap((answer) => answer.checks);
    const totals = {
      streams: sumOf(open, ({ streams }) => streams),
      events: sumOf(open, ({ events }) => events),
      ...streamTotals(open, counts, checks),
    };
    const streams = mostSubscribed(answers.flatMap((answer) => answer.streams));
    return { totals, streams, truncated: streams.length < totals.streams };
  },
);

/** Sums over subscriptions that are open, and over what was counted of all. */
export function streamTotals(
  open: readonly Pick<SubscriptionReport, "subscribers" | "filledBlocks">[],
  counts: ReturnType<Subscriptions["counts"]>,
  checks: ReturnType<Subscriptions["checks"]>,
) {
  return {
    subscribers: sumOf(open, ({ subscribers }) => subscribers),
    failovers: Object.fromEntries(
      FAILOVER_REASONS.map((reason) => [reason, sumOf(counts, (of) => of.failovers[reason])]),
    ),
    blocks_filled: sumOf([...counts, ...open], ({ filledBlocks }) => filledBlocks),
    ended: sumOf(counts, ({ ended }) => ended),
    log_checks: Object.fromEntries(
      CHECK_RESULTS.map(([name, member]) => [name, sumOf(checks, (of) => of[member])]),
    ),
  };
}

/** A subscription, without its source. */
export function streamView(report: SubscriptionReport) {
  const { kind, state, pinned, subscribers, events, failovers } = report;
  return {
    ...{ kind, state, pinned, subscribers, events, failovers },
    block_height: report.height,
    blocks_behind: report.behind,
    blocks_filled: report.filledBlocks,
  };
}

function workerStream(report: SubscriptionReport, worker: string) {
  const { profile, chain, provider, lagMs } = report;
  return {
    ...{ profile, chain, worker, ...streamView(report) },
    provider: provider?.id ?? null,
    lag_ms: lagMs === null ? null : Math.round(lagMs * 100) / 100,
  };
}

function mostSubscribed<S extends { readonly subscribers: number }>(streams: readonly S[]) {
  return streams
    .toSorted((left, right) => right.subscribers - left.subscribers)
    .slice(0, MAX_STREAMS);
}

function sumOf<T>(list: readonly T[], of: (item: T) => number): number {
  return list.reduce((total, item) => total + of(item), 0);
}
