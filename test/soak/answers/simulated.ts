// A million answers of simulated nodes at fault, each judged by the oracle; then every rule of what
// may be kept, told and joined is switched off in turn, which the same oracle has to notice.
import { Worker } from "node:worker_threads";
import { simulateFaults } from "../../sim/cache-simulation.ts";
import { FAULTY_WORLDS } from "../../sim/faulty-worlds.ts";
import { RULES } from "../../sim/rules-off.ts";

/** What is run. */
export interface AnswerSoak {
  readonly seed: number;
  readonly answers: number;
  readonly print: (line: string) => void;
}

const ANSWERS_PER_RUN = 25_000;

/** Runs both; returns what broke a promise. */
export async function soakAnswers(soak: AnswerSoak): Promise<readonly string[]> {
  return [...judgeAll(soak), ...(await switchAllOff(soak))];
}

function judgeAll({ seed: first, answers, print }: AnswerSoak): readonly string[] {
  const worlds = Object.entries(FAULTY_WORLDS);
  const breaches: string[] = [];
  let compared = 0;
  let seed = first;
  for (; compared < answers; seed++) {
    const [name = "", world = {}] = worlds[(seed - first) % worlds.length] ?? [];
    const size = Math.min(ANSWERS_PER_RUN, answers - compared);
    const { findings, ...report } = simulateFaults(seed, world, size);
    compared += report.compared;
    const counts = Object.entries(findings).map(([finding, { length }]) => `${length} ${finding}`);
    print(`seed ${seed}, ${name}: ${report.compared} answers, ${counts.join(", ")}`);
    for (const [finding, found] of Object.entries(findings))
      if (found[0] !== undefined)
        breaches.push(`${found.length} ${finding} (seed ${seed}, ${name}): ${found[0]}`);
  }
  print(`${compared} answers over ${seed - first} seeds`);
  return breaches;
}

async function switchAllOff({ seed, print }: AnswerSoak): Promise<readonly string[]> {
  const breaches: string[] = [];
  for (const [at, { name, shows }] of RULES.entries()) {
    const shown = await switchOff(at, seed);
    print(`without "${name}": ${shown ?? "nothing is found"}`);
    if (shown === null) breaches.push(`${shows} is not found without "${name}"`);
  }
  return breaches;
}

/** Runs the world of a rule without it; null = the oracle finds nothing. */
async function switchOff(rule: number, seed: number): Promise<string | null> {
  const worker = new Worker(new URL("./without-rule.ts", import.meta.url), {
    workerData: { rule, seed },
  });
  return new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}
