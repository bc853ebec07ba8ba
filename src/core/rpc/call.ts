// A call: one JSON-RPC request bound for one chain, as the router sees it. Knows neither HTTP nor
// the caller's envelope beyond the bytes to forward.
import { BLOCK_TAGS, type OptionalTag } from "./block-tag.ts";
import { elements, OPEN_ARRAY, OPEN_OBJECT, QUOTE, type Span } from "./json.ts";
import type { Method } from "./method.ts";
import type { WireRequest } from "./wire-request.ts";

/**
 * Which blocks a call reads, as far as its parameters say. `none`: no block parameter, a tag near
 * the head, or one that cannot be read.
 */
export type BlockRef =
  | { readonly kind: "none" }
  | { readonly kind: "tag"; readonly tag: OptionalTag }
  | { readonly kind: "earliest" }
  | { readonly kind: "hash" }
  | { readonly kind: "number"; readonly number: number }
  /** Inclusive; null = a tag near the head; `earliest` is 0. */
  | { readonly kind: "range"; readonly from: number | null; readonly to: number | null };

/** One JSON-RPC request bound for one chain, with what is sent upstream. */
export interface Call extends WireRequest {
  /** As the caller wrote it; unlisted names share a `method` row but keep their own name here. */
  readonly methodName: string;
  readonly method: Method;
  readonly block: BlockRef;
}

/** No block parameter, or one near the head. */
export const NO_BLOCK: BlockRef = { kind: "none" };

/**
 * Reads which blocks a request asks for. Anything malformed reads as `none`: judging parameters is
 * the provider's business.
 */
export function readBlockRef(bytes: Buffer, params: Span, method: Method): BlockRef {
  if (method.block === null || params.start === -1 || bytes[params.start] !== OPEN_ARRAY)
    return NO_BLOCK;
  const { kind, at } = method.block;
  const span = elements(bytes, params.start, params.end, at + 1)[at];
  if (span === undefined) return NO_BLOCK;
  const c = bytes[span.start];
  if (kind === "block" && c === QUOTE)
    return readBlock(bytes.toString("latin1", span.start + 1, span.end - 1));
  if (c !== OPEN_OBJECT || span.end - span.start > MAX_OBJECT_BYTES) return NO_BLOCK;
  const value = parseObject(bytes, span);
  if (kind === "block") {
    if ("blockHash" in value) return { kind: "hash" };
    return typeof value["blockNumber"] === "string" ? readBlock(value["blockNumber"]) : NO_BLOCK;
  }
  if ("blockHash" in value) return NO_BLOCK;
  return { kind: "range", from: readBound(value["fromBlock"]), to: readBound(value["toBlock"]) };
}

const MAX_OBJECT_BYTES = 1_000_000;
const HEX = /^0x[0-9a-fA-F]{1,13}$/;

function parseObject(bytes: Buffer, span: Span): Record<string, unknown> {
  const value: unknown = JSON.parse(bytes.toString("utf8", span.start, span.end));
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** A block number or tag; `none` where the text is neither. */
function readBlock(text: string): BlockRef {
  const tagged = BLOCK_TAGS.get(text);
  if (tagged !== undefined) return tagged;
  return HEX.test(text) ? { kind: "number", number: Number(text) } : NO_BLOCK;
}

/** A bound of a log filter; null = near the head, 0 = `earliest`. */
function readBound(value: unknown): number | null {
  const block = typeof value === "string" ? readBlock(value) : NO_BLOCK;
  if (block.kind === "earliest") return 0;
  return block.kind === "number" ? block.number : null;
}
