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
import type { ProviderBudgets } from "../budget/provider-budgets.ts";
import {
  type AttemptListener,
  type HealthChange,
  type ProviderCordon,
  Tracker,
  type TrackerSettings,
} from "../health/tracker.ts";
import { type Shares, WHOLE_SHARES } from "../worker-shares.ts";

/** A profile with its routing state, by chain name. */
export interface ServedProfile {
  readonly profile: Profile;
  readonly trackers: ReadonlyMap<string, Tracker>;
}

/** Finds chains and profiles. */
export interface ProfileRegistry {
  readonly chains: readonly Chain[];
  /** Counts changes: anything cached from the registry is stale once this changes. */
  readonly revision: number;
  /** By name, alias or decimal chain id. */
  chain(segment: string): Chain | undefined;
  /** A configured profile by slug, the only kind that a slug in a URL names. */
  profile(slug: string): ServedProfile | undefined;
  /** Any profile by its `profileId`, including those of accounts. */
  served(id: string): ServedProfile | undefined;
  /** The profile of URLs that name none: `public`, else the first configured one. */
  readonly defaultProfile: ServedProfile | undefined;
  /** The configured profiles. */
  readonly profiles: readonly ServedProfile[];
  /** The profiles of accounts that are in memory, longest unused first. */
  readonly custom: readonly ServedProfile[];
  /** Every tracker of every profile. */
  trackers(): Tracker[];
  /** The same by key: profile id and chain name. */
  trackersByKey(): ReadonlyMap<string, Tracker>;
  /**
   * Replaces the configured profiles; those of accounts stay. Unchanged providers keep their
   * health.
   */
  replace(profiles: readonly Profile[]): void;
  /**
   * Adds or replaces one profile. Beyond the bound the longest unused profile of an account is
   * dropped.
   */
  put(profile: Profile): void;
  /** Removes a profile. */
  remove(id: string): void;
}

/** Settings of the registry beside those of selection. */
export interface ProfileRegistrySettings {
  /** Called when a circuit or cordon changes; `profile` is the label in metrics. */
  readonly onChange: (profile: string, chain: string, change: HealthChange) => void;
  /** Divides the bounds of provider sets between workers. */
  readonly shares: Shares;
  /** Counts what is sent to providers with limits; absent = nobody counts. */
  readonly budgets: Pick<ProviderBudgets, "open">;
  /** Which providers of a set, by its key, an operator took out of use; absent = none. */
  readonly cordonOf: (key: string, provider: Provider) => ProviderCordon | null;
  /** Who hears of attempts at the providers of a profile on a chain; `profile` is the label. */
  readonly attemptsOf: (profile: string, chain: string) => AttemptListener;
}

/** Creates a registry with fixed chains and the initial profiles. */
export function createProfileRegistry(
  chains: readonly Chain[],
  profiles: readonly Profile[],
  runtime: Runtime,
  settings: SelectionSettings & Partial<ProfileRegistrySettings>,
): ProfileRegistry {
  const bySegment = chainsBySegment(chains);
  const withTrackers = (profile: Profile, before: ServedProfile | undefined): ServedProfile =>
    serve(profile, before, { runtime, settings });
  let configured: ReadonlyMap<string, ServedProfile> = new Map(
    profiles.map((profile) => [profile.slug, withTrackers(profile, undefined)]),
  );
  // In the order of use.
  const custom = new Map<string, ServedProfile>();
  let revision = 0;

  return {
    chains,
    get revision() {
      return revision;
    },
    chain: (segment) => bySegment.get(segment),
    profile: (slug) => configured.get(slug),
    served(id) {
      const found = custom.get(id);
      if (found === undefined) return configured.get(id);
      custom.delete(id);
      custom.set(id, found);
      return found;
    },
    get defaultProfile() {
      return configured.get("public") ?? configured.values().next().value;
    },
    get profiles() {
      return [...configured.values()];
    },
    get custom() {
      return [...custom.values()];
    },
    trackers: () => [...trackersIn([...configured, ...custom]).values()],
    trackersByKey: () => trackersIn([...configured, ...custom]),
    replace(next) {
      configured = new Map(
        next.map((profile) => [profile.slug, withTrackers(profile, configured.get(profile.slug))]),
      );
      revision++;
    },
    put(profile) {
      const id = profileId(profile);
      if (profile.owner === null)
        configured = new Map(configured).set(id, withTrackers(profile, configured.get(id)));
      else {
        const before = custom.get(id);
        custom.delete(id);
        custom.set(id, withTrackers(profile, before));
      }
      revision++;
    },
    remove(id) {
      if (!custom.delete(id)) configured = new Map([...configured].filter(([slug]) => slug !== id));
      revision++;
    },
  };
}

/** Every tracker of profiles, by profile id and chain name. */
function trackersIn(
  profiles: readonly (readonly [string, ServedProfile])[],
): ReadonlyMap<string, Tracker> {
  return new Map(
    profiles.flatMap(([id, { trackers }]) =>
      [...trackers].map(([chain, tracker]) => [`${id} ${chain}`, tracker]),
    ),
  );
}

interface TrackerParts {
  readonly runtime: Runtime;
  readonly settings: SelectionSettings & Partial<ProfileRegistrySettings>;
}

/**
 * Creates a served profile with a tracker for each chain; trackers take over the health of
 * `before`.
 */
function serve(
  profile: Profile,
  before: ServedProfile | undefined,
  { runtime, settings }: TrackerParts,
): ServedProfile {
  const { onChange, shares = WHOLE_SHARES, budgets, attemptsOf } = settings;
  const trackers = [...profile.chains].map(([name, set]): [string, Tracker] => {
    const key = `${profileId(profile)} ${name}`;
    const shareOf: TrackerSettings["shareOf"] = (what, total, use) =>
      shares.of(`${what} ${key}`, total, use);
    const budgetOf: TrackerSettings["budgetOf"] = (provider) =>
      budgets?.open(key, provider) ?? null;
    const cordonOf: TrackerSettings["cordonOf"] = (provider) =>
      settings.cordonOf?.(key, provider) ?? null;
    const onAttempt = attemptsOf?.(publicLabel(profileId(profile)), name);
    const own = {
      ...settings,
      shareOf,
      budgetOf,
      cordonOf,
      onAttempt,
      profileId: profileId(profile),
    };
    const tracker = new Tracker(set, runtime, own, before?.trackers.get(name));
    if (onChange !== undefined)
      tracker.attend({
        changed: (change) => onChange(publicLabel(profileId(profile)), name, change),
      });
    return [name, tracker];
  });
  return { profile, trackers: new Map(trackers) };
}

/** Chains by every name that a URL may use. */
function chainsBySegment(chains: readonly Chain[]): ReadonlyMap<string, Chain> {
  const bySegment = new Map<string, Chain>();
  for (const chain of chains)
    for (const name of [chain.chainName, String(chain.chainId), ...chain.aliases])
      bySegment.set(name, chain);
  return bySegment;
}
