// The newest blocks that callers have seen, by caller and chain: what `consistency: caller` never
// undercuts. Kept for as long as a caller is known: a connection until it closes, a key among the
// last ones that called. Decides nothing about calls.
import type { SeenBlock } from "../../core/routing/seen.ts";
import type { Tracker } from "../../upstream/health/tracker.ts";

type MarkedChain = Pick<Tracker, "profileId" | "set" | "blocks">;

/** Most chains of one caller that are remembered. */
const MAX_CHAINS = 64;
/** Most keys that are remembered. */
const MAX_KEYS = 10_000;

/** The newest blocks that one caller has seen. */
export class SeenBlocks {
  readonly #blocks = new Map<string, SeenBlock>();

  /** The newest block of a chain that the caller has seen and that is still in it; null = none. */
  of(chain: MarkedChain): SeenBlock | null {
    const key = keyOf(chain);
    const mark = this.#blocks.get(key);
    if (mark === undefined) return null;
    if (!isAbandoned(chain, mark)) return mark;
    this.#blocks.delete(key);
    return null;
  }

  /** The caller has seen a block. */
  see(chain: MarkedChain, block: SeenBlock): void {
    const known = this.of(chain);
    if (known !== null && known.number >= block.number) return;
    setNewest(this.#blocks, keyOf(chain), block, MAX_CHAINS);
  }
}

/** Whether an agreed reorganisation has left a block. */
export function isAbandoned({ blocks }: MarkedChain, { number, hash }: SeenBlock): boolean {
  const served = blocks.view.hashAt(number);
  return served !== null && hash !== null && served !== hash;
}

/** The marks of the callers of one process. */
export class SeenByCallers {
  readonly #keys = new Map<string, SeenBlocks>();
  readonly #connections = new WeakMap<object, SeenBlocks>();

  ofKey(keyId: string): SeenBlocks {
    const marks = this.#keys.get(keyId) ?? new SeenBlocks();
    setNewest(this.#keys, keyId, marks, MAX_KEYS);
    return marks;
  }

  /** Of a caller without a key: by its connection. */
  ofConnection(connection: object): SeenBlocks {
    const known = this.#connections.get(connection);
    if (known !== undefined) return known;
    const marks = new SeenBlocks();
    this.#connections.set(connection, marks);
    return marks;
  }
}

function keyOf({ profileId, set }: MarkedChain): string {
  return `${profileId} ${set.chain.chainName}`;
}

/** Sets an entry as the last one used; the one used longest ago makes room for it. */
function setNewest<V>(map: Map<string, V>, key: string, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= most) return;
    map.delete(oldest);
  }
}
