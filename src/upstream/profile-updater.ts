// Applies a change of the served profiles to everything that holds providers: registry, probes,
// heads, subscriptions, connections. Does not decide what is served.
import type { Profile, Provider } from "../core/provider/profile.ts";
import type { Tracker } from "./health/tracker.ts";
import type { ProfileRegistry } from "./registry/profile-registry.ts";
import type { Subscriptions } from "./stream/subscriptions.ts";
import type { Upstream } from "./transport.ts";

/** Everything that holds providers. */
export interface ProfileUpdaterParts {
  readonly registry: ProfileRegistry;
  /** Watches the providers of these trackers, and no others. */
  readonly health: { watch(trackers: readonly Tracker[]): void };
  readonly subscriptions: Pick<Subscriptions, "rebind">;
  /** Connections and limits of providers. */
  readonly upstreams: readonly Pick<Upstream, "retain">[];
}

/**
 * Changes the served profiles. A change applies from the next request on; requests in flight finish
 * with the old profiles. Does nothing before `begin` or the first change.
 */
export class ProfileUpdater {
  readonly #parts: ProfileUpdaterParts;

  constructor(parts: ProfileUpdaterParts) {
    this.#parts = parts;
  }

  /** Applies the profiles that the registry already serves. */
  begin(): void {
    const { registry, health, subscriptions, upstreams } = this.#parts;
    const trackers = registry.trackers();
    health.watch(trackers);
    subscriptions.rebind(registry);
    const providers: readonly Provider[] = trackers.flatMap((tracker) => tracker.set.providers);
    for (const upstream of upstreams) upstream.retain(providers);
  }

  /** Replaces the configured profiles. */
  replace(profiles: readonly Profile[]): void {
    this.#parts.registry.replace(profiles);
    this.begin();
  }

  /** Adds a profile, or replaces it with a new version. */
  put(profile: Profile): void {
    this.#parts.registry.put(profile);
    this.begin();
  }

  /** Removes profiles by `profileId`; their subscriptions end. */
  remove(...ids: readonly string[]): void {
    for (const id of ids) this.#parts.registry.remove(id);
    this.begin();
  }
}
