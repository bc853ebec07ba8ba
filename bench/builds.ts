// `npm run bench -- --compare BASE` or `BASE..HEAD`: two builds of this service under the same load
// in one run, interleaved with a second instance of the base. Exit codes: 0 not slower, 1 slower, 3
// undecided, 2 as in `run.ts`.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Cell, systemsOf } from "./cells.ts";
import { startChild } from "./child.ts";
import { alone, measure, type Rig, snapshot, warmUp } from "./measure.ts";
import { type Site, type System, startSystem } from "./systems.ts";
import { type Judgement, judge, MOST_ROUNDS, type PairedRound, TOLERANCE } from "./verdict.ts";

interface Plan {
  /** `BASE` (beside the working tree) or `BASE..HEAD`. */
  readonly range: string;
  readonly cells: readonly Cell[];
  readonly seconds: number;
}

/** The checkouts of both builds. */
interface Sources {
  readonly base: string;
  readonly head: string;
}

const ROOT = join(import.meta.dirname, "..");
/** Rounds before all processes are started anew: two processes of one build differ for good. */
const GROUP_ROUNDS = 3;
/** What the compiler has not reached yet may make one process cost thrice another. */
const WARM_UP = { calls: 250_000, seconds: 20 };
/** Where calls are few, waking up for them costs most, and differs from second to second. */
const PACED_SECONDS = 6;
const EXIT_CODES = { passed: 0, worse: 1, undecided: 3, more: 3 } as const;

/** Compares two builds; resolves with the exit code. */
export async function compareBuilds({ range, cells, seconds }: Plan): Promise<number> {
  const dir = mkdtempSync(join(tmpdir(), "svc-builds-"));
  const rig: Rig = { upstream: startChild("upstream.ts", []), load: startChild("load.ts", []) };
  const [from = "", to = ""] = range.split("..");
  const trees: string[] = [];
  try {
    const checkOut = (name: string, commit: string): string => {
      const tree = join(dir, name);
      git(["worktree", "add", "--quiet", "--detach", tree, commit]);
      trees.push(tree);
      symlinkSync(join(ROOT, "node_modules"), join(tree, "node_modules"));
      return tree;
    };
    const sources = { base: checkOut("base", from), head: to === "" ? ROOT : checkOut("head", to) };
    for (const tree of trees) warnOfPackages(tree);
    const { ports } = await snapshot(rig.upstream);
    const codes: number[] = [];
    for (const cell of cells) {
      const site = { dir: join(dir, cell.name), upstreamPorts: ports, nodeFlags: [] };
      const { verdict, ...figures } = await compareIn(cell, { rig, site, sources, seconds });
      process.stdout.write(`${cell.name}: ${lineOf({ verdict, ...figures })}\n`);
      codes.push(EXIT_CODES[verdict]);
    }
    return codes.includes(1) ? 1 : Math.max(0, ...codes);
  } finally {
    await Promise.all([rig.load.stop(), rig.upstream.stop()]);
    for (const tree of trees) git(["worktree", "remove", "--force", tree]);
    rmSync(dir, { recursive: true, force: true });
  }
}

interface Setting {
  readonly rig: Rig;
  readonly site: Site;
  readonly sources: Sources;
  readonly seconds: number;
}

async function compareIn(cell: Cell, setting: Setting): Promise<Judgement> {
  const rounds: PairedRound[] = [];
  for (let tried = 0; ; tried += GROUP_ROUNDS) {
    const left = Math.min(GROUP_ROUNDS, MOST_ROUNDS - tried);
    rounds.push(...(await groupOf(cell, setting, { at: tried / GROUP_ROUNDS, rounds: left })));
    const judged = judge(rounds, tried + left < MOST_ROUNDS);
    process.stdout.write(`  ${cell.name}, ${rounds.length} rounds: ${lineOf(judged)}\n`);
    if (judged.verdict !== "more") return judged;
  }
}

/** Some rounds of processes that were started for them: the base twice, and the build once. */
async function groupOf(
  cell: Cell,
  { rig, site, sources, seconds }: Setting,
  group: { readonly at: number; readonly rounds: number },
): Promise<readonly PairedRound[]> {
  const kind = systemsOf(cell).at(-1) ?? "svc";
  const names = turned(["base", "control", "head"] as const, group.at);
  const systems = new Map<(typeof names)[number], System>();
  try {
    for (const name of names) {
      const dir = join(site.dir, `${group.at}-${name}`);
      mkdirSync(dir, { recursive: true });
      const source = name === "head" ? sources.head : sources.base;
      const system = await startSystem(kind, { ...site, dir, source });
      systems.set(name, system);
      await warmUp(rig, system, cell, WARM_UP);
    }
    const load =
      cell.pace === "closed"
        ? { seconds, ratePerSecond: null }
        : { seconds: Math.max(seconds, PACED_SECONDS), ratePerSecond: cell.pace };
    const round = async (at: number): Promise<readonly PairedRound[]> => {
      const us: Record<string, number> = {};
      for (const [name, system] of turned([...systems], at)) {
        const measured = await measure(rig, system, cell, load);
        if (measured.discarded === null) us[name] = measured.cpuUsPerRequest;
        else process.stdout.write(`  thrown away (${name}): ${measured.discarded}\n`);
      }
      const { base, control, head } = us;
      if (base === undefined || control === undefined || head === undefined) return [];
      return [{ ratios: [head / base, head / control], control: control / base }];
    };
    const pids = systems.values().flatMap((system) => system.pids);
    return await alone(rig, cell, [...pids], async () => {
      const paired: PairedRound[] = [];
      for (let at = 0; at < group.rounds; at++) paired.push(...(await round(at)));
      return paired;
    });
  } finally {
    for (const system of systems.values()) await system.stop();
  }
}

/** Both builds run with the packages of this checkout. */
function warnOfPackages(tree: string): void {
  const lock = (root: string): string => readFileSync(join(root, "package-lock.json"), "utf8");
  if (lock(tree) !== lock(ROOT))
    process.stdout.write(`${tree} locks other packages than those that it is measured with\n`);
}

function turned<T>(values: readonly T[], by: number): readonly T[] {
  const at = by % values.length;
  return [...values.slice(at), ...values.slice(0, at)];
}

function lineOf({ verdict, ratio, control, spread }: Judgement): string {
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  const meaning = {
    passed: `not slower by more than ${percent(TOLERANCE)} beyond the spread`,
    worse: `SLOWER by more than ${percent(TOLERANCE)} beyond the spread`,
    undecided: "UNDECIDED: two runs of the same build differ by too much",
    more: "more rounds are needed",
  }[verdict];
  return `${ratio.toFixed(3)} x the base (A/A ${control.toFixed(3)}, ±${percent(spread)}): ${meaning}`;
}

function git(args: readonly string[]): void {
  const { status, stderr } = spawnSync("git", ["-C", ROOT, ...args], { encoding: "utf8" });
  if (status !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
}
