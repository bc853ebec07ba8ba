// Bounds that several processes share. Each process has a share of every bound, and shares follow
// the demand: four times a second a process writes its shares, their use and its demand into a
// book, reads the other entries, and moves towards a fair share. While the book cannot be reached,
// shares stay as they are. Does not know where the book is.
import { type HeldPart, nextShare } from "../core/workers/division.ts";
import type { OtherShare, ShareBook, ShareEntry } from "../core/workers/share-book.ts";
import type { Runtime } from "../runtime.ts";

/** What a share of a bound is used for. */
export interface ShareUse {
  /** How much is in use and cannot be given away now. */
  used(): number;
  /** How much would be in use if there were no bound. */
  wanted(): number;
  /** The share has changed. */
  changed?(): void;
}

/** This process's share of a bound. */
export interface Allowance {
  readonly limit: number;
  close(): void;
}

/** The shares of all bounds. */
export interface Shares {
  /** The share of a whole number; one use for each key. */
  of(key: string, total: number, use: ShareUse): Allowance;
}

/** The shares of a process that is the whole service. */
export const WHOLE_SHARES: Shares = { of: (_, total) => ({ limit: total, close() {} }) };

/** What shares work with. */
export interface LeasedSharesParts {
  readonly runtime: Pick<Runtime, "now" | "after" | "random">;
  /** Processes that may use a bound at any time: one that does not yet finds its part free. */
  readonly members?: number;
  /** The book cannot be reached; told once until it can. */
  readonly onError: (error: unknown) => void;
}

/** Between the starts of two rounds. */
const ROUND_MS = 250;
/** Least time from the end of a round to the start of the next one. */
const PAUSE_MS = 50;
/** From a round that failed to the next one. */
const FAILED_MS = 1_000;
/** Rounds are apart by up to this part more, so that processes do not keep step. */
const JITTER = 0.2;
/** Most bounds of one round. */
const MAX_SCOPES = 500;
/** Most bounds whose end waits to be written; of others the book is told by silence. */
const MAX_ENDED = 10_000;
/** After an outage of the book nothing is raised so long: others come back to it as well. */
const OUTAGE_GRACE_MS = 2_000;
/** What a process used that has left is over after this. */
const USED_MS = 1_100;
/** A demand that went down is forgotten by this part in a round. */
const FORGOTTEN_DEMAND = 0.2;
/** The longest wait of a start for its shares. */
const READY_MS = 2_000;

interface Held {
  readonly scope: string;
  readonly total: number;
  readonly use: ShareUse;
  share: number;
  /** Rises at once and falls slowly. */
  wanted: number;
  /** By process: its last entry, and when this process first read that entry. */
  seen: ReadonlyMap<string, Seen>;
}

interface Seen {
  readonly writtenAt: number;
  /** In time during which the book could be read. */
  readonly newAtMs: number;
}

/** A bound that is not used here any more, until that is written. */
interface Ended {
  readonly share: number;
  readonly used: number;
}

interface Joined {
  readonly book: ShareBook;
  readonly silentMs: number;
}

/** The shares of a process that is one of several; of nothing until it has joined. */
export class LeasedShares implements Shares {
  readonly #parts: LeasedSharesParts;
  readonly #held = new Map<string, Held>();
  readonly #ended = new Map<string, Ended>();
  #joined: Joined | null = null;
  #round: Promise<void> | null = null;
  #cancelTimer: (() => void) | null = null;
  readonly #waiters: (() => void)[] = [];
  /** Time during which the book could be read, and until when it is counted. */
  #readMs = 0;
  #readAtMs: number | null = null;
  #isFailing = false;
  #raisesFromMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(parts: LeasedSharesParts) {
    this.#parts = parts;
  }

  of(key: string, total: number, use: ShareUse): Allowance {
    const before = this.#ended.get(key);
    this.#ended.delete(key);
    const held: Held = {
      scope: key,
      total,
      use,
      share: Math.min(before?.share ?? 0, total),
      wanted: 0,
      seen: new Map(),
    };
    this.#held.set(key, held);
    this.#arm(0);
    return {
      get limit() {
        return held.share;
      },
      close: () => {
        if (this.#held.get(key) !== held) return;
        this.#held.delete(key);
        if (this.#ended.size < MAX_ENDED)
          this.#ended.set(key, { share: held.share, used: use.used() });
        held.share = 0;
        this.#arm(0);
      },
    };
  }

  /** Shares through a book from now on; what a process wrote that is silent so long is free. */
  join(book: ShareBook, silentMs: number): void {
    this.#joined = { book, silentMs };
    this.#arm(0);
  }

  /** Ends when there is a share of every bound, or soon after. */
  ready(): Promise<void> {
    if (this.#isReady()) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#parts.runtime.after(READY_MS, resolve);
      this.#waiters.push(() => {
        cancel();
        resolve();
      });
    });
  }

  /** Gives all shares back. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTimer?.();
    await this.#round;
    for (const [scope, held] of this.#held) {
      this.#ended.set(scope, { share: 0, used: held.use.used() });
      held.share = 0;
    }
    this.#held.clear();
    const scopes = [...this.#ended];
    this.#ended.clear();
    for (let at = 0; at < scopes.length; at += MAX_SCOPES)
      await this.#joined?.book.write(scopes.slice(at, at + MAX_SCOPES).map(endedEntry));
  }

  #isReady(): boolean {
    const { members = 1 } = this.#parts;
    return [...this.#held.values()].every(({ share, total }) => share > 0 || total < members);
  }

  #arm(ms: number): void {
    const joined = this.#joined;
    if (joined === null || this.#isClosed || this.#round !== null) return;
    this.#cancelTimer?.();
    this.#cancelTimer = this.#parts.runtime.after(ms, () => {
      this.#cancelTimer = null;
      if (this.#held.size + this.#ended.size > 0) this.#round = this.#turn(joined);
    });
  }

  async #turn(joined: Joined): Promise<void> {
    const { runtime, onError } = this.#parts;
    const startedAtMs = runtime.now();
    let waitMs = FAILED_MS;
    try {
      const hasLowered = await this.#run(joined);
      this.#isFailing = false;
      if (this.#isReady()) for (const resolve of this.#waiters.splice(0)) resolve();
      const tookMs = runtime.now() - startedAtMs;
      // Others wait for what this process does not use any more.
      waitMs = hasLowered ? PAUSE_MS : Math.max(PAUSE_MS, ROUND_MS - tookMs);
    } catch (error) {
      if (!this.#isFailing && !this.#isClosed) onError(error);
      this.#isFailing = true;
      this.#readAtMs = null;
    }
    this.#round = null;
    this.#arm(waitMs * (1 + JITTER * runtime.random()));
  }

  /** Returns whether a share was lowered. */
  async #run(joined: Joined): Promise<boolean> {
    const { book, silentMs } = joined;
    const ended = [...this.#ended].slice(0, MAX_SCOPES);
    const turn = [...this.#held.values()].slice(0, MAX_SCOPES - ended.length);
    for (const held of turn) {
      // Bounds that are left out of this round come first in the next round.
      this.#held.delete(held.scope);
      this.#held.set(held.scope, held);
      const wanted = held.use.wanted();
      held.wanted = Math.max(wanted, held.wanted + (wanted - held.wanted) * FORGOTTEN_DEMAND);
    }
    const others = await this.#write(book, ended, turn);
    this.#countRead();
    const raising: Held[] = [];
    let hasLowered = false;
    // A node that starts now has not seen those that are silent: their shares are freed for all.
    await book.remove(
      others.filter((other) => {
        const held = this.#held.get(other.scope);
        return held !== undefined && this.#isSilent(held, other, silentMs);
      }),
    );
    for (const [held, of] of this.#living(turn, others, silentMs)) {
      const next = this.#nextShareOf(held, of, book.process);
      if (next > held.share) raising.push(held);
      if (next >= held.share) continue;
      setShare(held, next);
      hasLowered = true;
    }
    if (raising.length > 0 && this.#parts.runtime.now() >= this.#raisesFromMs)
      await this.#raise(joined, raising);
    return hasLowered;
  }

  /** While a share is given back, a bound that is used here again begins without it. */
  async #write(
    book: ShareBook,
    ended: readonly (readonly [string, Ended])[],
    turn: readonly Held[],
  ): Promise<readonly OtherShare[]> {
    for (const [scope] of ended) this.#ended.delete(scope);
    try {
      return await book.write([...ended.map(endedEntry), ...turn.map(entryOf)]);
    } catch (error) {
      // It may have been written all the same: it is given back again, and not used again.
      for (const [scope, { used }] of ended)
        if (!this.#held.has(scope) && !this.#ended.has(scope))
          this.#ended.set(scope, { share: 0, used });
      throw error;
    }
  }

  async #raise({ book, silentMs }: Joined, raising: readonly Held[]): Promise<void> {
    const raised = await book.raise(
      raising.map(({ scope }) => scope),
      (now) =>
        this.#living(raising, now, silentMs).map(([held, of]) => ({
          ...entryOf(held),
          share: Math.max(held.share, this.#nextShareOf(held, of, book.process)),
        })),
    );
    for (const [at, held] of raising.entries()) {
      // One that was closed meanwhile has given its share back.
      const isHeld = this.#held.get(held.scope) === held;
      setShare(held, isHeld ? (raised?.[at]?.share ?? held.share) : held.share);
    }
  }

  #nextShareOf(held: Held, others: readonly OtherShare[], process: string): number {
    const own = { ...entryOf(held), process };
    const all = [own, ...others].sort((a, b) => (a.process < b.process ? -1 : 1));
    const absent = Math.max(0, (this.#parts.members ?? 1) - all.length);
    return nextShare(held.total, [...all, ...Array<HeldPart>(absent).fill(NO_PART)], own);
  }

  /** Counts the time since the last round as time in which the book could be read. */
  #countRead(): void {
    const nowMs = this.#parts.runtime.now();
    if (this.#readAtMs !== null) this.#readMs += Math.min(FAILED_MS, nowMs - this.#readAtMs);
    else if (this.#isFailing) this.#raisesFromMs = nowMs + OUTAGE_GRACE_MS;
    this.#readAtMs = nowMs;
  }

  #isSilent(held: Held, { process, writtenAt }: OtherShare, silentMs: number): boolean {
    const seen = held.seen.get(process);
    return seen?.writtenAt === writtenAt && this.#readMs - seen.newAtMs >= silentMs;
  }

  /** Bounds, each with the shares of the other living nodes. */
  #living(
    turn: readonly Held[],
    others: readonly OtherShare[],
    silentMs: number,
  ): readonly (readonly [Held, readonly OtherShare[]])[] {
    const byScope = Map.groupBy(others, ({ scope }) => scope);
    return turn.map((held) => {
      const of = byScope.get(held.scope) ?? [];
      held.seen = new Map(
        of.map(({ process, writtenAt }) => {
          const known = held.seen.get(process);
          const isNew = known?.writtenAt !== writtenAt;
          return [process, isNew ? { writtenAt, newAtMs: this.#readMs } : known];
        }),
      );
      return [
        held,
        of.filter(
          (other) =>
            !this.#isSilent(held, other, silentMs) &&
            (other.wanted !== null || other.ageMs < USED_MS),
        ),
      ];
    });
  }
}

/** Of a process that does not use a bound yet. */
const NO_PART: HeldPart = { share: 0, used: 0, wanted: 0 };

function entryOf({ scope, share, use, wanted }: Held): ShareEntry {
  return { scope, share, used: use.used(), wanted };
}

/** What is written of a bound that is used here no more. */
function endedEntry([scope, { used }]: readonly [string, Ended]): ShareEntry {
  return { scope, share: 0, used, wanted: null };
}

function setShare(held: Held, share: number): void {
  if (share === held.share) return;
  held.share = share;
  held.use.changed?.();
}
