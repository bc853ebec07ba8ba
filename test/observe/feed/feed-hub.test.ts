// Those who watch the live feed: what they receive is written once for all of one filter, they go
// on where they were, and workers tell each other what is watched.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ANY_CALL, type CallFilter } from "../../../src/observe/feed/call-filter.ts";
import { EventFeed, MAX_FILTERS } from "../../../src/observe/feed/event-feed.ts";
import { FeedExchange } from "../../../src/observe/feed/feed-exchange.ts";
import {
  FeedHub,
  type HubStart,
  MAX_AUDIENCES,
  MAX_READERS,
} from "../../../src/observe/feed/feed-hub.ts";
import { type TestBus, testBus } from "../../cluster/bus-fixture.ts";
import { type SimulatedWorld, simulatedWorld } from "../../fakes/runtime.ts";
import { createCallMaker } from "./feed-fixture.ts";

const FAILOVERS: CallFilter = { ...ANY_CALL, failovers: true };

interface Read {
  readonly type: string;
  readonly id: string | null;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into events of any shape
  readonly data: any;
}

function eventsIn(text: string): readonly Read[] {
  return text
    .split("\n\n")
    .filter((block) => block !== "")
    .map((block) => {
      const field = (name: string): string | null =>
        new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1] ?? null;
      return { type: field("event") ?? "", id: field("id"), data: JSON.parse(field("data") ?? "") };
    });
}

interface TestReader {
  readonly start: HubStart;
  readonly written: readonly Buffer[];
  /** With what it was given when it came. */
  events(): readonly Read[];
  ids(): readonly string[];
  /** Null = it goes on. */
  ended(): string | null;
  leave(): void;
}

function join(hub: FeedHub, filter: CallFilter, lastId: string | null = null): TestReader {
  const written: Buffer[] = [];
  let told = 0;
  const receive = (bytes: Buffer, events: number): void => {
    written.push(bytes);
    told += events;
  };
  let ended: string | null = null;
  const end = (reason: string): void => {
    ended = reason;
  };
  const reading = hub.join({ receive, end }, { filter, lastId });
  assert.ok(reading !== null);
  const { start } = reading;
  const first = start.kind === "continued" ? start.bytes.toString() : "";
  const events = (): readonly Read[] => {
    const read = eventsIn(first + Buffer.concat(written).toString());
    assert.equal(read.length, told + (start.kind === "continued" ? start.events : 0));
    return read;
  };
  return {
    start,
    written,
    events,
    ids: () => events().flatMap(({ type, data }) => (type === "call" ? [data.request_id] : [])),
    ended: () => ended,
    leave: reading.leave,
  };
}

interface FeedWorker {
  readonly feed: EventFeed;
  readonly hub: FeedHub;
}

/** The feeds of several workers on one bus. */
function workersOn({ world, worker }: TestBus, ids: readonly string[]): readonly FeedWorker[] {
  return ids.map((id) => {
    const feed = new EventFeed({ runtime: world, worker: id, workers: ids.length });
    const exchange = new FeedExchange(worker(id).bus, world);
    return { feed, hub: new FeedHub({ runtime: world, feed, exchange }) };
  });
}

function alone(world: SimulatedWorld) {
  const feed = new EventFeed({ runtime: world, worker: "1", workers: 1 });
  const hub = new FeedHub({ runtime: world, feed, exchange: null });
  return { feed, hub, call: createCallMaker(world).call };
}

test("ten readers of one filter are given the same bytes, a few times a second", () => {
  const world = simulatedWorld(1);
  const { feed, hub, call } = alone(world);
  const readers = Array.from({ length: 10 }, () => join(hub, ANY_CALL));
  const other = join(hub, FAILOVERS);
  const made: string[] = [];
  for (let n = 0; n < 150; n++) {
    made.push(call(feed, { failedOver: n === 70 }));
    world.advance(5);
  }
  world.advance(200);
  const [first] = readers;
  assert.ok(first !== undefined);
  assert.deepEqual(first.ids(), made);
  assert.ok(first.written.length <= 5, `${first.written.length} writes in 950 ms`);
  for (const { written } of readers)
    assert.ok(written.every((bytes, at) => bytes === first.written[at]));
  assert.deepEqual(other.ids(), [made[70]]);
});

test("what was left out is told to those whom it concerns, and a beat counts all calls", () => {
  const world = simulatedWorld(2);
  const { feed, hub, call } = alone(world);
  const all = join(hub, ANY_CALL);
  const few = join(hub, FAILOVERS);
  for (let n = 0; n < 5_000; n++) {
    call(feed, { failedOver: n % 1_000 === 500 });
    world.advance(1);
  }
  const of = (reader: TestReader, type: string): readonly Read[] =>
    reader.events().filter((event) => event.type === type);
  assert.equal(of(few, "sampled").length, 0);
  assert.equal(few.ids().length, 5);
  const notices = of(all, "sampled");
  assert.equal(notices.length, 5, "every second");
  const [notice] = notices;
  assert.ok(notice !== undefined && notice.data.shown < notice.data.of);
  assert.ok(notice.data.of >= 800 && notice.data.of <= 1_000, JSON.stringify(notice.data));
  const [beat] = of(few, "beat");
  assert.ok(beat !== undefined && beat.data.calls_per_s > 900 && beat.data.shown_per_s <= 1);
});

test("a reader who comes back gets all that it missed, or is told that some is missing", () => {
  const world = simulatedWorld(3);
  const { feed, hub, call } = alone(world);
  const first = join(hub, ANY_CALL);
  for (let n = 0; n < 3; n++) call(feed);
  world.advance(200);
  const seen = first.events()[1];
  assert.ok(seen?.id != null);
  first.leave();
  const missed = [call(feed)];
  world.advance(14_000);
  missed.push(call(feed));
  const again = join(hub, ANY_CALL, seen.id);
  world.advance(200);
  assert.equal(again.start.kind, "continued");
  assert.deepEqual(again.ids(), ["req-3", ...missed]);
  again.leave();
  const gone = join(hub, { ...ANY_CALL, chain: "other" }, seen.id);
  assert.deepEqual(gone.start, { kind: "resync", reason: "too_old" }, "nobody watched this");
  gone.leave();
  world.advance(15_000);
  const late = join(hub, ANY_CALL, seen.id);
  assert.deepEqual(late.start, { kind: "resync", reason: "too_old" });
  for (const id of ["2.other.1", `${seen.id}000000`, seen.id.replace(/\d+$/, "-1"), ""])
    assert.deepEqual(join(hub, ANY_CALL, id).start, { kind: "resync", reason: "unknown_id" });
});

test("what is kept for those who come back is bounded, and so are readers", () => {
  const world = simulatedWorld(4);
  const { feed, hub, call } = alone(world);
  const reader = join(hub, ANY_CALL);
  for (let n = 0; n < 5_000; n++) {
    call(feed);
    world.advance(7);
  }
  const ids = reader.events().flatMap(({ id }) => id ?? []);
  const [oldest] = ids;
  const newest = ids.at(-2);
  assert.ok(oldest !== undefined && newest !== undefined);
  assert.equal(join(hub, ANY_CALL, oldest).start.kind, "resync");
  const { start } = join(hub, ANY_CALL, newest);
  assert.ok(start.kind === "continued" && start.events === 1, JSON.stringify(start));
  for (let n = hub.readers; n < MAX_READERS; n++) join(hub, ANY_CALL);
  assert.equal(hub.join({ receive() {}, end() {} }, { filter: ANY_CALL, lastId: null }), null);
  hub.close();
  assert.equal(world.pendingTimers(), 0);
});

test("a quiet filter keeps its last events however much passes another filter", () => {
  const world = simulatedWorld(6);
  const { feed, hub, call } = alone(world);
  const quiet = join(hub, FAILOVERS);
  join(hub, ANY_CALL);
  call(feed, { failedOver: true });
  world.advance(200);
  const [seen] = quiet.events();
  assert.ok(seen?.id != null);
  const missed = call(feed, { failedOver: true });
  for (let n = 0; n < 8_000; n++) {
    call(feed);
    world.advance(7);
  }
  const again = join(hub, FAILOVERS, seen.id);
  assert.equal(again.start.kind, "continued");
  assert.deepEqual(again.ids(), [missed]);
});

test("readers who come and go with ever other filters leave a bounded number of them behind", () => {
  const world = simulatedWorld(5);
  const { feed, hub, call } = alone(world);
  const stays = join(hub, ANY_CALL);
  for (let n = 0; n < 200; n++) join(hub, { ...ANY_CALL, method: `eth_${n}` }).leave();
  const last = join(hub, { ...ANY_CALL, method: "eth_call" });
  call(feed, { method: "eth_call" });
  world.advance(200);
  assert.deepEqual(last.ids(), ["req-1"], "its filter is among those that are followed");
  assert.deepEqual(stays.ids(), ["req-1"]);
  const timers = world.pendingTimers();
  assert.ok(timers <= MAX_AUDIENCES + 2, `${timers} timers`);
});

/** Of calls that take longer than that: each of these has its own readers. */
const slowerThan = (minMs: number): CallFilter => ({ ...ANY_CALL, minMs });

test("every filter that a reader is let in with is followed at every worker; a further one is refused", () => {
  const ids = ["1", "2", "3", "4", "5"];
  const bus = testBus(ids);
  const workers = workersOn(bus, ids);
  const [first, last] = [workers[0] ?? assert.fail(), workers.at(-1) ?? assert.fail()];
  const readers: TestReader[] = [];
  for (const { hub } of workers)
    while (hub.refusal(slowerThan(readers.length)) === null) {
      readers.push(join(hub, slowerThan(readers.length)));
      bus.world.advance(50);
    }
  assert.equal(readers.length, MAX_FILTERS);
  assert.equal(last.hub.refusal(slowerThan(1_000)), "too_many_filters");
  assert.equal(last.hub.refusal(slowerThan(3)), null, "one that is followed has room for readers");
  const { call } = createCallMaker(bus.world);
  for (const { feed } of workers) call(feed, { ms: 500 });
  bus.world.advance(1_000);
  for (const reader of readers) assert.equal(reader.ids().length, ids.length);
  readers[0]?.leave();
  bus.world.advance(16_000);
  assert.equal(last.hub.refusal(slowerThan(1_000)), null);
  assert.equal(first.hub.refusal(slowerThan(1_000)), null);
});

test("readers who come to several workers at once: those of filters too many are told so", () => {
  const ids = ["1", "2", "3", "4", "5", "6"];
  const bus = testBus(ids);
  const workers = workersOn(bus, ids);
  for (const id of ids) bus.worker(id).isStuck = true;
  const readers = workers.flatMap(({ hub }, at) =>
    Array.from({ length: MAX_READERS }, (_, n) => join(hub, slowerThan(at * MAX_READERS + n))),
  );
  assert.ok(readers.length > MAX_FILTERS);
  for (const id of ids) {
    bus.worker(id).isStuck = false;
    bus.worker(id).release();
  }
  bus.world.advance(1_000);
  const ended = readers.filter((reader) => reader.ended() !== null);
  const others = readers.filter((reader) => reader.ended() === null);
  assert.ok(ended.length >= readers.length - MAX_FILTERS && others.length > 0, `${ended.length}`);
  assert.ok(ended.every((reader) => reader.ended() === "too_many_filters"));
  const places = workers.reduce((sum, { hub }) => sum + hub.readers, 0);
  assert.equal(places, others.length);
  const { call } = createCallMaker(bus.world);
  for (const { feed } of workers) call(feed, { ms: 500 });
  bus.world.advance(1_000);
  for (const reader of others) assert.equal(reader.ids().length, ids.length);
  for (const { hub } of workers) hub.close();
  assert.equal(
    workers.reduce((sum, { hub }) => sum + hub.readers, 0),
    0,
  );
});

test("a change that several workers tell of comes once, and again when it happens again", () => {
  const ids = ["1", "2", "3"];
  const bus = testBus(ids);
  const { world } = bus;
  const workers = workersOn(bus, ids);
  const reader = join(workers[1]?.hub ?? assert.fail(), ANY_CALL);
  world.advance(50);
  const about = { profile: "team", chain: "test", provider: "p0", transport: "http" } as const;
  for (const state of ["open", "closed", "open"] as const)
    for (const { feed } of workers) {
      feed.emit({ type: "circuit", data: { ...about, state, cause: `of ${feed.worker}` } });
      world.advance(700);
    }
  const states = reader
    .events()
    .flatMap(({ type, data }) => (type === "circuit" ? data.state : []));
  assert.deepEqual(states, ["open", "closed", "open"]);
});

test("calls of every worker reach a reader at any of them once, and filters hold everywhere", () => {
  const { world, worker } = testBus(["1", "2", "3"]);
  const workers = ["1", "2", "3"].map((id) => {
    const feed = new EventFeed({ runtime: world, worker: id, workers: 3 });
    const exchange = new FeedExchange(worker(id).bus, world);
    const hub = new FeedHub({ runtime: world, feed, exchange });
    return { feed, hub, call: createCallMaker(world, [`p${id}a`, `p${id}b`]).call };
  });
  const [one, two] = workers;
  assert.ok(one !== undefined && two !== undefined);
  const all = join(one.hub, ANY_CALL);
  const failed = join(two.hub, FAILOVERS);
  world.advance(50);
  for (let n = 0; n < 30; n++) {
    for (const { feed, call } of workers) call(feed, { failedOver: n === 20 });
    world.advance(10);
  }
  world.advance(500);
  const seen = all.events().filter(({ type }) => type === "call");
  const byWorker = Map.groupBy(seen, ({ data }) => data.worker);
  for (const id of ["1", "2", "3"])
    assert.deepEqual(
      (byWorker.get(id) ?? []).map(({ data }) => data.request_id),
      Array.from({ length: 30 }, (_, n) => `req-${n + 1}`),
      `of worker ${id}`,
    );
  assert.deepEqual(failed.ids(), ["req-21", "req-21", "req-21"]);
  all.leave();
  failed.leave();
  world.advance(60_000);
  const written = all.written.length;
  for (const { feed, call } of workers) call(feed);
  world.advance(1_000);
  assert.equal(all.written.length, written);
});

test("a worker that dies while somebody watches there is watched for no longer", () => {
  const { world, worker } = testBus(["1", "2"]);
  const feed = new EventFeed({ runtime: world, worker: "2", workers: 2 });
  new FeedHub({ runtime: world, feed, exchange: new FeedExchange(worker("2").bus, world) });
  const first = new EventFeed({ runtime: world, worker: "1", workers: 2 });
  const exchange = new FeedExchange(worker("1").bus, world);
  join(new FeedHub({ runtime: world, feed: first, exchange }), ANY_CALL);
  world.advance(50);
  const { call } = createCallMaker(world);
  for (let n = 0; n < 50; n++) call(feed);
  assert.equal(feed.decisions().length, 50, "it is watched");
  worker("1").isMute = true;
  world.advance(12_000);
  for (let n = 0; n < 50; n++) call(feed);
  assert.equal(feed.decisions().length, 54, "four fifths of five a second");
});
