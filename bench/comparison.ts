// Measures the cells: starts the systems that they need, two instances of each, puts each in turn
// under the load of the cell, and keeps what they took for the page.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Cell, systemsOf } from "./cells.ts";
import { startChild } from "./child.ts";
import { machineName, saveResults } from "./figures.ts";
import { alone, measure, type Rig, type Round, snapshot, warmUp } from "./measure.ts";
import { type Peer, startPeer } from "./peers.ts";
import { memoryMb } from "./procfs.ts";
import { hottest } from "./profile.ts";
import { type CellRounds, complaints, discardedIn, figuresOf, tableOf } from "./report.ts";
import { PATHS, type Site, type System, type SystemKind, startSystem } from "./systems.ts";

/** What to measure, and for how long. */
export interface Plan {
  readonly cells: readonly Cell[];
  /** Systems to measure; empty = those of each cell. */
  readonly kinds: readonly SystemKind[];
  readonly peers: readonly Peer[];
  readonly rounds: number;
  readonly seconds: number;
  /** True = one instance of each, and a CPU profile; the figures judge nothing then. */
  readonly profile: boolean;
}

/** One instance of a system that takes part in a cell. */
interface Entry {
  readonly name: string;
  readonly instance: 1 | 2;
  readonly start: (site: Site) => Promise<System>;
  /** Tells it from others that run: two cells with the same key share it. */
  readonly key: string;
}

/** An entry that runs, and its rounds in a cell. */
interface Contender {
  readonly entry: Entry;
  readonly system: System;
  /** Whether it runs for the first time, and is cold. */
  readonly isNew: boolean;
  readonly startRssMb: number;
  readonly rounds: Round[];
}

/** A worker has half of the calls, and is compiled far later. */
const FIRST_WARM_UP = { calls: 250_000, seconds: 15 };
const WORKERS_WARM_UP = { calls: 1_500_000, seconds: 60 };
const WARM_UP = { calls: 1, seconds: 1 };

/** Peers are told of plain HTTP to providers alone. */
const PEER_PATHS: readonly string[] = [PATHS.live, PATHS.dead];

/** Measures all cells of a plan; resolves with the exit code. */
export async function measureCells(plan: Plan): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const rig: Rig = { upstream: startChild("upstream.ts", []), load: startChild("load.ts", []) };
  const running = new Running();
  try {
    const nodeFlags = plan.profile ? ["--cpu-prof", `--cpu-prof-dir=${dir}`] : [];
    const site = { dir, upstreamPorts: (await snapshot(rig.upstream)).ports, nodeFlags };
    const cells = plan.cells.filter((cell) => entriesOf(cell, plan).length > 0);
    const measured: CellRounds[] = [];
    for (const [at, cell] of cells.entries()) {
      measured.push(await measureCell({ rig, site, running }, cell, plan));
      process.stdout.write(`${measured.slice(-1).map(tableOf).join("")}\n\n`);
      const later = cells.slice(at + 1).flatMap((next) => entriesOf(next, plan));
      await running.keepOnly(new Set(later.map(({ key }) => key)));
    }
    if (plan.profile) {
      process.stdout.write(`${hottest(dir)}\nProfiled run: the figures above judge nothing.\n`);
      return 0;
    }
    return conclude(measured, plan);
  } finally {
    await running.keepOnly(new Set());
    await Promise.all([rig.load.stop(), rig.upstream.stop()]);
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The instances that take part in a cell, those of the system that is compared with first. */
function entriesOf(cell: Cell, { kinds, peers, profile }: Plan): readonly Entry[] {
  const all: readonly SystemKind[] = [
    ...(cell.withDirect ? ["direct" as const] : []),
    ...systemsOf(cell),
  ];
  const chosen = all.filter((kind) => kinds.length === 0 || kinds.includes(kind));
  const instances = profile ? ([1] as const) : ([1, 2] as const);
  const own = chosen.flatMap((kind) => {
    const start = (site: Site): Promise<System> => startSystem(kind, site);
    const several = kind === "direct" ? ([1] as const) : instances;
    return several.map((instance) => ({ name: kind, instance, start, key: `${kind} ${instance}` }));
  });
  const hasPeers = kinds.length === 0 && PEER_PATHS.includes(cell.path);
  const others = hasPeers && systemsOf(cell)[0] === "nginx" ? peers : [];
  return [
    ...own,
    ...others.flatMap((peer) => {
      const { name } = peer;
      const start = (site: Site): Promise<System> => startPeer(peer, cell.path, site);
      const key = `${name} ${cell.path.replaceAll("/", "_")}`;
      return instances.map((instance) => ({ name, instance, start, key: `${key} ${instance}` }));
    }),
  ];
}

/** The systems that run. */
class Running {
  readonly #systems = new Map<string, System>();

  /** Starts what does not run yet; `isNew` = it was not warmed up. */
  async of(
    entry: Entry,
    site: Site,
  ): Promise<{ readonly system: System; readonly isNew: boolean }> {
    const known = this.#systems.get(entry.key);
    if (known !== undefined) return { system: known, isNew: false };
    const dir = join(site.dir, entry.key.replaceAll(" ", "-"));
    mkdirSync(dir);
    const system = await entry.start({ ...site, dir });
    this.#systems.set(entry.key, system);
    return { system, isNew: true };
  }

  async keepOnly(keys: ReadonlySet<string>): Promise<void> {
    for (const [key, system] of [...this.#systems].filter(([each]) => !keys.has(each))) {
      this.#systems.delete(key);
      await system.stop();
    }
  }
}

async function measureCell(
  { rig, site, running }: { readonly rig: Rig; readonly site: Site; readonly running: Running },
  cell: Cell,
  plan: Plan,
): Promise<CellRounds> {
  const contenders: Contender[] = [];
  for (const entry of entriesOf(cell, plan)) {
    const { system, isNew } = await running.of(entry, site);
    contenders.push({ entry, system, isNew, startRssMb: rssMb(system), rounds: [] });
  }
  for (const { system, isNew } of contenders)
    await warmUp(rig, system, cell, isNew ? firstWarmUp(system) : WARM_UP);
  await alone(
    rig,
    cell,
    contenders.flatMap(({ system }) => system.pids),
    async () => {
      const load = {
        seconds: plan.seconds,
        ratePerSecond: cell.pace === "closed" ? null : cell.pace,
      };
      for (let round = 0; round < plan.rounds; round++) {
        const turn = round % contenders.length;
        for (const { system, rounds } of [...contenders.slice(turn), ...contenders.slice(0, turn)])
          rounds.push(await measure(rig, system, cell, load));
      }
    },
  );
  const series = contenders.map(({ entry, system, startRssMb, rounds }) => ({
    system: entry.name,
    instance: entry.instance,
    isPeer: system.isPeer === true,
    startRssMb,
    rounds,
  }));
  return { cell, series };
}

function firstWarmUp({ name }: System): typeof WARM_UP {
  return name === "svc-workers" ? WORKERS_WARM_UP : FIRST_WARM_UP;
}

function rssMb({ pids }: System): number {
  return pids.reduce((sum, pid) => sum + memoryMb(pid).rss, 0);
}

function conclude(measured: readonly CellRounds[], { rounds, seconds }: Plan): number {
  const problems = measured.flatMap(complaints);
  saveResults(
    {
      name: "cells",
      title: "Calls",
      method: `Cells of \`npm run bench\`: ${rounds} rounds of ${seconds} s for each instance, in turn.`,
      figures: measured.flatMap(figuresOf),
      discarded: measured.flatMap(discardedIn),
    },
    { problems, cells: measured },
  );
  process.stdout.write(`${machineName()}. All rounds: bench/results/cells.json\n`);
  process.stdout.write(
    problems.length === 0
      ? "All answers right, all measured targets met.\n"
      : `${problems.map((problem) => `MISSED ${problem}`).join("\n")}\n`,
  );
  return problems.length === 0 ? 0 : 1;
}
