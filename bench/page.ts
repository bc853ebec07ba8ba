// The page of figures of a release: made from `bench/results/`, and from nothing else.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bound } from "./cells.ts";
import { buildOf, type Figure, isMet, RESULTS_DIR, type Results, type Value } from "./figures.ts";

const ROOT = join(import.meta.dirname, "..");
const PAGES_DIR = join(import.meta.dirname, "figures");
const SIGNIFICANT_DIGITS = 3;
/** Parts in this order; others follow by name. */
const ORDER = ["cells", "sizes", "batches", "sockets", "cache", "start"];

/** Writes the page of this version; returns what it says about itself. */
export function writePage(): string {
  const { version, commit } = buildOf(ROOT);
  const all = readdirSync(RESULTS_DIR)
    .filter((file) => file.endsWith(".json"))
    .map((file) => JSON.parse(readFileSync(join(RESULTS_DIR, file), "utf8")) as Results);
  const own = all.filter((results) => results.commit === commit);
  const others = all.filter((results) => !own.includes(results));
  if (own.length === 0) return `bench/results/ has nothing of ${commit}: no page.\n`;
  mkdirSync(PAGES_DIR, { recursive: true });
  writeFileSync(join(PAGES_DIR, `${version}.md`), pageOf(own));
  writeFileSync(join(PAGES_DIR, "README.md"), indexOf(readdirSync(PAGES_DIR)));
  return [
    `bench/figures/${version}.md: ${own.map(({ name }) => name).join(", ")}`,
    ...others.map((other) => `left out, since it is of ${other.commit}: ${other.name}`),
    "",
  ].join("\n");
}

/** The list of all pages, the newest version first. */
export function indexOf(files: readonly string[]): string {
  const versions = files
    .filter((file) => /^\d.*\.md$/.test(file))
    .map((file) => file.slice(0, -".md".length))
    .sort((a, b) => b.localeCompare(a, "en", { numeric: true }));
  return `# Figures by release

Written by \`npm run bench -- --publish\`. [How they are measured](../README.md).

${versions.map((version) => `- [${version}](${version}.md)`).join("\n") || "No page yet."}
`;
}

/** The page of the parts that were measured of one commit. */
export function pageOf(parts: readonly Results[]): string {
  const sorted = parts.toSorted((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
  const [first] = sorted;
  if (first === undefined) return "";
  const machines = [...new Set(sorted.map(({ machine }) => machine))];
  const judged = sorted.flatMap(({ figures }) => figures).filter(({ bound }) => bound !== null);
  const met = judged.filter((figure) => isMet(figure) === true);
  const times = sorted.map(({ at }) => at.slice(0, 16).replace("T", " ")).sort();
  return `# Figures of svc ${first.version}

Written by \`npm run bench -- --publish\`: change the benchmark, not this page. [How it is measured](../README.md).

- **Commit** ${first.commit}${first.commit.endsWith("+") ? " with changes that are not committed" : ""}, measured until ${times.at(-1)} UTC
- **Machine** ${machines.join("; ")}
- **Targets** ${met.length} of ${judged.length} met
- **A/A**: two instances of each system run, and both are shown: their difference is the error. \`×\` is the median, over the rounds, of both instances of the one system over both of the other. Where there is one value only, there was no second instance.

${sorted.map(sectionOf).join("\n")}
## Rounds that were thrown away

${discardedOf(sorted)}
`;
}

function rank({ name }: Results): number {
  const at = ORDER.indexOf(name);
  return at === -1 ? ORDER.length : at;
}

function sectionOf({ title, method, figures }: Results): string {
  return `## ${title}

${method}

| Cell | Measure | Beside | | System | | × | Target | Rounds |
|---|---|---|---|---|---|---|---|---|
${figures.map(lineOf).join("\n")}
`;
}

function lineOf(figure: Figure): string {
  const { cell, measure, beside, of, ratio, bound, rounds } = figure;
  const cells = [
    cell,
    measure,
    beside?.system ?? "",
    beside === null ? "" : valuesOf(beside),
    of.system,
    valuesOf(of),
    ratio === null ? "" : ratio.toFixed(2),
    bound === null ? "" : `${boundOf(bound)}: ${isMet(figure) === true ? "met" : "**missed**"}`,
    rounds,
  ];
  return `| ${cells.map((text) => text.replaceAll("|", "\\|")).join(" | ")} |`;
}

function valuesOf({ value, again }: Value): string {
  return again === null ? rounded(value) : `${rounded(value)} / ${rounded(again)}`;
}

function rounded(value: number | null): string {
  if (value === null) return "–";
  const whole = Math.trunc(Math.abs(value)).toString().replace(/^0$/, "").length;
  return value.toFixed(Math.max(0, SIGNIFICANT_DIGITS - whole));
}

function boundOf({ of, most }: Bound): string {
  return { ratio: `${most} ×`, added: `+${most}`, value: `${most}` }[of];
}

function discardedOf(parts: readonly Results[]): string {
  const counts = new Map<string, number>();
  for (const { discarded } of parts)
    for (const { cell, system, reason } of discarded) {
      const line = `\`${cell}\`, ${system}: ${reason}`;
      counts.set(line, (counts.get(line) ?? 0) + 1);
    }
  const lines = [...counts].map(
    ([line, count]) => `- ${line}${count > 1 ? ` (${count} rounds)` : ""}`,
  );
  return lines.join("\n") || "None.";
}
