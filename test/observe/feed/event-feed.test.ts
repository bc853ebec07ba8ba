// Which calls the live feed of a process takes: filters choose before calls are left out, calls
// that did not go well have room of their own, and what is kept is bounded in bytes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { fault } from "../../../src/core/faults/rpc-fault.ts";
import { ANY_CALL, type CallFilter, filterKey } from "../../../src/observe/feed/call-filter.ts";
import type { CallEvent } from "../../../src/observe/feed/decision.ts";
import { decisionId } from "../../../src/observe/feed/decision.ts";
import { EventFeed, type FeedBatch } from "../../../src/observe/feed/event-feed.ts";
import { MAX_DECISION_BYTES } from "../../../src/observe/feed/kept-decisions.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { createCallMaker } from "./feed-fixture.ts";

const REFUSED = { kind: "fault", fault: fault("unavailable", "nobody can be asked") } as const;

const byKey = (filters: readonly CallFilter[]): ReadonlyMap<string, CallFilter> =>
  new Map(filters.map((filter) => [filterKey(filter), filter]));

interface Watched {
  readonly feed: EventFeed;
  readonly batches: FeedBatch[];
  /** The calls that readers of a filter were shown. */
  shown(filter: CallFilter): readonly CallEvent[];
  count(filter: CallFilter): { readonly shown: number; readonly matched: number };
}

function watched(
  world: ReturnType<typeof simulatedWorld>,
  filters: readonly CallFilter[],
): Watched {
  const feed = new EventFeed({ runtime: world, worker: "1", workers: 1 });
  const batches: FeedBatch[] = [];
  feed.watch(byKey(filters), (batch) => void batches.push(batch));
  return {
    feed,
    batches,
    shown: (filter) =>
      batches
        .flatMap(({ events }) => events)
        .filter(({ filters: keys }) => keys?.includes(filterKey(filter)))
        .flatMap(({ event }) => (event.type === "call" ? [event.data] : [])),
    count(filter) {
      const counts = batches
        .flatMap((batch) => batch.counts)
        .filter(({ filter: key }) => key === filterKey(filter));
      const sum = (of: (count: (typeof counts)[number]) => number): number =>
        counts.reduce((total, count) => total + of(count), 0);
      return { shown: sum(({ shown }) => shown), matched: sum(({ matched }) => matched) };
    },
  };
}

test("a filter chooses before calls are left out: a rare method is seen whole beside 2,000 calls a second", () => {
  const world = simulatedWorld(1);
  const rare: CallFilter = { ...ANY_CALL, method: "eth_getLogs" };
  const slow: CallFilter = { ...ANY_CALL, minMs: 400 };
  const { feed, shown, count } = watched(world, [ANY_CALL, rare, slow]);
  const { call } = createCallMaker(world);
  const rareIds: string[] = [];
  const slowIds: string[] = [];
  for (let second = 0; second < 3; second++)
    for (let n = 0; n < 2_000; n++) {
      if (n === 1_900) rareIds.push(call(feed, { method: "eth_getLogs" }));
      else if (n === 1_950) slowIds.push(call(feed, { ms: 500 }));
      else call(feed);
      world.advance(0.5);
    }
  world.advance(1_000);
  assert.deepEqual(
    shown(rare).map(({ request_id }) => request_id),
    rareIds,
  );
  assert.ok(
    shown(rare).every(({ what_if }) => what_if),
    "with what decided them",
  );
  assert.deepEqual(
    shown(slow).map(({ request_id }) => request_id),
    slowIds,
  );
  assert.deepEqual(count(rare), { shown: 3, matched: 3 });
  const all = count(ANY_CALL);
  assert.equal(all.matched, 6_000);
  assert.equal(all.shown, shown(ANY_CALL).length);
  assert.ok(all.shown >= 3 * 160 && all.shown <= 4 * 200, `${all.shown} shown`);
});

test("calls that failed are shown, however many went well before them", () => {
  const world = simulatedWorld(2);
  const { feed, shown } = watched(world, [ANY_CALL]);
  const { call } = createCallMaker(world);
  for (let n = 0; n < 900; n++) {
    call(feed);
    world.advance(1);
  }
  const failed = Array.from({ length: 30 }, (_, n) =>
    call(feed, n % 2 === 0 ? { failedOver: true } : { outcome: REFUSED }),
  );
  world.advance(500);
  const ids = new Set(shown(ANY_CALL).map(({ request_id }) => request_id));
  assert.deepEqual(
    failed.filter((id) => !ids.has(id)),
    [],
  );
});

test("a second in which no call has ended counts as well: the plan after it is recorded", () => {
  const world = simulatedWorld(3);
  const feed = new EventFeed({ runtime: world, worker: "1", workers: 1 });
  const { call, requestOf } = createCallMaker(world);
  call(feed);
  const takes = (): boolean => feed.takes(requestOf({}), world.now());
  for (let n = 0; n < 10; n++) takes();
  assert.equal(takes(), false);
  world.advance(1_001);
  assert.equal(takes(), true);
});

test("nothing is passed on while nobody watches, and some calls are kept all the same", () => {
  const world = simulatedWorld(4);
  const { feed, batches } = watched(world, [ANY_CALL]);
  const { call } = createCallMaker(world);
  feed.watch(byKey([]), null);
  for (let n = 0; n < 100; n++) call(feed);
  world.advance(5_000);
  assert.deepEqual(batches, []);
  assert.equal(world.pendingTimers(), 0);
  assert.equal(feed.decisions().length, 8, "four fifths of ten a second");
});

test("calls that ended before somebody watched do not count as calls of the present", () => {
  const world = simulatedWorld(7);
  const { feed, batches } = watched(world, [ANY_CALL]);
  const { call } = createCallMaker(world);
  feed.watch(byKey([]), null);
  for (let n = 0; n < 1_000; n++) call(feed);
  feed.watch(byKey([ANY_CALL]), (batch) => void batches.push(batch));
  call(feed);
  world.advance(1_000);
  assert.deepEqual(
    batches.map(({ ended }) => ended),
    [1],
  );
});

test("of a message of a megabyte only its beginning is kept in memory", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const world = simulatedWorld(8);
  const { feed } = watched(world, [ANY_CALL]);
  const { call } = createCallMaker(world);
  const usedBytes = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const before = usedBytes();
  for (let n = 0; n < 40; n++)
    call(feed, { failedOver: true, message: JSON.parse(`"${n} is ${"out ".repeat(262_144)}"`) });
  assert.equal(feed.decisions().length, 40);
  const kept = usedBytes() - before;
  assert.ok(kept < 10_485_760, `${kept} bytes are kept`);
});

test("decisions are kept within their bytes; many good ones push out neither failed nor chosen ones", () => {
  const world = simulatedWorld(6);
  const mine: CallFilter = { ...ANY_CALL, key: "key_mine" };
  const { feed } = watched(world, [ANY_CALL, mine]);
  const { call } = createCallMaker(world);
  const kept = [call(feed, { failedOver: true }), call(feed, { keyId: "key_mine" })];
  const first = feed.decisions().at(-1);
  assert.ok(first !== undefined);
  const dropped = call(feed);
  for (let n = 0; n < 8_000; n++) {
    call(feed);
    world.advance(7);
  }
  const { bytes, maxBytes, decisions, goodSinceMs, notableSinceMs } = feed.use();
  assert.equal(maxBytes, MAX_DECISION_BYTES);
  assert.ok(bytes <= maxBytes && bytes > maxBytes / 4, `${bytes} bytes`);
  assert.equal(decisions, feed.decisions().length);
  const ids = new Set(feed.decisions().map(({ requestId }) => requestId));
  assert.ok(kept.every((id) => ids.has(id)));
  assert.ok(!ids.has(dropped));
  assert.ok(goodSinceMs !== null && goodSinceMs < world.wallMs());
  assert.equal(notableSinceMs, null);
  assert.equal(feed.decision(decisionId(first)), first);
  for (const decision of feed.decisions())
    assert.equal(feed.decision(decisionId(decision)), decision);
  assert.equal(feed.decision(`${decisionId(first)}zzz`), null);
  assert.equal(feed.decision("7-other-1"), null);
});
