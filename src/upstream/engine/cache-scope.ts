// What answers are kept for: one profile on one chain. Knows which providers' answers may still be
// given. A profile that is reloaded begins anew, since its providers may be others.
import type { Provider } from "../../core/provider/profile.ts";
import type { KnownBlocks } from "../health/known-blocks.ts";
import type { RoutingState } from "../health/tracker.ts";
import type { AnswerCache, ProviderTrust } from "./answer-cache.ts";

/** The kept answers of one profile on one chain. */
export class CacheScope {
  readonly cache: AnswerCache;
  readonly profileId: string;
  readonly chainName: string;
  /** What its tracker knows of blocks: kept answers are bound to these, also for other profiles. */
  readonly blocks: KnownBlocks;
  /** Begins every key. */
  readonly prefix: string;
  readonly #trust = new Map<string, ProviderTrust>();

  constructor(cache: AnswerCache, tracker: RoutingState, number: number) {
    this.cache = cache;
    this.profileId = tracker.profileId;
    this.chainName = tracker.set.chain.chainName;
    this.blocks = tracker.blocks;
    this.prefix = `${number.toString(36)} `;
    tracker.attend({
      changed: ({ provider, event }) => {
        if (event === "cordoned") this.purge(provider.id);
      },
    });
  }

  trustOf({ id }: Provider): ProviderTrust {
    const known = this.#trust.get(id);
    if (known !== undefined) return known;
    const trust = { trusted: true };
    this.#trust.set(id, trust);
    return trust;
  }

  /** What this provider has answered is given no more; null = what any has. */
  purge(providerId: string | null): void {
    for (const [id, trust] of this.#trust) {
      if (providerId !== null && id !== providerId) continue;
      trust.trusted = false;
      this.#trust.delete(id);
    }
  }
}
