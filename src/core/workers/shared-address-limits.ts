// Rate limits by network address that hold for all workers of a service: each worker takes from its
// own state, and reports to the other workers a moment later.
import { AddressLimit, type AwaitedAddressLimit, networkOf } from "../billing/address-limit.ts";
import type { RateLimitSize } from "../billing/gcra.ts";
import type { Bus, BusClock, Topic } from "./bus.ts";

/** Opens a limit; one for each name. */
export type OpenAddressLimit = (name: string, size: RateLimitSize) => AddressLimit;

/** Opens a limit of new keys; one for each name. */
export type OpenCreationLimit = (name: string, size: RateLimitSize) => AwaitedAddressLimit;

/** The limits of a process that is the whole service. */
export const openAddressLimit: OpenAddressLimit = (_, size) => new AddressLimit(size);

/** What was taken within this time travels together. */
const TELL_MS = 5;
const MAX_TOLD = 1_000;

/** Opens limits that are shared over a bus. */
export function sharedAddressLimits(bus: Bus, clock: BusClock): OpenAddressLimit {
  const limits = new Map<string, SharedAddressLimit>();
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
      limits.get(name)?.hear(network, tokens, clock.now());
  });

  return (name, size) => {
    const limit = new SharedAddressLimit(size, (address, tokens) => note(name, address, tokens));
    limits.set(name, limit);
    return limit;
  };
}

/** A limit that reports each token taken here, or given back (-1). */
class SharedAddressLimit extends AddressLimit {
  readonly #note: (address: string, tokens: number) => void;

  constructor(size: RateLimitSize, note: (address: string, tokens: number) => void) {
    super(size);
    this.#note = note;
  }

  override take(address: string, nowMs: number): number {
    const waitMs = super.take(address, nowMs);
    if (waitMs === 0) this.#note(address, 1);
    return waitMs;
  }

  override giveBack(address: string): void {
    super.giveBack(address);
    this.#note(address, -1);
  }

  /** Takes what another worker took, or gives it back, without a report. */
  hear(network: string, tokens: number, nowMs: number): void {
    for (let n = Math.abs(tokens); n > 0; n--)
      if (tokens > 0) super.take(network, nowMs);
      else super.giveBack(network);
  }
}

interface Taken {
  readonly name: string;
  readonly network: string;
  readonly tokens: number;
}

const TAKEN: Topic<readonly Taken[]> = { name: "address-limit.taken" };
