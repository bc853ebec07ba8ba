// How far back history is shown. Pure.
import type { History } from "./series.ts";

/** How far back. */
export type Range = History["range"];

const MEMORY = [
  { value: "hour", label: "1 hour" },
  { value: "day", label: "1 day" },
] as const;
const STORED = [...MEMORY, { value: "90d", label: "90 days" }] as const;

/** The ranges that a service can show; `history` null = not known yet. */
export function rangesOf(
  history: Pick<History, "kept"> | null,
  chosen: Range,
): readonly { readonly value: Range; readonly label: string }[] {
  // What was chosen by a link stays, and says itself why it cannot be shown.
  return chosen === "90d" || history?.kept.stored === true ? STORED : MEMORY;
}

/** A range as it stands in an address. */
export function rangeIn(text: string): Range {
  return text === "day" || text === "90d" ? text : "hour";
}

const SOON_MS = 10_000;
const LATER_MS = 60_000;

/** How often it is read again: hours of 90 days change slowly. */
export function pollMsOf(range: Range): number {
  return range === "90d" ? LATER_MS : SOON_MS;
}

/** What is to be known of the hours that are shown; null = nothing. */
export function hoursNotice({
  range,
  kept: { hours },
}: Pick<History, "range" | "kept">): string | null {
  if (range !== "90d" || hours === null) return null;
  const { waiting, lost, complete } = hours;
  if (lost > 0) return `${lost} h are missing: the database was away for too long.`;
  if (waiting > 0) return `${waiting} h wait to be written: the database does not answer.`;
  return complete ? null : "Some providers are missing: there were too many in an hour.";
}
