// `npm run bench -- --batches`: 64 callers at one provider, with batches and without, in one
// process and interleaved: requests that reach the provider, and CPU here and there, per call. Exit
// code as in `run.ts`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CELLS, type Cell } from "./cells.ts";
import { startChild } from "./child.ts";
import { measure, type Rig, snapshot } from "./measure.ts";
import { median } from "./report.ts";
import { type Site, type System, startServiceWith } from "./systems.ts";
import { CHAIN_1_PORTS } from "./upstream.ts";

/** What one round cost for each call. */
export interface BatchRound {
  readonly serviceUs: number;
  readonly providerUs: number;
  readonly requests: number;
  readonly callsPerSecond: number;
}

const WARM_UP_SECONDS = 3;
const WAYS = ["alone", "together"] as const;
type Way = (typeof WAYS)[number];

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
    const cellOf = (way: Way): Cell => ({ ...small, path: `/rpc/${way}` });
    for (const way of WAYS) await measured(rig, service, cellOf(way), WARM_UP_SECONDS);
    const rounds: Record<Way, BatchRound[]> = { alone: [], together: [] };
    for (let round = 0; round < plan.rounds; round++)
      for (const way of round % 2 === 0 ? WAYS : WAYS.toReversed()) {
        const figures = await measured(rig, service, cellOf(way), plan.seconds);
        if (figures !== null) rounds[way].push(figures);
      }
    for (const way of WAYS) process.stdout.write(`  ${way.padEnd(8)} ${lineOf(rounds[way])}\n`);
    const missed = missedOf(rounds);
    const lines = missed.map((target) => `MISSED ${target}`).join("\n");
    process.stdout.write(missed.length === 0 ? "Within its targets.\n" : `${lines}\n`);
    return missed.length === 0 ? 0 : 1;
  } finally {
    for (const stop of stops.reverse()) await stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The targets that batches missed. */
export function missedOf({
  alone,
  together,
}: Readonly<Record<Way, readonly BatchRound[]>>): readonly string[] {
  if (alone.length === 0 || together.length === 0) return ["no round counts"];
  const cheaper = (what: "serviceUs" | "requests"): boolean =>
    medianOf(together, what) < medianOf(alone, what);
  return [
    ...(medianOf(alone, "requests") > 1.01 ? ["more than one request for a call alone"] : []),
    ...(cheaper("requests") ? [] : ["batches save no requests"]),
    ...(cheaper("serviceUs") ? [] : ["batches cost the service more than single calls"]),
  ];
}

function medianOf(rounds: readonly BatchRound[], what: keyof BatchRound): number {
  return median(rounds.map((round) => round[what]));
}

function lineOf(rounds: readonly BatchRound[]): string {
  const of = (what: keyof BatchRound, digits: number): string =>
    medianOf(rounds, what).toFixed(digits);
  return (
    `${of("requests", 3)} requests a call, ${of("serviceUs", 1)} µs of CPU here and ` +
    `${of("providerUs", 1)} at the provider, ${of("callsPerSecond", 0)} calls/s`
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
