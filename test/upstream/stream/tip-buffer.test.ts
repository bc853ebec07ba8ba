// The buffer before a stream's subscribers, in simulated time: what is above the tip waits in
// order, for the tip or for one block time, and the mark of a stream claims nothing that waits.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { StreamMark } from "../../../src/core/stream/stream-mark.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { type EventBlock, TipBuffer } from "../../../src/upstream/stream/tip-buffer.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const BLOCK_MS = 1_000;
const PROVIDERS = [fakeProvider(0), fakeProvider(1)] as const;
const CHAIN = { chainId: 1, chainName: "sim", name: "Sim", aliases: [], blockTimeMs: BLOCK_MS };

/** A buffer behind two providers that both have block 100, before a stream that emits at will. */
function createFixture({ areHeads = false } = {}) {
  const runtime = simulatedWorld(1);
  const timerWheel = new TimerWheel(runtime);
  const newTracker = (): Tracker =>
    new Tracker(fakeSet(PROVIDERS, { chain: CHAIN }), runtime, SELECTION);
  let tracker: Tracker | null = newTracker();
  const told: string[] = [];
  const heardAt: number[] = [];
  /** The last blocks of which the stream has emitted results. */
  let emitted: readonly EventBlock[] = [{ number: 100, hash: hashOf(100, "a") }];
  let marks = 0;
  const buffer = new TipBuffer({
    runtime,
    timerWheel,
    view: () => tracker?.blocks.view ?? null,
    blockTimeMs: () => BLOCK_MS,
    areHeads,
    mark() {
      marks++;
      return markAt(emitted);
    },
    deliver({ results, heardAtMs }) {
      told.push(...results.map(String));
      heardAt.push(heardAtMs);
    },
  });
  const head = (index: 0 | 1, number: number, branch = "a"): void => {
    const [hash, parentHash] = [hashOf(number, branch), hashOf(number - 1, branch)];
    tracker?.recordHead(PROVIDERS[index], number, { number, hash, parentHash });
  };
  for (const index of [0, 1] as const) head(index, 100);
  /** The stream emits a result of a block; `text` null = the result is its number. */
  const emit = (number: number, text: string | null = null, branch = "a"): void => {
    buffer.expect(number);
    const block: EventBlock = { number, hash: hashOf(number, branch) };
    if (!emitted.some(({ hash }) => hash === block.hash))
      emitted = [...emitted.slice(-4).filter((other) => other.number < number), block];
    const results = [Buffer.from(text ?? String(number))];
    if (!buffer.take({ results, block, heardAtMs: runtime.now() }))
      told.push(...results.map(String));
  };
  const takeBack = (text: string): void => {
    const results = [Buffer.from(text)];
    if (!buffer.take({ results, block: null, heardAtMs: runtime.now() }))
      told.push(...results.map(String));
  };
  const marked = (): readonly number[] => buffer.mark?.blocks.map(({ number }) => number) ?? [];
  const served = (): number | undefined => tracker?.blocks.view.tip?.number;
  const servedHash = (): string | null | undefined => tracker?.blocks.view.tip?.hash;
  const serve = (next: Tracker | null): void => {
    tracker = next;
  };
  const marksRead = (): number => marks;
  const use = { head, emit, takeBack, marked, served, servedHash, serve, newTracker, marksRead };
  return { runtime, timerWheel, buffer, told, heardAt, ...use };
}

function hashOf(number: number, branch: string): string {
  return `0x${branch}${number.toString(16).padStart(63, "0")}`;
}

function markAt(told: readonly EventBlock[]): StreamMark {
  const blocks = told.map((block) => ({ ...block, parentHash: hashOf(block.number - 1, "a") }));
  return { blocks, rooted: true, startHash: "", unsureFrom: null, logs: new Map() };
}

test("what the tip has passes; what is above it waits until the tip has it, in order", () => {
  const { buffer, told, head, emit } = createFixture();
  emit(100);
  assert.deepEqual([told, buffer.isHolding], [["100"], false]);
  emit(101, "a");
  emit(101, "b");
  emit(102, "c");
  // Late, and of a block that the tip has: nothing overtakes.
  emit(100, "d");
  assert.deepEqual(told, ["100"]);
  head(0, 101);
  assert.deepEqual(told, ["100"], "one operator alone does not move the tip");
  head(1, 101);
  assert.deepEqual(told, ["100", "a", "b"]);
  head(0, 102);
  head(1, 102);
  assert.deepEqual(told, ["100", "a", "b", "c", "d"]);
  assert.equal(buffer.isHolding, false);
});

test("after one block time its block becomes the tip, and it passes", () => {
  const { runtime, timerWheel, buffer, told, head, emit, served } = createFixture();
  emit(101);
  runtime.advance(600);
  for (const index of [0, 1] as const) head(index, 100);
  emit(102);
  runtime.advance(BLOCK_MS - 610);
  assert.deepEqual(told, []);
  runtime.advance(20);
  assert.deepEqual([told, served()], [["101"], 101]);
  // Each block has its own time.
  runtime.advance(580);
  assert.deepEqual(told, ["101"]);
  runtime.advance(30);
  assert.deepEqual([told, served(), buffer.isHolding], [["101", "102"], 102, false]);
  assert.equal(timerWheel.size, 0);
});

test("without a tip in force everything passes, also what has waited", () => {
  const { runtime, timerWheel, buffer, told, emit, served } = createFixture();
  emit(101);
  runtime.advance(900);
  assert.deepEqual(told, []);
  // Nobody is heard of any more.
  runtime.stall(120_000);
  emit(102);
  assert.deepEqual([told, served()], [["101", "102"], 100]);
  assert.deepEqual([buffer.isHolding, timerWheel.size], [false, 0]);
});

test("where the tip does not count nothing is held", () => {
  const { buffer, told, emit, serve } = createFixture();
  serve(null);
  emit(105);
  assert.deepEqual([told, buffer.isHolding], [["105"], false]);
});

test("another set of providers, or none that counts, lets through what it does not hold", () => {
  const { buffer, told, emit, head, serve, newTracker } = createFixture();
  emit(101);
  serve(newTracker());
  head(0, 100);
  head(1, 100);
  buffer.rebind();
  assert.deepEqual(told, [], "above its tip as well");
  head(0, 101);
  head(1, 101);
  assert.deepEqual(told, ["101"]);
  emit(102);
  serve(null);
  buffer.rebind();
  assert.deepEqual([told, buffer.isHolding], [["101", "102"], false]);
});

test("after a reorganisation while it holds, order is kept and the abandoned block is no tip", () => {
  const { runtime, told, emit, takeBack, served, servedHash } = createFixture();
  emit(101, "log of 101");
  emit(102, "log of 102");
  takeBack("102 taken back");
  emit(101, "log of 101 again", "b");
  runtime.advance(BLOCK_MS + 20);
  assert.deepEqual(told, ["log of 101", "log of 102", "102 taken back", "log of 101 again"]);
  assert.equal(servedHash(), hashOf(101, "b"));
  assert.equal(served(), 101);
});

test("a late log of a lower block does not keep its block from becoming the tip", () => {
  const { runtime, told, emit, served } = createFixture();
  emit(101, "log");
  emit(100, "late log");
  runtime.advance(BLOCK_MS + 20);
  assert.deepEqual([told, served()], [["log", "late log"], 101]);
});

test("what takes back alone passes: it tells of no block", () => {
  const { buffer, told, takeBack } = createFixture();
  takeBack("taken back");
  assert.deepEqual([told, buffer.isHolding], [["taken back"], false]);
});

test("the mark is that of what has passed, and is read once a block", () => {
  const { buffer, marked, emit, head, marksRead } = createFixture();
  emit(101, "a");
  emit(101, "b");
  emit(102, "c");
  assert.deepEqual(marked(), [100]);
  head(0, 101);
  head(1, 101);
  assert.deepEqual(marked(), [100, 101]);
  assert.equal(marksRead(), 2);
  // A late log of a block that the mark has: it says that this block is not complete.
  assert.equal(buffer.mark?.unsureFrom, null);
  emit(101, "d");
  assert.equal(buffer.mark?.unsureFrom, 101);
});

test("what has waited counts from its arrival, and what is closed is gone", () => {
  const { runtime, timerWheel, buffer, told, heardAt, head, emit } = createFixture();
  const atMs = runtime.now();
  emit(101);
  runtime.advance(300);
  head(0, 101);
  head(1, 101);
  assert.deepEqual(heardAt, [atMs]);
  emit(102);
  buffer.close();
  runtime.advance(5_000);
  assert.deepEqual([told, buffer.isHolding, timerWheel.size], [["101"], false, 0]);
});

test("more than a bound is not held: the first goes on", () => {
  const { buffer, told, emit, served } = createFixture();
  const big = "x".repeat(1_000_000);
  for (let number = 101; number < 135; number++) emit(number, big);
  assert.equal(told.length, 1);
  assert.equal(served(), 101);
  buffer.close();
  for (let n = 0; n <= 10_000; n++) emit(200, "y");
  assert.equal(told.length, 10_002);
});

test("a head that its provider takes back before anybody else had it is told to nobody", () => {
  const { buffer, told, head, emit } = createFixture({ areHeads: true });
  head(0, 101, "b");
  emit(101, "wrong", "b");
  head(1, 101);
  assert.deepEqual([told, buffer.isHolding], [[], true]);
  // The provider of the stream follows the other one.
  head(0, 101);
  emit(101, "right");
  assert.deepEqual([told, buffer.isHolding], [["right"], false]);
  head(0, 102);
  emit(102);
  head(1, 102);
  assert.deepEqual(told, ["right", "102"]);
});

test("heads above one that is taken back are told to nobody either", () => {
  const { told, head, emit, buffer } = createFixture({ areHeads: true });
  emit(101, "a101", "a");
  emit(102, "a102", "a");
  emit(101, "b101", "b");
  emit(102, "b102", "b");
  for (const number of [101, 102]) for (const index of [0, 1] as const) head(index, number, "b");
  assert.deepEqual(told, ["b101", "b102"]);
  assert.equal(buffer.isHolding, false);
});

test("a head that its provider keeps is told after a block time, although others have another", () => {
  const { runtime, told, head, emit } = createFixture({ areHeads: true });
  head(0, 101, "b");
  emit(101, "other", "b");
  for (const index of [1, 0] as const) head(index, 101);
  assert.deepEqual(told, []);
  runtime.advance(BLOCK_MS + 50);
  assert.deepEqual(told, ["other"]);
});
