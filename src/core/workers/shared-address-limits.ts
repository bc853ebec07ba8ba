// Rate limits by network address that hold for all workers of a service: each worker takes from its
// own state, and tells the others what was taken a moment later.
import {
  type AddressLimit,
  type AwaitedAddressLimit,
  createAddressLimit,
  networkOf,
} from "../billing/address-limit.ts";
import type { RateLimitSize } from "../billing/gcra.ts";
import type { Bus, Topic } from "./bus.ts";

/** Opens a limit; one for each name. */
export type OpenAddressLimit = (name: string, size: RateLimitSize) => AddressLimit;

/** Opens a limit of new keys; one for each name. */
export type OpenCreationLimit = (name: string, size: RateLimitSize) => AwaitedAddressLimit;

/** The limits of a process that is the whole service. */
export const openAddressLimit: OpenAddressLimit = (_, size) => createAddressLimit(size);

/** The time, and the way to wait. */
interface Clock {
  now(): number;
  after(ms: number, run: () => void): () => void;
}

/** What was taken within this time travels together. */
const TELL_MS = 5;
const MAX_TOLD = 1_000;

/** Opens limits that are shared over a bus. */
export function sharedAddressLimits(bus: Bus, clock: Clock): OpenAddressLimit {
  const limits = new Map<string, AddressLimit>();
  /** Tokens taken here and not told yet, by name and network; negative = given back. */
  const untold = new Map<string, Taken>();

  function tell(): void {
    bus.publish(TAKEN, [...untold.values()]);
    untold.clear();
  }

  function note(name: string, address: string, tokens: number): void {
    const network = networkOf(address);
    const key = `${name} ${network}`;
    const before = untold.get(key)?.tokens ?? 0;
    if (untold.size === 0) clock.after(TELL_MS, tell);
    if (untold.size < MAX_TOLD || untold.has(key))
      untold.set(key, { name, network, tokens: before + tokens });
  }

  bus.subscribe(TAKEN, (all) => {
    for (const { name, network, tokens } of all)
      for (let n = Math.abs(tokens); n > 0; n--)
        if (tokens > 0) limits.get(name)?.take(network, clock.now());
        else limits.get(name)?.giveBack(network);
  });

  return (name, size) => {
    const limit = createAddressLimit(size);
    limits.set(name, limit);
    return {
      take(address, nowMs) {
        const waitMs = limit.take(address, nowMs);
        if (waitMs === 0) note(name, address, 1);
        return waitMs;
      },
      waitMs: limit.waitMs,
      giveBack(address) {
        limit.giveBack(address);
        note(name, address, -1);
      },
      get size() {
        return limit.size;
      },
    };
  };
}

interface Taken {
  readonly name: string;
  readonly network: string;
  readonly tokens: number;
}

const TAKEN: Topic<readonly Taken[]> = { name: "address-limit.taken" };
