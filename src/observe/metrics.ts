// Every metric of `/metrics`, as rows of one table in the order of the page: name, type, labels,
// help, and how its samples are collected. The page, docs/metrics.md and the tests read this table.
// Label values come only from the configuration and from tables in the code, so that no caller can
// make the page grow.
import type { Histogram } from "../core/provider/latency.ts";
import { NO_SOURCE } from "../core/routing/answer-source.ts";
import { COUNTED_KINDS } from "../core/stream/subscription.ts";
import type { PaymentGauges } from "../payments/payments.ts";
import { REASK_REASONS } from "../upstream/engine/layers/consistency.ts";
import { FILTER_ENDS, FILTER_KINDS } from "../upstream/filter/filters.ts";
import type { ServedView } from "../upstream/health/served-view.ts";
import { FAILOVER_REASONS } from "../upstream/stream/subscriber.ts";
import type { ProviderReading, Readings } from "./readings.ts";
import { OUTCOMES, type Series } from "./series.ts";

/** One series of a metric: its label values in order, and its value. */
export type Sample = readonly [labels: readonly string[], value: number | Histogram];

/** One metric. */
export interface Metric {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly help: string;
  /** How the gauges of several workers become one of the service; absent = they are added up. */
  readonly merge?: "max" | "min";
  /** Reads the current series; null = this instance does not have the metric. */
  readonly collect: (readings: Readings) => readonly Sample[] | null;
}

/** The results of log checks: label value and member of `CheckCounts`. */
export const CHECK_RESULTS = [
  ["agreed", "agreed"],
  ["missing", "missing"],
  ["surplus", "surplus"],
  ["unanswered", "unanswered"],
  ["given_up", "givenUp"],
  ["over_budget", "overBudget"],
] as const;

const LIMIT_NAMES = ["rps", "concurrency", "daily", "monthly"] as const;
type LimitName = (typeof LIMIT_NAMES)[number];
const SPLIT_OUTCOMES = ["answered", "failed", "cut", "left"] as const;

const BREAKER_VALUE = { closed: 0, half_open: 1, open: 2 } as const;

const TIER_VALUE = { off: 2, ready: 0, connecting: 1, open: 2 } as const;

const CHAIN: readonly string[] = ["profile", "chain"];
const PROVIDER: readonly string[] = [...CHAIN, "provider", "transport"];

/** All metrics. */
export const METRICS: readonly Metric[] = [
  {
    name: "svc_requests_total",
    type: "counter",
    labels: [...CHAIN, "method", "outcome"],
    help: "Requests by profile, chain, method and outcome.",
    collect: ({ observer, methods }) => {
      const { labels } = methods();
      return observer.allSeries().flatMap((series) => requestSamples(series, labels));
    },
  },
  {
    name: "svc_answers_total",
    type: "counter",
    labels: [...CHAIN, "source"],
    help:
      "Answers by where they came from: a provider, the cache, several providers, a call or " +
      "subscription that was there already, the heads of providers, a transaction that was " +
      "handed in, or the configuration.",
    collect: perSeries(({ sources }) =>
      Object.entries(sources)
        .filter(([source, n]) => source !== NO_SOURCE.kind && n > 0)
        .map(([source, n]) => [[source], n]),
    ),
  },
  {
    name: "svc_request_duration_seconds",
    type: "histogram",
    labels: CHAIN,
    help: "Time from routing to outcome.",
    collect: perSeries(({ durations }) => [[[], durations]]),
  },
  {
    name: "svc_unknown_provider_errors_total",
    type: "counter",
    labels: CHAIN,
    help:
      "Provider errors that no rule of the classification knows; samples: /api/metrics/{chain} " +
      "for the operator.",
    collect: perSeries(({ unknown }) => one(unknown.total)),
  },
  {
    name: "svc_panic_calls_total",
    type: "counter",
    labels: [...CHAIN, "result"],
    help:
      "Calls while every circuit was open, by what became of them: sent all the same, or " +
      "refused.",
    collect: perSeries(({ panics }) => Object.entries(panics).map(([result, n]) => [[result], n])),
  },
  {
    name: "svc_hedges_total",
    type: "counter",
    labels: [...CHAIN, "result"],
    help:
      "Calls that were asked of a second provider because the first took long, by whether that " +
      "one answered first (won) or not (lost); over_budget = it, or one with a higher head after null, was not asked.",
    collect: perSeries(({ hedges }) => Object.entries(hedges).map(([result, n]) => [[result], n])),
  },
  {
    name: "svc_null_rechecks_total",
    type: "counter",
    labels: [...CHAIN, "result"],
    help:
      "Calls for a transaction, receipt or block that were asked of a provider with a higher head " +
      "because the first answered null, by whether that one had it. Out of the budget of hedges.",
    collect: perSeries(({ rechecked }) =>
      Object.entries(rechecked).map(([result, n]) => [[result], n]),
    ),
  },
  {
    name: "svc_cache_calls_total",
    type: "counter",
    labels: [...CHAIN, "result"],
    help:
      "Calls of methods whose answers are kept, by how they met the cache: hit, miss, or bypass " +
      "(pinned, or the caller wanted a provider asked).",
    collect: perSeries(({ cacheUses }) =>
      Object.entries(cacheUses).map(([result, n]) => [[result], n]),
    ),
  },
  {
    name: "svc_cache_bytes",
    type: "gauge",
    labels: [],
    help: "Memory of kept answers, in bytes.",
    collect: ({ cache }) => (cache === undefined ? null : [[[], cache().bytes]]),
  },
  {
    name: "svc_cache_entries",
    type: "gauge",
    labels: [],
    help: "Kept answers.",
    collect: ({ cache }) => (cache === undefined ? null : [[[], cache().entries]]),
  },
  {
    name: "svc_cache_removed_total",
    type: "counter",
    labels: ["reason"],
    help:
      "Kept answers that were removed: for the room of others, or because their block was " +
      "abandoned.",
    collect: ({ cache }) => {
      if (cache === undefined) return null;
      const { evicted, abandoned } = cache();
      return [
        [["room"], evicted],
        [["abandoned"], abandoned],
      ];
    },
  },
  {
    name: "svc_cache_redis_lookups_total",
    type: "counter",
    labels: ["result"],
    help:
      "Look-ups in the second tier of the cache, by result: hit, miss, unusable (what is there is " +
      "no answer to the question, or not final here), timeout (20 ms), error, skipped (too many " +
      "were under way). All but hit were asked of providers.",
    collect: ({ cache }) => counted(cache?.().secondTier?.lookUps),
  },
  {
    name: "svc_cache_redis_writes_total",
    type: "counter",
    labels: ["result"],
    help:
      "Answers for the second tier of the cache, by result: stored, dropped (too many were under " +
      "way), timeout (20 ms), error.",
    collect: ({ cache }) => counted(cache?.().secondTier?.stores),
  },
  {
    name: "svc_cache_redis_state",
    type: "gauge",
    labels: [],
    merge: "max",
    help:
      "The circuit of the second tier of the cache: 0 = closed, 1 = a connection is being opened, " +
      "2 = open. Of several workers the worst.",
    collect: ({ cache }) => {
      const tier = cache?.().secondTier ?? null;
      return tier === null ? null : [[[], TIER_VALUE[tier.state]]];
    },
  },
  {
    name: "svc_cluster_nodes",
    type: "gauge",
    merge: "max",
    labels: ["state"],
    help: "Nodes that serve together: connected, responding, and how many there should be.",
    collect: ({ cluster }) => {
      const health = cluster();
      if (health === null) return null;
      const { connected, responding, total } = health;
      return [
        [["connected"], connected],
        [["responding"], responding],
        [["total"], total],
      ];
    },
  },
  {
    name: "svc_cluster_database_silent_seconds",
    type: "gauge",
    merge: "max",
    labels: [],
    help: "For how long the database that the nodes share has not answered this node.",
    collect: ({ cluster }) => {
      const health = cluster();
      return health === null ? null : [[[], health.silentMs / 1_000]];
    },
  },
  {
    name: "svc_split_calls_total",
    type: "counter",
    labels: ["outcome"],
    help:
      "Calls over ranges of blocks that were asked for in parts, by how they ended; `cut` = broken " +
      "off after the first byte.",
    collect: ({ observer: { splits } }) =>
      SPLIT_OUTCOMES.map((outcome) => [[outcome], splits[outcome]]),
  },
  {
    name: "svc_split_parts_total",
    type: "counter",
    labels: ["result"],
    help:
      "Parts of such calls: `asked` in all, and of those `refused` as too large, asked for `again` " +
      "after a failure, and `foreign`: of another fork, or false.",
    collect: ({ observer: { splits } }) => [
      [["asked"], splits.parts],
      [["refused"], splits.refused],
      [["again"], splits.again],
      [["foreign"], splits.foreign],
    ],
  },
  {
    name: "svc_upstream_batches_total",
    type: "counter",
    labels: ["result"],
    help:
      "Requests to providers that carried several calls: `sent` in all, and of those `refused`: " +
      "as a whole, for their size, or with calls left out.",
    collect: ({ observer: { batches } }) => [
      [["sent"], batches.sent],
      [["refused"], batches.refused],
    ],
  },
  {
    name: "svc_upstream_batched_calls_total",
    type: "counter",
    labels: ["result"],
    help:
      "Calls that went to providers in such requests: `sent` in all, and of those asked `alone` " +
      "after all.",
    collect: ({ observer: { batches } }) => [
      [["sent"], batches.calls],
      [["alone"], batches.alone],
    ],
  },
  {
    name: "svc_refusals_total",
    type: "counter",
    labels: ["code"],
    help: "Requests refused before routing, by code.",
    collect: ({ observer }) => Array.from(observer.refusals(), ([code, n]) => [[code], n]),
  },
  {
    name: "svc_buffer_double_returns_total",
    type: "counter",
    labels: [],
    help: "Answers whose memory was returned twice, which was ignored: a defect of the service.",
    collect: ({ observer }) => one(observer.returnsTwice()),
  },
  {
    name: "svc_old_form_requests_total",
    type: "counter",
    labels: ["form"],
    help: "Requests of older forms that were served, by form; a WebSocket counts once.",
    collect: ({ legacyForms }) => Array.from(legacyForms.counts(), ([form, n]) => [[form], n]),
  },
  {
    name: "svc_sockets",
    type: "gauge",
    labels: [],
    help: "Client WebSockets open.",
    collect: ({ observer }) => one(observer.sockets.open),
  },
  {
    name: "svc_socket_closes_total",
    type: "counter",
    labels: ["code"],
    help: "Client WebSockets closed, by close code.",
    collect: ({ observer }) => Array.from(observer.sockets.closes, ([code, n]) => [[code], n]),
  },
  {
    name: "svc_notifications_total",
    type: "counter",
    labels: [...CHAIN, "kind"],
    help: "Subscription notifications delivered, by profile, chain and kind.",
    collect: perSeries(({ notifications }) =>
      COUNTED_KINDS.flatMap((kind, i): readonly Sample[] => {
        const n = notifications[i] ?? 0;
        return n === 0 ? [] : [[[kind], n]];
      }),
    ),
  },
  {
    name: "svc_subscriptions",
    type: "gauge",
    labels: [...CHAIN, "kind", "state"],
    help: "Upstream subscriptions, each shared by any number of subscribers.",
    collect: (readings) => streamGroups(readings).map(({ labels, streams }) => [labels, streams]),
  },
  {
    name: "svc_subscribers",
    type: "gauge",
    labels: [...CHAIN, "kind", "state"],
    help: "Subscriptions of callers.",
    collect: (readings) =>
      streamGroups(readings).map(({ labels, subscribers }) => [labels, subscribers]),
  },
  {
    name: "svc_subscription_failovers_total",
    type: "counter",
    labels: [...CHAIN, "reason"],
    help: "Subscriptions that went on at another provider, by reason.",
    collect: ({ subscriptions }) =>
      subscriptions
        .counts()
        .flatMap(({ profile, chain, failovers }) =>
          FAILOVER_REASONS.map((reason): Sample => [[profile, chain, reason], failovers[reason]]),
        ),
  },
  {
    name: "svc_subscription_blocks_filled_total",
    type: "counter",
    labels: CHAIN,
    help: "Blocks that nobody pushed and that were asked for, so that there is no gap.",
    collect: ({ subscriptions, reports }) =>
      subscriptions.counts().map(({ profile, chain, filledBlocks }) => {
        const live = reports
          .filter((report) => report.profile === profile && report.chain === chain)
          .reduce((sum, report) => sum + report.filledBlocks, 0);
        return [[profile, chain], filledBlocks + live];
      }),
  },
  {
    name: "svc_subscriptions_ended_total",
    type: "counter",
    labels: CHAIN,
    help: "Subscriptions that could not go on within their bounds (close code 1011).",
    collect: ({ subscriptions }) =>
      subscriptions.counts().map(({ profile, chain, ended }) => [[profile, chain], ended]),
  },
  {
    name: "svc_log_checks_total",
    type: "counter",
    labels: [...CHAIN, "result"],
    help:
      "Blocks whose logs were checked with another provider, by result; missing = the provider " +
      "of the stream left logs out.",
    collect: ({ subscriptions }) =>
      subscriptions
        .checks()
        .flatMap((counts) =>
          CHECK_RESULTS.map(
            ([result, member]): Sample => [[counts.profile, counts.chain, result], counts[member]],
          ),
        ),
  },
  {
    name: "svc_log_check_calls_total",
    type: "counter",
    labels: CHAIN,
    help: "Calls that these checks took. Nobody is charged for them.",
    collect: ({ subscriptions }) =>
      subscriptions.checks().map(({ profile, chain, calls }) => [[profile, chain], calls]),
  },
  {
    name: "svc_filters",
    type: "gauge",
    labels: [...CHAIN, "kind"],
    help: "Filters of callers, by profile, chain and kind.",
    collect: ({ filters }) =>
      filters
        .counts()
        .flatMap(({ profile, chain, open }) =>
          FILTER_KINDS.map((kind): Sample => [[profile, chain, kind], open[kind]]),
        ),
  },
  {
    name: "svc_filters_ended_total",
    type: "counter",
    labels: [...CHAIN, "reason"],
    help: "Filters that ended, by reason.",
    collect: ({ filters }) =>
      filters
        .counts()
        .flatMap(({ profile, chain, ended }) =>
          FILTER_ENDS.map((reason): Sample => [[profile, chain, reason], ended[reason]]),
        ),
  },
  {
    name: "svc_filter_unread_bytes",
    type: "gauge",
    labels: [],
    help: "Bytes that wait to be polled in all filters, and those of very long filters themselves.",
    collect: ({ filters }) => one(filters.unreadBytes),
  },
  {
    name: "svc_upstream_attempts_total",
    type: "counter",
    labels: [...PROVIDER, "outcome"],
    help: "Attempts by provider, transport and outcome.",
    collect: perProvider(({ health }) =>
      Object.entries(health.outcomes).map(([outcome, n]) => [[snakeCase(outcome)], n]),
    ),
  },
  {
    name: "svc_circuit_breaker_state",
    type: "gauge",
    merge: "max",
    labels: PROVIDER,
    help: "0 closed, 1 half-open, 2 open.",
    collect: perProvider(({ health }) => one(BREAKER_VALUE[health.breaker])),
  },
  {
    name: "svc_circuit_recovered",
    type: "gauge",
    merge: "max",
    labels: PROVIDER,
    help: "1 if good probes closed the circuit and calls have not confirmed it yet, else 0.",
    collect: perProvider(({ health }) => one(health.circuit === "recovered" ? 1 : 0)),
  },
  {
    name: "svc_provider_never_answered",
    type: "gauge",
    merge: "max",
    labels: PROVIDER,
    help:
      "1 if neither a probe nor a call was answered since the start or the last change of the " +
      "provider, and its circuit is not open; else 0.",
    collect: perProvider(({ health }) => one(health.circuit === "never_answered" ? 1 : 0)),
  },
  {
    name: "svc_circuit_opened_total",
    type: "counter",
    labels: [...PROVIDER, "cause"],
    help:
      "Times the circuit was opened, by cause; silence: nothing was answered for longer than " +
      "usual.",
    collect: perProvider(({ health }) =>
      Object.entries(health.openings).map(([cause, n]) => [[cause], n]),
    ),
  },
  {
    name: "svc_stalled",
    type: "gauge",
    merge: "max",
    labels: PROVIDER,
    help: "1 while calls hang at it, although it may answer probes; it is asked after others.",
    collect: perProvider(({ health }) => one(Number(health.stalled))),
  },
  {
    name: "svc_rate_limited_seconds",
    type: "gauge",
    merge: "max",
    labels: PROVIDER,
    help: "Remaining time of the rate-limit state.",
    collect: perProvider(({ health }) => one(health.rateLimitedForMs / 1000)),
  },
  {
    name: "svc_provider_limit",
    type: "gauge",
    merge: "max",
    labels: [...CHAIN, "provider", "limit"],
    help:
      "Declared limits of providers (rps, concurrency: requests; daily, monthly: credits); for " +
      "the operator.",
    collect: perBudget(({ limit }) => limit),
  },
  {
    name: "svc_provider_limit_in_use",
    type: "gauge",
    labels: [...CHAIN, "provider", "limit"],
    help: "Requests of the last second (rps), and requests at once (concurrency); for the operator.",
    collect: perBudget(({ used }, name) => (isQuota(name) ? null : used)),
  },
  {
    name: "svc_provider_credits_spent",
    type: "gauge",
    merge: "max",
    labels: [...CHAIN, "provider", "limit"],
    help: "Credits spent of this day (daily) and this month (monthly); for the operator.",
    collect: perBudget(({ used }, name) => (isQuota(name) ? used : null)),
  },
  {
    name: "svc_cordoned",
    type: "gauge",
    merge: "max",
    labels: PROVIDER,
    help: "1 while excluded for a wrong chain or dead credentials.",
    collect: perProvider(({ health }) => one(health.cordon === null ? 0 : 1)),
  },
  {
    name: "svc_provider_head_block",
    type: "gauge",
    merge: "max",
    labels: PROVIDER,
    help: "Latest known height.",
    collect: perProvider(({ health }) => known(health.height)),
  },
  {
    name: "svc_provider_lag_blocks",
    type: "gauge",
    merge: "max",
    labels: PROVIDER,
    help: "Blocks behind the agreed height.",
    collect: perProvider(({ health }) => known(health.lagBlocks)),
  },
  {
    name: "svc_upstream_socket_open",
    type: "gauge",
    merge: "max",
    labels: PROVIDER,
    help: "1 while the provider's WebSocket is open.",
    collect: perProvider(({ socket }) =>
      known(socket === null ? null : Number(socket.state === "open")),
    ),
  },
  {
    name: "svc_upstream_socket_opened_total",
    type: "counter",
    labels: PROVIDER,
    help: "Times the provider's WebSocket was opened.",
    collect: perProvider(({ socket }) => known(socket?.opened ?? null)),
  },
  {
    name: "svc_upstream_socket_subscriptions",
    type: "gauge",
    labels: PROVIDER,
    help: "Subscriptions on the provider's WebSocket.",
    collect: perProvider(({ socket }) => known(socket?.subscriptions ?? null)),
  },
  {
    name: "svc_upstream_stray_frames_total",
    type: "counter",
    labels: PROVIDER,
    help: "Frames on the provider's WebSocket that belonged to nothing.",
    collect: perProvider(({ socket }) => known(socket?.strayFrames ?? null)),
  },
  {
    name: "svc_upstream_latency_seconds",
    type: "histogram",
    labels: PROVIDER,
    help: "Time from sending a request to a provider to its answer, of those that delivered one.",
    collect: perProvider(({ health }) => [[[], health.latencies]]),
  },
  {
    name: "svc_head_block",
    type: "gauge",
    merge: "max",
    labels: CHAIN,
    help: "Height the providers of a profile agree on.",
    collect: ({ registry }) =>
      registry.profiles.flatMap(({ profile, trackers }) =>
        [...trackers.values()].flatMap((tracker) =>
          known(tracker.head()).map(
            ([, head]): Sample => [[profile.slug, tracker.set.chain.chainName], head],
          ),
        ),
      ),
  },
  {
    name: "svc_tip_block",
    type: "gauge",
    merge: "max",
    labels: CHAIN,
    help:
      "The newest block that callers are shown, the highest that two operators of providers " +
      "report. Of several workers the highest.",
    collect: perView(({ tip }) => tip?.number ?? null),
  },
  {
    name: "svc_tip_in_force",
    type: "gauge",
    merge: "min",
    labels: CHAIN,
    help:
      "1 while that block was confirmed lately, and block tags name it; 0 while tags go to " +
      "providers as written. Of several workers 0 if it is so at one.",
    collect: perView((view) => Number(view.current() !== null)),
  },
  {
    name: "svc_tip_alone",
    type: "gauge",
    merge: "max",
    labels: CHAIN,
    help:
      "1 while one operator alone defines that block although others are configured. Of several " +
      "workers 1 if it is so at one.",
    collect: perView((view) => Number(view.current()?.isAlone === true)),
  },
  {
    name: "svc_view_reasks_total",
    type: "counter",
    labels: ["reason"],
    help:
      "Calls that were asked for again so that all callers keep one view: `missing` = a provider " +
      "lacked the block, `stale` = nobody had it, so the tag went out as written, `own` = a " +
      "provider did not know a transaction that was sent through this service.",
    collect: ({ observer: { reasks } }) =>
      REASK_REASONS.map((reason) => [[reason], reasks.of(reason)]),
  },
  {
    name: "svc_metered_compute_units_total",
    type: "counter",
    labels: ["price"],
    help:
      "Compute units that callers with a key used, by price: `full`, or `cached`, the share " +
      "`hosted.cache_price` of a call that was answered from the cache.",
    collect: ({ metered }) => {
      const cu = metered?.() ?? null;
      return cu === null ? null : Object.entries(cu).map(([price, n]) => [[price], n]);
    },
  },
  {
    name: "svc_purchases",
    type: "gauge",
    merge: "max",
    labels: ["state"],
    help:
      "Payments that are under way, by state, and those whose money is held for somebody who is " +
      "gone.",
    collect: ({ payments }) => {
      const gauges = payments();
      return gauges === null
        ? null
        : (["accepted", "submitted", "held"] as const).map((state) => [[state], gauges[state]]);
    },
  },
  {
    name: "svc_settlement_wallet_low",
    type: "gauge",
    merge: "max",
    labels: ["chain_id"],
    help: "1 while a wallet that pays for gas has too little.",
    collect: perWallet(({ low }) => low),
  },
  {
    name: "svc_settlement_wallet_empty",
    type: "gauge",
    merge: "max",
    labels: ["chain_id"],
    help: "1 while it has nothing, and payments by its rail are not offered.",
    collect: perWallet(({ empty }) => empty),
  },
  {
    name: "svc_session_channels",
    type: "gauge",
    labels: [],
    help: "Channels of pay-per-call in memory.",
    collect: ({ sessions }) => oneOrNone(sessions()?.channels),
  },
  {
    name: "svc_session_calls_held",
    type: "gauge",
    labels: [],
    help: "Paid requests under way.",
    collect: ({ sessions }) => oneOrNone(sessions()?.held),
  },
  {
    name: "svc_session_chain_down",
    type: "gauge",
    merge: "max",
    labels: [],
    help: "1 while the chain of pay-per-call cannot be asked, and nothing is settled.",
    collect: ({ sessions }) => oneOrNone(sessions()?.chainDown),
  },
  {
    name: "svc_session_wallet_low",
    type: "gauge",
    merge: "max",
    labels: [],
    help: "1 while the wallet that settles can hardly pay for its transactions.",
    collect: ({ sessions }) => oneOrNone(sessions()?.walletLow),
  },
  {
    name: "svc_in_flight_bytes",
    type: "gauge",
    labels: [],
    help: "Bytes held for requests under way.",
    collect: ({ inFlightBytes }) => one(inFlightBytes),
  },
  {
    name: "process_resident_memory_bytes",
    type: "gauge",
    labels: [],
    help: "Resident memory.",
    collect: ({ residentBytes }) => one(residentBytes),
  },
  {
    name: "process_cpu_seconds_total",
    type: "counter",
    labels: [],
    help: "User and system CPU time.",
    collect: ({ cpuSeconds }) => one(cpuSeconds),
  },
  {
    name: "svc_uptime_seconds",
    type: "gauge",
    merge: "max",
    labels: [],
    help: "Time since the start.",
    collect: ({ uptimeMs }) => one(uptimeMs / 1000),
  },
  {
    name: "svc_build_info",
    type: "gauge",
    merge: "max",
    labels: ["version"],
    help: "Always 1.",
    collect: ({ version }) => [[[version], 1]],
  },
];

/** A sample whose value is a number. */
type NumberSample = readonly [labels: readonly string[], value: number];

function one(value: number): readonly NumberSample[] {
  return [[[], value]];
}

/** One series, or none if the value is unknown. */
function known(value: number | null): readonly NumberSample[] {
  return value === null ? [] : one(value);
}

/** One series, or no metric if the instance does not have it. */
function oneOrNone(value: number | boolean | undefined): readonly Sample[] | null {
  return value === undefined ? null : one(Number(value));
}

/** Collects from the counters of every profile and chain. */
/** Numbers by the value of their one label; absent = this instance does not have them. */
function counted(
  numbers: Readonly<Record<string, number>> | undefined,
): readonly NumberSample[] | null {
  return numbers === undefined ? null : Object.entries(numbers).map(([name, n]) => [[name], n]);
}

function perSeries(samplesOf: (series: Series) => readonly Sample[]): Metric["collect"] {
  return ({ observer }) =>
    observer
      .allSeries()
      .flatMap((series) => prefixed([series.profile, series.chain], samplesOf(series)));
}

/** Collects from the view of every profile and chain; null = unknown. */
function perView(readingOf: (view: ServedView) => number | null): Metric["collect"] {
  return ({ registry }) =>
    registry.profiles.flatMap(({ profile, trackers }) =>
      [...trackers.values()].flatMap(({ blocks, set }) =>
        prefixed([profile.slug, set.chain.chainName], known(readingOf(blocks.view))),
      ),
    );
}

/** Collects from every provider on every transport. */
function perProvider(
  samplesOf: (reading: ProviderReading) => readonly Sample[],
): Metric["collect"] {
  return ({ providers }) =>
    providers.flatMap((reading) => prefixed(reading.labels, samplesOf(reading)));
}

/** Collects from every declared limit of every provider; null = not of this one. */
function perBudget(
  readingOf: (
    limit: { readonly limit: number; readonly used: number },
    name: LimitName,
  ) => number | null,
): Metric["collect"] {
  return ({ budgets }) =>
    budgets.flatMap(({ labels, budget }) =>
      LIMIT_NAMES.flatMap((name): readonly Sample[] => {
        const limit = budget[name];
        const value = limit === null ? null : readingOf(limit, name);
        return value === null ? [] : [[[...labels, name], value]];
      }),
    );
}

function isQuota(name: LimitName): boolean {
  return name === "daily" || name === "monthly";
}

/** Collects a flag of every wallet that pays for gas. */
function perWallet(
  flagOf: (wallet: PaymentGauges["wallets"][number]) => boolean,
): Metric["collect"] {
  return ({ payments }) =>
    payments()?.wallets.map((wallet) => [[String(wallet.chainId)], Number(flagOf(wallet))]) ?? null;
}

function prefixed(labels: readonly string[], samples: readonly Sample[]): readonly Sample[] {
  return samples.map(([further, value]) => [[...labels, ...further], value]);
}

function requestSamples(series: Series, methods: readonly string[]): readonly Sample[] {
  const samples: Sample[] = [];
  for (const [index, method] of methods.entries()) {
    for (const [i, outcome] of OUTCOMES.entries()) {
      const n = series.requests[index * OUTCOMES.length + i] ?? 0;
      if (n > 0) samples.push([[series.profile, series.chain, method, outcome], n]);
    }
  }
  return samples;
}

interface StreamGroup {
  readonly labels: readonly string[];
  readonly streams: number;
  readonly subscribers: number;
}

/** Streams with equal labels, added up. */
function streamGroups({ reports }: Readings): readonly StreamGroup[] {
  const groups = Map.groupBy(reports, ({ profile, chain, kind, state }) =>
    JSON.stringify([profile, chain, kind, state]),
  );
  return Array.from(groups.values(), (streams) => ({
    labels: streams
      .slice(0, 1)
      .flatMap(({ profile, chain, kind, state }) => [profile, chain, kind, state]),
    streams: streams.length,
    subscribers: streams.reduce((sum, { subscribers }) => sum + subscribers, 0),
  }));
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (initial) => `_${initial.toLowerCase()}`);
}
