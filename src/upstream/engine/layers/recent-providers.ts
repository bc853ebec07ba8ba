// Who has told of blocks and transactions near the served tip: for a few blocks another provider's
// `null` says nothing against it, and the one who told is asked again.
import type { Chain } from "../../../core/provider/chain.ts";

/** A provider that told of a block or transaction. */
interface RecentProvider {
  readonly id: string;
  readonly untilMs: number;
}

const MAX_ANSWERS = 4_096;
/** For so many blocks it is remembered, within these bounds. */
const BLOCKS = 5;
const LEAST_MS = 2_000;
const MOST_MS = 60_000;
/** Of the block that was told, from the served tip: as deep as reorganisations usually go. */
const MAX_BLOCKS_BELOW = 8;
/** A block further above the served tip is none that a provider can have. */
const MAX_BLOCKS_ABOVE = 16;

/** Whether a block is near enough to the served tip. */
export function isRecent(block: number, tip: number): boolean {
  return block >= tip - MAX_BLOCKS_BELOW && block <= tip + MAX_BLOCKS_ABOVE;
}

/** What was told in one provider set, by request. */
export class RecentProviders {
  readonly #answers = new Map<string, RecentProvider>();

  /** A provider has told of a block or transaction. */
  add(key: string, id: string, { blockTimeMs }: Chain, nowMs: number): void {
    const forMs = Math.min(MOST_MS, Math.max(LEAST_MS, BLOCKS * blockTimeMs));
    this.#answers.delete(key);
    this.#answers.set(key, { id, untilMs: nowMs + forMs });
    for (const oldest of this.#answers.keys()) {
      if (this.#answers.size <= MAX_ANSWERS) break;
      this.#answers.delete(oldest);
    }
  }

  /** The id of the provider that told; null = nobody did lately. */
  providerOf(key: string, nowMs: number): string | null {
    const answer = this.#answers.get(key);
    return answer === undefined || nowMs >= answer.untilMs ? null : answer.id;
  }
}
