// Daily and monthly credits that this process may spend at one provider, leased ahead of need so
// that no call waits for a lease. Spends nothing by itself.
import {
  bindingQuota,
  dayOf,
  monthOf,
  onPaceAtMs,
  type QuotaLimits,
  type QuotaRecord,
  returned,
} from "../../core/provider/budget/quota.ts";
import type { Runtime } from "../../runtime.ts";

/** A request for credits of one provider. */
export interface QuotaRequest {
  /** The provider, its profile and chain. */
  readonly key: string;
  readonly limits: QuotaLimits;
  /** As many as this, or fewer. */
  readonly credits: number;
}

/** Credits that were handed out, and what is spent with them. */
export interface QuotaLease extends QuotaRecord {
  readonly credits: number;
}

/**
 * The port to those who know what all processes together have spent of a provider's credits. They
 * hand credits out; what was handed out counts as spent until it comes back.
 */
export interface QuotaSource {
  /** Null = nobody answers now. */
  lease(request: QuotaRequest): Promise<QuotaLease | null>;
  /** Takes back what was not spent. */
  giveBack(key: string, unspent: QuotaLease): void;
  /** Ends when everything that was given back is kept. */
  close(): Promise<void>;
}

/** What is spent of a day or a month, for display. */
interface QuotaReport {
  readonly limit: number;
  readonly used: number;
  readonly resetsInMs: number;
}

/** What a quota works with. */
export interface QuotaParts {
  readonly runtime: Pick<Runtime, "now" | "wallMs" | "after">;
  readonly source: QuotaSource;
}

/** The least that is leased at once. */
const LEAST_LEASE = 16;
/** A lease is between these parts of the limit: what a crash costs. */
const LEAST_PARTS = 200;
const MOST_PARTS = 20;
/** The same of one that calls wait for. */
const MOST_AWAITED_PARTS = 10;
/** A lease suffices for as many seconds like the last one. */
const LEASE_SECONDS = 2;
/** Where the clock of those who hand out is behind, a lease may be spent for so long. */
const LEAST_LEASE_MS = 1_000;
/** Least time between two requests that bring nothing. */
const ASK_EVERY_MS = 1_000;
/** What was not spent for so long goes back, but for the least lease. */
const IDLE_MS = 10_000;
/** What is shown of what others spent is not much older than this. */
const REFRESH_MS = 2_000;
/** How long a lease may take that is under way; nobody knows. */
const PENDING_MS = 5;

/** The credits of one provider. */
export class ProviderQuota {
  readonly #key: string;
  readonly #limits: QuotaLimits;
  readonly #parts: QuotaParts;
  /** What was spent by all, as far as was heard. */
  #lease: QuotaLease | null = null;
  /** Of the lease. */
  #left = 0;
  /** When the day or the month of the lease ends, by the monotonic clock, which is cheaper. */
  #endsAtMs = Number.NEGATIVE_INFINITY;
  #onPaceAtMs = Number.NEGATIVE_INFINITY;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #spentSinceAsked = 0;
  /** Whether something was spent since this was looked at last. */
  #isUsed = false;
  #cancelIdle: (() => void) | null = null;
  #asking: Promise<void> | null = null;
  /** Credits that the last request for some brought. */
  #brought = 0;
  /** When was last asked what all together have spent. */
  #heardAtMs = Number.NEGATIVE_INFINITY;
  /** Nobody has answered the last request. */
  #isUnanswered = false;
  #isClosed = false;

  constructor(key: string, limits: QuotaLimits, parts: QuotaParts) {
    this.#key = key;
    this.#limits = limits;
    this.#parts = parts;
    this.#requestMore();
  }

  /** The lease under way, if there is one. */
  get pending(): Promise<void> | null {
    return this.#asking;
  }

  /** Which quota does not let so many credits be spent now; null = both do. */
  shortageOf(credits: number, nowMs: number): "daily_limit" | "monthly_limit" | null {
    if (this.#left >= credits && nowMs < this.#endsAtMs) return null;
    if (nowMs >= this.#endsAtMs) this.#giveBack(0);
    this.#requestMore(true);
    const record = this.#lease;
    const binding = record === null ? null : bindingQuota(record, this.#limits, credits);
    return binding ?? (this.#limits.daily === null ? "monthly_limit" : "daily_limit");
  }

  /** Spends credits of which there was no shortage. */
  spend(credits: number): void {
    this.#left -= credits;
    this.#spentSinceAsked += credits;
    this.#isUsed = true;
    if (this.#left * 2 < this.#brought) this.#requestMore();
  }

  /** Milliseconds until so many credits may be there. */
  waitMs(credits: number, nowMs: number): number {
    if (this.#left >= credits && nowMs < this.#endsAtMs) return 0;
    const record = this.#lease;
    const pendingMs = this.#isUnanswered ? ASK_EVERY_MS : PENDING_MS;
    if (record === null || nowMs >= this.#endsAtMs) return pendingMs;
    const binding = bindingQuota(record, this.#limits, credits);
    if (binding === null) return pendingMs;
    const isDay = binding === "daily_limit";
    const { endMs } = isDay ? dayOf(record.dayMs) : monthOf(record.monthMs, this.#limits.resetsOn);
    return Math.max(PENDING_MS, endMs - this.#parts.runtime.wallMs());
  }

  /** Whether the month is spent faster than it passes. */
  isAheadOfPace(nowMs: number): boolean {
    return nowMs < this.#onPaceAtMs;
  }

  /** What all together have spent, as it was heard a moment ago: asks again for the next reader. */
  report(): { readonly daily: QuotaReport | null; readonly monthly: QuotaReport | null } {
    this.#refresh();
    const wallMs = this.#parts.runtime.wallMs();
    const { daily, monthly, resetsOn } = this.#limits;
    const day = dayOf(wallMs);
    const month = monthOf(wallMs, resetsOn);
    const lease = this.#lease;
    const reportOf = (
      limit: number | null,
      spent: number,
      { endMs }: { readonly endMs: number },
    ): QuotaReport | null =>
      limit === null
        ? null
        : { limit, used: Math.max(0, spent - this.#left), resetsInMs: endMs - wallMs };
    const isToday = lease !== null && lease.dayMs >= day.startMs;
    const isThisMonth = lease !== null && lease.monthMs >= month.startMs;
    return {
      daily: reportOf(daily, isToday ? lease.daySpent : 0, day),
      monthly: reportOf(monthly, isThisMonth ? lease.monthSpent : 0, month),
    };
  }

  /** Gives back what was not spent. */
  close(): void {
    this.#isClosed = true;
    this.#cancelIdle?.();
    this.#giveBack(0);
  }

  /** Gives back what is left, but for so much. */
  #giveBack(kept: number): void {
    const lease = this.#lease;
    const credits = this.#left - kept;
    if (lease === null || credits <= 0) return;
    this.#parts.source.giveBack(this.#key, { ...lease, credits });
    this.#lease = { ...returned(lease, credits, lease), credits: lease.credits };
    this.#left = kept;
  }

  #lookForIdle(): void {
    this.#cancelIdle = null;
    if (!this.#isUsed) {
      this.#giveBack(LEAST_LEASE);
      this.#brought = Math.min(this.#brought, LEAST_LEASE);
    }
    this.#isUsed = false;
    if (this.#left > LEAST_LEASE)
      this.#cancelIdle = this.#parts.runtime.after(IDLE_MS, () => this.#lookForIdle());
  }

  /** Asks for more, unless that is under way, or brought nothing a moment ago. */
  #requestMore(isAwaited = false): void {
    const nowMs = this.#parts.runtime.now();
    if (this.#asking !== null || this.#isClosed) return;
    const isOver = nowMs >= this.#endsAtMs;
    const isSpent = this.#brought === 0 && !isOver;
    if ((isSpent || this.#isUnanswered) && nowMs - this.#askedAtMs < ASK_EVERY_MS) return;
    const seconds = Math.min(1, Math.max(0.05, (nowMs - this.#askedAtMs) / 1_000));
    const usual = Math.ceil((LEASE_SECONDS * this.#spentSinceAsked) / seconds);
    const { daily, monthly } = this.#limits;
    const limit = Math.min(daily ?? Number.MAX_SAFE_INTEGER, monthly ?? daily ?? 0);
    const most = Math.max(
      LEAST_LEASE,
      Math.ceil(limit / (isAwaited ? MOST_AWAITED_PARTS : MOST_PARTS)),
    );
    const credits = Math.min(
      most,
      Math.max(LEAST_LEASE, Math.ceil(limit / LEAST_PARTS), isAwaited ? most : usual),
    );
    this.#askedAtMs = nowMs;
    this.#spentSinceAsked = 0;
    this.#request(credits);
  }

  /** Hears what others spent, if that was long ago. */
  #refresh(): void {
    if (this.#asking !== null || this.#isClosed) return;
    if (this.#parts.runtime.now() - this.#heardAtMs >= REFRESH_MS) this.#request(0);
  }

  #request(credits: number): void {
    const { runtime, source } = this.#parts;
    const askedAtMs = runtime.now();
    this.#heardAtMs = askedAtMs;
    this.#asking = source.lease({ key: this.#key, limits: this.#limits, credits }).then((lease) => {
      this.#asking = null;
      this.#isUnanswered = lease === null;
      if (lease === null) return;
      if (credits > 0) this.#brought = lease.credits;
      this.#take(lease, askedAtMs);
    });
  }

  #take(lease: QuotaLease, askedAtMs: number): void {
    const isOther = this.#lease?.dayMs !== lease.dayMs || this.#lease.monthMs !== lease.monthMs;
    if (isOther) this.#giveBack(0);
    this.#left += lease.credits;
    this.#lease = lease;
    const { now, wallMs } = this.#parts.runtime;
    const monotonicOf = (atWallMs: number): number => now() + (atWallMs - wallMs());
    const endMs = monotonicOf(
      Math.min(dayOf(lease.dayMs).endMs, monthOf(lease.monthMs, this.#limits.resetsOn).endMs),
    );
    // Where the day was over when this was asked, the clock of those who hand out is behind. A day
    // that ended on the way is over: the lease would come on top of the next day's limit.
    this.#endsAtMs = endMs > askedAtMs ? endMs : now() + LEAST_LEASE_MS;
    const monthSpent = lease.monthSpent - this.#left;
    this.#onPaceAtMs = monotonicOf(onPaceAtMs({ ...lease, monthSpent }, this.#limits));
    if (this.#isClosed) this.#giveBack(0);
    else this.#cancelIdle ??= this.#parts.runtime.after(IDLE_MS, () => this.#lookForIdle());
  }
}
