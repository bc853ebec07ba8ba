// `npm run bench -- --batches`: 64 callers at one provider, with batches and without, and callers
// who send batches themselves, in one process and interleaved: requests that reach the provider,
// and CPU here and there, per request. Exit code as in `run.ts`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CELLS, type Cell } from "./cells.ts";
import { startChild } from "./child.ts";
import { figureOf, median, saveResults } from "./figures.ts";
import { measure, type Rig, snapshot } from "./measure.ts";
import { type Site, type System, startServiceWith } from "./systems.ts";
import { CHAIN_1_PORTS } from "./upstream.ts";
import { BATCH_CALLS, callsIn } from "./workload.ts";

/** What one round cost for each request of a caller: a call, or a batch. */
export interface BatchRound {
  readonly serviceUs: number;
  readonly providerUs: number;
  readonly requests: number;
  readonly callsPerSecond: number;
}

const WARM_UP_SECONDS = 3;
/**
 * The two chains with single calls, and with batches of callers. No more calls are in flight than
 * one provider gets connections (128).
 */
const WAYS = [
  { name: "alone", path: "alone", workload: "small", connections: 64 },
  { name: "together", path: "together", workload: "small", connections: 64 },
  { name: "batch-20", path: "alone", workload: "batch", connections: 6 },
  { name: "batch-20-together", path: "together", workload: "batch", connections: 6 },
  { name: "batch-1000", path: "alone", workload: "long-batch", connections: 4 },
] as const satisfies readonly (Pick<Cell, "path" | "workload" | "connections"> & {
  readonly name: string;
})[];
type Way = (typeof WAYS)[number]["name"];

/** Most CPU of this service for a call of a batch, as a multiple of that of another way. */
const BATCH_TARGETS: readonly {
  readonly way: Way;
  readonly beside: Way;
  readonly most: number;
}[] = [
  { way: "batch-20", beside: "alone", most: 10 / BATCH_CALLS },
  { way: "batch-20-together", beside: "alone", most: 5 / BATCH_CALLS },
  { way: "batch-1000", beside: "batch-20", most: 1 },
];

/** Runs the measurement; resolves with the exit code. */
export async function measureBatches(plan: {
  readonly rounds: number;
  readonly seconds: number;
}): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const stops: (() => Promise<void>)[] = [];
  try {
    const rig: Rig = { upstream: startChild("upstream.ts", []), load: startChild("load.ts", []) };
    stops.push(rig.upstream.stop, rig.load.stop);
    const site = { dir, upstreamPorts: (await snapshot(rig.upstream)).ports, nodeFlags: [] };
    const service = await startServiceWith(site, configOf(site));
    stops.push(service.stop);
    const small = CELLS.find(({ name }) => name === "small-64");
    if (small === undefined) throw new Error("no cell is called small-64");
    const cellOf = ({ path, workload, connections }: (typeof WAYS)[number]): Cell => ({
      ...small,
      path: `/rpc/${path}`,
      workload,
      connections,
    });
    for (const way of WAYS) await measured(rig, service, cellOf(way), WARM_UP_SECONDS);
    const rounds: Record<Way, BatchRound[]> = {
      alone: [],
      together: [],
      "batch-20": [],
      "batch-20-together": [],
      "batch-1000": [],
    };
    for (let round = 0; round < plan.rounds; round++)
      for (const way of round % 2 === 0 ? WAYS : WAYS.toReversed()) {
        const figures = await measured(rig, service, cellOf(way), plan.seconds);
        if (figures !== null) rounds[way.name].push(figures);
      }
    for (const { name } of WAYS)
      process.stdout.write(`  ${name.padEnd(17)} ${lineOf(rounds[name])}\n`);
    for (const target of BATCH_TARGETS) process.stdout.write(`  ${shareLineOf(rounds, target)}\n`);
    save(rounds, plan.seconds);
    const missed = [...missedOf(rounds), ...missedSharesOf(rounds)];
    const lines = missed.map((target) => `MISSED ${target}`).join("\n");
    process.stdout.write(missed.length === 0 ? "Within its targets.\n" : `${lines}\n`);
    return missed.length === 0 ? 0 : 1;
  } finally {
    for (const stop of stops.reverse()) await stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Keeps the figures for the page. */
function save(all: Readonly<Record<Way, readonly BatchRound[]>>, seconds: number): void {
  const figure = (measure: string, what: keyof BatchRound, most: number | null) => {
    const of = (way: Way) => ({ system: way, rounds: all[way].map((round) => round[what]) });
    const bound = most === null ? null : ({ of: "ratio", most } as const);
    return figureOf({ cell: "batches-64", measure }, of("together"), of("alone"), bound);
  };
  saveResults({
    name: "batches",
    title: "Batches to providers",
    method:
      `\`npm run bench -- --batches\`: 64 callers at a provider that takes batches and at one that ` +
      `does not, rounds of ${seconds} s, in turn. Two values are of odd and even rounds.`,
    figures: [
      figure("CPU µs a call", "serviceUs", 1),
      figure("requests a call", "requests", 1),
      figure("CPU µs of the provider a call", "providerUs", null),
    ],
    discarded: [],
  });
}

/** The targets that batches missed. */
export function missedOf({
  alone,
  together,
}: Readonly<Record<"alone" | "together", readonly BatchRound[]>>): readonly string[] {
  if (alone.length === 0 || together.length === 0) return ["no round counts"];
  const cheaper = (what: "serviceUs" | "requests"): boolean =>
    medianOf(together, what) < medianOf(alone, what);
  return [
    ...(medianOf(alone, "requests") > 1.01 ? ["more than one request for a call alone"] : []),
    ...(cheaper("requests") ? [] : ["batches save no requests"]),
    ...(cheaper("serviceUs") ? [] : ["batches cost the service more than single calls"]),
  ];
}

/** The targets of batches of callers that were missed. */
export function missedSharesOf(
  rounds: Readonly<Record<Way, readonly BatchRound[]>>,
): readonly string[] {
  return BATCH_TARGETS.filter((target) => !(shareOf(rounds, target) <= target.most)).map((target) =>
    shareLineOf(rounds, target),
  );
}

type Target = (typeof BATCH_TARGETS)[number];

/** CPU of a call one way over that of a call another way; NaN = no round counts. */
function shareOf(
  rounds: Readonly<Record<Way, readonly BatchRound[]>>,
  { way, beside }: Target,
): number {
  const callUs = (name: Way): number => {
    const workload = WAYS.find((each) => each.name === name)?.workload ?? "small";
    return rounds[name].length === 0
      ? Number.NaN
      : medianOf(rounds[name], "serviceUs") / callsIn(workload);
  };
  return callUs(way) / callUs(beside);
}

function shareLineOf(rounds: Readonly<Record<Way, readonly BatchRound[]>>, target: Target): string {
  const share = shareOf(rounds, target).toFixed(3);
  return `a call of ${target.way}: ${share} × one of ${target.beside} (at most ${target.most})`;
}

function medianOf(rounds: readonly BatchRound[], what: keyof BatchRound): number {
  return median(rounds.map((round) => round[what]));
}

function lineOf(rounds: readonly BatchRound[]): string {
  const of = (what: keyof BatchRound, digits: number): string =>
    medianOf(rounds, what).toFixed(digits);
  return (
    `${of("requests", 3)} requests, ${of("serviceUs", 1)} µs of CPU here and ` +
    `${of("providerUs", 1)} at the provider each, ${of("callsPerSecond", 0)}/s`
  );
}

/** One round; null = it does not count. */
async function measured(
  rig: Rig,
  service: System,
  cell: Cell,
  seconds: number,
): Promise<BatchRound | null> {
  const before = await snapshot(rig.upstream);
  const round = await measure(rig, service, cell, { seconds, ratePerSecond: null });
  const after = await snapshot(rig.upstream);
  // A provider that is busy all the time is no fault here: it is what batches are for.
  if (round.load.failed > 0 || round.load.ok === 0) {
    process.stdout.write(`  a round does not count: ${round.discarded}\n`);
    return null;
  }
  return {
    serviceUs: round.cpuUsPerRequest,
    providerUs: (after.cpuUs - before.cpuUs) / round.load.ok,
    requests: (after.requests - before.requests) / round.load.ok,
    callsPerSecond: round.requestsPerSecond,
  };
}

/** Two chains of one provider each, of which the second is sent batches. */
function configOf({ dir, upstreamPorts }: Site): string {
  const [alone, together] = [upstreamPorts[0], upstreamPorts[CHAIN_1_PORTS]];
  const set = (port: number | undefined, batch: string): string =>
    `{ providers: [{ id: p0, url: "http://127.0.0.1:${port}", archival: true${batch} }] }`;
  return `data_dir: ${JSON.stringify(join(dir, "svc", "data"))}
devnet: false
cache: off
coalesce: off
chains:
  alone: { chain_id: 1, block_time_ms: 12000 }
  together: { chain_id: 2, block_time_ms: 12000 }
profiles:
  public:
    chains:
      alone: ${set(alone, "")}
      together: ${set(together, ", batch: { max: 100 }")}
`;
}
