// `npm run bench -- --workers`: CPU and memory of the service with one process and with a
// supervisor and two workers, interleaved in both orders, beside nginx with one and two workers.
// Exit code as in `run.ts`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CELLS } from "./cells.ts";
import { startChild } from "./child.ts";
import { measure, type Round, snapshot } from "./measure.ts";
import { childPids } from "./procfs.ts";
import {
  nginxVersion,
  type Site,
  type System,
  serviceConfig,
  startNginxWith,
  startServiceWith,
} from "./systems.ts";

/** CPU per request with two workers, compared with one process. */
const MOST_CPU = 1.05;
const WARM_UP_SECONDS = 2;
/**
 * A worker has half of the calls, and is compiled as late again: after 2 s, two of them cost up to
 * 1.2 times as much as one process for the next 20 s.
 */
const SERVICE_WARM_UP_SECONDS = 45;

interface Contender {
  readonly name: string;
  readonly system: System;
  readonly rounds: Round[];
}

/** Runs the measurement; resolves with the exit code. */
export async function measureWorkers(options: {
  readonly rounds: number;
  readonly seconds: number;
}): Promise<number> {
  const cell = CELLS.find(({ name }) => name === "small-64");
  if (cell === undefined) throw new Error("no cell small-64");
  const dir = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const stops: (() => Promise<void>)[] = [];
  try {
    const rig = { upstream: startChild("upstream.ts", []), load: startChild("load.ts", []) };
    stops.push(rig.upstream.stop, rig.load.stop);
    const { ports } = await snapshot(rig.upstream);
    const contenders: Contender[] = [];
    for (const [name, start] of startersOf({ dir, upstreamPorts: ports, nodeFlags: [] })) {
      const started = await start();
      stops.push(started.stop);
      const main = started.pids[0] ?? 0;
      const system = { ...started, pids: [main, ...childPids(main)] };
      contenders.push({ name, system, rounds: [] });
      const seconds = name.startsWith("svc") ? SERVICE_WARM_UP_SECONDS : WARM_UP_SECONDS;
      await measure(rig, system, cell, { seconds, ratePerSecond: null });
    }
    const load = { seconds: options.seconds, ratePerSecond: null };
    for (let round = 0; round < options.rounds; round++)
      for (const { system, rounds } of round % 2 === 0 ? contenders : contenders.toReversed())
        rounds.push(await measure(rig, system, cell, load));
    return report(contenders);
  } finally {
    for (const stop of stops.reverse()) await stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

type Starter = readonly [name: string, start: () => Promise<System>];

function startersOf(site: Site): readonly Starter[] {
  const service = (workers: number): Starter => [
    `svc, ${workers}`,
    () => {
      const dir = join(site.dir, `svc-${workers}`);
      const own = { ...site, dir };
      return startServiceWith(own, `${serviceConfig(own)}server: { workers: ${workers} }\n`);
    },
  ];
  const nginx = (workers: number): Starter => [
    `nginx, ${workers}`,
    () => startNginxWith("nginx", { ...site, dir: join(site.dir, `nginx-${workers}`) }, workers),
  ];
  return [service(1), service(2), ...(nginxVersion() === null ? [] : [nginx(1), nginx(2)])];
}

function report(contenders: readonly Contender[]): number {
  process.stdout.write(
    "| processes that serve | CPU a request, µs (each round) | requests/s | memory, MB |\n" +
      "|---|---|---|---|\n",
  );
  for (const { name, system, rounds } of contenders) {
    const cpu = rounds.map(({ cpuUsPerRequest }) => cpuUsPerRequest);
    const rate = median(rounds.map(({ requestsPerSecond }) => requestsPerSecond));
    const memory = median(rounds.map(({ rssMb }) => rssMb));
    process.stdout.write(
      `| ${name} (${system.pids.length} processes) | ${median(cpu).toFixed(1)} ` +
        `(${cpu.map((us) => us.toFixed(1)).join(", ")}) | ${rate.toFixed(0)} | ` +
        `${memory.toFixed(0)} |\n`,
    );
  }
  const [one, two] = contenders.map(({ rounds }) =>
    median(rounds.map(({ cpuUsPerRequest }) => cpuUsPerRequest)),
  );
  const ratio = (two ?? 0) / (one ?? 1);
  const isWrong = contenders.some(({ rounds }) => rounds.some(({ load }) => load.ok === 0));
  process.stdout.write(`two workers cost ${ratio.toFixed(3)} × the CPU of one process a request\n`);
  return ratio <= MOST_CPU && !isWrong ? 0 : 1;
}

function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
