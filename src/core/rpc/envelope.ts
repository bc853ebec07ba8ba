// JSON-RPC 2.0 requests as bytes: locates the members without building values, so that big
// integers, key order and escapes are forwarded as the caller wrote them. Knows nothing of methods,
// transports or callers.
import {
  BACKSLASH,
  COMMA,
  LETTER_N,
  MAX_DEPTH,
  MAX_MEMBERS,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipSpace,
  skipString,
  skipValue,
  startsWith,
} from "./json.ts";

/** The members of one request, by position. */
export interface Envelope {
  readonly kind: "request";
  /** Raw JSON text of the id; null = a notification. */
  readonly id: string | null;
  /** Byte offsets of the id; -1 when absent. */
  readonly idStart: number;
  readonly idEnd: number;
  readonly method: string;
  /** Byte offsets of `params`; -1 when absent or null. */
  readonly paramsStart: number;
  readonly paramsEnd: number;
  /**
   * True = the bytes can be sent upstream unchanged except for the id: exactly the four members,
   * each once.
   */
  readonly plain: boolean;
  /** True = the caller asks for evidence in a separate message: `"svc_meta":"notify"`. */
  readonly notify: boolean;
}

/**
 * Valid JSON that is not a valid request, with the id to answer under (`null` if it has no usable
 * one).
 */
export interface InvalidRequest {
  readonly kind: "invalid";
  readonly id: string;
  readonly message: string;
}

/** Reads one request that is known to be valid JSON between `start` and `end`. */
export function readRequest(bytes: Buffer, start: number, end: number): Envelope | InvalidRequest {
  if (bytes[start] !== OPEN_OBJECT) return invalid(null, "a request is a JSON object");
  let id: string | null = null;
  let idStart = -1;
  let idEnd = -1;
  let method: string | null = null;
  let version = false;
  let paramsStart = -1;
  let paramsEnd = -1;
  let seen = 0;
  let plain = true;
  let notify = false;
  let problem = "";
  let members = 0;
  for (let at = skipSpace(bytes, start + 1, end); at < end && bytes[at] === QUOTE; ) {
    const keyEnd = skipString(bytes, at, end);
    const valueStart = skipSpace(bytes, skipSpace(bytes, keyEnd, end) + 1, end);
    const valueEnd = skipValue(bytes, valueStart, end, MAX_DEPTH);
    if (++members > MAX_MEMBERS) return invalid(id, TOO_MANY_MEMBERS);
    const member = memberOf(bytes, at, keyEnd);
    const again = (seen & member) !== 0;
    if (again) problem = "a member appears twice";
    seen |= member;
    if (member === ID) {
      id = again ? "" : readId(bytes, valueStart, valueEnd);
      if (id === "") problem ||= "id must be a string, an integer or null";
      idStart = valueStart;
      idEnd = valueEnd;
    } else if (member === METHOD) {
      method = readMethod(bytes, valueStart, valueEnd);
    } else if (member === VERSION) {
      version = isVersion(bytes, valueStart, valueEnd);
    } else if (member === PARAMS) {
      const c = bytes[valueStart];
      if (c === OPEN_ARRAY || c === OPEN_OBJECT) {
        paramsStart = valueStart;
        paramsEnd = valueEnd;
      } else if (c !== LETTER_N) problem = "params must be an array or an object";
    } else {
      plain = false;
      if (isText(bytes, at, keyEnd, META)) notify = isText(bytes, valueStart, valueEnd, NOTIFY);
    }
    at = skipSpace(bytes, valueEnd, end);
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1, end);
  }
  if (method === null) problem ||= "method must be a string of 1 to 128 characters";
  if (!version) problem ||= 'jsonrpc must be "2.0"';
  if (problem !== "" || method === null) return invalid(id, problem);
  return {
    kind: "request",
    id,
    idStart,
    idEnd,
    method,
    paramsStart,
    paramsEnd,
    plain: plain && id !== null && paramsStart !== -1,
    notify,
  };
}

/** `id`: null or empty = it has no usable one. */
function invalid(id: string | null, message: string): InvalidRequest {
  return { kind: "invalid", id: id || "null", message };
}

const TOO_MANY_MEMBERS = `a request has at most ${MAX_MEMBERS} members`;
const META = '"svc_meta"';
const NOTIFY = '"notify"';
const MAX_METHOD_CHARS = 128;

// Members as bits, so that "seen twice" is one test. OTHER has no bit: repeating an unknown member
// harms nobody.
const OTHER = 0;
export const ID = 1;
const METHOD = 2;
export const VERSION = 4;
const PARAMS = 8;
export const RESULT = 16;
export const ERROR = 32;
const MEMBERS: readonly (readonly [name: string, bit: number])[] = [
  ["id", ID],
  ["error", ERROR],
  ["method", METHOD],
  ["params", PARAMS],
  ["result", RESULT],
  ["jsonrpc", VERSION],
];

/** Which member a key names; escapes in the key are decoded. Returns the member's bit, or OTHER. */
export function memberOf(bytes: Buffer, quote: number, keyEnd: number): number {
  for (const [name, bit] of MEMBERS)
    if (keyEnd - quote - 2 === name.length && startsWith(bytes, quote + 1, name)) return bit;
  if (keyEnd - quote > 64 || bytes.subarray(quote, keyEnd).indexOf(BACKSLASH) === -1) return OTHER;
  const meant = String(JSON.parse(bytes.toString("utf8", quote, keyEnd)));
  return MEMBERS.find(([name]) => name === meant)?.[1] ?? OTHER;
}

/** True when the value is the string `2.0`. */
export function isVersion(bytes: Buffer, start: number, end: number): boolean {
  return isText(bytes, start, end, '"2.0"');
}

function isText(bytes: Buffer, start: number, end: number, text: string): boolean {
  return end - start === text.length && startsWith(bytes, start, text);
}

/** Raw text of an id; empty when it is of a forbidden type. */
function readId(bytes: Buffer, start: number, end: number): string {
  const c = bytes[start];
  if (c === QUOTE) return bytes.toString("utf8", start, end);
  const text = bytes.toString("latin1", start, end);
  return text === "null" || /^-?\d+$/.test(text) ? text : "";
}

function readMethod(bytes: Buffer, start: number, end: number): string | null {
  if (bytes[start] !== QUOTE || end - start > 6 * MAX_METHOD_CHARS + 2) return null;
  const text = bytes.toString("latin1", start + 1, end - 1);
  const method = /^\w+$/.test(text) ? text : String(JSON.parse(bytes.toString("utf8", start, end)));
  return method.length > 0 && method.length <= MAX_METHOD_CHARS ? method : null;
}
