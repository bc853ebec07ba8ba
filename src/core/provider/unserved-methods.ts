// Methods outside the method table that a provider said it does not serve, by name. Names come from
// callers, so both maps are bounded. Names that no provider ever served go to a small map of their
// own, and never displace names that some provider serves. Knows no clock.
import { isFresh } from "../fresh.ts";
import { setNewest } from "../newest.ts";
import { FACT_MS } from "./capability.ts";

/**
 * The unserved methods of one provider: name to the time (ms) of its last refusal. Changed in place
 * by the functions below.
 */
export class UnservedMethods {
  /** Names that another provider serves. */
  readonly real = new Map<string, number>();
  /** Names that no provider is known to serve. */
  readonly doubtful = new Map<string, number>();
}

/**
 * Methods outside the table that some provider of a set served, with the time (ms) of the last
 * answer.
 */
export type ServedNames = Map<string, number>;

const MAX_REAL = 128;
const MAX_DOUBTFUL = 32;
const MAX_SERVED = 256;
/** Longer names are not remembered. */
const MAX_NAME_CHARS = 96;

/** Learns that a provider does not serve a method. */
export function learnUnserved(
  unserved: UnservedMethods,
  served: ServedNames,
  name: string,
  learnedAtMs: number,
): void {
  if (name.length > MAX_NAME_CHARS) return;
  const names = served.has(name) ? unserved.real : unserved.doubtful;
  const atMs = Math.max(names.get(name) ?? Number.NEGATIVE_INFINITY, learnedAtMs);
  setNewest(names, name, atMs, names === unserved.real ? MAX_REAL : MAX_DOUBTFUL);
}

/** Records that a provider served a method. True = no provider of the set had before. */
export function noteServed(served: ServedNames, name: string, nowMs: number): boolean {
  if (name.length > MAX_NAME_CHARS) return false;
  const isNew = !served.has(name);
  setNewest(served, name, nowMs, MAX_SERVED);
  return isNew;
}

/** Forgets that a provider does not serve a method, after it did. */
export function unlearnUnserved({ real, doubtful }: UnservedMethods, name: string): void {
  real.delete(name);
  doubtful.delete(name);
}

/** Moves a name to the larger map after another provider served it. */
export function confirmUnserved({ real, doubtful }: UnservedMethods, name: string): void {
  const atMs = doubtful.get(name);
  if (atMs === undefined) return;
  doubtful.delete(name);
  setNewest(real, name, atMs, MAX_REAL);
}

/** Whether a provider said within the last ten minutes that it does not serve a method. */
export function isUnserved(
  { real, doubtful }: UnservedMethods,
  name: string,
  nowMs: number,
): boolean {
  return isFresh(real.get(name) ?? doubtful.get(name), FACT_MS, nowMs);
}

/** The methods that other providers serve and this one does not. */
export function unservedNames({ real }: UnservedMethods, nowMs: number): readonly string[] {
  return [...real].filter(([, atMs]) => isFresh(atMs, FACT_MS, nowMs)).map(([name]) => name);
}
