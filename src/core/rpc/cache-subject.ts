// Which block the answer to a call depends on, as far as a cache may rely on it. Reads parameters
// strictly: what is not written in the plain form that clients use is no subject, and its answer is
// not kept. Knows no cache.
import { parseObject } from "./call.ts";
import { elements, OPEN_ARRAY, OPEN_OBJECT, QUOTE, type Span } from "./json.ts";
import type { Method } from "./method.ts";

/** What the answer to a call depends on. */
export type CacheSubject =
  /** The newest block. */
  | { readonly kind: "head" }
  /** The block of the tag `safe` or `finalized`. */
  | { readonly kind: "tag" }
  /** Blocks up to this number, and nothing after it. */
  | { readonly kind: "number"; readonly number: number }
  /** A block by its hash. */
  | { readonly kind: "hash" }
  /** The block of a transaction, which the answer names. */
  | { readonly kind: "transaction" };

/** The subject of a call with these parameters; null = its answer must not be kept. */
export function cacheSubjectOf(
  bytes: Buffer,
  { start, end }: Span,
  { cache, block }: Pick<Method, "cache" | "block">,
): CacheSubject | null {
  if (cache === null || bytes[start] !== OPEN_ARRAY) return null;
  const most = cache.kind === "block" ? cache.params : MOST_PARAMS;
  const params = elements(bytes, start, end, most + 1);
  if (params.length > most) return null;
  switch (cache.kind) {
    case "head":
      return params.length === 0 ? HEAD : null;
    case "hash":
    case "transaction":
      return isHash(bytes, params[0]) ? { kind: cache.kind } : null;
    case "logs":
      return params.length === 1 ? logSubject(bytes, params[0]) : null;
    case "block": {
      const at = params[block?.at ?? 0];
      if (at === undefined) return cache.needsBlock === true ? null : HEAD;
      return blockSubject(bytes, at);
    }
  }
}

const MOST_PARAMS = 4;
const HEAD: CacheSubject = { kind: "head" };
const TAG: CacheSubject = { kind: "tag" };
const HEX = /^0x(?:0|[1-9a-f][0-9a-f]{0,12})$/i;
const HASH = /^0x[0-9a-fA-F]{64}$/;
const HASH_CHARS = 66;
/** Of a block object; filters may be longer. */
const MAX_BLOCK_OBJECT_BYTES = 256;
const MAX_FILTER_BYTES = 65_536;
const FILTER_MEMBERS: ReadonlySet<string> = new Set(
  "address topics fromBlock toBlock blockHash".split(" "),
);

function isHash(bytes: Buffer, span: Span | undefined): boolean {
  return (
    span !== undefined &&
    bytes[span.start] === QUOTE &&
    span.end - span.start === HASH_CHARS + 2 &&
    HASH.test(bytes.toString("latin1", span.start + 1, span.end - 1))
  );
}

function blockSubject(bytes: Buffer, span: Span): CacheSubject | null {
  const length = span.end - span.start;
  if (bytes[span.start] === QUOTE)
    return length > HASH_CHARS + 2
      ? null
      : textSubject(bytes.toString("latin1", span.start + 1, span.end - 1));
  if (bytes[span.start] !== OPEN_OBJECT || length > MAX_BLOCK_OBJECT_BYTES) return null;
  const value = parseObject(bytes, span);
  const { blockNumber, blockHash, requireCanonical = false, ...others } = value;
  if (Object.keys(others).length > 0 || requireCanonical !== false) return null;
  if ("blockHash" in value)
    return !("blockNumber" in value) && typeof blockHash === "string" && HASH.test(blockHash)
      ? { kind: "hash" }
      : null;
  return typeof blockNumber === "string" ? textSubject(blockNumber) : null;
}

/** A number or tag exactly as written; escapes, `pending` and anything else are no subject. */
function textSubject(text: string): CacheSubject | null {
  switch (text) {
    case "latest":
      return HEAD;
    case "safe":
    case "finalized":
      return TAG;
    case "earliest":
      return { kind: "number", number: 0 };
    default:
      if (HEX.test(text)) return { kind: "number", number: Number(text) };
      return HASH.test(text) ? { kind: "hash" } : null;
  }
}

/** A filter depends on its newest block, since that block determines all blocks before it. */
function logSubject(bytes: Buffer, span: Span | undefined): CacheSubject | null {
  if (span === undefined || bytes[span.start] !== OPEN_OBJECT) return null;
  if (span.end - span.start > MAX_FILTER_BYTES) return null;
  const filter = parseObject(bytes, span);
  if (Object.keys(filter).some((name) => !FILTER_MEMBERS.has(name))) return null;
  const { blockHash, fromBlock = "latest", toBlock = "latest" } = filter;
  if ("blockHash" in filter) {
    const isAlone = !("fromBlock" in filter) && !("toBlock" in filter);
    return isAlone && typeof blockHash === "string" && HASH.test(blockHash)
      ? { kind: "hash" }
      : null;
  }
  if (typeof fromBlock !== "string" || typeof toBlock !== "string") return null;
  const [from, to] = [textSubject(fromBlock), textSubject(toBlock)];
  if (from === null || to === null) return null;
  if (to.kind === "head") return from.kind === "number" || from.kind === "head" ? HEAD : null;
  return to.kind === "number" && from.kind === "number" && from.number <= to.number ? to : null;
}
