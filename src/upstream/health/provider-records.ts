// The records of the providers of one set, from probes, pushed heads, reports of blocks, hints of
// other processes, and operators. Notifies listeners of changes. Plans nothing and counts no
// attempt.

import type { Channel, Effect, Verdict } from "../../core/provider/attempt.ts";
import { BlockPace, middleOf } from "../../core/provider/blocks/block-time.ts";
import {
  type Consensus,
  consensusOf,
  HEAD_FRESH_MS,
  type HeadSample,
  lagBlocks,
  plausibleLead,
} from "../../core/provider/blocks/head.ts";
import { type ExclusionReason, learnedAtMs } from "../../core/provider/capability.ts";
import {
  type AttemptEnding,
  endWaits,
  type Health,
  NEVER_MS,
  recordCircuitHint,
  recordEffect,
  recordFailedProbe,
  recordGoodProbe,
  recordVerdict,
} from "../../core/provider/health.ts";
import type { KnownHistory, StatedHistory } from "../../core/provider/history.ts";
import { type MethodReport, methodReadings } from "../../core/provider/latency.ts";
import { generalOf } from "../../core/provider/method-scope.ts";
import {
  type Provider,
  type ProviderSet,
  type Transport,
  transportsOf,
} from "../../core/provider/profile.ts";
import { regionPlacement } from "../../core/provider/region.ts";
import { learnUnserved, type ServedNames } from "../../core/provider/unserved-methods.ts";
import { errorGroupOf } from "../../core/provider-errors/category.ts";
import { type BlockRef, isHeight, NO_BLOCK } from "../../core/rpc/call.ts";
import { isKnownByName, methodOf } from "../../core/rpc/method.ts";
import type { Block } from "../../core/stream/chain-event.ts";
import type { Runtime } from "../../runtime.ts";
import type { BudgetReport } from "../budget/provider-budget.ts";
import { type HealthReport, reportOf, summaryOf } from "./health-report.ts";
import { KnownBlocks } from "./known-blocks.ts";
import { historyNow } from "./known-history.ts";
import {
  isUsable,
  type Probe,
  type ProviderCordon,
  ProviderState,
  type RecordSettings,
} from "./provider-state.ts";
import type { WatchedChannel } from "./silence-watch.ts";

/** Is notified of changes in a provider set. */
export interface TrackerListener {
  /** No provider is usable any more. */
  outage(): void;
  /**
   * A provider with requests in flight has sent nothing for a while: check whether it is reachable.
   * At most once a second per provider.
   */
  quiet(provider: Provider, transport: Transport): void;
  /** An error of a call says that the provider refuses the service or is of another chain. */
  suspected(channel: Channel): void;
  /** A provider of the right chain answered a probe, or pushed a head. */
  answered(): void;
  /** A circuit opened or closed, or a cordon began or ended. */
  changed(change: HealthChange): void;
  /** An error of a call told something about its provider, without being counted as a failure. */
  observed(channel: Channel, observation: Observation): void;
}

/**
 * What an error told about its provider: a limit, refused credentials, something it does not have.
 */
export interface Observation {
  readonly effect: Effect;
  /** The method as the caller wrote it. */
  readonly methodName: string;
  readonly block: BlockRef;
}

/** What another worker learned about a provider from its own calls. */
export type HealthHint =
  | { readonly kind: "opened" | "closed" }
  | ({ readonly kind: "observed" } & Observation);

/** A change of a provider's health on a transport, for operators. */
export interface HealthChange extends Channel {
  readonly event: "circuit_opened" | "circuit_closed" | "cordoned" | "cordon_lifted";
  /** The cause, for example an error category. */
  readonly cause: string;
}

/** The state of a provider in short, over its transports. */
export type ProviderSummary = ReturnType<ProviderRecords["summary"]>;

/** A block tag that providers are asked to resolve. */
export type NamedTag = "safe" | "finalized";

/** How far (ms) the pushed heads of a provider may be behind its answers to polls. */
const SOCKET_TRAILS_MS = 2_000;
/** So many polls in a row must find the pushed heads further behind before these are ignored. */
const POLLS_AHEAD = 2;

/** The records of the providers of one set. */
export class ProviderRecords {
  readonly set: ProviderSet;
  /** The id of the profile of the set; empty = none. */
  readonly profileId: string;
  /** The id of the profile and the name of the chain. */
  readonly key: string;
  /** What the providers have reported about blocks. */
  readonly blocks: KnownBlocks;
  protected readonly runtime: Runtime;
  protected readonly states: readonly ProviderState[];
  /** Those that make the chain usable. */
  readonly #general: readonly ProviderState[];
  /** Unlisted methods that some provider served. */
  protected readonly served: ServedNames = new Map();
  protected readonly listeners = new Set<Partial<TrackerListener>>();
  #consensus: Consensus = { height: null, fromMs: Number.POSITIVE_INFINITY, untilMs: NEVER_MS };

  constructor(
    set: ProviderSet,
    runtime: Runtime,
    settings: RecordSettings,
    previous: ProviderRecords | undefined,
  ) {
    const { profileId = "", budgets, cordons } = settings;
    this.set = set;
    this.profileId = profileId;
    this.key = `${profileId} ${set.chain.chainName}`;
    this.runtime = runtime;
    this.states = set.providers.map((provider) => {
      const region = regionPlacement(provider, set.regionPreference, settings.region);
      const budget = budgets?.open(this.key, provider) ?? null;
      const cordon = cordons?.of(this.key, provider) ?? null;
      const before = previous?.inherit(provider) ?? null;
      const pace = set.chain.learnsBlockTime === true ? (before?.pace ?? new BlockPace()) : null;
      const { archivalThreshold } = set;
      const placement = { region, budget, cordon, pace, archivalThreshold };
      return new ProviderState(provider, placement, before);
    });
    this.#general = generalOf(this.states, ({ provider }) => provider);
    const finalized = previous?.blocks.finalized() ?? null;
    this.blocks = new KnownBlocks(set, runtime, this.states, finalized);
  }

  /** Adds a listener; the returned function removes it. */
  attend(listener: Partial<TrackerListener>): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** The live state of the provider with the same id, for the tracker that replaces this one. */
  inherit(provider: Provider): ProviderState | null {
    return this.states.find((state) => state.provider.id === provider.id) ?? null;
  }

  /**
   * Records a failure of a provider's socket outside of a call: changes the circuit and limits,
   * counts no attempt. `incident` identifies the event: together with the calls that it failed, it
   * counts once toward the circuit.
   */
  recordSocket(provider: Provider, verdict: Verdict, incident?: object): void {
    const channel = this.channelOf({ provider, transport: "ws" });
    if (channel === null) return;
    const before = conditionOf(channel);
    const heard = { verdict, latencyMs: 0, ...(incident === undefined ? {} : { incident }) };
    recordVerdict(channel.health, methodOf("eth_subscribe"), heard, this.ending(NO_BLOCK));
    this.follow(channel, before, verdict.category);
  }

  /**
   * Records a probe: height, latency, wrong chain, end of a cordon. A good probe makes an open
   * circuit half-open, and several in a row close a circuit that no call has tried. Never changes a
   * success rate.
   */
  recordProbe({ provider, transport, latencyMs, result }: Probe): void {
    const state = this.stateOf(provider);
    const channel = state?.watched[transport] ?? null;
    if (state === null || channel === null) return;
    const { health } = channel;
    const before = conditionOf(channel);
    health.probedAtMs = this.runtime.now();
    if (result.kind === "failed") {
      recordFailedProbe(health, health.probedAtMs);
      // One that refuses a probe for a rate limit has answered.
      if (errorGroupOf(result.category) !== "rate_limit") health.isLastProbeGood = false;
      if (result.cordon === undefined) return;
      const unrefused = conditionOf(channel);
      health.cordon = result.cordon;
      return this.follow(channel, unrefused, result.cordon);
    }
    health.heardAtMs = health.probedAtMs;
    health.probeMs = latencyMs;
    const { wrongChain } = health;
    health.wrongChain = result.chainId !== this.set.chain.chainId;
    if (health.wrongChain) return this.#foundWrongChain(state, channel, !wrongChain);
    if (wrongChain || before.cordon !== null)
      this.#notify({ provider, transport, event: "cordon_lifted", cause: "probe" });
    health.cordon = null;
    recordGoodProbe(health, latencyMs, health.probedAtMs);
    this.#report(channel, { ...before, cordon: null }, "probe");
    // A transport that is not probed takes the result of the other transport: otherwise its cordon
    // would never end.
    const other = transport === "http" ? state.ws : state.http;
    if (other !== null && other.probedAtMs === NEVER_MS) other.cordon = null;
    if (result.height !== null && isHeight(result.height) && state.cordon === null) {
      this.#sample(state, { height: result.height, atMs: health.probedAtMs, polled: true });
      this.#compare(state, result.height);
    }
    this.#notifyAnswered();
  }

  /** Forgets the pushed blocks of a socket that trails behind the answers to polls. */
  #compare(state: ProviderState, height: number): void {
    if (state.pushedNumber === -1) return;
    const mostAhead = Math.max(1, SOCKET_TRAILS_MS / Math.max(1, this.set.chain.blockTimeMs));
    const isAhead = height > state.pushedNumber + mostAhead;
    state.pollsAhead = isAhead ? Math.min(POLLS_AHEAD, state.pollsAhead + 1) : 0;
    if (state.pollsAhead === POLLS_AHEAD) this.blocks.clear(state);
  }

  #foundWrongChain(state: ProviderState, channel: WatchedChannel, isNew: boolean): void {
    const { provider, transport, health } = channel;
    recordFailedProbe(health, health.probedAtMs);
    if (isNew) this.#notify({ provider, transport, event: "cordoned", cause: "wrong_chain" });
    this.#forget(state);
    if (isNew) this.#notifyOutage();
  }

  /** Forgets what a provider has reported about blocks. */
  #forget(state: ProviderState): void {
    this.#sample(state, null);
    state.finalized = null;
    state.safe = null;
    this.blocks.clear(state);
  }

  /** Records a hint of another worker. A hint opens no circuit. */
  recordHint(provider: Provider, transport: Transport, hint: HealthHint): void {
    const channel = this.channelOf({ provider, transport });
    if (channel === null) return;
    const nowMs = this.runtime.now();
    if (hint.kind !== "observed") return recordCircuitHint(channel.health, hint.kind, nowMs);
    const { effect, methodName, block } = hint;
    if (effect.kind === "cordon") return this.suspect(channel);
    const method = methodOf(methodName);
    this.learn(provider, effect, isKnownByName(method) ? methodName : null);
    recordEffect(channel.health, method, effect, this.ending(block));
  }

  /** Has listeners probe the provider: the error of a call alone never excludes it. */
  protected suspect(channel: WatchedChannel): void {
    for (const listener of [...this.listeners]) listener.suspected?.(channel);
  }

  /**
   * Learns from refusals: a rate, if all requests were refused for it, and unserved names of
   * unlisted methods.
   */
  protected learn(provider: Provider, effect: Effect, unlisted: string | null): void {
    const state = this.stateOf(provider);
    if (state === null) return;
    const nowMs = this.runtime.now();
    if (effect.kind === "cooldown" && effect.scope !== "method") state.rate.refused(nowMs);
    if (unlisted === null || effect.kind !== "learn" || effect.what !== "method") return;
    const atMs = learnedAtMs(nowMs, effect.brief === true);
    learnUnserved(state.unserved, this.served, unlisted, atMs);
  }

  /** Sets whether the service is subscribed to the provider's heads. */
  listen(provider: Provider, listening: boolean): void {
    const state = this.stateOf(provider);
    if (state === null) return;
    state.listening = listening;
    if (listening) return;
    state.pushedNumber = -1;
    state.pollsAhead = 0;
    this.blocks.clear(state);
  }

  /** Records a pushed head. Without `block` the hash of the head is unknown. */
  recordHead(provider: Provider, height: number, block?: Block): void {
    const state = this.stateOf(provider);
    if (state === null || state.ws?.wrongChain === true || !isHeight(height)) return;
    if (state.cordon !== null) return;
    state.pushedAtMs = this.runtime.now();
    if (state.ws !== null) {
      state.ws.heardAtMs = state.pushedAtMs;
      state.ws.hasAnswered = true;
    }
    state.pushedNumber = height;
    if (state.pollsAhead === POLLS_AHEAD) return;
    this.#sample(state, { height, atMs: state.pushedAtMs, polled: false });
    this.blocks.pushed(state, block ?? null);
    this.#notifyAnswered();
  }

  /** Records the height of the block that a tag names at a provider. */
  recordNamed(provider: Provider, tag: NamedTag, height: number): void {
    const state = this.stateOf(provider);
    if (state === null || !isHeight(height) || state.cordon !== null || state.isWrongChain) return;
    this.blocks.reported(state, tag, height);
  }

  /** Records that a provider has answered at a block, so that its head is at least this high. */
  hasBlock(provider: Provider, number: number): void {
    const state = this.stateOf(provider);
    if (state === null) return;
    state.refused = null;
    this.#raiseHighest(state, number);
    if (state.sample !== null && state.sample.height >= number) return;
    this.#sample(state, { height: number, atMs: this.runtime.now(), polled: true });
  }

  /**
   * Records that an answer named a block, so that the provider has it. Does not change the
   * consensus.
   */
  namedBlock(provider: Provider, number: number): void {
    const state = this.stateOf(provider);
    if (state !== null && state.cordon === null) this.#raiseHighest(state, number);
  }

  /**
   * Records that a provider has said that it lacks a block. If it refuses two different blocks up
   * to its own head without an answer between, it is asked by tag for a while.
   */
  lacksBlock(provider: Provider, number: number): void {
    const state = this.stateOf(provider);
    if (state === null) return;
    state.missing = number;
    if (state.sample === null || state.sample.height < number) return;
    // One block may have been missing by chance.
    if (state.refused !== null && state.refused !== number)
      state.neededTagAtMs = this.runtime.now();
    state.refused = number;
  }

  /** Records whether a provider answers reads of state by the hash of a block. */
  recordHashReads(provider: Provider, served: boolean): void {
    const state = this.stateOf(provider);
    if (state === null) return;
    state.takesHash = served;
    state.hashReadsAtMs = this.runtime.now();
  }

  /**
   * Records what a provider reports of its history, and in how long (ms) it may be asked again;
   * null = it told nothing, and what it told before still holds.
   */
  recordHistory(provider: Provider, reported: StatedHistory | null, dueInMs: number): void {
    const state = this.stateOf(provider);
    if (state === null) return;
    if (reported !== null) state.report(reported);
    state.reportDueAtMs = this.runtime.now() + dueInMs;
  }

  /** How far back a provider has what calls read, as far as is known now. */
  history(provider: Provider): KnownHistory {
    return historyNow(this.stateOf(provider), this.set, this.runtime.now());
  }

  /** Whether a provider may be asked now. */
  isLiving(provider: Provider): boolean {
    return this.stateOf(provider)?.isUsable(this.runtime.now()) === true;
  }

  /** The consensus height; null = unknown. */
  head(nowMs = this.runtime.now()): number | null {
    if (nowMs < this.#consensus.fromMs || nowMs >= this.#consensus.untilMs)
      this.#consensus = consensusOf(this.states, this.set.chain, nowMs);
    return this.#consensus.height;
  }

  /** The block time (ms) that the heights of the providers tell; null = unknown, or declared. */
  learnedBlockTimeMs(): number | null {
    return middleOf(this.states.flatMap(({ pace }) => pace?.blockTimeMs() ?? []));
  }

  /** Whether the provider pushes its heads, so that they need not be polled. */
  pushesHeads(provider: Provider): boolean {
    return this.runtime.now() - (this.stateOf(provider)?.pushedAtMs ?? NEVER_MS) < HEAD_FRESH_MS;
  }

  health(provider: Provider, transport: Transport): HealthReport {
    const nowMs = this.runtime.now();
    const state = this.stateOf(provider);
    return reportOf(state, transport, this.#lagOf(state, nowMs), nowMs);
  }

  /**
   * The state of a provider in short: how far it is behind (blocks; null = unknown), the worst
   * circuit of its transports, and what else shows how it is.
   */
  summary(provider: Provider) {
    const nowMs = this.runtime.now();
    const state = this.stateOf(provider);
    const lagBlocks = this.#lagOf(state, nowMs);
    return { provider, lagBlocks, ...summaryOf(state, nowMs) };
  }

  #lagOf(state: ProviderState | null, nowMs: number): number | null {
    return lagBlocks(state?.sample ?? null, this.head(nowMs), this.set.chain, nowMs);
  }

  /** The use of the provider's declared limits; null = it has no limits. */
  budget(provider: Provider): BudgetReport | null {
    return this.stateOf(provider)?.budget?.report() ?? null;
  }

  /** Reports of the methods with fresh latency readings. */
  methods(provider: Provider, transport: Transport): readonly MethodReport[] {
    const health = this.healthOf({ provider, transport });
    return health === null ? [] : methodReadings(health.latency, this.runtime.now());
  }

  /**
   * Whether some provider is usable: its circuit is not open, and neither its chain, its
   * credentials, its region nor an operator excludes it. One that is there for a few methods counts
   * only beside others like it.
   */
  isUsable(): boolean {
    const nowMs = this.runtime.now();
    return this.#general.some((state) => state.isUsable(nowMs));
  }

  /** Why this node asks the provider only if a call pins it; null = the provider needs no pin. */
  refusalOf(provider: Provider): ExclusionReason | null {
    return this.stateOf(provider)?.region.reason ?? null;
  }

  /**
   * Takes a provider out of use, or (null) puts it back. A cordoned provider is only probed, and
   * its blocks do not count.
   */
  setCordon(provider: Provider, cordon: ProviderCordon | null): void {
    const state = this.stateOf(provider);
    if (state === null) return;
    const before = state.cordon;
    state.cordon = cordon;
    if ((before === null) === (cordon === null)) return;
    const event = cordon === null ? "cordon_lifted" : "cordoned";
    for (const transport of transportsOf(state.provider))
      this.#notify({ provider: state.provider, transport, event, cause: "operator" });
    if (cordon === null) return;
    this.#forget(state);
    this.#notifyOutage();
  }

  /** The operator's cordon of a provider; null = none. */
  cordonOf(provider: Provider): ProviderCordon | null {
    return this.stateOf(provider)?.cordon ?? null;
  }

  /**
   * Ends the waits of a provider: an open circuit becomes half-open, and limits and cordons that
   * refusals began no longer hold.
   */
  endWaits(provider: Provider): void {
    const state = this.stateOf(provider);
    for (const health of [state?.http, state?.ws]) if (health) endWaits(health, this.runtime.now());
  }

  /** The live state of a provider, to be read only; null = the provider is not in this set. */
  stateOf(provider: Provider): ProviderState | null {
    const state = this.states[provider.index];
    return state?.provider.id === provider.id ? state : this.inherit(provider);
  }

  /**
   * The live health of a provider on one transport; null = unknown provider or no such transport.
   */
  healthOf({ provider, transport }: Channel): Health | null {
    return this.stateOf(provider)?.[transport] ?? null;
  }

  protected channelOf({ provider, transport }: Channel): WatchedChannel | null {
    return this.stateOf(provider)?.watched[transport] ?? null;
  }

  protected ending(block: BlockRef, nowMs = this.runtime.now()): AttemptEnding {
    return { block, head: this.#consensus.height, nowMs, random: this.runtime.random };
  }

  /** Whether another provider may be asked, on a transport for which `isSo` holds. */
  protected hasOther({ id }: Provider, nowMs: number, isSo = isUsable): boolean {
    return this.#general.some((state) => state.provider.id !== id && state.isUsable(nowMs, isSo));
  }

  /**
   * Notifies listeners of what changed in a channel since `before`. If its circuit has opened,
   * moves its attempts in flight to other providers.
   */
  protected follow(channel: WatchedChannel, before: Circuit, cause: string): void {
    const { health } = channel;
    if (health.breaker === before.breaker && health.cordon === before.cordon) return;
    this.#report(channel, before, cause);
    if (isUsable(health, this.runtime.now())) return;
    this.#notifyOutage();
    if (health.breaker.kind !== "open" || before.breaker.kind === "open") return;
    for (const out of channel.out.all()) out.moveAway(cause === SILENCE ? SILENCE : "opened");
  }

  #report({ provider, transport, health }: WatchedChannel, before: Circuit, cause: string): void {
    const { breaker, cordon } = health;
    const [was, is] = [before.breaker.kind, breaker.kind];
    if (is !== was && is !== "half_open")
      this.#notify({
        provider,
        transport,
        event: is === "open" ? "circuit_opened" : "circuit_closed",
        cause,
      });
    if (cordon !== null && before.cordon === null)
      this.#notify({ provider, transport, event: "cordoned", cause: cordon });
  }

  #notify(change: HealthChange): void {
    for (const listener of [...this.listeners]) listener.changed?.(change);
  }

  #notifyAnswered(): void {
    for (const listener of [...this.listeners]) listener.answered?.();
  }

  #notifyOutage(): void {
    if (this.isUsable()) return;
    for (const listener of [...this.listeners]) listener.outage?.();
  }

  /** Raises the highest known block of a provider, unless no provider could have the block yet. */
  #raiseHighest(state: ProviderState, number: number): void {
    if (number <= state.highest) return;
    const tip = this.blocks.servedTip();
    if (tip !== null && number > tip + plausibleLead(this.set.chain)) return;
    state.highest = number;
    this.blocks.highestChanged();
  }

  /** Sets or clears a height sample; the consensus must then be computed again. */
  #sample(state: ProviderState, sample: HeadSample | null): void {
    const before = state.sample;
    state.sample = sample;
    if (sample === null) state.highest = -1;
    else {
      if (before === null || sample.height > before.height) state.roseAtMs = sample.atMs;
      state.pace?.see(sample.height, sample.atMs);
      state.missing = null;
      this.#raiseHighest(state, sample.height);
      for (const health of [state.http, state.ws])
        if (health !== null) health.behindAtMs = NEVER_MS;
    }
    this.#consensus = { ...this.#consensus, untilMs: NEVER_MS };
    this.blocks.heightChanged();
  }
}

/** The cause of an opened circuit whose provider did not answer. */
export const SILENCE = "silence";

/** The part of a channel's health whose changes listeners are notified of. */
export type Circuit = Pick<Health, "breaker" | "cordon">;

/** The circuit and cordon of a channel now, to be compared later. */
export function conditionOf({ health: { breaker, cordon } }: WatchedChannel): Circuit {
  return { breaker, cordon };
}
