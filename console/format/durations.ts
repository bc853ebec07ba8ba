// Times and durations as text.

const MINUTE_S = 60;
const HOUR_MIN = 60;
const DAY_H = 24;

const absolute = new Intl.DateTimeFormat("en-GB", {
  dateStyle: "medium",
  timeStyle: "long",
});

/** A duration in the unit that fits: 12 s, 5 min, 3 h 20 min, 4 days. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  if (seconds < MINUTE_S) return `${seconds} s`;
  const minutes = Math.floor(seconds / MINUTE_S);
  if (minutes < HOUR_MIN) return `${minutes} min`;
  const hours = Math.floor(minutes / HOUR_MIN);
  if (hours < 2 * DAY_H) return `${hours} h ${minutes % HOUR_MIN} min`;
  return `${Math.floor(hours / DAY_H)} days`;
}

/** How long ago a moment is; one that is still to come says so. */
export function ago(atMs: number, nowMs: number): string {
  const ms = nowMs - atMs;
  if (ms < -1000) return `in ${duration(-ms)}`;
  return ms < 2000 ? "just now" : `${duration(ms)} ago`;
}

/** A moment in full, in the reader's time zone. */
export function moment(atMs: number): string {
  return Number.isFinite(atMs) ? absolute.format(atMs) : "";
}
