// The JSON grammar over bytes: where a value ends and whether it is valid. Builds no values, keeps
// no state, knows nothing of JSON-RPC.

/** Deepest nesting accepted in a request; common node implementations refuse more. */
export const MAX_DEPTH = 128;

/** Byte offsets of one JSON value. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Offset of the first byte after white space. */
export function skipSpace(bytes: Buffer, from: number, end: number): number {
  let at = from;
  while (at < end) {
    const c = bytes[at];
    if (c !== SPACE && c !== LF && c !== CR && c !== TAB) break;
    at++;
  }
  return at;
}

/**
 * Offset after the JSON value that starts at `at`, or -1 when it is malformed, cut short or nested
 * deeper than `depth`.
 */
export function skipValue(bytes: Buffer, at: number, end: number, depth: number): number {
  switch (bytes[at]) {
    case QUOTE:
      return skipString(bytes, at, end);
    case OPEN_OBJECT:
    case OPEN_ARRAY:
      return depth === 0 ? -1 : skipItems(bytes, at, end, depth - 1);
    case LETTER_T:
      return skipWord(bytes, at, end, "true");
    case LETTER_F:
      return skipWord(bytes, at, end, "false");
    case LETTER_N:
      return skipWord(bytes, at, end, "null");
    default:
      return skipNumber(bytes, at, end);
  }
}

/** True when `bytes` is exactly one JSON value. */
export function isJson(bytes: Buffer): boolean {
  const start = skipSpace(bytes, 0, bytes.length);
  const end = start < bytes.length ? skipValue(bytes, start, bytes.length, MAX_DEPTH) : -1;
  return end !== -1 && skipSpace(bytes, end, bytes.length) === bytes.length;
}

/** Offsets of the elements of a valid JSON array; at most `limit` of them. */
export function elements(bytes: Buffer, start: number, end: number, limit: number): Span[] {
  const spans: Span[] = [];
  let at = skipSpace(bytes, start + 1, end);
  while (at < end && bytes[at] !== CLOSE_ARRAY && spans.length < limit) {
    const stop = skipValue(bytes, at, end, MAX_DEPTH);
    if (stop === -1) break;
    spans.push({ start: at, end: stop });
    at = skipSpace(bytes, stop, end);
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1, end);
  }
  return spans;
}

/** The first elements of an array, as they are noted. */
export interface NotedElements {
  readonly spans: Span[];
  /** So many of them are noted. */
  readonly most: number;
  /** How deep an element may be. */
  readonly depth: number;
}

/** Offset after the array that opens at `open`, or -1; notes its elements. */
export function skipArray(bytes: Buffer, open: number, end: number, noted: NotedElements): number {
  const { spans, most, depth } = noted;
  let at = skipSpace(bytes, open + 1, end);
  if (bytes[at] === CLOSE_ARRAY && at < end) return at + 1;
  while (at < end) {
    const stop = skipValue(bytes, at, end, depth);
    if (stop === -1) return -1;
    if (spans.length < most) spans.push({ start: at, end: stop });
    at = (bytes[stop] ?? 0) <= SPACE ? skipSpace(bytes, stop, end) : stop;
    if (at >= end) return -1;
    const c = bytes[at++];
    if (c === CLOSE_ARRAY) return at;
    if (c !== COMMA) return -1;
    if ((bytes[at] ?? 0) <= SPACE) at = skipSpace(bytes, at, end);
  }
  return -1;
}

/** Offsets of one element of a valid JSON array; null = it has fewer. */
export function elementAt(bytes: Buffer, start: number, end: number, index: number): Span | null {
  let at = start + 1;
  if ((bytes[at] ?? 0) <= SPACE) at = skipSpace(bytes, at, end);
  for (let passed = 0; at < end && bytes[at] !== CLOSE_ARRAY; passed++) {
    const isString = bytes[at] === QUOTE;
    const stop = isString ? skipString(bytes, at, end) : skipValue(bytes, at, end, MAX_DEPTH);
    if (stop === -1) return null;
    if (passed === index) return { start: at, end: stop };
    at = bytes[stop] === COMMA ? stop : skipSpace(bytes, stop, end);
    if (bytes[at] === COMMA) at++;
    if ((bytes[at] ?? 0) <= SPACE) at = skipSpace(bytes, at, end);
  }
  return null;
}

/**
 * Offsets of the values of a valid JSON object by name; null = a name is written with escapes or
 * stands twice, or there are more than `MAX_MEMBERS`.
 */
export function membersOf(bytes: Buffer, { start, end }: Span): ReadonlyMap<string, Span> | null {
  const members = new Map<string, Span>();
  let at = skipSpace(bytes, start + 1, end);
  while (at < end && bytes[at] === QUOTE) {
    const nameEnd = skipString(bytes, at, end);
    const colon = skipSpace(bytes, nameEnd, end);
    const value = skipSpace(bytes, colon + 1, end);
    const valueEnd = skipValue(bytes, value, end, MAX_DEPTH);
    const name = bytes.toString("latin1", at + 1, nameEnd - 1);
    if (nameEnd === -1 || bytes[colon] !== COLON || valueEnd === -1) return null;
    if (name.includes("\\") || members.has(name) || members.size === MAX_MEMBERS) return null;
    members.set(name, { start: value, end: valueEnd });
    at = skipSpace(bytes, valueEnd, end);
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1, end);
  }
  return members;
}

/** Of a request, an answer or an event: decoding the names of millions would keep all waiting. */
export const MAX_MEMBERS = 64;

/** True when the bytes at `at` spell `text` (ASCII). */
export function startsWith(bytes: Buffer, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text.charCodeAt(i)) return false;
  return true;
}

export const SPACE = 0x20;
const LF = 0x0a;
const CR = 0x0d;
const TAB = 0x09;
export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_OBJECT = 0x7b;
export const CLOSE_OBJECT = 0x7d;
export const OPEN_ARRAY = 0x5b;
export const CLOSE_ARRAY = 0x5d;
const LETTER_T = 0x74;
const LETTER_F = 0x66;
export const LETTER_N = 0x6e;
const MINUS = 0x2d;

/** Offset after the string that opens at `quote`, or -1. */
export function skipString(bytes: Buffer, quote: number, end: number): number {
  let at = quote + 1;
  while (at < end) {
    const c = bytes[at] as number;
    if (c === QUOTE) return at + 1;
    if (c < SPACE) return -1;
    if (c === BACKSLASH) {
      const length = escapeLength(bytes, at);
      if (length === 0) return -1;
      at += length;
    } else at++;
  }
  return -1;
}

const ESCAPED: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrt'));

/** Length of the escape at `at`, or 0 when there is none of that form. */
function escapeLength(bytes: Buffer, at: number): number {
  const c = bytes[at + 1] ?? 0;
  if (c !== 0x75) return ESCAPED.has(c) ? 2 : 0;
  for (let i = at + 2; i < at + 6; i++) {
    const h = bytes[i] as number;
    if (!((h >= 0x30 && h <= 0x39) || (h >= 0x41 && h <= 0x46) || (h >= 0x61 && h <= 0x66)))
      return 0;
  }
  return 6;
}

/** Offset after the object or array that opens at `open`; what is in it may be `depth` deep. */
function skipItems(bytes: Buffer, open: number, end: number, depth: number): number {
  const isObject = bytes[open] === OPEN_OBJECT;
  const close = isObject ? CLOSE_OBJECT : CLOSE_ARRAY;
  const item = isObject ? QUOTE : VALUE;
  let awaits = item;
  let mayClose = true;
  let at = open + 1;
  while (at < end) {
    const c = bytes[at];
    if (c === SPACE || c === LF || c === CR || c === TAB) {
      at++;
      continue;
    }
    if (c === close && mayClose) return at + 1;
    if (awaits === VALUE) {
      at = c === QUOTE ? skipString(bytes, at, end) : skipValue(bytes, at, end, depth);
      awaits = COMMA;
    } else if (c !== awaits) return -1;
    else if (c === QUOTE) {
      at = skipString(bytes, at, end);
      awaits = COLON;
    } else {
      at++;
      awaits = c === COMMA ? item : VALUE;
    }
    if (at === -1) return -1;
    mayClose = awaits === COMMA;
  }
  return -1;
}

/** In place of a byte that is awaited: any value. */
const VALUE = -1;

function skipWord(bytes: Buffer, at: number, end: number, word: string): number {
  const stop = at + word.length;
  return stop <= end && startsWith(bytes, at, word) ? stop : -1;
}

function skipDigits(bytes: Buffer, from: number, end: number): number {
  let at = from;
  while (at < end) {
    const c = bytes[at] ?? 0;
    if (c < 0x30 || c > 0x39) break;
    at++;
  }
  return at;
}

function skipNumber(bytes: Buffer, from: number, end: number): number {
  const first = bytes[from] === MINUS ? from + 1 : from;
  let at = skipDigits(bytes, first, end);
  if (at === first) return -1;
  if (bytes[first] === 0x30) at = first + 1;
  if (at < end && bytes[at] === 0x2e) {
    const fraction = skipDigits(bytes, at + 1, end);
    if (fraction === at + 1) return -1;
    at = fraction;
  }
  if (at < end && (bytes[at] === 0x65 || bytes[at] === 0x45)) {
    const sign = bytes[at + 1] === MINUS || bytes[at + 1] === 0x2b ? at + 2 : at + 1;
    const exponent = skipDigits(bytes, sign, end);
    if (exponent === sign) return -1;
    at = exponent;
  }
  return at;
}
