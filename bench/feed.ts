// Measures what history and the live feed add to a call: the functions that run for each call, with
// nobody watching and with ten readers, of one filter and of ten. CPU time in this process, beside
// the same measurement without both, made twice (A/A). What is done away from the path of calls, a
// few times a second, is told apart. The clock moves 50 µs a call, as at 20,000 calls a second, and
// 5 ms, as at 200. Run with `node bin/svc.mjs --run bench/feed.ts`.
import { callEndOf } from "../src/core/call-end.ts";
import { ANY_CALL, type CallFilter } from "../src/observe/feed/call-filter.ts";
import { EventFeed } from "../src/observe/feed/event-feed.ts";
import { FeedHub } from "../src/observe/feed/feed-hub.ts";
import { HistoryCounts } from "../src/observe/history/history-counts.ts";
import type { Runtime } from "../src/runtime.ts";
import type { RouteRequest } from "../src/upstream/engine/call-context.ts";
import { Tracker } from "../src/upstream/health/tracker.ts";
import { fakeCall, fakeProvider, fakeSet, SELECTION } from "../test/fakes/providers.ts";
import { fakeRoutedCall } from "../test/fakes/routed-call.ts";

const ROUNDS = 7;
const READERS = 10;
const OUTCOME = { kind: "error", category: "revert", raw: Buffer.alloc(0) } as const;
const END = callEndOf(OUTCOME);
const CALL = fakeCall("eth_getBalance");
const PROVIDERS = [0, 1, 2].map((index) => fakeProvider(index));
const SERIES = { profile: "team", chain: "test" };

let nowMs = 1_000_000;
let sent = 0;
/** Spent in timers: away from the path of calls. */
let asideUs = 0;
/** How often that was measured, which itself takes its time. */
let asides = 0;
let timers: { readonly dueMs: number; readonly run: () => void }[] = [];
const runtime: Runtime = {
  now: () => nowMs,
  wallMs: () => nowMs,
  random: Math.random,
  after(ms, run) {
    const timer = { dueMs: nowMs + ms, run };
    timers.push(timer);
    return () => {
      timers = timers.filter((each) => each !== timer);
    };
  },
  atTurnEnd: (run) => run(),
  wireId: () => "1000000000000001",
};

function move(ms: number): void {
  nowMs += ms;
  if (!timers.some(({ dueMs }) => dueMs <= nowMs)) return;
  const due = timers.filter(({ dueMs }) => dueMs <= nowMs);
  timers = timers.filter(({ dueMs }) => dueMs > nowMs);
  const before = process.cpuUsage();
  for (const { run } of due) run();
  const { user, system } = process.cpuUsage(before);
  asideUs += user + system;
  asides++;
}

const tracker = new Tracker(fakeSet(PROVIDERS), runtime, SELECTION);
const selection = { strategy: "load-balanced", transport: null, pin: null } as const;
const REQUEST: RouteRequest = {
  call: CALL,
  tracker,
  ...selection,
  caller: { key: "account 1", keyId: "key_1" },
  avoid: null,
  deadlineMs: 1_000,
  mayStream: false,
};

/** What is measured; null = without it. */
interface Watched {
  readonly feed: EventFeed | null;
  readonly history: HistoryCounts | null;
}

/** One call: planned, and ended after one attempt. */
function call({ feed, history }: Watched, stepMs: number): void {
  const record = feed?.takes(REQUEST, nowMs) === true;
  const plan = tracker.plan(CALL, record ? { ...selection, record } : selection);
  const [channel] = plan.candidates;
  if (channel === undefined) return;
  const { provider, transport } = channel;
  const at = { startedAtMs: nowMs, latencyMs: 12 };
  const attempt = { provider, transport, ...at, verdict: null, code: null };
  const route = fakeRoutedCall({
    request: REQUEST,
    startedAtMs: nowMs - 12,
    plan,
    traces: [{ attempt, failure: null }],
    source: { kind: "provider", provider },
  });
  if (history !== null) {
    const chain = history.chain("team", "test");
    chain.attempted(attempt, CALL.method);
    chain.ended(END);
    chain.answered(route.traces, 12.1);
  }
  const answer = { outcome: OUTCOME, source: route.source };
  const about = { series: SERIES, route, answer, end: END, requestId: "req-1" };
  feed?.ended({ ...about, isNotification: false, ms: null, asked: null }, nowMs);
  move(stepMs);
}

/** What it takes to read the time that was spent. */
const CLOCK_US = clockUs();

function clockUs(): number {
  const times = 20_000;
  const before = process.cpuUsage();
  for (let n = 0; n < times; n++) process.cpuUsage(before);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / times;
}

/** Nanoseconds a call, and how many of these are spent away from its path. */
interface Cost {
  readonly ns: number;
  readonly asideNs: number;
}

/** The least of several rounds. */
function costOf(watched: Watched, { stepMs, calls }: Load): Cost {
  let least: Cost = { ns: Number.POSITIVE_INFINITY, asideNs: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    asideUs = 0;
    asides = 0;
    const before = process.cpuUsage();
    for (let n = 0; n < calls; n++) call(watched, stepMs);
    const { user, system } = process.cpuUsage(before);
    const ns = ((user + system - asides * 2 * CLOCK_US) * 1_000) / calls;
    if (ns < least.ns) least = { ns, asideNs: ((asideUs - asides * CLOCK_US) * 1_000) / calls };
  }
  timers = [];
  return least;
}

interface Load {
  readonly name: string;
  readonly stepMs: number;
  readonly calls: number;
}

/** A feed with readers that take what is written to them. */
function watchedFeed(filterOf: (reader: number) => CallFilter): EventFeed {
  const feed = new EventFeed({ runtime, worker: "1", workers: 1 });
  const hub = new FeedHub({ runtime, feed, exchange: null });
  const receive = (bytes: Buffer): void => {
    sent += bytes.length;
  };
  for (let reader = 0; reader < READERS; reader++)
    hub.join({ receive, end() {} }, { filter: filterOf(reader), lastId: null });
  return feed;
}

const LOADS: readonly Load[] = [
  { name: "20,000 calls a second", stepMs: 0.05, calls: 300_000 },
  { name: "200 calls a second", stepMs: 5, calls: 30_000 },
];
const WITHOUT: Watched = { feed: null, history: null };

for (const load of LOADS) {
  const history = new HistoryCounts();
  const bare = costOf(WITHOUT, load);
  const added = (name: string, watched: Watched): void => {
    const { ns, asideNs } = costOf(watched, load);
    const total = ns - bare.ns;
    const parts = `${(total - asideNs).toFixed(0)} on the path, ${asideNs.toFixed(0)} aside`;
    console.log(`  ${name}: +${total.toFixed(0)} ns (${parts})`);
  };
  console.log(`${load.name}: plan and records alone ${bare.ns.toFixed(0)} ns`);
  added("the same again (A/A)", WITHOUT);
  added("history alone", { feed: null, history });
  const alone = new EventFeed({ runtime, worker: "1", workers: 1 });
  added("nobody watching", { feed: alone, history });
  added(`${READERS} readers`, { feed: watchedFeed(() => ANY_CALL), history });
  const methods = ["eth_call", "eth_getBalance"];
  const own = (reader: number): CallFilter => ({
    ...ANY_CALL,
    method: methods[reader % 2],
    minMs: reader,
  });
  added(`${READERS} readers with filters of their own`, { feed: watchedFeed(own), history });
}
console.log(`${sent} bytes written to readers`);
