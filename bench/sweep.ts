// `npm run bench -- --sizes`: measures the cost of an answer by size and framing, compared with
// nginx over the same upstream, interleaved. A second, identical nginx shows the variation between
// two measurements of the same thing. Exit code as in `run.ts`.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Cell } from "./cells.ts";
import { startChild } from "./child.ts";
import { type Figure, median, saveResults } from "./figures.ts";
import { measure, type Rig, type Round, snapshot } from "./measure.ts";
import { hottest } from "./profile.ts";
import { missing, PATHS, type System, startSystem } from "./systems.ts";
import type { AnswerShape } from "./workload.ts";

interface Plan {
  readonly rounds: number;
  readonly seconds: number;
  /** Sizes to measure in bytes; empty = all. */
  readonly sizes: readonly number[];
  /** True = also prints a CPU profile; the figures are not compared with targets then. */
  readonly profile: boolean;
}

/**
 * The cost of one size in one framing: medians over the rounds that count, in µs of CPU per answer.
 */
export interface SizeCost {
  readonly shape: AnswerShape;
  readonly nginxUs: number;
  /** The second nginx relative to the first. */
  readonly controlRatio: number;
  readonly svcUs: number;
  readonly kept: number;
}

/** Every size of the sweep, in bytes. */
export const SIZES: readonly number[] = [
  200, 2_048, 8_192, 16_384, 32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576, 2_097_152,
  8_388_608,
];
/**
 * The targets: cost of any size relative to nginx, and relative to the straight line between the
 * neighbouring sizes.
 */
const MOST_VS_NGINX = 1.7;
const MOST_VS_LINE = 1.25;

const CONNECTIONS = 16;
const FIRST_WARM_UP_SECONDS = 3;
const WARM_UP_SECONDS = 0.5;

/** Runs the sweep; resolves with the exit code. */
export async function measureSizes(plan: Plan): Promise<number> {
  const absent = missing("nginx");
  if (absent !== null) throw new Error(absent);
  const dir = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const stops: (() => Promise<void>)[] = [];
  try {
    const rig: Rig = { upstream: startChild("upstream.ts", []), load: startChild("load.ts", []) };
    stops.push(rig.upstream.stop, rig.load.stop);
    const site = {
      dir,
      upstreamPorts: (await snapshot(rig.upstream)).ports,
      nodeFlags: plan.profile ? ["--cpu-prof", `--cpu-prof-dir=${dir}`] : [],
    };
    const control = join(dir, "control");
    mkdirSync(control);
    const systems = [
      await startSystem("nginx", site),
      await startSystem("nginx", { ...site, dir: control }),
      await startSystem("svc", site),
    ];
    stops.push(...systems.map(({ stop }) => stop));
    const costs: SizeCost[] = [];
    for (const chunked of [false, true]) {
      for (const bytes of plan.sizes.length === 0 ? SIZES : plan.sizes) {
        costs.push(
          await costOf(
            rig,
            systems,
            { bytes, chunked },
            {
              ...plan,
              warmUpSeconds: costs.length === 0 ? FIRST_WARM_UP_SECONDS : WARM_UP_SECONDS,
            },
          ),
        );
      }
    }
    process.stdout.write(`${sizesTable(costs)}\n`);
    if (plan.profile) {
      await systems.at(-1)?.stop();
      process.stdout.write(`${hottest(dir)}\nProfiled run: the figures above judge nothing.\n`);
      return 0;
    }
    saveResults({
      name: "sizes",
      title: "Sizes of answers",
      method:
        `\`npm run bench -- --sizes\`: ${CONNECTIONS} connections in closed loops, ${plan.rounds} ` +
        `rounds of ${plan.seconds} s, in turn. The second value of nginx is of a second instance.`,
      figures: costs.flatMap((cost) => figuresOf(costs, cost)),
      discarded: [],
    });
    const missed = missedSizes(costs);
    process.stdout.write(
      missed.length === 0
        ? "All sizes within their targets.\n"
        : `${missed.map((figure) => `MISSED ${figure}`).join("\n")}\n`,
    );
    return missed.length === 0 ? 0 : 1;
  } finally {
    for (const stop of stops.reverse()) await stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

async function costOf(
  rig: Rig,
  systems: readonly System[],
  shape: AnswerShape,
  plan: Plan & { readonly warmUpSeconds: number },
): Promise<SizeCost> {
  const cell: Cell = {
    name: "",
    title: "",
    workload: "sized",
    path: PATHS.live,
    connections: CONNECTIONS,
    pace: "closed",
    withDirect: false,
    shape,
  };
  const rounds: Round[][] = systems.map(() => []);
  for (const system of systems)
    await measure(rig, system, cell, { seconds: plan.warmUpSeconds, ratePerSecond: null });
  for (let round = 0; round < plan.rounds; round++) {
    for (let turn = 0; turn < systems.length; turn++) {
      const at = (round + turn) % systems.length;
      const system = systems[at];
      if (system !== undefined)
        rounds[at]?.push(
          await measure(rig, system, cell, { seconds: plan.seconds, ratePerSecond: null }),
        );
    }
  }
  const wrong = rounds.flat().find(({ load }) => load.failed > 0);
  if (wrong !== undefined)
    throw new Error(`${nameOf(shape)} through ${wrong.system}: ${wrong.discarded}`);
  // Rounds with a saturated generator count here, because CPU time per answer is judged, not
  // throughput.
  const [nginxUs = 0, controlUs = 0, svcUs = 0] = rounds.map((of) =>
    median(of.map((figures) => figures.cpuUsPerRequest)),
  );
  return {
    shape,
    nginxUs,
    controlRatio: nginxUs === 0 ? 0 : controlUs / nginxUs,
    svcUs,
    kept: plan.rounds,
  };
}

/**
 * Cost relative to the straight line between the neighbouring sizes of the same framing; null for
 * the first and last size.
 */
export function vsLine(costs: readonly SizeCost[], cost: SizeCost): number | null {
  const same = costs.filter(({ shape }) => shape.chunked === cost.shape.chunked);
  const at = same.indexOf(cost);
  const [before, after] = [same[at - 1], same[at + 1]];
  if (before === undefined || after === undefined) return null;
  const share = (cost.shape.bytes - before.shape.bytes) / (after.shape.bytes - before.shape.bytes);
  return cost.svcUs / (before.svcUs + share * (after.svcUs - before.svcUs));
}

/** The missed targets in words. */
export function missedSizes(costs: readonly SizeCost[]): readonly string[] {
  return costs.flatMap((cost) => {
    const [ratio, line] = [cost.svcUs / cost.nginxUs, vsLine(costs, cost)];
    return [
      ...(ratio > MOST_VS_NGINX
        ? [`${nameOf(cost.shape)}: ${ratio.toFixed(2)} × nginx, at most ${MOST_VS_NGINX}`]
        : []),
      ...(line !== null && line > MOST_VS_LINE
        ? [
            `${nameOf(cost.shape)}: ${line.toFixed(2)} × the line between its neighbours, at ` +
              `most ${MOST_VS_LINE}`,
          ]
        : []),
    ];
  });
}

/** The lines of a size on the page. */
function figuresOf(costs: readonly SizeCost[], cost: SizeCost): readonly Figure[] {
  const { shape, nginxUs, controlRatio, svcUs, kept } = cost;
  const [line, rounds] = [vsLine(costs, cost), `${kept}/${kept}`];
  const cpu: Figure = {
    cell: nameOf(shape),
    measure: "CPU µs",
    beside: { system: "nginx", value: nginxUs, again: nginxUs * controlRatio },
    of: { system: "svc", value: svcUs, again: null },
    ratio: svcUs / nginxUs,
    bound: { of: "ratio", most: MOST_VS_NGINX },
    rounds,
  };
  if (line === null) return [cpu];
  const of = { system: "svc", value: line, again: null };
  const bound = { of: "value", most: MOST_VS_LINE } as const;
  const measure = "CPU over the line between its neighbours";
  return [cpu, { cell: nameOf(shape), measure, beside: null, of, ratio: null, bound, rounds }];
}

function sizesTable(costs: readonly SizeCost[]): string {
  const header = ["answer", "nginx µs", "A/A", "svc µs", "x nginx", "x line"];
  const lines = costs.map((cost) => [
    nameOf(cost.shape),
    cost.nginxUs.toFixed(1),
    cost.controlRatio.toFixed(2),
    cost.svcUs.toFixed(1),
    (cost.svcUs / cost.nginxUs).toFixed(2),
    vsLine(costs, cost)?.toFixed(2) ?? "-",
  ]);
  return [header, ...lines]
    .map(
      ([name = "", ...rest]) =>
        `  ${name.padEnd(18)} ${rest.map((text) => text.padStart(9)).join(" ")}`,
    )
    .join("\n");
}

function nameOf({ bytes, chunked }: AnswerShape): string {
  return `${bytes < 1_024 ? `${bytes} B` : `${bytes / 1_024} KiB`}${chunked ? " chunked" : ""}`;
}
