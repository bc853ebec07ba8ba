// Owners by rendezvous hashing: spread evenly, agreed on by all, and moved only where they must be.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ownerAmong } from "../../../src/core/workers/rendezvous.ts";

const KEYS = Array.from({ length: 10_000 }, (_, n) => `profile-${n % 7}/chain-${n}`);
const WORKERS = ["1", "2", "3", "4"];

test("keys are spread evenly, whatever the order of the candidates", () => {
  const counts = new Map<string, number>();
  for (const key of KEYS) {
    const owner = ownerAmong(WORKERS, key) ?? "";
    assert.equal(ownerAmong([...WORKERS].reverse(), key), owner);
    counts.set(owner, (counts.get(owner) ?? 0) + 1);
  }
  for (const id of WORKERS) {
    const share = (counts.get(id) ?? 0) / KEYS.length;
    assert.ok(share > 0.23 && share < 0.27, `${id} owns ${share}`);
  }
});

test("when a candidate leaves, only its keys move, and they come back with it", () => {
  const left = WORKERS.filter((id) => id !== "3");
  for (const key of KEYS) {
    const before = ownerAmong(WORKERS, key);
    const after = ownerAmong(left, key);
    if (before !== "3") assert.equal(after, before);
    else assert.notEqual(after, "3");
  }
});

test("nobody owns anything where there is nobody", () => {
  assert.equal(ownerAmong([], "key"), null);
  assert.equal(ownerAmong(["1"], "key"), "1");
});
