// Simulated subscriptions over misbehaving providers: a few seeds that once failed, and one by
// chance. `npm run soak -- --simulated N` runs N seeds by chance.
import assert from "node:assert/strict";
import { test } from "node:test";
import { seedsBesides } from "../fakes/seed.ts";
import { REACHES, simulateStreams } from "./stream-simulation.ts";

/** Named seeds in every reach, one by chance in one of them. */
function casesOf(
  named: readonly number[],
): readonly (readonly [number, (typeof REACHES)[number]])[] {
  return seedsBesides(...named).flatMap((seed) =>
    REACHES.filter((_, at) => named.includes(seed) || at === seed % REACHES.length).map(
      (reach) => [seed, reach] as const,
    ),
  );
}

/** These showed something once, and have to go on doing so. */
const NAMED = [201, 1_014, 1_150];
const NAMED_STRICT = [7, 1_002];
const NAMED_TIP = [11, 12];

for (const [seed, reach] of casesOf(NAMED)) {
  test(`subscribers are told the chain whole and in order (${reach}, seed ${seed})`, async (t) => {
    const figures = await simulateStreams(seed, reach, { omitsLogs: false });
    t.diagnostic(JSON.stringify(figures));
    const { failovers, filledBlocks, settled } = figures;
    assert.ok(
      !NAMED.includes(seed) || (failovers > 50 && filledBlocks > 50 && settled > 20),
      `seed ${seed} shows too little`,
    );
  });
}

for (const [seed, reach] of casesOf(NAMED_STRICT)) {
  test(
    "under strict no log is missing or delivered twice when providers leave logs out " +
      `(${reach}, seed ${seed})`,
    async (t) => {
      const figures = await simulateStreams(seed, reach, { omitsLogs: true });
      t.diagnostic(JSON.stringify(figures));
      const { missing, agreed, settled } = figures;
      assert.ok(
        !NAMED_STRICT.includes(seed) || (missing > 0 && agreed > 100 && settled > 20),
        `seed ${seed} shows too little`,
      );
    },
  );
}

for (const [seed, reach] of casesOf(NAMED_TIP)) {
  test(
    "nothing above the tip is told, and subscribers are told the chain whole and in order " +
      `(${reach}, seed ${seed})`,
    async (t) => {
      const omitsLogs = seed % 2 === 1;
      const figures = await simulateStreams(seed, reach, { omitsLogs, keepsTip: true });
      t.diagnostic(JSON.stringify(figures));
      const { settled, atTip } = figures;
      assert.ok(
        !NAMED_TIP.includes(seed) || (atTip > 100 && settled > 20),
        `seed ${seed} shows too little`,
      );
    },
  );
}
