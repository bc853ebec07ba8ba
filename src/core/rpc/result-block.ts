// The block that a result names as its own, if any: read from its first members, never parsed as a
// whole.
import type { Call } from "./call.ts";
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  LETTER_N,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  type Span,
  skipSpace,
  skipString,
  skipValue,
} from "./json.ts";

/** The block that a result names; null = it does not. */
export interface ResultBlock {
  readonly number: number | null;
  /** In lower case. */
  readonly hash: string | null;
}

/** Whether a result is `null`, `[]` or `"0x"`: the block may be there without what was asked. */
export function isEmptyResult(bytes: Buffer, { start, end }: Span): boolean {
  if (isNullResult(bytes, { start, end })) return true;
  if (bytes[start] === OPEN_ARRAY) return bytes[skipSpace(bytes, start + 1, end)] === CLOSE_ARRAY;
  return end - start === 4 && bytes.toString("latin1", start, end) === '"0x"';
}

/** Whether a result is `null`. */
export function isNullResult(bytes: Buffer, { start }: Span): boolean {
  return bytes[start] === LETTER_N;
}

/**
 * The block that an object names as `blockNumber` and `blockHash`, or, if it is a block, as
 * `number` and `hash`, as far as its bytes are here. Of an array, what its first element names.
 */
export function resultBlock(bytes: Buffer, { start, end }: Span): ResultBlock {
  const at = bytes[start] === OPEN_ARRAY ? skipSpace(bytes, start + 1, end) : start;
  return bytes[at] === OPEN_OBJECT ? blockOfObject(bytes, at, end) : NO_BLOCK;
}

/**
 * The number of a block that the answer to a call shows its provider to have; null = it shows none.
 * Reads no more than the first members of an object.
 */
export function blockNumberOf(
  { method: { name, cache }, block }: Pick<Call, "method" | "block">,
  bytes: Buffer,
  { start, end }: Span,
): number | null {
  if (name === "eth_blockNumber") return quantity(bytes, start, end);
  const isThere = bytes[start] === OPEN_OBJECT;
  if (!isThere || cache === null) return null;
  if (cache.kind === "block")
    return cache.named === true && block.kind === "number" ? block.number : null;
  if (cache.kind !== "hash" && cache.kind !== "transaction") return null;
  return resultBlock(bytes, { start, end }).number;
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
  let at = skipSpace(bytes, open + 1, end);
  while (at < end && bytes[at] === QUOTE) {
    const nameEnd = skipString(bytes, at, end);
    const value = skipSpace(bytes, skipSpace(bytes, nameEnd, end) + 1, end);
    const valueEnd = skipValue(bytes, value, end, DEPTH);
    if (nameEnd === -1 || valueEnd === -1) break;
    const name = NAME_CHARS.has(nameEnd - at) ? bytes.toString("latin1", at + 1, nameEnd - 1) : "";
    if (name === "blockNumber") blockNumber = quantity(bytes, value, valueEnd);
    else if (name === "blockHash") blockHash = hashIn(bytes, value, valueEnd);
    else if (name === "number") number = quantity(bytes, value, valueEnd);
    else if (name === "hash") hash = hashIn(bytes, value, valueEnd);
    if (blockNumber !== null && blockHash !== null) break;
    if (number !== null && hash !== null) break;
    at = skipSpace(bytes, valueEnd, end);
    if (bytes[at] === CLOSE_OBJECT) break;
    if (bytes[at] === COMMA) at = skipSpace(bytes, at + 1, end);
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
