// A rate limit that several nodes share, as one of them counts it: what it takes itself at once,
// what others take as soon as it hears of it, and its share of what is left until it hears again.
// Knows no clock and no store.
import type { RateLimitSize } from "./gcra.ts";

/** What another node says of its part. */
export interface OtherDemand {
  readonly nodeId: string;
  /** Tokens taken since it began to count. */
  readonly used: number;
  /** Tokens that all have taken and that are not refilled yet, as far as it knows. */
  readonly debt: number;
  /** Tokens asked for in a second, lately. */
  readonly demand: number;
  /** How old this is. */
  readonly ageMs: number;
}

/** What this node says of its part. */
export interface OwnDemand {
  readonly used: number;
  readonly debt: number;
  readonly demand: number;
}

/** The port to what nodes tell each other. */
export interface LimitSharing {
  /** Nodes that may take of a limit, this one included. */
  readonly nodes: number;
  /**
   * Shares a limit from now on, of which `debt` tokens are taken; null = too many are shared: this
   * node keeps to an equal part.
   */
  begin(scope: string, size: RateLimitSize, start: LimitStart): SharedLimit | null;
}

/** Where a limit stands when it begins to be shared. */
export interface LimitStart {
  readonly debt: number;
  readonly nowMs: number;
}

/** A demand is never quite zero: a node that is asked for the first time has a share. */
const LEAST_DEMAND = 0.5;
/** How much the newest interval counts in the demand. */
const NEWEST = 0.5;
/** Calls within less time than this say little of a rate. */
const SHORTEST_MS = 100;
/** Limits that are far from used up are told of no more often than this. */
const SLACK_MS = 2_000;
/** What is older says nothing of the present demand. */
const STALE_MS = 2 * SLACK_MS;
/** A share that was not renewed for this long is an equal one. */
const SHARE_MS = 5_000;
/** From this part of a limit on it is told of at each interval. */
const TIGHT = 0.25;
/** Without a request for this long, and with nothing to refill, a limit is not shared any more. */
const IDLE_MS = 10_000;

/** What all nodes together may take of a limit in the long run without telling each other. */
const UNSHARED = 0.05;

/** What one node takes of a limit before the others have to know. */
export function unsharedPart({ perSecond, burst }: RateLimitSize, nodes: number): RateLimitSize {
  return {
    perSecond: (perSecond * UNSHARED) / nodes,
    burst: Math.max(1, Math.floor(burst / (2 * nodes))),
  };
}

/** A limit that nodes share. A class because it has an identity and changes with each call. */
export class SharedLimit {
  readonly size: RateLimitSize;
  readonly #sharing: Pick<LimitSharing, "nodes">;
  /** Asks for news: nothing was heard for some time. */
  readonly #onStale: () => void;
  /** Tokens taken by all that are not refilled yet, at `#atMs`. */
  #debt: number;
  #atMs: number;
  #used: number;
  #asked = 0;
  #demand = 0;
  /** Null = an equal one: nothing was heard of the others. */
  #share: number | null = null;
  #demandOfAll = 0;
  /** What was left for all when they were last heard of, and what was taken here since. */
  #left: number;
  #taken = 0;
  #syncedAtMs: number;
  #askedAtMs: number;
  #toldAtMs: number;
  readonly #others = new Map<string, number>();

  constructor({ size, sharing, onStale }: SharedLimitParts, { debt, nowMs }: LimitStart) {
    this.size = size;
    this.#sharing = sharing;
    this.#onStale = onStale;
    this.#debt = debt;
    this.#used = debt;
    this.#atMs = nowMs;
    this.#left = size.burst - debt;
    this.#syncedAtMs = nowMs;
    this.#askedAtMs = nowMs;
    this.#toldAtMs = nowMs;
  }

  /** Takes a token; returns 0, or after how many milliseconds there may be one. */
  take(nowMs: number): number {
    this.#refill(nowMs);
    this.#asked++;
    this.#askedAtMs = nowMs;
    if (nowMs - this.#syncedAtMs > STALE_MS) this.#onStale();
    const waitMs = this.waitMs(nowMs);
    if (waitMs > 0) return waitMs;
    this.#debt++;
    this.#used++;
    this.#taken++;
    return 0;
  }

  /** Gives a token back. */
  giveBack(): void {
    this.#debt--;
    this.#used--;
    this.#taken--;
  }

  /** After how many milliseconds there may be a token here; 0 = now. */
  waitMs(nowMs: number): number {
    this.#refill(nowMs);
    const { burst, perSecond } = this.size;
    const overN = this.#debt + 1 - burst;
    const share = this.#shareAt(nowMs);
    // A part of a token is enough: what it takes too much is debt, and so not taken twice.
    const spareN =
      share * (this.#left + (perSecond * this.#sinceSyncMs(nowMs)) / 1_000) - this.#taken;
    const forAllMs = (Math.max(0, overN) * 1_000) / perSecond;
    const forUsMs = spareN > 0 ? 0 : Math.max(1, (-spareN * 1_000) / (share * perSecond));
    return Math.max(forAllMs, forUsMs) < TOLERANCE_MS ? 0 : Math.max(forAllMs, forUsMs);
  }

  /** Tokens that are left for all. */
  remaining(nowMs: number): number {
    this.#refill(nowMs);
    return Math.max(0, Math.floor(this.size.burst - this.#debt));
  }

  /** Until the limit is full again. */
  fullInMs(nowMs: number): number {
    this.#refill(nowMs);
    return (this.#debt * 1_000) / this.size.perSecond;
  }

  /** Whether it need not be shared any more. */
  isOver(nowMs: number): boolean {
    this.#refill(nowMs);
    return this.#debt === 0 && nowMs - this.#askedAtMs > IDLE_MS;
  }

  /** Whether the others should be told now. */
  isDue(nowMs: number): boolean {
    this.#refill(nowMs);
    const { burst, perSecond } = this.size;
    const isTight = this.#debt > burst * TIGHT || this.#demandOfAll > perSecond * TIGHT;
    return this.#share === null || isTight || nowMs - this.#syncedAtMs >= SLACK_MS;
  }

  /** What this node tells the others; called once an interval. */
  own(nowMs: number): OwnDemand {
    this.#refill(nowMs);
    const rate = (this.#asked * 1_000) / Math.max(SHORTEST_MS, nowMs - this.#toldAtMs);
    this.#demand = this.#demand * (1 - NEWEST) + rate * NEWEST;
    this.#toldAtMs = nowMs;
    this.#asked = 0;
    return { used: this.#used, debt: this.#debt, demand: this.#demand };
  }

  /** Hears what the others take. */
  hear(others: readonly OtherDemand[], nowMs: number): void {
    this.#refill(nowMs);
    let demand = 0;
    for (const other of others) {
      this.#debt = Math.max(0, this.#debt + this.#newOf(other));
      this.#others.set(other.nodeId, other.used);
      if (other.ageMs < STALE_MS) demand += Math.max(LEAST_DEMAND, other.demand);
    }
    const own = Math.max(LEAST_DEMAND, this.#demand);
    this.#share = own / (own + demand);
    this.#demandOfAll = own + demand;
    this.#left = this.size.burst - this.#debt;
    this.#taken = 0;
    this.#syncedAtMs = nowMs;
  }

  /**
   * Tokens that another node has taken and this one did not know of. Of one that is new here no
   * more than what is not refilled: too many rather than too few, for the time of a refill.
   */
  #newOf({ nodeId, used, debt, ageMs }: OtherDemand): number {
    const known = this.#others.get(nodeId);
    if (known !== undefined) return used - known;
    const left = Math.max(0, debt - (ageMs * this.size.perSecond) / 1_000);
    return Math.min(used, left, Math.max(0, this.size.burst - this.#debt));
  }

  #shareAt(nowMs: number): number {
    const isKnown = this.#share !== null && nowMs - this.#syncedAtMs < SHARE_MS;
    return isKnown ? (this.#share ?? 1) : 1 / Math.max(1, this.#sharing.nodes);
  }

  /** Refills since the last news; without any for long, what was left then is used up. */
  #sinceSyncMs(nowMs: number): number {
    return Math.max(0, nowMs - this.#syncedAtMs);
  }

  #refill(nowMs: number): void {
    const tokens = (Math.max(0, nowMs - this.#atMs) * this.size.perSecond) / 1_000;
    this.#debt = Math.max(0, this.#debt - tokens);
    this.#atMs = nowMs;
  }
}

/** What a shared limit is made with. */
export interface SharedLimitParts {
  readonly size: RateLimitSize;
  readonly sharing: Pick<LimitSharing, "nodes">;
  readonly onStale: () => void;
}

/** Sums of parts are not exact. */
const TOLERANCE_MS = 1e-6;
