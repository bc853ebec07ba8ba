// Writes HTTP answers: the headers that every answer carries, small bodies in one write, and
// refusals as JSON-RPC errors.
import type { ServerResponse } from "node:http";
import type { Fault } from "../../core/faults/rpc-fault.ts";
import { hasConsoleCookie } from "./console-cookie.ts";
import { STATUS_CODES } from "./node-http.ts";
import { renderFault } from "./render-fault.ts";

/** Header names and values in turn. */
export type Headers = string[];

/** A body in pieces; null = there is none. */
export type Pieces = readonly Buffer[] | null;

const EXPOSED = [
  "x-svc-request-id",
  "x-svc-meta",
  "x-svc-node",
  "x-svc-cache",
  "x-svc-seen",
  "x-svc-access",
  "x-svc-fallback",
  "x-svc-cu",
  "x-svc-usd",
  "x-svc-balance-usd",
  "x-svc-profile",
  "x-svc-downgraded",
  "x-svc-balance-warning",
  "RateLimit",
  "RateLimit-Policy",
  "Retry-After",
  "WWW-Authenticate",
  "Payment-Receipt",
  "PAYMENT-REQUIRED",
  "PAYMENT-RESPONSE",
  "X-Request-Id",
].join(", ");

/** No browser takes an answer for anything but what its `Content-Type` says. */
const NOSNIFF = ["X-Content-Type-Options", "nosniff"] as const;

const CORS: readonly string[] = [
  "Access-Control-Allow-Origin",
  "*",
  "Access-Control-Expose-Headers",
  EXPOSED,
];

/** Header lines that every answer carries, as raw text. */
export const ALWAYS =
  `${NOSNIFF.join(": ")}\r\nAccess-Control-Allow-Origin: *\r\n` +
  `Access-Control-Expose-Headers: ${EXPOSED}\r\n`;

const PREFLIGHT: readonly string[] = [
  "Access-Control-Allow-Methods",
  "GET, POST, PUT, PATCH, DELETE, OPTIONS",
  "Access-Control-Allow-Headers",
  // `Access-Control-Expose-Headers` ends the list, because the browser client of x402 sends it with
  // the payment.
  "Authorization, Content-Type, Accept, If-Match, X-Request-Id, X-Svc-Api-Key, X-Svc-Provider, " +
    "Cache-Control, X-Svc-Cache, X-Svc-Consistency, X-Svc-Seen, " +
    "X-Svc-Strategy, X-Svc-Version, PAYMENT-SIGNATURE, Payment-Authorization, Payment-Session, " +
    "Accept-Payment, Access-Control-Expose-Headers",
  "Access-Control-Max-Age",
  "86400",
];

/** Bodies up to this size are written together with their headers. */
const ONE_WRITE_BYTES = 16_384;

/** The headers of one answer: the request id, and the caller's own id if it is well-formed. */
export function headersOf(
  requestId: string,
  theirs: string | readonly string[] | undefined,
): Headers {
  const headers: Headers = ["x-svc-request-id", requestId];
  if (typeof theirs === "string" && /^[\x21-\x7e]{1,128}$/.test(theirs))
    headers.push("X-Request-Id", theirs);
  return headers;
}

/** Writes a JSON answer from its pieces; `body` null = no body. */
export function write(
  response: ServerResponse,
  status: number,
  headers: Headers,
  body: Pieces,
): void {
  if (body !== null) headers.push("Content-Type", "application/json");
  send(response, status, headers, body);
}

/** Writes a document with another content type than JSON. */
export function writeDocument(
  response: ServerResponse,
  contentType: string,
  headers: Headers,
  body: Buffer,
): void {
  headers.push("Content-Type", contentType);
  send(response, 200, headers, [body]);
}

/** Answers 304: the client's copy is current. */
export function writeUnchanged(response: ServerResponse, headers: Headers): void {
  send(response, 304, headers, null);
}

/** Starts a JSON answer with a streamed body; `sizeBytes` null = unknown length. */
export function begin(response: ServerResponse, headers: Headers, sizeBytes: number | null): void {
  headers.push(...NOSNIFF, ...CORS, "Content-Type", "application/json");
  if (sizeBytes !== null) headers.push("Content-Length", String(sizeBytes));
  response.writeHead(200, headers);
}

/** Writes the head of an event stream; false = its reader has left. */
export function beginEvents(response: ServerResponse, headers: Headers): boolean {
  if (response.destroyed || response.headersSent) return false;
  addCommon(response, headers);
  headers.push("Content-Type", "text/event-stream");
  response.writeHead(200, headers);
  return true;
}

/** Whether the client is a browser opening a page: `Accept` lists HTML first. */
export function wantsHtml(accept: string | undefined): boolean {
  return accept !== undefined && /^\s*(?:text\/html|application\/xhtml\+xml)\b/i.test(accept);
}

/** Writes a refusal as a JSON-RPC error with the status of its row. */
export function writeFault(response: ServerResponse, headers: Headers, why: Fault): void {
  if (why.retryAfterMs !== null) headers.push("Retry-After", retryAfter(why.retryAfterMs));
  write(response, why.status, headers, [renderFault(why, "null")]);
}

/**
 * A refusal as the text of a whole HTTP answer, for a connection without a server; close the
 * connection after it.
 */
export function refusalText(headers: Headers, why: Fault): Buffer {
  const body = renderFault(why, "null");
  let head = `HTTP/1.1 ${why.status} ${STATUS_CODES[why.status] ?? ""}\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  if (why.retryAfterMs !== null) head += `Retry-After: ${retryAfter(why.retryAfterMs)}\r\n`;
  head +=
    `${ALWAYS}Content-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: ` +
    `close\r\n\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), body]);
}

/** A `Retry-After` value in whole seconds. */
export function retryAfter(ms: number): string {
  return String(Math.max(1, Math.ceil(ms / 1000)));
}

/** Answers a CORS preflight. */
export function writePreflight(response: ServerResponse, headers: Headers): void {
  headers.push(...PREFLIGHT);
  write(response, 204, headers, null);
}

/** A page of another origin has no business with a session. */
function addCommon(response: ServerResponse, headers: Headers): void {
  headers.push(...NOSNIFF);
  if (!hasConsoleCookie(response.req.headers.cookie)) for (const field of CORS) headers.push(field);
}

function send(response: ServerResponse, status: number, headers: Headers, body: Pieces): void {
  if (response.destroyed || response.headersSent) return;
  addCommon(response, headers);
  if (body === null) {
    response.writeHead(status, headers);
    response.end();
    return;
  }
  let size = 0;
  for (const piece of body) size += piece.length;
  headers.push("Content-Length", String(size));
  response.writeHead(status, headers);
  if (size <= ONE_WRITE_BYTES) {
    let text = "";
    for (const piece of body) text += piece.toString("latin1");
    response.end(text, "latin1");
    return;
  }
  response.cork();
  for (const piece of body) response.write(piece);
  response.end();
  response.uncork();
}
