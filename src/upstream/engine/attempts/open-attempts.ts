// The attempts of one call that are out at the same time: one is waited for, the others go on
// beside it. Begins attempts, ends them, and keeps the evidence of those that it ends. Failover
// decides when.
import { type Abandoned, abandonedAfter } from "../../../core/billing/charging.ts";
import type { Channel, Verdict } from "../../../core/provider/attempt.ts";
import { plainFailure } from "../../../core/rpc/failure.ts";
import type { Timer } from "../../timer-wheel.ts";
import type { CallContext } from "../call-context.ts";
import { CANCELLED, OVERTAKEN, verdictOf } from "../refusal.ts";
import { type AttemptOwner, type AttemptParts, PendingAttempt } from "./attempt.ts";
import { firstCheckMs } from "./candidates.ts";

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
