// A range of hours of which usage and money are added up: the last ones, or whole days in UTC.
import { timeText } from "../keys/key-fields.ts";

/** Hours since the epoch. */
export interface HourRange {
  readonly firstHour: number;
  /** Not included. */
  readonly endHour: number;
}

/** Most days of a range. */
export const MAX_RANGE_DAYS = 366;

const HOUR_MS = 3_600_000;
const DAY_HOURS = 24;

/** The last hours, including the one of `nowMs`. */
export function lastHours(hours: number, nowMs: number): HourRange {
  const endHour = Math.floor(nowMs / HOUR_MS) + 1;
  return { firstHour: endHour - hours, endHour };
}

/** The last days, including the one of `nowMs`. */
export function lastDays(days: number, nowMs: number): HourRange {
  const endHour = (Math.floor(nowMs / HOUR_MS / DAY_HOURS) + 1) * DAY_HOURS;
  return { firstHour: endHour - days * DAY_HOURS, endHour };
}

/** From a day to another one, both included. Null = it ends before it begins, or is too long. */
export function daysBetween(from: string, to: string): HourRange | null {
  const firstHour = Date.parse(from) / HOUR_MS;
  const endHour = Date.parse(to) / HOUR_MS + DAY_HOURS;
  const days = (endHour - firstHour) / DAY_HOURS;
  return days >= 1 && days <= MAX_RANGE_DAYS ? { firstHour, endHour } : null;
}

/** A range as answers show it. */
export function rangeView({ firstHour, endHour }: HourRange) {
  return { from: timeText(firstHour * HOUR_MS), to: timeText(endHour * HOUR_MS) };
}
