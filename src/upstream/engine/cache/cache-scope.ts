// What answers are kept for: one profile on one chain. Knows which providers' answers may still be
// given. A profile that is reloaded begins anew, since its providers may be others.
import type { Provider } from "../../../core/provider/profile.ts";
import type { KnownBlocks } from "../../health/known-blocks.ts";
import type { Tracker } from "../../health/tracker.ts";
import type { SecondTier, TierScope } from "../../second-tier/second-tier.ts";
import type { AnswerCache } from "./answer-cache.ts";
import type { ProviderTrust } from "./answer-slots.ts";

/** Which kept answers of a scope to remove; null = any. */
export interface ScopeSelection {
  readonly provider: string | null;
  readonly method: string | null;
}

/** Where the answers of a scope are kept. */
export interface ScopeParts {
  readonly cache: AnswerCache;
  /** Numbers the methods of all scopes. */
  readonly nextSpace: () => number;
  /** Null = in memory alone. */
  readonly tier: SecondTier | null;
}

/** The kept answers of one profile on one chain. */
export class CacheScope {
  readonly cache: AnswerCache;
  readonly profileId: string;
  readonly chainName: string;
  /** What its tracker knows of blocks: kept answers are bound to these, also for other profiles. */
  readonly blocks: KnownBlocks;
  /** What it is in the second tier; null = its answers are kept in memory alone. */
  readonly tierScope: TierScope | null;
  /** Counts removals: what was asked for before one is not kept after it. */
  purges = 0;
  /** By method. */
  readonly #spaces = new Map<string, number>();
  readonly #nextSpace: () => number;
  /** By provider and method. */
  readonly #trust = new Map<string, ProviderTrust>();

  constructor(tracker: Tracker, { cache, nextSpace, tier }: ScopeParts) {
    this.cache = cache;
    this.profileId = tracker.profileId;
    this.chainName = tracker.set.chain.chainName;
    this.blocks = tracker.blocks;
    this.#nextSpace = nextSpace;
    const tierScope =
      tier === null || isCustom(tracker.profileId) ? null : tier.scopeOf(described(tracker));
    this.tierScope = tierScope;
    tracker.attend({
      changed: ({ provider, event }) => {
        if (event !== "cordoned") return;
        this.purge({ provider: provider.id, method: null });
        if (tier !== null && tierScope !== null) void tier.purge([tierScope]);
      },
    });
  }

  /** The number under which answers to a method are kept, unlike that of any other scope. */
  spaceOf(method: string): number {
    const known = this.#spaces.get(method);
    if (known !== undefined) return known;
    const space = this.#nextSpace();
    this.#spaces.set(method, space);
    return space;
  }

  trustOf(provider: Provider, method: string): ProviderTrust {
    const key = `${provider.id}\n${method}`;
    const known = this.#trust.get(key);
    if (known !== undefined) return known;
    const trust = { provider, trusted: true };
    this.#trust.set(key, trust);
    return trust;
  }

  /** What is kept in memory of these is given no more. */
  purge({ provider, method }: ScopeSelection): void {
    this.purges += 1;
    for (const [key, trust] of this.#trust) {
      const [ofProvider, ofMethod] = key.split("\n");
      if (provider !== null && ofProvider !== provider) continue;
      if (method !== null && ofMethod !== method) continue;
      trust.trusted = false;
      this.#trust.delete(key);
    }
  }
}

/** The id of a profile of an account names the account. */
export function isCustom(profileId: string): boolean {
  return profileId.includes("/");
}

/** The same on every node that asks the same providers for the same profile and chain. Secret. */
function described({ profileId, set }: Tracker): unknown {
  const providers = set.providers.map(({ id, url, wsUrl, headers }) => [
    id,
    url,
    wsUrl,
    Object.entries(headers).sort(),
  ]);
  return [profileId, set.chain.chainId, providers.sort()];
}
