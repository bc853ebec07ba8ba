// Finds the client address of a request and the base URL that it used, behind the proxies that the
// operator trusts. Ignores the headers of every other sender.
import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";

/** Proxies whose forwarding headers are believed. */
export type TrustedProxies = BlockList;

/** The proxies of a list of IP addresses and ranges. */
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
 * The IP address of the caller: the nearest one that is no trusted proxy, read from the right of
 * `X-Forwarded-For`.
 */
export function clientAddress(request: IncomingMessage, proxies: TrustedProxies): string {
  return addressBehind(
    request.socket.remoteAddress ?? "",
    headerOf(request, "x-forwarded-for"),
    proxies,
  );
}

/** The same from the address of a connection and the text of its `X-Forwarded-For`. */
export function addressBehind(
  remoteAddress: string,
  forwardedFor: string,
  proxies: TrustedProxies,
): string {
  let address = plain(remoteAddress);
  const hops = forwardedFor.split(",");
  for (let i = 0; i < MAX_HOPS && isTrusted(address, proxies); i++) {
    const hop = plain(hops.pop() ?? "");
    if (isIP(hop) === 0) break;
    address = hop;
  }
  return address;
}

/**
 * The base URL that the caller used, without a slash at the end; what it sent is used only where it
 * is a plain host.
 */
export function requestBaseUrl(request: IncomingMessage, proxies: TrustedProxies): string {
  const { localAddress = "localhost", localPort = 80 } = request.socket;
  const own = plain(localAddress);
  const here = `${isIP(own) === 6 ? `[${own}]` : own}:${localPort}`;
  const remote = request.socket.remoteAddress ?? "";
  return requestInfoBaseUrl(
    { address: remote, header: (name) => headerOf(request, name) },
    proxies,
    here,
  );
}

/** The same of a request whose connection is known by its address and headers alone. */
export function requestInfoBaseUrl(
  info: Addressed,
  proxies: TrustedProxies,
  here = "localhost",
): string {
  const host = info.header("host") ?? "";
  const isSecure =
    isTrusted(plain(info.address), proxies) &&
    (info.header("x-forwarded-proto") ?? "").trim().toLowerCase() === "https";
  const named = host.length <= MAX_HOST_CHARS && HOST.test(host) ? host.toLowerCase() : here;
  return `${isSecure ? "https" : "http"}://${named}`;
}

/** What of a request says where it came from and where to. */
export interface Addressed {
  /** IP address of the connection. */
  readonly address: string;
  /** Value of a header, by lower-case name. */
  header(name: string): string | undefined;
}

const HOST = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;
const MAX_HOST_CHARS = 255;

function isTrusted(address: string, proxies: TrustedProxies): boolean {
  const version = isIP(address);
  return version !== 0 && proxies.check(address, version === 6 ? "ipv6" : "ipv4");
}

/** An address without brackets and port; an IPv4-mapped IPv6 address as IPv4. */
function plain(text: string): string {
  const bare = text.trim().replace(/^\[([^\]]*)\](?::\d+)?$/, "$1");
  const v4 = /^(?:::ffff:)?(\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?$/i.exec(bare);
  return v4?.[1] ?? bare;
}

function headerOf(request: IncomingMessage, name: string): string {
  const value = request.headers[name];
  return typeof value === "string" ? value : "";
}
