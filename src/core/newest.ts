// Bounds of maps and sets that remember the newest entries. Knows nothing of what they hold.

/** Drops the oldest entries of a map or set, until it has at most so many. */
export function keepNewest<K>(
  kept: { readonly size: number; keys(): Iterable<K>; delete(key: K): unknown },
  most: number,
): void {
  if (kept.size <= most) return;
  for (const oldest of kept.keys()) {
    if (kept.size <= most) return;
    kept.delete(oldest);
  }
}

/** Sets an entry as the newest one of a map that has at most so many. */
export function setNewest<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  keepNewest(map, most);
}
