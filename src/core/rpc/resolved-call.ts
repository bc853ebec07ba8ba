// Calls whose block was written as a tag, or left out, resolved to one block of the chain: by its
// number, or by its hash where that says the same more exactly. All other bytes stay as the caller
// wrote them.

import type { BlockRef, BlockResolution, Call, View } from "./call.ts";
import {
  CLOSE_ARRAY,
  elementAt,
  membersOf,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  type Span,
  skipSpace,
} from "./json.ts";
import { hexOf } from "./range-call.ts";
import { type WireRequest, writeRequest } from "./wire-request.ts";

/** A call at one block. */
export interface ResolvedCall extends Call {
  readonly resolution: BlockResolution;
}

/** Whether the block of a call was resolved. */
export function isResolved(call: Call): call is ResolvedCall {
  return call.resolution !== undefined;
}

/** The tags that name one block under a view. */
type ViewTag = "latest" | "safe" | "finalized";

/**
 * The call at the block of the view; null = the call names no block of a view, or the block is not
 * known.
 */
export function resolveCall(call: Call, view: View): ResolvedCall | null {
  const { method, params, body } = call;
  if (method.block === null || params === undefined || body[params.start] !== OPEN_ARRAY)
    return null;
  return method.block.kind === "block"
    ? resolveBlock(call, params, view)
    : resolveFilter(call, params, view);
}

/**
 * The request for the block by its hash: the method of the same name by hash, or the number
 * replaced by an EIP-1898 object. Null = it cannot be asked for so.
 */
export function requestByHash(call: ResolvedCall): WireRequest | null {
  const { method, body, params, resolution } = call;
  const { hash, at } = resolution;
  if (hash === null || params === undefined) return null;
  if (method.byHashName !== null) {
    const rest = body.toString("latin1", at.end, params.end);
    const before = body.toString("latin1", params.start, at.start);
    return writeRequest(method.byHashName, Buffer.from(`${before}"${hash}"${rest}`, "latin1"));
  }
  return method.takesHash ? spliced(call, at, `{"blockHash":"${hash}"}`) : null;
}

function resolveBlock(call: Call, params: Span, view: View): ResolvedCall | null {
  const { method, body } = call;
  const at = method.block?.at ?? 0;
  const span = call.blockAt ?? elementAt(body, params.start, params.end, at);
  if (span !== null) {
    const tag = tagIn(body, span);
    return tag === null ? null : resolvedTo(call, span, { tag, view, before: "" });
  }
  const isFilled = method.fillsBlock && at > 0 && hasElements(body, params, at);
  if (!isFilled) return null;
  const end = params.end - 1;
  return resolvedTo(call, { start: end, end }, { tag: "latest", view, before: "," });
}

/** Whether an array has exactly the elements before the one at this place. */
function hasElements(body: Buffer, { start, end }: Span, count: number): boolean {
  const last = elementAt(body, start, end, count - 1);
  return last !== null && body[skipSpace(body, last.end, end)] === CLOSE_ARRAY;
}

interface Named {
  readonly tag: ViewTag;
  readonly view: View;
  /** What is put before the number. */
  readonly before: string;
}

function resolvedTo(written: Call, span: Span, { tag, view, before }: Named): ResolvedCall | null {
  const number = numberOf(tag, view);
  if (number === null) return null;
  const text = `${before}"${hexOf(number)}"`;
  const at = { start: span.start + before.length, end: span.start + text.length };
  const hash = tag === "latest" ? view.hash : null;
  return withText(written, span, text, { number, hash, written, at });
}

/** The bounds of a filter that are tags or left out, in the order in which they are replaced. */
function resolveFilter(call: Call, params: Span, view: View): ResolvedCall | null {
  const { body, block, method } = call;
  const filter = elementAt(body, params.start, params.end, method.block?.at ?? 0);
  if (filter === null || body[filter.start] !== OPEN_OBJECT || block.kind !== "range") return null;
  const members = membersOf(body, filter);
  if (members === null || members.has("blockHash")) return null;
  const bounds = [boundOf(body, members, "fromBlock"), boundOf(body, members, "toBlock")] as const;
  if (bounds.some((bound) => bound === null)) return null;
  const mayFill = method.fillsBlock || bounds.every((bound) => bound?.span !== null);
  if (!mayFill || bounds.every((bound) => bound?.tag === null)) return null;
  return replaced(call, filter, { bounds, view, isEmpty: members.size === 0 });
}

interface Bound {
  readonly name: string;
  /** Null = it was left out. */
  readonly span: Span | null;
  /** Null = it is a number, which stays. */
  readonly tag: ViewTag | null;
}

/** A bound of a filter; null = it is none that can be resolved. */
function boundOf(body: Buffer, members: ReadonlyMap<string, Span>, name: string): Bound | null {
  const span = members.get(name) ?? null;
  if (span === null) return { name, span, tag: "latest" };
  const tag = tagIn(body, span);
  if (tag !== null) return { name, span, tag };
  return NUMBER.test(body.toString("latin1", span.start, Math.min(span.end, span.start + 24)))
    ? { name, span, tag: null }
    : null;
}

const NUMBER = /^"(?:0x[0-9a-fA-F]{1,13}|earliest)"$/;

interface Replacing {
  readonly bounds: readonly (Bound | null)[];
  readonly view: View;
  readonly isEmpty: boolean;
}

function replaced(
  written: Call,
  filter: Span,
  { bounds, view, isEmpty }: Replacing,
): ResolvedCall | null {
  let call: ResolvedCall | null = null;
  let number = -1;
  // From the back, so that what is replaced first moves nothing that is replaced later.
  const inOrder = [...bounds].sort((a, b) => (b?.span?.start ?? 0) - (a?.span?.start ?? 0));
  let isFirst = isEmpty;
  for (const bound of inOrder) {
    if (bound === null || bound.tag === null) continue;
    const named = numberOf(bound.tag, view);
    if (named === null) return null;
    const text = `"${hexOf(named)}"`;
    const inserted = `"${bound.name}":${text}${isFirst ? "" : ","}`;
    const span = bound.span ?? { start: filter.start + 1, end: filter.start + 1 };
    number = Math.max(number, named);
    const resolution = { number, hash: null, written, at: span };
    call = withText(call ?? written, span, bound.span === null ? inserted : text, resolution);
    if (bound.span === null) isFirst = false;
  }
  return call === null ? null : { ...call, block: rangeOf(written.block, bounds, view) };
}

/** The range with the blocks that its tags name. */
function rangeOf(block: BlockRef, [from, to]: readonly (Bound | null)[], view: View): BlockRef {
  if (block.kind !== "range") return block;
  const named = (bound: Bound | null | undefined, before: number | null): number | null =>
    bound === null || bound === undefined || bound.tag === null
      ? before
      : numberOf(bound.tag, view);
  return { kind: "range", from: named(from, block.from), to: named(to, block.to) };
}

function tagIn(body: Buffer, { start, end }: Span): ViewTag | null {
  if (body[start] !== QUOTE || end - start > LONGEST_TAG) return null;
  const text = body.toString("latin1", start + 1, end - 1);
  return text === "latest" || text === "safe" || text === "finalized" ? text : null;
}

const LONGEST_TAG = "finalized".length + 2;

function numberOf(tag: ViewTag, view: View): number | null {
  return tag === "latest" ? view.number : view[tag];
}

/** So few characters are written faster one by one. */
const FEW_CHARS = 24;

/** The request with these ASCII characters in place of a span of its parameters. */
function spliced(
  { body, idStart, idEnd }: WireRequest,
  { start, end }: Span,
  text: string,
): WireRequest {
  const added = text.length - (end - start);
  const bytes = Buffer.allocUnsafe(body.length + added);
  body.copy(bytes, 0, 0, start);
  if (text.length > FEW_CHARS) bytes.write(text, start, "latin1");
  else for (let n = 0; n < text.length; n++) bytes[start + n] = text.charCodeAt(n);
  body.copy(bytes, start + text.length, end);
  const shift = idStart > start ? added : 0;
  return { body: bytes, idStart: idStart + shift, idEnd: idEnd + shift };
}

/** The call with another text in place of a span of its parameters. */
function withText(call: Call, span: Span, text: string, resolution: BlockResolution): ResolvedCall {
  const { methodName, method, block, params } = call;
  const { body, idStart, idEnd } = spliced(call, span, text);
  const added = body.length - call.body.length;
  const shifted =
    params === undefined ? undefined : { start: params.start, end: params.end + added };
  return { methodName, method, block, body, idStart, idEnd, params: shifted, resolution };
}
