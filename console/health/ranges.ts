// The time range that graphs and lists show, as it stands in an address. Pure.
import type { History } from "./series.ts";

/** How far back, by the names of the API. */
export type RangeName = NonNullable<History["range"]>;

/** A range as addresses and the API have it: until now, or from one time (ISO 8601) to another. */
export interface Range {
  readonly range?: RangeName | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** What they are called; those of the database are the last three. */
export const RANGES: Readonly<Record<RangeName, string>> = {
  "15m": "Last 15 minutes",
  hour: "Last hour",
  day: "Last day",
  "7d": "Last 7 days",
  "30d": "Last 30 days",
  "90d": "Last 90 days",
};

const MINUTES: Readonly<Record<RangeName, number>> = {
  ...{ "15m": 15, hour: 60, day: 1_440, "7d": 10_080, "30d": 43_200, "90d": 129_600 },
};

/** When a range until now begins (ms); one between two times has no such beginning. */
export function beginningAt(range: Range, nowMs: number): number {
  return nowMs - (range.range === undefined ? 0 : MINUTES[range.range] * 60_000);
}

const STORED: ReadonlySet<string> = new Set<RangeName>(["7d", "30d", "90d"]);

/** The parameters of an address that say which range is shown: they stay on every page. */
export const RANGE_PARAMETERS = ["range", "from", "to"] as const;

/** The ranges that a service can show; `history` null = not known yet. */
export function rangesOf(
  history: Pick<History, "kept"> | null,
  chosen: Range,
): readonly { readonly value: RangeName; readonly label: string }[] {
  // What was chosen by a link stays, and says itself why it cannot be shown.
  const isShown = (name: string): boolean =>
    !STORED.has(name) || name === chosen.range || history?.kept.stored === true;
  return Object.entries(RANGES).flatMap(([name, label]) =>
    isRangeName(name) && isShown(name) ? [{ value: name, label }] : [],
  );
}

/** The range in an address; one that is none is the last hour. */
export function rangeIn(query: Readonly<Record<string, string>>): Range {
  const { range = "", from = "", to = "" } = query;
  const [fromMs, toMs] = [Date.parse(from), Date.parse(to)];
  if (fromMs < toMs) return rangeBetween(fromMs, toMs);
  return { range: isRangeName(range) ? range : "hour" };
}

function isRangeName(name: string): name is RangeName {
  return Object.hasOwn(RANGES, name);
}

/** The range between two times. */
export function rangeBetween(fromMs: number, toMs: number): Range {
  return { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() };
}

/** All parameters of a range, for an address; null = removed. */
export function rangeParameters(range: Range): Readonly<Record<string, string | null>> {
  return Object.fromEntries(RANGE_PARAMETERS.map((name) => [name, range[name] ?? null] as const));
}

const SOON_MS = 10_000;
const LATER_MS = 60_000;

/** How often it is read again: hours change slowly, and the past not at all. */
export function pollMsOf({ range }: Range): number {
  return range === undefined || STORED.has(range) ? LATER_MS : SOON_MS;
}

/** A time for a field of dates and times, by the clock of the reader. */
export function fieldTime(text: string | undefined): string {
  const ms = Date.parse(text ?? "");
  if (Number.isNaN(ms)) return "";
  const local = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}

/** What is to be known of the hours that are shown; null = nothing. */
export function hoursNotice({
  step_s: stepS,
  kept: { hours },
}: Pick<History, "step_s" | "kept">): string | null {
  if (stepS < HOUR_S || hours === null) return null;
  const { waiting, lost, complete } = hours;
  if (lost > 0) return `${lost} h are missing: the database was away for too long.`;
  if (waiting > 0) return `${waiting} h wait to be written: the database does not answer.`;
  return complete ? null : "Some providers are missing: there were too many in an hour.";
}

const HOUR_S = 3_600;

/** Since when anything is known of what is shown (ms); null = of all of it, or of nothing. */
export function knownSince({ times, series }: Pick<History, "times" | "series">): number | null {
  const firsts = series.flatMap(({ calls }) => {
    const first = calls.findIndex((value) => value !== null);
    return first === -1 ? [] : [first];
  });
  const first = firsts.length === 0 ? 0 : Math.min(...firsts);
  return first === 0 ? null : (times[first] ?? 0) * 1_000;
}
