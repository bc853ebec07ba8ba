// Calls whose block was written as a tag, or left out, resolved to one block of the chain: by its
// number, or by its hash where that says the same more exactly. All other bytes stay as the caller
// wrote them.

import { type BlockResolution, type Call, isLatest, type View } from "./call.ts";
import * as json from "./json.ts";
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
  if (method.block === null || params === undefined || body[params.start] !== json.OPEN_ARRAY)
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

function resolveBlock(call: Call, params: json.Span, view: View): ResolvedCall | null {
  const { method, body } = call;
  const at = method.block?.at ?? 0;
  const span = call.blockAt ?? json.elementAt(body, params.start, params.end, at);
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
function hasElements(body: Buffer, { start, end }: json.Span, count: number): boolean {
  const last = json.elementAt(body, start, end, count - 1);
  return last !== null && body[json.skipSpace(body, last.end, end)] === json.CLOSE_ARRAY;
}

interface Named {
  readonly tag: ViewTag;
  readonly view: View;
  /** What is put before the number. */
  readonly before: string;
}

function resolvedTo(
  written: Call,
  span: json.Span,
  { tag, view, before }: Named,
): ResolvedCall | null {
  const number = numberOf(tag, view);
  if (number === null) return null;
  const text = `${before}"${hexOf(number)}"`;
  const at = { start: span.start + before.length, end: span.start + text.length };
  const hash = tag === "latest" ? view.hash : null;
  return withText(written, span, text, { number, hash, written, at });
}

/** The bounds of a filter that are tags or left out, in the order in which they are replaced. */
function resolveFilter(call: Call, params: json.Span, view: View): ResolvedCall | null {
  const { body, block, method } = call;
  const filter = json.elementAt(body, params.start, params.end, method.block?.at ?? 0);
  if (filter === null || body[filter.start] !== json.OPEN_OBJECT || block.kind !== "range")
    return null;
  const members = json.membersOf(body, filter);
  if (members === null || members.has("blockHash")) return null;
  const from = boundOf(body, members, "fromBlock", view);
  const to = boundOf(body, members, "toBlock", view);
  if (from === null || to === null || (from.number === null && to.number === null)) return null;
  if (!method.fillsBlock && (from.span === null || to.span === null)) return null;
  const resolved = replaced(call, filter, [from, to], members.size === 0);
  const range = { from: from.number ?? block.from, to: to.number ?? block.to };
  return resolved === null ? null : { ...resolved, block: { kind: "range", ...range } };
}

interface Bound {
  readonly name: string;
  /** Null = it was left out. */
  readonly span: json.Span | null;
  /** The block that its tag names; null = it is a number, which stays. */
  readonly number: number | null;
}

/** A bound of a filter; null = it is none that can be resolved. */
function boundOf(
  body: Buffer,
  members: ReadonlyMap<string, json.Span>,
  name: string,
  view: View,
): Bound | null {
  const span = members.get(name) ?? null;
  const tag = span === null ? "latest" : tagIn(body, span);
  const number = tag === null ? null : numberOf(tag, view);
  if (tag !== null || span === null) return number === null ? null : { name, span, number };
  return NUMBER.test(body.toString("latin1", span.start, Math.min(span.end, span.start + 24)))
    ? { name, span, number }
    : null;
}

const NUMBER = /^"(?:0x[0-9a-fA-F]{1,13}|earliest)"$/;

/** The call with the blocks of its tags; `isEmpty`: its filter has no members. */
function replaced(
  written: Call,
  filter: json.Span,
  bounds: readonly Bound[],
  isEmpty: boolean,
): ResolvedCall | null {
  let call: ResolvedCall | null = null;
  let number = -1;
  // From the back, so that what is replaced first moves nothing that is replaced later.
  const inOrder = bounds.toSorted((a, b) => (b.span?.start ?? 0) - (a.span?.start ?? 0));
  let isFirst = isEmpty;
  for (const { name, span, number: named } of inOrder) {
    if (named === null) continue;
    number = Math.max(number, named);
    const text = `"${hexOf(named)}"`;
    const at = span ?? { start: filter.start + 1, end: filter.start + 1 };
    const added = span === null ? `"${name}":${text}${isFirst ? "" : ","}` : text;
    call = withText(call ?? written, at, added, { number, hash: null, written, at });
    if (span === null) isFirst = false;
  }
  return call;
}

function tagIn(body: Buffer, span: json.Span): ViewTag | null {
  if (isLatest(body, span)) return "latest";
  const { start, end } = span;
  if (body[start] !== json.QUOTE || end - start > LONGEST_TAG) return null;
  const text = body.toString("latin1", start + 1, end - 1);
  return text === "safe" || text === "finalized" ? text : null;
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
  { start, end }: json.Span,
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
function withText(
  call: Call,
  span: json.Span,
  text: string,
  resolution: BlockResolution,
): ResolvedCall {
  const { methodName, method, block, params } = call;
  const { body, idStart, idEnd } = spliced(call, span, text);
  const added = body.length - call.body.length;
  const shifted =
    params === undefined ? undefined : { start: params.start, end: params.end + added };
  return { methodName, method, block, body, idStart, idEnd, params: shifted, resolution };
}
