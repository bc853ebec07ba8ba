// Measures what history and the live feed add to a call: the functions that run for each call, with
// nobody watching and with ten readers. CPU time in this process; the clock moves 50 µs a call, as
// at 20,000 calls a second, and 5 ms, as at 200. Run with `node bin/svc.mjs --run bench/feed.ts`.
import { EventFeed } from "../src/observe/feed/event-feed.ts";
import { FeedHub, type HubEvent } from "../src/observe/feed/feed-hub.ts";
import { History } from "../src/observe/history/history.ts";
import type { Runtime } from "../src/runtime.ts";
import type { RoutedCall } from "../src/upstream/engine/router.ts";
import { NOTHING_SENT } from "../src/upstream/engine/stage.ts";
import { createTracker } from "../src/upstream/health/tracker.ts";
import { fakeCall, fakeProvider, fakeSet, SELECTION } from "../test/fakes/providers.ts";

const ROUNDS = 5;
const READERS = 10;
const OUTCOME = { kind: "error", raw: Buffer.alloc(0) } as const;
const CALL = fakeCall("eth_getBalance");
const PROVIDERS = [0, 1, 2].map((index) => fakeProvider(index));

let nowMs = 1_000_000;
let sent = 0;
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
  for (const { run } of due) run();
}

const tracker = createTracker(fakeSet(PROVIDERS), runtime, SELECTION);
const selection = { strategy: "load-balanced", transport: null, pin: null } as const;

/** One call: planned, and ended after one attempt. */
function call(feed: EventFeed | null, history: History | null, stepMs: number): void {
  const record = feed?.takes() === true;
  const plan = tracker.plan(CALL, record ? { ...selection, record } : selection);
  const [channel] = plan.candidates;
  if (channel === undefined) return;
  const attempt = { ...channel, startedAtMs: nowMs, latencyMs: 12, verdict: null, code: null };
  const route: RoutedCall = {
    request: {
      call: CALL,
      tracker,
      ...selection,
      caller: { key: "account 1", keyId: "key_1" },
      avoid: null,
      deadlineMs: 1_000,
      mayStream: false,
    },
    startedAtMs: nowMs - 12,
    plan,
    traces: [{ attempt, failure: null }],
    source: { kind: "provider", provider: channel.provider },
    overBudget: false,
    rechecked: null,
    cacheUse: null,
    cancel: () => NOTHING_SENT,
  };
  if (history !== null) {
    const chain = history.chain("team", "test");
    chain.attempted(attempt, CALL.method);
    chain.routed(route, OUTCOME, 12.1);
  }
  const series = { profile: "team", chain: "test" };
  feed?.ended({ route, outcome: OUTCOME, requestId: "req-1", series }, nowMs);
  move(stepMs);
}

/** Nanoseconds a call, the least of several rounds. */
function costOf(calls: number, run: () => void): number {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    for (let n = 0; n < calls; n++) run();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, ((user + system) * 1_000) / calls);
  }
  return least;
}

/** A feed with readers that take what is written to them. */
function watchedFeed(): EventFeed {
  const feed = new EventFeed({ runtime, worker: "1", workers: 1 });
  const hub = new FeedHub({ runtime, feed, exchange: null });
  const receive = (events: readonly HubEvent[]): void => {
    let text = "";
    for (const event of events) text += event.text;
    sent += Buffer.byteLength(text);
  };
  for (let n = 0; n < READERS; n++) hub.join({ receive, end() {} }, null);
  return feed;
}

for (const [name, stepMs, calls] of [
  ["20,000 calls a second", 0.05, 400_000],
  ["200 calls a second", 5, 40_000],
] as const) {
  timers = [];
  const bare = costOf(calls, () => call(null, null, stepMs));
  const history = new History(runtime.wallMs);
  const alone = new EventFeed({ runtime, worker: "1", workers: 1 });
  const unwatched = costOf(calls, () => call(alone, history, stepMs));
  const watched = watchedFeed();
  const read = costOf(calls, () => call(watched, history, stepMs));
  const figures = [bare, unwatched - bare, read - bare].map((ns) => Math.round(ns));
  console.log(
    `${name}: plan and records alone ${figures[0]} ns; nobody watching +${figures[1]} ns; ` +
      `${READERS} readers +${figures[2]} ns`,
  );
}
console.log(`${sent} bytes written to readers`);
