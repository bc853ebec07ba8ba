// A row of history as text that is kept for months: the columns that are not 0, by name, so that
// versions with different columns read each other's rows.
import { isRecord, parseJson } from "../../core/fields.ts";
import { CIRCUIT_STATES } from "../../upstream/health/health-report.ts";
import { columnNames, type RowLayout } from "./history-row.ts";

/** How many names there may be; a text with more was not written by a version of this service. */
const MAX_NAMES = 1_000;
const CIRCUIT = "circuit.";

/** A row as text. */
export function hourCounts(layout: RowLayout, numbers: readonly number[]): string {
  const named = columnNames(layout).flatMap((name, at): readonly [string, number][] => {
    const value = numbers[at] ?? 0;
    if (value === 0) return [];
    return name === "circuit" ? [[CIRCUIT + CIRCUIT_STATES[value - 1], 1]] : [[name, value]];
  });
  return JSON.stringify(Object.fromEntries(named));
}

/** The row of a text; null = it is none. Columns of other versions count where they fit best. */
export function parseHourCounts(layout: RowLayout, text: string): readonly number[] | null {
  const named = parseObject(text);
  if (named === null) return null;
  const names = columnNames(layout);
  const numbers = Array.from({ length: layout.width }, () => 0);
  for (const [name, value] of named) {
    if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) return null;
    if (name.startsWith(CIRCUIT)) {
      const at = names.indexOf("circuit");
      const state = CIRCUIT_STATES.findIndex((each) => name === CIRCUIT + each) + 1;
      if (at !== -1) numbers[at] = Math.max(numbers[at] ?? 0, state);
      continue;
    }
    const at = columnFor(names, name);
    if (at !== -1) numbers[at] = (numbers[at] ?? 0) + value;
  }
  return numbers;
}

/** The column of a name; of a histogram with other bounds the one that includes the bound. */
function columnFor(names: readonly string[], name: string): number {
  const exact = names.indexOf(name);
  const of = /^(latency|added)\.([\d.]+)$/.exec(name);
  if (exact !== -1 || of === null) return exact;
  const [, kind = "", bound = ""] = of;
  return names.findIndex((each) => {
    if (!each.startsWith(`${kind}.`)) return false;
    const upper = each.slice(kind.length + 1);
    return upper === "more" || Number(upper) >= Number(bound);
  });
}

function parseObject(text: string): readonly [string, unknown][] | null {
  const value = parseJson(text);
  const entries = isRecord(value) ? Object.entries(value) : null;
  return entries === null || entries.length > MAX_NAMES ? null : entries;
}
