// Probes every provider at intervals for its chain id and height, and listens to its heads. Its
// requests are never counted among callers' requests.

import type { Channel } from "../../core/provider/attempt.ts";
import { NEVER_MS } from "../../core/provider/health.ts";
import { isAskedFor } from "../../core/provider/method-scope.ts";
import { type Provider, transportsOf } from "../../core/provider/profile.ts";
import { DECISIONS } from "../../core/provider-errors/category.ts";
import { isAnswer } from "../../core/rpc/failure.ts";
import { readQuantity, rpcCall } from "../rpc-call.ts";
import {
  BackgroundQueries,
  callNumber,
  type FailedProbeCall,
  type HealthParts,
} from "./background-queries.ts";
import { HeadListener } from "./head-listener.ts";
import type { Probe } from "./provider-state.ts";
import type { Tracker } from "./tracker.ts";

const TIMEOUT_MS = 5_000;
/** While no provider of a set is usable: interval of probes, and the time to answer. */
const OUTAGE_MS = 1_000;
/** How long another worker's outage counts; it is repeated every second while it lasts. */
const OUTAGE_ELSEWHERE_MS = 3_000;
const FIRST_RETRY_MS = 2_000;
const LONGEST_RETRY_MS = 30_000;
const REFUSED_RETRY_MS = 120_000;
/** A provider that pushes its heads is probed only in one of this many rounds. */
const PUSHED_ROUNDS = 5;
/** How long a quiet provider has to answer a check. */
const CHECK_MS = 1_000;
/** Errors that refuse the service itself: repeating soon would make it worse. */
const REFUSALS: readonly string[] = ["auth", "quota", "quota_exhausted"];
/** How often a provider is probed because calls are refused. */
const SUSPECT_MS = 5_000;

/** Probes the providers of trackers until closed. */
export class Prober {
  readonly #parts: HealthParts;
  #watched: ReadonlyMap<Tracker, SetProbes> = new Map();

  constructor(parts: HealthParts) {
    this.#parts = parts;
  }

  /**
   * Probes the providers of these trackers, and no others, from now on; known trackers are not
   * disturbed. Another worker probes the trackers that `isOurs` denies; their quiet providers are
   * still checked, since it is our own connection that is quiet.
   */
  watch(trackers: readonly Tracker[], isOurs = (_: Tracker) => true): void {
    const before = this.#watched;
    this.#watched = new Map(
      trackers.map((tracker) => [tracker, this.#probesOf(tracker, isOurs(tracker))]),
    );
    // Old listeners leave after new ones have joined, so that no socket closes in between.
    for (const [tracker, probes] of before) if (!this.#watched.has(tracker)) probes.stop();
  }

  /** Probes as in an outage for a while, because another worker finds no provider usable. */
  hurry(tracker: Tracker): void {
    this.#watched.get(tracker)?.hurry();
  }

  close(): void {
    this.watch([]);
  }

  #probesOf(tracker: Tracker, isOurs: boolean): SetProbes {
    const known = this.#watched.get(tracker);
    if (known?.isOurs === isOurs) return known;
    known?.stop();
    return new SetProbes(this.#parts, tracker, isOurs, known !== undefined);
  }
}

/** Probes every provider of a tracker, at staggered times, and checks those that are quiet. */
class SetProbes {
  /** False = another worker probes them. */
  readonly isOurs: boolean;
  readonly #parts: HealthParts;
  readonly #tracker: Tracker;
  readonly #loops: readonly ProbeLoop[];
  readonly #heads: readonly HeadListener[];
  readonly #stopListening: () => void;
  /** When each provider was last probed because of a call, by id. */
  readonly #suspectedAtMs = new Map<string, number>();
  /** By transport and provider. */
  readonly #cancelChecks = new Map<string, () => void>();

  /**
   * `isTakenOver` = another worker has probed them until now, and each is probed when that is due.
   */
  constructor(parts: HealthParts, tracker: Tracker, isOurs: boolean, isTakenOver: boolean) {
    const { providers, probeIntervalMs } = tracker.set;
    const targets = isOurs ? providers.flatMap(targetsOf) : [];
    const spreadMs = Math.min(2_000, probeIntervalMs) / targets.length;
    const restMs = (target: Channel): number =>
      isTakenOver
        ? (tracker.healthOf(target)?.probedAtMs ?? NEVER_MS) + probeIntervalMs - parts.runtime.now()
        : 0;
    const asking = new Set<string>();
    this.isOurs = isOurs;
    this.#parts = parts;
    this.#tracker = tracker;
    this.#loops = targets.map((target, n) => {
      const firstMs = tracker.isUsable() ? Math.max(n * spreadMs, restMs(target)) : 0;
      const queries = new BackgroundQueries(parts, tracker, target, asking);
      return new ProbeLoop(parts, tracker, queries, firstMs);
    });
    const { sockets } = parts;
    const pushing = isOurs ? providers.filter(mayPush) : [];
    this.#heads =
      sockets === undefined
        ? []
        : pushing.map((provider) => new HeadListener(parts, sockets, tracker, provider));
    this.#stopListening = tracker.attend({
      outage: () => {
        for (const loop of this.#loops) loop.hurry();
      },
      quiet: (provider, transport) => this.#check({ provider, transport }),
      suspected: (channel) => this.#verify(channel),
    });
  }

  hurry(): void {
    for (const loop of this.#loops) loop.hurryFor(OUTAGE_ELSEWHERE_MS);
  }

  stop(): void {
    this.#stopListening();
    for (const cancel of this.#cancelChecks.values()) cancel();
    for (const loop of this.#loops) loop.stop();
    for (const listener of this.#heads) listener.close();
  }

  /** A call was refused: the provider is probed, which may exclude it. */
  #verify({ provider, transport }: Channel): void {
    const nowMs = this.#parts.runtime.now();
    const sinceMs = nowMs - (this.#suspectedAtMs.get(provider.id) ?? Number.NEGATIVE_INFINITY);
    if (sinceMs < SUSPECT_MS) return;
    this.#suspectedAtMs.set(provider.id, nowMs);
    this.#loops
      .find(({ target }) => target.provider.id === provider.id && target.transport === transport)
      ?.verify();
  }

  /** Checks whether a quiet provider is reachable: a slow one answers, a hung one does not. */
  #check({ provider, transport }: Channel): void {
    const { runtime, timerWheel, upstreams } = this.#parts;
    const upstream = upstreams[transport];
    if (upstream === undefined) return;
    const sinceMs = runtime.now();
    const call = { upstream, provider, ...CHAIN_ID, timeoutMs: CHECK_MS, isProbe: true } as const;
    const cancel = rpcCall(timerWheel, call, {
      result: () => this.#tracker.heard(provider, transport),
      failed: ({ kind, crowded }) => {
        if (isAnswer(kind)) this.#tracker.heard(provider, transport);
        // A provider whose connection is not established in that time is as silent as one that does
        // not answer.
        else if (crowded !== true && runtime.now() - sinceMs >= CHECK_MS)
          this.#tracker.recordUnheard(provider, transport, sinceMs);
      },
    });
    this.#cancelChecks.set(`${transport} ${provider.id}`, cancel);
  }
}

/** Whether a provider may be asked for its heads over a socket. */
function mayPush(provider: Provider): boolean {
  return provider.wsUrl !== null && isAskedFor(provider, "eth_subscribe", true);
}

function targetsOf(provider: Provider): readonly Channel[] {
  return transportsOf(provider).map((transport) => ({ provider, transport }));
}

/**
 * Probes one provider on one transport at its interval; less often while it fails, more often while
 * no provider of its set is usable.
 */
class ProbeLoop {
  readonly #parts: HealthParts;
  readonly #tracker: Tracker;
  /** What is asked after good probes. */
  readonly #queries: BackgroundQueries;
  #failures = 0;
  /** Number of the latest round. */
  #latestRound = 0;
  #passedOver = 0;
  /** The provider refuses the service and is probed rarely. */
  #refused = false;
  #isOut = false;
  /** A call was refused: where the probe says the same, the provider is excluded. */
  #isSuspected = false;
  #stopped = false;
  /** Until when another worker finds no provider usable. */
  #urgentUntilMs = Number.NEGATIVE_INFINITY;
  #cancelWait: () => void;
  #cancelProbe = (): void => {};

  constructor(parts: HealthParts, tracker: Tracker, queries: BackgroundQueries, firstMs: number) {
    this.#parts = parts;
    this.#tracker = tracker;
    this.#queries = queries;
    this.#cancelWait = parts.runtime.after(firstMs, () => this.#round());
  }

  get target(): Channel {
    return this.#queries.target;
  }

  /** Probes at once, unless the provider refuses the service. */
  hurry(): void {
    if (this.#refused || this.#stopped) return;
    this.#cancelWait();
    this.#cancelProbe();
    this.#round();
  }

  /** Probes at once, because a call was refused; a probe that is out answers for it. */
  verify(): void {
    if (this.#stopped) return;
    this.#isSuspected = true;
    if (this.#isOut) return;
    this.#cancelWait();
    this.#round();
  }

  /** Probes as in an outage for a while. */
  hurryFor(ms: number): void {
    const wasUrgent = this.#isUrgent();
    this.#urgentUntilMs = this.#parts.runtime.now() + ms;
    if (!wasUrgent) this.hurry();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelWait();
    this.#cancelProbe();
    this.#queries.stop();
  }

  #round(): void {
    const isUrgent = this.#isUrgent();
    if (
      !isUrgent &&
      !this.#isSuspected &&
      this.#tracker.pushesHeads(this.target.provider) &&
      ++this.#passedOver < PUSHED_ROUNDS
    )
      return this.#wait(this.#intervalMs());
    this.#passedOver = 0;
    const round = ++this.#latestRound;
    const startedAtMs = this.#parts.runtime.now();
    this.#isOut = true;
    this.#cancelProbe = probeOnce(
      this.#parts,
      { ...this.target, declared: this.#tracker.set.chain.chainId },
      isUrgent ? OUTAGE_MS : TIMEOUT_MS,
      (found, latencyMs) => {
        if (this.#stopped) return;
        const result = this.#isSuspected ? verified(found) : found;
        this.#isSuspected = false;
        this.#isOut = false;
        this.#failures = result.kind === "ok" ? 0 : this.#failures + 1;
        this.#refused = result.kind === "failed" && REFUSALS.includes(result.category);
        const { provider, transport } = this.target;
        this.#tracker.recordProbe({ provider, transport, latencyMs, result });
        const fact = { kind: "probe", transport, latencyMs, result, ageMs: 0 } as const;
        this.#parts.tell?.(this.#tracker, provider, fact);
        // The result of this probe may have been an outage, which has already started the next
        // round.
        if (round === this.#latestRound) this.#wait(this.#pauseMs(result, startedAtMs));
        if (result.kind === "ok" && !this.#stopped) this.#queries.run();
      },
    );
  }

  #wait(ms: number): void {
    this.#cancelWait = this.#parts.runtime.after(ms, () => this.#round());
  }

  /** Whether no provider is usable, here or at another worker. */
  #isUrgent(): boolean {
    return !this.#tracker.isUsable() || this.#parts.runtime.now() < this.#urgentUntilMs;
  }

  #intervalMs(): number {
    return this.#tracker.set.probeIntervalMs * (0.9 + 0.2 * this.#parts.runtime.random());
  }

  #pauseMs(result: Probe["result"], startedAtMs: number): number {
    if (this.#refused) return REFUSED_RETRY_MS;
    if (this.#isUrgent()) return Math.max(0, OUTAGE_MS - (this.#parts.runtime.now() - startedAtMs));
    if (result.kind === "ok") return this.#intervalMs();
    return Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(this.#failures, 8));
  }
}

/**
 * Queries chain id and height within `timeoutMs`; `done` gets the result and the latency of the
 * last answer. A provider for a few methods is asked for no height unless that is one of them, and
 * has the `declared` chain id where it does not tell one. Returns the function that cancels.
 */
function probeOnce(
  parts: HealthParts,
  target: Channel & { readonly declared: number },
  timeoutMs: number,
  done: (result: Probe["result"], latencyMs: number) => void,
): () => void {
  const { runtime } = parts;
  const { scope = null } = target.provider;
  const beganAtMs = runtime.now();
  const chainIdCall = { ...CHAIN_ID, timeoutMs, read: readQuantity };
  let cancel = callNumber(parts, target, chainIdCall, (answer) => {
    const isRefused = typeof answer !== "number" && answer.category === "method_unsupported";
    const chainId = isRefused && scope !== null ? target.declared : answer;
    if (typeof chainId !== "number") return done(failedProbe(chainId), 0);
    const startedAtMs = runtime.now();
    if (!isAskedFor(target.provider, "eth_blockNumber", true))
      return done({ kind: "ok", chainId, height: null }, startedAtMs - beganAtMs);
    const call = {
      method: "eth_blockNumber",
      params: "[]",
      timeoutMs: Math.max(0, timeoutMs - (startedAtMs - beganAtMs)),
      read: readQuantity,
    };
    cancel = callNumber(parts, target, call, (height) => {
      done(
        typeof height === "number" ? { kind: "ok", chainId, height } : failedProbe(height),
        runtime.now() - startedAtMs,
      );
    });
  });
  return () => cancel();
}

/** The result of a probe that was begun because a call was refused. */
function verified(result: Probe["result"]): Probe["result"] {
  if (result.kind === "ok") return result;
  const effect = DECISIONS.get(result.category)?.[2];
  if (result.category === "forbidden") return { ...result, cordon: "auth" };
  return typeof effect === "object" && effect.kind === "cordon"
    ? { ...result, cordon: effect.reason }
    : result;
}

function failedProbe({ category }: FailedProbeCall): Probe["result"] {
  return { kind: "failed", category };
}

const CHAIN_ID = { method: "eth_chainId", params: "[]" } as const;
