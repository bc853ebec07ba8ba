// The routing state of one provider set: the only mutable one there is. Plans calls, hears attempts and probes, reports health. Sends nothing itself.
import type { Attempt, Plan, Strategy, Verdict } from "../core/attempt.ts";
import { admitted, CLOSED, openRemainingMs, settled } from "../core/breaker.ts";
import { type BlockRef, type Call, NO_BLOCK } from "../core/call.ts";
import { capability, type SetView, unreachable } from "../core/capability.ts";
import { type Consensus, consensusOf, HEAD_FRESH_MS, type HeadSample, isHeight, lacksBlock, lagBlocks } from "../core/head.ts";
import { createHealth, type Health, isBehind, NEVER_MS, recordAttempt, recordGoodProbe, recordVerdict } from "../core/health.ts";
import { type MethodReport, methodReadings, reading, STALE_MS } from "../core/latency.ts";
import { type Method, methodOf, UNKNOWN_METHOD } from "../core/method.ts";
import { betterOf, type Considered, planOf } from "../core/plan.ts";
import type { Provider, ProviderSet, Transport } from "../core/profile.ts";
import { type Draw, minCallsOf, needsReadings, type SelectionSettings } from "../core/strategy.ts";
import { limitedForMs } from "../core/throttle.ts";
import {
  confirmUnserved,
  createUnserved,
  isUnserved,
  learnUnserved,
  noteServed,
  type ServedNames,
  type UnservedMethods,
  unlearnUnserved,
  unservedNames,
} from "../core/unserved-methods.ts";
import type { World } from "../world.ts";
import { type HealthReport, reportOf } from "./report.ts";

/** What one probe of a provider found. */
export interface Probe {
  readonly provider: Provider;
  readonly transport: Transport;
  readonly latencyMs: number;
  readonly result: { readonly kind: "ok"; readonly chainId: number; readonly height: number } | { readonly kind: "failed"; readonly category: string };
}

/** Hears what becomes of the providers of a set. */
export interface TrackerListener {
  /** No provider may be asked any more. */
  outage(): void;
}

/** How a call wants its providers chosen; a pin leaves no choice. */
export interface Selection {
  readonly strategy: Strategy;
  /** Null = whichever of a provider's is better; HTTP where they are alike. */
  readonly transport: Transport | null;
  readonly pin: Provider | null;
}

/** What a successor takes over of one provider when a profile is reloaded. Nothing for readers: it is live state. */
export interface Station {
  readonly provider: Provider;
  readonly http: Health | null;
  readonly ws: Health | null;
  /** Unlisted methods that it does not serve, on whichever transport. */
  readonly unserved: UnservedMethods;
  sample: HeadSample | null;
  /** Every new head would be heard. */
  listening: boolean;
  /** When it last pushed a head. */
  pushedAtMs: number;
}

/** The routing state of one provider set. */
export interface Tracker {
  readonly set: ProviderSet;
  /** Who may be asked for a call, in order. A pin yields at most that provider: its limits and the strategy do not matter, its circuit does. */
  plan(call: Call, selection: Selection): Plan;
  /** Asks for leave to send; false = the circuit is open or its trial is taken. Leave must be given back by `record`. */
  admit(provider: Provider, transport: Transport): boolean;
  /**
   * Takes a finished attempt into account. `block` is what the call read, so that refused ranges and tags can be learned; `name` is what the caller
   * called the method, so that a provider that does not serve an unlisted one is known for that one alone.
   */
  record(method: Method, attempt: Attempt, block?: BlockRef, name?: string): void;
  /** Takes into account what became of a provider's socket itself, without a call: moves its circuit and its limits, counts nothing. */
  recordSocket(provider: Provider, verdict: Verdict): void;
  /**
   * Takes a probe into account: height, probe latency, wrong chain, end of a cordon; a good one makes an open circuit half-open. Never moves a success
   * rate.
   */
  recordProbe(probe: Probe): void;
  /** From now on every head of the provider is heard, or no longer. */
  listen(provider: Provider, listening: boolean): void;
  /** Takes a pushed head into account. */
  recordHead(provider: Provider, height: number): void;
  /** The height the providers agree on; null = unknown. */
  head(): number | null;
  /** Whether the provider pushes its heads, so that it need not be asked for them. */
  pushesHeads(provider: Provider): boolean;
  health(provider: Provider, transport: Transport): HealthReport;
  /** A report per method with fresh observations. */
  methods(provider: Provider, transport: Transport): readonly MethodReport[];
  /** Milliseconds until the soonest half-open when every circuit of a transport (null = of all) is open, else null. */
  retryAfterMs(transport: Transport | null): number | null;
  /** Whether some provider may be asked: neither its circuit is open, nor is it excluded for its chain or its credentials. */
  isUsable(): boolean;
  /** Tells a listener until told otherwise. */
  attend(listener: TrackerListener): () => void;
  /** The live state of the provider with the same id, for a successor. */
  inherit(provider: Provider): Station | null;
}

/** What routing a call needs of a tracker. */
export type RoutingState = Pick<Tracker, "set" | "plan" | "admit" | "record" | "retryAfterMs">;

/** The routing state of a set; providers whose id and URL stay the same keep their health from `previous`. */
export function createTracker(set: ProviderSet, world: World, settings: SelectionSettings, previous?: Tracker): Tracker {
  return new SetTracker(set, world, settings, previous);
}

class SetTracker implements Tracker {
  readonly set: ProviderSet;
  readonly #world: World;
  readonly #stations: readonly Station[];
  /** Unlisted methods that some provider served. */
  readonly #served: ServedNames = new Map();
  readonly #safeDraw: Draw;
  readonly #unsafeDraw: Draw;
  readonly #listeners = new Set<TrackerListener>();
  #consensus: Consensus = { height: null, fromMs: Number.POSITIVE_INFINITY, untilMs: NEVER_MS };

  constructor(set: ProviderSet, world: World, settings: SelectionSettings, previous: Tracker | undefined) {
    this.set = set;
    this.#world = world;
    this.#stations = set.providers.map((provider) => stationOf(provider, previous?.inherit(provider) ?? null));
    this.#safeDraw = { settings, random: world.random, replaySafe: true };
    this.#unsafeDraw = { settings, random: world.random, replaySafe: false };
  }

  plan(call: Call, { strategy, transport, pin }: Selection): Plan {
    const nowMs = this.#world.now();
    const { maxLagBlocks, archivalThreshold } = this.set;
    const view: SetView = { nowMs, head: this.#head(nowMs), archivalThreshold, maxLagBlocks };
    const question: Question = { call, view, strategy, pinned: pin !== null, transport };
    const draw = call.method.replaySafe ? this.#safeDraw : this.#unsafeDraw;
    if (pin === null) return planOf(this.#considerAll(question), call, strategy, draw);
    const station = this.#stationOf(pin);
    return planOf(station === null ? [] : [this.#consider(station, question)], call, strategy, draw);
  }

  admit(provider: Provider, transport: Transport): boolean {
    const health = this.#healthOf(provider, transport);
    if (health === null) return false;
    if (health.breaker.kind === "closed") return true;
    const nowMs = this.#world.now();
    const breaker = admitted(settled(health.breaker, nowMs), nowMs);
    if (breaker === null) return false;
    health.breaker = breaker;
    return true;
  }

  record(method: Method, attempt: Attempt, block: BlockRef = NO_BLOCK, name: string = method.name): void {
    if (method === UNKNOWN_METHOD) this.#recordName(name, attempt);
    const health = this.#healthOf(attempt.provider, attempt.transport);
    if (health === null) return;
    const { breaker, cordon } = health;
    recordAttempt(health, method, attempt, { block, head: this.#consensus.height, nowMs: this.#world.now(), random: this.#world.random });
    if (health.breaker !== breaker || health.cordon !== cordon) this.#changed(health);
  }

  /** What an attempt says of a method that is not in the table. */
  #recordName(name: string, { provider, verdict }: Attempt): void {
    const station = this.#stationOf(provider);
    const nowMs = this.#world.now();
    if (station === null) return;
    if (verdict === null) {
      unlearnUnserved(station.unserved, name);
      if (noteServed(this.#served, name, nowMs)) for (const other of this.#stations) confirmUnserved(other.unserved, name);
    } else if (verdict.effect.kind === "learn" && verdict.effect.what === "method") learnUnserved(station.unserved, this.#served, name, nowMs);
  }

  recordSocket(provider: Provider, verdict: Verdict): void {
    const health = this.#healthOf(provider, "ws");
    if (health === null) return;
    const ending = { block: NO_BLOCK, head: this.#consensus.height, nowMs: this.#world.now(), random: this.#world.random };
    const { breaker, cordon } = health;
    recordVerdict(health, methodOf("eth_subscribe"), { verdict, latencyMs: 0 }, ending);
    if (health.breaker !== breaker || health.cordon !== cordon) this.#changed(health);
  }

  recordProbe({ provider, transport, latencyMs, result }: Probe): void {
    const station = this.#stationOf(provider);
    const health = station?.[transport] ?? null;
    if (station === null || health === null) return;
    health.probedAtMs = this.#world.now();
    if (result.kind === "failed") return;
    health.probeMs = latencyMs;
    const { wrongChain } = health;
    health.wrongChain = result.chainId !== this.set.chain.chainId;
    if (health.wrongChain) {
      this.#sample(station, null);
      if (!wrongChain) this.#changed(health);
      return;
    }
    health.cordon = null;
    recordGoodProbe(health, latencyMs, health.probedAtMs);
    // A transport that nobody probes is vouched for by its neighbour: otherwise its cordon would never end.
    const other = transport === "http" ? station.ws : station.http;
    if (other !== null && other.probedAtMs === NEVER_MS) other.cordon = null;
    if (isHeight(result.height)) this.#sample(station, { height: result.height, atMs: health.probedAtMs, polled: true });
  }

  listen(provider: Provider, listening: boolean): void {
    const station = this.#stationOf(provider);
    if (station !== null) station.listening = listening;
  }

  recordHead(provider: Provider, height: number): void {
    const station = this.#stationOf(provider);
    if (station === null || station.ws?.wrongChain === true || !isHeight(height)) return;
    station.pushedAtMs = this.#world.now();
    this.#sample(station, { height, atMs: station.pushedAtMs, polled: false });
  }

  head(): number | null {
    return this.#head(this.#world.now());
  }

  pushesHeads(provider: Provider): boolean {
    return this.#world.now() - (this.#stationOf(provider)?.pushedAtMs ?? NEVER_MS) < HEAD_FRESH_MS;
  }

  health(provider: Provider, transport: Transport): HealthReport {
    const nowMs = this.#world.now();
    const station = this.#stationOf(provider);
    const sample = station?.sample ?? null;
    const position = { height: sample?.height ?? null, lagBlocks: lagBlocks(sample, this.#head(nowMs), this.set.chain, nowMs) };
    const report = reportOf(station?.[transport] ?? createHealth(), position, nowMs);
    const names = station === null ? [] : unservedNames(station.unserved, nowMs);
    return names.length === 0 ? report : { ...report, learned: { ...report.learned, methods: [...report.learned.methods, ...names] } };
  }

  methods(provider: Provider, transport: Transport): readonly MethodReport[] {
    const health = this.#healthOf(provider, transport);
    return health === null ? [] : methodReadings(health.latency, this.#world.now());
  }

  retryAfterMs(transport: Transport | null): number | null {
    const nowMs = this.#world.now();
    let soonestMs: number | null = null;
    const channels = this.#stations.flatMap((it) => (transport === null ? [it.http, it.ws] : [it[transport]]));
    for (const health of channels) {
      if (health === null) continue;
      const remainingMs = openRemainingMs(health.breaker, nowMs);
      if (remainingMs === 0) return null;
      soonestMs = Math.min(soonestMs ?? remainingMs, remainingMs);
    }
    return soonestMs;
  }

  isUsable(): boolean {
    const nowMs = this.#world.now();
    return this.#stations.some(({ http, ws }) => isUsable(http, nowMs) || isUsable(ws, nowMs));
  }

  attend(listener: TrackerListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  inherit(provider: Provider): Station | null {
    return this.#stations.find((it) => it.provider.id === provider.id) ?? null;
  }

  #considerAll(question: Question): readonly Considered[] {
    return this.#stations.map((station) => this.#consider(station, question));
  }

  /** A provider on the one transport asked for, or on the better of its two. */
  #consider(station: Station, question: Question): Considered {
    const { transport, call } = question;
    if (transport !== null) return this.#considerOn(station, transport, question);
    if (station.ws === null) return this.#considerOn(station, "http", question);
    if (station.http === null) return this.#considerOn(station, "ws", question);
    const first = this.#considerOn(station, "http", question);
    // Nothing can be better than a provider that is well.
    if (first.reason === null && first.breaker.kind === "closed" && !first.limited) return first;
    return betterOf(first, this.#considerOn(station, "ws", question), call);
  }

  #considerOn(station: Station, transport: Transport, { call, view, strategy, pinned }: Question): Considered {
    const { provider } = station;
    const health = station[transport];
    if (health === null) return { ...ABSENT, provider, transport };
    const { nowMs } = view;
    const lag = pinned ? null : lagBlocks(station.sample, view.head, this.set.chain, nowMs);
    const { wrongChain, cordon, facts } = health;
    const lacking = station.listening && call.block.kind === "number" && lacksBlock(station.sample, call.block.number, view.head, nowMs);
    const unserved = call.method === UNKNOWN_METHOD && isUnserved(station.unserved, call.methodName, nowMs);
    const behind = lacking || isBehind(health, nowMs);
    const condition = { transport, wrongChain, cordoned: cordon !== null, behind, lagBlocks: lag, facts, unserved };
    const reason = pinned ? unreachable(provider, condition) : capability(provider, call, view, condition);
    const known = !pinned && needsReadings(strategy) ? reading(health.latency, call.method, minCallsOf(strategy, this.#safeDraw.settings), nowMs) : null;
    const probeMs = nowMs - health.probedAtMs < STALE_MS ? health.probeMs : null;
    return { provider, transport, reason, reading: known, probeMs, breaker: settled(health.breaker, nowMs), limited: limitedForMs(health.throttle, nowMs) > 0 };
  }

  #stationOf(provider: Provider): Station | null {
    const station = this.#stations[provider.index];
    return station !== undefined && station.provider.id === provider.id ? station : this.inherit(provider);
  }

  #healthOf(provider: Provider, transport: Transport): Health | null {
    return this.#stationOf(provider)?.[transport] ?? null;
  }

  #head(nowMs: number): number | null {
    if (nowMs < this.#consensus.fromMs || nowMs >= this.#consensus.untilMs) {
      this.#consensus = consensusOf(
        this.#stations.map((it) => it.sample),
        this.set.chain,
        nowMs,
      );
    }
    return this.#consensus.height;
  }

  /** Whether a provider may be asked may have changed. */
  #changed(health: Health): void {
    if (isUsable(health, this.#world.now()) || this.isUsable()) return;
    for (const listener of [...this.#listeners]) listener.outage();
  }

  /** A new sample, or that the old one was worth nothing; either way the consensus is to be found anew. */
  #sample(station: Station, sample: HeadSample | null): void {
    station.sample = sample;
    if (sample !== null) for (const health of [station.http, station.ws]) if (health !== null) health.behindAtMs = NEVER_MS;
    this.#consensus = { ...this.#consensus, untilMs: NEVER_MS };
  }
}

function stationOf(provider: Provider, before: Station | null): Station {
  const http = before !== null && before.provider.url === provider.url ? before.http : null;
  const ws = before !== null && before.provider.wsUrl === provider.wsUrl ? before.ws : null;
  return {
    provider,
    http: provider.url === null ? null : (http ?? createHealth()),
    ws: provider.wsUrl === null ? null : (ws ?? createHealth()),
    unserved: http === null && ws === null ? createUnserved() : (before?.unserved ?? createUnserved()),
    sample: http === null && ws === null ? null : (before?.sample ?? null),
    listening: false,
    pushedAtMs: NEVER_MS,
  };
}

function isUsable(health: Health | null, nowMs: number): boolean {
  return health !== null && !health.wrongChain && health.cordon === null && settled(health.breaker, nowMs).kind !== "open";
}

/** What is to be known of each provider for one plan. */
interface Question {
  readonly call: Call;
  readonly view: SetView;
  readonly strategy: Strategy;
  readonly pinned: boolean;
  readonly transport: Transport | null;
}

const ABSENT = { reason: "transport_missing", reading: null, probeMs: null, breaker: CLOSED, limited: false } as const;
