// The window of one second, against a list of all times: never more than the limit in any second,
// and no later than needed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { SecondWindow } from "../../../src/core/provider/budget/second-window.ts";
import { seededRandom } from "../../fakes/runtime.ts";
import { namedSeeds } from "../../fakes/seed.ts";

const SLOT_MS = 1_000 / 64;
/** So much more than a second the window reaches back: requests are held up on their way. */
const JITTER_MS = 4 * SLOT_MS;

for (const seed of namedSeeds(1, 2, 3, 4))
  test(`no second holds more than the limit (seed ${seed})`, () => {
    const random = seededRandom(seed);
    const limit = 1 + Math.floor(random() * 60);
    const window = new SecondWindow();
    const sentAt: number[] = [];
    let nowMs = 5_000 * random();
    for (let n = 0; n < 5_000; n++) {
      nowMs += random() < 0.02 ? 900 * random() : 8 * random();
      const exact = sentAt.filter((at) => at > nowMs - 1_000).length;
      const counted = window.sentWithin(nowMs);
      assert.ok(counted >= exact, "it counts at least what the second holds");
      assert.ok(
        counted <= sentAt.filter((at) => at > nowMs - 1_000 - JITTER_MS - 2 * SLOT_MS).length,
        "and nothing that is older than the jitter and a slot more",
      );
      if (counted >= limit) continue;
      window.count(1, nowMs);
      sentAt.push(nowMs);
    }
    // However each of them is held up, by less than the jitter, no second sees more arrive.
    const arrivedAt = sentAt.map((at) => at + JITTER_MS * random()).sort((a, b) => a - b);
    for (const times of [sentAt, arrivedAt])
      for (const [n, at] of times.entries())
        assert.ok(
          !(at - (times[n - limit] ?? Number.NEGATIVE_INFINITY) < 1_000),
          `second at ${at}`,
        );
  });

test("the wait for room is exact to a slot", () => {
  const window = new SecondWindow();
  for (const at of [0, 100, 200]) window.count(1, at);
  assert.equal(window.roomInMs(4, 200), 0);
  const waitMs = window.roomInMs(3, 200) ?? assert.fail();
  assert.ok(
    waitMs >= 800 + JITTER_MS - SLOT_MS && waitMs <= 800 + JITTER_MS + SLOT_MS,
    `${waitMs}`,
  );
  assert.equal(window.sentWithin(200 + waitMs - 1), 3);
  assert.equal(window.sentWithin(200 + waitMs), 2);
  assert.equal(window.roomInMs(0, 200), null);
});

test("a clock that jumps empties the window once, and never blocks it", () => {
  const window = new SecondWindow();
  window.count(5, 1_000_000);
  assert.equal(window.sentWithin(1_000_000 - 100), 5);
  assert.equal(window.sentWithin(1_000), 0);
  window.count(1, 1_000);
  assert.equal(window.sentWithin(10_000_000), 0);
});
