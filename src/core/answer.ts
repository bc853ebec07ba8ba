// JSON-RPC 2.0 answers as bytes: is it one, is it ours, does it hold a result or an error. The result itself is never looked into:
// a long one is judged by its head and its tail, so that it can be passed on while it arrives.
import type { Failure } from "./attempt.ts";
import { CLOSE_OBJECT, COLON, COMMA, LETTER_N, OPEN_ARRAY, OPEN_OBJECT, QUOTE, skipSpace, skipString, skipValue, startsWith } from "./json.ts";
import { ERROR, ID, isVersion, memberOf, RESULT, VERSION } from "./jsonrpc.ts";

/** What a complete answer holds. Offsets are of the raw `result` or `error` value. */
export type Answer =
  | { readonly kind: "result" | "error"; readonly start: number; readonly end: number /** The id is the one asked for. */; readonly sameId: boolean }
  | { readonly kind: "bad"; readonly message: string };

/** Checks a complete answer: one object, `jsonrpc` 2.0, exactly one of result and error. `"error": null` beside a result counts as absent. */
export function readAnswer(bytes: Buffer, wireId: string): Answer {
  const end = bytes.length;
  const usual = `{"jsonrpc":"2.0","id":${wireId},"result":`;
  if (end > usual.length && startsWith(bytes, 0, usual)) {
    const stop = skipValue(bytes, usual.length, end, MAX_ANSWER_DEPTH);
    if (stop !== -1 && bytes[stop] === CLOSE_OBJECT && skipSpace(bytes, stop + 1, end) === end)
      return { kind: "result", start: usual.length, end: stop, sameId: true };
  }
  const start = skipSpace(bytes, 0, end);
  if (bytes[start] !== OPEN_OBJECT) return bad("the body is not a JSON object");
  let version = false;
  let sameId = false;
  let resultStart = -1;
  let resultEnd = -1;
  let errorStart = -1;
  let errorEnd = -1;
  let seen = 0;
  let at = skipSpace(bytes, start + 1, end);
  while (bytes[at] === QUOTE) {
    const keyEnd = skipString(bytes, at, end);
    const colon = keyEnd === -1 ? end : skipSpace(bytes, keyEnd, end);
    const valueStart = skipSpace(bytes, colon + 1, end);
    const valueEnd = bytes[colon] === COLON && valueStart < end ? skipValue(bytes, valueStart, end, MAX_ANSWER_DEPTH) : -1;
    if (valueEnd === -1) return bad("the body is not valid JSON");
    const member = memberOf(bytes, at, keyEnd);
    if (seen & member) return bad("a member appears twice");
    seen |= member;
    if (member === ID) sameId = bytes.toString("latin1", valueStart, valueEnd) === wireId;
    else if (member === VERSION) version = isVersion(bytes, valueStart, valueEnd);
    else if (member === RESULT) {
      resultStart = valueStart;
      resultEnd = valueEnd;
    } else if (member === ERROR && bytes[valueStart] !== LETTER_N) {
      errorStart = valueStart;
      errorEnd = valueEnd;
    }
    at = skipSpace(bytes, valueEnd, end);
    if (bytes[at] !== COMMA) break;
    at = skipSpace(bytes, at + 1, end);
    if (bytes[at] !== QUOTE) return bad("the body is not valid JSON");
  }
  if (bytes[at] !== CLOSE_OBJECT || skipSpace(bytes, at + 1, end) !== end) return bad("the body is not one JSON object");
  if (errorStart !== -1 && (resultStart === -1 || bytes[resultStart] === LETTER_N)) return { kind: "error", start: errorStart, end: errorEnd, sameId };
  if (errorStart !== -1) return bad("the answer has both a result and an error");
  if (resultStart === -1) return bad("the answer has neither a result nor an error");
  if (!version) return bad("the answer is not JSON-RPC 2.0");
  return { kind: "result", start: resultStart, end: resultEnd, sameId };
}

/** How an answer begins, when only its first bytes are here. */
export type AnswerHead =
  /** `hasId`: the id stood before the result and matched; otherwise the tail must carry it. */
  | { readonly kind: "result"; readonly start: number; readonly hasId: boolean; readonly hasVersion: boolean }
  /** An error, or an order of members that can only be judged when all is here. */
  | { readonly kind: "whole" }
  | { readonly kind: "bad"; readonly message: string };

/** Judges a long answer by its first bytes, so that its result can be passed on while it still arrives. */
export function readAnswerHead(bytes: Buffer, wireId: string): AnswerHead {
  const end = bytes.length;
  let at = skipSpace(bytes, 0, end);
  if (at < end && bytes[at] !== OPEN_OBJECT) return bad("the body is not a JSON object");
  let hasId = false;
  let hasVersion = false;
  at = skipSpace(bytes, at + 1, end);
  while (bytes[at] === QUOTE) {
    const keyEnd = skipString(bytes, at, end);
    if (keyEnd === -1) return { kind: "whole" };
    const colon = skipSpace(bytes, keyEnd, end);
    const valueStart = skipSpace(bytes, colon + 1, end);
    if (colon < end && bytes[colon] !== COLON) return bad("the body is not valid JSON");
    if (valueStart >= end) return { kind: "whole" };
    const member = memberOf(bytes, at, keyEnd);
    if (member === RESULT) return { kind: "result", start: valueStart, hasId, hasVersion };
    if (member === ERROR && bytes[valueStart] !== LETTER_N) return { kind: "whole" };
    const valueEnd = skipValue(bytes, valueStart, end, MAX_ANSWER_DEPTH);
    if (valueEnd === -1 || valueEnd === end) return { kind: "whole" };
    if (member === ID) {
      if (bytes.toString("latin1", valueStart, valueEnd) !== wireId) return bad("the answer carries another id");
      hasId = true;
    } else if (member === VERSION) hasVersion = isVersion(bytes, valueStart, valueEnd);
    at = skipSpace(bytes, valueEnd, end);
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1, end);
  }
  return { kind: "whole" };
}

/** Bytes held back at the end of a long answer, so that its tail can be judged before the caller sees the end of it. */
export const TAIL_BYTES = 256;

/**
 * Where the result value of a long answer ends, counted back from the end of `tail` (its last bytes); null when the answer does not end as an answer does.
 * `opening` is the first byte of the result.
 */
export function readAnswerTail(tail: Buffer, head: { readonly hasId: boolean; readonly hasVersion: boolean }, wireId: string, opening: number): number | null {
  const text = tail.toString("latin1");
  const [rest = ""] = endingAfter(head).exec(text) ?? [];
  if (rest === "") return null;
  if (!head.hasId && /"id"[ \t\r\n]*:[ \t\r\n]*("[^"]*"|-?\d+|null)/.exec(rest)?.[1] !== wireId) return null;
  if (!head.hasVersion && !rest.includes('"jsonrpc"')) return null;
  const last = text.at(-rest.length - 1);
  if (last === undefined || last !== closingOf(opening, last)) return null;
  return rest.length;
}

/** What may stand behind a result, to the end of the answer: the members that did not stand before it, an absent error, and white space. */
function endingAfter({ hasId, hasVersion }: { readonly hasId: boolean; readonly hasVersion: boolean }): RegExp {
  if (hasId) return hasVersion ? ENDING : VERSION_ENDING;
  return hasVersion ? ID_ENDING : FULL_ENDING;
}

const ID_TEXT = '"id" : (?:"[^"\\\\]*"|-?\\d+|null)';
const VERSION_TEXT = '"jsonrpc" : "2\\.0"';
const ENDING = endingWith();
const ID_ENDING = endingWith(ID_TEXT);
const VERSION_ENDING = endingWith(VERSION_TEXT);
const FULL_ENDING = endingWith(ID_TEXT, VERSION_TEXT);

/** A blank stands for any white space. */
function endingWith(...members: readonly string[]): RegExp {
  const member = ['"error" : null', ...members].join("|");
  return new RegExp(`(?: , (?:${member}))* \\} $`.replaceAll(" ", "[ \\t\\r\\n]*"));
}

/** The result of a long complete body by its head and tail; null where it is short or must be read whole. */
export function readLongResult(body: Buffer, wireId: string): { readonly start: number; readonly end: number } | null {
  if (body.length <= READ_WHOLE_BYTES) return null;
  const head = readAnswerHead(body.subarray(0, READ_WHOLE_BYTES), wireId);
  if (head.kind !== "result") return null;
  const tail = body.subarray(Math.max(head.start, body.length - TAIL_BYTES));
  const fromEnd = readAnswerTail(tail, head, wireId, body[head.start] ?? 0);
  return fromEnd === null ? null : { start: head.start, end: body.length - fromEnd };
}

/** Answers up to this size are read to the last byte. */
const READ_WHOLE_BYTES = 4_096;

/** What an error member says; `raw` is known to be valid JSON. A bare string counts as the message. */
export function readError(raw: Buffer): Pick<Failure, "code" | "message" | "data"> {
  const value: unknown = JSON.parse(raw.toString("utf8"));
  if (typeof value === "string") return { code: null, message: value, data: null };
  if (typeof value !== "object" || value === null) return { code: null, message: "", data: null };
  const { code, message, data }: { code?: unknown; message?: unknown; data?: unknown } = value;
  return { code: typeof code === "number" ? code : null, message: typeof message === "string" ? message : "", data: data ?? null };
}

function closingOf(opening: number, last: string): string {
  if (opening === OPEN_OBJECT) return "}";
  if (opening === OPEN_ARRAY) return "]";
  return opening === QUOTE ? '"' : last;
}

const MAX_ANSWER_DEPTH = 1024;

function bad(message: string): { readonly kind: "bad"; readonly message: string } {
  return { kind: "bad", message };
}
