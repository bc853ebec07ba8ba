// Changes of the profiles being served, carried out everywhere that holds on to providers:
// directory, probes, heads, subscriptions, connections.
import type { Profile, Provider } from "../core/provider/profile.ts";
import type { HeadWatch } from "./health/head-watch.ts";
import type { Prober } from "./health/prober.ts";
import type { ProfileRegistry } from "./registry/profile-registry.ts";
import type { Subscriptions } from "./stream/subscriptions.ts";
import type { Upstream } from "./transport.ts";

/**
 * Changes what is served. Each change holds from the next request on; what is under way ends where
 * it began.
 */
export interface ProfileUpdater {
  /** What the directory serves already takes effect. */
  begin(): void;
  /** These are the configured profiles from now on. */
  replace(profiles: readonly Profile[]): void;
  /** One profile more, or another version of one. */
  put(profile: Profile): void;
  /** Fewer profiles, by their `profileId`: their subscriptions end. */
  remove(...ids: readonly string[]): void;
}

/** Everything that holds on to providers. */
export interface ProfileUpdaterParts {
  readonly directory: ProfileRegistry;
  readonly prober: Pick<Prober, "watch">;
  readonly headWatch: Pick<HeadWatch, "watch">;
  readonly subscriptions: Pick<Subscriptions, "rebind">;
  readonly upstreams: readonly Pick<Upstream, "retain">[];
}

/** A roster; nothing takes effect before it has begun or something changes. */
export function createProfileUpdater({
  directory,
  prober,
  headWatch,
  subscriptions,
  upstreams,
}: ProfileUpdaterParts): ProfileUpdater {
  function takeEffect(): void {
    const trackers = directory.trackers();
    prober.watch(trackers);
    headWatch.watch(trackers);
    subscriptions.rebind(directory);
    const providers: readonly Provider[] = trackers.flatMap((it) => it.set.providers);
    for (const upstream of upstreams) upstream.retain(providers);
  }

  return {
    begin: takeEffect,
    replace(profiles) {
      directory.replace(profiles);
      takeEffect();
    },
    put(profile) {
      directory.put(profile);
      takeEffect();
    },
    remove(...ids) {
      for (const id of ids) directory.remove(id);
      takeEffect();
    },
  };
}
