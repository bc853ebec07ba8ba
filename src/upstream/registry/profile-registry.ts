// The served profiles and their trackers. A change replaces whole profiles: each request sees the
// old set or the new one, never a mixture.
import type { Chain } from "../../core/provider/chain.ts";
import {
  type Profile,
  type Provider,
  profileId,
  publicLabel,
} from "../../core/provider/profile.ts";
import type { SelectionSettings } from "../../core/routing/strategy.ts";
import type { Runtime } from "../../runtime.ts";
import type { HealthChange } from "../health/provider-records.ts";
import type { ProviderCordon } from "../health/provider-state.ts";
import { type AttemptListener, Tracker, type TrackerSettings } from "../health/tracker.ts";
import type { Upstream } from "../transport.ts";

/** A profile with its routing state, by chain name. */
export interface ServedProfile {
  readonly profile: Profile;
  readonly trackers: ReadonlyMap<string, Tracker>;
}

/** Settings of the registry beside those of its trackers. */
export interface ProfileRegistrySettings
  extends Required<Pick<TrackerSettings, "shares" | "budgets" | "cordons">> {
  /** Called when a circuit or cordon changes; `profile` is the label in metrics. */
  readonly onChange: (profile: string, chain: string, change: HealthChange) => void;
  /** Who hears of attempts at the providers of a profile on a chain; `profile` is the label. */
  readonly attemptsOf: (profile: string, chain: string) => AttemptListener;
}

/** Everything else that holds providers. */
export interface ProviderUsers {
  /** Watches the providers of these trackers, and no others. */
  readonly health: { watch(trackers: readonly Tracker[]): void };
  readonly subscriptions: { rebind(registry: ProfileRegistry): void };
  /** Connections and limits of providers. */
  readonly upstreams: readonly Pick<Upstream, "retain">[];
}

/**
 * Finds chains and profiles. The chains are fixed. A change of the profiles applies from the next
 * request on; requests in flight finish with the old ones.
 */
export class ProfileRegistry {
  readonly chains: readonly Chain[];
  readonly #bySegment: ReadonlyMap<string, Chain>;
  readonly #runtime: Runtime;
  readonly #settings: SelectionSettings & Partial<ProfileRegistrySettings>;
  #configured: ReadonlyMap<string, ServedProfile> = new Map();
  /** In the order of use. */
  readonly #custom = new Map<string, ServedProfile>();
  /** Counts changes: anything cached from the registry is stale once this changes. */
  revision = 0;
  /** Null = nobody is told of changes yet. */
  #users: ProviderUsers | null = null;

  constructor(
    chains: readonly Chain[],
    profiles: readonly Profile[],
    runtime: Runtime,
    settings: SelectionSettings & Partial<ProfileRegistrySettings>,
  ) {
    this.chains = chains;
    this.#bySegment = chainsBySegment(chains);
    this.#runtime = runtime;
    this.#settings = settings;
    this.#configure(profiles);
  }

  /** By name, alias or decimal chain id. */
  chain(segment: string): Chain | undefined {
    return this.#bySegment.get(segment);
  }

  /** A configured profile by slug, the only kind that a slug in a URL names. */
  profile(slug: string): ServedProfile | undefined {
    return this.#configured.get(slug);
  }

  /** Any profile by its `profileId`, including those of accounts. */
  served(id: string): ServedProfile | undefined {
    const found = this.#custom.get(id);
    if (found === undefined) return this.#configured.get(id);
    this.#custom.delete(id);
    this.#custom.set(id, found);
    return found;
  }

  /** The profile of URLs that name none: `public`, else the first configured one. */
  get defaultProfile(): ServedProfile | undefined {
    return this.#configured.get("public") ?? this.#configured.values().next().value;
  }

  /** The configured profiles. */
  get profiles(): readonly ServedProfile[] {
    return [...this.#configured.values()];
  }

  /** The profiles of accounts that are in memory, longest unused first. */
  get custom(): readonly ServedProfile[] {
    return [...this.#custom.values()];
  }

  /** Every tracker of every profile. */
  trackers(): Tracker[] {
    return [...this.trackersByKey().values()];
  }

  /** The same by key: profile id and chain name. */
  trackersByKey(): ReadonlyMap<string, Tracker> {
    const served = [...this.#configured.values(), ...this.#custom.values()];
    return new Map(
      served.flatMap(({ trackers }) => [...trackers.values()].map((each) => [each.key, each])),
    );
  }

  /** Applies the profiles to all that holds providers: now, and after each change. */
  applyTo(users: ProviderUsers): void {
    this.#users = users;
    this.#changed();
  }

  /**
   * Replaces the configured profiles; those of accounts stay. Unchanged providers keep their
   * health.
   */
  replace(profiles: readonly Profile[]): void {
    this.#configure(profiles);
    this.#changed();
  }

  /** Adds or replaces one profile. The caller bounds the number of profiles of accounts. */
  put(profile: Profile): void {
    const id = profileId(profile);
    const known = profile.owner === null ? this.#configured : this.#custom;
    const served = this.#serve(profile, known.get(id));
    if (profile.owner === null) this.#configured = new Map(this.#configured).set(id, served);
    else {
      this.#custom.delete(id);
      this.#custom.set(id, served);
    }
    this.#changed();
  }

  /** Removes profiles; their subscriptions end. */
  remove(...ids: readonly string[]): void {
    for (const id of ids) this.#custom.delete(id);
    this.#configured = new Map([...this.#configured].filter(([slug]) => !ids.includes(slug)));
    this.#changed();
  }

  #changed(): void {
    this.revision++;
    if (this.#users === null) return;
    const { health, subscriptions, upstreams } = this.#users;
    const trackers = this.trackers();
    health.watch(trackers);
    subscriptions.rebind(this);
    const providers = trackers.flatMap((tracker) => tracker.set.providers);
    for (const upstream of upstreams) upstream.retain(providers);
  }

  #configure(profiles: readonly Profile[]): void {
    const before = this.#configured;
    this.#configured = new Map(
      profiles.map((profile) => [profile.slug, this.#serve(profile, before.get(profile.slug))]),
    );
  }

  /**
   * Creates a served profile with a tracker for each chain; trackers take over the health of
   * `before`.
   */
  #serve(profile: Profile, before: ServedProfile | undefined): ServedProfile {
    const { onChange, attemptsOf } = this.#settings;
    const id = profileId(profile);
    const label = publicLabel(id);
    const trackers = [...profile.chains].map(([name, set]): [string, Tracker] => {
      const own = { ...this.#settings, onAttempt: attemptsOf?.(label, name), profileId: id };
      const tracker = new Tracker(set, this.#runtime, own, before?.trackers.get(name));
      if (onChange !== undefined)
        tracker.attend({ changed: (change) => onChange(label, name, change) });
      return [name, tracker];
    });
    return { profile, trackers: new Map(trackers) };
  }
}

/** Chains by every name that a URL may use. */
function chainsBySegment(chains: readonly Chain[]): ReadonlyMap<string, Chain> {
  const bySegment = new Map<string, Chain>();
  for (const chain of chains)
    for (const name of [chain.chainName, String(chain.chainId), ...chain.aliases])
      bySegment.set(name, chain);
  return bySegment;
}

// The providers that operators took out of use, for the trackers of this process: those that exist,
// and those that a change of profiles creates.

/** A cordon of a provider, by its names. */
export interface NamedCordon extends ProviderCordon {
  /** The key of the profile and chain; null = all configured ones that have no cordon of it. */
  readonly place: string | null;
  readonly provider: string;
}

/** The cordons. */
export class CordonTable {
  #byName: ReadonlyMap<string, ProviderCordon> = new Map();

  /** The cordon of a provider of a set, by its key; null = there is none. */
  of(key: string, { id, guarded }: Pick<Provider, "id" | "guarded">): ProviderCordon | null {
    return this.#byName.get(`${key} ${id}`) ?? (guarded ? null : (this.#byName.get(id) ?? null));
  }

  /** Replaces all cordons. True = a provider was taken out of use or put back. */
  replace(
    cordons: readonly NamedCordon[],
    registry: Pick<ProfileRegistry, "trackersByKey">,
  ): boolean {
    this.#byName = new Map(
      cordons.map(({ place, provider, reason, atMs, untilMs }) => [
        place === null ? provider : `${place} ${provider}`,
        { reason, atMs, untilMs },
      ]),
    );
    let isChanged = false;
    for (const [key, tracker] of registry.trackersByKey())
      for (const provider of tracker.set.providers) {
        const [before, now] = [tracker.cordonOf(provider), this.of(key, provider)];
        if (before === null && now === null) continue;
        isChanged ||= (before === null) !== (now === null);
        tracker.setCordon(provider, now);
      }
    return isChanged;
  }
}
