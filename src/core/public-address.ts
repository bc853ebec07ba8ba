// Decides which URLs and network addresses users may point the service at: public ones only.
// Special ranges come from ipaddr.js, the one package that core imports. Resolves no names and
// opens no connections.
import ipaddr from "ipaddr.js";

/** What the operator allows. */
export interface AddressRules {
  /** True = private ranges are allowed too: for development only. */
  readonly allowPrivate: boolean;
  /** Host name of this service, which must not call itself; null = unknown. */
  readonly ownHost: string | null;
}

/**
 * A URL given by a user, in canonical spelling, or the reason for its refusal. The reason never
 * repeats the URL.
 */
export type UserUrl =
  | {
      readonly kind: "url";
      readonly url: string;
      readonly host: string;
      readonly transport: "http" | "ws";
    }
  | { readonly kind: "refused"; readonly reason: string };

/** The rules of a service on the internet. */
export const PUBLIC_ONLY: AddressRules = { allowPrivate: false, ownHost: null };

const MAX_URL_CHARS = 2_048;
const LOWEST_FREE_PORT = 1_024;
const STANDARD_PORTS: readonly number[] = [80, 443];
/** Names of local networks, refused even if a resolver finds a public address for them. */
const LOCAL_NAMES = /(?:^|\.)(?:localhost|local|internal|intranet|lan|corp|home|onion|home\.arpa)$/;

/**
 * Validates a URL given by a user. The addresses of its host are checked again at each connection.
 */
export function readUserUrl(
  text: string,
  { allowPrivate, ownHost }: AddressRules = PUBLIC_ONLY,
): UserUrl {
  if (text.length > MAX_URL_CHARS)
    return refused(`must not be longer than ${MAX_URL_CHARS} characters`);
  if (hasControls(text))
    return refused("must not contain spaces, control characters or backslashes");
  const authority = /^(?:https?|wss?):\/\/([^/?#]+)/i.exec(text)?.[1];
  if (authority === undefined)
    return refused("must begin with http://, https://, ws:// or wss:// and a host");
  if (authority.includes("@")) return refused("must not carry credentials; send them in `headers`");
  if (text.includes("#")) return refused("must not have a fragment (#…)");
  const parsed = URL.parse(text);
  if (parsed === null) return refused("must be a valid URL");
  if (parsed.href.length > MAX_URL_CHARS)
    return refused(`must not be longer than ${MAX_URL_CHARS} characters when escaped`);
  const secure = parsed.protocol === "https:" || parsed.protocol === "wss:";
  const defaultPort = secure ? 443 : 80;
  const port = parsed.port === "" ? defaultPort : Number(parsed.port);
  if (port < LOWEST_FREE_PORT && !STANDARD_PORTS.includes(port))
    return refused("must use port 80, 443 or one above 1023");
  const host = bareHost(parsed.hostname);
  const reason = allowPrivate ? null : hostRefusal(host, ownHost);
  if (reason !== null) return refused(reason);
  return {
    kind: "url",
    url: parsed.href,
    host,
    transport: parsed.protocol.startsWith("ws") ? "ws" : "http",
  };
}

/** A host name without the brackets that IPv6 addresses have in URLs. */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, "");
}

/** Whether a host is an IP address, as URLs and resolvers write them, and not a name. */
export function isAddress(host: string): boolean {
  return parseAddress(host) !== null;
}

/** The eight groups of an IPv6 address; null = any other text. */
export function groupsOf(ip: string): readonly number[] | null {
  const address = ip.includes(":") ? parseAddress(ip) : null;
  return address instanceof ipaddr.IPv6 ? address.parts : null;
}

/** Whether an IP address is reachable over the internet. False for any other text. */
export function isPublicAddress(ip: string): boolean {
  const address = parseAddress(ip);
  return address !== null && isPublic(address);
}

/** Whether an IP address is a loopback address of this machine. False for any other text. */
export function isLoopbackAddress(ip: string): boolean {
  const address = parseAddress(ip);
  if (address === null) return false;
  const range = address.range();
  if (range === "loopback") return true;
  return range === "ipv4Mapped" && carriedV4(address)?.range() === "loopback";
}

/**
 * The address that a connection to an IP address reaches: the embedded IPv4 address of a mapped,
 * NAT64 or 6to4 address, else the address itself.
 */
export function reachedBy(ip: string): string {
  const address = parseAddress(ip);
  return (address === null ? null : carriedV4(address)?.toString()) ?? ip;
}

function refused(reason: string): UserUrl {
  return { kind: "refused", reason };
}

/**
 * Whether a text holds white space, control characters or backslashes, which URL parsers handle
 * differently.
 */
function hasControls(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code <= 0x20 || code === 0x5c || (code >= 0x7f && code <= 0xa0)) return true;
  }
  return /\s/.test(text);
}

/** Why a host is refused; null = it is not. */
function hostRefusal(host: string, ownHost: string | null): string | null {
  if (host === ownHost) return "must not lead to this service itself";
  if (isAddress(host))
    return isPublicAddress(host)
      ? null
      : "must lead to a public address; this one is private, local or reserved";
  if (host.endsWith(".")) return "must not have a dot at the end of the host";
  if (!host.includes(".") || LOCAL_NAMES.test(host))
    return "must lead to a public host; this name is local";
  return null;
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Where an IPv6 range carries an IPv4 address, as a position in its 16 bytes. */
interface Carrier {
  readonly range: [ipaddr.IPv6, number];
  readonly at: number;
}

/** IPv6 ranges whose addresses stand for an IPv4 address, and are as public as that one. */
const CARRIERS: readonly Carrier[] = [
  // Mapped: RFC 4291, section 2.5.5.2.
  { range: ipaddr.IPv6.parseCIDR("::ffff:0:0/96"), at: 12 },
  // NAT64, well-known prefix only: RFC 6052. ipaddr.js counts 64:ff9b:1::/48 (RFC 8215, for local
  // use) as the same range.
  { range: ipaddr.IPv6.parseCIDR("64:ff9b::/96"), at: 12 },
  // 6to4: RFC 3056.
  { range: ipaddr.IPv6.parseCIDR("2002::/16"), at: 2 },
];

/** The IPv6 space assigned for global unicast: RFC 4291, section 2.4, and IANA's registry. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR("2000::/3");

/** A cloud platform's own service on a public address (Azure WireServer; in no RFC). */
const PLATFORM_SERVICE = ipaddr.IPv4.parseCIDR("168.63.129.16/32");

function isPublic(address: Address): boolean {
  const carried = carriedV4(address);
  if (carried !== null) return isPublic(carried);
  if (address.range() !== "unicast") return false;
  return address instanceof ipaddr.IPv6
    ? address.match(GLOBAL_UNICAST)
    : !address.match(PLATFORM_SERVICE);
}

/** The IPv4 address that an IPv6 address stands for; null = none. */
function carriedV4(address: Address): ipaddr.IPv4 | null {
  if (address instanceof ipaddr.IPv4) return null;
  const carrier = CARRIERS.find(({ range }) => address.match(range));
  if (carrier === undefined) return null;
  return new ipaddr.IPv4(address.toByteArray().slice(carrier.at, carrier.at + 4));
}

const DECIMAL_V4 = /^(?:(?:0|[1-9]\d{0,2})\.){3}(?:0|[1-9]\d{0,2})$/;
const V6_CHARACTERS = /^[0-9a-f:.]{2,45}$/i;

/**
 * Parses an IP address: four decimal numbers, or IPv6 in any spelling; null = anything else, or an
 * address bound to an interface.
 */
function parseAddress(text: string): Address | null {
  if (!text.includes(":"))
    return DECIMAL_V4.test(text) && ipaddr.IPv4.isValid(text) ? ipaddr.IPv4.parse(text) : null;
  if (!V6_CHARACTERS.test(text)) return null;
  // ipaddr.js reads the IPv4-compatible `::8.8.8.8` as a mapped address: it gets the canonical
  // spelling, in groups.
  const canonical = URL.parse(`http://[${text}]/`)?.hostname;
  return canonical === undefined ? null : ipaddr.IPv6.parse(bareHost(canonical));
}
