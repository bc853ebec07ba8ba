// What may still be sent to one provider: counts its requests, over both transports, against the
// limits that its operator declared. Sends nothing and chooses nobody.
import {
  type BudgetLimits,
  creditsOf,
  type Shortage,
} from "../../core/provider/budget/budget-limits.ts";
import { SecondWindow } from "../../core/provider/budget/second-window.ts";
import type { Runtime } from "../../runtime.ts";
import type { Allowance, ShareUse } from "../shares.ts";
import { ProviderQuota } from "./provider-quota.ts";
import type { QuotaSource } from "./quota-source.ts";

/** What is left of the limits of a provider, for display. */
export type BudgetReport = ReturnType<ProviderBudget["report"]>;

/** What a budget works with. */
export interface ProviderBudgetParts {
  /** The provider, its profile and chain. */
  readonly key: string;
  readonly runtime: Pick<Runtime, "now" | "wallMs" | "after">;
  readonly shareOf: BudgetShareOf;
  readonly quotas: QuotaSource;
}

/** Divides the limits of a provider between workers. */
export type BudgetShareOf = (what: string, total: number, use: ShareUse) => Allowance;

/** How long a request of the service itself keeps its place before those of callers. */
const RESERVED_MS = 1_000;
/** When a place among the requests in flight may be free; nobody knows. */
const PLACE_WAIT_MS = 5;

/** Counts what is sent to one provider. */
export class ProviderBudget {
  #limits: BudgetLimits;
  readonly #parts: ProviderBudgetParts;
  readonly #runtime: ProviderBudgetParts["runtime"];
  readonly #window = new SecondWindow();
  #inFlight = 0;
  #rps: Bound | null = null;
  #concurrency: Bound | null = null;
  #credits: ProviderQuota | null = null;
  /** Requests of the service itself that wait for room, and until when they come first. */
  #reserved = 0;
  #reservedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(limits: BudgetLimits, parts: ProviderBudgetParts) {
    this.#limits = limits;
    this.#parts = parts;
    this.#runtime = parts.runtime;
    this.#divide();
  }

  /** Whether requests in flight are bounded, so that their ends must be told. */
  get countsInFlight(): boolean {
    return this.#concurrency !== null;
  }

  /** Applies other limits; what was sent still counts. */
  change(limits: BudgetLimits): void {
    if (limits === this.#limits) return;
    this.close();
    this.#limits = limits;
    this.#divide();
  }

  /** Why no request of a method may be sent now; null = it may. */
  shortageOf(methodName: string, nowMs: number): Shortage | null {
    return this.#shortageOf(methodName, { nowMs, reserved: this.#reservedAt(nowMs) });
  }

  /** Milliseconds until a request of a method may be sent, as far as is known. */
  waitMs(methodName: string): number {
    const nowMs = this.#runtime.now();
    const windowMs =
      this.#rps === null ? 0 : (this.#window.roomInMs(this.#rps.limit, nowMs) ?? SECOND_MS);
    const isFull = this.#concurrency !== null && this.#inFlight >= this.#concurrency.limit;
    const quotaMs = this.#credits?.waitMs(creditsOf(this.#limits, methodName), nowMs) ?? 0;
    return Math.max(windowMs, isFull ? PLACE_WAIT_MS : 0, quotaMs);
  }

  /**
   * Counts a request that is sent now; null = it may be. Otherwise nothing is counted, and it must
   * not be sent. A request in flight ends with `release`.
   */
  take(methodName: string, isOwn = false): Shortage | null {
    const nowMs = this.#runtime.now();
    const reserved = isOwn ? 0 : this.#reservedAt(nowMs);
    const shortage = this.#shortageOf(methodName, { nowMs, reserved });
    if (shortage !== null) return shortage;
    if (isOwn && this.#reserved > 0) this.#reserved -= 1;
    this.#window.count(1, nowMs);
    if (this.#concurrency !== null) this.#inFlight += 1;
    this.#credits?.spend(creditsOf(this.#limits, methodName));
    return null;
  }

  /**
   * Counts a request in flight once more, which is sent again in the place that it has; otherwise
   * as `take`.
   */
  takeAgain(methodName: string): Shortage | null {
    const isPlaced = this.#concurrency !== null;
    if (isPlaced) this.#inFlight -= 1;
    const shortage = this.take(methodName);
    if (shortage !== null && isPlaced) this.#inFlight += 1;
    return shortage;
  }

  /** Whether the month is spent faster than it passes, so that others are asked first. */
  isAheadOfPace(nowMs: number): boolean {
    return this.#credits?.isAheadOfPace(nowMs) === true;
  }

  /** The first credits, while they are under way. */
  get pending(): Promise<void> | null {
    return this.#credits?.pending ?? null;
  }

  /** A request in flight has ended. */
  release(): void {
    this.#inFlight -= 1;
  }

  /** A request of the service itself waits: what is free next is its own. */
  reserve(): void {
    const nowMs = this.#runtime.now();
    this.#reserved = Math.min(MAX_RESERVED, this.#reservedAt(nowMs) + 1);
    this.#reservedUntilMs = nowMs + RESERVED_MS;
  }

  report() {
    const { rps, concurrency } = this.#limits;
    const nowMs = this.#runtime.now();
    return {
      rps: rps === null ? null : { limit: rps, used: this.#window.sentWithin(nowMs) },
      concurrency: concurrency === null ? null : { limit: concurrency, used: this.#inFlight },
      ...(this.#credits?.report() ?? { daily: null, monthly: null }),
      /** The month is spent faster than it passes: others are asked first. */
      aheadOfPace: this.isAheadOfPace(nowMs),
    };
  }

  /** Gives its parts of limits back, and the credits that it did not spend. */
  close(): void {
    this.#credits?.close();
    this.#credits = null;
    this.#rps?.close();
    this.#concurrency?.close();
    this.#rps = null;
    this.#concurrency = null;
  }

  #shortageOf(
    methodName: string,
    { nowMs, reserved }: { readonly nowMs: number; readonly reserved: number },
  ): Shortage | null {
    if (this.#rps?.isReached(reserved) === true) return "rps_limit";
    if (this.#concurrency?.isReached(reserved) === true) return "concurrency_limit";
    return this.#credits?.shortageOf(creditsOf(this.#limits, methodName), nowMs) ?? null;
  }

  #reservedAt(nowMs: number): number {
    if (this.#reserved === 0) return 0;
    if (nowMs >= this.#reservedUntilMs) this.#reserved = 0;
    return this.#reserved;
  }

  #divide(): void {
    const { rps, concurrency, daily, monthly } = this.#limits;
    const { key, runtime, quotas, shareOf } = this.#parts;
    if (daily !== null || monthly !== null)
      this.#credits = new ProviderQuota(key, this.#limits, { runtime, source: quotas });
    const boundOf = (what: string, total: number | null, used: () => number): Bound | null =>
      total === null ? null : new Bound(runtime, (use) => shareOf(what, total, use), used);
    this.#rps = boundOf("rps", rps, () => this.#window.sentWithin(runtime.now()));
    this.#concurrency = boundOf("concurrency", concurrency, () => this.#inFlight);
  }
}

/** This process's share of a bound, which follows what is used and what found no room. */
class Bound {
  readonly #runtime: Pick<Runtime, "now">;
  readonly #share: Allowance;
  readonly #used: () => number;
  /** Requests that found no room in this second, and in the second before. */
  #second = 0;
  #refused = 0;
  #refusedBefore = 0;

  constructor(
    runtime: Pick<Runtime, "now">,
    shareOf: (use: ShareUse) => Allowance,
    used: () => number,
  ) {
    this.#runtime = runtime;
    this.#used = used;
    const wanted = (): number => {
      this.#turn();
      return used() + Math.max(this.#refused, this.#refusedBefore);
    };
    this.#share = shareOf({ used, wanted });
  }

  get limit(): number {
    return this.#share.limit;
  }

  /** Whether a request finds no room, with so much kept for others; then it is counted. */
  isReached(reserved: number): boolean {
    if (this.#used() + reserved < this.#share.limit) return false;
    this.#turn();
    this.#refused += 1;
    return true;
  }

  close(): void {
    this.#share.close();
  }

  #turn(): void {
    const second = Math.floor(this.#runtime.now() / SECOND_MS);
    if (second === this.#second) return;
    this.#refusedBefore = second === this.#second + 1 ? this.#refused : 0;
    this.#refused = 0;
    this.#second = second;
  }
}

const SECOND_MS = 1_000;
/** Most requests of the service itself that wait for room at one provider. */
const MAX_RESERVED = 4;
