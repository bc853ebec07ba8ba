// Answers through reorganisations where nodes lag, lie, stall, fork, and trail their own sockets:
// nothing is told that an honest node would not have said, no list ends before its range, nothing
// that is there is told as missing, and nothing is kept that must not be. `npm run soak --
// --answers` judges a million, and shows that the oracle finds what happens without each rule.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { namedSeed } from "../fakes/seed.ts";
import { simulateFaults } from "./cache-simulation.ts";
import { FAULTY_WORLDS } from "./faulty-worlds.ts";
import { edited, RULES } from "./rules-off.ts";

const SEED = namedSeed(1);
const ANSWERS = 2_000;
/** Calls that are refused are not compared. */
const LEAST_COMPARED = 0.9 * ANSWERS;

for (const [name, world] of Object.entries(FAULTY_WORLDS)) {
  test(`answers are what a node could truthfully say: ${name} (seed ${SEED})`, (t) => {
    const { findings, ...report } = simulateFaults(SEED, world, ANSWERS);
    t.diagnostic(JSON.stringify(report));
    for (const found of Object.values(findings)) assert.deepEqual(found.slice(0, 3), []);
    assert.ok(report.compared > LEAST_COMPARED);
  });
}

test("each rule can be switched off", () => {
  for (const { file, edits } of RULES) {
    const text = readFileSync(new URL(`../../src/${file}`, import.meta.url), "utf8");
    assert.notEqual(edited(text, edits), text);
  }
});
