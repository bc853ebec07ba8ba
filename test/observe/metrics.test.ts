// The table of metrics: every row obeys the rules of names, docs/metrics.md says what the table
// says, and promtool accepts the page of an instance that has every metric.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ANSWERED, callEndOf } from "../../src/core/call-end.ts";
import { METHODS } from "../../src/core/rpc/method.ts";
import { ChainCounts } from "../../src/observe/history/history-counts.ts";
import {
  collectFamilies,
  familiesText,
  type MetricFamily,
  mergeFamilies,
} from "../../src/observe/metric-families.ts";
import { METRICS, type Metric } from "../../src/observe/metrics.ts";
import { metricsReference } from "../../src/observe/metrics-reference.ts";
import type { MetricFacts } from "../../src/observe/readings.ts";
import { Series } from "../../src/observe/series.ts";
import { ViewReasks } from "../../src/upstream/engine/layers/consistency.ts";
import { SplitCounts } from "../../src/upstream/engine/ranges/range-run.ts";
import { Tracker } from "../../src/upstream/health/tracker.ts";
import { fakeProvider, fakeSet, SELECTION } from "../fakes/providers.ts";
import { simulatedWorld } from "../fakes/runtime.ts";

test("names and labels are those of Prometheus, and counters are called _total", () => {
  const names = METRICS.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length, "no name stands twice");
  for (const { name, type, labels, help } of METRICS) {
    assert.match(name, /^(svc|process)(_[a-z]+)+$/);
    assert.equal(name.endsWith("_total"), type === "counter", name);
    assert.equal(new Set(labels).size, labels.length, name);
    for (const label of labels) assert.match(label, /^[a-z]+(_[a-z]+)*$/, name);
    assert.ok(!labels.includes("le"), name);
    assert.match(help, /^[^\n\\]+\.$/, name);
  }
});

test("docs/metrics.md is what the table says", () => {
  const committed = readFileSync(new URL("../../docs/metrics.md", import.meta.url), "utf8");
  assert.equal(
    committed.replaceAll("\r\n", "\n"),
    metricsReference(),
    "docs/metrics.md is out of date: npm run docs",
  );
});

const SERIES = Object.assign(new Series(new ChainCounts("team", "ethereum")), {
  unanswered: 6,
  sources: {
    ...{ provider: 3, cache: 0, merged: 0, shared: 2, heads: 0, accepted: 0 },
    ...{ local: 0, refused: 0, none: 4 },
  },
  panics: { sent: 1, refused: 2 },
  hedges: { won: 4, lost: 3, over_budget: 2 },
  rechecked: { found: 5, missing: 6 },
  cacheUses: { hit: 5, miss: 4, bypass: 1 },
});
for (let n = 0; n < 7; n++) SERIES.countHidden({ id: "real", alias: "p1", guarded: n > 4 });
for (let n = 0; n < 3; n++) SERIES.count(METHODS[0] ?? null, ANSWERED);
SERIES.count(METHODS[0] ?? null, callEndOf({ kind: "error", category: "revert" }));
const UNPLACED = new Series(new ChainCounts("", ""));
for (let n = 0; n < 2; n++)
  UNPLACED.count(null, callEndOf({ kind: "fault", fault: { code: "unknown_chain" } }));

const TIER = {
  state: "open",
  lookUps: { hit: 9, miss: 8, unusable: 7, timeout: 6, error: 5, skipped: 4 },
  stores: { stored: 3, dropped: 2, timeout: 1, error: 0 },
} as const;

/** An instance with payments and pay-per-call. */
function factsWith(over: Partial<MetricFacts>): MetricFacts {
  return {
    node: null,
    cluster: () => ({
      connected: 3,
      responding: 2,
      total: 3,
      regions: ["eu"],
      status: "degraded",
      silentMs: 1_500,
      problems: [],
    }),
    registry: { profiles: [] },
    incidents: {
      stateOf: () => null,
      opened: { failing: 2, limited: 1, lagging: 0, slow: 0, stalled: 0 },
    },
    observer: {
      allSeries: () => [SERIES],
      unplaced: UNPLACED,
      returnsTwice: 0,
      handshakes: { full: 0, resumed: 0 },
      pipelinedAgain: 0,
      splits: new SplitCounts(),
      reasks: new ViewReasks(),
      batches: { sent: 3, calls: 40, refused: 1, alone: 8 },
      sockets: { open: 1, closes: new Map([["1000", 4]]) },
    },
    subscriptions: { reports: () => [], counts: () => [], checks: () => [] },
    filters: { counts: () => [], unreadBytes: 7 },
    socketOf: () => assert.fail("no provider has a socket here"),
    legacyForms: { counts: () => [["round-robin", 5]] },
    methods: () => ({ labels: ['odd"name\\of\na method'] }),
    payments: () => ({
      accepted: 1,
      submitted: 2,
      held: 3,
      wallets: [{ chainId: 8453, low: true, empty: false }],
    }),
    metered: () => ({ full: 9, cached: 2 }),
    sessions: () => ({ channels: 4, held: 5, chainDown: false, walletLow: true }),
    cache: () => ({
      bytes: 100,
      maxBytes: 200,
      entries: 3,
      evicted: 2,
      abandoned: 1,
      secondTier: TIER,
    }),
    uptimeMs: 1_500,
    residentBytes: 10,
    cpuSeconds: 0.25,
    inFlightBytes: 20,
    version: "1.2.3",
    realIds: false,
    ...over,
  };
}

function textOf(facts: MetricFacts): string {
  return familiesText(METRICS, collectFamilies(METRICS, facts), facts.node);
}

function declaredIn(text: string): readonly string[] {
  return Array.from(text.matchAll(/^# TYPE (\S+)/gm), ([, name = ""]) => name);
}

test("every metric is declared once and in order; those of payments only where there are any", () => {
  const isOfPayments = ({ name }: Metric): boolean =>
    /^svc_(purchases|settlement_wallet|session)/.test(name);
  assert.deepEqual(
    declaredIn(textOf(factsWith({}))),
    METRICS.map(({ name }) => name),
  );
  const without = factsWith({ payments: () => null, sessions: () => null });
  assert.deepEqual(
    declaredIn(textOf(without)),
    METRICS.filter((metric) => !isOfPayments(metric)).map(({ name }) => name),
  );
});

test("values are written with their labels, escaped, and histograms end with their sum", () => {
  const text = textOf(factsWith({}));
  for (const line of [
    'svc_requests_total{profile="team",chain="ethereum",method="odd\\"name\\\\of\\na method",' +
      'outcome="answered"} 3',
    'svc_calls_total{profile="team",chain="ethereum",outcome="answered",reason="",cause=""} 3',
    'svc_calls_total{profile="team",chain="ethereum",outcome="caller_error",reason="revert",' +
      'cause="revert"} 1',
    'svc_call_notifications_total{profile="team",chain="ethereum"} 6',
    'svc_hidden_failures_total{profile="team",chain="ethereum",provider="p1"} 5',
    'svc_hidden_failures_total{profile="team",chain="ethereum",provider=""} 2',
    'svc_panic_calls_total{profile="team",chain="ethereum",result="refused"} 2',
    'svc_upstream_batches_total{result="refused"} 1',
    'svc_upstream_batched_calls_total{result="sent"} 40',
    'svc_upstream_batched_calls_total{result="alone"} 8',
    'svc_hedges_total{profile="team",chain="ethereum",result="won"} 4',
    'svc_null_rechecks_total{profile="team",chain="ethereum",result="found"} 5',
    'svc_hedges_total{profile="team",chain="ethereum",result="over_budget"} 2',
    'svc_request_duration_seconds_bucket{profile="team",chain="ethereum",le="+Inf"} 0',
    'svc_answers_total{profile="team",chain="ethereum",source="provider"} 3',
    'svc_answers_total{profile="team",chain="ethereum",source="shared"} 2',
    'svc_calls_total{profile="",chain="",outcome="refused",reason="target",' +
      'cause="unknown_chain"} 2',
    "svc_sockets 1",
    'svc_purchases{state="held"} 3',
    'svc_settlement_wallet_low{chain_id="8453"} 1',
    'svc_settlement_wallet_empty{chain_id="8453"} 0',
    "svc_session_chain_down 0",
    "svc_session_wallet_low 1",
    "svc_uptime_seconds 1.5",
    'svc_build_info{version="1.2.3"} 1',
  ])
    assert.ok(text.includes(`\n${line}\n`), line);
  assert.doesNotMatch(text, /source="none"/, "what was not answered is no answer");
});

const WITHOUT_PROMTOOL =
  spawnSync("promtool", ["--version"]).error === undefined
    ? false
    : "promtool is not installed (Debian: prometheus)";

test("promtool accepts every metric of the table", { skip: WITHOUT_PROMTOOL }, () => {
  const { status, stdout, stderr } = spawnSync("promtool", ["check", "metrics"], {
    input: textOf(factsWith({})),
    encoding: "utf8",
  });
  assert.deepEqual([status, stdout, stderr], [0, "", ""]);
});

/** The metrics of the view as one worker of two operators reads them. */
function viewFamilies(heights: readonly number[], reasks: ViewReasks) {
  const runtime = simulatedWorld(1);
  const providers = [0, 1].map((index) => fakeProvider(index, { wsUrl: null }));
  const tracker = new Tracker(fakeSet(providers), runtime, SELECTION);
  for (const [index, height] of heights.entries()) {
    const result = { kind: "ok", chainId: 1, height } as const;
    const [provider = assert.fail()] = providers.slice(index);
    tracker.recordProbe({ provider, transport: "http", latencyMs: 1, result });
  }
  const profile = { slug: "team", owner: null, managed: false, chains: new Map() };
  const registry = { profiles: [{ profile, trackers: new Map([["test", tracker]]) }] };
  const facts = factsWith({ registry });
  const observer = { ...facts.observer, reasks };
  const ofView = METRICS.filter(({ name }) => /^svc_(tip|view)_/.test(name));
  return { metrics: ofView, families: collectFamilies(ofView, { ...facts, observer }) };
}

test("the tip of a service is its workers' highest, and in force where it is so at all of them", () => {
  const reasks = new ViewReasks();
  Object.assign(reasks, { missing: 2, own: 1 });
  const both = viewFamilies([100, 100], reasks);
  const alone = viewFamilies([105], reasks);
  const none = viewFamilies([], new ViewReasks());
  const valuesOf = (families: readonly MetricFamily[]): unknown =>
    families.map(({ samples }) => samples?.map(([, value]) => value));
  assert.deepEqual(valuesOf(both.families), [[100], [1], [0], [2, 0, 1]]);
  assert.deepEqual(valuesOf(alone.families), [[105], [1], [1], [2, 0, 1]]);
  assert.deepEqual(valuesOf(none.families), [[], [0], [0], [0, 0, 0]], "no tip is not block 0");
  const merged = mergeFamilies(both.metrics, [both.families, alone.families]);
  assert.deepEqual(valuesOf(merged), [[105], [1], [1], [4, 0, 2]]);
  const withNone = mergeFamilies(both.metrics, [both.families, none.families]);
  assert.deepEqual(valuesOf(withNone), [[100], [0], [0], [2, 0, 1]]);
});
