// `npm run bench`: measures this service beside nginx over the same upstream, interleaved, and
// compares the results with the published targets; further modes by name. Exit codes: 0 all targets
// met; 1 wrong answers, additional upstream calls or a missed target; 2 wrong usage, a missing tool
// or a system that does not start; 3 undecided (`--compare`).
import { parseArgs } from "node:util";
import { measureBatches } from "./batches.ts";
import { measureBudgets } from "./budgets.ts";
import { compareBuilds } from "./builds.ts";
import { measureCacheMemory } from "./cache-memory.ts";
import { CELLS, type Cell, systemsOf } from "./cells.ts";
import { measureCells } from "./comparison.ts";
import { measureGathered } from "./gathered.ts";
import { measureHedges } from "./hedges.ts";
import { writePage } from "./page.ts";
import { type Peer, peersIn } from "./peers.ts";
import { soak } from "./soak.ts";
import { measureSockets } from "./sockets/run.ts";
import { measureStarts } from "./start.ts";
import { measureStructure } from "./structure.ts";
import { measureSizes } from "./sweep.ts";
import { missing, SYSTEM_KINDS, type SystemKind } from "./systems.ts";

interface Options {
  readonly cells: readonly Cell[];
  /** Systems to measure; empty = those of each cell. */
  readonly kinds: readonly SystemKind[];
  readonly peers: readonly Peer[];
  readonly rounds: number;
  readonly seconds: number;
  /** Two commits, or one beside the working tree; null = none are compared. */
  readonly range: string | null;
  /** Of what is drawn by chance. */
  readonly seed: number;
  /** Sizes of the sweep; empty = all. */
  readonly sizes: readonly number[];
  readonly minutes: number;
  readonly profile: boolean;
  /** A third of the rounds of a page. */
  readonly quick: boolean;
}

type Mode = (options: Options) => Promise<number>;

/** What is measured in place of the cells, by the option that asks for it. */
const MODES: Readonly<Record<string, Mode>> = {
  publish,
  page: () => print(writePage()),
  sizes: measureSizes,
  batches: measureBatches,
  sockets: measureSockets,
  start: ({ rounds }) => measureStarts(rounds),
  structure: measureStructure,
  gathered: measureGathered,
  hedges: measureHedges,
  budgets: measureBudgets,
  "cache-memory": measureCacheMemory,
  soak: ({ minutes }) => soak(minutes),
};
/** The parts of a page, in order. */
const PUBLISHED: readonly Mode[] = [
  measureCells,
  (plan) => measureSizes({ ...plan, rounds: Math.max(1, Math.floor(plan.rounds / 2)) }),
  measureBatches,
  measureSockets,
  measureCacheMemory,
  ({ quick }) => measureStarts(quick ? 1 : 3),
];
const USUAL = { rounds: 5, seconds: 2.5, sizes: [] };
const FULL = { rounds: 9, seconds: 1, sizes: [] };
const QUICK = { rounds: 3, seconds: 0.7, sizes: [200, 16_384, 65_536, 1_048_576, 8_388_608] };

function usage(problem: string): never {
  process.stderr.write(`${problem}
usage: npm run bench -- [--cell NAME]... [--system NAME]... [--peers DIR] [--rounds N] [--seconds N] [--cpu-prof]
       npm run bench -- --compare BASE[..HEAD] [--cell NAME]... [--seconds N]
       npm run bench -- --publish [--quick] [--peers DIR]
       npm run bench -- --MODE [--rounds N] [--seconds N] [--size BYTES]... [--seed N] [--minutes N] [--cpu-prof]
cells: ${CELLS.map(({ name }) => name).join(", ")}
systems: ${SYSTEM_KINDS.join(", ")}
modes: ${Object.keys(MODES).join(", ")}\n`);
  process.exit(2);
}

function parse(args: readonly string[]) {
  const text = { type: "string" } as const;
  const list = { type: "string", multiple: true } as const;
  const flag = { type: "boolean" } as const;
  const modes = Object.fromEntries(Object.keys(MODES).map((name) => [name, flag]));
  return parseArgs({
    args: [...args],
    options: {
      ...modes,
      cell: list,
      system: list,
      size: list,
      peers: text,
      compare: text,
      rounds: text,
      seconds: text,
      minutes: text,
      seed: text,
      quick: flag,
      "cpu-prof": flag,
    },
  }).values;
}

function optionsOf(values: ReturnType<typeof parse>): Options {
  const { cell = [], system = [], size = [], peers, compare } = values;
  const published = values.quick === true ? QUICK : FULL;
  const usual = Reflect.get(values, "publish") === true ? published : USUAL;
  const rounds = numberOf(values.rounds, usual.rounds);
  const seconds = numberOf(values.seconds, usual.seconds);
  const minutes = numberOf(values.minutes, 10);
  const seed = Number(values.seed ?? 1);
  if (!Number.isInteger(seed)) usage("--seed is a whole number");
  const sizes = size.length > 0 ? size.map(Number) : usual.sizes;
  if (sizes.some((bytes) => !(Number.isInteger(bytes) && bytes >= 200)))
    usage("--size is a whole number of at least 200");
  const cells = CELLS.filter(({ name }) => cell.length === 0 || cell.includes(name));
  const kinds = SYSTEM_KINDS.filter((kind) => system.includes(kind));
  const unknown = [
    ...cell.filter((name) => !CELLS.some((known) => known.name === name)),
    ...system.filter((name) => !SYSTEM_KINDS.some((known) => known === name)),
  ];
  if (unknown.length > 0) usage(`unknown: ${unknown.join(", ")}`);
  return {
    cells,
    kinds,
    peers: peers === undefined ? [] : peersIn(peers),
    rounds: Math.ceil(rounds),
    seconds,
    range: compare ?? null,
    seed,
    sizes,
    minutes,
    profile: values["cpu-prof"] === true,
    quick: values.quick === true,
  };
}

function numberOf(text: string | undefined, otherwise: number): number {
  const number = text === undefined ? otherwise : Number(text);
  return number > 0 ? number : usage("--rounds, --seconds and --minutes are positive numbers");
}

/** Measures all that a page shows, and writes the page. */
async function publish(options: Options): Promise<number> {
  const beganMs = performance.now();
  const codes: number[] = [];
  for (const part of PUBLISHED) codes.push(await part(options).catch(failed));
  await print(writePage());
  process.stdout.write(`${((performance.now() - beganMs) / 60_000).toFixed(1)} minutes\n`);
  return Math.max(...codes);
}

/** A part that cannot be measured leaves the others their page. */
function failed(error: unknown): number {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  return 2;
}

/** The builds of a range, by the cells that were named or else the smallest call. */
function compare(options: Options, range: string): Promise<number> {
  const cells =
    options.cells.length === CELLS.length ? options.cells.filter(isSmall) : options.cells;
  return compareBuilds({ range, cells, seconds: options.seconds });
}

function isSmall({ name }: Cell): boolean {
  return name === "small-64";
}

function print(text: string): Promise<number> {
  process.stdout.write(text);
  return Promise.resolve(0);
}

function main(args: readonly string[]): Promise<number> {
  const values = parse(args);
  const options = optionsOf(values);
  if (options.range !== null) return compare(options, options.range);
  const named = Object.entries(MODES).find(([name]) => Reflect.get(values, name) === true)?.[1];
  if (named !== undefined) return named(options);
  if (values.size !== undefined) return measureSizes(options);
  const needed = options.cells.flatMap(systemsOf);
  const absent = needed.flatMap((kind) => missing(kind) ?? []);
  if (absent[0] !== undefined && options.kinds.length === 0) usage(absent[0]);
  return measureCells(options);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.exitCode = failed(error);
}
