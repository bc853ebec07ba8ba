// The calendar (UTC), as arithmetic on milliseconds since the epoch. The one file of `core` that
// uses `Date`: to convert, never to read the clock.

/** The first moment (ms) of a day; days and months (from 0) beyond the end count on. */
export function dayStartMs(year: number, month: number, day: number): number {
  // biome-ignore lint/style/noRestrictedGlobals: it converts a date, and reads no clock
  return Date.UTC(year, month, day);
}

/** The year and month (from 0) of a moment. */
export function monthAt(ms: number): readonly [year: number, month: number] {
  // biome-ignore lint/style/noRestrictedGlobals: it converts a time, and reads no clock
  const date = new Date(ms);
  return [date.getUTCFullYear(), date.getUTCMonth()];
}

/** The moment (ms) of the text of a date, such as that of an HTTP header; NaN = it is none. */
export function dateMs(text: string): number {
  // biome-ignore lint/style/noRestrictedGlobals: it converts a date, and reads no clock
  return Date.parse(text);
}
