// The book of rate limits that several processes share: grants the tokens of each limit, and
// divides what is left by demand. Bounded: the limit that was not asked for longest is dropped.
import { setNewest } from "../newest.ts";
import { FULL_MS, type RateLimitSize, waitMs } from "./gcra.ts";
import type { TokenGrant, TokenRequest } from "./shared-limit.ts";

const MAX_LIMITS = 100_000;
/** A demand that was not met counts for this long. */
const DEMAND_MS = 1_000;

interface Demand {
  readonly wanted: number;
  readonly atMs: number;
}

interface BookEntry {
  fullAtMs: number;
  /** By process: what it wanted and was not granted; null = nothing. */
  unmet: Map<string, Demand> | null;
}

/** The book of a service. */
export class TokenBook {
  readonly #entries = new Map<string, BookEntry>();

  /** Limits in the book. */
  get size(): number {
    return this.#entries.size;
  }

  /** Grants tokens to a process. */
  grant(process: string, { scope, size, wanted, owed }: TokenRequest, nowMs: number): TokenGrant {
    const entry = this.#entryOf(scope);
    entry.fullAtMs = charged(entry.fullAtMs, owed, { size, nowMs });
    const left = Math.max(0, Math.floor(size.burst - debtOf(entry.fullAtMs, size, nowMs) + EXACT));
    entry.unmet?.delete(process);
    const others = wantedByOthers(entry, nowMs);
    const fair = others === 0 ? left : Math.ceil((left * wanted) / (wanted + others));
    const granted = Math.min(wanted, left, fair);
    entry.fullAtMs = charged(entry.fullAtMs, granted, { size, nowMs });
    if (granted < wanted) {
      entry.unmet ??= new Map();
      entry.unmet.set(process, { wanted, atMs: nowMs });
    }
    return {
      granted,
      waitMs: granted < wanted ? waitMs(entry.fullAtMs, size, nowMs) : 0,
      debt: debtOf(entry.fullAtMs, size, nowMs),
    };
  }

  #entryOf(scope: string): BookEntry {
    const entry = this.#entries.get(scope) ?? { fullAtMs: FULL_MS, unmet: null };
    setNewest(this.#entries, scope, entry, MAX_LIMITS);
    return entry;
  }
}

/** Forgets demands that are old. */
function wantedByOthers(entry: BookEntry, nowMs: number): number {
  if (entry.unmet === null) return 0;
  let sum = 0;
  for (const [process, { wanted, atMs }] of entry.unmet) {
    if (nowMs - atMs > DEMAND_MS) entry.unmet.delete(process);
    else sum += wanted;
  }
  if (entry.unmet.size === 0) entry.unmet = null;
  return sum;
}

/** When a limit is full that loses so many tokens; never later than that of an empty one. */
function charged(
  fullAtMs: number,
  tokens: number,
  { size, nowMs }: { readonly size: RateLimitSize; readonly nowMs: number },
): number {
  const stepMs = 1_000 / size.perSecond;
  const next = Math.max(fullAtMs, nowMs) + tokens * stepMs;
  return Math.min(next, nowMs + size.burst * stepMs);
}

function debtOf(fullAtMs: number, { perSecond }: RateLimitSize, nowMs: number): number {
  return (Math.max(0, fullAtMs - nowMs) * perSecond) / 1_000;
}

/** Sums of steps are not exact. */
const EXACT = 1e-6;
