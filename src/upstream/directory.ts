// The profiles being served and their trackers. Replaced as a whole on reload: a request sees the old set or the new one, never a mixture.
import type { Chain } from "../core/chain.ts";
import type { Profile } from "../core/profile.ts";
import type { SelectionSettings } from "../core/strategy.ts";
import type { World } from "../world.ts";
import { createTracker, type Tracker } from "./tracker.ts";

/** A profile with its routing state, by chain name. */
export interface ServedProfile {
  readonly profile: Profile;
  readonly trackers: ReadonlyMap<string, Tracker>;
}

/** Finds chains and profiles. */
export interface Directory {
  readonly chains: readonly Chain[];
  /** Counts replacements; whoever caches an answer drops it when this changes. */
  readonly revision: number;
  /** By name, alias or decimal chain id. */
  chain(segment: string): Chain | undefined;
  profile(slug: string): ServedProfile | undefined;
  /** The profile of URLs that name none: `public`, else the first one configured. */
  readonly defaultProfile: ServedProfile | undefined;
  readonly profiles: readonly ServedProfile[];
  /** Every tracker of every profile. */
  trackers(): Tracker[];
  /** Serves these profiles from now on. Providers that stay the same keep their health. */
  replace(profiles: readonly Profile[]): void;
}

/** A directory of fixed chains, serving `profiles` first. */
export function createDirectory(chains: readonly Chain[], profiles: readonly Profile[], world: World, settings: SelectionSettings): Directory {
  const bySegment = new Map<string, Chain>();
  for (const chain of chains) for (const name of [chain.chainName, String(chain.chainId), ...chain.aliases]) bySegment.set(name, chain);
  let served = serve(profiles, new Map());
  let revision = 0;

  function serve(next: readonly Profile[], before: ReadonlyMap<string, ServedProfile>): ReadonlyMap<string, ServedProfile> {
    return new Map(next.map((profile) => [profile.slug, withTrackers(profile, before.get(profile.slug))]));
  }

  function withTrackers(profile: Profile, before: ServedProfile | undefined): ServedProfile {
    const trackers = [...profile.chains].map(([name, set]): [string, Tracker] => [name, createTracker(set, world, settings, before?.trackers.get(name))]);
    return { profile, trackers: new Map(trackers) };
  }

  return {
    chains,
    get revision() {
      return revision;
    },
    chain: (segment) => bySegment.get(segment),
    profile: (slug) => served.get(slug),
    get defaultProfile() {
      return served.get("public") ?? served.values().next().value;
    },
    get profiles() {
      return [...served.values()];
    },
    trackers: () => [...served.values()].flatMap((it) => [...it.trackers.values()]),
    replace(next) {
      served = serve(next, served);
      revision++;
    },
  };
}
