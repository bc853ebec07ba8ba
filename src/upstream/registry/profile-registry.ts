// The profiles being served and their trackers. Each change replaces whole profiles: a request sees
// the old set or the new one, never a mixture.
import type { Chain } from "../../core/provider/chain.ts";
import { type Profile, profileId, publicLabel } from "../../core/provider/profile.ts";
import type { SelectionSettings } from "../../core/routing/strategy.ts";
import type { Runtime } from "../../runtime.ts";
import { createTracker, type HealthChange, type Tracker } from "../health/tracker.ts";

/** A profile with its routing state, by chain name. */
export interface ServedProfile {
  readonly profile: Profile;
  readonly trackers: ReadonlyMap<string, Tracker>;
}

/** Finds chains and profiles. */
export interface ProfileRegistry {
  readonly chains: readonly Chain[];
  /** Counts replacements: anything cached from the registry is stale once this changes. */
  readonly revision: number;
  /** By name, alias or decimal chain id. */
  chain(segment: string): Chain | undefined;
  /** A configured profile: the only kind that a slug in a URL names by itself. */
  profile(slug: string): ServedProfile | undefined;
  /** Any profile by its `profileId`, also those of accounts. */
  served(id: string): ServedProfile | undefined;
  /** The profile of URLs that name none: `public`, else the first one configured. */
  readonly defaultProfile: ServedProfile | undefined;
  /** The configured ones. */
  readonly profiles: readonly ServedProfile[];
  /** Those of accounts that are in memory, longest unused first. */
  readonly custom: readonly ServedProfile[];
  /** Every tracker of every profile. */
  trackers(): Tracker[];
  /**
   * Serves these as the configured profiles from now on; those of accounts stay. Providers that
   * stay the same keep their health.
   */
  replace(profiles: readonly Profile[]): void;
  /**
   * Serves one profile from now on, new or in place of the one with its id. Past the bound the
   * longest unused one of an account is forgotten.
   */
  put(profile: Profile): void;
  /** Serves it no longer. */
  remove(id: string): void;
}

/** Settings of the registry beside those of selection. */
export interface ProfileRegistrySettings {
  readonly maxCustom: number;
  /** Hears of circuits and cordons; `profile` is the label that metrics show. */
  readonly onChange: (profile: string, chain: string, change: HealthChange) => void;
}

/** Most profiles of accounts in memory at one time. */
const MAX_CUSTOM = 2_000;

/** Creates a registry of fixed chains that serves `profiles` at first. */
export function createProfileRegistry(
  chains: readonly Chain[],
  profiles: readonly Profile[],
  runtime: Runtime,
  settings: SelectionSettings & Partial<ProfileRegistrySettings>,
): ProfileRegistry {
  const bySegment = chainsBySegment(chains);
  const { maxCustom = MAX_CUSTOM } = settings;
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
    trackers: () =>
      [...configured.values(), ...custom.values()].flatMap((served) => [
        ...served.trackers.values(),
      ]),
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
        for (const oldest of custom.keys()) if (custom.size > maxCustom) custom.delete(oldest);
      }
      revision++;
    },
    remove(id) {
      if (!custom.delete(id)) configured = new Map([...configured].filter(([slug]) => slug !== id));
      revision++;
    },
  };
}

interface TrackerParts {
  readonly runtime: Runtime;
  readonly settings: SelectionSettings & Partial<ProfileRegistrySettings>;
}

/** A profile with a tracker for each chain, which take over the health of `before`. */
function serve(
  profile: Profile,
  before: ServedProfile | undefined,
  { runtime, settings }: TrackerParts,
): ServedProfile {
  const { onChange } = settings;
  const trackers = [...profile.chains].map(([name, set]): [string, Tracker] => {
    const tracker = createTracker(set, runtime, settings, before?.trackers.get(name));
    if (onChange !== undefined)
      tracker.attend({
        changed: (change) => onChange(publicLabel(profileId(profile)), name, change),
      });
    return [name, tracker];
  });
  return { profile, trackers: new Map(trackers) };
}

/** Chains by each name under which a URL may call them. */
function chainsBySegment(chains: readonly Chain[]): ReadonlyMap<string, Chain> {
  const bySegment = new Map<string, Chain>();
  for (const chain of chains)
    for (const name of [chain.chainName, String(chain.chainId), ...chain.aliases])
      bySegment.set(name, chain);
  return bySegment;
}
