// Simulated subscriptions over misbehaving providers: a few seeds that once failed, and one by
// chance. `npm run soak -- --simulated N` runs N by chance, and the named ones in every reach.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chosenSeed, seedsBesides } from "../fakes/seed.ts";
import { NAMED_SEEDS, REACHES, simulateStreams } from "./stream-simulation.ts";

/** Seeds that showed something once, and have to go on doing so. */
const { plain: NAMED, strict: NAMED_STRICT, tip: NAMED_TIP } = NAMED_SEEDS;

/**
 * Every reach once, by the named seeds in turn, and one seed by chance. A named seed that is chosen
 * by `SVC_SEED` plays in every reach, as in `npm run soak -- --simulated N`.
 */
function casesOf(
  named: readonly number[],
): readonly (readonly [number, (typeof REACHES)[number]])[] {
  const plays = (seed: number, at: number): boolean => {
    const turn = named.indexOf(seed);
    if (turn === -1) return at === seed % REACHES.length;
    return chosenSeed() !== null || at % named.length === turn;
  };
  return seedsBesides(...named).flatMap((seed) =>
    REACHES.filter((_, at) => plays(seed, at)).map((reach) => [seed, reach] as const),
  );
}

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
