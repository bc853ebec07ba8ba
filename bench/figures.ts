// What the parts of the benchmark measured, as lines of one shape, and the files in
// `bench/results/` that keep them until a page is made. Measures nothing.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, release } from "node:os";
import { join } from "node:path";
import type { Bound } from "./cells.ts";
import { nginxVersion } from "./systems.ts";

/** What one system took, and a second instance of it: their difference is the error. */
export interface Value {
  readonly system: string;
  /** Null = no round counts. */
  readonly value: number | null;
  /** The A/A control; null = there was none. */
  readonly again: number | null;
}

/** One measure of one cell, beside the system that it is compared with. */
export interface Figure {
  readonly cell: string;
  /** What was measured, in words and with its unit. */
  readonly measure: string;
  readonly beside: Value | null;
  readonly of: Value;
  /** The median ratio by round; null = none is told. */
  readonly ratio: number | null;
  readonly bound: Bound | null;
  /** Rounds that count, of how many. */
  readonly rounds: string;
}

/** A round that does not count, and why. */
export interface Discarded {
  readonly cell: string;
  readonly system: string;
  readonly reason: string;
}

/** What one part of the benchmark adds to a page. */
export interface Part {
  /** A word, which names its file. */
  readonly name: string;
  readonly title: string;
  /** How it was measured, in a sentence. */
  readonly method: string;
  readonly figures: readonly Figure[];
  readonly discarded: readonly Discarded[];
}

/** A part with what it was measured of, where and when. */
export interface Results extends Part {
  readonly at: string;
  readonly version: string;
  /** With a `+` where the sources differ from it. */
  readonly commit: string;
  readonly machine: string;
}

const ROOT = join(import.meta.dirname, "..");
export const RESULTS_DIR = join(import.meta.dirname, "results");

/** Keeps a part for the page; `details` are kept in the file and not shown. */
export function saveResults(part: Part, details: object = {}): void {
  const { version, commit } = buildOf(ROOT);
  const results: Results = {
    ...part,
    at: new Date().toISOString(),
    version,
    commit,
    machine: machineName(),
  };
  mkdirSync(RESULTS_DIR, { recursive: true });
  writeFileSync(
    join(RESULTS_DIR, `${part.name}.json`),
    `${JSON.stringify({ ...results, ...details }, null, 1)}\n`,
  );
}

/** The version and commit of a checkout. */
export function buildOf(root: string): { readonly version: string; readonly commit: string } {
  const git = (...args: readonly string[]): string =>
    spawnSync("git", ["-C", root, ...args], { encoding: "utf8" }).stdout?.trim() ?? "";
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly version: string;
  };
  const isChanged = git("status", "--porcelain", "--", "src", "bin", "package-lock.json") !== "";
  const commit = git("rev-parse", "--short=12", "HEAD");
  return { version, commit: `${commit}${isChanged ? "+" : ""}` };
}

/** The machine and the programs that figures depend on. */
export function machineName(): string {
  const all = cpus();
  return (
    `${all[0]?.model ?? "unknown processor"}, ${all.length} cores, Linux ${release()}, ` +
    `Node ${process.version}, nginx ${nginxVersion() ?? "absent"}`
  );
}

/** What is held against the bound of a figure; null = it has none, or no round counts. */
export function judgedValue({ of, beside, ratio, bound }: Figure): number | null {
  const [value, other] = [mean(of), beside === null ? null : mean(beside)];
  switch (bound?.of) {
    case undefined:
      return null;
    case "ratio":
      return ratio;
    case "added":
      return value === null || other === null ? null : value - other;
    case "value":
      return value;
  }
}

/** Whether a figure is within its bound; null = it has none. What no round tells is not. */
export function isMet(figure: Figure): boolean | null {
  if (figure.bound === null) return null;
  const value = judgedValue(figure);
  return value !== null && value <= figure.bound.most;
}

/** A missed bound in words; null = it is met, or there is none. */
export function missedIn(figure: Figure): string | null {
  const { cell, measure, of, beside, bound } = figure;
  if (bound === null || isMet(figure) !== false) return null;
  const value = judgedValue(figure)?.toFixed(2) ?? "not known";
  const beyond = { ratio: ` × ${beside?.system}`, added: ` beyond ${beside?.system}`, value: "" };
  return `${cell}: ${measure} of ${of.system} is ${value}${beyond[bound.of]}, promised at most ${bound.most}`;
}

/**
 * What one instance took in every other round, and in the rounds between: a control where a second
 * instance costs too much.
 */
export function halvesOf(system: string, rounds: readonly number[]): Value {
  const [even, odd] = [0, 1].map((rest) => medianIn(rounds.filter((_, at) => at % 2 === rest)));
  return { system, value: even ?? null, again: odd ?? null };
}

/** A figure whose ratio is that of the medians over all rounds. */
export function figureOf(
  { cell, measure }: Pick<Figure, "cell" | "measure">,
  of: { readonly system: string; readonly rounds: readonly number[] },
  beside: { readonly system: string; readonly rounds: readonly number[] } | null,
  bound: Bound | null,
): Figure {
  return {
    cell,
    measure,
    beside: beside === null ? null : halvesOf(beside.system, beside.rounds),
    of: halvesOf(of.system, of.rounds),
    ratio: ratioOf(medianIn(of.rounds), medianIn(beside?.rounds ?? [])),
    bound,
    rounds: `${of.rounds.length}/${of.rounds.length}`,
  };
}

function ratioOf(value: number | null, other: number | null): number | null {
  return value === null || other === null || other <= 0 ? null : value / other;
}

function medianIn(values: readonly number[]): number | null {
  return values.length === 0 ? null : median(values);
}

/** The median; 0 for an empty list. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}

/** The mean of both instances; null = no round counts. */
function mean({ value, again }: Value): number | null {
  if (value === null || again === null) return value ?? again;
  return (value + again) / 2;
}
