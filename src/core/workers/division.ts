// How a bound of the whole service is divided between its processes. Pure.

/**
 * Divides a whole number by demand: no process gets more than it wants while another gets less than
 * it wants, and the rest is spread evenly. Everybody gets one, if there is one for each.
 */
export function divided(total: number, wanted: readonly number[]): readonly number[] {
  const parts = wanted.map(() => 0);
  let left = total;
  const give = (hungry: readonly number[], most: (index: number) => number): void => {
    let open = hungry;
    while (left > 0 && open.length > 0) {
      const each = Math.max(1, Math.floor(left / open.length));
      for (const index of open) {
        const more = Math.min(each, left, most(index) - (parts[index] ?? 0));
        parts[index] = (parts[index] ?? 0) + more;
        left -= more;
      }
      open = open.filter((index) => (parts[index] ?? 0) < most(index));
    }
  };
  const all = wanted.map((_, index) => index);
  give(all, (index) => Math.max(total < all.length ? 0 : 1, Math.ceil(wanted[index] ?? 0)));
  give(all, () => total);
  return parts;
}

/** The share of one process in a bound, as other processes read it. */
export interface HeldPart {
  /** What it may use. */
  readonly share: number;
  /** In use: more than the share for a while, where that was lowered. */
  readonly used: number;
  /** What it would use if there were no bound; null = it has left. */
  readonly wanted: number | null;
}

/** Shares that are off by less than this part of the bound stay as they are. */
const TOLERATED = 0.04;

/**
 * The next share of one of the processes, each of which decides for itself alone. It may lower its
 * share at any time; a share is raised by one process at a time, so that shares and uses never add
 * up to more than `total`.
 */
export function nextShare(total: number, parts: readonly HeldPart[], own: HeldPart): number {
  const { share } = own;
  const sharing = parts.filter(({ wanted }) => wanted !== null);
  const targets = divided(
    total,
    sharing.map(({ wanted }) => wanted ?? 0),
  );
  const target = targets[sharing.indexOf(own)] ?? 0;
  if (target >= share) {
    const others = parts.filter((part) => part !== own);
    const left = total - sumOf(others, (part) => Math.max(part.share, part.used));
    return Math.max(share, Math.min(target, left));
  }
  if (sumOf(parts, (part) => part.share) > total) return target;
  const isStarving = sharing.some((part, at) => part.share * 2 < (targets[at] ?? 0));
  const isShort = sharing.some((part) => (part.wanted ?? 0) > part.share);
  const tolerated = Math.max(1, Math.floor(total * TOLERATED));
  return isStarving || (isShort && share - target >= tolerated) ? target : share;
}

function sumOf<T>(parts: readonly T[], amountOf: (part: T) => number): number {
  return parts.reduce((sum, part) => sum + amountOf(part), 0);
}
