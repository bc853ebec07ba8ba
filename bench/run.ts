// `npm run bench`: measures this service and nginx over the same upstream, interleaved, and
// compares the results with the published targets. `--soak` runs the long memory test. Exit codes:
// 0 all targets met; 1 wrong answers, additional upstream calls or a missed target; 2 wrong usage,
// a missing tool or a system that does not start.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, release, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { measureBatches } from "./batches.ts";
import { measureBudgets } from "./budgets.ts";
import { measureCacheMemory } from "./cache-memory.ts";
import { CELLS, type Cell } from "./cells.ts";
import { startChild } from "./child.ts";
import { measureGathered } from "./gathered.ts";
import { measureHedges } from "./hedges.ts";
import { measureKeyed } from "./keyed.ts";
import { measure, type Rig, type Round, snapshot } from "./measure.ts";
import { releaseCores, separate } from "./pin.ts";
import { memoryMb } from "./procfs.ts";
import { hottest } from "./profile.ts";
import { type CellRounds, complaints, rowsOf, tableOf } from "./report.ts";
import { soak } from "./soak.ts";
import { measureSockets } from "./sockets/run.ts";
import { measureStarts } from "./start.ts";
import { measureStructure } from "./structure.ts";
import { measureSizes } from "./sweep.ts";
import {
  missing,
  nginxVersion,
  SYSTEM_NAMES,
  type System,
  type SystemName,
  startSystem,
} from "./systems.ts";
import { measureWorkers } from "./workers.ts";

interface Options {
  readonly cells: readonly Cell[];
  readonly systems: readonly SystemName[];
  readonly rounds: number;
  readonly seconds: number;
  readonly soak: boolean;
  readonly sockets: boolean;
  readonly keyed: boolean;
  readonly structure: boolean;
  readonly workers: boolean;
  readonly sizes: boolean;
  readonly gathered: boolean;
  readonly hedges: boolean;
  readonly budgets: boolean;
  readonly batches: boolean;
  readonly cacheMemory: boolean;
  readonly start: boolean;
  /** Of what is drawn by chance. */
  readonly seed: number;
  /** Sizes of the sweep; empty = all. */
  readonly sizeBytes: readonly number[];
  readonly minutes: number;
  readonly profile: boolean;
}

const RESULTS_DIR = fileURLToPath(new URL("results/", import.meta.url));
/** Long enough for the JIT compiler to settle; later cells need less. */
const FIRST_WARM_UP_SECONDS = 3;
const WARM_UP_SECONDS = 1;

function usage(problem: string): never {
  process.stderr.write(`${problem}
usage: npm run bench -- [--cell NAME]... [--system direct|nginx|nginx-default|svc]... [--rounds N] [--seconds N] [--cpu-prof]
       npm run bench -- --soak [--minutes N]
       npm run bench -- --sockets [--rounds N] [--seconds N]
       npm run bench -- --keyed [--rounds N] [--seconds N]
       npm run bench -- --structure
       npm run bench -- --workers [--rounds N] [--seconds N]
       npm run bench -- --gathered
       npm run bench -- --hedges [--seconds N] [--seed N]
       npm run bench -- --budgets [--seconds N]
       npm run bench -- --batches [--rounds N] [--seconds N]
       npm run bench -- --cache-memory
       npm run bench -- --start [--rounds N]
       npm run bench -- --sizes [--size BYTES]... [--rounds N] [--seconds N] [--cpu-prof]
cells: ${CELLS.map(({ name }) => name).join(", ")}\n`);
  process.exit(2);
}

function parseOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      cell: { type: "string", multiple: true, default: [] },
      system: { type: "string", multiple: true, default: [] },
      rounds: { type: "string", default: "5" },
      seconds: { type: "string", default: "2.5" },
      soak: { type: "boolean", default: false },
      sockets: { type: "boolean", default: false },
      keyed: { type: "boolean", default: false },
      structure: { type: "boolean", default: false },
      workers: { type: "boolean", default: false },
      sizes: { type: "boolean", default: false },
      gathered: { type: "boolean", default: false },
      hedges: { type: "boolean", default: false },
      budgets: { type: "boolean", default: false },
      batches: { type: "boolean", default: false },
      "cache-memory": { type: "boolean", default: false },
      start: { type: "boolean", default: false },
      seed: { type: "string", default: "1" },
      size: { type: "string", multiple: true, default: [] },
      minutes: { type: "string", default: "10" },
      "cpu-prof": { type: "boolean", default: false },
    },
  });
  const [rounds, seconds, minutes] = [
    Number(values.rounds),
    Number(values.seconds),
    Number(values.minutes),
  ];
  const seed = Number(values.seed);
  if (!Number.isInteger(seed)) usage("--seed is a whole number");
  if (!(rounds >= 1 && seconds > 0 && minutes > 0))
    usage("--rounds, --seconds and --minutes are positive numbers");
  const sizeBytes = values.size.map(Number);
  if (sizeBytes.some((bytes) => !(Number.isInteger(bytes) && bytes >= 200)))
    usage("--size is a whole number of at least 200");
  const unknown = [
    ...values.cell.filter((name) => !CELLS.some((cell) => cell.name === name)),
    ...values.system.filter((name) => !SYSTEM_NAMES.some((known) => known === name)),
  ];
  if (unknown.length > 0) usage(`unknown: ${unknown.join(", ")}`);
  return {
    cells: CELLS.filter(({ name }) => values.cell.length === 0 || values.cell.includes(name)),
    systems: SYSTEM_NAMES.filter(
      (name) => values.system.length === 0 || values.system.includes(name),
    ),
    rounds: Math.ceil(rounds),
    seconds,
    soak: values.soak,
    sockets: values.sockets,
    keyed: values.keyed,
    structure: values.structure,
    workers: values.workers,
    sizes: values.sizes || sizeBytes.length > 0,
    sizeBytes,
    gathered: values.gathered,
    hedges: values.hedges,
    budgets: values.budgets,
    batches: values.batches,
    cacheMemory: values["cache-memory"],
    start: values.start,
    seed,
    minutes,
    profile: values["cpu-prof"],
  };
}

async function compare(options: Options): Promise<number> {
  const absent = options.systems.flatMap((name) => missing(name) ?? []);
  if (absent.length > 0) usage(absent.join("\n"));
  const dir = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const stops: (() => Promise<void>)[] = [];
  try {
    const upstream = startChild("upstream.ts", []);
    stops.push(upstream.stop);
    const load = startChild("load.ts", []);
    stops.push(load.stop);
    const site = {
      dir,
      upstreamPorts: (await snapshot(upstream)).ports,
      nodeFlags: options.profile ? ["--cpu-prof", `--cpu-prof-dir=${dir}`] : [],
    };
    const systems: System[] = [];
    for (const name of options.systems) {
      const system = await startSystem(name, site);
      systems.push(system);
      stops.push(system.stop);
    }
    const measured: CellRounds[] = [];
    for (const cell of options.cells) {
      measured.push(
        await runCell({ upstream, load }, systems, cell, {
          ...options,
          warmUpSeconds: measured.length === 0 ? FIRST_WARM_UP_SECONDS : WARM_UP_SECONDS,
        }),
      );
      process.stdout.write(
        `${tableOf(measured[measured.length - 1] ?? { cell, ratePerSecond: null, rounds: [], startRssMb: new Map() })}\n\n`,
      );
    }
    await stopAll(stops);
    if (options.profile) process.stdout.write(`${hottest(dir)}\n`);
    return conclude(measured, options);
  } finally {
    await stopAll(stops);
    rmSync(dir, { recursive: true, force: true });
  }
}

async function runCell(
  rig: Rig,
  systems: readonly System[],
  cell: Cell,
  plan: Options & { readonly warmUpSeconds: number },
): Promise<CellRounds> {
  const chosen = systems.filter(
    ({ name }) =>
      (name !== "direct" || cell.withDirect) &&
      (name !== "nginx-default" || cell.workload === "large"),
  );
  const closed: Cell = { ...cell, pace: "closed" };
  const startRssMb = new Map(
    chosen.map(({ name, pids }) => [name, pids.reduce((sum, pid) => sum + memoryMb(pid).rss, 0)]),
  );
  for (const system of chosen)
    await measure(rig, system, closed, { seconds: plan.warmUpSeconds, ratePerSecond: null });
  const ratePerSecond =
    cell.pace === "half" ? (await saturation(rig, chosen, closed, plan.seconds)) / 2 : null;
  const pids = chosen.flatMap((system) => system.pids);
  const generators = [rig.upstream.pid, rig.load.pid];
  if (cell.pace === "half" && !separate(pids, generators))
    process.stdout.write(
      "  (no core of its own for the system under test: taskset is missing, or there is one core)\n",
    );
  const rounds: Round[] = [];
  for (let round = 0; round < plan.rounds; round++) {
    const turn = round % chosen.length;
    for (const system of [...chosen.slice(turn), ...chosen.slice(0, turn)])
      rounds.push(await measure(rig, system, cell, { seconds: plan.seconds, ratePerSecond }));
  }
  if (cell.pace === "half") releaseCores([...pids, ...generators]);
  return { cell, ratePerSecond, rounds, startRssMb };
}

/** Requests per second of this service, or of the last system if it is not measured. */
async function saturation(
  rig: Rig,
  systems: readonly System[],
  cell: Cell,
  seconds: number,
): Promise<number> {
  const system = systems.at(-1);
  if (system === undefined) return 0;
  return (await measure(rig, system, cell, { seconds, ratePerSecond: null })).requestsPerSecond;
}

function conclude(measured: readonly CellRounds[], options: Options): number {
  const problems = options.profile ? [] : measured.flatMap(complaints);
  const machine = {
    cpu: cpus()[0]?.model ?? "",
    cores: cpus().length,
    kernel: release(),
    node: process.version,
    nginx: nginxVersion(),
  };
  const cells = measured.map((each) => ({
    ...each,
    startRssMb: Object.fromEntries(each.startRssMb),
    rows: rowsOf(each),
  }));
  mkdirSync(RESULTS_DIR, { recursive: true });
  writeFileSync(
    join(RESULTS_DIR, "latest.json"),
    `${JSON.stringify({ at: new Date().toISOString(), machine, rounds: options.rounds, seconds: options.seconds, problems, cells }, null, 1)}\n`,
  );
  process.stdout.write(
    `${machine.cpu}, ${machine.cores} cores, Linux ${machine.kernel}, Node ${machine.node}, ` +
      `nginx ${machine.nginx}. All rounds: bench/results/latest.json\n`,
  );
  if (options.profile)
    process.stdout.write(
      "Profiled run: the figures above are slowed by the profiler and judge nothing.\n",
    );
  else
    process.stdout.write(
      problems.length === 0
        ? "All answers right, all measured targets met.\n"
        : `${problems.map((problem) => `MISSED ${problem}`).join("\n")}\n`,
    );
  return problems.length === 0 ? 0 : 1;
}

async function stopAll(stops: (() => Promise<void>)[]): Promise<void> {
  for (let stop = stops.pop(); stop !== undefined; stop = stops.pop()) await stop();
}

const options = parseOptions(process.argv.slice(2));
try {
  if (options.sockets) process.exitCode = await measureSockets(options);
  else if (options.structure) process.exitCode = await measureStructure();
  else if (options.gathered) process.exitCode = await measureGathered();
  else if (options.hedges) process.exitCode = await measureHedges(options);
  else if (options.batches) process.exitCode = await measureBatches(options);
  else if (options.budgets) process.exitCode = await measureBudgets(options);
  else if (options.start) process.exitCode = await measureStarts(options.rounds);
  else if (options.cacheMemory) process.exitCode = await measureCacheMemory();
  else if (options.sizes)
    process.exitCode = await measureSizes({ ...options, sizes: options.sizeBytes });
  else if (options.workers) process.exitCode = await measureWorkers(options);
  else if (options.keyed) process.exitCode = await measureKeyed(options);
  else process.exitCode = options.soak ? await soak(options.minutes) : await compare(options);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
