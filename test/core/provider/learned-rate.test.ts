// Rates learned from refusals: halved once a burst, raised a little, forgotten in the end; and a
// provider with a secret limit that is asked for more than it bears.
import assert from "node:assert/strict";
import { test } from "node:test";
import { LearnedRate } from "../../../src/core/provider/budget/learned-rate.ts";
import { seededRandom } from "../../fakes/runtime.ts";
import { namedSeeds } from "../../fakes/seed.ts";

test("a refusal halves the rate at which it came, once a burst", () => {
  const rate = new LearnedRate();
  assert.equal(rate.isBeyond(0), false);
  for (let n = 0; n < 100; n++) rate.count(n * 5);
  rate.refused(500);
  rate.refused(510);
  assert.equal(rate.limit(510), 50);
  assert.equal(rate.isBeyond(510), true, "100 in this second");
  rate.refused(1_500);
  assert.ok((rate.limit(1_500) ?? 0) <= 25);
});

test("it rises a little every second, and is forgotten at twice the rate of the refusal", () => {
  const rate = new LearnedRate();
  for (let n = 0; n < 20; n++) rate.count(0);
  rate.refused(0);
  assert.deepEqual(
    [0, 999, 1_000, 10_000, 30_000].map((ms) => rate.limit(ms)),
    [10, 10, 11, 20, 40],
  );
  assert.equal(rate.limit(31_000), null);
  rate.refused(32_000);
  assert.equal(rate.limit(32_000), 1, "never less than one");
  assert.equal(rate.limit(31_000), null, "a clock that jumped back blocks nothing");
});

for (const seed of namedSeeds(1, 2, 3))
  test(`few are refused by a provider that bears 40 a second of 200 offered (seed ${seed})`, () => {
    const random = seededRandom(seed);
    const rate = new LearnedRate();
    const accepted: number[] = [];
    let sent = 0;
    let refused = 0;
    for (let nowMs = 0; nowMs < 120_000; nowMs += 10 * random()) {
      if (rate.isBeyond(nowMs)) continue;
      sent += 1;
      rate.count(nowMs);
      while ((accepted[0] ?? nowMs) <= nowMs - 1_000) accepted.shift();
      if (accepted.length < 40) accepted.push(nowMs);
      else {
        refused += 1;
        rate.refused(nowMs);
      }
    }
    assert.ok(refused <= 30, `${refused} of ${sent} were refused in two minutes`);
    assert.ok(sent >= 0.6 * 40 * 120, `${sent} sent: most of what it bears is used`);
  });
