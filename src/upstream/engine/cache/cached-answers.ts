// The cache of the service: one memory for the profiles of the operator, and a bounded one for each
// account with Custom profiles, whose providers others must not believe.
import type { CacheSettings } from "../../../core/routing/cache-terms.ts";
import type { Method } from "../../../core/rpc/method.ts";
import type { Tracker } from "../../health/tracker.ts";
import type { BufferPool } from "../../http/buffer-pool.ts";
import type { SecondTier, TierReport, TierScope } from "../../second-tier/second-tier.ts";
import { AnswerCache } from "./answer-cache.ts";
import { CacheScope, isCustom, type ScopeSelection } from "./cache-scope.ts";

/** Which kept answers to remove; null = any. */
export interface PurgeSelection extends ScopeSelection {
  readonly profile: string | null;
  /** The name of a chain. */
  readonly chain: string | null;
}

/** What the cache holds and has done. */
export interface CacheReport {
  readonly bytes: number;
  readonly maxBytes: number;
  readonly entries: number;
  /** Removed to make room. */
  readonly evicted: number;
  /** Removed because their block was abandoned. */
  readonly abandoned: number;
  /** Null = there is no second tier. */
  readonly secondTier: TierReport | null;
}

/** Kept answers, by what they are kept for. */
export class CachedAnswers {
  readonly #settings: () => CacheSettings | null;
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
    this.#settings = settings;
    this.secondTier = secondTier;
    this.buffers = buffers;
    this.#shared = new AnswerCache(() => settings()?.maxBytes ?? 0);
  }

  /** Whether answers to a method are kept for the calls of a profile. */
  isOn({ set, profileId }: Tracker, method: Method): boolean {
    const settings = this.#settings();
    if (settings === null || method.cache === null || set.cache?.isOn === false) return false;
    if (isCustom(profileId) && settings.accountMaxBytes === 0) return false;
    return settings.methods.get(method.name) !== 0;
  }

  /** The longest life of answers to a method (ms), and whether accounts are kept apart. */
  get settings(): CacheSettings | null {
    return this.#settings();
  }

  scopeOf(tracker: Tracker): CacheScope {
    const known = this.#scopes.get(tracker);
    if (known !== undefined) return known;
    const { profileId } = tracker;
    const cache = isCustom(profileId) ? this.#accountOf(profileId) : this.#shared;
    const nextSpace = (): number => ++this.#spaces;
    const scope = new CacheScope(tracker, { cache, nextSpace, tier: this.secondTier });
    this.#scopes.set(tracker, scope);
    this.#name(scope);
    return scope;
  }

  /** The scope of another profile of the operator on the same chain; null = it has none yet. */
  sharedWith(profile: string, chainName: string): CacheScope | null {
    return this.#byName.get(`${profile} ${chainName}`) ?? null;
  }

  /**
   * Removes answers, and tells whether the second tier has removed them as well: it knows profiles
   * and chains, and removes all that it has of them.
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

  /** A kept answer was found to be of an abandoned block. */
  countAbandoned(): void {
    this.#abandoned += 1;
  }

  report(): CacheReport {
    const caches = [this.#shared, ...this.#accounts.values()];
    const sum = (read: (cache: AnswerCache) => number): number =>
      caches.reduce((total, cache) => total + read(cache), 0);
    return {
      bytes: sum(({ bytes }) => bytes),
      maxBytes: this.#settings()?.maxBytes ?? 0,
      entries: sum(({ size }) => size),
      evicted: sum(({ evicted }) => evicted),
      abandoned: this.#abandoned,
      secondTier: this.secondTier?.report() ?? null,
    };
  }

  /** The cache of an account; that of the one that was served longest ago makes room for it. */
  #accountOf(profileId: string): AnswerCache {
    const account = profileId.slice(0, profileId.indexOf("/"));
    const cache =
      this.#accounts.get(account) ?? new AnswerCache(() => this.#settings()?.accountMaxBytes ?? 0);
    this.#accounts.delete(account);
    this.#accounts.set(account, cache);
    const { maxBytes = 0, accountMaxBytes = 1 } = this.#settings() ?? {};
    const most = Math.max(1, Math.floor(maxBytes / Math.max(1, accountMaxBytes)));
    for (const oldest of this.#accounts.keys())
      if (this.#accounts.size > most) this.#accounts.delete(oldest);
    return cache;
  }

  /** Remembers a scope by its name, in place of one that is served no more. */
  #name(scope: CacheScope): void {
    const name = `${scope.profileId} ${scope.chainName}`;
    this.#byName.get(name)?.purge({ provider: null, method: null });
    this.#byName.delete(name);
    this.#byName.set(name, scope);
    for (const oldest of this.#byName.keys())
      if (this.#byName.size > MAX_NAMED) this.#byName.delete(oldest);
  }
}

/** More profiles and chains than a registry serves at one time. */
const MAX_NAMED = 10_000;
