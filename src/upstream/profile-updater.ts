// Applies a change of the served profiles to everything that holds providers: registry, probes,
// heads, subscriptions, connections. Does not decide what is served.
import type { Profile, Provider } from "../core/provider/profile.ts";
import type { HeadWatch } from "./health/head-watch.ts";
import type { Prober } from "./health/prober.ts";
import type { ProfileRegistry } from "./registry/profile-registry.ts";
import type { Subscriptions } from "./stream/subscriptions.ts";
import type { Upstream } from "./transport.ts";

/**
 * Changes the served profiles. A change applies from the next request on; requests in flight finish
 * with the old profiles.
 */
export interface ProfileUpdater {
  /** Applies the profiles that the registry already serves. */
  begin(): void;
  /** Replaces the configured profiles. */
  replace(profiles: readonly Profile[]): void;
  /** Adds a profile, or replaces it with a new version. */
  put(profile: Profile): void;
  /** Removes profiles by `profileId`; their subscriptions end. */
  remove(...ids: readonly string[]): void;
}

/** Everything that holds providers. */
export interface ProfileUpdaterParts {
  readonly registry: ProfileRegistry;
  readonly prober: Pick<Prober, "watch">;
  readonly headWatch: Pick<HeadWatch, "watch">;
  readonly subscriptions: Pick<Subscriptions, "rebind">;
  readonly upstreams: readonly Pick<Upstream, "retain">[];
}

/** Creates an updater. It does nothing before `begin` or the first change. */
export function createProfileUpdater({
  registry,
  prober,
  headWatch,
  subscriptions,
  upstreams,
}: ProfileUpdaterParts): ProfileUpdater {
  function takeEffect(): void {
    const trackers = registry.trackers();
    prober.watch(trackers);
    headWatch.watch(trackers);
    subscriptions.rebind(registry);
    const providers: readonly Provider[] = trackers.flatMap((tracker) => tracker.set.providers);
    for (const upstream of upstreams) upstream.retain(providers);
  }

  return {
    begin: takeEffect,
    replace(profiles) {
      registry.replace(profiles);
      takeEffect();
    },
    put(profile) {
      registry.put(profile);
      takeEffect();
    },
    remove(...ids) {
      for (const id of ids) registry.remove(id);
      takeEffect();
    },
  };
}
