// A call: one JSON-RPC request for one chain, as the router sees it, and the blocks that it reads.
// Knows neither HTTP nor the caller's envelope, except the bytes to forward.
import { elementAt, OPEN_ARRAY, OPEN_OBJECT, QUOTE, type Span, startsWith } from "./json.ts";
import { type Method, methodOf } from "./method.ts";
import { type WireRequest, writeRequest } from "./wire-request.ts";

/**
 * The blocks that a call reads, according to its parameters. `none`: no block parameter, a tag near
 * the head, or a parameter that cannot be parsed.
 */
export type BlockRef =
  | { readonly kind: "none" }
  | { readonly kind: "tag"; readonly tag: OptionalTag }
  | { readonly kind: "earliest" }
  | { readonly kind: "hash" }
  | { readonly kind: "number"; readonly number: number }
  /** Inclusive; null = a tag near the head; `earliest` is 0. */
  | { readonly kind: "range"; readonly from: number | null; readonly to: number | null };

/** What became of the block of a call. */
export interface BlockResolution {
  /** The block that was put into the call. */
  readonly number: number;
  /** Its hash; null = unknown, or the call is over a range of blocks. */
  readonly hash: string | null;
  /** The call as its caller wrote it. */
  readonly written: Call;
  /** Where the number stands in the body, with its quotes; of a range: the last one. */
  readonly at: Span;
}

/** One JSON-RPC request for one chain, with the bytes that are sent upstream. */
export interface Call extends WireRequest {
  /** As the caller wrote it. Unlisted names share one `method` row but keep their own name here. */
  readonly methodName: string;
  readonly method: Method;
  readonly block: BlockRef;
  /** Where the parameters lie in `body`; absent = there are none, or it is not known. */
  readonly params?: Span | undefined;
  /** Where its block lies in `body`; absent = it is not known. */
  readonly blockAt?: Span | undefined;
  /** Its block was resolved under a view; absent = it stands there as the caller wrote it. */
  readonly resolution?: BlockResolution | undefined;
}

/** A call that is made here; `params` is a JSON array. */
export function newCall(methodName: string, params: string, block: BlockRef = NO_BLOCK): Call {
  const request = writeRequest(methodName, Buffer.from(params));
  return { methodName, method: methodOf(methodName), block, ...request };
}

/** No block parameter, or one near the head. */
export const NO_BLOCK: BlockRef = { kind: "none" };
const EARLIEST: BlockRef = { kind: "earliest" };

/**
 * Reads the blocks that a request names. Malformed parameters read as `none`: rejecting them is the
 * provider's task.
 */
export function readBlockRef(bytes: Buffer, params: Span, method: Method): BlockRef {
  const { block } = method;
  if (block === null || params.start === -1 || bytes[params.start] !== OPEN_ARRAY) return NO_BLOCK;
  const span = elementAt(bytes, params.start, params.end, block.at);
  return span === null ? NO_BLOCK : readBlockAt(bytes, span, method);
}

/** The blocks that the parameter at a place names. */
export function readBlockAt(bytes: Buffer, span: Span, method: Method): BlockRef {
  const kind = method.block?.kind ?? "block";
  const c = bytes[span.start];
  if (kind === "block" && isLatest(bytes, span)) return NO_BLOCK;
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

/** Whether a value is the tag of nearly all calls that name one. */
export function isLatest(bytes: Buffer, { start, end }: Span): boolean {
  return end - start === LATEST.length && startsWith(bytes, start, LATEST);
}

const LATEST = '"latest"';
const MAX_OBJECT_BYTES = 1_000_000;
const HEX = /^0x[0-9a-fA-F]{1,13}$/;

/** The members of a JSON object. */
export function parseObject(bytes: Buffer, span: Span): Record<string, unknown> {
  const value: unknown = JSON.parse(bytes.toString("utf8", span.start, span.end));
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** A block number or tag; `none` where the text is neither. */
function readBlock(text: string): BlockRef {
  if (text.includes("\\")) {
    // A tag may be written with escapes, and means the same to a node.
    const meant: unknown = text.length > MAX_ESCAPED ? null : JSON.parse(`"${text}"`);
    return typeof meant === "string" && !meant.includes("\\") ? readBlock(meant) : NO_BLOCK;
  }
  if (text === "latest") return NO_BLOCK;
  if (text === "earliest") return EARLIEST;
  if (HEX.test(text)) return { kind: "number", number: Number(text) };
  const tag = OPTIONAL_TAGS.find((known) => known === text);
  return tag === undefined ? NO_BLOCK : { kind: "tag", tag };
}

const MAX_ESCAPED = 512;

/** A bound of a log filter; null = near the head, 0 = `earliest`. */
function readBound(value: unknown): number | null {
  const block = typeof value === "string" ? readBlock(value) : NO_BLOCK;
  if (block.kind === "earliest") return 0;
  return block.kind === "number" ? block.number : null;
}

/** Tags that not every provider serves. What a provider refuses is learned by tag. */
export const OPTIONAL_TAGS = ["pending", "safe", "finalized"] as const;

/** One of the tags that not every provider serves. */
export type OptionalTag = (typeof OPTIONAL_TAGS)[number];

/** Whether a number can be a block height: a safe, non-negative integer. */
export function isHeight(height: number): boolean {
  return Number.isSafeInteger(height) && height >= 0;
}

/** A served tip in force, and the blocks that tags name under it. */
export interface View {
  /** The block that `latest` names. */
  readonly number: number;
  /** Null = no provider has told it. */
  readonly hash: string | null;
  /** The block that `safe` names; null = unknown, so the tag is sent as it was written. */
  readonly safe: number | null;
  readonly finalized: number | null;
  /** One operator alone defines the tip although others are configured. */
  readonly isAlone: boolean;
}
