// Recognises callers on this machine: those that call for themselves, not for a page of another
// site that a browser here shows, and scrapers beside the service, behind no proxy.
import type { IncomingMessage } from "node:http";
import { bareHost, isLoopbackAddress } from "../../core/public-address.ts";

/** What is known of a request beside itself. */
export interface LocalParts {
  /** Address of the caller, behind trusted proxies. */
  readonly address: string;
  /** Base URL of this service as the caller knows it. */
  readonly baseUrl: string;
  /** Null = it is not configured, and `baseUrl` is what the caller says. */
  readonly publicUrl: string | null;
}

/** Whether a request came from a loopback address, and from no page of another origin. */
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
 * Without a configured URL only a loopback name counts as ours: any other may have been pointed at
 * this machine by the page's own site.
 */
function isOwnOrigin(origin: string, { baseUrl, publicUrl }: Omit<LocalParts, "address">): boolean {
  const own = URL.parse(publicUrl ?? baseUrl);
  if (own === null || origin.toLowerCase() !== own.origin) return false;
  return (
    publicUrl !== null || own.hostname === "localhost" || isLoopbackAddress(bareHost(own.hostname))
  );
}

/** Headers that a proxy adds: a request with one of them may come from anywhere. */
const FORWARDED: readonly string[] = ["x-forwarded-for", "x-real-ip", "forwarded", "via"];

/** True for a request that a process on this machine sent for itself, as far as can be told. */
export function isFromThisMachine(request: IncomingMessage): boolean {
  if (FORWARDED.some((name) => request.headers[name] !== undefined)) return false;
  return isLoopbackAddress(request.socket.remoteAddress ?? "");
}
