// The served profiles and their trackers. A change replaces whole profiles: each request sees the
// old set or the new one, never a mixture.
import { isDeepStrictEqual } from "node:util";
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

/** What is kept by the names of chains. */
export interface ChainUser {
  /** Called when chains are served no more. */
  forgetChains(names: ReadonlySet<string>): void;
}

/** Everything else that holds providers. */
export interface ProviderUsers {
  /** Callers' connections to one chain: they are told first. */
  readonly callers: ChainUser;
  /** Watches the providers of these trackers, and no others. */
  readonly health: { watch(trackers: readonly Tracker[]): void };
  readonly subscriptions: { rebind(registry: ProfileRegistry): void };
  /** Connections and limits of providers. */
  readonly upstreams: readonly Pick<Upstream, "retain">[];
  /** Counters and kept answers. */
  readonly kept: readonly ChainUser[];
}

/**
 * Finds chains and profiles. A change of them applies from the next request on; requests in flight
 * finish with the old ones.
 */
export class ProfileRegistry {
  #chains: readonly Chain[];
  #bySegment: ReadonlyMap<string, Chain>;
  /** Names of the chains that were opened on demand. */
  #opened: ReadonlySet<string> = new Set();
  readonly #runtime: Runtime;
  readonly #settings: SelectionSettings & Partial<ProfileRegistrySettings>;
  #configured: ReadonlyMap<string, ServedProfile> = new Map();
  /** In the order of use. */
  readonly #custom = new Map<string, ServedProfile>();
  /** The trackers of the last change. */
  #followed: ReadonlySet<Tracker> = new Set();
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
    this.#chains = chains;
    this.#bySegment = chainsBySegment(chains);
    this.#runtime = runtime;
    this.#settings = settings;
    this.#configure(profiles);
  }

  /** The chains that are served now: the configured ones, and those that were opened on demand. */
  get chains(): readonly Chain[] {
    return this.#chains;
  }

  /** The configured chains. Profiles of accounts use no others. */
  get configuredChains(): readonly Chain[] {
    return this.#chains.filter(({ chainName }) => !this.isOpened(chainName));
  }

  /** Whether a chain was opened on demand. */
  isOpened(chainName: string): boolean {
    return this.#opened.has(chainName);
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
   * Replaces the chains and the configured profiles. Profiles of accounts stay, without the chains
   * that have gone. A set that is as before is not disturbed; in others unchanged providers keep
   * their health. `opened`: names of the chains that were opened on demand.
   */
  replace(
    chains: readonly Chain[],
    profiles: readonly Profile[],
    opened: ReadonlySet<string> = new Set(),
  ): void {
    const before = namesOf(this.#chains);
    this.#chains = chains;
    this.#opened = opened;
    this.#bySegment = chainsBySegment(chains);
    this.#configure(profiles);
    this.#followChains();
    this.#changed(before.difference(namesOf(chains)));
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

  /** `gone`: names of the chains that are served no more. */
  #changed(gone: ReadonlySet<string> = new Set()): void {
    this.revision++;
    if (this.#users === null) return;
    const { callers, health, subscriptions, upstreams, kept } = this.#users;
    if (gone.size > 0) callers.forgetChains(gone);
    const trackers = this.trackers();
    health.watch(trackers);
    subscriptions.rebind(this);
    const served = new Set(trackers);
    for (const tracker of this.#followed) if (!served.has(tracker)) tracker.close();
    this.#followed = served;
    const providers = trackers.flatMap((tracker) => tracker.set.providers);
    for (const upstream of upstreams) upstream.retain(providers);
    if (gone.size > 0) for (const user of kept) user.forgetChains(gone);
  }

  #configure(profiles: readonly Profile[]): void {
    const before = this.#configured;
    this.#configured = new Map(
      profiles.map((profile) => [profile.slug, this.#serve(profile, before.get(profile.slug))]),
    );
  }

  /** Profiles of accounts lose the chains that have gone, and follow those that have changed. */
  #followChains(): void {
    const byName = new Map(this.#chains.map((chain) => [chain.chainName, chain]));
    for (const [id, served] of this.#custom) {
      const { profile } = served;
      const sets = [...profile.chains].flatMap(([name, set]) => {
        const chain = byName.get(name);
        return chain === undefined ? [] : [[name, { ...set, chain }] as const];
      });
      const now = this.#serve({ ...profile, chains: new Map(sets) }, served);
      const isSame =
        now.trackers.size === served.trackers.size &&
        [...now.trackers].every(([name, tracker]) => served.trackers.get(name) === tracker);
      if (!isSame) this.#custom.set(id, now);
    }
  }

  /**
   * Creates a served profile with a tracker for each chain; new trackers take over the health of
   * `before`.
   */
  #serve(profile: Profile, before: ServedProfile | undefined): ServedProfile {
    const { onChange, attemptsOf } = this.#settings;
    const id = profileId(profile);
    const label = publicLabel(id);
    const trackers = [...profile.chains].map(([name, set]): [string, Tracker] => {
      const known = before?.trackers.get(name);
      if (known !== undefined && isDeepStrictEqual(known.set, set)) return [name, known];
      const own = { ...this.#settings, onAttempt: attemptsOf?.(label, name), profileId: id };
      const tracker = new Tracker(set, this.#runtime, own, known);
      if (onChange !== undefined)
        tracker.attend({ changed: (change) => onChange(label, name, change) });
      return [name, tracker];
    });
    return { profile, trackers: new Map(trackers) };
  }
}

function namesOf(chains: readonly Chain[]): ReadonlySet<string> {
  return new Set(chains.map(({ chainName }) => chainName));
}

/** Chains by every name that a URL may use. */
function chainsBySegment(chains: readonly Chain[]): ReadonlyMap<string, Chain> {
  const bySegment = new Map<string, Chain>();
  // Aliases of chains that were opened on demand give way to configured names.
  for (const chain of chains)
    for (const name of [chain.chainName, String(chain.chainId), ...chain.aliases])
      if (!bySegment.has(name)) bySegment.set(name, chain);
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
