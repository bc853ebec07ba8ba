// Every metric of `/metrics`, as rows of one table in the order of the page: name, type, labels,
// help, and how its samples are collected. The page, docs/metrics.md and the tests read this table.
// Label values come only from the configuration and from tables in the code, so that no caller can
// make the page grow.
import { CALL_ENDS, CALL_OUTCOMES } from "../core/call-end.ts";
import type { Histogram } from "../core/provider/latency.ts";
import { NO_SOURCE } from "../core/routing/answer-source.ts";
import { COUNTED_KINDS } from "../core/stream/subscription.ts";
import type { PaymentGauges } from "../payments/payments.ts";
import { REASK_REASONS } from "../upstream/engine/layers/consistency.ts";
import { FILTER_ENDS, FILTER_KINDS } from "../upstream/filter/filters.ts";
import type { Tracker } from "../upstream/health/tracker.ts";
import { FAILOVER_REASONS } from "../upstream/stream/subscriber.ts";
import { type ProviderReading, providerStates, type Readings, trackersOf } from "./readings.ts";
import type { Series } from "./series.ts";

/** One series of a metric: its label values in order, and its value. */
export type Sample = readonly [labels: readonly string[], value: number | Histogram];

/** One metric. */
export interface Metric {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly help: string;
  /**
   * How the values of several workers are combined into one value of the service; absent = they are
   * added up.
   */
  readonly merge?: "max" | "min";
  /** Reads the current series; null = this instance does not have the metric. */
  readonly collect: (readings: Readings) => readonly Sample[] | null;
}

/** The results of log checks: label value and member of `NO_CHECKS`. */
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

/** How the samples of a metric are collected, and the names of the labels that they carry. */
interface Source {
  readonly labels: readonly string[];
  readonly collect: Metric["collect"];
}

/** Name, help and source of a metric. A function as source stands for samples without labels. */
type Row = [name: string, help: string, source: Source | Metric["collect"]];

function metric(type: Metric["type"], [name, help, source]: Row): Metric {
  const of = typeof source === "function" ? labelled([], source) : source;
  return { name, type, labels: of.labels, help, collect: of.collect };
}

function counter(...row: Row): Metric {
  return metric("counter", row);
}

function gauge(...row: Row): Metric {
  return metric("gauge", row);
}

/** A gauge whose value for several workers is their highest value. */
function highest(...row: Row): Metric {
  return { ...gauge(...row), merge: "max" };
}

/** A gauge whose value for several workers is their lowest value. */
function lowest(...row: Row): Metric {
  return { ...gauge(...row), merge: "min" };
}

function histogram(...row: Row): Metric {
  return metric("histogram", row);
}

/** All metrics. */
export const METRICS: readonly Metric[] = [
  counter(
    "svc_calls_total",
    "Every call that ended, each exactly once, also items of batches and requests on WebSockets: " +
      "`answered`, `caller_error` (a revert, wrong parameters), `failed` (a provider or the service " +
      "caused an error), `refused` by the service, or `cancelled` by its caller; `cause` is the " +
      "code of a refusal or the category of a provider's error. Profile and chain are empty where " +
      "a call was refused before they were known. Notifications are not among them.",
    labelled([...CHAIN, "outcome", "reason", "cause"], ({ observer }) =>
      perChain([observer.unplaced, ...observer.allSeries()], endSamples),
    ),
  ),
  counter(
    "svc_requests_total",
    "The same calls by method and outcome, without those that ended before their method was read.",
    labelled([...CHAIN, "method", "outcome"], ({ observer, methods }) => {
      const { labels } = methods();
      return observer.allSeries().flatMap((series) => requestSamples(series, labels));
    }),
  ),
  counter(
    "svc_call_notifications_total",
    "Requests without an id, which get no answer and are in no other count of calls.",
    perSeries(({ unanswered }) => one(unanswered)),
  ),
  counter(
    "svc_hidden_failures_total",
    "Attempts at which a provider failed and the caller did not notice: another attempt gave the " +
      "answer, or showed the error to be the caller's own. The provider is empty where it is a " +
      "user's own, or one of more than 200.",
    labelled([...CHAIN, "provider"], hiddenSamples),
  ),
  counter(
    "svc_answers_total",
    "Answers by where they came from: a provider, the cache, several providers, a call or " +
      "subscription that was there already, the heads of providers, a transaction that was " +
      "handed in, or the configuration.",
    perSeries(
      ({ sources }) =>
        Object.entries(sources)
          .filter(([source, n]) => source !== NO_SOURCE.kind && n > 0)
          .map(([source, n]) => [[source], n]),
      "source",
    ),
  ),
  histogram(
    "svc_request_duration_seconds",
    "Time from routing to outcome.",
    perSeries(({ durations }) => [[[], durations]]),
  ),
  counter(
    "svc_unknown_provider_errors_total",
    "Provider errors that no rule of the classification knows; samples: " +
      "GET /api/v1/operator/errors.",
    perSeries(({ unknown }) => one(unknown)),
  ),
  counter(
    "svc_panic_calls_total",
    "Calls while every circuit was open, by what became of them: sent all the same, or " +
      "refused.",
    perSeries(({ panics }) => byName(panics), "result"),
  ),
  counter(
    "svc_hedges_total",
    "Calls that were asked of a second provider because the first took long, by whether that " +
      "one answered first (won) or not (lost); over_budget = it, or one with a higher head after null, was not asked.",
    perSeries(({ hedges }) => byName(hedges), "result"),
  ),
  counter(
    "svc_null_rechecks_total",
    "Calls for a transaction, receipt or block that were asked of a provider with a higher head " +
      "because the first answered null, by whether that one had it. Out of the budget of hedges.",
    perSeries(({ rechecked }) => byName(rechecked), "result"),
  ),
  counter(
    "svc_cache_calls_total",
    "Calls of methods whose answers are kept, by how they met the cache: hit, miss, or bypass " +
      "(pinned, or the caller wanted a provider asked).",
    perSeries(({ cacheUses }) => byName(cacheUses), "result"),
  ),
  gauge("svc_cache_bytes", "Memory of kept answers, in bytes.", ({ cache }) =>
    oneOrNone(cache?.().bytes),
  ),
  gauge("svc_cache_entries", "Kept answers.", ({ cache }) => oneOrNone(cache?.().entries)),
  counter(
    "svc_cache_removed_total",
    "Kept answers that were removed: for the room of others, or because their block was " +
      "abandoned.",
    labelled(["reason"], ({ cache }) => {
      if (cache === undefined) return null;
      const { evicted, abandoned } = cache();
      return byName({ room: evicted, abandoned });
    }),
  ),
  counter(
    "svc_cache_redis_lookups_total",
    "Look-ups in the second tier of the cache, by result: hit, miss, unusable (what is there is " +
      "no answer to the question, or not final here), timeout (20 ms), error, skipped (too many " +
      "were under way). All but hit were asked of providers.",
    labelled(["result"], ({ cache }) => byNameOrNone(cache?.().secondTier?.lookUps)),
  ),
  counter(
    "svc_cache_redis_writes_total",
    "Answers for the second tier of the cache, by result: stored, dropped (too many were under " +
      "way), timeout (20 ms), error.",
    labelled(["result"], ({ cache }) => byNameOrNone(cache?.().secondTier?.stores)),
  ),
  highest(
    "svc_cache_redis_state",
    "The circuit of the second tier of the cache: 0 = closed, 1 = a connection is being opened, " +
      "2 = open. Of several workers the worst.",
    ({ cache }) => {
      const tier = cache?.().secondTier ?? null;
      return tier === null ? null : [[[], TIER_VALUE[tier.state]]];
    },
  ),
  highest(
    "svc_cluster_nodes",
    "Nodes that serve together: connected, responding, and how many there should be.",
    labelled(["state"], ({ cluster }) => {
      const health = cluster();
      return health === null ? null : inOrder(["connected", "responding", "total"], health);
    }),
  ),
  highest(
    "svc_cluster_database_silent_seconds",
    "For how long the database that the nodes share has not answered this node.",
    ({ cluster }) => {
      const health = cluster();
      return health === null ? null : one(health.silentMs / 1_000);
    },
  ),
  counter(
    "svc_split_calls_total",
    "Calls over ranges of blocks that were asked for in parts, by how they ended; `cut` = broken " +
      "off after the first byte.",
    labelled(["outcome"], ({ observer: { splits } }) => inOrder(SPLIT_OUTCOMES, splits)),
  ),
  counter(
    "svc_split_parts_total",
    "Parts of such calls: `asked` in all, and of those `refused` as too large, asked for `again` " +
      "after a failure, and `foreign`: of another fork, or false.",
    labelled(["result"], ({ observer: { splits } }) => {
      const { parts: asked, refused, again, foreign } = splits;
      return byName({ asked, refused, again, foreign });
    }),
  ),
  counter(
    "svc_upstream_batches_total",
    "Requests to providers that carried several calls: `sent` in all, and of those `refused`: " +
      "as a whole, for their size, or with calls left out.",
    labelled(["result"], ({ observer: { batches } }) =>
      byName({ sent: batches.sent, refused: batches.refused }),
    ),
  ),
  counter(
    "svc_upstream_batched_calls_total",
    "Calls that went to providers in such requests: `sent` in all, and of those asked `alone` " +
      "after all.",
    labelled(["result"], ({ observer: { batches } }) =>
      byName({ sent: batches.calls, alone: batches.alone }),
    ),
  ),
  counter(
    "svc_upstream_tls_handshakes_total",
    "TLS handshakes with providers over HTTP/1.1: `full`, or `resumed` from a session before.",
    labelled(["kind"], ({ observer: { handshakes } }) => byName(handshakes)),
  ),
  counter(
    "svc_upstream_pipelined_again_total",
    "Pipelined requests that were sent once more, since their connection ended before their answer.",
    ({ observer }) => one(observer.pipelinedAgain),
  ),
  counter(
    "svc_buffer_double_returns_total",
    "Answers whose memory was returned twice, which was ignored: a defect of the service.",
    ({ observer }) => one(observer.returnsTwice),
  ),
  counter(
    "svc_old_form_requests_total",
    "Requests of older forms that were served, by form; a WebSocket counts once.",
    labelled(["form"], ({ legacyForms }) =>
      Array.from(legacyForms.counts(), ([form, n]) => [[form], n]),
    ),
  ),
  gauge("svc_sockets", "Client WebSockets open.", ({ observer }) => one(observer.sockets.open)),
  counter(
    "svc_socket_closes_total",
    "Client WebSockets closed, by close code.",
    labelled(["code"], ({ observer }) =>
      Array.from(observer.sockets.closes, ([code, n]) => [[code], n]),
    ),
  ),
  counter(
    "svc_notifications_total",
    "Subscription notifications delivered, by profile, chain and kind.",
    perSeries(
      ({ notifications }) =>
        COUNTED_KINDS.flatMap((kind, i): readonly Sample[] => {
          const n = notifications[i] ?? 0;
          return n === 0 ? [] : [[[kind], n]];
        }),
      "kind",
    ),
  ),
  gauge(
    "svc_subscriptions",
    "Upstream subscriptions, each shared by any number of subscribers.",
    labelled([...CHAIN, "kind", "state"], ({ reports }) => perStream(reports, () => 1)),
  ),
  gauge(
    "svc_subscribers",
    "Subscriptions of callers.",
    labelled([...CHAIN, "kind", "state"], ({ reports }) =>
      perStream(reports, ({ subscribers }) => subscribers),
    ),
  ),
  counter(
    "svc_subscription_failovers_total",
    "Subscriptions that went on at another provider, by reason.",
    labelled([...CHAIN, "reason"], ({ subscriptions }) =>
      perChain(subscriptions.counts(), ({ failovers }) => inOrder(FAILOVER_REASONS, failovers)),
    ),
  ),
  counter(
    "svc_subscription_blocks_filled_total",
    "Blocks that nobody pushed and that were asked for, so that there is no gap.",
    labelled(CHAIN, ({ subscriptions, reports }) =>
      subscriptions.counts().map(({ profile, chain, filledBlocks }) => {
        const live = reports
          .filter((report) => report.profile === profile && report.chain === chain)
          .reduce((sum, report) => sum + report.filledBlocks, 0);
        return [[profile, chain], filledBlocks + live];
      }),
    ),
  ),
  counter(
    "svc_subscriptions_ended_total",
    "Subscriptions that could not go on within their bounds (close code 1011).",
    labelled(CHAIN, ({ subscriptions }) =>
      perChain(subscriptions.counts(), ({ ended }) => one(ended)),
    ),
  ),
  counter(
    "svc_log_checks_total",
    "Blocks whose logs were checked with another provider, by result; missing = the provider " +
      "of the stream left logs out.",
    labelled([...CHAIN, "result"], ({ subscriptions }) =>
      perChain(subscriptions.checks(), (counts) =>
        CHECK_RESULTS.map(([result, member]) => [[result], counts[member]]),
      ),
    ),
  ),
  counter(
    "svc_log_check_calls_total",
    "Calls that these checks took. Nobody is charged for them.",
    labelled(CHAIN, ({ subscriptions }) =>
      perChain(subscriptions.checks(), ({ calls }) => one(calls)),
    ),
  ),
  gauge(
    "svc_filters",
    "Filters of callers, by profile, chain and kind.",
    labelled([...CHAIN, "kind"], ({ filters }) =>
      perChain(filters.counts(), ({ open }) => inOrder(FILTER_KINDS, open)),
    ),
  ),
  counter(
    "svc_filters_ended_total",
    "Filters that ended, by reason.",
    labelled([...CHAIN, "reason"], ({ filters }) =>
      perChain(filters.counts(), ({ ended }) => inOrder(FILTER_ENDS, ended)),
    ),
  ),
  gauge(
    "svc_filter_unread_bytes",
    "Bytes that wait to be polled in all filters, and those of very long filters themselves.",
    ({ filters }) => one(filters.unreadBytes),
  ),
  counter(
    "svc_upstream_attempts_total",
    "Attempts by provider, transport and outcome.",
    perProvider(
      ({ health }) =>
        Object.entries(health.outcomes).map(([outcome, n]) => [[snakeCase(outcome)], n]),
      "outcome",
    ),
  ),
  highest(
    "svc_provider_state",
    "1 for the state of a provider, judged every 10 s: good, recovered (its probes are good, and " +
      "no call has tried it since), never_answered, slow, lagging, limited, failing, down or " +
      "maintenance.",
    labelled([...CHAIN, "provider", "state"], (readings) =>
      providerStates(readings).map((labels) => [labels, 1]),
    ),
  ),
  {
    ...counter(
      "svc_incidents_total",
      "Incidents that were opened, by cause.",
      labelled(["cause"], ({ incidents: { opened } }) => byNameOrNone(opened)),
    ),
    // Every worker knows those of the whole service.
    merge: "max",
  },
  highest(
    "svc_circuit_breaker_state",
    "0 closed, 1 half-open, 2 open.",
    perProvider(({ health }) => one(BREAKER_VALUE[health.breaker])),
  ),
  counter(
    "svc_circuit_opened_total",
    "Times the circuit was opened, by cause; silence: nothing was answered for longer than " +
      "usual.",
    perProvider(({ health }) => byName(health.openings), "cause"),
  ),
  highest(
    "svc_stalled",
    "1 while calls hang at it, although it may answer probes; it is asked after others.",
    perProvider(({ health }) => one(Number(health.stalled))),
  ),
  highest(
    "svc_rate_limited_seconds",
    "Remaining time of the rate-limit state.",
    perProvider(({ health }) => one(health.rateLimitedForMs / 1000)),
  ),
  highest(
    "svc_provider_limit",
    "Declared limits of providers (rps, concurrency: requests; daily, monthly: credits); for " +
      "the operator.",
    perBudget(({ limit }) => limit),
  ),
  gauge(
    "svc_provider_limit_in_use",
    "Requests of the last second (rps), and requests at once (concurrency); for the operator.",
    perBudget(({ used }, name) => (isQuota(name) ? null : used)),
  ),
  highest(
    "svc_provider_credits_spent",
    "Credits spent of this day (daily) and this month (monthly); for the operator.",
    perBudget(({ used }, name) => (isQuota(name) ? used : null)),
  ),
  highest(
    "svc_cordoned",
    "1 while excluded for a wrong chain or dead credentials.",
    perProvider(({ health }) => one(health.cordon === null ? 0 : 1)),
  ),
  highest(
    "svc_provider_head_block",
    "Latest known height.",
    perProvider(({ health }) => known(health.height)),
  ),
  highest(
    "svc_provider_lag_blocks",
    "Blocks behind the agreed height.",
    perProvider(({ health }) => known(health.lagBlocks)),
  ),
  highest(
    "svc_upstream_socket_open",
    "1 while the provider's WebSocket is open.",
    perProvider(({ socket }) => known(socket === null ? null : Number(socket.state === "open"))),
  ),
  counter(
    "svc_upstream_socket_opened_total",
    "Times the provider's WebSocket was opened.",
    perProvider(({ socket }) => known(socket?.opened ?? null)),
  ),
  gauge(
    "svc_upstream_socket_subscriptions",
    "Subscriptions on the provider's WebSocket.",
    perProvider(({ socket }) => known(socket?.subscriptions ?? null)),
  ),
  counter(
    "svc_upstream_stray_frames_total",
    "Frames on the provider's WebSocket that belonged to nothing.",
    perProvider(({ socket }) => known(socket?.strayFrames ?? null)),
  ),
  histogram(
    "svc_upstream_latency_seconds",
    "Time from sending a request to a provider to its answer, of those that delivered one.",
    perProvider(({ health }) => [[[], health.latencies]]),
  ),
  highest(
    "svc_head_block",
    "Height the providers of a profile agree on.",
    perTracker((tracker) => tracker.head()),
  ),
  highest(
    "svc_tip_block",
    "The newest block that callers are shown, the highest that two operators of providers " +
      "report. Of several workers the highest.",
    perTracker(({ blocks }) => blocks.view.tip?.number ?? null),
  ),
  lowest(
    "svc_tip_in_force",
    "1 while that block was confirmed lately, and block tags name it; 0 while tags go to " +
      "providers as written. Of several workers 0 if it is so at one.",
    perTracker(({ blocks }) => Number(blocks.view.current() !== null)),
  ),
  highest(
    "svc_tip_alone",
    "1 while one operator alone defines that block although others are configured. Of several " +
      "workers 1 if it is so at one.",
    perTracker(({ blocks }) => Number(blocks.view.current()?.isAlone === true)),
  ),
  counter(
    "svc_view_reasks_total",
    "Further calls to providers so that all callers keep one view: `missing` = a provider " +
      "lacked the block, `stale` = nobody had it, so the tag went out as written, `own` = a " +
      "provider did not know a transaction that was sent through this service.",
    labelled(["reason"], ({ observer: { reasks } }) =>
      REASK_REASONS.map((reason) => [[reason], reasks[reason]]),
    ),
  ),
  counter(
    "svc_metered_compute_units_total",
    "Compute units that callers with a key used, by price: `full`, or `cached`, the share " +
      "`hosted.cache_price` of a call that was answered from the cache.",
    labelled(["price"], ({ metered }) => byNameOrNone(metered?.())),
  ),
  highest(
    "svc_purchases",
    "Payments that are under way, by state, and those whose money is held for somebody who is " +
      "gone.",
    labelled(["state"], ({ payments }) => {
      const gauges = payments();
      return gauges === null ? null : inOrder(["accepted", "submitted", "held"], gauges);
    }),
  ),
  highest(
    "svc_settlement_wallet_low",
    "1 while a wallet that pays for gas has too little.",
    perWallet(({ low }) => low),
  ),
  highest(
    "svc_settlement_wallet_empty",
    "1 while it has nothing, and payments by its rail are not offered.",
    perWallet(({ empty }) => empty),
  ),
  gauge("svc_session_channels", "Channels of pay-per-call in memory.", ({ sessions }) =>
    oneOrNone(sessions()?.channels),
  ),
  gauge("svc_session_calls_held", "Paid requests under way.", ({ sessions }) =>
    oneOrNone(sessions()?.held),
  ),
  highest(
    "svc_session_chain_down",
    "1 while the chain of pay-per-call cannot be asked, and nothing is settled.",
    ({ sessions }) => oneOrNone(sessions()?.chainDown),
  ),
  highest(
    "svc_session_wallet_low",
    "1 while the wallet that settles can hardly pay for its transactions.",
    ({ sessions }) => oneOrNone(sessions()?.walletLow),
  ),
  gauge("svc_in_flight_bytes", "Bytes held for requests under way.", ({ inFlightBytes }) =>
    one(inFlightBytes),
  ),
  gauge("process_resident_memory_bytes", "Resident memory.", ({ residentBytes }) =>
    one(residentBytes),
  ),
  counter("process_cpu_seconds_total", "User and system CPU time.", ({ cpuSeconds }) =>
    one(cpuSeconds),
  ),
  highest("svc_uptime_seconds", "Time since the start.", ({ uptimeMs }) => one(uptimeMs / 1000)),
  highest(
    "svc_build_info",
    "Always 1.",
    labelled(["version"], ({ version }) => [[[version], 1]]),
  ),
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

/** One series for each entry, with the name of the entry as its only label value. */
function byName(numbers: Readonly<Record<string, number>>): readonly NumberSample[] {
  return Object.entries(numbers).map(([name, n]) => [[name], n]);
}

/** `byName`; no metric if the instance does not have the numbers. */
function byNameOrNone(
  numbers: Readonly<Record<string, number>> | null | undefined,
): readonly NumberSample[] | null {
  return numbers === null || numbers === undefined ? null : byName(numbers);
}

/** `byName` for the given names, in the given order. */
function inOrder<Name extends string>(
  names: readonly Name[],
  numbers: Readonly<Record<Name, number>>,
): readonly NumberSample[] {
  return names.map((name) => [[name], numbers[name]]);
}

/** Samples of rows, of which each belongs to one profile and chain. */
function perChain<Of extends { readonly profile: string; readonly chain: string }>(
  rows: readonly Of[],
  samplesOf: (row: Of) => readonly Sample[],
): readonly Sample[] {
  return rows.flatMap((row) => prefixed([row.profile, row.chain], samplesOf(row)));
}

function labelled(labels: readonly string[], collect: Metric["collect"]): Source {
  return { labels, collect };
}

/** Collects from the counters of every profile and chain. */
function perSeries(
  samplesOf: (series: Series) => readonly Sample[],
  ...further: readonly string[]
): Source {
  return labelled([...CHAIN, ...further], ({ observer }) =>
    perChain(observer.allSeries(), samplesOf),
  );
}

/** Failures that failover hid, by provider; callers see the aliases of managed pools. */
function hiddenSamples({ observer, registry, realIds }: Readings): readonly Sample[] {
  const shown = new Set(
    registry.profiles.flatMap(({ profile }) => (profile.managed ? [] : [profile.slug])),
  );
  return perChain(observer.allSeries(), ({ profile, hiddenFailures: { rows, others } }) => [
    ...Array.from(rows.values(), ({ of, count }): NumberSample => {
      return [[realIds || shown.has(profile) ? of.id : of.alias], count];
    }),
    ...(others === 0 ? [] : [[[""], others] as const]),
  ]);
}

/** Collects from the tracker of every profile and chain; null = unknown. */
function perTracker(readingOf: (tracker: Tracker) => number | null): Source {
  return labelled(CHAIN, ({ registry }) =>
    trackersOf(registry).flatMap(({ labels, tracker }) =>
      prefixed(labels, known(readingOf(tracker))),
    ),
  );
}

/** Collects from every provider on every transport. */
function perProvider(
  samplesOf: (reading: ProviderReading) => readonly Sample[],
  ...further: readonly string[]
): Source {
  return labelled([...PROVIDER, ...further], ({ providers }) =>
    providers.flatMap((reading) => prefixed(reading.labels, samplesOf(reading))),
  );
}

/**
 * Collects from every declared limit of every provider. `readingOf` returns null for a limit to
 * which the metric does not apply.
 */
function perBudget(
  readingOf: (
    limit: { readonly limit: number; readonly used: number },
    name: LimitName,
  ) => number | null,
): Source {
  return labelled([...CHAIN, "provider", "limit"], ({ budgets }) =>
    budgets.flatMap(({ labels, budget }) =>
      LIMIT_NAMES.flatMap((name): readonly Sample[] => {
        const limit = budget[name];
        const value = limit === null ? null : readingOf(limit, name);
        return value === null ? [] : [[[...labels, name], value]];
      }),
    ),
  );
}

function isQuota(name: LimitName): boolean {
  return name === "daily" || name === "monthly";
}

/** Collects a flag of every wallet that pays for gas. */
function perWallet(flagOf: (wallet: PaymentGauges["wallets"][number]) => boolean): Source {
  return labelled(
    ["chain_id"],
    ({ payments }) =>
      payments()?.wallets.map((of) => [[String(of.chainId)], Number(flagOf(of))]) ?? null,
  );
}

function prefixed(labels: readonly string[], samples: readonly Sample[]): readonly Sample[] {
  return samples.map(([further, value]) => [[...labels, ...further], value]);
}

function requestSamples(series: Series, methods: readonly string[]): readonly Sample[] {
  const samples: Sample[] = [];
  for (const [index, method] of methods.entries()) {
    for (const [i, outcome] of CALL_OUTCOMES.entries()) {
      const n = series.requests[index * CALL_OUTCOMES.length + i] ?? 0;
      if (n > 0) samples.push([[series.profile, series.chain, method, outcome], n]);
    }
  }
  return samples;
}

function endSamples({ ends }: Series): readonly Sample[] {
  return CALL_ENDS.flatMap(({ index, outcome, reason, cause }): Sample[] => {
    const n = ends[index] ?? 0;
    return n > 0 ? [[[outcome, reason ?? "", cause], n]] : [];
  });
}

/** A number of every stream, added up over streams with equal labels. */
function perStream(
  reports: Readings["reports"],
  numberOf: (report: Readings["reports"][number]) => number,
): readonly Sample[] {
  const sums = new Map<string, NumberSample>();
  for (const report of reports) {
    const labels = [report.profile, report.chain, report.kind, report.state];
    const key = labels.join(" ");
    sums.set(key, [labels, (sums.get(key)?.[1] ?? 0) + numberOf(report)]);
  }
  return [...sums.values()];
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (initial) => `_${initial.toLowerCase()}`);
}
