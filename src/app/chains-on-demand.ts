// Opens chains that are known, and that no configuration names, when they are called; closes them
// when nobody uses them. Bounded in number, by caller and in time. Each worker opens chains for its
// own callers.
import type { Logger } from "pino";
import { chainOfFacts } from "../config/chains.ts";
import type { Config } from "../config/config.ts";
import { defaultProfile, onDemandSets } from "../config/provider-sets.ts";
import { AddressLimit } from "../core/billing/address-limit.ts";
import type { RateLimitSize } from "../core/billing/gcra.ts";
import { type Fault, fault } from "../core/faults/rpc-fault.ts";
import type { Chain } from "../core/provider/chain.ts";
import type { Profile } from "../core/provider/profile.ts";
import type { KnownChain } from "../presets/chains.ts";
import type { Runtime } from "../runtime.ts";
import type { ProfileRegistry } from "../upstream/registry/profile-registry.ts";
import { type ChainOpener, OPENING } from "../web/rpc/target.ts";
import type { OpenedChain, ServedChains } from "./served-chains.ts";

/** The limits that are no setting; tests tighten them. */
export const ON_DEMAND_LIMITS = {
  maxOpen: 64,
  maxOfCaller: 16,
  /** Chains that one caller may open. */
  openings: { perSecond: 5 / 60, burst: 5 } as RateLimitSize,
  /** Time that a call waits for a provider of a chain that is being opened. */
  waitMs: 2_000,
  /** Calls that wait for one chain. */
  maxWaiting: 1_000,
  /** A chain that nobody has used for so long is closed. */
  idleMs: 600_000,
  /** A chain of which no provider has answered for so long is closed. */
  silentMs: 60_000,
};

export type OnDemandLimits = Readonly<typeof ON_DEMAND_LIMITS>;

export interface ChainsOnDemandParts {
  readonly runtime: Pick<Runtime, "now" | "after">;
  readonly log: Logger;
  /** The configuration of now. */
  readonly config: () => Pick<Config, "chains" | "onDemand">;
  readonly registry: Pick<ProfileRegistry, "chain" | "profiles">;
  readonly served: ServedChains;
  /** What is known of the chain that a text means; null = nothing. */
  readonly knownChain: (text: string) => KnownChain | null;
  /** Calls on each chain that have ended, since it was opened. */
  readonly callsOf: (chainName: string) => number;
  /** The chains that somebody is subscribed to, or has filters on. */
  readonly subscribed: () => ReadonlySet<string>;
  readonly limits?: OnDemandLimits;
}

/** Between two looks for chains that nobody uses. */
const SWEEP_MS = 15_000;
/** Most callers whose openings are counted. */
const MAX_CALLERS = 10_000;

/** An open chain. */
class OpenChain {
  readonly name: string;
  /** Who opened it. */
  readonly caller: string;
  readonly openedAtMs: number;
  usedAtMs: number;
  /** Calls that had ended when they were last counted. */
  calls = 0;
  /** No provider has answered yet. */
  isOpening = true;
  readonly waiting = new Set<() => void>();
  stopListening: () => void = () => {};

  constructor(name: string, caller: string, nowMs: number) {
    this.name = name;
    this.caller = caller;
    this.openedAtMs = nowMs;
    this.usedAtMs = nowMs;
  }
}

/** Opens and closes chains. */
export class ChainsOnDemand implements ChainOpener {
  readonly #parts: ChainsOnDemandParts;
  readonly #limits: OnDemandLimits;
  readonly #openings: AddressLimit;
  readonly #open = new Map<string, OpenChain>();
  #cancelSweep: (() => void) | null = null;

  constructor(parts: ChainsOnDemandParts) {
    this.#parts = parts;
    this.#limits = parts.limits ?? ON_DEMAND_LIMITS;
    this.#openings = new AddressLimit(this.#limits.openings, MAX_CALLERS);
  }

  get isOn(): boolean {
    return this.#parts.config().onDemand !== null;
  }

  known(text: string, { owner, slug }: Profile): KnownChain | null {
    const { config, registry, knownChain } = this.#parts;
    const { onDemand } = config();
    if (onDemand === null || owner !== null || !mayOpen(onDemand, slug)) return null;
    const known = knownChain(text);
    if (known === null || known.isShared) return null;
    const taken = registry.chain(known.chainName);
    return taken === undefined || taken.chainId === known.chainId ? known : null;
  }

  isOpening({ chainName }: Chain): boolean {
    return this.#open.get(chainName)?.isOpening === true;
  }

  prepare(chainName: string, caller: string, done: (why: Fault | null) => void): () => void {
    const open = this.#open.get(chainName) ?? this.#begin(chainName, caller);
    if ("kind" in open || !open.isOpening) {
      done("kind" in open ? open : null);
      return () => {};
    }
    if (open.waiting.size >= this.#limits.maxWaiting) {
      done(NOT_PREPARED);
      return () => {};
    }
    open.usedAtMs = this.#parts.runtime.now();
    const end = (why: Fault | null | undefined): void => {
      if (!open.waiting.delete(answered)) return;
      cancelWait();
      if (why !== undefined) done(why);
    };
    // Its target is resolved again, also where the chain has been closed.
    const answered = (): void => end(null);
    const cancelWait = this.#parts.runtime.after(this.#limits.waitMs, () => end(NOT_PREPARED));
    open.waiting.add(answered);
    return () => end(undefined);
  }

  /** Serves another configuration: chains stay open that it does not name, and that it opens. */
  reloaded(): void {
    const { chains } = this.#parts.config();
    const ids = new Set(chains.map(({ chainId }) => chainId));
    const staying = [...this.#open.values()].flatMap((open) => {
      const opened = this.#openedChain(open.name);
      if (opened !== null && !ids.has(opened.chain.chainId)) return [opened];
      this.#forget(open);
      return [];
    });
    this.#parts.served.configured(staying);
    for (const open of this.#open.values()) if (open.isOpening) this.#listen(open);
  }

  end(): void {
    this.#cancelSweep?.();
    for (const open of [...this.#open.values()]) this.#forget(open);
  }

  /** Opens a chain, or returns why it cannot be opened for this caller now. */
  #begin(chainName: string, caller: string): OpenChain | Fault {
    const { runtime, served, log } = this.#parts;
    const nowMs = runtime.now();
    const waitMs = this.#openings.take(caller, nowMs);
    if (waitMs > 0) return tooMany(waitMs);
    const leaving = this.#roomFor(caller);
    if ("kind" in leaving) return leaving;
    const opened = this.#openedChain(chainName);
    const closed = leaving.map(({ name }) => name);
    if (opened === null || !served.open(opened, closed)) return NO_PROVIDER;
    for (const each of leaving) this.#forget(each);
    const open = new OpenChain(chainName, caller, nowMs);
    this.#open.set(chainName, open);
    this.#listen(open);
    this.#cancelSweep ??= runtime.after(SWEEP_MS, () => this.#sweep());
    const sets = [...opened.sets.values()];
    const providers = sets.reduce((sum, set) => sum + set.providers.length, 0);
    log.info({ chain: chainName, providers, closed }, OPENED);
    if (providers === 1) log.warn({ chain: chainName }, NO_FAILOVER);
    return open;
  }

  /** A chain with the providers that profiles have for it; null = there are none. */
  #openedChain(chainName: string): OpenedChain | null {
    const { config, knownChain } = this.#parts;
    const { onDemand } = config();
    const known = onDemand === null ? null : knownChain(chainName);
    if (onDemand === null || known === null) return null;
    const sets = onDemandSets(onDemand.profiles, known);
    return sets.size === 0 ? null : { chain: chainOfFacts(known), sets };
  }

  /** The chains that have to be closed so that a caller may open one more. */
  #roomFor(caller: string): readonly OpenChain[] | Fault {
    const { maxOpen, maxOfCaller } = this.#limits;
    this.#count();
    const own = [...this.#open.values()].filter((open) => open.caller === caller);
    const isOwnFull = own.length >= maxOfCaller;
    if (!isOwnFull && this.#open.size < maxOpen) return [];
    const idle = this.#longestIdle(isOwnFull ? own : [...this.#open.values()]);
    return idle === null ? ALL_USED : [idle];
  }

  /** The chain that was not used for longest, and that nobody waits for or is subscribed to. */
  #longestIdle(among: readonly OpenChain[]): OpenChain | null {
    const subscribed = this.#parts.subscribed();
    const [idle = null] = among
      .filter(({ name, waiting }) => waiting.size === 0 && !subscribed.has(name))
      .sort((left, right) => left.usedAtMs - right.usedAtMs);
    return idle;
  }

  /** Notes which chains were used since the last time. */
  #count(): void {
    const { runtime, callsOf, subscribed } = this.#parts;
    const held = subscribed();
    for (const open of this.#open.values()) {
      const calls = callsOf(open.name);
      if (calls !== open.calls || held.has(open.name)) open.usedAtMs = runtime.now();
      open.calls = calls;
    }
  }

  #listen(open: OpenChain): void {
    open.stopListening();
    const stops = this.#parts.registry.profiles.flatMap(({ trackers }) => {
      const tracker = trackers.get(open.name);
      return tracker === undefined ? [] : [tracker.attend({ answered: () => this.#opened(open) })];
    });
    open.stopListening = () => {
      for (const stop of stops) stop();
    };
  }

  #opened(open: OpenChain): void {
    open.isOpening = false;
    open.stopListening();
    for (const answered of [...open.waiting]) answered();
  }

  #sweep(): void {
    const { runtime } = this.#parts;
    const { idleMs, silentMs } = this.#limits;
    const nowMs = runtime.now();
    this.#count();
    const all = [...this.#open.values()].filter(({ waiting }) => waiting.size === 0);
    const silent = all.filter((open) => open.isOpening && nowMs - open.openedAtMs >= silentMs);
    if (silent.length > 0) this.#close(silent, "no provider has answered");
    const idle = all.filter((open) => !open.isOpening && nowMs - open.usedAtMs >= idleMs);
    if (idle.length > 0) this.#close(idle, "nobody used it");
    this.#cancelSweep = this.#open.size === 0 ? null : runtime.after(SWEEP_MS, () => this.#sweep());
  }

  #close(chains: readonly OpenChain[], why: string): void {
    if (chains.length === 0) return;
    const { served, log } = this.#parts;
    const names = chains.map(({ name }) => name);
    for (const open of chains) this.#forget(open);
    served.close(names);
    log.info({ chains: names, why }, "chains closed");
  }

  #forget(open: OpenChain): void {
    this.#open.delete(open.name);
    open.stopListening();
    for (const answered of [...open.waiting]) answered();
  }
}

/** Whether a profile may have providers of chains that no configuration names. */
function mayOpen({ profiles }: NonNullable<Config["onDemand"]>, slug: string): boolean {
  if (slug === defaultProfile(profiles.map((profile) => profile.slug))) return true;
  const settings = profiles.find((profile) => profile.slug === slug)?.settings;
  const vendors = settings !== undefined && "providers" in settings ? settings.providers : null;
  return Array.isArray(vendors) && vendors.length > 0;
}

const OPENED = "chain opened on demand";
const NO_FAILOVER = "this chain has one public address: no failover";
const NOT_PREPARED = fault("not_prepared", OPENING);
const NO_PROVIDER = fault("unknown_chain", "no provider of this chain is known", {
  nextAction: "name providers of it in the configuration",
});
const ALL_USED = fault("not_prepared", "too many other chains are open, and all are used", {
  retryAfterMs: SWEEP_MS,
});

function tooMany(retryAfterMs: number): Fault {
  return fault("rate_limit_exceeded", "this caller has opened too many chains in the last minute", {
    retryAfterMs,
  });
}
