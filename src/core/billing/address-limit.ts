// Rate limits per network address: how many keys an address may create, how many wrong secrets it
// may try. Bounded: the address not seen for longest is dropped first.

import { setNewest } from "../newest.ts";
import { groupsOf } from "../public-address.ts";
import { type RateLimitSize, take, waitMs } from "./gcra.ts";

/** A rate limit for each address of which another process may have to be asked. */
export interface AwaitedAddressLimit {
  /** Takes one token. 0, or the milliseconds until one is available. */
  take(address: string, nowMs: number): number | Promise<number>;
}

const MAX_ADDRESSES = 100_000;

/** A rate limit for each address. Times are monotonic. */
export class AddressLimit {
  readonly #size: RateLimitSize;
  readonly #maxAddresses: number;
  /** When the limit of each network is full again, the longest unused first. */
  readonly #fullAtMs = new Map<string, number>();

  constructor(size: RateLimitSize, maxAddresses: number = MAX_ADDRESSES) {
    this.#size = size;
    this.#maxAddresses = maxAddresses;
  }

  /** Takes one token. Returns 0, or the milliseconds until one is available. */
  take(address: string, nowMs: number): number {
    const network = networkOf(address);
    const before = this.#fullAtMs.get(network) ?? nowMs;
    const after = take(before, this.#size, nowMs);
    if (after === null) return Math.max(1, waitMs(before, this.#size, nowMs));
    setNewest(this.#fullAtMs, network, after, this.#maxAddresses);
    return 0;
  }

  /** Milliseconds until a token is available; 0 = now. Takes nothing. */
  waitMs(address: string, nowMs: number): number {
    return waitMs(this.#fullAtMs.get(networkOf(address)) ?? nowMs, this.#size, nowMs);
  }

  /** Returns a token. */
  giveBack(address: string): void {
    const network = networkOf(address);
    const before = this.#fullAtMs.get(network);
    if (before !== undefined) this.#fullAtMs.set(network, before - 1_000 / this.#size.perSecond);
  }

  get size(): number {
    return this.#fullAtMs.size;
  }
}

const NETWORK_GROUPS = 4;

/** The network that an address counts as: the address itself, or its /64 for IPv6. */
export function networkOf(address: string): string {
  const [bare = ""] = address.split("%");
  const groups = groupsOf(bare)?.slice(0, NETWORK_GROUPS);
  return groups === undefined
    ? address
    : `${groups.map((group) => group.toString(16)).join(":")}::/64`;
}
