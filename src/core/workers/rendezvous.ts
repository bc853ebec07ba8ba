// Rendezvous hashing: which of several candidates a key belongs to. When a candidate leaves, only
// its own keys move.

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** The candidate that a key belongs to; null = there are no candidates. */
export function ownerAmong(candidates: readonly string[], key: string): string | null {
  let owner: string | null = null;
  let best = -1;
  for (const candidate of candidates) {
    const weight = weightOf(candidate, key);
    if (weight < best || (weight === best && owner !== null && candidate > owner)) continue;
    best = weight;
    owner = candidate;
  }
  return owner;
}

/** FNV-1a over both texts, then mixed: FNV alone hardly changes with the last characters. */
function weightOf(candidate: string, key: string): number {
  let hash = FNV_OFFSET;
  for (const text of [candidate, "\0", key])
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), FNV_PRIME);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
