// Filters in single cases, in simulated time and over a stream that the test holds in its hand:
// ids, owners, bounds, and why each of them ends.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { fault } from "../../../src/core/faults/rpc-fault.ts";
import { readCriteria, readSubscription } from "../../../src/core/stream/subscription.ts";
import {
  type Filter,
  type FilterEnd,
  type FilterRequest,
  Filters,
  type OpenedFilter,
} from "../../../src/upstream/filter/filters.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { MemoryBudget } from "../../../src/upstream/memory-budget.ts";
import type { Subscriber } from "../../../src/upstream/stream/subscriber.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import { blockText, fakeChain } from "../../fakes/chain.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { type SimulatedWorld, seededRandom, simulatedWorld } from "../../fakes/runtime.ts";

interface Fixture {
  readonly runtime: SimulatedWorld;
  readonly timerWheel: TimerWheel;
  readonly filters: Filters;
  /** What the other workers were told last of the numbers of filters. */
  readonly told: ReadonlyMap<string, number | null>;
  readonly budget: MemoryBudget;
  /** Subscribers that have not left. */
  readonly subscribers: Set<Subscriber>;
  readonly request: (overrides?: Partial<FilterRequest>) => FilterRequest;
  /** Opens a filter at once; fails if it is refused. */
  readonly open: (overrides?: Partial<FilterRequest>) => Filter;
  readonly tell: (...results: readonly string[]) => void;
  readonly ended: () => Partial<Record<FilterEnd, number>>;
}

function createFixture(
  bounds: {
    readonly maxFilters?: number;
    readonly maxCallerFilters?: number;
    readonly maxFilterBytes?: number;
    readonly maxInFlightBytes?: number;
    readonly maxCallerBytes?: number;
  } = {},
  elsewhere: (holder: string) => readonly number[] = () => [],
): Fixture {
  const runtime = simulatedWorld(3);
  const timerWheel = new TimerWheel(runtime);
  const subscribers = new Set<Subscriber>();
  const limits = {
    maxFilters: 1_000,
    maxCallerFilters: 100,
    maxFilterBytes: 100_000_000,
    maxInFlightBytes: 400_000_000,
    maxCallerBytes: 400_000_000,
    ...bounds,
  };
  const budget = new MemoryBudget(() => limits);
  const subscriptions = {
    open(_: unknown, subscriber: Subscriber) {
      subscribers.add(subscriber);
      return () => void subscribers.delete(subscriber);
    },
  };
  const told = new Map<string, number | null>();
  const filters = new Filters({
    budget,
    runtime,
    timerWheel,
    subscriptions,
    limits: () => limits,
    secret: randomBytes,
    callers: { tell: (holder, count) => void told.set(holder, count), elsewhere },
  });
  const tracker = new Tracker(fakeSet([fakeProvider(0)]), runtime, SELECTION);
  const criteria = readCriteria([{}]);
  assert.ok(criteria.kind === "criteria");
  const { subscription } = criteria;
  const request = (overrides: Partial<FilterRequest> = {}): FilterRequest => ({
    profile: "team",
    tracker,
    subscription,
    strategy: "priority",
    pin: null,
    deadlineMs: 1_000,
    caller: { id: "one", maxLogFilters: 10 },
    kind: "logs",
    owner: "me",
    method: "eth_newFilter",
    params: "[{}]",
    named: "team",
    ...overrides,
  });
  return {
    runtime,
    timerWheel,
    filters,
    told,
    budget,
    subscribers,
    request,
    open(overrides) {
      let found: OpenedFilter | null = null;
      const before = new Set(subscribers);
      filters.open(request(overrides), (opened) => {
        found = opened;
      });
      for (const it of subscribers) if (!before.has(it)) it.started(null);
      const opened = found as OpenedFilter | null;
      assert.ok(opened?.kind === "opened", "it was refused");
      return opened.filter;
    },
    tell(...results) {
      const raws = results.map((it) => Buffer.from(it));
      for (const it of [...subscribers]) it.events(raws);
    },
    ended: () =>
      Object.fromEntries(Object.entries(filters.counts()[0]?.ended ?? {}).filter(([, n]) => n > 0)),
  };
}

/** Takes what is unread, as written or not. */
function poll(
  { filters }: Fixture,
  id: string,
  written = true,
  owner = "me",
): readonly unknown[] | null {
  const polled = filters.poll(owner, id);
  polled?.settle(written);
  return polled === null ? null : JSON.parse(polled.json.toString());
}

test(
  "ids are quantities of one length with at least 128 bits by chance, and open nothing for " +
    "another owner",
  () => {
    const at = createFixture();
    const ids = Array.from({ length: 50 }, () => at.open().id);
    for (const id of ids) assert.match(id, /^0x[1-9a-f][0-9a-f]{33}$/);
    assert.equal(new Set(ids).size, 50);
    const [id = ""] = ids;
    at.tell("1");
    assert.equal(poll(at, id, true, "another"), null);
    assert.equal(at.filters.uninstall("another", id), false);
    assert.deepEqual(poll(at, id), [1]);
  },
);

test("a filter ends five minutes after its last poll, and leaves nothing behind", () => {
  const at = createFixture();
  const { id } = at.open();
  for (let n = 0; n < 5; n++) {
    at.runtime.advance(299_000);
    assert.deepEqual(poll(at, id), [], "each poll gives it five more minutes");
  }
  at.runtime.advance(299_000);
  assert.equal(at.subscribers.size, 1);
  at.runtime.advance(1_100);
  assert.equal(poll(at, id), null);
  assert.deepEqual([at.subscribers.size, at.timerWheel.size, at.ended()], [0, 0, { expired: 1 }]);
});

test("what was not written comes again, before what came since; what was written does not", () => {
  const at = createFixture();
  const { id } = at.open();
  at.tell("1", "2");
  assert.deepEqual(poll(at, id, false), [1, 2]);
  at.tell("3");
  const slow = at.filters.poll("me", id);
  at.tell("4");
  assert.deepEqual(poll(at, id), [4], "what is on its way is in no other answer");
  slow?.settle(false);
  slow?.settle(true);
  assert.deepEqual(poll(at, id), [1, 2, 3]);
  assert.deepEqual(poll(at, id), []);
  assert.equal(at.filters.unreadBytes, 0);
});

test("too much unread ends a filter instead of dropping some of it", () => {
  const at = createFixture();
  const [full, long, polled] = [
    at.open(),
    at.open({ subscription: at.request().subscription }),
    at.open(),
  ];
  for (let n = 0; n < 10_000; n++) {
    at.tell(String(n));
    if (n % 100 === 0) poll(at, polled.id);
  }
  assert.equal(at.subscribers.size, 3);
  at.tell("10000");
  assert.deepEqual(
    [poll(at, full.id), poll(at, long.id), poll(at, polled.id)?.length],
    [null, null, 100],
  );
  assert.deepEqual(at.ended(), { unread: 2 });
  const bytes = at.open();
  at.tell(...Array.from({ length: 5 }, () => `"${"x".repeat(1_000_000)}"`));
  assert.equal(poll(at, bytes.id), null);
  assert.equal(at.filters.unreadBytes, 0);
});

test("when all filters hold too much, the one with the most ends and others keep what they have", () => {
  const at = createFixture({ maxFilterBytes: 10_000 });
  const greedy = at.open();
  at.tell(`"${"x".repeat(6_000)}"`);
  const modest = at.open();
  at.tell(`"${"y".repeat(3_000)}"`);
  assert.deepEqual(
    [poll(at, greedy.id), poll(at, modest.id)?.length, at.ended()],
    [null, 1, { memory: 1 }],
  );
  assert.equal(at.filters.unreadBytes, 0);
});

const other = { caller: { id: "two", maxLogFilters: 10 }, owner: "two" };

/** Opens filters, of which each is told so many bytes. */
function openWith(
  at: Fixture,
  overrides: Partial<FilterRequest>,
  ...bytes: readonly number[]
): readonly string[] {
  return bytes.map((count) => {
    const { id } = at.open(overrides);
    [...at.subscribers].at(-1)?.events([Buffer.from(`"${"x".repeat(count - 34)}"`)]);
    return id;
  });
}

const isKept = (at: Fixture, id: string | undefined, owner = "me"): boolean =>
  poll(at, id ?? "", false, owner) !== null;

test("unread changes are in the memory budget, those of one caller in a quarter of its part", () => {
  const at = createFixture({ maxInFlightBytes: 1_000_000, maxCallerBytes: 24_000 });
  const [small, large] = openWith(at, {}, 2_000, 3_000);
  assert.deepEqual([at.filters.unreadBytes, at.budget.used], [5_000, 5_000]);
  const [theirs] = openWith(at, other, 5_500);
  const [last] = openWith(at, {}, 2_500);
  assert.deepEqual(at.ended(), { memory: 1 });
  assert.deepEqual(
    [isKept(at, small), isKept(at, large), isKept(at, last), isKept(at, theirs, "two")],
    [true, false, true, true],
  );
  assert.equal(at.budget.used, 2_000 + 2_500 + 5_500);
});

test("what filters are about is in the memory budget where it is long, until they end", () => {
  const at = createFixture({ maxInFlightBytes: 1_000_000, maxCallerBytes: 400_000 });
  const [params, few] = ["x".repeat(10_000), "x".repeat(4_000)];
  const first = at.open({ params });
  assert.deepEqual([at.filters.unreadBytes, at.budget.used], [60_000, 60_000]);
  at.open({ params: few });
  const last = at.open({ params });
  assert.deepEqual(at.ended(), { memory: 1 }, "a quarter of the caller's part");
  const left = [first, last].filter(({ id }) => isKept(at, id));
  assert.deepEqual([left.length, at.budget.used], [1, 60_000]);
  at.filters.uninstall("me", left[0]?.id ?? "");
  assert.deepEqual([at.filters.unreadBytes, at.budget.used], [0, 0]);
});

test("all together take a quarter of the memory; the caller with the most loses its largest", () => {
  const at = createFixture({ maxInFlightBytes: 40_000, maxCallerBytes: 1_000_000 });
  const [theirs] = openWith(at, other, 4_500);
  const [small, large] = openWith(at, {}, 2_000, 3_000);
  const [last] = openWith(at, {}, 1_000);
  assert.deepEqual(at.ended(), { memory: 1 });
  assert.deepEqual(
    [isKept(at, small), isKept(at, large), isKept(at, last), isKept(at, theirs, "two")],
    [true, false, true, true],
  );
});

test("before a call finds no room in memory, filters end", () => {
  const at = createFixture({ maxInFlightBytes: 40_000, maxCallerBytes: 40_000 });
  const [theirs] = openWith(at, other, 2_000);
  const [mine] = openWith(at, {}, 6_000);
  assert.ok(at.budget.take("three", 32_000));
  assert.deepEqual(at.ended(), {});
  assert.ok(at.budget.takeForAll(3_000), "a filter made room");
  assert.deepEqual([isKept(at, mine), isKept(at, theirs, "two")], [false, true]);
  assert.equal(at.budget.take("four", 6_000), false, "nothing is left that could make enough");
});

test("bounded for each caller and in sum; what ends makes room", () => {
  const at = createFixture({ maxCallerFilters: 2, maxFilters: 3 });
  const refusal = (overrides: Partial<FilterRequest> = {}): string => {
    let code = "";
    at.filters.open(at.request(overrides), (opened) => {
      if (opened.kind === "refused" && opened.outcome.kind === "fault")
        code = opened.outcome.fault.code;
    });
    return code;
  };
  const [first] = [at.open(), at.open()];
  assert.equal(refusal(), "rate_limit_exceeded");
  at.open(other);
  assert.equal(refusal({ caller: { id: "three", maxLogFilters: 10 } }), "unavailable");
  at.filters.uninstall("me", first?.id ?? "");
  assert.equal(refusal(), "");
});

test("the bounds count filters of other workers, which are told of those here", () => {
  const theirs = new Map([["one", [1, 1]]]);
  const at = createFixture({ maxCallerFilters: 4, maxFilters: 5 }, (id) => theirs.get(id) ?? []);
  const [first] = [at.open(), at.open(), at.open(other)];
  assert.deepEqual(Object.fromEntries(at.told), { one: 2, two: 1, "": 3 });
  const refusal = (overrides?: Partial<FilterRequest>): string => {
    let code = "";
    at.filters.open(at.request(overrides), (opened) => {
      if (opened.kind === "refused" && opened.outcome.kind === "fault")
        code = opened.outcome.fault.code;
    });
    return code;
  };
  assert.equal(refusal(), "rate_limit_exceeded");
  theirs.set("", [1, 1]);
  assert.equal(refusal(other), "unavailable");
  first?.end("owner");
  assert.deepEqual(Object.fromEntries(at.told), { one: 1, two: 1, "": 2 });
});

test("block filters tell hashes, of which each head is read once for all of them", () => {
  const at = createFixture();
  const heads = readSubscription(["newHeads"]);
  assert.ok(heads.kind !== "invalid");
  const [one, two] = [
    at.open({ kind: "blocks", subscription: heads }),
    at.open({ kind: "blocks", subscription: heads }),
  ];
  const chain = fakeChain(seededRandom(1));
  const blocks = [chain.mine(), chain.mine()];
  at.tell(...blocks.map((it) => blockText(it)));
  for (const { id } of [one, two])
    assert.deepEqual(
      poll(at, id),
      blocks.map((block) => block.hash),
    );
});

test(
  "a stream that cannot go on, a caller who leaves before the answer, and one who watches it " +
    "end a filter, each once",
  () => {
    const at = createFixture();
    const heard: string[] = [];
    const [lost, taken] = [at.open(), at.open()];
    for (const [name, it] of [
      ["lost", lost],
      ["taken", taken],
    ] as const)
      it.whenEnded(() => heard.push(name));
    [...at.subscribers][0]?.ended("why");
    taken.end("owner");
    taken.end("owner");
    let opened = false;
    const cancel = at.filters.open(at.request(), () => {
      opened = true;
    });
    const [waiting] = at.subscribers;
    cancel();
    waiting?.started(null);
    assert.deepEqual(
      [heard, opened, at.subscribers.size, at.ended()],
      [["lost", "taken"], false, 0, { lost: 1, owner: 1, unclaimed: 1 }],
    );
    let outcome = "";
    at.filters.open(at.request(), (answer) => {
      outcome = answer.kind;
    });
    for (const it of at.subscribers)
      it.refused({ kind: "fault", fault: fault("unavailable", "nobody") }, null);
    assert.equal(outcome, "refused");
    assert.deepEqual(at.filters.counts()[0]?.open, { logs: 0, blocks: 0, pending: 0 });
  },
);
