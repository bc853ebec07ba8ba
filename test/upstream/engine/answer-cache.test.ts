// The memory of kept answers: what was kept comes back as it was or not at all, within its
// bytes, and what is asked for again outlives what is not.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AnswerCache } from "../../../src/upstream/engine/cache/answer-cache.ts";
import {
  type AnswerKey,
  answerKeyOf,
  type KeptFacts,
} from "../../../src/upstream/engine/cache/answer-segment.ts";
import { fakeProvider } from "../../fakes/providers.ts";
import { seededRandom } from "../../fakes/runtime.ts";
import { namedSeed } from "../../fakes/seed.ts";

const FACTS: KeptFacts = {
  trust: { provider: fakeProvider(0), trusted: true },
  isError: false,
  askedAtMs: 0,
  endsAtMs: Number.POSITIVE_INFINITY,
  class: "immutable",
  guard: null,
};

function keyOf(text: string, space = 1): AnswerKey {
  const bytes = Buffer.from(`[${text}]`);
  return answerKeyOf(space, bytes, 1, bytes.length - 1);
}

function keep(cache: AnswerCache, key: string, value: string): void {
  const bytes = Buffer.from(`<${value}>`);
  cache.set(keyOf(key), FACTS, bytes, { start: 1, end: bytes.length - 1 });
}

/** Gives the answer of a key no more. */
function withdraw(cache: AnswerCache, key: AnswerKey): void {
  const kept = cache.get(key);
  if (kept !== null) cache.withdraw(kept);
}

test("what is kept comes back unaltered through thousands of changes, within its bytes", () => {
  const seed = namedSeed(41);
  const random = seededRandom(seed);
  let maxBytes = 400_000;
  const cache = new AnswerCache(() => maxBytes);
  const last = new Map<string, string>();
  let found = 0;
  for (let step = 0; step < 20_000; step++) {
    const key = `k${Math.floor(random() * 400)}`;
    if (step === 10_000) maxBytes = 200_000;
    const kind = random();
    if (kind < 0.5) {
      const value = String(step).repeat(1 + Math.floor(random() * (random() < 0.1 ? 500 : 60)));
      if (cache.hasRoomFor(value.length)) {
        keep(cache, key, value);
        last.set(key, value);
      }
      assert.ok(cache.bytes <= maxBytes, `seed ${seed}, step ${step}: ${cache.bytes} bytes`);
    } else if (kind < 0.55) {
      withdraw(cache, keyOf(key));
      last.delete(key);
      assert.equal(cache.get(keyOf(key)), null);
    } else {
      const kept = cache.get(keyOf(key))?.copy().toString();
      if (kept !== undefined) assert.equal(kept, last.get(key), `seed ${seed}, step ${step}`);
      if (kept !== undefined) found++;
    }
  }
  // Both have happened often, or nothing was shown.
  assert.ok(found > 1_000 && cache.evicted > 500, `${found} found, ${cache.evicted} removed`);
  assert.ok(cache.size > 20 && cache.size <= 400);
});

test("a value takes the place of the one before it, and what is longer a new one", () => {
  const cache = new AnswerCache(() => 1_000_000);
  keep(cache, "head", "0x1234");
  const { bytes } = cache;
  for (let block = 0; block < 10_000; block++) {
    withdraw(cache, keyOf("head"));
    keep(cache, "head", block % 2 === 0 ? "0x12" : "0x5678");
  }
  assert.equal(cache.bytes, bytes);
  assert.equal(cache.size, 1);
  keep(cache, "head", "longer than it was");
  assert.equal(cache.get(keyOf("head"))?.copy().toString(), "longer than it was");
  assert.equal(cache.size, 1);
});

test("what is asked for again stays while everything else is replaced", () => {
  const cache = new AnswerCache(() => 300_000);
  keep(cache, "wanted", "as it was");
  for (let n = 0; n < 5_000; n++) {
    keep(cache, `k${n}`, "x".repeat(1 + (n % 900)));
    assert.equal(cache.get(keyOf("wanted"))?.copy().toString(), "as it was", `after ${n}`);
  }
  assert.ok(cache.evicted > 4_000);
});

test("once it is full, it takes no further memory for what replaces the rest", (t) => {
  const cache = new AnswerCache(() => 4_000_000);
  const random = seededRandom(7);
  const allocations = t.mock.method(Buffer, "allocUnsafeSlow").mock;
  const fill = (turn: number): number => {
    const before = allocations.callCount();
    for (let n = 0; n < 3_000; n++)
      keep(cache, `${turn} ${n}`, "x".repeat(Math.floor(4_000 * random())));
    return allocations.callCount() - before;
  };
  assert.ok(fill(1) > 20);
  const further = [2, 3, 4, 5].map(fill);
  assert.ok(cache.evicted > 10_000 && cache.bytes > 3_500_000);
  assert.ok(
    further.every((count) => count <= 20),
    `segments made each time: ${further}`,
  );
});

test("keys of one hash are told apart, and too many of them are not kept", () => {
  const cache = new AnswerCache(() => 1_000_000);
  const keys = Array.from({ length: 200 }, (_, n) => ({ ...keyOf(`long enough ${n}`), hash: 5 }));
  for (const [n, key] of keys.entries()) {
    const bytes = Buffer.from(`value ${n}`);
    cache.set(key, FACTS, bytes, { start: 0, end: bytes.length });
  }
  const found = keys.map((key) => cache.get(key)?.copy().toString() ?? null);
  assert.equal(cache.size, 64);
  for (const [n, value] of found.entries()) assert.ok(value === null || value === `value ${n}`);
  assert.equal(found.filter((value) => value !== null).length, 64);
  const [first, second] = keys;
  if (first === undefined || second === undefined) return assert.fail();
  assert.equal(cache.get({ ...first, space: 2 }), null);
  withdraw(cache, first);
  assert.equal(cache.get(first), null);
  assert.equal(cache.get(second)?.copy().toString(), "value 1");
});

test("what is known of an answer comes back with it, and is changed with it", () => {
  const cache = new AnswerCache(() => 1_000_000);
  const guard = { number: 7, hash: "0x07", epoch: 3, settles: true };
  const facts: KeptFacts = { ...FACTS, isError: true, askedAtMs: 1.5, class: "block", guard };
  const bytes = Buffer.from("{}");
  const key = keyOf("young");
  cache.set(key, facts, bytes, { start: 0, end: 2 });
  const kept = cache.get(key);
  assert.deepEqual(kept?.facts, facts);
  if (kept === null) return;
  cache.describe(kept, { ...facts, class: "immutable", guard: null });
  assert.deepEqual(cache.get(key)?.facts, { ...facts, class: "immutable", guard: null });
  cache.withdraw(kept);
  assert.equal(cache.get(key), null);
  assert.equal(cache.size, 0);
  assert.equal(cache.evicted, 0);
});
