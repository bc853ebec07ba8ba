// Reads from a result the block that it belongs to, whether it is null, and whether it contradicts
// its question: another form, or another block, transaction or log than the call names. Reads only
// the first members of the bytes where they suffice.

import { isRecord } from "../fields.ts";
import type { Naming } from "./answer-rules.ts";
import type { Call } from "./call.ts";
import * as json from "./json.ts";

/** The block that a result names; null = it does not. */
export interface ResultBlock {
  readonly number: number | null;
  /** In lower case. */
  readonly hash: string | null;
}

/** The block in which a transaction was mined. */
interface MinedBlock extends ResultBlock {
  readonly number: number;
}

/** Whether a result is `null`, `[]` or `"0x"`: the block may be there without what was asked. */
export function isEmptyResult(bytes: Buffer, { start, end }: json.Span): boolean {
  if (isNullResult(bytes, { start, end })) return true;
  if (bytes[start] === json.OPEN_ARRAY)
    return bytes[json.skipSpace(bytes, start + 1, end)] === json.CLOSE_ARRAY;
  return end - start === 4 && bytes.toString("latin1", start, end) === '"0x"';
}

/** Whether a result is `null`. */
export function isNullResult(bytes: Buffer, { start }: json.Span): boolean {
  return bytes[start] === json.LETTER_N;
}

/** Whether a result says that there is nothing at numbered blocks. */
export function isEmptyAt({ block, method }: Call, body: Buffer, span: json.Span): boolean {
  if (block.kind !== "number" && block.kind !== "range") return false;
  if (!isEmptyResult(body, span)) return false;
  const { resource, mayBeMissing } = method;
  const isList = resource === "logs" || resource === "receipts";
  return isList || (mayBeMissing && isNullResult(body, span));
}

/**
 * The block that an object names as `blockNumber` and `blockHash`, or, if it is a block, as
 * `number` and `hash`, as far as its bytes are here. Of an array, what its first element names.
 */
export function resultBlock(bytes: Buffer, { start, end }: json.Span): ResultBlock {
  const at = bytes[start] === json.OPEN_ARRAY ? json.skipSpace(bytes, start + 1, end) : start;
  return bytes[at] === json.OPEN_OBJECT ? blockOfObject(bytes, at, end) : NO_BLOCK;
}

/**
 * The number of a block that the answer to a call shows its provider to have; null = it shows none.
 * Reads no more than the first members of an object.
 */
export function blockNumberOf(
  { method: { name, cache }, block }: Pick<Call, "method" | "block">,
  bytes: Buffer,
  { start, end }: json.Span,
): number | null {
  if (name === "eth_blockNumber") return quantity(bytes, start, end);
  const isThere = bytes[start] === json.OPEN_OBJECT;
  if (!isThere || cache === null) return null;
  if (cache.kind === "block")
    return cache.named === true && block.kind === "number" ? block.number : null;
  if (cache.kind !== "hash" && cache.kind !== "transaction") return null;
  return resultBlock(bytes, { start, end }).number;
}

/** The block that a transaction or receipt says it was mined in; null = it names none. */
export function minedIn(bytes: Buffer, span: json.Span): MinedBlock | null {
  const { number, hash } = resultBlock(bytes, span);
  return number === null ? null : { number, hash };
}

/** Members of a transaction that say where it was mined. */
const PLACES = ["blockHash", "blockNumber", "transactionIndex", "blockTimestamp"] as const;

/** A mined transaction as a pending one: it names no block. */
export function pendingText(bytes: Buffer, span: json.Span): string {
  const members = json.membersOf(bytes, span);
  const places = PLACES.flatMap((name) => members?.get(name) ?? []).sort(
    (left, right) => left.start - right.start,
  );
  let text = "";
  let at = span.start;
  for (const { start, end } of places) {
    text += `${bytes.toString("utf8", at, start)}null`;
    at = end;
  }
  return text + bytes.toString("utf8", at, span.end);
}

const NO_BLOCK: ResultBlock = { number: null, hash: null };
const DEPTH = 128;
const HEX = /^"0x[0-9a-fA-F]{1,13}"$/;
const HASH = /^"0x[0-9a-fA-F]{64}"$/;
/** Lengths of the four names with their quotes; nothing else needs to be read as text. */
const NAME_CHARS: ReadonlySet<number> = new Set([6, 8, 11, 13]);

function blockOfObject(bytes: Buffer, open: number, end: number): ResultBlock {
  let blockNumber: number | null = null;
  let blockHash: string | null = null;
  let number: number | null = null;
  let hash: string | null = null;
  let at = json.skipSpace(bytes, open + 1, end);
  while (at < end && bytes[at] === json.QUOTE) {
    const nameEnd = json.skipString(bytes, at, end);
    const value = json.skipSpace(bytes, json.skipSpace(bytes, nameEnd, end) + 1, end);
    const valueEnd = json.skipValue(bytes, value, end, DEPTH);
    if (nameEnd === -1 || valueEnd === -1) break;
    const name = NAME_CHARS.has(nameEnd - at) ? bytes.toString("latin1", at + 1, nameEnd - 1) : "";
    if (name === "blockNumber") blockNumber = quantity(bytes, value, valueEnd);
    else if (name === "blockHash") blockHash = hashIn(bytes, value, valueEnd);
    else if (name === "number") number = quantity(bytes, value, valueEnd);
    else if (name === "hash") hash = hashIn(bytes, value, valueEnd);
    if (blockNumber !== null && blockHash !== null) break;
    if (number !== null && hash !== null) break;
    at = json.skipSpace(bytes, valueEnd, end);
    if (bytes[at] === json.CLOSE_OBJECT) break;
    if (bytes[at] === json.COMMA) at = json.skipSpace(bytes, at + 1, end);
  }
  // A transaction has a `hash` of its own and no `number`.
  if (blockNumber !== null || number === null) return { number: blockNumber, hash: blockHash };
  return { number, hash };
}

function quantity(bytes: Buffer, start: number, end: number): number | null {
  if (end - start > 17) return null;
  const text = bytes.toString("latin1", start, end);
  return HEX.test(text) ? Number(text.slice(1, -1)) : null;
}

function hashIn(bytes: Buffer, start: number, end: number): string | null {
  if (end - start !== 68) return null;
  const text = bytes.toString("latin1", start, end);
  return HASH.test(text) ? text.slice(1, -1).toLowerCase() : null;
}

/** How much of an answer is read. */
export type Extent =
  /** Of a list the first and the last element: those of another question differ in all. */
  | "ends"
  /** Every element: what is kept is given to others. */
  | "all"
  /** What is here of an answer that streams. */
  | "beginning";

/** What contradicts, in a word; null = nothing that was read. */
export function contradictionIn(
  call: Call,
  bytes: Buffer,
  span: json.Span,
  extent: Extent,
): string | null {
  const { naming } = call.method;
  if (naming === null) return null;
  if (!hasForm(naming, bytes, span)) return "form";
  if (call.params === undefined || bytes[span.start] === json.LETTER_N) return null;
  switch (naming) {
    case "block":
      return otherBlock(call, resultBlock(bytes, span));
    case "indexed":
      return otherBlock(call, resultBlock(bytes, span)) ?? otherIndex(call, bytes, span);
    case "transaction":
      return otherHash(call, bytes.subarray(span.start, span.end), HASH_MEMBER);
    case "receipt":
      return otherHash(call, bytes.subarray(span.start, span.end), RECEIPT_MEMBER);
    case "receipts":
      return otherElement((value) => otherReceipt(call, value), bytes, span, extent);
    case "logs": {
      const asked = askedLogsOf(call);
      if (asked === null) return null;
      return otherElement((value) => otherLog(asked, value), bytes, span, extent);
    }
    case "hex":
      return null;
  }
}

const HASH_MEMBER = /"hash"\s*:\s*"(0x[0-9a-f]{64})"/i;
const RECEIPT_MEMBER = /"transactionHash"\s*:\s*"(0x[0-9a-f]{64})"/i;
const HASH_TEXT = /^0x[0-9a-f]{64}$/;
const QUANTITY = /^0x[0-9a-f]{1,13}$/i;
const MAX_FILTER_BYTES = 16_384;

/** Whether a result matches the request; `null` says that nothing does. */
function hasForm(naming: Naming, bytes: Buffer, { start }: json.Span): boolean {
  switch (naming) {
    case "hex":
      return json.startsWith(bytes, start, '"0x');
    case "receipts":
    case "logs":
      return bytes[start] === json.OPEN_ARRAY || bytes[start] === json.LETTER_N;
    default:
      return bytes[start] === json.OPEN_OBJECT || bytes[start] === json.LETTER_N;
  }
}

function otherBlock(
  { block, resolution, params, body }: Call,
  { number, hash }: { readonly number: number | null; readonly hash: string | null },
): string | null {
  if (block.kind === "number" && number !== null && number !== block.number) return "number";
  if (resolution !== undefined || hash === null) return null;
  const asked = params === undefined ? null : textAt(body, params, 0);
  return asked !== null && HASH_TEXT.test(asked) && asked !== hash ? "hash" : null;
}

function otherIndex({ params, body }: Call, bytes: Buffer, span: json.Span): string | null {
  const asked = params === undefined ? null : textAt(body, params, 1);
  const transaction = valueIn(bytes, span);
  const index = isRecord(transaction) ? quantityOf(transaction["transactionIndex"]) : null;
  return asked !== null && index !== null && index !== Number(asked) ? "index" : null;
}

/** Found by a search for the hash itself: a receipt may be long. */
function otherHash({ params, body }: Call, answer: Buffer, member: RegExp): string | null {
  const asked = params === undefined ? null : textAt(body, params, 0);
  if (asked === null || !HASH_TEXT.test(asked) || answer.includes(asked, 0, "latin1")) return null;
  const named = member.exec(answer.toString("latin1"));
  return named !== null && named[1]?.toLowerCase() !== asked ? "hash" : null;
}

/** Holds the elements of a list against the question, each by itself. */
function otherElement(
  otherThan: (value: unknown) => string | null,
  bytes: Buffer,
  span: json.Span,
  extent: Extent,
): string | null {
  if (extent === "all") return otherInAll(otherThan, valueIn(bytes, span));
  const [first] = json.elements(bytes, span.start, span.end, 1);
  if (first === undefined) return null;
  const why = otherThan(valueIn(bytes, first));
  if (why !== null || extent === "beginning") return why;
  const start = bytes.lastIndexOf(json.OPEN_OBJECT, span.end - 1);
  if (start <= first.start) return null;
  // An object within the last element is followed by more than the end of the list.
  const last = valueIn(bytes, { start, end: span.end - 1 });
  return last === undefined ? null : otherThan(last);
}

function otherInAll(otherThan: (value: unknown) => string | null, list: unknown): string | null {
  if (!Array.isArray(list)) return "form";
  for (const value of list) {
    const why = otherThan(value);
    if (why !== null) return why;
  }
  return null;
}

function otherReceipt(call: Call, receipt: unknown): string | null {
  if (!isRecord(receipt)) return "form";
  const number = quantityOf(receipt["blockNumber"]);
  return otherBlock(call, { number, hash: lowerCase(receipt["blockHash"]) });
}

/** What logs are asked for; null = anything. */
interface AskedLogs {
  readonly from: number | null;
  readonly to: number | null;
  readonly blockHashes: ReadonlySet<string> | null;
  readonly addresses: ReadonlySet<string> | null;
  /** By their places. */
  readonly topics: readonly (ReadonlySet<string> | null)[];
}

function askedLogsOf({ body, params, block }: Call): AskedLogs | null {
  const at = params === undefined ? null : json.elementAt(body, params.start, params.end, 0);
  if (at === null || at.end - at.start > MAX_FILTER_BYTES) return null;
  const filter = valueIn(body, at);
  if (!isRecord(filter)) return null;
  const { from, to } = block.kind === "range" ? block : { from: null, to: null };
  const topics = filter["topics"];
  return {
    from,
    to,
    blockHashes: wanted(filter["blockHash"]),
    addresses: wanted(filter["address"]),
    topics: Array.isArray(topics) ? topics.map(wanted) : [],
  };
}

function otherLog(asked: AskedLogs, log: unknown): string | null {
  if (!isRecord(log)) return "form";
  const number = quantityOf(log["blockNumber"]);
  if (number !== null && !isWithin(asked, number)) return "range";
  if (isOther(log["blockHash"], asked.blockHashes)) return "hash";
  if (isOther(log["address"], asked.addresses)) return "address";
  const { topics } = log;
  if (!Array.isArray(topics)) return null;
  const isOtherTopic = (wanted: ReadonlySet<string> | null, place: number): boolean =>
    place < topics.length ? isOther(topics[place], wanted) : wanted !== null;
  return asked.topics.some(isOtherTopic) ? "topics" : null;
}

function isWithin({ from, to }: AskedLogs, number: number): boolean {
  return (from === null || number >= from) && (to === null || number <= to);
}

/** The values of which one is asked for; null = any will do. */
function wanted(asked: unknown): ReadonlySet<string> | null {
  const values: readonly unknown[] = Array.isArray(asked) ? asked : [asked];
  const texts = values.map(lowerCase).filter((text) => text !== null);
  return texts.length === 0 || texts.length < values.length ? null : new Set(texts);
}

function isOther(value: unknown, asked: ReadonlySet<string> | null): boolean {
  const text = lowerCase(value);
  return asked !== null && text !== null && !asked.has(text);
}

function lowerCase(value: unknown): string | null {
  return typeof value === "string" ? value.toLowerCase() : null;
}

function quantityOf(value: unknown): number | null {
  return typeof value === "string" && QUANTITY.test(value) ? Number(value) : null;
}

/** Undefined = it is no JSON. */
function valueIn(bytes: Buffer, { start, end }: json.Span): unknown {
  try {
    return JSON.parse(bytes.toString("utf8", start, end));
  } catch {
    return undefined;
  }
}

/** The text of a parameter, in lower case; null = it is no string. */
function textAt(body: Buffer, params: json.Span, index: number): string | null {
  if (body[params.start] !== json.OPEN_ARRAY) return null;
  const at = json.elementAt(body, params.start, params.end, index);
  if (at === null || body[at.start] !== json.QUOTE) return null;
  return body.toString("latin1", at.start + 1, at.end - 1).toLowerCase();
}
