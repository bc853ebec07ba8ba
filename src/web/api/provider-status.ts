// The current status of the providers of a Custom profile, as far as this process knows it. Shows
// no address.
import { profileId, transportsOf } from "../../core/provider/profile.ts";
import type { Tracker } from "../../upstream/health/tracker.ts";
import type { ProfileRegistry } from "../../upstream/registry/profile-registry.ts";

/**
 * `verified`: answers as expected. `verifying`: not known yet. `failed`: does not answer as
 * expected.
 */
export type ProviderStatus = "verified" | "verifying" | "failed";

/** Identifies a provider by profile, chain and name. */
export interface ProviderPlace {
  readonly accountId: string;
  readonly slug: string;
  readonly chain: string;
  readonly provider: string;
}

/** Returns the status of a provider. */
export type StatusOf = (place: ProviderPlace) => ProviderStatus;

/**
 * The status of providers of profiles in memory. A profile that is not loaded counts as verified,
 * since it was checked when it was saved.
 */
export function statusIn(registry: Pick<ProfileRegistry, "custom">): StatusOf {
  return ({ accountId, slug, chain, provider }) => {
    const id = profileId({ owner: accountId, slug });
    const tracker = registry.custom
      .find((served) => profileId(served.profile) === id)
      ?.trackers.get(chain);
    return tracker === undefined ? "verified" : statusOf(tracker, provider);
  };
}

function statusOf(tracker: Tracker, id: string): ProviderStatus {
  const provider = tracker.set.providers.find((candidate) => candidate.id === id);
  if (provider === undefined) return "verified";
  const reports = transportsOf(provider).map((transport) => tracker.health(provider, transport));
  if (
    reports.some((report) => report.cordon !== null) ||
    reports.every((report) => report.breaker === "open")
  )
    return "failed";
  return reports.some((report) => report.probeMs !== null || report.outcomes.delivered > 0)
    ? "verified"
    : "verifying";
}
