// `npm run bench -- --keyed`: measures what a key adds to a call (look-up, limits, credit, usage,
// headers), compared with the same call without a key, in one process and interleaved; and how
// often the store is written to meanwhile. Exit code as in `run.ts`.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { CELLS, type Cell } from "./cells.ts";
import { isRecord, startChild } from "./child.ts";
import { measure, type Rig, snapshot } from "./measure.ts";
import { hottest } from "./profile.ts";
import { median } from "./report.ts";
import { type Site, type System, serviceConfig, startServiceWith } from "./systems.ts";

/** Target: µs of CPU that a key adds to a call. */
const MOST_ADDED_US = 3;
const WARM_UP_SECONDS = 3;
/** One per connection. */
const ACCOUNTS = 64;

interface Plan {
  readonly rounds: number;
  readonly seconds: number;
  /** True = also prints a CPU profile; the figures are not compared with targets then. */
  readonly profile: boolean;
}

/** Runs the measurement; resolves with the exit code. */
export async function measureKeyed({ rounds, seconds, profile }: Plan): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const stops: (() => Promise<void>)[] = [];
  try {
    const rig: Rig = { upstream: startChild("upstream.ts", []), load: startChild("load.ts", []) };
    stops.push(rig.upstream.stop, rig.load.stop);
    const site: Site = {
      dir,
      upstreamPorts: (await snapshot(rig.upstream)).ports,
      nodeFlags: profile ? ["--cpu-prof", `--cpu-prof-dir=${dir}`] : [],
    };
    const service = await startServiceWith(site, hostedConfig(site));
    stops.push(service.stop);
    const paths = await keyedPaths(service);
    const cell = CELLS.find(({ name }) => name === "small-64");
    if (cell === undefined) throw new Error("no cell is called small-64");
    if (profile)
      return await profiled(
        service,
        () =>
          measure(
            rig,
            service,
            { ...cell, path: paths.join(" ") },
            { seconds, ratePerSecond: null },
          ),
        dir,
      );
    const kinds: readonly Cell[] = [cell, { ...cell, path: paths.join(" ") }];
    for (const each of kinds)
      await measure(rig, service, each, { seconds: WARM_UP_SECONDS, ratePerSecond: null });
    const costs: number[][] = [[], []];
    for (let round = 0; round < rounds; round++) {
      for (const at of round % 2 === 0 ? [0, 1] : [1, 0]) {
        const figures = await measure(rig, service, kinds[at] ?? cell, {
          seconds,
          ratePerSecond: null,
        });
        if (figures.discarded === null) costs[at]?.push(figures.cpuUsPerRequest);
        else process.stdout.write(`  a round does not count: ${figures.discarded}\n`);
      }
    }
    process.stdout.write(
      spawnSync(process.execPath, [fileURLToPath(new URL("key-memory.ts", import.meta.url))], {
        encoding: "utf8",
      }).stdout,
    );
    return report(
      costs,
      await writesPerSecond(service, { dir, rig, cell: kinds[1] ?? cell }, seconds),
    );
  } finally {
    for (const stop of stops.reverse()) await stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function profiled(
  service: System,
  run: () => Promise<unknown>,
  dir: string,
): Promise<number> {
  await run();
  await service.stop();
  process.stdout.write(`${hottest(dir)}\n`);
  return 0;
}

/** The benchmark's chains with keys, and limits too high to matter. */
export function hostedConfig(site: Site): string {
  const endless = "{ per_second: 1000000, burst: 10000000 }";
  return `${serviceConfig(site)}hosted:
  { enabled: true, keyless: true, keys_per_hour: 100000, starting_grant_cu: 1000000000, buckets: { managed: ${endless}, public: ${endless} } }
`;
}

/** Creates a key for each account; the paths of their calls. */
export async function keyedPaths({ port }: System): Promise<readonly string[]> {
  const paths: string[] = [];
  for (let i = 0; i < ACCOUNTS; i++) {
    const answer: unknown = await (
      await fetch(`http://127.0.0.1:${port}/api/v1/agent/keys`, { method: "POST" })
    ).json();
    if (!isRecord(answer) || typeof answer["key"] !== "string")
      throw new Error(`no key was created: ${JSON.stringify(answer)}`);
    paths.push(`/rpc/k/${answer["key"]}/load-balanced/bench`);
  }
  return paths;
}

/** Writes of usage per second while calls with keys run in a closed loop. */
async function writesPerSecond(
  service: System,
  { dir, rig, cell }: { readonly dir: string; readonly rig: Rig; readonly cell: Cell },
  seconds: number,
): Promise<{ readonly flushes: number; readonly callsPerSecond: number }> {
  const flushes = (): number => {
    const db = new DatabaseSync(join(dir, "svc", "data", "svc.db"), { readOnly: true });
    const row = db.prepare("select sum(flush_seq) as n from node").get();
    db.close();
    return Number(row?.["n"] ?? 0);
  };
  const before = flushes();
  const round = await measure(rig, service, cell, { seconds, ratePerSecond: null });
  return { flushes: (flushes() - before) / seconds, callsPerSecond: round.requestsPerSecond };
}

function report(
  [keyless = [], keyed = []]: readonly (readonly number[])[],
  writes: { readonly flushes: number; readonly callsPerSecond: number },
): number {
  const [without, withKey] = [median(keyless), median(keyed)];
  const added = withKey - without;
  process.stdout.write(`CPU per call without a key ${without.toFixed(1)} µs, with one ${withKey.toFixed(1)} µs: ${added.toFixed(1)} µs added (at most ${MOST_ADDED_US})
${writes.flushes.toFixed(1)} flushes a second at ${Math.round(writes.callsPerSecond)} calls a second of ${ACCOUNTS} accounts\n`);
  const kept = added <= MOST_ADDED_US;
  if (!kept) process.stdout.write("MISSED: what a key adds\n");
  return kept ? 0 : 1;
}
