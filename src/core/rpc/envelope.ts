// JSON-RPC 2.0 requests as bytes: locates the members without building values, so that big
// integers, key order and escapes are forwarded as the caller wrote them. Knows nothing of methods,
// transports or callers.
import * as json from "./json.ts";

/** The members of one request, by position. */
export interface Envelope {
  readonly kind: "request";
  /** Byte offsets of the object. */
  readonly start: number;
  readonly end: number;
  /** Raw JSON text of the id; null = a notification. */
  readonly id: string | null;
  /** Byte offsets of the id; -1 when absent. */
  readonly idStart: number;
  readonly idEnd: number;
  readonly method: string;
  /** Byte offsets of `params`; -1 when absent or null. */
  readonly paramsStart: number;
  readonly paramsEnd: number;
  /** Byte offsets of the first 16 elements of `params`, if it is an array. */
  readonly elements: readonly json.Span[];
  /**
   * True = the bytes can be sent upstream unchanged except for the id: exactly the four members,
   * each once.
   */
  readonly plain: boolean;
  /** True = the caller asks for evidence in a separate message: `"svc_meta":"notify"`. */
  readonly notify: boolean;
}

/** Bytes that are no valid request, with the id to answer under (`null` = no usable one). */
export interface InvalidRequest {
  readonly kind: "invalid";
  /** Whether they are valid JSON. */
  readonly isJson: boolean;
  readonly id: string;
  readonly message: string;
}

/** Checks and reads one request between `start` and `end`, in one pass. */
export function readRequest(bytes: Buffer, start: number, end: number): Envelope | InvalidRequest {
  if (bytes[start] !== json.OPEN_OBJECT) return noObject(bytes, start, end);
  const reading = new Reading(json.MAX_DEPTH - 1);
  const stop = readMembers(reading, bytes, start, end);
  if (stop === -1 || json.skipSpace(bytes, stop, end) !== end) return NOT_JSON;
  return reading.result(start, stop);
}

/**
 * The first requests of the array that opens at `open`, at most `most` of them, checked and read in
 * one pass; null = what is there is not one JSON array, or not all.
 */
export function readRequests(
  bytes: Buffer,
  open: number,
  most: number,
): readonly (Envelope | InvalidRequest)[] | null {
  const requests: (Envelope | InvalidRequest)[] = [];
  const end = bytes.length;
  let likely: string | null = null;
  let at = json.skipSpace(bytes, open + 1, end);
  let isOpen = bytes[at] !== json.CLOSE_ARRAY;
  while (isOpen) {
    const start = at;
    if (bytes[start] === json.OPEN_OBJECT && requests.length < most) {
      const reading = new Reading(json.MAX_DEPTH - 2, likely);
      at = readMembers(reading, bytes, start, end);
      if (at === -1) return null;
      const request = reading.result(start, at);
      requests.push(request);
      if (request.kind === "request") likely = likelyAfter(request, likely);
    } else {
      at = json.skipValue(bytes, start, end, json.MAX_DEPTH - 1);
      if (at === -1) return null;
      if (requests.length < most) requests.push(NO_OBJECT);
    }
    if (bytes[at] !== json.COMMA) at = json.skipSpace(bytes, at, end);
    isOpen = bytes[at] === json.COMMA && at < end;
    if (isOpen && bytes[++at] !== json.OPEN_OBJECT) at = json.skipSpace(bytes, at, end);
  }
  const isClosed = at < end && bytes[at] === json.CLOSE_ARRAY;
  return isClosed && json.skipSpace(bytes, at + 1, end) === end ? requests : null;
}

/** The method that the next request of a batch likely names: one whose bytes are its characters. */
function likelyAfter({ method }: Envelope, likely: string | null): string | null {
  return method === likely || !WORD.test(method) ? likely : method;
}

/** Reads the members of the object that opens at `start`: offset after it; -1 = it is not JSON. */
function readMembers(reading: Reading, bytes: Buffer, start: number, end: number): number {
  const { depth } = reading;
  let at = bytes[start + 1] === json.QUOTE ? start + 1 : json.skipSpace(bytes, start + 1, end);
  let isOpen = bytes[at] !== json.CLOSE_OBJECT;
  while (isOpen) {
    const name = bytes[at] === json.QUOTE ? nameAt(bytes, at, end) : null;
    if (name === null) return -1;
    let valueStart = at + name.length;
    if ((bytes[valueStart] ?? 0) <= json.SPACE) valueStart = json.skipSpace(bytes, valueStart, end);
    const isArray = bytes[valueStart] === json.OPEN_ARRAY && name.bit === PARAMS;
    const valueEnd = isArray
      ? json.skipArray(bytes, valueStart, end, reading.noteElements())
      : json.skipValue(bytes, valueStart, end, depth);
    if (valueEnd === -1 || valueStart >= end) return -1;
    if (++reading.members <= json.MAX_MEMBERS) {
      if (name.bit === OTHER) reading.takeOther(bytes, at, valueStart, valueEnd);
      else reading.take(bytes, name.bit, valueStart, valueEnd);
    }
    at = bytes[valueEnd] === json.COMMA ? valueEnd : json.skipSpace(bytes, valueEnd, end);
    isOpen = bytes[at] === json.COMMA && at < end;
    if (isOpen && bytes[++at] !== json.QUOTE) at = json.skipSpace(bytes, at, end);
  }
  return at < end && bytes[at] === json.CLOSE_OBJECT ? at + 1 : -1;
}

/** What was read of a request so far. */
class Reading {
  members = 0;
  /** How deep a value of a member may be. */
  readonly depth: number;
  /** A method of word characters that it may name, so that no new text is made; null = none. */
  readonly #likely: string | null;
  #seen = 0;
  #id: string | null = null;
  #idStart = -1;
  #idEnd = -1;
  #method: string | null = null;
  #version = false;
  #paramsStart = -1;
  #paramsEnd = -1;
  #elements: readonly json.Span[] = [];
  #plain = true;
  #notify = false;
  #problem = "";

  constructor(depth: number, likely: string | null = null) {
    this.depth = depth;
    this.#likely = likely;
  }

  /** Takes the value of a member of every request. */
  take(bytes: Buffer, member: number, start: number, end: number): void {
    const again = (this.#seen & member) !== 0;
    if (again) this.#problem = "a member appears twice";
    this.#seen |= member;
    if (member === ID) {
      this.#id = again ? "" : readId(bytes, start, end);
      if (this.#id === "") this.#problem ||= "id must be a string, an integer or null";
      this.#idStart = start;
      this.#idEnd = end;
    } else if (member === METHOD) {
      this.#method = this.#isLikely(bytes, start, end)
        ? this.#likely
        : readMethod(bytes, start, end);
    } else if (member === VERSION) {
      this.#version = isVersion(bytes, start, end);
    } else if (member === PARAMS) {
      const c = bytes[start];
      if (c === json.OPEN_ARRAY || c === json.OPEN_OBJECT) {
        this.#paramsStart = start;
        this.#paramsEnd = end;
      } else if (c !== json.LETTER_N) this.#problem = "params must be an array or an object";
    } else this.#plain = false;
  }

  /** Takes a member that is none of a request. */
  takeOther(bytes: Buffer, quote: number, start: number, end: number): void {
    this.#plain = false;
    if (json.startsWith(bytes, quote, META)) this.#notify = isText(bytes, start, end, NOTIFY);
  }

  #isLikely(bytes: Buffer, start: number, end: number): boolean {
    const likely = this.#likely;
    return (
      likely !== null &&
      end - start === likely.length + 2 &&
      bytes[start] === json.QUOTE &&
      json.startsWith(bytes, start + 1, likely)
    );
  }

  /** Where the elements of `params` are noted. */
  noteElements(): json.NotedElements {
    const spans: json.Span[] = [];
    this.#elements = spans;
    return { spans, most: MAX_NOTED, depth: this.depth - 1 };
  }

  /** The request between `start` and `end`. */
  result(start: number, end: number): Envelope | InvalidRequest {
    const id = this.#id;
    const method = this.#method;
    if (this.members > json.MAX_MEMBERS) return invalid(id, TOO_MANY_MEMBERS);
    if (method === null) this.#problem ||= "method must be a string of 1 to 128 characters";
    if (!this.#version) this.#problem ||= 'jsonrpc must be "2.0"';
    if (this.#problem !== "" || method === null) return invalid(id, this.#problem);
    return {
      kind: "request",
      start,
      end,
      id,
      idStart: this.#idStart,
      idEnd: this.#idEnd,
      method,
      paramsStart: this.#paramsStart,
      paramsEnd: this.#paramsEnd,
      elements: this.#elements,
      plain: this.#plain && id !== null && this.#paramsStart !== -1,
      notify: this.#notify,
    };
  }
}

/** What begins with something else than an object may still be valid JSON. */
function noObject(bytes: Buffer, start: number, end: number): InvalidRequest {
  const valueEnd = start < end ? json.skipValue(bytes, start, end, json.MAX_DEPTH) : -1;
  if (valueEnd === -1 || json.skipSpace(bytes, valueEnd, end) !== end) return NOT_JSON;
  return NO_OBJECT;
}

/** `id`: null or empty = it has no usable one. */
function invalid(id: string | null, message: string): InvalidRequest {
  return { kind: "invalid", isJson: true, id: id || "null", message };
}

const NO_OBJECT = invalid(null, "a request is a JSON object");
const NOT_JSON: InvalidRequest = {
  kind: "invalid",
  isJson: false,
  id: "null",
  message: "the request is not valid JSON",
};
const TOO_MANY_MEMBERS = `a request has at most ${json.MAX_MEMBERS} members`;
const VERSION_TEXT = '"2.0"';
/** Settings may name the block of a method by its place, at most this many. */
const MAX_NOTED = 16;
const META = '"svc_meta"';
const NOTIFY = '"notify"';
const MAX_METHOD_CHARS = 128;
const WORD = /^\w+$/;

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

/** A name with its colon, and perhaps white space between them. */
interface MemberName {
  /** The member's bit, or OTHER. */
  readonly bit: number;
  readonly length: number;
}

/** Names with their colons as they are nearly always written, by their first letters. */
const USUAL_NAMES = Array.from({ length: 128 }, (_, code) => {
  const [name, bit] = MEMBERS.find(([known]) => known.charCodeAt(0) === code) ?? ["", OTHER];
  return name === "" ? undefined : { bit, text: `"${name}":`, length: name.length + 3 };
});

/** The name of the member that opens at `quote`; null = it is not JSON. */
function nameAt(bytes: Buffer, quote: number, end: number): MemberName | null {
  const usual = USUAL_NAMES[bytes[quote + 1] ?? 0];
  if (usual !== undefined && json.startsWith(bytes, quote, usual.text)) return usual;
  const nameEnd = json.skipString(bytes, quote, end);
  const colon = nameEnd === -1 ? end : json.skipSpace(bytes, nameEnd, end);
  if (colon >= end || bytes[colon] !== json.COLON) return null;
  return { bit: memberOf(bytes, quote, nameEnd), length: colon + 1 - quote };
}

/** Which member a key names; escapes in the key are decoded. Returns the member's bit, or OTHER. */
export function memberOf(bytes: Buffer, quote: number, keyEnd: number): number {
  const length = keyEnd - quote - 2;
  for (const [name, bit] of MEMBERS)
    if (length === name.length && json.startsWith(bytes, quote + 1, name)) return bit;
  if (length > 62 || bytes.subarray(quote, keyEnd).indexOf(json.BACKSLASH) === -1) return OTHER;
  const meant = String(JSON.parse(bytes.toString("utf8", quote, keyEnd)));
  return MEMBERS.find(([name]) => name === meant)?.[1] ?? OTHER;
}

/** True when the value is the string `2.0`. */
export function isVersion(bytes: Buffer, start: number, end: number): boolean {
  return end - start === VERSION_TEXT.length && json.startsWith(bytes, start, VERSION_TEXT);
}

function isText(bytes: Buffer, start: number, end: number, text: string): boolean {
  return end - start === text.length && json.startsWith(bytes, start, text);
}

/** Raw text of an id; empty when it is of a forbidden type. */
function readId(bytes: Buffer, start: number, end: number): string {
  const c = bytes[start];
  if (c === json.QUOTE) return bytes.toString("utf8", start, end);
  const text = bytes.toString("latin1", start, end);
  if (areDigits(bytes, start, end)) return text;
  return text === "null" || /^-?\d+$/.test(text) ? text : "";
}

function areDigits(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const c = bytes[at] ?? 0;
    if (c < 0x30 || c > 0x39) return false;
  }
  return true;
}

function readMethod(bytes: Buffer, start: number, end: number): string | null {
  if (bytes[start] !== json.QUOTE || end - start > 6 * MAX_METHOD_CHARS + 2) return null;
  const text = bytes.toString("latin1", start + 1, end - 1);
  const method = WORD.test(text) ? text : String(JSON.parse(bytes.toString("utf8", start, end)));
  return method.length > 0 && method.length <= MAX_METHOD_CHARS ? method : null;
}
