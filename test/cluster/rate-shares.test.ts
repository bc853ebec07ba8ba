// Rate limits that processes share, in simulated time: together they serve what the limit allows,
// at no moment more, however calls are spread, and also where the book is rows of a store.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RateLimitSize } from "../../src/core/billing/gcra.ts";
import {
  type RateLimitOwner,
  rateLimitStatusOf,
  takeSharedToken,
} from "../../src/core/billing/rate-limit.ts";
import { type RequestTokens, SharedLimit } from "../../src/core/billing/shared-limit.ts";
import { TokenBook } from "../../src/core/billing/token-book.ts";
import { bookedAddressLimits } from "../../src/shared/leases/booked-address-limits.ts";
import { RateShares } from "../../src/shared/leases/rate-shares.ts";
import { storedTokens } from "../../src/shared/leases/stored-tokens.ts";
import { removeOld } from "../../src/shared/nodes/retention.ts";
import { type SimulatedWorld, seededRandom, simulatedWorld } from "../fakes/runtime.ts";
import { namedSeeds } from "../fakes/seed.ts";
import { until } from "../fakes/service-fixture.ts";
import { eachStore } from "../fakes/stores.ts";

const LIMIT = { name: "managed", size: "managed" } as const;
const SIZE: RateLimitSize = { perSecond: 50, burst: 100 };
const STEP_MS = 5;

interface Node {
  readonly shares: RateShares;
  readonly owner: RateLimitOwner;
  served: number;
  refused: number;
}

function nodeOf(runtime: SimulatedWorld, request: RequestTokens, nodes: number): Node {
  const shares = new RateShares({
    request,
    runtime,
    members: () => nodes,
    spacingMs: 5,
    onError: () => {},
  });
  return { shares, owner: { fullAtMs: null, shared: null, id: "acc_1" }, served: 0, refused: 0 };
}

/** One call at a node, which waits where it has to. */
function call(node: Node, { runtime, size }: { runtime: SimulatedWorld; size: RateLimitSize }) {
  const { owner, shares: sharing } = node;
  const take = (isFinal: boolean): void => {
    const now = { size, nowMs: runtime.now(), sharing, isFinal };
    const taken = takeSharedToken(owner, LIMIT, now);
    if (taken === null) node.served++;
    else if (taken instanceof SharedLimit) sharing.wait(taken, () => take(true));
    else node.refused++;
  };
  take(false);
}

/** A book at some distance. */
function bookOver(runtime: SimulatedWorld, random: () => number) {
  const book = new TokenBook();
  return (process: string): RequestTokens =>
    async (requests) => {
      await new Promise<void>((resolve) => void runtime.after(1 + random() * 20, resolve));
      return requests.map((request) => book.grant(process, request, runtime.now()));
    };
}

const sum = (nodes: readonly Node[]): number => nodes.reduce((all, { served }) => all + served, 0);

interface Played {
  readonly nodes: readonly Node[];
  /** Whether more was served at any moment than the limit allows. */
  readonly mostOver: number;
}

/** Plays calls; `rates` = calls a second at each node, which may change with time. */
async function play(
  seconds: number,
  rates: (nowMs: number) => readonly number[],
  { seed, size = SIZE }: { readonly seed: number; readonly size?: RateLimitSize },
): Promise<Played> {
  const random = seededRandom(seed);
  const runtime = simulatedWorld(seed);
  const askAs = bookOver(runtime, random);
  const count = rates(0).length;
  const nodes = rates(0).map((_, at) => nodeOf(runtime, askAs(`n${at}`), count));
  let mostOver = 0;
  const startMs = runtime.now();
  for (let nowMs = 0; nowMs < seconds * 1_000; nowMs += STEP_MS) {
    for (const [at, node] of nodes.entries()) {
      const calls = ((rates(nowMs)[at] ?? 0) * STEP_MS) / 1_000;
      for (let n = Math.floor(calls) + (random() < calls % 1 ? 1 : 0); n > 0; n--)
        call(node, { runtime, size });
    }
    runtime.advance(STEP_MS);
    await new Promise(setImmediate);
    const allowed = size.burst + (size.perSecond * (runtime.now() - startMs)) / 1_000;
    mostOver = Math.max(mostOver, sum(nodes) - allowed);
  }
  for (const { shares } of nodes) shares.close();
  return { nodes, mostOver };
}

const SECONDS = 10;
const ALLOWED = SIZE.burst + SIZE.perSecond * SECONDS;
const served = (nodes: readonly Node[]): string => `${nodes.map((node) => node.served)}`;

test("processes serve a limit together, exactly, however the calls are spread", async () => {
  for (const [seed, rates] of [
    [200, 0, 0],
    [180, 15, 5],
    [67, 67, 66],
    [500, 40, 1],
    [30, 30, 30, 30, 30, 30],
    [400, 400, 400, 400, 400, 400, 400, 400],
  ].entries()) {
    const { nodes, mostOver } = await play(SECONDS, () => rates, { seed });
    assert.ok(mostOver <= 1, `${rates}: ${mostOver} more than allowed at one moment`);
    assert.ok(sum(nodes) >= ALLOWED * 0.95, `${rates}: ${served(nodes)}, less than ${ALLOWED}`);
  }
});

test("the burst of a fresh account is given once, and whole", async () => {
  for (const size of [SIZE, { perSecond: 40, burst: 40 }, { perSecond: 1, burst: 3 }])
    for (const seed of namedSeeds(1, 2, 3)) {
      const rates = Array.from({ length: 6 }, () => 1_000);
      const { nodes, mostOver } = await play(0.5, () => rates, { seed, size });
      assert.ok(mostOver <= 1, `${size.burst}: ${mostOver} more than allowed`);
      assert.ok(sum(nodes) >= size.burst, `${size.burst}: ${served(nodes)}`);
    }
});

test("processes that want the same get about the same, and those that want little get it", async () => {
  const { nodes } = await play(SECONDS, () => [300, 300, 5], { seed: 11 });
  const [one, two, few] = nodes;
  assert.ok(one && two && few);
  assert.ok(one.served / two.served > 0.6 && one.served / two.served < 1.7, served(nodes));
  assert.ok(few.served >= 0.5 * (few.served + few.refused), `${few.served} of ${few.refused} more`);
});

test("calls that move from process to process earn nothing by it, and lose little", async () => {
  const rates = (nowMs: number) =>
    [0, 1, 2].map((at) => (Math.floor(nowMs / 2_000) % 3 === at ? 150 : 0));
  const { nodes, mostOver } = await play(SECONDS, rates, { seed: 7 });
  assert.ok(mostOver <= 1, `${mostOver}`);
  assert.ok(sum(nodes) >= ALLOWED * 0.95, served(nodes));
});

test("a caller below its limit is never refused", async () => {
  const { nodes } = await play(SECONDS, () => [15, 15, 10], { seed: 5 });
  assert.deepEqual(
    nodes.map(({ refused }) => refused),
    [0, 0, 0],
  );
});

test("without the book each process keeps to an equal part, and shares again when it answers", async () => {
  const runtime = simulatedWorld(1);
  const book = new TokenBook();
  let isAway = true;
  const requests: RequestTokens = async (all) => {
    if (isAway) throw new Error("no answer");
    return all.map((request) => book.grant("a", request, runtime.now()));
  };
  const node = nodeOf(runtime, requests, 4);
  const flood = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      for (let n = 0; n < 10; n++) call(node, { runtime, size: SIZE });
      runtime.advance(STEP_MS);
      await new Promise(setImmediate);
    }
  };
  await flood(4_000);
  const alone = (SIZE.burst + SIZE.perSecond * 4) / 4;
  assert.ok(node.served >= alone * 0.9 && node.served <= alone + 1, `${node.served} of ${alone}`);
  isAway = false;
  await flood(1_500);
  assert.ok(node.served > alone + 90, `${node.served}`);
  node.shares.close();
});

test("more limits than are shared at one time keep to equal parts", () => {
  const runtime = simulatedWorld(1);
  const node = nodeOf(runtime, () => new Promise(() => {}), 4);
  const at = { size: SIZE, nowMs: runtime.now(), sharing: node.shares, isFinal: false };
  for (let n = 0; n < 5_000; n++)
    takeSharedToken({ fullAtMs: null, shared: null, id: `acc_${n}` }, LIMIT, at);
  const owner: RateLimitOwner = { fullAtMs: null, shared: null, id: "acc_more" };
  let count = 0;
  while (takeSharedToken(owner, LIMIT, at) === null) count++;
  assert.equal(count, SIZE.burst / 4);
  assert.equal(node.shares.size, 5_000);
  node.shares.close();
});

test("what is left and when it is full again are told of the limit that is shared", async () => {
  const runtime = simulatedWorld(1);
  const node = nodeOf(runtime, bookOver(runtime, () => 0)("a"), 2);
  for (let n = 0; n < 60; n++) call(node, { runtime, size: SIZE });
  for (let n = 0; n < 6; n++) {
    await new Promise(setImmediate);
    runtime.advance(1);
  }
  assert.equal(node.served, 60);
  const status = rateLimitStatusOf(node.owner, LIMIT, { size: SIZE, nowMs: runtime.now() });
  assert.ok(Math.abs(status.remaining - 40) <= 1, `${status.remaining}`);
  assert.deepEqual([status.burst, status.resetS], [100, 2]);
  node.shares.close();
});

test("keys of one network are counted in one book, and in equal parts where it does not answer", async () => {
  const book = new TokenBook();
  let isAway = false;
  const request: RequestTokens = async (requests) => {
    if (isAway) throw new Error("no answer");
    return requests.map((each) => book.grant("a", each, 1_000));
  };
  const size = { perSecond: 8 / 3_600, burst: 8 };
  const [one, two] = [1, 2].map(() =>
    bookedAddressLimits({ request, members: () => 2 })("new keys", size),
  );
  assert.ok(one && two);
  const taken = await Promise.all(
    Array.from({ length: 10 }, (_, n) => (n % 2 ? one : two).take(`2001:db8::${n}`, 1_000)),
  );
  assert.deepEqual(taken.filter((waitMs) => waitMs === 0).length, 8);
  assert.deepEqual(taken.slice(8), [450_000, 450_000]);
  assert.equal(await one.take("2001:db8:1::", 1_000), 0);
  isAway = true;
  const alone = await Promise.all(Array.from({ length: 5 }, () => one.take("192.0.2.1", 1_000)));
  assert.deepEqual(alone.filter((waitMs) => waitMs === 0).length, 4);
});

eachStore(({ engine, open }) => {
  test(`nodes with a book in a store get one limit together (${engine})`, async (t) => {
    const store = await open(t);
    const runtime = simulatedWorld(1);
    // Refilled so slowly that what is left depends on what was taken alone.
    const size: RateLimitSize = { perSecond: 0.001, burst: 100 };
    const nodes = ["a", "b", "c"].map((id) => nodeOf(runtime, storedTokens(store, id), 3));
    for (let round = 0; round < 12; round++) {
      for (const node of nodes) for (let n = 0; n < 10; n++) call(node, { runtime, size });
      const asked = sum(nodes) + nodes.reduce((all, { refused }) => all + refused, 0);
      await until("what became of the calls", async () => {
        await new Promise(setImmediate);
        return sum(nodes) + nodes.reduce((all, node) => all + node.refused, 0) === 30 * (round + 1);
      });
      assert.ok(asked <= 30 * (round + 1));
      runtime.advance(300);
    }
    assert.ok(sum(nodes) <= size.burst && sum(nodes) >= size.burst - 3, served(nodes));
    for (const { shares } of nodes) shares.close();
  });

  test(`a limit in a store refills with its clock, takes back and owes (${engine})`, async (t) => {
    const store = await open(t);
    const request = storedTokens(store, "a");
    const limit = { scope: "one", size: { perSecond: 0.001, burst: 10 }, wanted: 0, owed: 0 };
    const granted = async (wanted: number, owed = 0) =>
      (await request([{ ...limit, wanted, owed }]))[0]?.granted;
    assert.equal(await granted(4), 4);
    assert.equal(await granted(0, -2), 0);
    assert.equal(await granted(10, 3), 5);
    assert.equal(await granted(1), 0);
    const [none] = await request([{ ...limit, wanted: 1 }]);
    assert.ok(none && none.waitMs > 990_000 && none.waitMs <= 1_000_000, `${none?.waitMs}`);
    assert.ok(Math.abs(none.debt - 10) < 0.1);
    // A limit of another size finds what this one left.
    const fast = { perSecond: 1_000, burst: 10_000 };
    const [other] = await request([{ scope: "two", size: fast, wanted: 10_000, owed: 0 }]);
    assert.equal(other?.granted, 10_000);
    await until("its refill", async () => {
      const [more] = await request([{ scope: "two", size: fast, wanted: 1, owed: 0 }]);
      return more?.granted === 1;
    });
  });

  test(`what two nodes want is divided between them (${engine})`, async (t) => {
    const store = await open(t);
    const [one, two] = [storedTokens(store, "a"), storedTokens(store, "b")];
    const limit = { scope: "one", size: { perSecond: 0.001, burst: 100 }, wanted: 0, owed: 0 };
    await one([{ ...limit, wanted: 100 }]);
    // It gets nothing, and says so with its next question.
    for (let n = 0; n < 2; n++)
      assert.equal((await two([{ ...limit, wanted: 30 }]))[0]?.granted, 0);
    const [part] = await one([{ ...limit, wanted: 30, owed: -40 }]);
    assert.equal(part?.granted, 20);
    const [rest] = await two([{ ...limit, wanted: 30 }]);
    assert.equal(rest?.granted, 20);
  });

  test(`what says nothing any more is removed (${engine})`, async (t) => {
    const store = await open(t);
    await store.db
      .insertInto("rate_demand")
      .values([
        { scope: "old", node_id: "a", wanted: 1, at: 1n },
        { scope: "new", node_id: "a", wanted: 1, at: BigInt(Date.now() + 600_000) },
      ])
      .execute();
    const row = { step_ms: 1, burst: 1, wanted: 1, owed: 0, part: 1, granted: 1 };
    await store.db
      .insertInto("rate_limit")
      .values([
        { ...row, scope: "old", full_at: 1 },
        { ...row, scope: "new", full_at: Date.now() + 600_000 },
      ])
      .execute();
    for (const table of ["rate_demand", "rate_limit"] as const) await removeOld(store, table);
    const demands = await store.db.selectFrom("rate_demand").select("scope").execute();
    const limits = await store.db.selectFrom("rate_limit").select("scope").execute();
    assert.deepEqual([demands, limits], [[{ scope: "new" }], [{ scope: "new" }]]);
  });
});

test("where the book is silent, the first call waits for it; later ones have their equal part at once", async () => {
  const runtime = simulatedWorld(3);
  const node = nodeOf(runtime, () => new Promise(() => {}), 2);
  const other = { ...node, owner: { fullAtMs: null, shared: null, id: "acc_2" }, served: 0 };
  call(node, { runtime, size: SIZE });
  await new Promise(setImmediate);
  runtime.advance(499);
  assert.equal(node.served, 0);
  runtime.advance(2);
  assert.equal(node.served, 1);
  for (const it of [node, other]) {
    const before = it.served;
    call(it, { runtime, size: SIZE });
    runtime.advance(1);
    assert.equal(it.served, before + 1);
  }
  node.shares.close();
});

test("a limit whose size has changed is named once in a question, and nobody waits for the one before", async () => {
  const runtime = simulatedWorld(4);
  const asked: (readonly string[])[] = [];
  const book = new TokenBook();
  const request: RequestTokens = async (requests) => {
    asked.push(requests.map(({ scope }) => scope));
    return requests.map((one) => book.grant("a", one, runtime.now()));
  };
  const node = nodeOf(runtime, request, 2);
  for (const perSecond of [50, 60, 70]) call(node, { runtime, size: { ...SIZE, perSecond } });
  for (let step = 0; step < 20; step++) {
    await new Promise(setImmediate);
    runtime.advance(10);
  }
  assert.equal(node.served, 3);
  assert.ok(asked.length > 0);
  for (const scopes of asked) assert.equal(new Set(scopes).size, scopes.length, scopes.join(" "));
  node.shares.close();
});
