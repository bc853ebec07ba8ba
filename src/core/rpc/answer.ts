// JSON-RPC 2.0 answers as bytes: whether an answer is valid, carries the id of the request, and
// holds a result or an error. Never parses the result: a long answer is judged by the bytes before
// and after the result, so that the result can be passed on while it arrives. An answer with
// another id is never delivered.

import { ERROR, ID, isVersion, memberOf, RESULT, VERSION } from "./envelope.ts";
import type { Failure } from "./failure.ts";
import * as json from "./json.ts";
import { ValueScan } from "./value-scan.ts";

/**
 * A complete result that carries the id of its request. `start` and `end` are offsets of the raw
 * result value; `idAt` is the offset of the id.
 */
export interface ResultAnswer {
  readonly kind: "result";
  readonly start: number;
  readonly end: number;
  readonly idAt: number;
}

/** A complete answer, judged. */
export type AnswerEnvelope =
  | ResultAnswer
  /**
   * Offsets are of the raw `error` value. `owned`: it carries the id of its request; otherwise it
   * carries none, as when the provider could not parse one.
   */
  | {
      readonly kind: "error";
      readonly start: number;
      readonly end: number;
      readonly owned: boolean;
    }
  | Unusable;

/** `foreign`: it carries another id, or is a result without an id: an answer to something else. */
type Unusable = { readonly kind: "foreign" } | { readonly kind: "bad"; readonly message: string };

/**
 * Judges a complete answer: it must be one object, with `jsonrpc` 2.0 and exactly one of result and
 * error. `"error": null` beside a result counts as absent.
 */
export function readAnswer(bytes: Buffer, wireId: string): AnswerEnvelope {
  const usual = readUsualResult(bytes, wireId);
  if (usual !== null) return usual;
  const end = bytes.length;
  const start = json.skipSpace(bytes, 0, end);
  if (bytes[start] !== json.OPEN_OBJECT) return bad("the body is not a JSON object");
  let version = false;
  let idAt = -1;
  let owner: "ours" | "other" | "nobody" = "nobody";
  let resultStart = -1;
  let resultEnd = -1;
  let errorStart = -1;
  let errorEnd = -1;
  let seen = 0;
  let members = 0;
  let at = json.skipSpace(bytes, start + 1, end);
  while (bytes[at] === json.QUOTE) {
    if (++members > json.MAX_MEMBERS) return bad("the answer has too many members");
    const keyEnd = json.skipString(bytes, at, end);
    const colon = keyEnd === -1 ? end : json.skipSpace(bytes, keyEnd, end);
    const valueStart = json.skipSpace(bytes, colon + 1, end);
    const valueEnd =
      bytes[colon] === json.COLON && valueStart < end
        ? json.skipValue(bytes, valueStart, end, MAX_ANSWER_DEPTH)
        : -1;
    if (valueEnd === -1) return bad("the body is not valid JSON");
    const member = memberOf(bytes, at, keyEnd);
    if (seen & member) return bad("a member appears twice");
    seen |= member;
    if (member === ID) {
      idAt = valueStart;
      owner = ownerOf(bytes, valueStart, valueEnd, wireId);
    } else if (member === VERSION) version = isVersion(bytes, valueStart, valueEnd);
    else if (member === RESULT) {
      resultStart = valueStart;
      resultEnd = valueEnd;
    } else if (member === ERROR && bytes[valueStart] !== json.LETTER_N) {
      errorStart = valueStart;
      errorEnd = valueEnd;
    }
    at = json.skipSpace(bytes, valueEnd, end);
    if (bytes[at] !== json.COMMA) break;
    at = json.skipSpace(bytes, at + 1, end);
    if (bytes[at] !== json.QUOTE) return bad("the body is not valid JSON");
  }
  if (bytes[at] !== json.CLOSE_OBJECT || json.skipSpace(bytes, at + 1, end) !== end)
    return bad("the body is not one JSON object");
  if (errorStart === -1 && resultStart === -1)
    return bad("the answer has neither a result nor an error");
  if (owner === "other") return FOREIGN;
  if (errorStart !== -1 && (resultStart === -1 || bytes[resultStart] === json.LETTER_N))
    return { kind: "error", start: errorStart, end: errorEnd, owned: owner === "ours" };
  if (errorStart !== -1) return bad("the answer has both a result and an error");
  if (!version) return bad("the answer is not JSON-RPC 2.0");
  return owner === "ours" ? { kind: "result", start: resultStart, end: resultEnd, idAt } : FOREIGN;
}

/**
 * Reads an answer whose members are in the usual order; null = it must be read member by member.
 */
function readUsualResult(bytes: Buffer, wireId: string): ResultAnswer | null {
  const start = usualResultStart(bytes, wireId);
  if (start === -1) return null;
  const end = json.skipValue(bytes, start, bytes.length, MAX_ANSWER_DEPTH);
  return end !== -1 &&
    bytes[end] === json.CLOSE_OBJECT &&
    json.skipSpace(bytes, end + 1, bytes.length) === bytes.length
    ? { kind: "result", start, end, idAt: USUAL_START.length }
    : null;
}

const USUAL_START = '{"jsonrpc":"2.0","id":';
const USUAL_RESULT = ',"result":';
const FOREIGN = { kind: "foreign" } as const;

/**
 * Offset of the result in an answer that begins as nearly all do; -1 = this one begins differently.
 */
function usualResultStart(bytes: Buffer, wireId: string): number {
  const idEnd = USUAL_START.length + wireId.length;
  const start = idEnd + USUAL_RESULT.length;
  const isUsual =
    bytes.length > start &&
    json.startsWith(bytes, 0, USUAL_START) &&
    json.startsWith(bytes, USUAL_START.length, wireId) &&
    json.startsWith(bytes, idEnd, USUAL_RESULT);
  return isUsual ? start : -1;
}

/**
 * Whose id is between `start` and `end`. Only the exact bytes that were sent count, not another
 * spelling of the number.
 */
function ownerOf(
  bytes: Buffer,
  start: number,
  end: number,
  wireId: string,
): "ours" | "other" | "nobody" {
  if (end - start === wireId.length && json.startsWith(bytes, start, wireId)) return "ours";
  return bytes[start] === json.LETTER_N ? "nobody" : "other";
}

/** The beginning of an answer, judged when only its first bytes are here. */
export type AnswerHead =
  /**
   * `idAt`: offset of the id, which came before the result and matched; null = the id must be in
   * the tail, and until then the answer may be another request's.
   */
  | {
      readonly kind: "result";
      readonly start: number;
      readonly idAt: number | null;
      readonly hasVersion: boolean;
    }
  /** An error, or an order of members that can only be judged when the whole answer is here. */
  | { readonly kind: "whole" }
  | Unusable;

/**
 * Judges a long answer by its first bytes, so that its result can be passed on while the rest
 * arrives.
 */
export function readAnswerHead(bytes: Buffer, wireId: string): AnswerHead {
  const end = bytes.length;
  const usual = usualResultStart(bytes, wireId);
  if (usual !== -1)
    return { kind: "result", start: usual, idAt: USUAL_START.length, hasVersion: true };
  let at = json.skipSpace(bytes, 0, end);
  if (at < end && bytes[at] !== json.OPEN_OBJECT) return bad("the body is not a JSON object");
  let idAt: number | null = null;
  let hasVersion = false;
  let seen = 0;
  at = json.skipSpace(bytes, at + 1, end);
  while (bytes[at] === json.QUOTE) {
    const keyEnd = json.skipString(bytes, at, end);
    if (keyEnd === -1) return { kind: "whole" };
    const colon = json.skipSpace(bytes, keyEnd, end);
    const valueStart = json.skipSpace(bytes, colon + 1, end);
    if (colon < end && bytes[colon] !== json.COLON) return bad("the body is not valid JSON");
    if (valueStart >= end) return { kind: "whole" };
    const member = memberOf(bytes, at, keyEnd);
    if (seen & member) return bad("a member appears twice");
    seen |= member;
    if (member === RESULT) return { kind: "result", start: valueStart, idAt, hasVersion };
    if (member === ERROR && bytes[valueStart] !== json.LETTER_N) return { kind: "whole" };
    const valueEnd = json.skipValue(bytes, valueStart, end, MAX_ANSWER_DEPTH);
    if (valueEnd === -1 || valueEnd === end) return { kind: "whole" };
    if (member === ID) {
      if (ownerOf(bytes, valueStart, valueEnd, wireId) === "other") return FOREIGN;
      if (ownerOf(bytes, valueStart, valueEnd, wireId) === "nobody") return { kind: "whole" };
      idAt = valueStart;
    } else if (member === VERSION) hasVersion = isVersion(bytes, valueStart, valueEnd);
    at = json.skipSpace(bytes, valueEnd, end);
    if (bytes[at] === json.COMMA) at = json.skipSpace(bytes, at + 1, end);
  }
  return { kind: "whole" };
}

/** Most bytes behind the result of a long answer: they are judged together. */
export const TAIL_BYTES = 256;

/** What the head of a long answer has established. */
type HeadFacts = Pick<Extract<AnswerHead, { kind: "result" }>, "idAt" | "hasVersion">;

/**
 * Judges what follows the result of a long answer, to its last byte: offset of the id in it, -1 =
 * the id was in the head. Null = it is not the end of an answer to this request.
 */
export function readAnswerTail(tail: Buffer, head: HeadFacts, wireId: string): number | null {
  const isUsual = tail.length === 1 && tail[0] === json.CLOSE_OBJECT;
  if (isUsual && head.idAt !== null && head.hasVersion) return -1;
  if (tail.length > TAIL_BYTES) return null;
  const text = tail.toString("latin1");
  if (!ENDING.test(text) || timesNamed(text, "error") > 1) return null;
  if (timesNamed(text, "jsonrpc") !== (head.hasVersion ? 0 : 1)) return null;
  if (timesNamed(text, "id") !== (head.idAt === null ? 1 : 0)) return null;
  if (head.idAt !== null) return -1;
  const id = TAIL_ID.exec(text);
  return id?.[1] === wireId ? id.index + id[0].length - wireId.length : null;
}

const TAIL_ID = /"id"[ \t\r\n]*:[ \t\r\n]*("[^"]*"|-?\d+|null)/;

/** How often the end of an answer names a member. No string in it contains a quote. */
function timesNamed(rest: string, name: string): number {
  return rest.split(`"${name}"`).length - 1;
}

/**
 * The pattern of what may follow a result: the members that did not come before it, an absent
 * error, and white space, for which a blank stands.
 */
const ENDING = new RegExp(
  '^(?: , (?:"error" : null|"id" : (?:"[^"\\\\]*"|-?\\d+|null)|"jsonrpc" : "2\\.0"))* \\} $'.replaceAll(
    " ",
    "[ \\t\\r\\n]*",
  ),
);

/**
 * Reads a long complete body by its head, the extent of its result and what follows that; null = it
 * is short, or must be read member by member.
 */
export function readLongResult(body: Buffer, wireId: string): ResultAnswer | null {
  if (body.length <= READ_WHOLE_BYTES) return null;
  const head = readAnswerHead(body.subarray(0, READ_WHOLE_BYTES), wireId);
  if (head.kind !== "result") return null;
  const { start, idAt } = head;
  const end = ValueScan.of(body[start])?.take(body, start) ?? -1;
  const tailIdAt = end === -1 ? null : readAnswerTail(body.subarray(end), head, wireId);
  return tailIdAt === null ? null : { kind: "result", start, end, idAt: idAt ?? end + tailIdAt };
}

/** Answers up to this size are read to the last byte. */
const READ_WHOLE_BYTES = 1_024;

/** Parses an error member; `raw` must be valid JSON. A bare string counts as the message. */
export function readError(raw: Buffer): Pick<Failure, "code" | "message" | "data"> {
  const value: unknown = JSON.parse(raw.toString("utf8"));
  if (typeof value === "string") return { code: null, message: value, data: null };
  if (typeof value !== "object" || value === null) return { code: null, message: "", data: null };
  const { code, message, data }: { code?: unknown; message?: unknown; data?: unknown } = value;
  return {
    code: typeof code === "number" ? code : null,
    message: typeof message === "string" ? message : "",
    data: data ?? null,
  };
}

const MAX_ANSWER_DEPTH = 1024;

function bad(message: string): Unusable {
  return { kind: "bad", message };
}
