// Determines the client address and the base URL of a request behind trusted proxies. Ignores
// forwarding headers from all other senders.
import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";

/** Proxies whose forwarding headers are trusted. */
export type TrustedProxies = BlockList;

/** The trusted proxies, from IP addresses and CIDR ranges. */
export function trustedProxiesOf(list: readonly string[]): TrustedProxies {
  const proxies = new BlockList();
  for (const entry of list) {
    const [address = "", bits] = entry.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    if (bits === undefined) proxies.addAddress(address, family);
    else proxies.addSubnet(address, Number(bits), family);
  }
  return proxies;
}

const MAX_HOPS = 32;

/**
 * The IP address of the client: the rightmost address of `X-Forwarded-For` that is no trusted
 * proxy.
 */
export function clientAddress(request: IncomingMessage, proxies: TrustedProxies): string {
  const { remoteAddress = "" } = request.socket;
  return addressBehind(remoteAddress, headerOf(request, "x-forwarded-for") ?? "", proxies);
}

/** The same, of a request given as its address and headers. */
export function callerAddress(request: Addressed, proxies: TrustedProxies): string {
  return addressBehind(request.address, request.header("x-forwarded-for") ?? "", proxies);
}

/** The same, from the address of a connection and the value of its `X-Forwarded-For`. */
export function addressBehind(
  remoteAddress: string,
  forwardedFor: string,
  proxies: TrustedProxies,
): string {
  let address = plainAddress(remoteAddress);
  const hops = forwardedFor.split(",");
  for (let i = 0; i < MAX_HOPS && isTrusted(address, proxies); i++) {
    const hop = plainAddress(hops.pop() ?? "");
    if (isIP(hop) === 0) break;
    address = hop;
  }
  return address;
}

/**
 * The base URL that the client used, without a trailing slash. Host headers that are not a plain
 * host are ignored.
 */
export function requestBaseUrl(request: IncomingMessage, proxies: TrustedProxies): string {
  const { localAddress = "localhost", localPort = 80 } = request.socket;
  const own = plainAddress(localAddress);
  const here = `${isIP(own) === 6 ? `[${own}]` : own}:${localPort}`;
  const remote = request.socket.remoteAddress ?? "";
  return requestInfoBaseUrl(
    { address: remote, header: (name) => headerOf(request, name) },
    proxies,
    here,
  );
}

/** The same for a request given as its address and headers. */
export function requestInfoBaseUrl(
  info: Addressed,
  proxies: TrustedProxies,
  here = "localhost",
): string {
  const host = info.header("host") ?? "";
  const isSecure =
    isTrusted(plainAddress(info.address), proxies) &&
    (info.header("x-forwarded-proto") ?? "").trim().toLowerCase() === "https";
  const named = host.length <= MAX_HOST_CHARS && HOST.test(host) ? host.toLowerCase() : here;
  return `${isSecure ? "https" : "http"}://${named}`;
}

/** The parts of a request that determine its origin and its base URL. */
export interface Addressed {
  /** IP address of the connection. */
  readonly address: string;
  /** Value of a header, by lower-case name. */
  header(name: string): string | undefined;
}

const HOST = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;
const MAX_HOST_CHARS = 255;

/** Whether a plain address is one of the proxies. */
export function isTrusted(address: string, proxies: TrustedProxies): boolean {
  const version = isIP(address);
  return version !== 0 && proxies.check(address, version === 6 ? "ipv6" : "ipv4");
}

/** An address without brackets and port; an IPv4-mapped IPv6 address becomes IPv4. */
export function plainAddress(text: string): string {
  const bare = text.trim().replace(/^\[([^\]]*)\](?::\d+)?$/, "$1");
  const v4 = /^(?:::ffff:)?(\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?$/i.exec(bare);
  return v4?.[1] ?? bare;
}

/** The value of a header that was sent once; undefined = there is none. */
export function headerOf({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" ? value : undefined;
}
