// What is told of sockets and subscriptions: for `GET /api/metrics/{chain}` as JSON, for
// `GET /metrics` as Prometheus lines. Filters are the callers' own business and are not shown.
import type { Provider } from "../../core/provider/profile.ts";
import { SUBSCRIPTION_KINDS } from "../../core/stream/subscription.ts";
import type { Series } from "../../observe/observer.ts";
import { FILTER_ENDS, FILTER_KINDS, type Filters } from "../../upstream/filter/filters.ts";
import type { CheckCounts } from "../../upstream/stream/log-checks.ts";
import { FAILOVER_REASONS } from "../../upstream/stream/subscriber.ts";
import type { SubscriptionReport, Subscriptions } from "../../upstream/stream/subscriptions.ts";
import type { SocketReport } from "../../upstream/transport.ts";

/** Where the numbers come from. */
export interface StreamFacts {
  readonly subscriptions: Pick<Subscriptions, "reports" | "counts" | "checks">;
  readonly filters: Pick<Filters, "counts" | "unreadBytes">;
  readonly socketOf: (provider: Provider) => SocketReport;
}

const MOST_SHOWN = 100;

/** What can become of a check, as it is shown. */
const CHECK_RESULTS = [
  ["agreed", "agreed"],
  ["missing", "missing"],
  ["surplus", "surplus"],
  ["unanswered", "unanswered"],
  ["given_up", "givenUp"],
  ["over_budget", "overBudget"],
] as const;

/**
 * The subscriptions of one profile on one chain; `shown` names a provider as callers may know it.
 */
export function subscriptionsDocument(
  { subscriptions }: StreamFacts,
  series: Series,
  shown: (provider: Provider) => string,
): unknown {
  const own = (it: { readonly profile: string; readonly chain: string }): boolean =>
    it.profile === series.profile && it.chain === series.chain;
  const open = subscriptions.reports().filter(own);
  const counts = subscriptions.counts().find(own);
  const checks = subscriptions.checks().find(own);
  return {
    open: open.length,
    subscribers: sumOf(open, (it) => it.subscribers),
    failovers: Object.fromEntries(
      FAILOVER_REASONS.map((reason) => [reason, counts?.failovers[reason] ?? 0]),
    ),
    blocks_filled: (counts?.filledBlocks ?? 0) + sumOf(open, (it) => it.filledBlocks),
    ended: counts?.ended ?? 0,
    log_checks: {
      ...Object.fromEntries(CHECK_RESULTS.map(([name, member]) => [name, checks?.[member] ?? 0])),
      calls: checks?.calls ?? 0,
    },
    notifications: Object.fromEntries(
      SUBSCRIPTION_KINDS.map((kind, i) => [kind, series.notifications[i] ?? 0]),
    ),
    streams: open.slice(0, MOST_SHOWN).map((it) => ({
      kind: it.kind,
      state: it.state,
      provider: it.provider === null ? null : shown(it.provider),
      pinned: it.pinned,
      subscribers: it.subscribers,
      block_height: it.height,
      blocks_behind: it.behind,
      events: it.events,
      failovers: it.failovers,
      blocks_filled: it.filledBlocks,
    })),
  };
}

/** The socket to a provider. */
export function socketDocument({
  state,
  subscriptions,
  opened,
  strayFrames,
}: SocketReport): unknown {
  return { state, subscriptions, opened, stray_frames: strayFrames };
}

/** One metric of the exposition. */
export interface StreamMetric {
  readonly name: string;
  readonly type: "counter" | "gauge";
  readonly help: string;
  readonly samples: readonly (readonly [labels: Readonly<Record<string, string>>, value: number])[];
}

/** The metrics of subscriptions. */
export function subscriptionMetrics({ subscriptions }: StreamFacts): readonly StreamMetric[] {
  const reports = subscriptions.reports();
  const groups = [
    ...Map.groupBy(reports, ({ profile, chain, kind, state }) =>
      JSON.stringify({ profile, chain, kind, state }),
    ),
  ];
  const counts = subscriptions
    .counts()
    .map((it) => ({ ...it, labels: { profile: it.profile, chain: it.chain } }));
  const open = (it: {
    readonly profile: string;
    readonly chain: string;
  }): readonly SubscriptionReport[] =>
    reports.filter(({ profile, chain }) => profile === it.profile && chain === it.chain);
  return [
    {
      name: "svc_subscriptions",
      type: "gauge",
      help: "Upstream subscriptions, each shared by any number of subscribers.",
      samples: groups.map(([labels, all]) => [JSON.parse(labels), all.length]),
    },
    {
      name: "svc_subscribers",
      type: "gauge",
      help: "Subscriptions of callers.",
      samples: groups.map(([labels, all]) => [
        JSON.parse(labels),
        sumOf(all, (it) => it.subscribers),
      ]),
    },
    {
      name: "svc_subscription_failovers_total",
      type: "counter",
      help: "Subscriptions that went on at another provider, by reason.",
      samples: counts.flatMap(({ labels, failovers }) =>
        FAILOVER_REASONS.map((reason) => [{ ...labels, reason }, failovers[reason]] as const),
      ),
    },
    {
      name: "svc_subscription_blocks_filled_total",
      type: "counter",
      help: "Blocks that nobody pushed and that were asked for, so that there is no gap.",
      samples: counts.map((it) => [
        it.labels,
        it.filledBlocks + sumOf(open(it), (report) => report.filledBlocks),
      ]),
    },
    {
      name: "svc_subscriptions_ended_total",
      type: "counter",
      help: "Subscriptions that could not go on within their bounds (close code 1011).",
      samples: counts.map((it) => [it.labels, it.ended]),
    },
    ...checkMetrics(subscriptions.checks()),
  ];
}

/** The metrics of checks of logs. */
function checkMetrics(checks: readonly CheckCounts[]): readonly StreamMetric[] {
  return [
    {
      name: "svc_log_checks_total",
      type: "counter",
      help:
        "Blocks whose logs were checked with another provider, by result; missing = the provider " +
        "of the stream left logs out.",
      samples: checks.flatMap((it) =>
        CHECK_RESULTS.map(
          ([result, member]) =>
            [{ profile: it.profile, chain: it.chain, result }, it[member]] as const,
        ),
      ),
    },
    {
      name: "svc_log_check_calls_total",
      type: "counter",
      help: "Calls that these checks took. Nobody is charged for them.",
      samples: checks.map(({ profile, chain, calls }) => [{ profile, chain }, calls]),
    },
  ];
}

/** The metrics of filters. */
export function filterMetrics({ filters }: Pick<StreamFacts, "filters">): readonly StreamMetric[] {
  const counts = filters
    .counts()
    .map((it) => ({ ...it, labels: { profile: it.profile, chain: it.chain } }));
  return [
    {
      name: "svc_filters",
      type: "gauge",
      help: "Filters of callers, by profile, chain and kind.",
      samples: counts.flatMap(({ labels, open }) =>
        FILTER_KINDS.map((kind) => [{ ...labels, kind }, open[kind]] as const),
      ),
    },
    {
      name: "svc_filters_ended_total",
      type: "counter",
      help: "Filters that ended, by reason.",
      samples: counts.flatMap(({ labels, ended }) =>
        FILTER_ENDS.map((reason) => [{ ...labels, reason }, ended[reason]] as const),
      ),
    },
    {
      name: "svc_filter_unread_bytes",
      type: "gauge",
      help: "Bytes that wait to be polled in all filters.",
      samples: [[{}, filters.unreadBytes]],
    },
  ];
}

function sumOf<T>(list: readonly T[], of: (it: T) => number): number {
  return list.reduce((sum, it) => sum + of(it), 0);
}
