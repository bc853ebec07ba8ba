// Calls over a range of blocks whose results are lists: reads the range of one, makes the call for
// a part of it, and finds the elements of a result by its bytes, so that parts can be joined
// without being parsed.
import { isRecord } from "../fields.ts";
import type { Call } from "./call.ts";
import { CLOSE_ARRAY, elements, OPEN_ARRAY, type Span, skipSpace } from "./json.ts";
import { writeRequest } from "./wire-request.ts";

/** A call over a range of blocks. */
export interface RangeCall {
  /** Its filter object, as the caller wrote it. */
  readonly filter: Readonly<Record<string, unknown>>;
  readonly from: number;
  /** The last block, as the caller wrote it: a number or a tag. */
  readonly to: number | string;
}

/** Longest filter that is taken apart. */
const MAX_FILTER_BYTES = 1_000_000;

/** Tags whose block is the same for all who ask at one time, but for the newest blocks. */
const END_TAGS: ReadonlySet<string> = new Set(["latest", "safe", "finalized"]);

/** Members by which a caller asks for a page of the results of a whole range. */
const PAGES: ReadonlySet<string> = new Set(["after", "count"]);

/** Whether the blocks of a call can be asked for in parts, as far as its range tells. */
export function isRange({ method, block }: Pick<Call, "method" | "block">): boolean {
  return (
    method.block?.kind === "filter" &&
    method.handling === "route" &&
    method.replaySafe &&
    block.kind === "range" &&
    block.from !== null
  );
}

/** Reads a call over a range; null = it cannot be asked for in parts. */
export function readRangeCall({ body, block }: Call): RangeCall | null {
  if (block.kind !== "range" || block.from === null || body.length > MAX_FILTER_BYTES) return null;
  const request: unknown = JSON.parse(body.toString("utf8"));
  const params = isRecord(request) ? request["params"] : undefined;
  if (!Array.isArray(params) || params.length !== 1) return null;
  const [filter]: unknown[] = params;
  if (!isRecord(filter) || Object.keys(filter).some((name) => PAGES.has(name))) return null;
  if (block.to !== null) return { filter, from: block.from, to: block.to };
  const to = filter["toBlock"] ?? "latest";
  return typeof to === "string" && END_TAGS.has(to) ? { filter, from: block.from, to } : null;
}

/** The same call for the blocks `from` to `to`. */
export function partCall(
  { methodName, method }: Pick<Call, "methodName" | "method">,
  { filter }: RangeCall,
  { from, to }: { readonly from: number; readonly to: number },
): Call {
  const part = { ...filter, fromBlock: hexOf(from), toBlock: hexOf(to) };
  return {
    methodName,
    method,
    block: { kind: "range", from, to },
    ...writeRequest(methodName, Buffer.from(JSON.stringify([part]))),
  };
}

/** A block number as a parameter. */
export function hexOf(number: number): string {
  return `0x${number.toString(16)}`;
}

/**
 * Where the elements of a list lie, without the brackets around them; null = the value is no list.
 * An empty list has an empty span.
 */
export function elementsSpan(bytes: Buffer, { start, end }: Span): Span | null {
  if (end - start < 2 || bytes[start] !== OPEN_ARRAY || bytes[end - 1] !== CLOSE_ARRAY) return null;
  const first = skipSpace(bytes, start + 1, end - 1);
  return { start: first, end: end - 1 };
}

/** Where an element of a list says that it belongs. */
export interface BlockPlace {
  readonly number: number;
  readonly hash: string;
}

/** Most elements of one part that are placed. */
const MAX_ELEMENTS = 1_000_000;

/**
 * The blocks that the elements of a list name, each once; null = one of them names none, or two
 * disagree about a block.
 */
export function blocksNamed(bytes: Buffer, { start, end }: Span): readonly BlockPlace[] | null {
  const hashes = new Map<number, string>();
  for (const element of elements(bytes, start, end, MAX_ELEMENTS)) {
    const place = placeOf(bytes.subarray(element.start, element.end));
    if (place === null || (hashes.get(place.number) ?? place.hash) !== place.hash) return null;
    hashes.set(place.number, place.hash);
  }
  return [...hashes].map(([number, hash]) => ({ number, hash }));
}

/** The block of a log or a trace. */
function placeOf(bytes: Buffer): BlockPlace | null {
  const value: unknown = JSON.parse(bytes.toString("utf8"));
  if (!isRecord(value)) return null;
  const { blockNumber, blockHash } = value;
  const number = typeof blockNumber === "string" ? Number(blockNumber) : blockNumber;
  return typeof number === "number" && Number.isSafeInteger(number) && typeof blockHash === "string"
    ? { number, hash: blockHash.toLowerCase() }
    : null;
}
