// The providers that operators took out of use, for the trackers of this process: those that exist,
// and those that a change of profiles creates.
import type { Provider } from "../../core/provider/profile.ts";
import type { ProviderCordon } from "../health/tracker.ts";
import type { ProfileRegistry } from "./profile-registry.ts";

/** A cordon of a provider, by its names. */
export interface NamedCordon extends ProviderCordon {
  /** The id of the profile. */
  readonly profile: string;
  readonly chain: string;
  readonly provider: string;
}

/** The cordons. */
export interface CordonTable {
  /** The cordon of a provider of a set, by its key; null = there is none. */
  of(key: string, provider: Pick<Provider, "id">): ProviderCordon | null;
  /** Replaces all cordons. True = a provider was taken out of use or put back. */
  replace(
    cordons: readonly NamedCordon[],
    registry: Pick<ProfileRegistry, "trackersByKey">,
  ): boolean;
}

/** Creates a table without cordons. */
export function createCordonTable(): CordonTable {
  let byName: ReadonlyMap<string, ProviderCordon> = new Map();
  const of: CordonTable["of"] = (key, { id }) => byName.get(`${key} ${id}`) ?? null;
  return {
    of,
    replace(cordons, registry) {
      byName = new Map(
        cordons.map(({ profile, chain, provider, reason, atMs }) => [
          `${profile} ${chain} ${provider}`,
          { reason, atMs },
        ]),
      );
      let isChanged = false;
      for (const [key, tracker] of registry.trackersByKey())
        for (const provider of tracker.set.providers) {
          const [before, now] = [tracker.cordonOf(provider), of(key, provider)];
          if (before === null && now === null) continue;
          isChanged ||= (before === null) !== (now === null);
          tracker.setCordon(provider, now);
        }
      return isChanged;
    },
  };
}
