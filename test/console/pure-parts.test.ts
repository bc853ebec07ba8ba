// The pure parts of the console: addresses, orders of tables, words for states, clocks, numbers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readClock, SAME_CLOCK } from "../../console/app/clock.ts";
import {
  matchPath,
  pathTo,
  placeAfterSignIn,
  placeOf,
  queryText,
  signInPath,
} from "../../console/app/router.ts";
import {
  filterRows,
  nextOrder,
  pageOf,
  parseOrder,
  sortRows,
} from "../../console/components/table-rows.ts";
import {
  ago,
  axisTexts,
  count,
  duration,
  milliseconds,
  share,
  success,
  usd,
} from "../../console/format/text.ts";
import {
  headline,
  type JudgedChain,
  judgeProfile,
  judgeTransport,
  type ProfileMetrics,
  type TransportMetrics,
} from "../../console/health/judge.ts";

const TRANSPORT: TransportMetrics = {
  transport: "http",
  circuit_breaker_state: "closed",
  circuit_opened: {},
  half_open_in_ms: null,
  rate_limited_for_ms: 0,
  rate_limited_methods: [],
  cordoned: null,
  block_height: 100,
  lag_blocks: 0,
  calls: 10,
  outcomes: { delivered: 10, failed: 0, rate_limited: 0, neutral: 0, cancelled: 0 },
  learned: {
    unsupported_methods: [],
    max_block_range: null,
    pruned: false,
    pruned_resources: [],
    requests_per_second: null,
  },
  share: 1,
  success_rate: 1,
  latency_ms: { average: 10, p50: 10, p95: 20, p99: 30, probe: 9 },
  methods: [],
};
const PROFILE: ProfileMetrics = {
  profile: "public",
  head_block: 100,
  max_lag_blocks: 2,
  calls: 10,
  subscriptions: {
    open: 0,
    subscribers: 0,
    failovers: {},
    blocks_filled: 0,
    ended: 0,
    log_checks: {},
    notifications: {},
    streams: [],
  },
  providers: [{ id: "a", name: "a", region: null, transports: [TRANSPORT] }],
};

test("a path of any text comes back from its address", () => {
  for (const name of ["base", "a/b", "ä ü", "<b>%</b>", "a?b#c"]) {
    const path = pathTo("chain", "public", name);
    assert.deepEqual(matchPath("/chain/:profile/:chain", path), { profile: "public", chain: name });
  }
  assert.equal(matchPath("/chain/:profile/:chain", "/chain/public"), null);
  assert.equal(matchPath("/chain/:profile/:chain", "/chain//x"), null);
  assert.equal(matchPath("/chain/:profile/:chain", "/chain/public/%E0%A4%A"), null);
});

test("signing in leads back to the place that it was asked at, and nowhere else", () => {
  const place = { path: "/chain/a/b", query: { "keys.find": "a b&c", sort: "-x" } };
  const { query } = placeOf(
    "/dashboard/sign-in",
    signInPath(place).split("sign-in")[1] ?? "",
    "/d",
  );
  assert.equal(placeAfterSignIn(query["next"] ?? ""), "/chain/a/b?keys.find=a+b%26c&sort=-x");
  assert.equal(signInPath({ path: "/", query: {} }), "/sign-in");
  for (const elsewhere of ["", "//evil.example", "https://evil.example", "/\\evil", "/a/../../x"])
    assert.equal(placeAfterSignIn(elsewhere), null, elsewhere);
  assert.equal(placeAfterSignIn("/sign-in?next=/a"), null);
  assert.equal(placeAfterSignIn(`/${"a".repeat(3_000)}`), null);
});

test("an address below any path of a proxy is a place", () => {
  const root = "/svc/dashboard";
  assert.deepEqual(placeOf("/svc/dashboard", "", root), { path: "/", query: {} });
  const place = placeOf("/svc/dashboard/requests/", "?chain=base&slow=1", root);
  assert.deepEqual(place, { path: "/requests", query: { chain: "base", slow: "1" } });
  assert.equal(queryText({ chain: "a b", empty: "", gone: null }), "?chain=a+b");
});

test("tables sort numbers and names, with what is unknown last in both directions", () => {
  const rows = [{ n: 2 }, { n: null }, { n: 10 }];
  const numbers = (falling: boolean) => sortRows(rows, ({ n }) => n, falling).map(({ n }) => n);
  assert.deepEqual(numbers(false), [2, 10, null]);
  assert.deepEqual(numbers(true), [10, 2, null]);
  const names = sortRows(["node-10", "node-9"], (name) => name, false);
  assert.deepEqual(names, ["node-9", "node-10"]);
  assert.deepEqual(parseOrder("-calls"), { column: "calls", falling: true });
  assert.equal(nextOrder({ column: "calls", falling: true }, "calls", true), "calls");
  assert.equal(nextOrder({ column: "name", falling: false }, "calls", true), "-calls");
});

test("ten thousand rows are filtered by words and cut into pages", () => {
  const rows = Array.from({ length: 10_000 }, (_, at) => `key ${at} of ${at % 2 ? "a" : "b"}`);
  const found = filterRows(rows, (row) => row, " B  key ");
  assert.equal(found.length, 5_000);
  assert.deepEqual(pageOf(found, 49, 100), { rows: found.slice(4_900), page: 49, pages: 50 });
  assert.equal(pageOf(found, 999, 100).page, 49);
  assert.deepEqual(pageOf([], Number.NaN, 100), { rows: [], page: 0, pages: 1 });
});

test("a transport is judged by circuit, cordon, limits and silence", () => {
  assert.deepEqual(judgeTransport(TRANSPORT, 2), { tone: "good", word: "Closed", notes: [] });
  const open = { ...TRANSPORT, circuit_breaker_state: "open", half_open_in_ms: 4_200 } as const;
  assert.deepEqual(judgeTransport(open, 2), { tone: "bad", word: "Open", notes: ["trial in 5 s"] });
  const cordoned = judgeTransport({ ...TRANSPORT, cordoned: "auth" }, 2);
  assert.deepEqual(cordoned.notes, ["cordoned: credentials refused"]);
  const latency = { average: null, p50: null, p95: null, p99: null, probe: null };
  const silent = judgeTransport({ ...TRANSPORT, latency_ms: latency }, 2);
  assert.deepEqual([silent.tone, silent.notes], ["idle", ["no answer yet"]]);
  const never = {
    ...TRANSPORT,
    latency_ms: latency,
    circuit_breaker_state: "never_answered",
  } as const;
  assert.deepEqual(judgeTransport(never, 2), { tone: "idle", word: "Never answered", notes: [] });
  const recovered = judgeTransport({ ...TRANSPORT, circuit_breaker_state: "recovered" }, 2);
  assert.deepEqual(recovered, { tone: "good", word: "Recovered", notes: [] });
  const limited = judgeTransport({ ...TRANSPORT, rate_limited_for_ms: 1_000 }, 2);
  assert.equal(limited.tone, "warn");
  const behind = judgeTransport({ ...TRANSPORT, lag_blocks: 3 }, 2);
  assert.deepEqual([behind.tone, behind.notes], ["warn", ["3 blocks behind"]]);
  assert.equal(judgeTransport({ ...TRANSPORT, lag_blocks: 2 }, 2).tone, "good");
});

test("one sentence says how the service is", () => {
  const ready = { ready: true, traffic: true, reasons: [], chains: [] };
  const good = { chain: "a", verdict: judgeProfile(PROFILE) };
  const dead = { chain: "b", verdict: judgeProfile({ ...PROFILE, providers: [] }) };
  const words = (...judged: readonly JudgedChain[]) => headline(ready, judged).words;
  assert.equal(words(good), "The chain is served normally");
  assert.equal(words(dead), "The chain has no usable provider");
  assert.equal(words(good, dead), "1 of 2 chains has no usable provider");
  const other = { ...dead, chain: "a" };
  assert.equal(words(good, other), "The chain is served, not in every profile");
  const served = { ...good, chain: "b" };
  assert.equal(
    words(good, other, served),
    "All 2 chains are served, 1 of them not in every profile",
  );
  const [provider] = PROFILE.providers;
  assert.ok(provider !== undefined);
  const transports = [{ ...TRANSPORT, lag_blocks: 9 }];
  const lagging = judgeProfile({ ...PROFILE, providers: [{ ...provider, transports }] });
  assert.equal(lagging.words, "1 provider has problems");
  const troubled = { chain: "b", verdict: lagging };
  assert.equal(words(good, troubled), "All 2 chains are served, 1 of them with problems");
  assert.equal(headline(null, []).tone, "idle");
  const draining = headline({ ready: false, traffic: false, reasons: ["draining"], chains: [] }, [
    good,
  ]);
  assert.equal(draining.words, "Not ready: draining");
});

test("an axis shows decimals where one of its values has them, and 0 without", () => {
  const fixed = (value: number): string => value.toFixed(2);
  assert.deepEqual(axisTexts([0, 5, 10], milliseconds), ["0", "5", "10"]);
  assert.deepEqual(axisTexts([0, 0.5, 1], share), ["0 %", "50 %", "100 %"]);
  assert.deepEqual(axisTexts([0, 0.5, 1, 1.5], fixed), ["0", "0.50", "1.00", "1.50"]);
  assert.deepEqual(axisTexts([0, 10, 20], usd), ["$0", "$10", "$20"]);
  assert.deepEqual(axisTexts([100, 1_000], count), ["100", "1,000"]);
});

test("a clock that is off is noticed once, and forgiven when it is right again", () => {
  const serviceMs = Date.parse("2026-11-23T12:00:00Z");
  const date = new Date(serviceMs).toUTCString();
  assert.equal(readClock(SAME_CLOCK, date, serviceMs + 1_500), SAME_CLOCK);
  const off = readClock(SAME_CLOCK, date, serviceMs + 600_000);
  assert.deepEqual(off, { offsetMs: -600_000, isOff: true });
  assert.equal(readClock(off, date, serviceMs + 601_000), off);
  assert.equal(readClock(off, date, serviceMs), SAME_CLOCK);
  assert.equal(readClock(off, "not a date", serviceMs), off);
  assert.equal(readClock(off, null, serviceMs), off);
});

test("unknown is a dash, and only what never failed is 100 %", () => {
  assert.equal(count(null), "–");
  assert.equal(success(0.9999), "99.9 %");
  assert.equal(success(1), "100 %");
  assert.equal(share(0.0001), "<0.1 %");
  assert.equal(milliseconds(9.94), "9.9");
  assert.equal(duration(3_600_000 * 49), "2 days");
  assert.equal(ago(1_000, 500_000), "8 min ago");
  assert.equal(ago(20_000, 10_000), "in 10 s");
});
