// The latest changes of a service: the same change of several workers once, in the order of their
// times, bounded, and with a clock that was set back.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChangeEvent } from "../../../src/observe/feed/feed-event.ts";
import { MAX_CHANGES, RecentChanges } from "../../../src/observe/feed/recent-changes.ts";

const NOON_MS = Date.UTC(2026, 10, 23, 12);

function circuitOf(provider: string, atMs: number, worker = "1"): ChangeEvent {
  const at = new Date(atMs).toISOString();
  const about = {
    at,
    worker,
    profile: "team",
    chain: "test",
    provider,
    transport: "http",
  } as const;
  return { type: "circuit", data: { ...about, state: "open", cause: `of ${worker}` } };
}

test("of many changes the latest are kept, by the order of their times", () => {
  const changes = new RecentChanges();
  for (let n = 0; n < 3 * MAX_CHANGES; n++)
    assert.equal(changes.add(circuitOf(`p${n}`, NOON_MS + (n ^ 1) * 1_000)), true);
  const listed = changes.list().map(({ data }) => Date.parse(data.at));
  assert.equal(listed.length, MAX_CHANGES);
  assert.deepEqual(
    listed,
    listed.toSorted((left, right) => right - left),
  );
  assert.equal(listed.at(-1), NOON_MS + 2 * MAX_CHANGES * 1_000);
});

test("after the clock was set back, what happens is kept and told once as before", () => {
  const changes = new RecentChanges();
  for (let n = 0; n < MAX_CHANGES; n++) changes.add(circuitOf("a", NOON_MS + n * 20_000));
  const backMs = NOON_MS - 3_600_000;
  for (let n = 0; n < 5; n++) {
    assert.equal(changes.add(circuitOf("b", backMs + n * 20_000, "1")), true);
    assert.equal(changes.add(circuitOf("b", backMs + n * 20_000 + 300, "2")), false);
  }
  const listed = changes.list();
  assert.equal(listed.length, MAX_CHANGES);
  const isLate = ({ data }: ChangeEvent): boolean => "provider" in data && data.provider === "b";
  assert.equal(listed.filter(isLate).length, 5);
});
