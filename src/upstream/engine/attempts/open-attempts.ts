// The attempts of one call: who may be asked next, and what is out at the same time. One attempt is
// waited for, the others go on beside it. Failover decides when.
import { type Abandoned, abandonedAfter } from "../../../core/billing/charging.ts";
import type { Channel, Verdict } from "../../../core/provider/attempt.ts";
import { creditsOf } from "../../../core/provider/budget/budget-limits.ts";
import type { Provider } from "../../../core/provider/profile.ts";
import { hedgeAfterMs, LEAST_ATTEMPT_MS, overdueAfterMs } from "../../../core/routing/hedge.ts";
import { withReserveAsked } from "../../../core/routing/plan.ts";
import type { Call } from "../../../core/rpc/call.ts";
import { plainFailure } from "../../../core/rpc/failure.ts";
import type { Timer } from "../../timer-wheel.ts";
import type { CallContext, Upstreams } from "../call-context.ts";
import { CANCELLED, OVERTAKEN, verdictOf } from "../refusal.ts";
import { type AttemptOwner, type AttemptParts, PendingAttempt } from "./attempt.ts";

/** The attempts of one call that are out, and how many more it may make in its time. */
export class OpenAttempts {
  /** The attempt that is waited for. */
  awaited: PendingAttempt | null = null;
  /** Those that go on beside it, oldest first; null = there are none. */
  #beside: PendingAttempt[] | null = null;
  /** When no attempt is begun any more. */
  endsAtMs: number;
  /** Attempts that were begun, without those that were certainly not sent. */
  #begun = 0;
  /** Runs while it has a place for panic. */
  #panicTimer: Timer | null = null;
  readonly #parts: AttemptParts;
  readonly #context: CallContext;
  readonly #owner: AttemptOwner;

  constructor(parts: AttemptParts, context: CallContext, owner: AttemptOwner) {
    this.#parts = parts;
    this.#context = context;
    this.#owner = owner;
    this.endsAtMs = context.endsAtMs;
  }

  /** How many go on beside the one that is waited for. */
  get besideCount(): number {
    return this.#beside?.length ?? 0;
  }

  isBeside(pending: PendingAttempt): boolean {
    return this.#beside?.includes(pending) === true;
  }

  /**
   * Asks a provider, and waits for it. One that fails at once has told its owner already.
   * `couldFollow`: another could be asked after it, so it may not take all the time.
   */
  begin(
    channel: Channel,
    startedAtMs: number,
    couldFollow: boolean,
    hedgedAfterMs: number | null,
  ): void {
    this.#begun++;
    const limitMs = this.#limitMs(couldFollow, startedAtMs);
    const checkMs = firstCheckMs(this.#context, couldFollow);
    const mayBeLate = this.#context.policy.maxOpen > 1 && this.#context.plan.panic !== true;
    const terms = { channel, startedAtMs, limitMs, mayBeLate, checkMs, hedgedAfterMs };
    const pending = new PendingAttempt(this.#parts, this.#context, terms, this.#owner);
    this.awaited = pending;
    this.#context.lastAsked = channel.provider;
    pending.start();
  }

  /** The one that was waited for goes on beside the next one. */
  stepAside(): void {
    if (this.awaited === null) return;
    this.#beside ??= [];
    this.#beside.push(this.awaited);
    this.awaited = null;
  }

  /** Waits for the newest of those that went on; false = there are none. */
  waitForBeside(): boolean {
    const newest = this.#beside?.pop();
    if (newest === undefined) return false;
    this.awaited = newest;
    return true;
  }

  /** It has ended, or is taken back. */
  drop(pending: PendingAttempt): void {
    if (pending === this.awaited) this.awaited = null;
    else this.#beside = this.#beside?.filter((other) => other !== pending) ?? null;
  }

  /** Takes a request back that was not sent. */
  takeBack(pending: PendingAttempt, why: Verdict): void {
    this.#begun--;
    this.drop(pending);
    this.#context.addTrace(pending.cut(why), null);
  }

  /** Gives up on a provider that was sent a request and is silent. */
  giveUp(pending: PendingAttempt): void {
    this.drop(pending);
    const failure = plainFailure("timeout", "the provider is silent");
    const { call } = this.#context.request;
    const wallMs = this.#parts.runtime.wallMs();
    const verdict = verdictOf(failure, call, pending.provider, wallMs);
    const attempt = pending.cut(verdict);
    this.#context.addFailed({ attempt, verdict, failure, raw: null });
  }

  /** What is out is not waited for any more. It ends, but for trials: their outcome counts. */
  overtake(): void {
    if (this.awaited === null && this.#beside === null) return;
    for (const pending of this.#leave()) {
      pending.isOvertaken = pending.isTrial;
      const { provider, transport, ageMs: latencyMs } = pending;
      const attempt = pending.isTrial
        ? { provider, transport, latencyMs, verdict: OVERTAKEN, code: null }
        : pending.cut(OVERTAKEN);
      this.#context.addTrace(attempt, null);
    }
  }

  /** The caller has left: ends all, and tells what may have been carried out. */
  cancel(): Abandoned {
    const out = this.#leave();
    // Read first: a request that was given up before it was sent never will be.
    const sent = out.filter((pending) => pending.sent);
    for (const pending of out) this.#context.addTrace(pending.cut(CANCELLED), null);
    if (sent.length === 0) return abandonedAfter(this.#context.failed);
    return { sent: true, countedAsTimeout: sent.every((pending) => pending.silent) };
  }

  get isLate(): boolean {
    return this.#parts.runtime.now() >= this.endsAtMs;
  }

  /** Whether another attempt may be made. */
  get mayTryMore(): boolean {
    return this.#mayTryMoreWithin(this.endsAtMs - this.#parts.runtime.now());
  }

  /** How long (ms) an attempt may take that begins now. */
  #limitMs(couldFollow: boolean, nowMs: number): number {
    const remainingMs = this.endsAtMs - nowMs;
    const mayTryMore = couldFollow && this.#mayTryMoreWithin(remainingMs);
    return mayTryMore && this.#context.request.call.method.replaySafe
      ? remainingMs * this.#parts.limits().firstAttemptShare
      : remainingMs;
  }

  /** An attempt ended before it was sent: it does not count. */
  unsent(): void {
    this.#begun--;
  }

  /** Takes a place for panic; false = all are taken. A write is waited for as ever. */
  enterPanic(): boolean {
    const { call, tracker } = this.#context.request;
    if (!tracker.takePanicSlot()) return false;
    this.#panicTimer = this.#parts.timerWheel.set(PANIC_SLOT_MS, () => this.leavePanic());
    if (call.method.replaySafe)
      this.endsAtMs = Math.min(this.endsAtMs, this.#parts.runtime.now() + PANIC_SLOT_MS);
    return true;
  }

  leavePanic(): void {
    if (this.#panicTimer === null) return;
    this.#panicTimer.clear();
    this.#panicTimer = null;
    this.#context.request.tracker.freePanicSlot();
  }

  #mayTryMoreWithin(remainingMs: number): boolean {
    return this.#begun < this.#context.policy.maxAttempts && remainingMs > 0;
  }

  /** All that are out, which are not waited for from now on. */
  #leave(): readonly PendingAttempt[] {
    const { awaited } = this;
    const beside = this.#beside ?? [];
    this.awaited = null;
    this.#beside = null;
    return awaited === null ? beside : [...beside, awaited];
  }
}

/** How long a slot is held at most; also the deadline of a read that holds one. */
const PANIC_SLOT_MS = 1_000;

/**
 * The candidates of one call that have not been asked: in the order of the plan, but a provider
 * with a free connection before providers where a request would wait for one.
 */
export class Candidates {
  readonly #context: CallContext;
  #channels: readonly Channel[];
  readonly #upstreams: Upstreams;
  #cursor = 0;
  /** Passed over because a request would have had to wait for a connection; null = nobody was. */
  #passedOver: Channel[] | null = null;

  constructor(context: CallContext, upstreams: Upstreams) {
    this.#context = context;
    this.#channels = context.plan.candidates;
    this.#upstreams = upstreams;
  }

  /** Whether anybody is left. */
  get any(): boolean {
    return this.#cursor < this.#channels.length || (this.#passedOver?.length ?? 0) > 0;
  }

  /** Whether the plan has a reserve that was not added. */
  get hasReserve(): boolean {
    const { reserve, lagWaived } = this.#context.plan;
    return reserve !== undefined && lagWaived !== true;
  }

  /** Those of whom this holds are asked first from now on; false = it holds of nobody. */
  prefer(isPreferred: (provider: Provider) => boolean): boolean {
    const left = [...(this.#passedOver ?? []), ...this.#channels.slice(this.#cursor)];
    const preferred = left.filter(({ provider }) => isPreferred(provider));
    if (preferred.length === 0) return false;
    this.#channels = [...preferred, ...left.filter((channel) => !preferred.includes(channel))];
    this.#cursor = 0;
    this.#passedOver = null;
    return true;
  }

  /** The reserve of the plan is asked as well, once nobody else is left; false = there is none. */
  addReserve(): boolean {
    const { plan } = this.#context;
    const { reserve } = plan;
    if (reserve === undefined || !this.hasReserve) return false;
    this.#context.plan = withReserveAsked(plan, reserve);
    this.#channels = reserve;
    this.#cursor = 0;
    return true;
  }

  /** The next one that may be asked; null = all were. */
  next(): Channel | null {
    const { tracker, avoid, call, counts } = this.#context.request;
    const { panic } = this.#context.plan;
    for (let channel = this.#take(); channel !== null; channel = this.#take()) {
      const { provider, transport } = channel;
      if (avoid?.has(provider.id) === true) continue;
      if (provider.budget !== null && !tracker.hasRoom(provider, call)) continue;
      if (panic === true || tracker.admit(provider, transport, counts)) return channel;
      this.#context.trialsTaken = true;
    }
    return null;
  }

  /**
   * What follows for an attempt that has not been answered. A hedge has been paid for. `isAlone`:
   * no other attempt is out.
   */
  stepWhenSlow(pending: PendingAttempt, isAlone: boolean): SlowStep {
    const context = this.#context;
    const { tracker, call } = context.request;
    if (pending.isTrial) {
      tracker.extraCalls.takeAnyway(costOf(pending.provider, call));
      return { kind: "next" };
    }
    const target = this.#hedgeTarget();
    const usualMs =
      tracker.usualMs(pending, call.method, 0.99) ??
      (target === null ? null : tracker.usualMs(target, call.method, 0.99));
    const overdueMs = usualMs === null ? Number.POSITIVE_INFINITY : overdueAfterMs(usualMs);
    if (pending.ageMs >= overdueMs) return { kind: "next" };
    const wait = (untilMs: number): SlowStep => {
      const ms = Math.min(untilMs, overdueMs) - pending.ageMs;
      return { kind: "wait", ms: ms === Number.POSITIVE_INFINITY ? null : ms };
    };
    const { hedge } = context.policy;
    if (hedge === null || target === null || !isAlone) return wait(Number.POSITIVE_INFINITY);
    const askedP95Ms = tracker.usualMs(pending, call.method, 0.95);
    const hedgeMs = hedgeAfterMs(askedP95Ms, tracker.usualMs(target, call.method, 0.5), hedge);
    if (pending.ageMs < hedgeMs) return wait(hedgeMs);
    if (tracker.extraCalls.take(costOf(target.provider, call))) return { kind: "hedge", target };
    context.overBudget = true;
    return wait(2 * Math.max(pending.ageMs, hedge.floorMs));
  }

  /** The first one that could be asked beside another at once; null = nobody. */
  #hedgeTarget(): Channel | null {
    return this.#find((channel) => this.#mayBeHedged(channel));
  }

  /** The first one of those that are left that is wanted; null = none is. */
  #find(isWanted: (channel: Channel) => boolean): Channel | null {
    for (let at = this.#cursor; at < this.#channels.length; at++) {
      const channel = this.#channels[at];
      if (channel !== undefined && isWanted(channel)) return channel;
    }
    return this.#passedOver?.find(isWanted) ?? null;
  }

  /** One of those that are left is asked out of turn. */
  takeOut(taken: Channel): void {
    const left = [...(this.#passedOver ?? []), ...this.#channels.slice(this.#cursor)];
    this.#cursor = this.#channels.length;
    this.#passedOver = left.filter((channel) => channel !== taken);
  }

  /**
   * Whether a request that may be sent anywhere need not wait for a connection, since another
   * candidate has a free one.
   */
  isAnyFree(): boolean {
    const { replaySafe } = this.#context.request.call.method;
    return replaySafe && this.#find((channel) => this.#isFree(channel)) !== null;
  }

  #take(): Channel | null {
    for (
      let channel = this.#channels[this.#cursor++];
      channel !== undefined;
      channel = this.#channels[this.#cursor++]
    ) {
      if (this.#isFree(channel) || !this.isAnyFree()) return channel;
      this.#passedOver ??= [];
      this.#passedOver.push(channel);
    }
    const waiting = this.#passedOver;
    if (waiting === null) return null;
    const free = waiting.findIndex((channel) => this.#isFree(channel));
    return waiting.splice(Math.max(0, free), 1)[0] ?? null;
  }

  #mayBeHedged(channel: Channel): boolean {
    const { tracker, avoid, call } = this.#context.request;
    const { provider } = channel;
    return (
      !provider.backup &&
      avoid?.has(provider.id) !== true &&
      this.#isFree(channel) &&
      tracker.hasRoom(provider, call) &&
      tracker.mayBeAskedBeside(channel, call.method)
    );
  }

  #isFree({ provider, transport }: Channel): boolean {
    return this.#upstreams[transport]?.isFree?.(provider) ?? true;
  }
}

/** The next step. */
export type SlowStep =
  /** Looks again after `ms`; null = waits until the end of the attempt. */
  | { readonly kind: "wait"; readonly ms: number | null }
  /** Asks this provider as well. */
  | { readonly kind: "hedge"; readonly target: Channel }
  /** Asks the next provider; this one may still answer. */
  | { readonly kind: "next" };

/** When an attempt of a call is first looked at; null = it has all the time that it was given. */
function firstCheckMs({ policy, plan, request }: CallContext, couldFollow: boolean): number | null {
  if (!couldFollow || !request.call.method.replaySafe || plan.panic === true) return null;
  return policy.hedge === null ? LEAST_ATTEMPT_MS : policy.hedge.floorMs;
}

/** What a call costs at a provider, in credits. */
export function costOf({ budget }: Provider, { methodName }: Call): number {
  return budget === null ? 1 : creditsOf(budget, methodName);
}
