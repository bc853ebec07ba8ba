// Parses the head of the requests that the fast path serves: a POST with unambiguous framing.
// Leaves any other head, valid or not, to node's HTTP parser. And makes the end of the heads that
// the fast path writes, once a second: what every answer carries, the date, and the connection.
import type { Runtime } from "../../../runtime.ts";
import { ALWAYS } from "../../http/respond.ts";

/** A parsed request head. */
export interface RequestHead {
  /** Path and query. */
  readonly url: string;
  readonly bodyBytes: number;
  /**
   * Header fields by lower-case name, without `content-length`; a repeated name is never accepted.
   */
  readonly fields: ReadonlyMap<string, string>;
  /** The text before and after the digits of `content-length`. */
  readonly around: readonly [before: string, after: string];
}

const HEAD =
  /^POST (\/[!-~]*) HTTP\/1\.1\r\n((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*\r\n)+)$/;
/**
 * Optional whitespace of HTTP. `String.trim` would also remove characters that HTTP does not count
 * as whitespace.
 */
const SPACE_AROUND = /^[\t ]+|[\t ]+$/g;
const DIGITS = /^\d{1,9}$/;
const LENGTH_LINE = /\r\ncontent-length:[\t ]*(?=\d)/i;
const MAX_FIELDS = 64;
/**
 * Fields that change the framing or the purpose of the connection, and fields that can carry a
 * payment: the fast path does not wait for payments.
 */
const NOT_HERE: readonly string[] = [
  "transfer-encoding",
  "expect",
  "upgrade",
  "trailer",
  "te",
  "proxy-connection",
  "http2-settings",
  "payment-signature",
  "payment-authorization",
];

/**
 * Parses a head that ends with the line break of its last field, without the empty line; null =
 * leave the request to node.
 */
export function readRequestHead(text: string): RequestHead | null {
  const parts = HEAD.exec(text);
  if (parts === null) return null;
  const lines = (parts[2] ?? "").split("\r\n");
  if (lines.length > MAX_FIELDS) return null;
  const fields = new Map<string, string>();
  for (const line of lines) {
    if (line === "") continue;
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).toLowerCase();
    if (fields.has(name)) return null;
    fields.set(name, line.slice(colon + 1).replace(SPACE_AROUND, ""));
  }
  const length = fields.get("content-length") ?? "";
  const connection = fields.get("connection") ?? "keep-alive";
  if (
    !DIGITS.test(length) ||
    connection.toLowerCase() !== "keep-alive" ||
    (fields.get("host") ?? "") === ""
  )
    return null;
  if (NOT_HERE.some((name) => fields.has(name)) || mayPay(fields.get("authorization"))) return null;
  fields.delete("content-length");
  return { url: parts[1] ?? "/", bodyBytes: Number(length), fields, around: around(text, length) };
}

/**
 * Parses a head that differs from the last one only in the length of the body, as the heads of one
 * client usually do; null = it differs in more.
 */
export function readNextHead(text: string, last: RequestHead): RequestHead | null {
  const [before, after] = last.around;
  if (!text.startsWith(before) || !text.endsWith(after)) return null;
  const length = text.slice(before.length, text.length - after.length);
  return DIGITS.test(length) ? { ...last, bodyBytes: Number(length) } : null;
}

function around(text: string, length: string): RequestHead["around"] {
  const line = LENGTH_LINE.exec(text);
  const at = line === null ? 0 : line.index + line[0].length;
  return [text.slice(0, at), text.slice(at + length.length)];
}

/** Whether an `Authorization` value may contain a payment credential, alone or in a list. */
function mayPay(authorization: string | undefined): boolean {
  if (
    authorization === undefined ||
    (authorization.startsWith("Bearer ") && !authorization.includes(","))
  )
    return false;
  return /\bpayment\b/i.test(authorization);
}

/** The end of a head, up to and including the empty line; one character per byte. */
export interface HeadEnd {
  readonly text: string;
  readonly bytes: Buffer;
}

/** The ends of heads at this moment. */
export interface HeadEnds {
  /** The connection stays open. */
  readonly keepAlive: HeadEnd;
  readonly close: HeadEnd;
}

const SECOND_MS = 1_000;

/** The current ends of heads. They are made when needed, and once a second at most. */
export class CurrentHeadEnds {
  /** Null = they have to be made. */
  current: HeadEnds | null = null;
  readonly #runtime: Pick<Runtime, "wallMs" | "after">;
  readonly #keepAlive: string;

  constructor(runtime: Pick<Runtime, "wallMs" | "after">, keepAliveTimeoutMs: number) {
    const seconds = Math.floor(keepAliveTimeoutMs / SECOND_MS);
    this.#runtime = runtime;
    this.#keepAlive = `Connection: keep-alive\r\nKeep-Alive: timeout=${seconds}`;
  }

  make(): HeadEnds {
    const wallMs = this.#runtime.wallMs();
    const date = `Date: ${new Date(wallMs).toUTCString()}\r\n`;
    this.current = {
      keepAlive: headEnd(`${date}${this.#keepAlive}`),
      close: headEnd(`${date}Connection: close`),
    };
    // The clock is read once a second instead of for every answer.
    this.#runtime.after(SECOND_MS - (wallMs % SECOND_MS), () => {
      this.current = null;
    });
    return this.current;
  }
}

function headEnd(lines: string): HeadEnd {
  const bytes = Buffer.from(`${ALWAYS}${lines}\r\n\r\n`, "latin1");
  return { text: bytes.toString("latin1"), bytes };
}
