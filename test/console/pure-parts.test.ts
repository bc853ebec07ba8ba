// The pure parts of the console: addresses, orders of tables, words for states, clocks, numbers.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallEvent } from "../../console/api/use-feed.ts";
import { readClock, SAME_CLOCK } from "../../console/app/clock.ts";
import { type PaletteItem, requestIdIn, searchItems } from "../../console/app/palette-search.ts";
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
  breakable,
  clock,
  count,
  duration,
  even,
  milliseconds,
  share,
  success,
  timeOfDay,
  usd,
  visible,
} from "../../console/format/text.ts";
import { beginningAt } from "../../console/health/ranges.ts";
import {
  adviceOn,
  type ChainVerdict,
  headline,
  type Incident,
  openIncidents,
  type ProfileMetrics,
  type ProviderMetrics,
  stateCounts,
  stateWord,
  summarise,
  type TransportMetrics,
  transportNotes,
  worstPlaces,
} from "../../console/health/states.ts";
import {
  filterOf,
  filterText,
  parseFilter,
  suggestionsOf,
} from "../../console/pages/requests/suggestions.ts";

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
const PROVIDER: ProviderMetrics = {
  id: "a",
  name: "a",
  region: null,
  capabilities: [],
  state: "good",
  state_since: null,
  cause: null,
  answered_share: null,
  transports: [TRANSPORT],
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
  providers: [PROVIDER],
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

const INCIDENT: Incident = {
  id: "inc_1",
  profile: "public",
  chain: "a",
  provider: "drpc",
  cause: "failing",
  state: "failing",
  words: "70 % HTTP 502",
  started_at: "2026-11-23T14:31:00.000Z",
  ended_at: null,
  duration_s: 90,
  good_since: null,
  attempts: 17,
  failed: 12,
  failed_calls: 4,
  users: 3,
};

test("what holds calls of a transport back is said beside the state of its provider", () => {
  assert.deepEqual(transportNotes(TRANSPORT), []);
  const open = { ...TRANSPORT, circuit_breaker_state: "open", half_open_in_ms: 4_200 } as const;
  assert.deepEqual(transportNotes(open), ["circuit open, trial in 5 s"]);
  const cordoned = { ...TRANSPORT, cordoned: "auth", rate_limited_for_ms: 1_000 };
  assert.deepEqual(transportNotes(cordoned), [
    "cordoned: credentials refused",
    "rate-limited for 1 s",
  ]);
});

test("a moment by the clock has its day where that is not today", () => {
  const noon = new Date(2026, 10, 29, 12, 5).getTime();
  assert.equal(clock(noon, noon + 60_000), "12:05");
  assert.equal(clock(noon, noon - 86_400_000), "29 Nov 12:05");
});

test("a state has one word and colour, and a provider that was killed is not usable", () => {
  const tones = (["good", "slow", "failing", "down", "maintenance"] as const).map(
    (state) => stateWord({ state }).tone,
  );
  assert.deepEqual(tones, ["good", "warn", "bad", "bad", "idle"]);
  const states = (["failing", "good", null, "good", "never_answered"] as const).map((state) => {
    return { state };
  });
  assert.equal(stateCounts(states), "2 good, 1 never answered, 1 failing, 1 not judged yet");
  assert.equal(stateWord({ state: "recovered" }).word, "Recovered, waiting for traffic");
  const of = (...states: readonly ProviderMetrics["state"][]) =>
    summarise({ ...PROFILE, providers: states.map((state) => ({ ...PROVIDER, state })) });
  const killed = of("good", "good", "down");
  assert.deepEqual([killed.usable, killed.providers], [2, 3]);
  assert.deepEqual([killed.tone, killed.words], ["warn", "1 provider has problems"]);
  assert.equal(of("down", "maintenance").words, "No usable provider");
  assert.deepEqual(
    [of("good", "maintenance").tone, of("good", "maintenance").words],
    ["good", "Normal"],
  );
  const out = of("maintenance", "maintenance");
  assert.deepEqual([out.tone, out.words], ["bad", "All providers are in maintenance"]);
  const places = (["good", "maintenance", "down", "slow"] as const).map((state) => ({
    ...{ profile: "p", chain: "a" },
    provider: { ...PROVIDER, state },
  }));
  assert.deepEqual(
    worstPlaces(places).map(({ provider }) => provider.state),
    ["down", "slow", "maintenance", "good"],
  );
  assert.deepEqual([of("failing").words, of("failing").served], ["All providers fail", true]);
  assert.deepEqual([of("good", "recovered").tone, of(null).usable], ["good", 1]);
});

test("one sentence says how the service is, by the incidents that are open", () => {
  const ready = { ready: true, traffic: true, reasons: [], chains: [] };
  const good = { chain: "a", verdict: summarise(PROFILE) };
  const dead = { chain: "b", verdict: summarise({ ...PROFILE, providers: [] }) };
  const said = (chains: readonly ChainVerdict[], ...open: readonly Incident[]) =>
    headline(ready, chains, open);
  assert.equal(said([good]).words, "The chain is served normally");
  assert.equal(said([dead]).words, "The chain has no usable provider");
  assert.equal(said([good, dead]).words, "1 of 2 chains has no usable provider");
  const one = said([good], INCIDENT);
  assert.deepEqual([one.tone, one.words], ["bad", "The chain is served; drpc on a: 70 % HTTP 502"]);
  const slow = { ...INCIDENT, id: "inc_2", cause: "slow", state: "slow", words: "" } as const;
  assert.equal(said([good], slow).tone, "warn");
  const two = said([good, { ...good, chain: "b" }], INCIDENT, slow);
  assert.equal(two.words, "All 2 chains are served; drpc on a: 70 % HTTP 502, and 1 more incident");
  const stalled = { ...slow, provider: null, state: null, cause: "stalled", words: "no new block" };
  assert.equal(
    said([good], { ...stalled, cause: "stalled" }).words,
    "The chain is served; a: no new block",
  );
  const over = { ...INCIDENT, ended_at: "2026-11-23T14:40:00.000Z" };
  assert.deepEqual(
    openIncidents([slow, over, INCIDENT]).map(({ id }) => id),
    ["inc_2", "inc_1"].reverse(),
  );
  const elsewhere = { ...INCIDENT, id: "inc_3", profile: "other", attempts: 1_000_000, failed: 5 };
  const [both, ...none] = openIncidents([INCIDENT, elsewhere]);
  assert.deepEqual(
    [both?.id, both?.failed, none],
    ["inc_3", INCIDENT.failed + 5, []],
    "what a provider does in two profiles is one incident",
  );
  assert.match(adviceOn({ cause: "limited", state: "limited" }), /Top up/);
  assert.equal(headline(null, [], []).tone, "idle");
  const draining = { ready: false, traffic: false, reasons: ["draining"], chains: [] };
  assert.equal(headline(draining, [good], []).words, "Not ready: draining");
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

test("a name shows what controls, turns or hides; it breaks behind an underscore", () => {
  assert.equal(visible("a\u202eb\u0007\u200b"), "a⟨U+202E⟩b⟨U+0007⟩⟨U+200B⟩");
  assert.equal(visible("naïve שלום 👩\u200d🔧"), "naïve שלום 👩\u200d🔧");
  assert.deepEqual(breakable("svc_ak__x"), ["svc_", "ak_", "_", "x"]);
  assert.deepEqual(breakable("plain-name"), ["plain-name"]);
});

test("a column has tenths in every row, or in none", () => {
  const shown = (values: readonly (number | null)[]): readonly string[] =>
    values.map(even(milliseconds, values));
  assert.deepEqual(shown([3, 1250, null, 0]), ["3.0", "1,250.0", "–", "0.0"]);
  assert.deepEqual(shown([30, 1250.4]), ["30", "1,250"]);
  assert.equal(even(count, [1]), count);
});

const PLACES: readonly PaletteItem[] = [
  { kind: "Page", title: "Tester", note: "", does: "/tester" },
  { kind: "Page", title: "Streams", note: "", does: "/streams" },
  { kind: "Action", title: "Open the tester with Base", note: "base", does: "/tester?chain=base" },
  { kind: "Chain", title: "Base", note: "base, profile public", does: "/chain/public/base" },
  { kind: "Provider", title: "alchemy", note: "base, profile public", does: "/x" },
];

test("the palette lists what has every word, the best match first, and a bounded number", () => {
  const titles = (query: string): readonly string[] =>
    searchItems(PLACES, query).items.map(({ title }) => title);
  assert.deepEqual(
    titles(""),
    PLACES.map(({ title }) => title),
  );
  assert.deepEqual(titles("base"), ["Base", "Open the tester with Base", "alchemy"]);
  assert.deepEqual(titles("TEST"), ["Tester", "Open the tester with Base"]);
  assert.deepEqual(titles("base alch"), ["alchemy"]);
  assert.deepEqual(titles("provider"), ["alchemy"]);
  assert.deepEqual(titles("nothing like it"), []);
  const many = searchItems(
    Array.from({ length: 900 }, () => PLACES[3] as PaletteItem),
    "base",
  );
  assert.deepEqual([many.items.length, many.left], [50, 850]);
});

test("a pasted request id leads to its calls", () => {
  assert.equal(requestIdIn(" x-svc-request-id: REQ-0a1b-2 "), "req-0a1b-2");
  assert.equal(requestIdIn("req-0a1b-w1-2-13"), "req-0a1b-w1-2-13");
  assert.equal(requestIdIn("req-"), null);
  assert.equal(requestIdIn("req-1/../x"), null);
  assert.deepEqual(
    searchItems(PLACES, "req-12-a").items.map(({ does }) => does),
    ["/requests?id=req-12-a"],
  );
});

test("a typed filter is a name with a value, a value that is known, or a request id", () => {
  const keys = new Map([["key_1", "Shop"]]);
  const call = { chain: "base", profile: null, provider: null, method: "eth_call" };
  const providers = [{ chain: "ethereum", profile: "team", provider: "drpc" }];
  const known = suggestionsOf({ providers, keys, calls: [call as CallEvent] });
  const parsed = (text: string) =>
    Object.values(parseFilter(text, known) ?? {})
      .slice(0, 2)
      .join("=");
  assert.equal(parsed("chain: base"), "chain=base");
  assert.equal(parsed(" Method :eth_getLogs "), "method=eth_getLogs");
  assert.equal(parsed("DRPC"), "provider=drpc");
  assert.equal(parsed("failed"), "outcome=failed");
  assert.equal(parsed("outcome: Caller's own error"), "outcome=caller_error");
  assert.equal(parsed("shop"), "key=key_1");
  assert.equal(parsed("x-svc-request-id: req-0a-1"), "id=req-0a-1");
  assert.equal(parsed("min_ms: 500"), "min_ms=500");
  for (const text of ["", "chain:", "outcome: bad", "min_ms: soon", "colour: red", "nothing"])
    assert.equal(parseFilter(text, known), null, text);
  assert.equal(filterText(filterOf("key", "key_1", keys)), "Key: Shop");
  assert.equal(filterText(filterOf("outcome", "failed", keys)), "Outcome: Failed");
  assert.equal(filterText(filterOf("failovers", "true", keys)), "Failovers only");
});

test("the time of a call is told to the millisecond, and a range has a beginning", () => {
  assert.equal(timeOfDay(new Date(2026, 10, 23, 0, 5, 9, 7).getTime()), "00:05:09.007");
  assert.equal(timeOfDay(Number.NaN), "–");
  assert.equal(beginningAt({ range: "15m" }, 1_000_000), 100_000);
});
