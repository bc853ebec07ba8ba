// Rate limits shared between processes: gathers the needs of this process into few requests to the
// book, one at a time, while calls wait for tokens. Knows no caller, and not where the book is.
import { createHash } from "node:crypto";
import type { RateLimitSize } from "../../core/billing/gcra.ts";
import {
  type LimitSharing,
  type LimitStart,
  type RequestTokens,
  SharedLimit,
} from "../../core/billing/shared-limit.ts";
import { type PendingRun, type Runtime, runWithin } from "../../runtime.ts";

/** What limits are shared with. */
export interface RateShareParts {
  readonly request: RequestTokens;
  /** Processes that share now, this one included. */
  readonly members: () => number;
  readonly runtime: Runtime;
  /** Between the starts of two questions. */
  readonly spacingMs: number;
  readonly onError: (error: unknown) => void;
}

/** Limits that are used at one time: of more, a process keeps to equal parts. */
const MAX_LIMITS = 5_000;
const MAX_PER_QUESTION = 500;
/** The longest that a call waits for the book. */
const WAIT_MS = 500;
/** Between two looks for limits that nobody uses. */
const SWEEP_MS = 1_000;
/** Time to the next question after one that failed. */
const FAILED_MS = 250;
const SCOPE_CHARACTERS = 22;

/** Limits of this process that it shares with others. */
export class RateShares implements LimitSharing {
  readonly #parts: RateShareParts;
  readonly #limits = new Map<string, SharedLimit>();
  readonly #due = new Set<SharedLimit>();
  readonly #waiters = new Map<SharedLimit, PendingRun[]>();
  #nextAtMs = Number.NEGATIVE_INFINITY;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #isAsking = false;
  #isFailing = false;
  #isClosed = false;
  #cancelTimer: (() => void) | null = null;
  #cancelSweep: (() => void) | null = null;

  constructor(parts: RateShareParts) {
    this.#parts = parts;
  }

  get nodes(): number {
    return Math.max(1, this.#parts.members());
  }

  /** Limits that are shared now. */
  get size(): number {
    return this.#limits.size;
  }

  begin(scope: string, size: RateLimitSize, start: LimitStart): SharedLimit | null {
    const digest = limitDigest(scope);
    const known = this.#limits.get(digest);
    // One of another size goes on where this one is: the book knows both by their scope.
    if (known !== undefined) this.#end(digest, known);
    if (this.#limits.size >= MAX_LIMITS || this.#isClosed) return null;
    const limit = new SharedLimit(digest, size, this, start);
    this.#limits.set(digest, limit);
    this.#cancelSweep ??= this.#parts.runtime.after(SWEEP_MS, () => this.#sweep());
    return limit;
  }

  due(limit: SharedLimit): void {
    if (limit.isEnded || this.#isClosed || this.#due.has(limit)) return;
    this.#due.add(limit);
    this.#arm();
  }

  wait(limit: SharedLimit, run: () => void): () => void {
    const waitMs = this.#isClosed || this.#isBookSilent() ? 0 : WAIT_MS;
    const waiter = runWithin(this.#parts.runtime, waitMs, run);
    const waiters = this.#waiters.get(limit) ?? [];
    this.#waiters.set(limit, waiters);
    waiters.push(waiter);
    this.due(limit);
    return waiter.cancel;
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelTimer?.();
    this.#cancelSweep?.();
  }

  /** Whether a call has waited for the book in vain: later ones do not, until it answers. */
  #isBookSilent(): boolean {
    const askedMs = this.#parts.runtime.now() - this.#askedAtMs;
    return this.#isFailing || (this.#isAsking && askedMs >= WAIT_MS);
  }

  #arm(): void {
    if (this.#cancelTimer !== null || this.#isAsking || this.#isClosed) return;
    const { runtime } = this.#parts;
    const waitMs = this.#nextAtMs - runtime.now();
    if (waitMs <= 0) return this.#start();
    this.#cancelTimer = runtime.after(waitMs, () => {
      this.#cancelTimer = null;
      this.#start();
    });
  }

  #start(): void {
    this.#isAsking = true;
    this.#askedAtMs = this.#parts.runtime.now();
    this.#nextAtMs = this.#askedAtMs + this.#parts.spacingMs;
    void this.#askOnce().finally(() => {
      this.#isAsking = false;
      if (this.#due.size > 0) this.#arm();
    });
  }

  async #askOnce(): Promise<void> {
    // Limits that become due until the end of this turn of the event loop are asked for as well.
    await Promise.resolve();
    const { runtime, request } = this.#parts;
    const limits = [...this.#due].slice(0, MAX_PER_QUESTION);
    for (const limit of limits) this.#due.delete(limit);
    const waiters = limits.map((limit) => this.#waiters.get(limit) ?? []);
    for (const limit of limits) this.#waiters.delete(limit);
    const requests = limits.map((limit, at) =>
      limit.request(runtime.now(), waiters[at]?.length ?? 0),
    );
    try {
      const grants = await request(requests);
      for (const [at, limit] of limits.entries()) {
        const grant = grants[at];
        if (grant === undefined) limit.failed(runtime.now());
        else limit.answer(grant, runtime.now());
      }
      this.#isFailing = false;
    } catch (error) {
      for (const limit of limits) limit.failed(runtime.now());
      this.#failed(error);
    }
    for (const list of waiters) this.#call(list);
  }

  /** Told once: what follows from a store that does not answer is told elsewhere. */
  #failed(error: unknown): void {
    this.#nextAtMs = this.#parts.runtime.now() + FAILED_MS;
    if (!this.#isFailing && !this.#isClosed) this.#parts.onError(error);
    this.#isFailing = true;
  }

  #call(waiters: readonly PendingRun[]): void {
    for (const { run } of waiters) {
      try {
        run();
      } catch (error) {
        this.#parts.onError(error);
      }
    }
  }

  /** Gives idle tokens back, and ends limits that nobody uses. */
  #sweep(): void {
    const { runtime } = this.#parts;
    const nowMs = runtime.now();
    for (const [digest, limit] of this.#limits) {
      if (limit.hasIdleTokens(nowMs)) this.due(limit);
      else if (limit.isIdle(nowMs) && !this.#waiters.has(limit)) this.#end(digest, limit);
    }
    this.#cancelSweep =
      this.#limits.size === 0 ? null : runtime.after(SWEEP_MS, () => this.#sweep());
  }

  #end(digest: string, limit: SharedLimit): void {
    limit.isEnded = true;
    this.#limits.delete(digest);
    // Its successor has the same scope, and a question names each scope once.
    this.#due.delete(limit);
    const waiters = this.#waiters.get(limit) ?? [];
    this.#waiters.delete(limit);
    if (waiters.length > 0) queueMicrotask(() => this.#call(waiters));
  }
}

/** The name of a limit for others: of one length, and of nobody. */
export function limitDigest(scope: string): string {
  return createHash("sha256").update(scope).digest("base64url").slice(0, SCOPE_CHARACTERS);
}
