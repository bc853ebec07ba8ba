// One round: puts one system under the load of one cell for some seconds, and reads the counters of
// kernel, upstream and generator before and after.
import type { Cell } from "./cells.ts";
import { QUIET_CORES, SATURATED_CORES } from "./cells.ts";
import type { Child } from "./child.ts";
import { type LoadJob, type LoadReport, parseReport } from "./load.ts";
import { releaseCores, separate } from "./pin.ts";
import { cpuUs, machineBusyUs, memoryMb, resetPeak } from "./procfs.ts";
import type { System } from "./systems.ts";
import { parseSnapshot, type UpstreamSnapshot } from "./upstream.ts";
import { callsIn, countedAs } from "./workload.ts";

/** The processes that generate and answer the load. */
export interface Rig {
  readonly upstream: Child;
  readonly load: Child;
}

/** The results of one round. */
export interface Round {
  readonly system: string;
  readonly load: LoadReport;
  /** CPU of the system per right answer, µs; 0 for `direct`. */
  readonly cpuUsPerRequest: number;
  readonly requestsPerSecond: number;
  /** Upstream calls per call of the generator. */
  readonly amplification: number;
  readonly rssMb: number;
  readonly peakMb: number;
  /** CPU use as shares of one core. `others`: all processes outside of the benchmark. */
  readonly cores: {
    readonly system: number;
    readonly generator: number;
    readonly upstream: number;
    readonly others: number;
  };
  /** Why the round is discarded; null = it counts. */
  readonly discarded: string | null;
}

const ANSWER_MS = 30_000;

/** Runs one round; `ratePerSecond` null = closed loop. */
export async function measure(
  rig: Rig,
  system: System,
  cell: Cell,
  load: { readonly seconds: number; readonly ratePerSecond: number | null },
): Promise<Round> {
  const job: LoadJob = {
    port: system.port,
    path: system.path ?? cell.path,
    workload: cell.workload,
    connections: cell.connections,
    ...load,
    ...(cell.shape === undefined ? {} : { shape: cell.shape }),
    ...(system.isPeer === true ? { byMeaning: true } : {}),
  };
  await rig.load.ask({ kind: "job", job }, ANSWER_MS);
  for (const pid of system.pids) resetPeak(pid);
  const before = await sample(rig, system);
  const report = parseReport(await rig.load.ask({ kind: "go" }, ANSWER_MS + load.seconds * 1_000));
  const after = await sample(rig, system);
  return judge(system, cell, report, { before, after });
}

/** Calls in a closed loop until the JIT compiler has settled: so many, within so many seconds. */
export async function warmUp(
  rig: Rig,
  system: System,
  cell: Cell,
  until: { readonly calls: number; readonly seconds: number },
): Promise<void> {
  let calls = 0;
  for (let second = 0; second < until.seconds && calls < until.calls; second++)
    calls += (await measure(rig, system, cell, { seconds: 1, ratePerSecond: null })).load.ok;
}

/** Gives the systems a core of their own while latency is measured. */
export async function alone<T>(
  rig: Rig,
  { pace }: Cell,
  pids: readonly number[],
  run: () => Promise<T>,
): Promise<T> {
  if (pace === "closed") return run();
  const generators = [rig.upstream.pid, rig.load.pid];
  if (!separate(pids, generators))
    process.stdout.write(
      "  (no core of its own for the system under test: taskset is missing, or there is one core)\n",
    );
  try {
    return await run();
  } finally {
    releaseCores([...pids, ...generators]);
  }
}

/** Requests the counters of the upstream. */
export async function snapshot(upstream: Child): Promise<UpstreamSnapshot> {
  return parseSnapshot(await upstream.ask({ kind: "snapshot" }, ANSWER_MS));
}

interface Sample {
  readonly upstream: UpstreamSnapshot;
  readonly systemUs: number;
  readonly ownUs: number;
  readonly machineUs: number;
  readonly rssMb: number;
  readonly peakMb: number;
}

async function sample(rig: Rig, system: System): Promise<Sample> {
  const memory = system.pids.map(memoryMb);
  const own = process.cpuUsage();
  return {
    upstream: await snapshot(rig.upstream),
    systemUs: sum(system.pids.map(cpuUs)),
    ownUs: own.user + own.system,
    machineUs: machineBusyUs(),
    rssMb: sum(memory.map(({ rss }) => rss)),
    peakMb: sum(memory.map(({ peak }) => peak)),
  };
}

function judge(
  system: System,
  cell: Cell,
  load: LoadReport,
  { before, after }: { readonly before: Sample; readonly after: Sample },
): Round {
  const wallUs = load.seconds * 1e6;
  const counted = countedAs(cell.workload);
  const upstreamCalls =
    (after.upstream.calls[counted] ?? 0) - (before.upstream.calls[counted] ?? 0);
  const systemUs = after.systemUs - before.systemUs;
  const upstreamUs = after.upstream.cpuUs - before.upstream.cpuUs;
  const othersUs =
    after.machineUs -
    before.machineUs -
    systemUs -
    upstreamUs -
    load.cpuUs -
    (after.ownUs - before.ownUs);
  const cores = {
    system: systemUs / wallUs,
    generator: load.cpuUs / wallUs,
    upstream: upstreamUs / wallUs,
    others: Math.max(0, othersUs / wallUs),
  };
  return {
    system: system.name,
    load,
    cpuUsPerRequest: load.ok === 0 ? 0 : systemUs / load.ok,
    requestsPerSecond: load.ok / load.seconds,
    amplification: load.sent === 0 ? 0 : upstreamCalls / (load.sent * callsIn(cell.workload)),
    rssMb: after.rssMb,
    peakMb: after.peakMb,
    cores,
    discarded: reason(system, cell, load, cores),
  };
}

/**
 * Why a round is discarded. `direct` is exempt: there the generator or upstream is always the
 * limit.
 */
function reason(
  system: System,
  cell: Cell,
  load: LoadReport,
  cores: Round["cores"],
): string | null {
  if (load.failed > 0)
    return `${load.failed} of ${load.sent} answers were not right: ${load.faults.join(" | ")}`;
  if (load.ok === 0) return "no answer at all";
  if (cell.pace !== "closed" && cores.others >= QUIET_CORES)
    return "other work on this machine: latency not judged";
  if (system.name === "direct") return null;
  if (cores.generator >= SATURATED_CORES) return "the generator was saturated";
  return cores.upstream >= SATURATED_CORES ? "the upstream was saturated" : null;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
