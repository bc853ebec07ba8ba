// A thread in which a rule is switched off: tells how many findings of the kind by which that shows
// there were in the first seed that had some.
import { parentPort, workerData } from "node:worker_threads";
import { RULES, switchOff } from "../../sim/rules-off.ts";

const MOST_SEEDS = 20;
const ANSWERS = 6_000;

const { rule: index, seed: first } = workerData;
const rule = RULES[index];
if (rule === undefined) throw new Error(`there is no rule ${index}`);
switchOff(rule);
// Only what is loaded from now on is without the rule.
const { simulateFaults } = await import("../../sim/cache-simulation.ts");
const { FAULTY_WORLDS } = await import("../../sim/faulty-worlds.ts");

parentPort?.postMessage(shown());

function shown(): string | null {
  if (rule === undefined) return null;
  for (let seed = first; seed < first + MOST_SEEDS; seed++) {
    const { findings, compared } = simulateFaults(seed, FAULTY_WORLDS[rule.world], ANSWERS);
    const { length } = findings[rule.shows];
    if (length > 0)
      return `${length} ${rule.shows} in ${compared} answers (seed ${seed}, ${rule.world})`;
  }
  return null;
}
