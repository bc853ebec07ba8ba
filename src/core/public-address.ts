// Which network addresses and URLs a user may send this service to: public ones only. Reads text;
// resolves no name and connects to nothing.

/** Where an operator draws the line. */
export interface AddressRules {
  /** Private ranges are allowed: for development only. */
  readonly allowPrivate: boolean;
  /** Host name of this service, which must not call itself; null = unknown. */
  readonly ownHost: string | null;
}

/**
 * A URL that a user gave, in the one spelling that all clients use, or why it is refused. The
 * reason never repeats it.
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
/** Names that never lead to a public address, whatever a resolver says. */
const INNER_NAMES = /(?:^|\.)(?:localhost|local|internal|intranet|lan|corp|home|onion|home\.arpa)$/;

/** Reads a URL given by a user; what it leads to is decided again at each connection. */
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
  const port = parsed.port === "" ? (secure ? 443 : 80) : Number(parsed.port);
  if (port < LOWEST_FREE_PORT && !STANDARD_PORTS.includes(port))
    return refused("must use port 80, 443 or one above 1023");
  const host = bareHost(parsed.hostname);
  const trouble = allowPrivate
    ? null
    : host === ownHost
      ? "must not lead to this service itself"
      : hostTrouble(host);
  if (trouble !== null) return refused(trouble);
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
  return readV4(host) !== null || readV6(host) !== null;
}

/**
 * Whether an IP address is one that anybody on the internet may be reached by. Text that is no
 * address is not.
 */
export function isPublicAddress(ip: string): boolean {
  const v4 = readV4(ip);
  if (v4 !== null) return isPublicV4(v4);
  const v6 = readV6(ip);
  return v6 !== null && isPublicV6(v6);
}

/**
 * Whether an IP address is one of this machine's own that nobody else reaches. Text that is no
 * address is not.
 */
export function isLoopbackAddress(ip: string): boolean {
  const v4 = readV4(ip);
  if (v4 !== null) return isLoopbackV4(v4);
  const groups = readV6(ip);
  if (groups === null || !groups.slice(0, 5).every((it) => it === 0)) return false;
  const [high = 0, low = 0] = groups.slice(6);
  return groups[5] === 0xffff
    ? isLoopbackV4(high * 65_536 + low)
    : groups[5] === 0 && high === 0 && low === 1;
}

function isLoopbackV4(address: number): boolean {
  return Math.floor(address / 2 ** 24) === 127;
}

/**
 * The IPv4 address that an IPv6 one stands for (mapped, NAT64, 6to4), or the address itself: what a
 * connection to it reaches.
 */
export function reachedBy(ip: string): string {
  const groups = readV6(ip);
  const at = groups === null ? null : innerAt(groups);
  if (groups === null || at === null) return ip;
  return [groups[at] ?? 0, groups[at + 1] ?? 0].map((it) => `${it >> 8}.${it & 255}`).join(".");
}

function refused(reason: string): UserUrl {
  return { kind: "refused", reason };
}

/**
 * White space, control characters and backslashes: parsers drop or turn them, and do not agree on
 * it.
 */
function hasControls(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code <= 0x20 || code === 0x5c || (code >= 0x7f && code <= 0xa0)) return true;
  }
  return /\s/.test(text);
}

function hostTrouble(host: string): string | null {
  if (isAddress(host))
    return isPublicAddress(host)
      ? null
      : "must lead to a public address; this one is private, local or reserved";
  if (host.endsWith(".")) return "must not have a dot at the end of the host";
  if (!host.includes(".") || INNER_NAMES.test(host))
    return "must lead to a public host; this name is local";
  return null;
}

type Range = readonly [base: string, bits: number];

const RESERVED_V4: readonly Range[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  // A platform's own service on a public address.
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];

function isPublicV4(address: number): boolean {
  return !RESERVED_V4.some(([base, bits]) => {
    const size = 2 ** (32 - bits);
    return Math.floor(address / size) === Math.floor((readV4(base) ?? 0) / size);
  });
}

/** Where an IPv4 address stands in an IPv6 one: mapped, NAT64 or 6to4; null = nowhere. */
function innerAt(groups: readonly number[]): number | null {
  const zeros = (from: number, to: number): boolean =>
    groups.slice(from, to).every((it) => it === 0);
  if (zeros(0, 5) && groups[5] === 0xffff) return 6;
  if (groups[0] === 0x64 && groups[1] === 0xff9b && zeros(2, 6)) return 6;
  return groups[0] === 0x2002 ? 1 : null;
}

/**
 * Only what is assigned for global use is public; the addresses that carry an IPv4 address are what
 * that one is.
 */
function isPublicV6(groups: readonly number[]): boolean {
  const [first = 0, second = 0] = groups;
  const at = innerAt(groups);
  if (at !== null) return isPublicV4((groups[at] ?? 0) * 65_536 + (groups[at + 1] ?? 0));
  // 2001::/23 is for protocols (Teredo, ORCHID, benchmarks), 2001:db8::/32 and 3fff::/20 are for
  // books.
  if (first === 0x2001 && (second < 0x200 || second === 0xdb8)) return false;
  if (first === 0x3fff && second < 0x1000) return false;
  return first >= 0x2000 && first <= 0x3fff;
}

/** Four decimal numbers, as one; null = it is something else. */
function readV4(text: string): number | null {
  if (!/^(?:(?:0|[1-9]\d{0,2})\.){3}(?:0|[1-9]\d{0,2})$/.test(text)) return null;
  const parts = text.split(".").map(Number);
  return parts.some((it) => it > 255) ? null : parts.reduce((sum, it) => sum * 256 + it, 0);
}

/**
 * The eight groups of an IPv6 address in any spelling; null = it is something else, or bound to one
 * interface.
 */
function readV6(text: string): readonly number[] | null {
  if (!/^[0-9a-f:.]{2,45}$/i.test(text) || !text.includes(":")) return null;
  const canonical = URL.parse(`http://[${text}]/`)?.hostname;
  if (canonical === undefined) return null;
  const [head = "", tail] = bareHost(canonical).split("::");
  const left = groupsOf(head);
  const right = groupsOf(tail ?? "");
  return [...left, ...Array.from({ length: 8 - left.length - right.length }, () => 0), ...right];
}

function groupsOf(text: string): readonly number[] {
  return text === "" ? [] : text.split(":").map((it) => Number.parseInt(it, 16));
}
