// Messages on a provider's socket, as bytes: an answer to a request, a notification of a
// subscription, or neither. Only locates the id: `answer.ts` judges answers, and the content of a
// notification is never parsed.
import * as json from "./json.ts";

/** The kind of a message and the id of the request or subscription that it belongs to. */
export type SocketMessage =
  /**
   * Carries a plain integer id, as the service's own are, and a result or an error. The rest of the
   * message is not checked.
   */
  | { readonly kind: "answer"; readonly id: string }
  /** A notification of `eth_subscription`. Offsets are of `params.result`, which is valid JSON. */
  | {
      readonly kind: "notification";
      readonly subscription: string;
      readonly start: number;
      readonly end: number;
    }
  /** Belongs to no request or subscription: not JSON, not an object, or without an id. */
  | { readonly kind: "stray" };

/** Reads one message. A result or error after the id is not parsed. */
export function readSocketMessage(bytes: Buffer): SocketMessage {
  const usualId = json.startsWith(bytes, 0, USUAL_ANSWER)
    ? readId(bytes, USUAL_ANSWER.length, bytes.length)
    : null;
  const idEnd = USUAL_ANSWER.length + (usualId?.length ?? 0);
  if (usualId !== null && json.startsWith(bytes, idEnd, USUAL_RESULT))
    return { kind: "answer", id: usualId };
  const start = json.skipSpace(bytes, 0, bytes.length);
  const read = readMembers(bytes, start, true);
  if (read === null) return STRAY;
  const { members, end } = read;
  const id = wholeId(bytes, members.get("id"));
  if (id !== null && (members.has("result") || members.has("error"))) return { kind: "answer", id };
  const [method, params] = [members.get("method"), members.get("params")];
  if (json.skipSpace(bytes, end, bytes.length) !== bytes.length) return STRAY;
  if (params === undefined || method === undefined) return STRAY;
  return bytes.toString("latin1", method.start, method.end) === NOTIFICATION
    ? readNotification(bytes, params.start)
    : STRAY;
}

/**
 * The id of a subscription as text, from a string or a number; null = it is neither, or too long.
 */
export function readSubscriptionId(bytes: Buffer, start: number, end: number): string | null {
  if (end - start > MAX_SUBSCRIPTION_ID_BYTES) return null;
  const text = bytes.toString("utf8", start, end);
  if (bytes[start] === json.QUOTE)
    return text.includes("\\") ? String(JSON.parse(text)) : text.slice(1, -1);
  return /^-?\d/.test(text) ? text : null;
}

const USUAL_ANSWER = '{"jsonrpc":"2.0","id":';
const USUAL_RESULT = ',"result":';
const NOTIFICATION = '"eth_subscription"';
const STRAY: SocketMessage = { kind: "stray" };
const MAX_DEPTH = 1024;
const MAX_ID_DIGITS = 16;
const MAX_KEY_BYTES = 96;
const MAX_SUBSCRIPTION_ID_BYTES = 256;

/** Members of interest, of the message and of its `params`. */
const READ: ReadonlySet<string> = new Set("id error result method params subscription".split(" "));

/** The members of interest of an object, by name. */
interface ReadMembers {
  readonly members: ReadonlyMap<string, json.Span>;
  /** Offset after the object; -1 = reading stopped at the result or error of an answer. */
  readonly end: number;
}

/**
 * Reads the members of the object at `open`; null = it is not an object, malformed, or names a
 * member twice. `outer`: it is the message itself.
 */
function readMembers(bytes: Buffer, open: number, outer: boolean): ReadMembers | null {
  const end = bytes.length;
  const members = new Map<string, json.Span>();
  if (bytes[open] !== json.OPEN_OBJECT) return null;
  let at = json.skipSpace(bytes, open + 1, end);
  while (bytes[at] === json.QUOTE) {
    const keyEnd = json.skipString(bytes, at, end);
    const colon = keyEnd === -1 ? end : json.skipSpace(bytes, keyEnd, end);
    const start = json.skipSpace(bytes, colon + 1, end);
    if (bytes[colon] !== json.COLON || start >= end) return null;
    const key = keyOf(bytes, at, keyEnd);
    if (members.has(key)) return null;
    const isAnswer = outer && (key === "result" || key === "error");
    if (isAnswer && wholeId(bytes, members.get("id")) !== null)
      return { members: members.set(key, { start, end: start }), end: -1 };
    const stop = json.skipValue(bytes, start, end, MAX_DEPTH);
    if (stop === -1) return null;
    if (READ.has(key)) members.set(key, { start, end: stop });
    at = json.skipSpace(bytes, stop, end);
    if (bytes[at] !== json.COMMA) break;
    at = json.skipSpace(bytes, at + 1, end);
    if (bytes[at] !== json.QUOTE) return null;
  }
  return bytes[at] === json.CLOSE_OBJECT ? { members, end: at + 1 } : null;
}

function readNotification(bytes: Buffer, paramsStart: number): SocketMessage {
  const { members } = readMembers(bytes, paramsStart, false) ?? {};
  const [id, result] = [members?.get("subscription"), members?.get("result")];
  const subscription = id === undefined ? null : readSubscriptionId(bytes, id.start, id.end);
  return subscription === null || result === undefined
    ? STRAY
    : { kind: "notification", subscription, start: result.start, end: result.end };
}

/** An id that is a plain integer; null = any other, or none. */
function wholeId(bytes: Buffer, span: json.Span | undefined): string | null {
  const id = span === undefined ? null : readId(bytes, span.start, span.end);
  return span !== undefined && id?.length === span.end - span.start ? id : null;
}

/** The digits at `at`; null where there are none or too many. */
function readId(bytes: Buffer, at: number, end: number): string | null {
  let stop = at;
  while (stop < end && stop - at <= MAX_ID_DIGITS && isDigit(bytes[stop])) stop++;
  return stop === at || stop - at > MAX_ID_DIGITS ? null : bytes.toString("latin1", at, stop);
}

function isDigit(c: number | undefined): boolean {
  return c !== undefined && c >= 0x30 && c <= 0x39;
}

/** The decoded key; empty = longer than any key of interest. */
function keyOf(bytes: Buffer, quote: number, keyEnd: number): string {
  if (keyEnd - quote > MAX_KEY_BYTES) return "";
  const escaped = bytes.subarray(quote, keyEnd).includes(json.BACKSLASH);
  return escaped
    ? String(JSON.parse(bytes.toString("utf8", quote, keyEnd)))
    : bytes.toString("latin1", quote + 1, keyEnd - 1);
}
