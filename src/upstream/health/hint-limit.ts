// How often workers tell each other of providers: a provider that floods us with heads or refusals
// must not flood the other workers too.
import { FULL_MS, take } from "../../core/billing/gcra.ts";

/** Bounds what is told. */
export interface HintLimit {
  /** Whether a head of this set may be told. */
  head(set: string, nowMs: number): boolean;
  /** Whether this may be told: the same at most once a second. */
  hint(about: string, nowMs: number): boolean;
}

/** Far more than the providers of the fastest chain push together. */
const HEADS = { perSecond: 200, burst: 400 };
const HINTS = { perSecond: 1, burst: 1 };
const MAX_REMEMBERED = 4_096;

/** A limit that has not been used. */
export function createHintLimit(): HintLimit {
  const heads = new Map<string, number>();
  const hints = new Map<string, number>();
  return {
    head: (set, nowMs) => taken(heads, set, { size: HEADS, nowMs }),
    hint: (about, nowMs) => taken(hints, about, { size: HINTS, nowMs }),
  };
}

function taken(
  fullAtMs: Map<string, number>,
  key: string,
  { size, nowMs }: { readonly size: typeof HEADS; readonly nowMs: number },
): boolean {
  const after = take(fullAtMs.get(key) ?? FULL_MS, size, nowMs);
  if (after === null) return false;
  fullAtMs.delete(key);
  fullAtMs.set(key, after);
  for (const oldest of fullAtMs.keys()) {
    if (fullAtMs.size <= MAX_REMEMBERED) break;
    fullAtMs.delete(oldest);
  }
  return true;
}
