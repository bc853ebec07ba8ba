// `GET /metrics`: the counters as Prometheus text, written when asked. Labels come from the
// configuration and the method table only.

import { HISTOGRAM_BOUNDS_MS, type Histogram } from "../../core/provider/latency.ts";
import type { Provider, Transport } from "../../core/provider/profile.ts";
import type { MethodTable } from "../../core/rpc/method-table.ts";
import { SUBSCRIPTION_KINDS } from "../../core/stream/subscription.ts";
import { type Observer, OUTCOMES, type Series } from "../../observe/observer.ts";
import type { PaymentGauges } from "../../payments/payments.ts";
import type { SessionGauges } from "../../payments/session/sessions.ts";
import type { Tracker } from "../../upstream/health/tracker.ts";
import type { ProfileRegistry } from "../../upstream/registry/profile-registry.ts";
import type { SocketReport } from "../../upstream/transport.ts";
import type { LegacyForms } from "../rpc/legacy-forms.ts";
import { filterMetrics, type StreamFacts, subscriptionMetrics } from "./stream-metrics.ts";

/** What is told besides the counters. */
export interface ExpositionFacts extends StreamFacts {
  readonly uptimeMs: number;
  readonly residentBytes: number;
  readonly cpuSeconds: number;
  readonly inFlightBytes: number;
  readonly version: string;
  /** True = the operator asks, who sees the ids of managed pools. */
  readonly realIds: boolean;
  readonly legacyForms: Pick<LegacyForms, "counts">;
  /** The method table as it is configured now. */
  readonly methods: () => MethodTable;
  /** How payments stand; null = none are taken. */
  readonly payments: () => PaymentGauges | null;
  /** How pay-per-call stands; null = there is none. */
  readonly sessions: () => SessionGauges | null;
}

const UPSTREAM_LATENCY = "svc_upstream_latency_seconds";
const TRANSPORTS: readonly Transport[] = ["http", "ws"];

/** The whole exposition. */
export function prometheusText(
  directory: ProfileRegistry,
  observer: Observer,
  facts: ExpositionFacts,
): string {
  const lines: string[] = [];
  const metric = (name: string, type: "counter" | "gauge" | "histogram", help: string): void => {
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  };
  metric("svc_requests_total", "counter", "Requests by profile, chain, method and outcome.");
  const { labels } = facts.methods();
  for (const series of observer.allSeries()) lines.push(...requestLines(series, labels));
  metric("svc_request_duration_seconds", "histogram", "Time from routing to outcome.");
  for (const series of observer.allSeries())
    lines.push(
      ...histogramLines("svc_request_duration_seconds", labelsOf(series), series.durations),
    );
  metric(
    "svc_unknown_provider_errors_total",
    "counter",
    "Provider errors that no rule of the classification knows; samples: /api/metrics/{chain} " +
      "for the operator.",
  );
  for (const series of observer.allSeries())
    lines.push(`svc_unknown_provider_errors_total{${labelsOf(series)}} ${series.unknown.total}`);
  metric(
    "svc_panic_calls_total",
    "counter",
    "Calls while every circuit was open, by what became of them: sent all the same, or refused.",
  );
  for (const series of observer.allSeries()) lines.push(...panicLines(series));
  metric("svc_refusals_total", "counter", "Requests refused before routing, by code.");
  for (const [code, n] of observer.refusals())
    lines.push(`svc_refusals_total{code="${code}"} ${n}`);
  metric(
    "svc_old_form_requests_total",
    "counter",
    "Requests of older forms that were served, by form; a WebSocket counts once.",
  );
  for (const [form, n] of facts.legacyForms.counts())
    lines.push(`svc_old_form_requests_total{form="${form}"} ${n}`);
  metric("svc_sockets", "gauge", "Client WebSockets open.");
  lines.push(`svc_sockets ${observer.sockets.open}`);
  metric("svc_socket_closes_total", "counter", "Client WebSockets closed, by close code.");
  for (const [code, n] of observer.sockets.closes)
    lines.push(`svc_socket_closes_total{code="${code}"} ${n}`);
  metric(
    "svc_notifications_total",
    "counter",
    "Subscription notifications delivered, by profile, chain and kind.",
  );
  for (const series of observer.allSeries()) lines.push(...notificationLines(series));
  for (const it of [...subscriptionMetrics(facts), ...filterMetrics(facts)]) {
    metric(it.name, it.type, it.help);
    for (const [labels, value] of it.samples)
      lines.push(
        `${it.name}${Object.keys(labels).length === 0 ? "" : `{${labelsText(labels)}}`} ${value}`,
      );
  }
  for (const gauge of PROVIDER_METRICS) {
    metric(gauge.name, gauge.type, gauge.help);
    for (const it of providersOf(directory, facts))
      lines.push(
        ...gauge
          .lines(it)
          .map(([labels, value]) => `${gauge.name}{${it.labels}${labels}} ${value}`),
      );
  }
  metric(
    UPSTREAM_LATENCY,
    "histogram",
    "Time from sending a request to a provider to its answer, of those that delivered one.",
  );
  for (const { tracker, provider, transport, labels } of providersOf(directory, facts))
    lines.push(
      ...histogramLines(UPSTREAM_LATENCY, labels, tracker.health(provider, transport).latencies),
    );
  metric("svc_head_block", "gauge", "Height the providers of a profile agree on.");
  for (const served of directory.profiles) {
    for (const tracker of served.trackers.values()) {
      const head = tracker.head();
      if (head !== null)
        lines.push(
          `svc_head_block{profile="${labelValue(served.profile.slug)}",chain="${labelValue(tracker.set.chain.chainName)}"} ` +
            `${head}`,
        );
    }
  }
  for (const it of [...paymentMetrics(facts.payments()), ...sessionMetrics(facts.sessions())]) {
    metric(it.name, "gauge", it.help);
    for (const [labels, value] of it.samples)
      lines.push(`${it.name}${labels === "" ? "" : `{${labels}}`} ${value}`);
  }
  metric("svc_in_flight_bytes", "gauge", "Bytes held for requests under way.");
  lines.push(`svc_in_flight_bytes ${facts.inFlightBytes}`);
  metric("process_resident_memory_bytes", "gauge", "Resident memory.");
  lines.push(`process_resident_memory_bytes ${facts.residentBytes}`);
  metric("process_cpu_seconds_total", "counter", "User and system CPU time.");
  lines.push(`process_cpu_seconds_total ${facts.cpuSeconds}`);
  metric("svc_uptime_seconds", "gauge", "Time since the start.");
  lines.push(`svc_uptime_seconds ${facts.uptimeMs / 1000}`);
  metric("svc_build_info", "gauge", "Always 1.");
  lines.push(`svc_build_info{version="${labelValue(facts.version)}"} 1`);
  return `${lines.join("\n")}\n`;
}

interface Gauge {
  readonly name: string;
  readonly help: string;
  readonly samples: readonly (readonly [labels: string, value: number])[];
}

function paymentMetrics(payments: PaymentGauges | null): readonly Gauge[] {
  if (payments === null) return [];
  const { accepted, submitted, held, wallets } = payments;
  const flag = (of: "low" | "empty"): Gauge["samples"] =>
    wallets.map((it) => [`chain_id="${it.chainId}"`, it[of] ? 1 : 0]);
  return [
    {
      name: "svc_purchases",
      help:
        "Payments that are under way, by state, and those whose money is held for somebody who " +
        "is gone.",
      samples: [
        ['state="accepted"', accepted],
        ['state="submitted"', submitted],
        ['state="held"', held],
      ],
    },
    {
      name: "svc_settlement_wallet_low",
      help: "1 while a wallet that pays for gas has too little.",
      samples: flag("low"),
    },
    {
      name: "svc_settlement_wallet_empty",
      help: "1 while it has nothing, and payments by its rail are not offered.",
      samples: flag("empty"),
    },
  ];
}

function sessionMetrics(sessions: SessionGauges | null): readonly Gauge[] {
  if (sessions === null) return [];
  const { channels, held, chainDown, walletLow } = sessions;
  return [
    {
      name: "svc_session_channels",
      help: "Channels of pay-per-call in memory.",
      samples: [["", channels]],
    },
    { name: "svc_session_calls_held", help: "Paid requests under way.", samples: [["", held]] },
    {
      name: "svc_session_chain_down",
      help: "1 while the chain of pay-per-call cannot be asked, and nothing is settled.",
      samples: [["", chainDown ? 1 : 0]],
    },
    {
      name: "svc_session_wallet_low",
      help: "1 while the wallet that settles can hardly pay for its transactions.",
      samples: [["", walletLow ? 1 : 0]],
    },
  ];
}

interface OneProvider {
  /** Null on HTTP. */
  readonly socket: SocketReport | null;
  readonly tracker: Tracker;
  readonly provider: Provider;
  readonly transport: Transport;
  readonly labels: string;
}

interface ProviderMetric {
  readonly name: string;
  readonly type: "counter" | "gauge";
  readonly help: string;
  /** Further labels (with a leading comma) and value; none where nothing is known. */
  readonly lines: (it: OneProvider) => readonly (readonly [labels: string, value: number])[];
}

const BREAKER_VALUE = { closed: 0, half_open: 1, open: 2 } as const;
const known = (value: number | null): readonly (readonly [string, number])[] =>
  value === null ? [] : [["", value]];

const PROVIDER_METRICS: readonly ProviderMetric[] = [
  {
    name: "svc_upstream_attempts_total",
    type: "counter",
    help: "Attempts by provider, transport and outcome.",
    lines: ({ tracker, provider, transport }) =>
      Object.entries(tracker.health(provider, transport).outcomes).map(
        ([outcome, n]): [string, number] => [`,outcome="${snakeCase(outcome)}"`, n],
      ),
  },
  {
    name: "svc_circuit_breaker_state",
    type: "gauge",
    help: "0 closed, 1 half-open, 2 open.",
    lines: ({ tracker, provider, transport }) => [
      ["", BREAKER_VALUE[tracker.health(provider, transport).breaker]],
    ],
  },
  {
    name: "svc_circuit_opened_total",
    type: "counter",
    help:
      "Times the circuit was opened, by cause; silence: nothing was answered for longer than " +
      "usual.",
    lines: ({ tracker, provider, transport }) =>
      Object.entries(tracker.health(provider, transport).openings).map(
        ([cause, n]): [string, number] => [`,cause="${cause}"`, n],
      ),
  },
  {
    name: "svc_rate_limited_seconds",
    type: "gauge",
    help: "Remaining time of the rate-limit state.",
    lines: ({ tracker, provider, transport }) => [
      ["", tracker.health(provider, transport).rateLimitedForMs / 1000],
    ],
  },
  {
    name: "svc_cordoned",
    type: "gauge",
    help: "1 while excluded for a wrong chain or dead credentials.",
    lines: ({ tracker, provider, transport }) => [
      ["", tracker.health(provider, transport).cordon === null ? 0 : 1],
    ],
  },
  {
    name: "svc_provider_head_block",
    type: "gauge",
    help: "Latest known height.",
    lines: ({ tracker, provider, transport }) => known(tracker.health(provider, transport).height),
  },
  {
    name: "svc_provider_lag_blocks",
    type: "gauge",
    help: "Blocks behind the agreed height.",
    lines: ({ tracker, provider, transport }) =>
      known(tracker.health(provider, transport).lagBlocks),
  },
  {
    name: "svc_upstream_socket_open",
    type: "gauge",
    help: "1 while the provider's WebSocket is open.",
    lines: ({ socket }) => known(socket === null ? null : Number(socket.state === "open")),
  },
  {
    name: "svc_upstream_socket_opened_total",
    type: "counter",
    help: "Times the provider's WebSocket was opened.",
    lines: ({ socket }) => known(socket?.opened ?? null),
  },
  {
    name: "svc_upstream_socket_subscriptions",
    type: "gauge",
    help: "Subscriptions on the provider's WebSocket.",
    lines: ({ socket }) => known(socket?.subscriptions ?? null),
  },
  {
    name: "svc_upstream_stray_frames_total",
    type: "counter",
    help: "Frames on the provider's WebSocket that belonged to nothing.",
    lines: ({ socket }) => known(socket?.strayFrames ?? null),
  },
];

function providersOf(
  directory: ProfileRegistry,
  { socketOf, realIds }: ExpositionFacts,
): readonly OneProvider[] {
  return directory.profiles.flatMap(({ profile, trackers }) =>
    [...trackers.values()].flatMap((tracker) =>
      tracker.set.providers.flatMap((provider) =>
        TRANSPORTS.filter((it) => (it === "http" ? provider.url : provider.wsUrl) !== null).map(
          (transport) => {
            const labels = {
              profile: profile.slug,
              chain: tracker.set.chain.chainName,
              provider: profile.managed && !realIds ? provider.alias : provider.id,
              transport,
            };
            return {
              tracker,
              provider,
              transport,
              labels: labelsText(labels),
              socket: transport === "ws" ? socketOf(provider) : null,
            };
          },
        ),
      ),
    ),
  );
}

function requestLines(series: Series, methods: readonly string[]): readonly string[] {
  const lines: string[] = [];
  for (const [index, method] of methods.entries()) {
    for (const [i, outcome] of OUTCOMES.entries()) {
      const n = series.requests[index * OUTCOMES.length + i] ?? 0;
      if (n > 0)
        lines.push(
          `svc_requests_total{${labelsOf(series)},method="${method}",outcome="${outcome}"} ${n}`,
        );
    }
  }
  return lines;
}

function panicLines(series: Series): readonly string[] {
  return Object.entries(series.panics).map(
    ([result, n]) => `svc_panic_calls_total{${labelsOf(series)},result="${result}"} ${n}`,
  );
}

function notificationLines(series: Series): readonly string[] {
  return SUBSCRIPTION_KINDS.flatMap((kind, i) => {
    const n = series.notifications[i] ?? 0;
    return n === 0 ? [] : [`svc_notifications_total{${labelsOf(series)},kind="${kind}"} ${n}`];
  });
}

function histogramLines(
  name: string,
  labels: string,
  { counts, sumMs }: Histogram,
): readonly string[] {
  let sum = 0;
  const lines = [...HISTOGRAM_BOUNDS_MS.map((it) => String(it / 1000)), "+Inf"].map((bound, i) => {
    sum += counts[i] ?? 0;
    return `${name}_bucket{${labels},le="${bound}"} ${sum}`;
  });
  return [...lines, `${name}_sum{${labels}} ${sumMs / 1000}`, `${name}_count{${labels}} ${sum}`];
}

function labelsOf(series: Series): string {
  return `profile="${labelValue(series.profile)}",chain="${labelValue(series.chain)}"`;
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (it) => `_${it.toLowerCase()}`);
}

function labelsText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${labelValue(value)}"`)
    .join(",");
}

function labelValue(value: string): string {
  return value.replace(/[\\"\n]/g, (it) => (it === "\n" ? "\\n" : `\\${it}`));
}
