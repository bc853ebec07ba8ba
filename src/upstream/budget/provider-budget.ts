// What may still be sent to one provider: counts its requests, over both transports, against the
// limits that its operator declared. Sends nothing and chooses nobody.
import {
  type BudgetLimits,
  creditsOf,
  type Shortage,
} from "../../core/provider/budget/budget-limits.ts";
import { SecondWindow } from "../../core/provider/budget/second-window.ts";
import type { Provider } from "../../core/provider/profile.ts";
import type { Runtime } from "../../runtime.ts";
import { type Allowance, type Shares, type ShareUse, WHOLE_SHARES } from "../shares.ts";
import { ProviderQuota, type QuotaSource } from "./provider-quota.ts";

/** What is left of the limits of a provider, for display. */
export type BudgetReport = ReturnType<ProviderBudget["report"]>;

/** What budgets work with. */
export interface BudgetParts {
  readonly runtime: Pick<Runtime, "now" | "wallMs" | "after">;
  /** Credits of days and months. */
  readonly quotas: QuotaSource;
  /** Absent = this process is the whole service. */
  readonly shares?: Shares;
}

/** How long a request of the service itself keeps its place before those of callers. */
const RESERVED_MS = 1_000;
/** When a place among the requests in flight may be free; nobody knows. */
const PLACE_WAIT_MS = 5;

/** Counts what is sent to one provider. */
export class ProviderBudget {
  readonly #key: string;
  #limits: BudgetLimits;
  readonly #parts: BudgetParts;
  readonly #runtime: BudgetParts["runtime"];
  readonly #window = new SecondWindow();
  #inFlight = 0;
  #rps: Bound | null = null;
  #concurrency: Bound | null = null;
  #credits: ProviderQuota | null = null;
  /** Requests of the service itself that wait for room, and until when they come first. */
  #reserved = 0;
  #reservedUntilMs = Number.NEGATIVE_INFINITY;

  /** `key`: the provider, its profile and chain. */
  constructor(key: string, limits: BudgetLimits, parts: BudgetParts) {
    this.#key = key;
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

  /** Why no request of a method may be sent now beside the reserved ones; null = it may. */
  shortageOf(
    methodName: string,
    nowMs: number,
    reserved: number = this.#reservedAt(nowMs),
  ): Shortage | null {
    if (this.#rps?.isReached(reserved) === true) return "rps_limit";
    if (this.#concurrency?.isReached(reserved) === true) return "concurrency_limit";
    return this.#credits?.shortageOf(creditsOf(this.#limits, methodName), nowMs) ?? null;
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
    const shortage = this.shortageOf(methodName, nowMs, reserved);
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

  #reservedAt(nowMs: number): number {
    if (this.#reserved === 0) return 0;
    if (nowMs >= this.#reservedUntilMs) this.#reserved = 0;
    return this.#reserved;
  }

  #divide(): void {
    const { rps, concurrency, daily, monthly } = this.#limits;
    const { runtime, quotas, shares = WHOLE_SHARES } = this.#parts;
    const key = this.#key;
    if (daily !== null || monthly !== null)
      this.#credits = new ProviderQuota(key, this.#limits, { runtime, source: quotas });
    const boundOf = (what: string, total: number | null, used: () => number): Bound | null =>
      total === null
        ? null
        : new Bound(runtime, (use) => shares.of(`${what} ${key}`, total, use), used);
    this.#rps = boundOf("rps", rps, () => this.#window.sentWithin(runtime.now()));
    this.#concurrency = boundOf("concurrency", concurrency, () => this.#inFlight);
  }
}

/** This process's share of a bound, which follows what is used and what found no room. */
class Bound {
  readonly #runtime: Pick<Runtime, "now">;
  readonly #share: Allowance;
  readonly #used: () => number;
  /** Requests that found no room in the last second. */
  readonly #refused = new SecondWindow();

  constructor(
    runtime: Pick<Runtime, "now">,
    shareOf: (use: ShareUse) => Allowance,
    used: () => number,
  ) {
    this.#runtime = runtime;
    this.#used = used;
    const wanted = (): number => used() + this.#refused.sentWithin(runtime.now());
    this.#share = shareOf({ used, wanted });
  }

  get limit(): number {
    return this.#share.limit;
  }

  /** Whether a request finds no room, with so much kept for others; then it is counted. */
  isReached(reserved: number): boolean {
    if (this.#used() + reserved < this.#share.limit) return false;
    this.#refused.count(1, this.#runtime.now());
    return true;
  }

  close(): void {
    this.#share.close();
  }
}

const SECOND_MS = 1_000;
/** Most requests of the service itself that wait for room at one provider. */
const MAX_RESERVED = 4;

/**
 * Finds the budgets of all providers that have limits, by the provider that is asked. A reload
 * keeps what was counted of a provider.
 */
export class ProviderBudgets {
  readonly #parts: BudgetParts;
  readonly #byKey = new Map<string, ProviderBudget>();
  readonly #byProvider = new WeakMap<Provider, ProviderBudget>();

  constructor(parts: BudgetParts) {
    this.#parts = parts;
  }

  /** The budget of a provider of a set, which is created where it is new; null = no limits. */
  open(set: string, provider: Provider): ProviderBudget | null {
    const { budget: limits } = provider;
    if (limits === null) return null;
    const [profile] = set.split(" ");
    // No chain is called `*`.
    const place = provider.account === undefined ? set : `${profile} *`;
    const key = `${place} ${provider.account ?? provider.id}`;
    const known = this.#byKey.get(key);
    known?.change(limits);
    const budget = known ?? new ProviderBudget(key, limits, this.#parts);
    this.#byKey.set(key, budget);
    this.#byProvider.set(provider, budget);
    return budget;
  }

  /** The budget of a provider that was opened; null = it has no limits. */
  find(provider: Provider): ProviderBudget | null {
    return this.#byProvider.get(provider) ?? null;
  }

  /** Forgets the budgets of all others. */
  retain(providers: readonly Provider[]): void {
    const used = new Set(providers.map((provider) => this.#byProvider.get(provider)));
    for (const [key, budget] of this.#byKey) {
      if (used.has(budget)) continue;
      this.#byKey.delete(key);
      budget.close();
    }
  }

  /** Ends when every budget has the credits that it asked for at first. */
  async ready(): Promise<void> {
    await Promise.all([...this.#byKey.values()].map(({ pending }) => pending));
  }

  /** Gives back what was not spent. */
  close(): void {
    for (const budget of this.#byKey.values()) budget.close();
  }
}
