// Messages on a provider's socket, as bytes: an answer to a request, a notification of a
// subscription, or neither. Only locates the id: `answer.ts` judges answers, and the content of a
// notification is never parsed.
import {
  BACKSLASH,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  OPEN_OBJECT,
  QUOTE,
  type Span,
  skipSpace,
  skipString,
  skipValue,
  startsWith,
} from "./json.ts";

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
  const usualId = startsWith(bytes, 0, USUAL_ANSWER)
    ? readId(bytes, USUAL_ANSWER.length, bytes.length)
    : null;
  if (usualId !== null && startsWith(bytes, USUAL_ANSWER.length + usualId.length, USUAL_RESULT))
    return { kind: "answer", id: usualId };
  const start = skipSpace(bytes, 0, bytes.length);
  const members = readMembers(bytes, start, true);
  if (members === null) return STRAY;
  const { id, answers, end, method, params } = members;
  if (id !== null && answers) return { kind: "answer", id };
  if (skipSpace(bytes, end, bytes.length) !== bytes.length || params === null || method === null)
    return STRAY;
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
  if (bytes[start] === QUOTE)
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

/** The members of interest, of the message and of its `params`. */
interface Members {
  /** Null = absent, or not a plain integer. */
  id: string | null;
  /** The message has a result or an error. */
  answers: boolean;
  method: Span | null;
  params: Span | null;
  subscription: Span | null;
  result: Span | null;
  /** Offset after the object; -1 = reading stopped at the result or error of an answer. */
  end: number;
}

/**
 * Reads the members of the object at `open`; null = it is not an object, malformed, or names a
 * member twice. `outer`: it is the message itself.
 */
function readMembers(bytes: Buffer, open: number, outer: boolean): Members | null {
  const end = bytes.length;
  const members: Members = {
    id: null,
    answers: false,
    method: null,
    params: null,
    subscription: null,
    result: null,
    end: -1,
  };
  const seen: string[] = [];
  if (bytes[open] !== OPEN_OBJECT) return null;
  let at = skipSpace(bytes, open + 1, end);
  while (bytes[at] === QUOTE) {
    const keyEnd = skipString(bytes, at, end);
    const colon = keyEnd === -1 ? end : skipSpace(bytes, keyEnd, end);
    const start = skipSpace(bytes, colon + 1, end);
    if (bytes[colon] !== COLON || start >= end) return null;
    const key = keyOf(bytes, at, keyEnd);
    if (seen.includes(key)) return null;
    if (outer && members.id !== null && (key === "result" || key === "error")) {
      members.answers = true;
      return members;
    }
    const stop = skipValue(bytes, start, end, MAX_DEPTH);
    if (stop === -1) return null;
    if (note(members, key, bytes, { start, end: stop })) seen.push(key);
    at = skipSpace(bytes, stop, end);
    if (bytes[at] !== COMMA) break;
    at = skipSpace(bytes, at + 1, end);
    if (bytes[at] !== QUOTE) return null;
  }
  members.end = at + 1;
  return bytes[at] === CLOSE_OBJECT ? members : null;
}

/** Stores a member of interest; false = any other. */
function note(members: Members, key: string, bytes: Buffer, value: Span): boolean {
  switch (key) {
    case "id":
      members.id = readId(bytes, value.start, value.end);
      if (members.id?.length !== value.end - value.start) members.id = null;
      return true;
    case "error":
      members.answers = true;
      return true;
    case "result":
      members.answers = true;
      members.result = value;
      return true;
    case "method":
    case "params":
    case "subscription":
      members[key] = value;
      return true;
    default:
      return false;
  }
}

function readNotification(bytes: Buffer, paramsStart: number): SocketMessage {
  const { subscription: id = null, result = null } = readMembers(bytes, paramsStart, false) ?? {};
  const subscription = id === null ? null : readSubscriptionId(bytes, id.start, id.end);
  return subscription === null || result === null
    ? STRAY
    : { kind: "notification", subscription, start: result.start, end: result.end };
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
  const escaped = bytes.subarray(quote, keyEnd).includes(BACKSLASH);
  return escaped
    ? String(JSON.parse(bytes.toString("utf8", quote, keyEnd)))
    : bytes.toString("latin1", quote + 1, keyEnd - 1);
}
