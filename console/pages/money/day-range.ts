// The days that the page of money shows, as they stand in its address. Pure.

/** Days in UTC, both included. */
export interface DayRange {
  readonly from: string;
  readonly to: string;
}

/** The spans that end today. */
export const SPANS = [
  { value: "1", label: "Today" },
  { value: "7", label: "7 days" },
  { value: "30", label: "30 days" },
] as const;

/** One of them; `custom` = from a day to another one. */
export type Span = (typeof SPANS)[number]["value"] | "custom";

const DAY_MS = 86_400_000;
const MAX_DAYS = 366;
const DEFAULT: Span = "30";

/** Reads the address; what is no range is the default. */
export function dayRangeOf(
  query: Readonly<Record<string, string | undefined>>,
  today: string,
): DayRange & { readonly span: Span } {
  const { from = "", to = "", days = "" } = query;
  if (isRange(from, to)) return { from, to, span: "custom" };
  const span = SPANS.find(({ value }) => value === days)?.value ?? DEFAULT;
  const firstMs = Date.parse(today) - (Number(span) - 1) * DAY_MS;
  return { from: dayOf(firstMs), to: today, span };
}

function isRange(from: string, to: string): boolean {
  if (![from, to].every((day) => /^\d{4}-\d\d-\d\d$/.test(day))) return false;
  const count = (Date.parse(to) - Date.parse(from)) / DAY_MS + 1;
  return count >= 1 && count <= MAX_DAYS;
}

/** The day of a moment, in UTC. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, "2026-11-29".length);
}
