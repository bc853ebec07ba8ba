// `npm run soak`: what takes long to be sure of. First hostile answers: every shape against callers
// who each wait for a secret of their own. Then the continuity of subscriptions over real nodes:
// forces providers to fail during live mining with reorgs, compares with the chain, tries what lies
// past the bounds. Either is left out with 0. With `--outage` nodes are stopped under load instead,
// which takes ten minutes; with `--differential N` that many conversations by chance are compared
// between the HTTP implementations instead; with `--simulated N` subscriptions are simulated with
// that many seeds instead; with `--cluster N` so many seeded schedules of kills, stops and broken
// links are run on nodes that serve together instead, N = 1 that of the seed itself; with `--views
// N` so many reads over five nodes are checked for callers who see the chain go back, and a tenth
// of them with `consistency: off`, which has to show some; with `--sends N` own writes over
// providers that die are simulated with so many seeds; with `--answers N` so many answers of
// simulated nodes at fault are judged, and every rule that makes them right is switched off in
// turn, which has to be noticed; with `--live` as well the nodes are servers and the service is a
// process, with one worker and two, with Redis and without, asked by HTTP and by sockets; with
// `--balancer` the database is cut off from nodes behind the balancer of deploy/, and `--balancer
// N` is its Nth case alone. Exit codes: 0 every promise kept, 1 a breach, 2 wrong usage.
import { parseArgs } from "node:util";
import { seededRandom } from "../fakes/runtime.ts";
import { chanceSeed } from "../fakes/seed.ts";
import { namedSimulations, REACHES, simulateStreams } from "../sim/stream-simulation.ts";
import { play } from "./act.ts";
import type { ActPlan } from "./act-fixture.ts";
import { soakLiveAnswers } from "./answers/live.ts";
import { soakAnswers } from "./answers/simulated.ts";
import { type BoundsCase, tryBounds } from "./bounds.ts";
import { startChain } from "./chain.ts";
import { DATABASE_CUTS, soakBalancer } from "./cluster/balancer-soak.ts";
import type { DatabaseCut } from "./cluster/database-cut.ts";
import { soakCluster } from "./cluster/soak.ts";
import { compareCombinations } from "./differential.ts";
import type { Figures } from "./figures.ts";
import { attack, trustedIdentity, waysOf } from "./foreign.ts";
import { SHAPES } from "./hostile-answers.ts";
import { OUTAGES, outageBreaches, outageRun } from "./outage.ts";
import { faultsOf, tableOf } from "./report.ts";
import { soakSends } from "./views/sends.ts";
import type { Consistency } from "./views/site.ts";
import { soakViews } from "./views/soak.ts";

/** Failovers of one act: each begins with a new service and new listeners. */
const FAILOVERS_PER_ACT = 250;
const PRINTED_EVERY_MS = 5_000;
const MAX_SEED = 2 ** 31;

const CONNECTIONS = 8;

/** Numbers of options that may be named without one. */
const USUAL_NUMBERS: Readonly<Record<string, string>> = {
  "--cluster": "100",
  "--views": "1000000",
  "--sends": "200",
  "--answers": "1000000",
  "--balancer": "all",
};

/** What `--views` is run with; the first is the promise, `off` shows that it can be broken. */
const MODES: Readonly<Record<string, readonly Consistency[]>> = {
  both: ["tip", "off"],
  tip: ["tip"],
  caller: ["caller"],
  off: ["off"],
};

const { values } = parseArgs({
  args: process.argv.slice(2).flatMap((arg, at, args) => {
    const usual = USUAL_NUMBERS[arg];
    return usual === undefined || /^\d+$/.test(args[at + 1] ?? "") ? [arg] : [arg, usual];
  }),
  options: {
    failovers: { type: "string", default: "1000" },
    victims: { type: "string", default: "10000" },
    seed: { type: "string" },
    outage: { type: "boolean", default: false },
    differential: { type: "string", default: "0" },
    simulated: { type: "string", default: "0" },
    cluster: { type: "string", default: "0" },
    views: { type: "string", default: "0" },
    sends: { type: "string", default: "0" },
    answers: { type: "string", default: "0" },
    balancer: { type: "string", default: "none" },
    live: { type: "boolean", default: false },
    consistency: { type: "string", default: "both" },
    nodes: { type: "string", default: "5" },
  },
});
const failovers = Number(values.failovers);
const victims = Number(values.victims);
const conversations = Number(values.differential);
const simulated = Number(values.simulated);
const schedules = Number(values.cluster);
const viewReads = Number(values.views);
const sendSeeds = Number(values.sends);
const answers = Number(values.answers);
const cuts = databaseCuts(values.balancer);
const nodes = Number(values.nodes);
const modes = MODES[values.consistency];
const seed = Number(values.seed ?? chanceSeed());
if (
  ![
    ...[failovers, victims, conversations, simulated, schedules],
    ...[viewReads, sendSeeds, answers, nodes],
  ].every((count) => Number.isInteger(count) && count >= 0) ||
  !Number.isInteger(seed) ||
  modes === undefined ||
  cuts?.length === 0
) {
  process.stderr.write(
    "usage: npm run soak -- [--failovers N] [--victims N] [--seed N] | --outage " +
      "| --differential N [--seed N] | --simulated N [--seed N] " +
      "| --balancer [CASE] [--seed N] " +
      "| --cluster [N] [--seed N] | --sends [N] [--seed N] [--consistency tip|caller|off] " +
      "| --answers [N] [--seed N] [--live] " +
      "| --views [N] [--seed N] [--nodes N] [--consistency tip|caller|off]\n",
  );
  process.exit(2);
}
const random = seededRandom(seed);
process.stdout.write(`seed ${seed}\n`);
process.exitCode = await chosen(modes);

async function chosen(consistencies: readonly Consistency[]): Promise<number> {
  if (viewReads > 0)
    return told(await soakViews({ seed, reads: viewReads, nodes, print }, consistencies));
  if (answers > 0) {
    const soakAll = values.live ? soakLiveAnswers : soakAnswers;
    return told(await soakAll({ seed, answers, print }));
  }
  if (sendSeeds > 0) {
    const [consistency = "tip"] = consistencies;
    return told(await soakSends({ seed, seeds: sendSeeds, consistency, print }));
  }
  if (cuts !== null) {
    const breaches = await soakBalancer(seed, cuts, print);
    return breaches === null ? 0 : told(breaches);
  }
  if (values.outage) return stopNodes();
  if (conversations > 0) return compare();
  if (simulated > 0) return simulate();
  if (schedules > 0) return killNodes();
  return (victims === 0 ? 0 : await attackAll()) || (failovers === 0 ? 0 : await soak());
}

/** The cases that are named: `all`, or one by its number; null = none. */
function databaseCuts(named: string): readonly DatabaseCut[] | null {
  if (named === "none") return null;
  return named === "all" ? DATABASE_CUTS : DATABASE_CUTS.slice(Number(named) - 1, Number(named));
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Prints the breaches of a run; the exit code that they make. */
function told(breaches: readonly string[]): number {
  for (const text of breaches) print(`BREACH ${text}`);
  print(breaches.length === 0 ? "Every promise kept." : `seed ${seed}`);
  return breaches.length === 0 ? 0 : 1;
}

/** Simulated subscriptions, over sockets and polled: the named seeds, and so many by chance. */
async function simulate(): Promise<number> {
  const drawn = Array.from({ length: simulated }, () => Math.floor(random() * MAX_SEED));
  const cases = [
    ...namedSimulations(),
    ...drawn.flatMap((seed) => [false, true].map((omitsLogs) => ({ seed, omitsLogs }))),
  ];
  let breaches = 0;
  for (const { seed, ...options } of cases) {
    for (const reach of REACHES) {
      try {
        await simulateStreams(seed, reach, options);
      } catch (error) {
        breaches++;
        const how = `${reach}, seed ${seed}, ${JSON.stringify(options)}`;
        process.stdout.write(`BREACH (${how}) ${String(error)}\n`);
      }
    }
  }
  process.stdout.write(`${cases.length} × ${REACHES.length} ways: ${breaches} breaches\n`);
  return breaches === 0 ? 0 : 1;
}

/** The same conversations with every combination of the HTTP implementations. */
async function compare(): Promise<number> {
  const {
    conversations: held,
    answers,
    statuses,
    differences,
  } = await compareCombinations(random, conversations);
  for (const [status, count] of statuses) process.stdout.write(`${count} × ${status}\n`);
  for (const difference of differences) process.stdout.write(`BREACH ${difference}\n`);
  const verdict = differences.length === 0 ? "all agree" : `seed ${seed}`;
  process.stdout.write(`${held} conversations, ${answers} answers each: ${verdict}\n`);
  return differences.length === 0 ? 0 : 1;
}

/** Nodes that serve together, under faults. */
async function killNodes(): Promise<number> {
  const drawn = Array.from({ length: schedules }, () => Math.floor(random() * MAX_SEED));
  const { breaches, lines } = await soakCluster(schedules === 1 ? [seed] : drawn, print);
  for (const line of lines) print(line);
  for (const text of breaches) print(`BREACH ${text}`);
  if (breaches.length === 0) print("Every promise kept.");
  return breaches.length === 0 ? 0 : 1;
}

/** Nodes that are stopped and come back. */
async function stopNodes(): Promise<number> {
  const breaches: string[] = [];
  for (const outage of OUTAGES) {
    const { outage: _, ...figures } = await outageRun(outage);
    process.stdout.write(`${outage.name}, ${outage.strategy}: ${JSON.stringify(figures)}\n`);
    breaches.push(...outageBreaches({ outage, ...figures }));
  }
  process.stdout.write(
    breaches.length === 0
      ? "Every promise kept.\n"
      : breaches.map((it) => `BREACH ${it}\n`).join(""),
  );
  return breaches.length === 0 ? 0 : 1;
}

/** Every shape of hostile answer, by each client. */
async function attackAll(): Promise<number> {
  const ways = waysOf(trustedIdentity());
  let breaches = 0;
  for (const shape of SHAPES) {
    for (const way of ways) {
      const { own, failed, played, foreign } = await attack({
        shape,
        way,
        calls: victims,
        connections: CONNECTIONS,
        random,
      });
      breaches += foreign.length;
      process.stdout.write(
        `${way.name}: ${own} own answers, ${failed} failed, ${played} hostile, ${foreign.length} ` +
          `foreign: ${shape.name}\n`,
      );
      for (const it of foreign) process.stdout.write(`BREACH ${it}\n`);
    }
  }
  const verdict = breaches === 0 ? "nobody saw a byte that was not theirs" : `seed ${seed}`;
  process.stdout.write(
    `${SHAPES.length} shapes × ${CONNECTIONS} connections × ${victims} calls × ${ways.length} ` +
      `ways: ${verdict}\n\n`,
  );
  return breaches === 0 ? 0 : 1;
}

async function soak(): Promise<number> {
  // The timers of the nodes' keeper hold no process.
  const held = setInterval(() => {}, PRINTED_EVERY_MS);
  const chain = await startChain((line) => process.stdout.write(`${line}\n`));
  try {
    const acts: Figures[] = [];
    for (let left = failovers; left > 0; left -= FAILOVERS_PER_ACT) {
      const turn = acts.length;
      const manner =
        turn % 2 === 0
          ? ({ strategy: "priority", socketHeads: true } as const)
          : ({ strategy: "load-balanced", socketHeads: false } as const);
      const plan: ActPlan = {
        ...manner,
        failovers: Math.min(left, FAILOVERS_PER_ACT),
        random,
        socketsOnly: turn % 4 === 3,
        onRound: progress(turn),
      };
      process.stdout.write(
        `act ${turn + 1}: ${plan.failovers} failovers, ` +
          `${plan.strategy}${plan.socketsOnly ? ", sockets only" : ""}\n`,
      );
      acts.push(await play(chain, plan));
    }
    const cases: readonly BoundsCase[] = await tryBounds(chain, random);
    const faults = faultsOf(acts, cases);
    process.stdout.write(
      `\n${tableOf(acts, cases)}\n${faults.map((it) => `BREACH ${it}\n`).join("")}${faults.length === 0 ? "Every promise kept.\n" : `seed ${seed}\n`}`,
    );
    return faults.length === 0 ? 0 : 1;
  } catch (error) {
    process.stdout.write(
      `BREACH ${error instanceof Error ? error.stack : String(error)}\nseed ${seed}\n`,
    );
    return 1;
  } finally {
    await chain.close();
    clearInterval(held);
  }
}

function progress(turn: number): ActPlan["onRound"] {
  const startedAt = performance.now();
  let printedAt = startedAt;
  return ({ failovers: forced, breaches }) => {
    if (performance.now() - printedAt < PRINTED_EVERY_MS) return;
    printedAt = performance.now();
    const done = Object.values(forced).reduce((sum, it) => sum + it, 0);
    const bad =
      `${breaches.gaps} gaps, ${breaches.duplicates} duplicates, ${breaches.disorder} order ` +
      "breaks";
    process.stdout.write(
      `act ${turn + 1}, ${Math.round((printedAt - startedAt) / 1_000)} s: ${done} failovers, ` +
        `${bad}\n`,
    );
  };
}
