// What the command palette finds: every word of the query must occur; what begins with it comes
// first. Pure.

/** What is found, in the order in which kinds are listed when all else is equal. */
export const KINDS = ["Request", "Page", "Action", "Chain", "Provider", "Key"] as const;

/** Something to go to or to do. */
export interface PaletteItem {
  readonly kind: (typeof KINDS)[number];
  readonly title: string;
  /** What tells it from others of the same title; "" = nothing. */
  readonly note: string;
  /** A path of the console, or what is done. */
  readonly does: string | (() => void);
}

const MAX_SHOWN = 50;

interface Found {
  /** The best ones. */
  readonly items: readonly PaletteItem[];
  /** How many more there are. */
  readonly left: number;
}

/** The items that a query finds, the best first. */
export function searchItems(items: readonly PaletteItem[], query: string): Found {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const id = requestIdIn(query);
  const asked: readonly PaletteItem[] =
    id === null
      ? []
      : [{ kind: "Request", title: id, note: "Find its call", does: `/requests?id=${id}` }];
  const ranked = items
    .map((item) => ({ item, rank: rankOf(item, words) }))
    .filter(({ rank }) => rank !== null)
    .toSorted(
      (one, other) =>
        Number(one.rank) - Number(other.rank) ||
        KINDS.indexOf(one.item.kind) - KINDS.indexOf(other.item.kind),
    )
    .map(({ item }) => item);
  const found = [...asked, ...ranked];
  return { items: found.slice(0, MAX_SHOWN), left: Math.max(0, found.length - MAX_SHOWN) };
}

const REQUEST_ID = /^\s*(?:x-svc-request-id:\s*)?(req-[0-9a-z]{1,20}(?:-[0-9a-z]{1,12}){0,3})\s*$/i;

/** The id of a request that a text is, with or without the name of its header. */
export function requestIdIn(text: string): string | null {
  return REQUEST_ID.exec(text)?.[1]?.toLowerCase() ?? null;
}

/** How well an item matches, 0 = best; null = a word does not occur. */
function rankOf({ kind, title, note }: PaletteItem, words: readonly string[]): number | null {
  let sum = 0;
  for (const word of words) {
    const rank = Math.min(rankIn(title, word), 3 + rankIn(`${kind} ${note}`, word));
    if (rank === Number.POSITIVE_INFINITY) return null;
    sum += rank;
  }
  return sum;
}

function rankIn(text: string, word: string): number {
  const lower = text.toLowerCase();
  if (lower === word) return 0;
  if (lower.startsWith(word)) return 1;
  const at = lower.indexOf(word);
  if (at < 0) return Number.POSITIVE_INFINITY;
  return /[a-z0-9]/.test(lower[at - 1] ?? "") ? 3 : 2;
}
