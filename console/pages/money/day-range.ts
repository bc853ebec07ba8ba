// The days that the page of money shows: those of the range in its address. Pure.

/** Days in UTC, both included. */
export interface DayRange {
  readonly from: string;
  readonly to: string;
}

/** The spans that end today. */
export const SPANS = [
  { value: "day", label: "Today", days: 1 },
  { value: "7d", label: "7 days", days: 7 },
  { value: "30d", label: "30 days", days: 30 },
] as const;

/** One of them; `custom` = from a day to another one. */
export type Span = (typeof SPANS)[number]["value"] | "custom";

const DAY_MS = 86_400_000;
const MAX_DAYS = 366;
const DAY_LENGTH = "2026-11-29".length;
/** Ranges of other pages that are shown as one of these. */
const SHOWN_AS: Readonly<Record<string, Span>> = {
  "15m": "day",
  hour: "day",
  day: "day",
  "7d": "7d",
};

/** Reads the address; what is no range is the default. */
export function dayRangeOf(
  query: Readonly<Record<string, string | undefined>>,
  today: string,
): DayRange & { readonly span: Span } {
  const { range = "", from: first = "", to: last = "" } = query;
  const [from, to] = [first.slice(0, DAY_LENGTH), last.slice(0, DAY_LENGTH)];
  if (isRange(from, to)) return { from, to, span: "custom" };
  const span = SHOWN_AS[range] ?? "30d";
  const days = SPANS.find(({ value }) => value === span)?.days ?? 30;
  return { from: dayOf(Date.parse(today) - (days - 1) * DAY_MS), to: today, span };
}

function isRange(from: string, to: string): boolean {
  if (![from, to].every((day) => /^\d{4}-\d\d-\d\d$/.test(day))) return false;
  const count = (Date.parse(to) - Date.parse(from)) / DAY_MS + 1;
  return count >= 1 && count <= MAX_DAYS;
}

/** The day of a moment, in UTC. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, DAY_LENGTH);
}
