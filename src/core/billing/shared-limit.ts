// One process's part of a rate limit that several processes share: the tokens it was granted and
// has not spent. One book has all tokens of a limit, so that together the processes never take more
// than the limit allows. Knows no clock and not where the book is.
import { FULL_MS, type RateLimitSize, take, waitMs } from "./gcra.ts";

/** What a process asks the book for. */
export interface TokenRequest {
  /** The limit and its holder. */
  readonly scope: string;
  readonly size: RateLimitSize;
  readonly wanted: number;
  /** Tokens that were taken without a grant; negative = granted ones that nobody needed. */
  readonly owed: number;
}

/** What the book answers. */
export interface TokenGrant {
  readonly granted: number;
  /** Until there is another token, where less was granted than was wanted. */
  readonly waitMs: number;
  /** Tokens of the limit that are granted and not refilled yet. */
  readonly debt: number;
}

/** Asks the book; one answer for each ask, in their order. */
export type RequestTokens = (requests: readonly TokenRequest[]) => Promise<readonly TokenGrant[]>;

/** The port to the book. */
export interface LimitSharing {
  /** Processes that may take of a limit, this one included. */
  readonly nodes: number;
  /**
   * Shares a limit from now on, of which `owed` tokens are taken here; null = too many are shared:
   * this process keeps to an equal part.
   */
  begin(scope: string, size: RateLimitSize, start: LimitStart): SharedLimit | null;
  /** Has the book asked for a limit soon. */
  due(limit: SharedLimit): void;
  /**
   * Calls back once when the book has answered or cannot be reached; the returned function cancels.
   */
  wait(limit: SharedLimit, run: () => void): () => void;
}

/** Where a limit stands when it begins to be shared. */
export interface LimitStart {
  readonly owed: number;
  readonly nowMs: number;
}

/** How long tokens that are asked for ahead should last. */
const AHEAD_S = 0.4;
/** Most tokens that all processes have ahead of need, as a part of the burst. */
const MOST_AHEAD = 0.25;
/** Below this part of what was granted, more is asked for. */
const LOW_WATER = 1 / 3;
/** How much the newest interval counts in the demand. */
const NEWEST = 0.5;
/** Calls within less time than this say little of a rate. */
const SHORTEST_MS = 100;
/** Without tokens the book is asked again after this, or when half a burst is refilled. */
const REFUSED_MS = 250;
const SHORTEST_REFUSED_MS = 10;
/** Tokens that were not used for this long are given back. */
const KEPT_MS = 1_000;
/** Without a request for this long a limit is not shared any more. */
const IDLE_MS = 10_000;
/** For how long a process keeps to an equal part when the book does not answer. */
const ALONE_MS = 1_000;

/** An equal part of a limit. */
export function equalPartOf({ perSecond, burst }: RateLimitSize, nodes: number): RateLimitSize {
  return { perSecond: perSecond / nodes, burst: Math.max(1, Math.floor(burst / nodes)) };
}

/** A shared limit. A class because it has an identity and changes with each call. */
export class SharedLimit {
  readonly scope: string;
  readonly size: RateLimitSize;
  /** Not shared any more: another one has to begin. */
  isEnded = false;
  readonly #sharing: Pick<LimitSharing, "nodes" | "due">;
  #tokens = 0;
  #lowWater = 0;
  #owed: number;
  /** Calls since the book was asked. */
  #asked = 0;
  #demand = 0;
  #askedAtMs: number;
  #usedAtMs: number;
  #wanted = 0;
  #refusedUntilMs = Number.NEGATIVE_INFINITY;
  /** The debt that the book told of, and when. */
  #debt: number;
  #toldAtMs: number;
  /** Until when the book counts as out of reach, and the state of the equal part. */
  #aloneUntilMs = Number.NEGATIVE_INFINITY;
  #aloneFullAtMs = FULL_MS;

  constructor(
    scope: string,
    size: RateLimitSize,
    sharing: Pick<LimitSharing, "nodes" | "due">,
    { owed, nowMs }: LimitStart,
  ) {
    this.scope = scope;
    this.size = size;
    this.#sharing = sharing;
    this.#owed = owed;
    this.#debt = owed;
    this.#askedAtMs = nowMs;
    this.#usedAtMs = nowMs;
    this.#toldAtMs = nowMs;
  }

  /**
   * Takes a token. Returns 0; or after how many milliseconds there may be one; or "wait" = the book
   * has to be asked first. `isFinal` = the call has waited: then it gets one of an equal part.
   */
  take(nowMs: number, isFinal: boolean): number | "wait" {
    this.#asked++;
    this.#usedAtMs = nowMs;
    if (this.#tokens > 0) {
      this.#tokens--;
      if (this.#tokens < this.#lowWater && nowMs >= this.#refusedUntilMs) this.#sharing.due(this);
      return 0;
    }
    if (nowMs < this.#refusedUntilMs) return Math.max(1, this.#refusedUntilMs - nowMs);
    if (nowMs < this.#aloneUntilMs) return this.#takeAlone(nowMs);
    this.#sharing.due(this);
    if (!isFinal) return "wait";
    const afterMs = this.#takeAlone(nowMs);
    if (afterMs === 0) this.#owed++;
    return afterMs;
  }

  /** Whether a call would have to wait for the book, which is asked. */
  isUnknown(nowMs: number): boolean {
    if (this.#tokens > 0 || nowMs < this.#refusedUntilMs || nowMs < this.#aloneUntilMs)
      return false;
    this.#sharing.due(this);
    return true;
  }

  /** Tokens that are left for all, as far as this process knows. */
  remaining(nowMs: number): number {
    return Math.max(0, Math.floor(this.size.burst - this.#debtAt(nowMs)));
  }

  /** Until the limit is full again. */
  fullInMs(nowMs: number): number {
    return (this.#debtAt(nowMs) * 1_000) / this.size.perSecond;
  }

  /** Whether it has tokens that nobody needs. */
  hasIdleTokens(nowMs: number): boolean {
    return this.#tokens > 0 && nowMs - this.#usedAtMs >= KEPT_MS;
  }

  /** Whether it need not be shared any more. */
  isIdle(nowMs: number): boolean {
    return this.#tokens === 0 && this.#owed === 0 && nowMs - this.#usedAtMs >= IDLE_MS;
  }

  /** What to ask the book for, with so many calls that wait. */
  request(nowMs: number, waiting: number): TokenRequest {
    const rate = (this.#asked * 1_000) / Math.max(SHORTEST_MS, nowMs - this.#askedAtMs);
    this.#demand = this.#demand * (1 - NEWEST) + rate * NEWEST;
    this.#askedAtMs = nowMs;
    this.#asked = 0;
    const { scope, size } = this;
    if (this.hasIdleTokens(nowMs) && waiting === 0) {
      this.#owed -= this.#tokens;
      this.#tokens = 0;
    }
    const isIdle = waiting === 0 && nowMs - this.#usedAtMs >= KEPT_MS;
    const most = Math.ceil((size.burst * MOST_AHEAD) / Math.max(1, this.#sharing.nodes));
    const ahead = isIdle ? 0 : Math.min(most, Math.ceil(this.#demand * AHEAD_S));
    const owed = this.#owed;
    this.#owed = 0;
    this.#wanted = Math.min(size.burst, Math.max(0, waiting + ahead - this.#tokens));
    return { scope, size, wanted: this.#wanted, owed };
  }

  /** Takes the answer of the book. */
  answer({ granted, waitMs: afterMs, debt }: TokenGrant, nowMs: number): void {
    this.#tokens += granted;
    this.#lowWater = Math.max(1, this.#tokens * LOW_WATER);
    this.#debt = debt;
    this.#toldAtMs = nowMs;
    this.#aloneUntilMs = Number.NEGATIVE_INFINITY;
    const { burst, perSecond } = this.size;
    const pauseMs = Math.min(REFUSED_MS, (burst * 500) / perSecond);
    this.#refusedUntilMs =
      granted < this.#wanted
        ? nowMs + Math.max(SHORTEST_REFUSED_MS, pauseMs, Math.min(afterMs, REFUSED_MS))
        : Number.NEGATIVE_INFINITY;
  }

  /** The book did not answer. */
  failed(nowMs: number): void {
    this.#aloneUntilMs = nowMs + ALONE_MS;
  }

  #takeAlone(nowMs: number): number {
    const part = equalPartOf(this.size, Math.max(1, this.#sharing.nodes));
    const next = take(this.#aloneFullAtMs, part, nowMs);
    if (next === null) return Math.max(1, waitMs(this.#aloneFullAtMs, part, nowMs));
    this.#aloneFullAtMs = next;
    return 0;
  }

  /** Tokens that are granted here are left for callers. */
  #debtAt(nowMs: number): number {
    const refilled = (Math.max(0, nowMs - this.#toldAtMs) * this.size.perSecond) / 1_000;
    return Math.max(0, this.#debt - refilled - this.#tokens + this.#owed);
  }
}
