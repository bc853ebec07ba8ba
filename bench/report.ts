// Evaluates the rounds of a cell: medians, ratios, the printed table, and missed targets. Runs
// nothing.
import { type Cell, type MeasureName, TARGETS } from "./cells.ts";
import { type Discarded, type Figure, median, missedIn, type Value } from "./figures.ts";
import type { Round } from "./measure.ts";

/** One instance of a system in one cell. The n-th rounds of all series belong together. */
export interface Series {
  readonly system: string;
  readonly instance: 1 | 2;
  /** Whether somebody else built it, so that nothing is promised of it. */
  readonly isPeer: boolean;
  /** Resident memory before the first request of the cell, MB. */
  readonly startRssMb: number;
  readonly rounds: readonly Round[];
}

/** All rounds of one cell. The series of the system that is compared with comes first. */
export interface CellRounds {
  readonly cell: Cell;
  readonly series: readonly Series[];
}

interface Measure {
  readonly title: string;
  /** What a round says; null = it does not count. */
  readonly read: (round: Round, series: Series, floor: Round | undefined) => number | null;
  readonly summary: (values: readonly number[]) => number;
}

/**
 * Rounding tolerance of one upstream call per call; larger deviations in either direction are not
 * allowed.
 */
const AMPLIFICATION_SLACK = 0.0005;

const MEASURES: Readonly<Record<MeasureName, Measure>> = {
  cpuUs: {
    title: "CPU µs",
    read: (round) => (round.discarded === null ? round.cpuUsPerRequest : null),
    summary: median,
  },
  addedP50Ms: { title: "added p50 ms", read: added("p50Ms"), summary: median },
  addedP95Ms: { title: "added p95 ms", read: added("p95Ms"), summary: median },
  addedP99Ms: { title: "added p99 ms", read: added("p99Ms"), summary: median },
  memoryGrowthMb: {
    title: "most memory beyond the start, MB",
    read: (round, { startRssMb }) => round.peakMb - startRssMb,
    summary: (values) => Math.max(0, ...values),
  },
};

/** The lines of a cell on the page: what each system took beside the first one. */
export function figuresOf(measured: CellRounds): readonly Figure[] {
  const { cell } = measured;
  const [beside, ...others] = systemsIn(measured).filter((system) => system !== "direct");
  if (beside === undefined) return [];
  const subjects = others.length === 0 ? [beside] : others;
  return measuresOf(cell).flatMap((measure) =>
    subjects.map((system) =>
      figureOf(measured, measure, beside === system ? null : beside, system),
    ),
  );
}

/**
 * The problems of a cell in words: wrong answers, additional upstream calls, missed targets, or no
 * valid round.
 */
export function complaints(measured: CellRounds): readonly string[] {
  const { name } = measured.cell;
  const found: string[] = [];
  for (const series of measured.series.filter(({ isPeer }) => !isPeer)) {
    const { system } = series;
    const failed = sum(series.rounds.map(({ load }) => load.failed));
    const kept = keptIn(series);
    if (failed > 0) found.push(`${name}: ${failed} wrong or missing answers through ${system}`);
    if (kept.length === 0) found.push(`${name}: no round of ${system} counts`);
    else if (system.startsWith("svc")) {
      const calls = median(kept.map(({ amplification }) => amplification));
      if (Math.abs(calls - 1) > AMPLIFICATION_SLACK)
        found.push(`${name}: ${calls.toFixed(3)} upstream calls per call, must be 1.00`);
    }
  }
  const missed = figuresOf(measured).flatMap((figure) => missedIn(figure) ?? []);
  return [...new Set([...found, ...missed])];
}

/** The rounds of a cell that do not count. */
export function discardedIn({ cell, series }: CellRounds): readonly Discarded[] {
  return series.flatMap(({ system, rounds }) =>
    rounds.flatMap(({ discarded }) =>
      discarded === null ? [] : [{ cell: cell.name, system, reason: discarded }],
    ),
  );
}

/** The printed table of a cell: a line for each instance of each system. */
export function tableOf(measured: CellRounds): string {
  const header = [
    "system",
    "CPU µs",
    "req/s",
    "p50 ms",
    "p99 ms",
    "+p50",
    "+p95",
    "+p99",
    "RSS MB",
    "peak MB",
    "ampl.",
    "failed",
    "rounds",
    "cores",
  ];
  const figures = figuresOf(measured).map((figure) => `  ${lineOf(figure)}`);
  const notes = [
    ...new Set(
      discardedIn(measured).map(({ system, reason }) => `  discarded (${system}): ${reason}`),
    ),
  ];
  const lines = measured.series.map((series) => seriesLine(measured, series));
  return [
    `${measured.cell.name}: ${measured.cell.title}`,
    ...[header, ...lines].map((line) => `  ${line.map((text) => text.padStart(8)).join(" ")}`),
    ...figures,
    coresLine(measured.series.flatMap(({ rounds }) => rounds)),
    ...notes,
  ].join("\n");
}

/** What is told of a cell: latencies where the floor is known, memory where it is bounded. */
function measuresOf(cell: Cell): readonly MeasureName[] {
  const isBounded = TARGETS.some(
    (target) => target.cell === cell.name && target.measure === "memoryGrowthMb",
  );
  return [
    "cpuUs",
    ...(cell.withDirect ? (["addedP50Ms", "addedP95Ms", "addedP99Ms"] as const) : []),
    ...(isBounded ? (["memoryGrowthMb"] as const) : []),
  ];
}

function figureOf(
  measured: CellRounds,
  measure: MeasureName,
  beside: string | null,
  system: string,
): Figure {
  const own = valuesOf(measured, measure, system);
  const others = beside === null ? [] : valuesOf(measured, measure, beside);
  const ratios = meansByRound(own).flatMap((value, round) => {
    const other = meansByRound(others)[round] ?? null;
    return value === null || other === null || other <= 0 ? [] : [value / other];
  });
  const target = TARGETS.find(
    (each) =>
      each.cell === measured.cell.name && each.system === system && each.measure === measure,
  );
  const isJudged = target !== undefined && (target.of === "value" || beside !== null);
  const all = [...own, ...others].flat();
  return {
    cell: measured.cell.name,
    measure: MEASURES[measure].title,
    beside: beside === null ? null : summaryOf(beside, measure, others),
    of: summaryOf(system, measure, own),
    ratio: measure === "cpuUs" && ratios.length > 0 ? median(ratios) : null,
    bound: isJudged ? { of: target.of, most: target.most } : null,
    rounds: `${all.filter((value) => value !== null).length}/${all.length}`,
  };
}

/** What each instance of a system took in each round; null = the round does not count. */
function valuesOf(
  { series }: CellRounds,
  measure: MeasureName,
  system: string,
): readonly (readonly (number | null)[])[] {
  const floor = series.find((each) => each.system === "direct")?.rounds ?? [];
  return series
    .filter((each) => each.system === system)
    .map((each) => each.rounds.map((round, at) => MEASURES[measure].read(round, each, floor[at])));
}

function summaryOf(
  system: string,
  measure: MeasureName,
  instances: readonly (readonly (number | null)[])[],
): Value {
  const [value = null, again = null] = instances.map((values) => {
    const kept = values.flatMap((each) => each ?? []);
    return kept.length === 0 ? null : MEASURES[measure].summary(kept);
  });
  return { system, value, again };
}

function meansByRound(
  instances: readonly (readonly (number | null)[])[],
): readonly (number | null)[] {
  return (instances[0] ?? []).map((_, round) => {
    const kept = instances.flatMap((values) => values[round] ?? []);
    return kept.length === 0 ? null : sum(kept) / kept.length;
  });
}

/** Latency beyond that of `direct` in the same round, which cancels drift of the machine. */
function added(quantile: "p50Ms" | "p95Ms" | "p99Ms"): Measure["read"] {
  return (round, _series, floor) =>
    floor === undefined || floor.discarded !== null || round.discarded !== null
      ? null
      : round.load[quantile] - floor.load[quantile];
}

function systemsIn({ series }: CellRounds): readonly string[] {
  return [...new Set(series.map(({ system }) => system))];
}

function keptIn({ rounds }: Series): readonly Round[] {
  return rounds.filter(({ discarded }) => discarded === null);
}

function lineOf({ measure, of, beside, ratio, bound }: Figure): string {
  const parts = [
    `${measure}: ${valueText(of)}`,
    ...(beside === null ? [] : [`beside ${valueText(beside)}`]),
    ...(ratio === null ? [] : [`= ${ratio.toFixed(2)} x`]),
    ...(bound === null ? [] : [`(at most ${bound.most})`]),
  ];
  return parts.join(" ");
}

function valueText({ system, value, again }: Value): string {
  const text = `${system} ${value?.toFixed(3) ?? "-"}`;
  return again === null ? text : `${text} (A/A ${again.toFixed(3)})`;
}

function seriesLine(measured: CellRounds, series: Series): readonly string[] {
  const kept = keptIn(series);
  const of = (pick: (round: Round) => number): number => median(kept.map(pick));
  const isDirect = series.system === "direct";
  const own = { ...measured, series: measured.series.filter(({ system }) => system === "direct") };
  const latency = (measure: MeasureName): string => {
    const values = valuesOf({ ...own, series: [...own.series, series] }, measure, series.system);
    const told = values.flat().flatMap((value) => value ?? []);
    return isDirect || told.length === 0 ? "-" : median(told).toFixed(3);
  };
  return [
    `${series.system}${series.instance === 2 ? " A/A" : ""}`,
    isDirect ? "-" : of((round) => round.cpuUsPerRequest).toFixed(1),
    Math.round(of((round) => round.requestsPerSecond)).toString(),
    of((round) => round.load.p50Ms).toFixed(3),
    of((round) => round.load.p99Ms).toFixed(3),
    latency("addedP50Ms"),
    latency("addedP95Ms"),
    latency("addedP99Ms"),
    isDirect ? "-" : of((round) => round.rssMb).toFixed(0),
    isDirect ? "-" : Math.max(0, ...kept.map(({ peakMb }) => peakMb)).toFixed(0),
    of((round) => round.amplification).toFixed(3),
    sum(series.rounds.map(({ load }) => load.failed)).toString(),
    `${kept.length}/${series.rounds.length}`,
    of((round) => round.cores.system).toFixed(2),
  ];
}

function coresLine(rounds: readonly Round[]): string {
  const share = (pick: (round: Round) => number): string => median(rounds.map(pick)).toFixed(2);
  return (
    `  cores used by the generator ${share(({ cores }) => cores.generator)}, the upstream ` +
    `${share(({ cores }) => cores.upstream)}, others on this machine ` +
    `${share(({ cores }) => cores.others)}`
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
