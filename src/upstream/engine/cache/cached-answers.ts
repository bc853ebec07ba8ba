// The cache of the service: one memory for the profiles of the operator, and a bounded one for each
// account with Custom profiles, whose providers others must not believe.

import { keepNewest, setNewest } from "../../../core/newest.ts";
import type { Provider } from "../../../core/provider/profile.ts";
import { type CacheSettings, isFinal, isStillTrue } from "../../../core/routing/cache-terms.ts";
import type { Method } from "../../../core/rpc/method.ts";
import type { KnownBlocks } from "../../health/known-blocks.ts";
import type { Tracker } from "../../health/tracker.ts";
import type { BufferPool } from "../../http/buffer-pool.ts";
import type { SecondTier } from "../../second-tier/second-tier.ts";
import type { TierScope } from "../../second-tier/stored-answer.ts";
import { AnswerCache, type KeptAnswer } from "./answer-cache.ts";
import type { AnswerKey, ProviderTrust } from "./answer-segment.ts";

/** Which kept answers to remove; null = any. */
export interface PurgeSelection extends ScopeSelection {
  readonly profile: string | null;
  /** The name of a chain. */
  readonly chain: string | null;
}

/** What the cache holds and has done. */
export type CacheReport = ReturnType<CachedAnswers["report"]>;

/** Kept answers, by what they are kept for. */
export class CachedAnswers {
  /** Null = nothing is kept. */
  readonly settings: () => CacheSettings | null;
  readonly #shared: AnswerCache;
  /** By account, in the order of their use. */
  readonly #accounts = new Map<string, AnswerCache>();
  readonly #scopes = new WeakMap<Tracker, CacheScope>();
  /** The scope of a profile on a chain as it is served now. */
  readonly #byName = new Map<string, CacheScope>();
  #spaces = 0;
  #abandoned = 0;

  /** Null = answers are kept in memory alone. */
  readonly secondTier: SecondTier | null;
  /** Memory that answers are given in; null = each is given in its own. */
  readonly buffers: BufferPool | null;

  constructor(
    settings: () => CacheSettings | null,
    secondTier: SecondTier | null = null,
    buffers: BufferPool | null = null,
  ) {
    this.settings = settings;
    this.secondTier = secondTier;
    this.buffers = buffers;
    this.#shared = new AnswerCache(() => settings()?.maxBytes ?? 0);
  }

  /** Whether answers to a method are kept for the calls of a profile. */
  isOn({ set, profileId }: Tracker, method: Method): boolean {
    const settings = this.settings();
    if (settings === null || method.cache === null || set.cache?.isOn === false) return false;
    if (isCustom(profileId) && settings.accountMaxBytes === 0) return false;
    return settings.methods.get(method.name) !== 0;
  }

  scopeOf(tracker: Tracker): CacheScope {
    const known = this.#scopes.get(tracker);
    if (known !== undefined) return known;
    const { profileId } = tracker;
    const cache = isCustom(profileId) ? this.#accountOf(profileId) : this.#shared;
    const nextSpace = (): number => ++this.#spaces;
    const scope = new CacheScope(tracker, cache, nextSpace, this.secondTier);
    this.#scopes.set(tracker, scope);
    // In place of one that is served no more.
    this.#byName.get(tracker.key)?.purge({ provider: null, method: null });
    setNewest(this.#byName, tracker.key, scope, MAX_NAMED);
    return scope;
  }

  /** The scope of another profile of the operator on the same chain; null = it has none yet. */
  sharedWith(profile: string, chainName: string): CacheScope | null {
    return this.#byName.get(`${profile} ${chainName}`) ?? null;
  }

  /**
   * Removes answers, and says whether the second tier did so too. The second tier knows only
   * profiles and chains: it removes all answers of them.
   */
  purge({ profile, chain, ...selection }: PurgeSelection): Promise<boolean> {
    const tierScopes: TierScope[] = [];
    for (const scope of this.#byName.values()) {
      if (profile !== null && scope.profileId !== profile) continue;
      if (chain !== null && scope.chainName !== chain) continue;
      scope.purge(selection);
      if (scope.tierScope !== null) tierScopes.push(scope.tierScope);
    }
    return this.secondTier?.purge(tierScopes) ?? Promise.resolve(true);
  }

  /** Removes the answers of chains that are served no more from memory. */
  forgetChains(names: ReadonlySet<string>): void {
    for (const [key, scope] of this.#byName) {
      if (!names.has(scope.chainName)) continue;
      scope.purge({ provider: null, method: null });
      this.#byName.delete(key);
    }
  }

  /** The kept answer of a scope that is still valid for the blocks that the scope knows. */
  find({ cache, blocks }: CacheScope, key: AnswerKey, nowMs: number): KeptAnswer | null {
    const kept = cache.get(key);
    if (kept === null) return null;
    const { trust, endsAtMs, askedAtMs, guard, class: kind } = kept.facts;
    if (trust.trusted && nowMs < endsAtMs && nowMs >= askedAtMs) {
      if (guard === null) return kept;
      const isTrue = isStillTrue(kept.facts, blocks);
      if (isTrue && (kind !== "block" || !isFinal(guard.number, blocks))) return kept;
      if (isTrue && guard.settles)
        return cache.describe(kept, { ...kept.facts, class: "immutable", guard: null });
      if (!isTrue && kind !== "head") this.#abandoned += 1;
    }
    cache.withdraw(kept);
    return null;
  }

  report() {
    const caches = [this.#shared, ...this.#accounts.values()];
    const sum = (read: (cache: AnswerCache) => number): number =>
      caches.reduce((total, cache) => total + read(cache), 0);
    return {
      bytes: sum(({ bytes }) => bytes),
      maxBytes: this.settings()?.maxBytes ?? 0,
      entries: sum(({ size }) => size),
      /** Removed to make room. */
      evicted: sum(({ evicted }) => evicted),
      /** Removed because their block was abandoned. */
      abandoned: this.#abandoned,
      /** Null = there is no second tier. */
      secondTier: this.secondTier?.report() ?? null,
    };
  }

  /** The cache of an account. A new one replaces the cache of the account served longest ago. */
  #accountOf(profileId: string): AnswerCache {
    const account = profileId.slice(0, profileId.indexOf("/"));
    const cache =
      this.#accounts.get(account) ?? new AnswerCache(() => this.settings()?.accountMaxBytes ?? 0);
    this.#accounts.delete(account);
    this.#accounts.set(account, cache);
    const { maxBytes = 0, accountMaxBytes = 1 } = this.settings() ?? {};
    const most = Math.max(1, Math.floor(maxBytes / Math.max(1, accountMaxBytes)));
    keepNewest(this.#accounts, most);
    return cache;
  }
}

/** More profiles and chains than a registry serves at one time. */
const MAX_NAMED = 10_000;

/** Which kept answers of a scope to remove; null = any. */
export interface ScopeSelection {
  readonly provider: string | null;
  readonly method: string | null;
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
  /** Numbers the methods of all scopes. */
  readonly #nextSpace: () => number;
  /** By provider and method. */
  readonly #trust = new Map<string, ProviderTrust>();

  /** `tier` null = in memory alone. */
  constructor(
    tracker: Tracker,
    cache: AnswerCache,
    nextSpace: () => number,
    tier: SecondTier | null,
  ) {
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
function isCustom(profileId: string): boolean {
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
