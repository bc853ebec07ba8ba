// Rate limits per network address: how many keys an address may create, how many wrong secrets it
// may try. Bounded: the address not seen for longest is dropped first.

import { isAddress } from "../public-address.ts";
import { type RateLimitSize, take, waitMs } from "./gcra.ts";

/** A rate limit for each address. */
export interface AddressLimit {
  /** Takes one token. Returns 0, or the milliseconds until one is available. */
  take(address: string, nowMs: number): number;
  /** Milliseconds until a token is available; 0 = now. Takes nothing. */
  waitMs(address: string, nowMs: number): number;
  /** Returns a token. */
  giveBack(address: string): void;
  readonly size: number;
}

/** A rate limit for each address of which another process may have to be asked. */
export interface AwaitedAddressLimit {
  /** Takes one token. 0, or the milliseconds until one is available. */
  take(address: string, nowMs: number): number | Promise<number>;
}

const MAX_ADDRESSES = 100_000;

/** Creates an unused limit. `nowMs` is monotonic. */
export function createAddressLimit(
  size: RateLimitSize,
  maxAddresses: number = MAX_ADDRESSES,
): AddressLimit {
  const fullAtMs = new Map<string, number>();
  return {
    take(address, nowMs) {
      const whose = networkOf(address);
      const before = fullAtMs.get(whose) ?? nowMs;
      const after = take(before, size, nowMs);
      if (after === null) return Math.max(1, waitMs(before, size, nowMs));
      fullAtMs.delete(whose);
      fullAtMs.set(whose, after);
      for (const oldest of fullAtMs.keys()) {
        if (fullAtMs.size <= maxAddresses) break;
        fullAtMs.delete(oldest);
      }
      return 0;
    },
    waitMs(address, nowMs) {
      return waitMs(fullAtMs.get(networkOf(address)) ?? nowMs, size, nowMs);
    },
    giveBack(address) {
      const whose = networkOf(address);
      const before = fullAtMs.get(whose);
      if (before !== undefined) fullAtMs.set(whose, before - 1_000 / size.perSecond);
    },
    get size() {
      return fullAtMs.size;
    },
  };
}

const GROUPS = 8;
const NETWORK_GROUPS = 4;

/** The network that an address counts as: the address itself, or its /64 for IPv6. */
export function networkOf(address: string): string {
  const [bare = ""] = address.split("%");
  if (!bare.includes(":") || !isAddress(bare)) return address;
  const [head = "", tail] = bare.toLowerCase().split("::");
  const groups = head === "" ? [] : head.split(":");
  const rest =
    tail === undefined || tail === ""
      ? 0
      : tail.split(":").reduce((sum, group) => sum + (group.includes(".") ? 2 : 1), 0);
  const missing = tail === undefined ? 0 : Math.max(0, GROUPS - groups.length - rest);
  const whole = [
    ...groups,
    ...Array<string>(missing).fill("0"),
    ...(tail === undefined || tail === "" ? [] : tail.split(":")),
  ];
  return `${whole
    .slice(0, NETWORK_GROUPS)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
}
