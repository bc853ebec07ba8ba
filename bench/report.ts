// Evaluates rounds: medians, ratios, the printed table, and missed targets. Runs nothing.
import { type Cell, TARGETS, type Target } from "./cells.ts";
import type { Round } from "./measure.ts";
import { SYSTEM_NAMES, type SystemName } from "./systems.ts";

/** All rounds of one cell. */
export interface CellRounds {
  readonly cell: Cell;
  /** Arrivals per second; null = closed loop. */
  readonly ratePerSecond: number | null;
  readonly rounds: readonly Round[];
  /** Resident memory of each system before the first request of the cell, MB. */
  readonly startRssMb: ReadonlyMap<SystemName, number>;
}

/** The medians of one system in one cell, over the rounds that count. */
export interface Row {
  readonly system: SystemName;
  readonly kept: number;
  readonly of: number;
  readonly cpuUs: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Latency above `direct` in the same round; null = there is no baseline. */
  readonly addedP50Ms: number | null;
  readonly addedP99Ms: number | null;
  /** CPU per request relative to nginx in the same cell. */
  readonly cpuVsNginx: number | null;
  /** The same relative to nginx with its default buffering, in cells that measure it. */
  readonly cpuVsNginxDefault: number | null;
  readonly rssMb: number;
  readonly peakMb: number;
  /** Peak memory of any round above the memory before the cell, MB. */
  readonly memoryGrowthMb: number;
  readonly amplification: number;
  /** Failed requests in all rounds, including discarded ones. */
  readonly failed: number;
}

/**
 * Rounding tolerance of one upstream call per call; larger deviations in either direction are not
 * allowed.
 */
const AMPLIFICATION_SLACK = 0.0005;

/** The rows of a cell, one per measured system. */
export function rowsOf({ rounds, startRssMb }: CellRounds): readonly Row[] {
  const cpuOf = (name: SystemName): number =>
    median(kept(rounds, name).map((round) => round.cpuUsPerRequest));
  const [nginxUs, defaultUs] = [cpuOf("nginx"), cpuOf("nginx-default")];
  return SYSTEM_NAMES.filter((system) => rounds.some((round) => round.system === system)).map(
    (system) =>
      rowOf(rounds, system, { nginxUs, defaultUs, startRssMb: startRssMb.get(system) ?? 0 }),
  );
}

/**
 * The problems of a cell in words: wrong answers, additional upstream calls, missed targets, or no
 * valid round.
 */
export function complaints(measured: CellRounds): readonly string[] {
  const rows = rowsOf(measured);
  const { name } = measured.cell;
  const found: string[] = [];
  for (const row of rows) {
    if (row.failed > 0)
      found.push(`${name}: ${row.failed} wrong or missing answers through ${row.system}`);
    if (row.kept === 0) found.push(`${name}: no round of ${row.system} counts`);
    else if (row.system === "svc" && Math.abs(row.amplification - 1) > AMPLIFICATION_SLACK) {
      found.push(`${name}: ${row.amplification.toFixed(3)} upstream calls per call, must be 1.00`);
    }
  }
  const svc = rows.find((row) => row.system === "svc");
  if (svc !== undefined)
    for (const target of TARGETS.filter(({ cell }) => cell === name))
      found.push(...missed(svc, target));
  return found;
}

/** The printed table of a cell. */
export function tableOf(measured: CellRounds): string {
  const title =
    measured.ratePerSecond === null
      ? measured.cell.title
      : `${measured.cell.title}: ${Math.round(measured.ratePerSecond)}/s`;
  const header = [
    "system",
    "CPU µs",
    "x nginx",
    "req/s",
    "p50 ms",
    "p99 ms",
    "+p50",
    "+p99",
    "RSS MB",
    "peak MB",
    "ampl.",
    "failed",
    "rounds",
  ];
  const lines = rowsOf(measured).map((row) => [
    row.system,
    row.system === "direct" ? "-" : row.cpuUs.toFixed(1),
    figure(row.cpuVsNginx, 2),
    Math.round(row.requestsPerSecond).toString(),
    row.p50Ms.toFixed(3),
    row.p99Ms.toFixed(3),
    figure(row.addedP50Ms, 3),
    figure(row.addedP99Ms, 3),
    row.system === "direct" ? "-" : row.rssMb.toFixed(0),
    row.system === "direct" ? "-" : row.peakMb.toFixed(0),
    row.amplification.toFixed(3),
    row.failed.toString(),
    `${row.kept}/${row.of}`,
  ]);
  const notes = [
    ...new Set(
      measured.rounds.flatMap((round) =>
        round.discarded === null ? [] : [`  discarded (${round.system}): ${round.discarded}`],
      ),
    ),
  ];
  return [
    `${measured.cell.name}: ${title}`,
    ...[header, ...lines].map((line) => `  ${line.map((text) => text.padStart(8)).join(" ")}`),
    loadLine(measured.rounds),
    ...notes,
  ].join("\n");
}

/** The median; 0 for an empty list. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}

function rowOf(
  rounds: readonly Round[],
  system: SystemName,
  base: { readonly nginxUs: number; readonly defaultUs: number; readonly startRssMb: number },
): Row {
  const all = rounds.filter((round) => round.system === system);
  const good = kept(rounds, system);
  const of = (pick: (round: Round) => number): number => median(good.map(pick));
  const cpuUs = of((round) => round.cpuUsPerRequest);
  return {
    system,
    kept: good.length,
    of: all.length,
    cpuUs,
    requestsPerSecond: of((round) => round.requestsPerSecond),
    p50Ms: of((round) => round.load.p50Ms),
    p99Ms: of((round) => round.load.p99Ms),
    addedP50Ms: added(rounds, system, (round) => round.load.p50Ms),
    addedP99Ms: added(rounds, system, (round) => round.load.p99Ms),
    cpuVsNginx: system === "svc" && base.nginxUs > 0 ? cpuUs / base.nginxUs : null,
    cpuVsNginxDefault: system === "svc" && base.defaultUs > 0 ? cpuUs / base.defaultUs : null,
    rssMb: of((round) => round.rssMb),
    peakMb: Math.max(0, ...good.map((round) => round.peakMb)),
    memoryGrowthMb: Math.max(0, ...all.map((round) => round.peakMb - base.startRssMb)),
    amplification: of((round) => round.amplification),
    failed: all.reduce((total, round) => total + round.load.failed, 0),
  };
}

/**
 * Median over the rounds of the difference to `direct` in the same round, which cancels drift of
 * the machine.
 */
function added(
  rounds: readonly Round[],
  system: SystemName,
  pick: (round: Round) => number,
): number | null {
  if (system === "direct") return null;
  const floor = rounds.filter((round) => round.system === "direct");
  const own = rounds.filter((round) => round.system === system);
  const differences = own.flatMap((round, at) => {
    const base = floor[at];
    return base === undefined || base.discarded !== null || round.discarded !== null
      ? []
      : [pick(round) - pick(base)];
  });
  return differences.length === 0 ? null : median(differences);
}

function missed(row: Row, target: Target): readonly string[] {
  const value = row[target.measure];
  if (value === null || value <= target.max) return [];
  return [
    `${target.cell}: ${target.measure} is ${value.toFixed(2)}, promised at most ${target.max}`,
  ];
}

function kept(rounds: readonly Round[], system: SystemName): readonly Round[] {
  return rounds.filter((round) => round.system === system && round.discarded === null);
}

function loadLine(rounds: readonly Round[]): string {
  const share = (pick: (round: Round) => number): string =>
    SYSTEM_NAMES.map((name) =>
      median(rounds.filter(({ system }) => system === name).map(pick)).toFixed(2),
    ).join("/");
  const { generator, upstream, system, others } = {
    generator: share(({ cores }) => cores.generator),
    upstream: share(({ cores }) => cores.upstream),
    system: share(({ cores }) => cores.system),
    others: share(({ cores }) => cores.others),
  };
  return (
    `  cores used (in that order): system ${system}, generator ${generator}, upstream ` +
    `${upstream}, others on this machine ${others}`
  );
}

function figure(value: number | null, digits: number): string {
  return value === null ? "-" : value.toFixed(digits);
}
