// Values as text: numbers, amounts, durations, lists. Unknown is a dash, never 0.

/** Stands for what is not known. */
export const DASH = "–";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

type Maybe = number | null | undefined;

/** What is not known is a dash. */
function known(format: (value: number) => string): (value: Maybe) => string {
  return (value) => (value != null && Number.isFinite(value) ? format(value) : DASH);
}

/** A whole number with separators. */
export const count = known((value) => whole.format(value));

/** A number in few characters: 1.2K, 3.4M. */
export const compact = known((value) => short.format(value));

/** A number with hundredths. */
export const hundredths = known((value) => value.toFixed(2));

/** Milliseconds without their unit: tenths below 10. */
export const milliseconds = known((value) => (value < 10 ? tenths : whole).format(value));

/** The format of a column of values: tenths in every row, or in none. */
export function even<Format>(format: Format, values: readonly Maybe[]): Format | typeof count {
  if (format !== milliseconds && format !== rate) return format;
  const needsTenths = values.some((value) => value != null && value !== 0 && value < 10);
  return needsTenths ? known((value) => tenths.format(value)) : count;
}

/** A part of 1 in percent. Something is never 0 %. */
export const share = known((value) =>
  value > 0 && value < 0.001 ? "<0.1 %" : `${tenths.format(value * 100)} %`,
);

/** A part of 1 in percent, rounded down: only what never failed is 100 %. */
export const success = known((value) =>
  value === 1 ? "100 %" : `${tenths.format(Math.floor(value * 1000) / 10)} %`,
);

/** Calls a second. */
export const rate = known((value) => (value > 0 && value < 10 ? tenths : whole).format(value));

/** Bytes with a unit. */
export const bytes = known((value) => {
  if (value < 1024) return `${whole.format(value)} B`;
  if (value < 1_048_576) return `${tenths.format(value / 1024)} KiB`;
  return `${tenths.format(value / 1_048_576)} MiB`;
});

/** A number and its noun: 1 chain, 2 chains. */
export function plural(n: number, noun: string): string {
  return `${whole.format(n)} ${noun}${n === 1 ? "" : "s"}`;
}

const MAX_PLACES = 6;
const SMALL = 0.01;

const cents = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const exact = new Intl.NumberFormat("en", { maximumFractionDigits: MAX_PLACES });

/** An amount; what is not known is a dash, and something is never 0. */
export function usd(amount: string | number | null | undefined): string {
  const value = Number(amount ?? Number.NaN);
  if (!Number.isFinite(value)) return DASH;
  const size = Math.abs(value);
  if (size > 0 && size < 10 ** -MAX_PLACES) return "<$0.000001";
  const text = size === 0 || size >= SMALL ? cents.format(size) : exact.format(size);
  return `${value < 0 ? "−" : ""}$${text}`;
}

const EMPTY_DECIMALS = /\.0+(?!\d)/;

/** Values at the axis, without decimals where none of them has any. */
export function axisTexts(values: readonly number[], format: (value: number) => string): string[] {
  const texts = values.map(format);
  const isWhole = values.every(
    (value, at) => value === 0 || !/\.\d/.test((texts[at] ?? "").replace(EMPTY_DECIMALS, "")),
  );
  return texts.map((text, at) =>
    isWhole || values[at] === 0 ? text.replace(EMPTY_DECIMALS, "") : text,
  );
}

const MINUTE_S = 60;
const HOUR_MIN = 60;
const DAY_H = 24;

const absolute = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });

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

const ofDay = new Intl.DateTimeFormat("en-GB", {
  ...{ hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 },
  hourCycle: "h23",
});

/** A moment within its day to the millisecond, in the reader's time zone. */
export function timeOfDay(atMs: number): string {
  return Number.isFinite(atMs) ? ofDay.format(atMs) : DASH;
}

const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** A moment as `14:30`, or `2 Dec 14:30` where that is on another day than now. */
export function clock(atMs: number, nowMs: number): string {
  const date = day.format(atMs);
  return date === day.format(nowMs) ? time.format(atMs) : `${date} ${time.format(atMs)}`;
}

/** Facts as one text; those that are empty, null or false say nothing. */
export function textList(
  facts: readonly (string | false | null | undefined)[],
  between = ", ",
): string {
  return facts.filter(Boolean).join(between);
}

/** What a transport is called. */
export function transportName(transport: string): string {
  return transport === "ws" ? "WebSocket" : "HTTP";
}

/** Joiners of letters and of emoji are none of them. */
const UNSEEN = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** A name that users gave, with characters that control, turn or hide made visible. */
export function visible(name: string): string {
  return name.replace(UNSEEN, (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase();
    return `⟨U+${code.padStart(4, "0")}⟩`;
  });
}

const BREAKS = /(?<=_)/;

/** Where a name may break: behind each `_`. */
export function breakable(name: string): readonly string[] {
  return name.split(BREAKS);
}
