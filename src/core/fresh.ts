// Whether something that began at a time still holds. If the time lies in the future, the clock has
// jumped back: then it counts as over, so that nothing holds forever.

/** Whether less than `forMs` has passed; undefined = it never began. */
export function isFresh(atMs: number | undefined, forMs: number, nowMs: number): boolean {
  return atMs !== undefined && nowMs >= atMs && nowMs - atMs < forMs;
}

/** Milliseconds that are left of `forMs`; 0 = none. */
export function leftMs(sinceMs: number, forMs: number, nowMs: number): number {
  return nowMs < sinceMs ? 0 : Math.max(0, forMs - (nowMs - sinceMs));
}
