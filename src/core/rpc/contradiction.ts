// Whether an answer contradicts its question: another block, transaction or log than was asked for.
// Reads what names the thing, no more; an answer that names nothing contradicts nothing.
import type { Call } from "./call.ts";
import {
  elementAt,
  elements,
  membersOf,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  type Span,
} from "./json.ts";
import { resultBlock } from "./result-block.ts";

/** What contradicts, in a word; null = nothing that was read. */
export function contradictionIn(call: Call, bytes: Buffer, span: Span): string | null {
  const { naming } = call.method;
  if (naming === null || call.params === undefined || bytes[span.start] === undefined) return null;
  const opening = bytes[span.start];
  if (opening !== OPEN_OBJECT && opening !== OPEN_ARRAY) return null;
  switch (naming) {
    case "block":
      return otherBlock(call, bytes, span);
    case "indexed":
      return otherBlock(call, bytes, span) ?? otherIndex(call, bytes, span);
    case "transaction":
      return otherHash(call, bytes, span, HASH_MEMBER);
    case "receipt":
      return otherHash(call, bytes, span, RECEIPT_MEMBER);
    case "logs":
      return opening === OPEN_ARRAY ? otherLogs(call, bytes, span) : null;
  }
}

const HASH_MEMBER = Buffer.from('"hash"');
const RECEIPT_MEMBER = Buffer.from('"transactionHash"');
const HASH = /^0x[0-9a-f]{64}$/;
const MAX_FILTER_BYTES = 16_384;
const MAX_TOPICS = 4;

function otherBlock({ block, resolution, params, body }: Call, bytes: Buffer, span: Span) {
  const { number, hash } = resultBlock(bytes, span);
  if (block.kind === "number" && number !== null && number !== block.number) return "number";
  if (resolution !== undefined || hash === null) return null;
  const asked = params === undefined ? null : textAt(body, params, 0);
  return asked !== null && HASH.test(asked) && asked !== hash ? "hash" : null;
}

function otherIndex({ params, body }: Call, bytes: Buffer, span: Span): string | null {
  const asked = params === undefined ? null : textAt(body, params, 1);
  const at = membersOf(bytes, span)?.get("transactionIndex");
  if (asked === null || at === undefined || bytes[at.start] !== QUOTE) return null;
  const index = Number(bytes.toString("latin1", at.start + 1, at.end - 1));
  return Number.isInteger(index) && index !== Number(asked) ? "index" : null;
}

/** Found by a search for the hash itself: a receipt may be long. */
function otherHash({ params, body }: Call, bytes: Buffer, span: Span, member: Buffer) {
  const asked = params === undefined ? null : textAt(body, params, 0);
  if (asked === null || !HASH.test(asked)) return null;
  const answer = bytes.subarray(span.start, span.end);
  return answer.indexOf(asked, 0, "latin1") === -1 && answer.includes(member) ? "hash" : null;
}

/** Of the first log and the last one: those of another question differ in all. */
function otherLogs(call: Call, bytes: Buffer, span: Span): string | null {
  const [first] = elements(bytes, span.start, span.end, 1);
  const filter = filterOf(call);
  if (filter === null || first === undefined) return null;
  const log = membersOf(bytes, first);
  const why = log === null ? null : otherLog(call, filter, bytes, log);
  const start = bytes.lastIndexOf(OPEN_OBJECT, span.end - 1);
  if (why !== null || start <= first.start) return why;
  const last = membersOf(bytes, { start, end: span.end });
  // Logs may hold further objects.
  const isLog = last?.has("address") === true && last.has("blockNumber");
  return isLog ? otherLog(call, filter, bytes, last) : null;
}

function otherLog(
  call: Call,
  { blockHash, address, topics }: Readonly<Record<string, unknown>>,
  bytes: Buffer,
  log: ReadonlyMap<string, Span>,
): string | null {
  const text = (name: string): string | null => {
    const at = log.get(name);
    if (at === undefined || bytes[at.start] !== QUOTE) return null;
    return bytes.toString("latin1", at.start + 1, at.end - 1).toLowerCase();
  };
  const { from, to } = rangeOf(call);
  const number = Number(text("blockNumber") ?? Number.NaN);
  if ((from !== null && number < from) || (to !== null && number > to)) return "range";
  if (isOther(text("blockHash"), blockHash)) return "hash";
  if (isOther(text("address"), address)) return "address";
  const held = log.get("topics");
  return held !== undefined && areOthers(bytes, held, topics) ? "topics" : null;
}

/** Whether topics of a log are none of those that were asked for at their places. */
function areOthers(bytes: Buffer, held: Span, asked: unknown): boolean {
  if (!Array.isArray(asked) || bytes[held.start] !== OPEN_ARRAY) return false;
  const spans = elements(bytes, held.start, held.end, MAX_TOPICS);
  return asked.slice(0, MAX_TOPICS).some((one, place) => {
    const at = spans[place];
    if (at === undefined || bytes[at.start] !== QUOTE) return false;
    return isOther(bytes.toString("latin1", at.start + 1, at.end - 1).toLowerCase(), one);
  });
}

function rangeOf({ block }: Call): { readonly from: number | null; readonly to: number | null } {
  return block.kind === "range" ? block : { from: null, to: null };
}

/** Whether a value is none of those that were asked for. */
function isOther(value: string | null, asked: unknown): boolean {
  if (value === null) return false;
  if (typeof asked === "string") return asked.toLowerCase() !== value;
  if (!Array.isArray(asked) || asked.length === 0) return false;
  return !asked.some((one) => typeof one !== "string" || one.toLowerCase() === value);
}

function filterOf({ body, params }: Call): Readonly<Record<string, unknown>> | null {
  const at = params === undefined ? null : elementAt(body, params.start, params.end, 0);
  if (at === null || body[at.start] !== OPEN_OBJECT || at.end - at.start > MAX_FILTER_BYTES)
    return null;
  const value: unknown = JSON.parse(body.toString("utf8", at.start, at.end));
  return typeof value === "object" && value !== null ? { ...value } : null;
}

/** The text of a parameter, in lower case; null = it is no string. */
function textAt(body: Buffer, params: Span, index: number): string | null {
  if (body[params.start] !== OPEN_ARRAY) return null;
  const at = elementAt(body, params.start, params.end, index);
  if (at === null || body[at.start] !== QUOTE) return null;
  return body.toString("latin1", at.start + 1, at.end - 1).toLowerCase();
}
