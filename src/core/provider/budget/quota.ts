// Daily and monthly credits (UTC): how many were spent, how many may be handed out, and whether the
// month's credits go faster than the month. Pure: the time is an argument.
import { dayStartMs, monthAt } from "../../calendar.ts";
import type { BudgetLimits } from "./budget-limits.ts";

/** The limits of days and months. */
export type QuotaLimits = Pick<BudgetLimits, "daily" | "monthly" | "resetsOn">;

/** What was spent, or handed out to be spent, of the credits of one provider. */
export interface QuotaRecord {
  /** When the day began (ms since the epoch). */
  readonly dayMs: number;
  readonly daySpent: number;
  readonly monthMs: number;
  readonly monthSpent: number;
}

/** A period of time (ms since the epoch); the end is not part of it. */
export interface Period {
  readonly startMs: number;
  readonly endMs: number;
}

const DAY_MS = 86_400_000;
/** Parts of a month that may be spent ahead of time: one day of it. */
const AHEAD_PARTS = 30;

/** The day of a moment. */
export function dayOf(wallMs: number): Period {
  const startMs = Math.floor(wallMs / DAY_MS) * DAY_MS;
  return { startMs, endMs: startMs + DAY_MS };
}

/** The month of a moment, where months begin on a day from 1 to 28. */
export function monthOf(wallMs: number, resetsOn: number): Period {
  const [year, month] = monthAt(wallMs - (resetsOn - 1) * DAY_MS);
  return {
    startMs: dayStartMs(year, month, resetsOn),
    endMs: dayStartMs(year, month + 1, resetsOn),
  };
}

/**
 * The record as of a moment: a period that has ended begins anew. A clock that was set back begins
 * none: what was counted later still counts, unless it is more than a period ahead.
 */
export function recordAt(
  record: QuotaRecord | null,
  wallMs: number,
  resetsOn: number,
): QuotaRecord {
  const day = dayOf(wallMs);
  const month = monthOf(wallMs, resetsOn);
  const keepsDay = record !== null && isCurrent(record.dayMs, day);
  const keepsMonth = record !== null && isCurrent(record.monthMs, month);
  return {
    dayMs: keepsDay ? record.dayMs : day.startMs,
    daySpent: keepsDay ? record.daySpent : 0,
    monthMs: keepsMonth ? record.monthMs : month.startMs,
    monthSpent: keepsMonth ? record.monthSpent : 0,
  };
}

/** Credits that neither the day nor the month has spent. */
export function creditsLeft(record: QuotaRecord, { daily, monthly }: QuotaLimits): number {
  const { daySpent, monthSpent } = record;
  return Math.max(0, Math.min(leftOf(daily, daySpent), leftOf(monthly, monthSpent)));
}

function leftOf(limit: number | null, used: number): number {
  return limit === null ? Number.POSITIVE_INFINITY : limit - used;
}

/** The record after credits were spent, or handed out to be spent. */
export function spent(record: QuotaRecord, credits: number): QuotaRecord {
  const { daySpent, monthSpent } = record;
  return { ...record, daySpent: daySpent + credits, monthSpent: monthSpent + credits };
}

/** The record after credits came back that were handed out in the periods of `since`. */
export function returned(
  record: QuotaRecord,
  credits: number,
  since: Pick<QuotaRecord, "dayMs" | "monthMs">,
): QuotaRecord {
  const ofDay = record.dayMs === since.dayMs ? credits : 0;
  const ofMonth = record.monthMs === since.monthMs ? credits : 0;
  return {
    ...record,
    daySpent: Math.max(0, record.daySpent - ofDay),
    monthSpent: Math.max(0, record.monthSpent - ofMonth),
  };
}

/** Adds two records of one provider, each with spending that the other does not have. */
export function added(one: QuotaRecord, other: QuotaRecord): QuotaRecord {
  const dayMs = Math.max(one.dayMs, other.dayMs);
  const monthMs = Math.max(one.monthMs, other.monthMs);
  const ofDay = (of: QuotaRecord): number => (of.dayMs === dayMs ? of.daySpent : 0);
  const ofMonth = (of: QuotaRecord): number => (of.monthMs === monthMs ? of.monthSpent : 0);
  const spent = { daySpent: ofDay(one) + ofDay(other), monthSpent: ofMonth(one) + ofMonth(other) };
  return { dayMs, monthMs, ...spent };
}

/** Which of the two leaves less; null = both leave at least `credits`. */
export function bindingQuota(
  record: QuotaRecord,
  limits: QuotaLimits,
  credits: number,
): "daily_limit" | "monthly_limit" | null {
  if (creditsLeft(record, limits) >= credits) return null;
  const isMonth = leftOf(limits.monthly, record.monthSpent) < credits;
  return isMonth ? "monthly_limit" : "daily_limit";
}

/**
 * When as much of the month will have passed as was spent of it, less one day; earlier than that
 * the provider is asked after others. -Infinity = months are not limited.
 */
export function onPaceAtMs(
  { monthMs, monthSpent }: QuotaRecord,
  { monthly, resetsOn }: QuotaLimits,
): number {
  if (monthly === null) return Number.NEGATIVE_INFINITY;
  const { startMs, endMs } = monthOf(monthMs, resetsOn);
  const lengthMs = endMs - startMs;
  return startMs + lengthMs * (monthSpent / monthly - 1 / AHEAD_PARTS);
}

function isCurrent(startMs: number, { startMs: nowMs, endMs }: Period): boolean {
  return startMs >= nowMs && startMs <= endMs;
}
