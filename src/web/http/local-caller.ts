// Recognises callers on this machine: programs that call on their own behalf, rather than a browser
// on behalf of a page from another origin, and metric scrapers that use no proxy.
import type { IncomingMessage } from "node:http";
import { fault } from "../../core/faults/rpc-fault.ts";
import { bareHost, isLoopbackAddress } from "../../core/public-address.ts";
import { isSameSecret } from "../../secrets/secret.ts";

export interface LocalParts {
  /** Address of the client behind trusted proxies. */
  readonly address: string;
  /** Base URL of this service as the client uses it. */
  readonly baseUrl: string;
  /** Null = not configured, and `baseUrl` comes from the client. */
  readonly publicUrl: string | null;
}

/** Whether a request came from a loopback address, and not from a page of another origin. */
export function isLocalCaller(
  { headers }: Pick<IncomingMessage, "headers">,
  { address, baseUrl, publicUrl }: LocalParts,
): boolean {
  return (
    isLoopbackAddress(address) &&
    (headers.origin === undefined || isOwnOrigin(headers.origin, { baseUrl, publicUrl }))
  );
}

/**
 * Whether an origin is this service. Without a configured URL only loopback names count: any other
 * name could be a foreign site's, pointed at this machine by DNS (DNS rebinding).
 */
export function isOwnOrigin(
  origin: string | undefined,
  { baseUrl, publicUrl }: Omit<LocalParts, "address">,
): boolean {
  const own = URL.parse(publicUrl ?? baseUrl);
  if (own === null || origin?.toLowerCase() !== own.origin) return false;
  return publicUrl !== null || isLoopbackName(own.hostname);
}

/** Whether the host name of a URL is one of this machine. */
export function isLoopbackName(hostname: string): boolean {
  return hostname === "localhost" || isLoopbackAddress(bareHost(hostname));
}

/** Headers added by proxies: a request with one of them may come from anywhere. */
const FORWARDED: readonly string[] = ["x-forwarded-for", "x-real-ip", "forwarded", "via"];

/** Whether a process on this machine sent the request directly, as far as can be determined. */
export function isFromThisMachine(request: IncomingMessage): boolean {
  if (FORWARDED.some((name) => request.headers[name] !== undefined)) return false;
  return isLoopbackAddress(request.socket.remoteAddress ?? "");
}

/** The refusal of any other request. */
export const NO_HOST = fault("invalid_request", "the request names no host, or more than one", {
  nextAction: "send one Host header",
});

const HOST = "host";

/**
 * Whether a request has one `Host`: with two, a proxy in front may have gone by the one, and we
 * would go by the other.
 */
export function namesOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    if (name.length === HOST.length && name.toLowerCase() === HOST) hosts++;
  }
  return hosts === 1 || (hosts === 0 && httpVersion === "1.0");
}

const MAX_HEADER_CHARS = 512;

/** The credential in `Authorization: Bearer`; null = none. */
export function bearerOf(header: string | undefined): string | null {
  if (header === undefined || header.length > MAX_HEADER_CHARS) return null;
  return /^bearer +([^\s]+) *$/i.exec(header)?.[1] ?? null;
}

/** Compares in constant time; null is never the operator token. */
export function isOperatorToken(given: string | null, expected: string | null): boolean {
  return given !== null && expected !== null && isSameSecret(given, expected);
}
