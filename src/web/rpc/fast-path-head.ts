// The head of the one kind of HTTP request that the fast path serves: a POST whose framing leaves
// no room for a second reading. Anything else, valid or not, is node's HTTP parser's business.
// Pure.

/** A request head that was understood in full. */
export interface RequestHead {
  /** Path and query. */
  readonly url: string;
  readonly bodyBytes: number;
  /** By lower-case name; no name occurs twice. */
  readonly fields: ReadonlyMap<string, string>;
}

const HEAD =
  /^POST (\/[!-~]*) HTTP\/1\.1\r\n((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*\r\n)+)$/;
/**
 * The white space that HTTP knows; `trim` would take more, and a length with that around it is
 * none.
 */
const SPACE_AROUND = /^[\t ]+|[\t ]+$/g;
const MAX_FIELDS = 64;
/**
 * Fields that change how a message is framed or what the connection is for; and those that a
 * payment comes in, which has to be waited for.
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
 * Reads a head with the line end of its last field and without the blank line; null = leave it to
 * node.
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
    !/^\d{1,9}$/.test(length) ||
    connection.toLowerCase() !== "keep-alive" ||
    (fields.get("host") ?? "") === ""
  )
    return null;
  if (NOT_HERE.some((name) => fields.has(name)) || mayPay(fields.get("authorization"))) return null;
  return { url: parts[1] ?? "/", bodyBytes: Number(length), fields };
}

/** Whether an `Authorization` may hold a payment, alone or in a list. */
function mayPay(authorization: string | undefined): boolean {
  if (
    authorization === undefined ||
    (authorization.startsWith("Bearer ") && !authorization.includes(","))
  )
    return false;
  return /\bpayment\b/i.test(authorization);
}
