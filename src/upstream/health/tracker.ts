// The routing state of one provider set: the only mutable state of routing. `plans.ts` makes plans
// from it, `provider-records.ts` records events other than attempts, and this file admits attempts
// and records their start and end. Sends nothing.
import {
  type Attempt,
  type Channel,
  type Counting,
  counted,
  type Effect,
} from "../../core/provider/attempt.ts";
import { admitted } from "../../core/provider/breaker.ts";
import {
  type AttemptEnding,
  circuitOf,
  type Health,
  NEVER_MS,
  recordAttempt,
  recordCut,
  recordSilence,
} from "../../core/provider/health.ts";
import type { Provider, ProviderSet, Transport } from "../../core/provider/profile.ts";
import { SERVICE_CALLER } from "../../core/provider/silence.ts";
import {
  confirmUnserved,
  noteServed,
  unlearnUnserved,
} from "../../core/provider/unserved-methods.ts";
import { ExtraCalls, FIRST_RECHECKS } from "../../core/routing/hedge.ts";
import { type BlockRef, type Call, NO_BLOCK } from "../../core/rpc/call.ts";
import { isKnownByName, type Method } from "../../core/rpc/method.ts";
import type { Runtime } from "../../runtime.ts";
import { type Allowance, type Shares, WHOLE_SHARES } from "../shares.ts";
import { type PlanSettings, Plans, patienceMs } from "./plans.ts";
import { conditionOf, type Observation, SILENCE } from "./provider-records.ts";
import { type Outstanding, SilenceWatch, type WatchedChannel } from "./silence-watch.ts";

/** The end of an attempt in flight. */
export interface AttemptEnd {
  readonly attempt: Attempt;
  readonly call: Pick<Call, "method" | "methodName" | "block">;
  /**
   * What ended the attempt. `answered`: an answer of the provider. `failed`: a failure on the way
   * to the provider. `cut`: the service itself.
   */
  readonly by: "answered" | "failed" | "cut";
  readonly nowMs: number;
}

/** Settings of a tracker. */
export interface TrackerSettings extends PlanSettings {
  /** Divides limits of the set between workers; absent = this process is the only worker. */
  readonly shares?: Shares;
  /** Called at the end of every attempt. */
  readonly onAttempt?: AttemptListener | undefined;
}

/** Called at the end of an attempt. */
export type AttemptListener = (attempt: Attempt, method: Method) => void;

/** Most concurrent calls of all workers together while every circuit of a set is open. */
const PANIC_SLOTS = 4;
/** Least interval between reachability checks of a provider. */
const ASK_EVERY_MS = 1_000;

/** The routing state of one provider set. */
export class Tracker extends Plans {
  /** The budget of hedges, in credits. */
  readonly extraCalls: ExtraCalls;
  /** The budget of rechecks after an answer of `null`, in calls. */
  readonly rechecks: ExtraCalls;
  readonly #silenceWatch: SilenceWatch;
  readonly #panicShare: Allowance;
  readonly #onAttempt: AttemptListener | undefined;
  #panicking = 0;
  /** Calls that found no free slot since the demand for slots was last read. */
  #panicsRefused = 0;

  constructor(set: ProviderSet, runtime: Runtime, settings: TrackerSettings, previous?: Tracker) {
    super(set, runtime, settings, previous);
    this.extraCalls = previous?.extraCalls ?? new ExtraCalls();
    this.rechecks = previous?.rechecks ?? new ExtraCalls(FIRST_RECHECKS);
    this.#onAttempt = settings.onAttempt;
    const { shares = WHOLE_SHARES } = settings;
    this.#panicShare = shares.of(`panic ${this.key}`, PANIC_SLOTS, {
      used: () => this.#panicking,
      wanted: () => {
        const wanted = this.#panicking + this.#panicsRefused;
        this.#panicsRefused = 0;
        return wanted;
      },
    });
    const watched = this.states
      .flatMap((state) => [state.watched.http, state.watched.ws])
      .filter((channel) => channel !== null);
    this.#silenceWatch = new SilenceWatch(runtime, watched, {
      silent: (channel, out) => this.#silent(channel, out),
      quiet: (channel) => this.#quiet(channel),
    });
  }

  /**
   * Requests permission to send an attempt. False = the circuit is open, its trial is in flight, or
   * the provider lacks the transport. The end of the attempt releases the permission. Attempts that
   * count for `answers` or `nothing` are always admitted.
   */
  admit(provider: Provider, transport: Transport, counts: Counting = "all"): boolean {
    if (counts === "answers" || counts === "nothing") return true;
    const health = this.stateOf(provider)?.[transport] ?? null;
    if (health === null) return false;
    if (health.breaker.kind === "closed") return true;
    const nowMs = this.runtime.now();
    const breaker = admitted(circuitOf(health, nowMs), nowMs);
    if (breaker === null) return false;
    health.breaker = breaker;
    return true;
  }

  /**
   * Records the start of an attempt. From now on the provider may be found silent. For a trial,
   * returns how long (ms) the caller may be kept waiting; null = the attempt is no trial. An
   * attempt is a trial if its circuit is not closed, or if calls hang at the provider and a trial
   * is due.
   */
  begin(out: Outstanding): number | null {
    const state = this.stateOf(out.provider);
    const channel = state?.watched[out.transport] ?? null;
    out.watched = channel;
    if (state === null || channel === null || out.counts !== "all") return null;
    const { health } = channel;
    state.rate.count(out.startedAtMs);
    const isTrial = health.stall.begin(out, out.startedAtMs) || health.breaker.kind !== "closed";
    this.#silenceWatch.begin(channel, out);
    return isTrial ? patienceMs(health, out.method) : null;
  }

  /** Records the end of an attempt that `begin` recorded. True = the provider was silent. */
  end(out: Outstanding, { attempt, call, by, nowMs }: AttemptEnd): boolean {
    const { watched: channel } = out;
    if (channel === null) return false;
    if (out.counts !== "all") {
      const counting = counted(attempt, out.counts);
      if (counting !== null) this.#record(channel, counting, call, nowMs);
      return false;
    }
    const { health } = channel;
    channel.out.delete(out);
    health.stall.end(out);
    this.#onAttempt?.(attempt, call.method);
    const { verdict, latencyMs } = attempt;
    if (by !== "cut" || verdict === null) {
      if (by === "answered") health.heardAtMs = nowMs;
      this.#record(channel, attempt, call, nowMs);
      return false;
    }
    const before = conditionOf(channel);
    const ending = this.ending(call.block);
    const silent = out.counted || this.#silenceWatch.silenceOf(channel, out) === "silent";
    if (silent && !out.counted) countSilence(health, out, latencyMs, ending);
    const givenUp = out.sent && verdict.step !== "return" && out.batch?.isGivenUp !== true;
    if (givenUp && out.batch !== null) out.batch.isGivenUp = true;
    recordCut(health, call.method, { verdict, latencyMs, silent, givenUp }, ending);
    this.follow(channel, before, SILENCE);
    return silent;
  }

  /**
   * Records a finished attempt that `begin` did not record. `block` is the block that the call
   * read, so that refused ranges and tags are learned; `name` is the method as the caller wrote it,
   * so that refusals of unlisted methods are learned by name.
   */
  record(
    method: Method,
    attempt: Attempt,
    block: BlockRef = NO_BLOCK,
    name: string = method.name,
  ): void {
    const channel = this.channelOf(attempt);
    if (channel === null) return;
    this.#onAttempt?.(attempt, method);
    this.#record(channel, attempt, { method, block, methodName: name }, this.runtime.now());
  }

  #record(
    channel: WatchedChannel,
    attempt: Attempt,
    { method, methodName, block }: AttemptEnd["call"],
    nowMs: number,
  ): void {
    const { provider, verdict } = attempt;
    const unlisted = isKnownByName(method) ? methodName : null;
    const { health } = channel;
    const { breaker, cordon } = health;
    recordAttempt(health, method, attempt, this.ending(block, nowMs));
    if (verdict === null) {
      if (unlisted !== null) this.#noteServed(provider, unlisted);
    } else {
      this.learn(provider, verdict.effect, unlisted);
      if (verdict.effect.kind === "cordon") this.suspect(channel);
      this.#observe(channel, verdict.effect, { methodName, block });
    }
    if (health.breaker !== breaker || health.cordon !== cordon)
      this.follow(channel, { breaker, cordon }, verdict?.category ?? "success");
  }

  /**
   * Records that a provider served an unlisted method. The first time in the set, this confirms the
   * refusals of the method by other providers.
   */
  #noteServed(provider: Provider, name: string): void {
    const state = this.stateOf(provider);
    if (state === null) return;
    unlearnUnserved(state.unserved, name);
    if (noteServed(this.served, name, this.runtime.now()))
      for (const other of this.states) confirmUnserved(other.unserved, name);
  }

  /**
   * Records that the provider sent something before or without the end of an attempt: it is
   * reachable.
   */
  heard(provider: Provider, transport: Transport): void {
    const health = this.healthOf({ provider, transport });
    if (health !== null) health.heardAtMs = this.runtime.now();
  }

  /** Records that a reachability query sent at `sinceMs` was not answered. */
  recordUnheard(provider: Provider, transport: Transport, sinceMs: number): void {
    const channel = this.channelOf({ provider, transport });
    const nowMs = this.runtime.now();
    if (channel === null || channel.health.heardAtMs >= sinceMs) return;
    const { unheardSinceMs } = channel;
    channel.unheardSinceMs = sinceMs;
    // The last usable provider is taken for silent only after a second unanswered query: otherwise
    // calls would be refused that a short pause would only have delayed.
    const isSecond = unheardSinceMs !== NEVER_MS && channel.health.heardAtMs < unheardSinceMs;
    if (!isSecond && !this.hasOther(provider, nowMs)) return;
    const before = conditionOf(channel);
    recordSilence(channel.health, SERVICE_CALLER.key, nowMs - sinceMs, this.ending(NO_BLOCK));
    this.follow(channel, before, SILENCE);
  }

  /** Gives up its part of shared limits: its set is served no more. */
  close(): void {
    this.#panicShare.close();
  }

  /** Takes one of the few slots for calls while every circuit is open. False = all are taken. */
  takePanicSlot(): boolean {
    if (this.#panicking >= this.#panicShare.limit) {
      this.#panicsRefused += 1;
      return false;
    }
    this.#panicking += 1;
    return true;
  }

  freePanicSlot(): void {
    this.#panicking -= 1;
  }

  /** Counts an attempt in flight whose provider has been silent for longer than usual. */
  #silent(channel: WatchedChannel, out: Outstanding): void {
    const before = conditionOf(channel);
    const outMs = this.runtime.now() - out.startedAtMs;
    out.counted = countSilence(channel.health, out, outMs, this.ending(NO_BLOCK));
    this.follow(channel, before, SILENCE);
  }

  #quiet(channel: WatchedChannel): void {
    const nowMs = this.runtime.now();
    if (nowMs - channel.askedAtMs < ASK_EVERY_MS) return;
    channel.askedAtMs = nowMs;
    for (const listener of [...this.listeners])
      listener.quiet?.(channel.provider, channel.transport);
  }

  /** Records that a provider has dropped what a call reads: it found nothing, and another did. */
  foundPruned(channel: Channel, { methodName, block }: Call): void {
    const watched = this.channelOf(channel);
    if (watched === null) return;
    const effect: Effect = { kind: "learn", what: "pruned" };
    this.recordHint(channel.provider, channel.transport, {
      kind: "observed",
      effect,
      methodName,
      block,
    });
    this.#observe(watched, effect, { methodName, block });
  }

  #observe(channel: WatchedChannel, effect: Effect, about: Omit<Observation, "effect">): void {
    if (effect.kind === "ignored" || effect.kind === "failure" || effect.kind === "avoid") return;
    if (effect.kind === "learn" && effect.brief === true) return;
    for (const listener of [...this.listeners]) listener.observed?.(channel, { effect, ...about });
  }
}

/**
 * Counts a silent attempt. True = the attempt has counted, alone or with its batch: a batch without
 * an answer is one silence.
 */
function countSilence(
  health: Health,
  { batch, caller }: Outstanding,
  latencyMs: number,
  ending: AttemptEnding,
): boolean {
  if (batch?.isSilent === true) return true;
  const isCounted = recordSilence(health, caller.key, latencyMs, ending);
  if (isCounted && batch !== null) batch.isSilent = true;
  return isCounted;
}
