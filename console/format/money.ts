// Amounts in columns, and when a balance ends: pure functions.
import { DASH, duration, usd } from "./text.ts";

type Amount = string | number | null | undefined;

const LEAST_PLACES = 2;
const MOST_PLACES = 6;

/** Writes the amounts of one column, all with as many decimals as the smallest of them needs. */
export function usdScale(amounts: readonly Amount[]): (amount: Amount) => string {
  const sizes = amounts.map((amount) => Math.abs(Number(amount))).filter((size) => size > 0);
  const smallest = Math.min(1, ...sizes);
  const places = smallest >= 10 ** -LEAST_PLACES ? LEAST_PLACES : 1 - exponentOf(smallest);
  const digits = Math.min(MOST_PLACES, places);
  const format = new Intl.NumberFormat("en", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return (amount) => {
    const value = Number(amount ?? Number.NaN);
    const size = Math.abs(value);
    // What is not known, and what is too small for any scale.
    if (!(size === 0 || size >= 10 ** -MOST_PLACES)) return usd(amount);
    return `${value < 0 ? "−" : ""}$${format.format(size)}`;
  };
}

/** Of a number as it is written with powers of ten. */
function exponentOf(value: number): number {
  return Number(value.toExponential().split("e")[1]);
}

/** What was charged since a moment. */
interface Charged {
  readonly from: string;
  readonly usd: string;
}

/** A balance, and what was charged lately. */
export interface Spending {
  readonly balance_usd: string;
  readonly created_at: string;
  readonly recent: { readonly hour: Charged; readonly day: Charged };
}

/** When a balance ends at the rates of the last hour and of the last day. */
export interface RunOut {
  /** US dollars a day, by the lower rate and by the higher one. */
  readonly perDayUsd: readonly [least: number, most: number];
  readonly soonestMs: number;
  /** Null = not at all, at the lower rate. */
  readonly latestMs: number | null;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** Null = nothing was charged in the last day. A shorter life counts as long as it was. */
export function runOutOf(spending: Spending, nowMs: number): RunOut | null {
  const { balance_usd, created_at, recent } = spending;
  const rates = [recent.hour, recent.day].map(({ from, usd: amount }) => {
    const sinceMs = Math.max(Date.parse(from), Date.parse(created_at));
    return (Number(amount) / Math.max(HOUR_MS, nowMs - sinceMs)) * DAY_MS;
  });
  const [least, most] = [Math.min(...rates), Math.max(...rates)];
  if (!(most > 0)) return null;
  const balance = Math.max(0, Number(balance_usd));
  const endAt = (rate: number): number => nowMs + (balance / rate) * DAY_MS;
  return {
    perDayUsd: [least, most],
    soonestMs: endAt(most),
    latestMs: least > 0 ? endAt(least) : null,
  };
}

const SOON_MS = 2 * DAY_MS;
const FAR_MS = 5 * 365 * DAY_MS;
const dates = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });

/** The range in words: spans of time if the balance ends soon, else dates. */
export function runOutText(runOut: RunOut | null, nowMs: number): string {
  if (runOut === null) return DASH;
  const { soonestMs, latestMs } = runOut;
  const isSoon = soonestMs - nowMs < SOON_MS;
  const text = (atMs: number): string => {
    if (atMs - nowMs > FAR_MS) return "over 5 years";
    return isSoon ? duration(atMs - nowMs) : dates.format(atMs);
  };
  if (soonestMs <= nowMs) return "now";
  const soonest = text(soonestMs);
  if (latestMs === null) return isSoon ? `not within ${soonest}` : `not before ${soonest}`;
  const latest = text(latestMs);
  const range = latest === soonest ? soonest : `${soonest} – ${latest}`;
  return isSoon ? `in ${range}` : range;
}
