// The providers that operators took out of use, for the trackers of this process: those that exist,
// and those that a change of profiles creates.
import type { Provider } from "../../core/provider/profile.ts";
import type { ProviderCordon } from "../health/provider-state.ts";
import type { ProfileRegistry } from "./profile-registry.ts";

/** A cordon of a provider, by its names. */
export interface NamedCordon extends ProviderCordon {
  /** The id of the profile. */
  readonly profile: string;
  readonly chain: string;
  readonly provider: string;
}

/** The cordons. */
export class CordonTable {
  #byName: ReadonlyMap<string, ProviderCordon> = new Map();

  /** The cordon of a provider of a set, by its key; null = there is none. */
  of(key: string, { id }: Pick<Provider, "id">): ProviderCordon | null {
    return this.#byName.get(`${key} ${id}`) ?? null;
  }

  /** Replaces all cordons. True = a provider was taken out of use or put back. */
  replace(
    cordons: readonly NamedCordon[],
    registry: Pick<ProfileRegistry, "trackersByKey">,
  ): boolean {
    this.#byName = new Map(
      cordons.map(({ profile, chain, provider, reason, atMs }) => [
        `${profile} ${chain} ${provider}`,
        { reason, atMs },
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
