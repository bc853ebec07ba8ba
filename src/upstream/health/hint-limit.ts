// How often workers tell each other of providers: a provider that floods us with heads or refusals
// must not flood the other workers too.
import { FULL_MS, take } from "../../core/billing/gcra.ts";

/** Far more than the providers of the fastest chain push together. */
const HEADS = { perSecond: 200, burst: 400 };
const HINTS = { perSecond: 1, burst: 1 };
const MAX_REMEMBERED = 4_096;

/** Bounds what is told. */
export class HintLimit {
  readonly #heads = new Map<string, number>();
  readonly #hints = new Map<string, number>();

  /** Whether a head of this set may be told. */
  head(set: string, nowMs: number): boolean {
    return taken(this.#heads, set, { size: HEADS, nowMs });
  }

  /** Whether this may be told: the same at most once a second. */
  hint(about: string, nowMs: number): boolean {
    return taken(this.#hints, about, { size: HINTS, nowMs });
  }
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
