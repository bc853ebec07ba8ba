// Removes kept answers in every process of this service: each removes what it has in memory itself.
import type { CachedAnswers, PurgeSelection } from "../../upstream/engine/cache/cached-answers.ts";
import type { ProfileRegistry } from "../../upstream/registry/profile-registry.ts";
import type { PurgeCache } from "../../web/api/parts.ts";
import type { OperatorChanges } from "./operator-changes.ts";

/** Removes answers in this process; tells whether they are gone from the second tier as well. */
export type OwnPurge = (selection: PurgeSelection) => Promise<boolean>;

/** What answers are removed with everywhere. */
export interface PurgeParts {
  readonly registry: ProfileRegistry;
  readonly own: OwnPurge;
  readonly hasSecondTier: () => boolean;
  readonly changes: Pick<OperatorChanges, "record">;
}

/** Creates the removal in this process: profiles that nobody has asked for yet included. */
export function createOwnPurge({
  cache,
  registry,
}: Pick<PurgeParts, "registry"> & { readonly cache: CachedAnswers }): OwnPurge {
  return (selection) => {
    for (const { trackers } of registry.profiles)
      for (const tracker of trackers.values()) cache.scopeOf(tracker);
    return cache.purge(selection);
  };
}

/** Creates the removal everywhere. */
export function createCachePurge({
  registry,
  own,
  hasSecondTier,
  changes,
}: PurgeParts): PurgeCache {
  return async ({ profile, chain: segment, ...rest }) => {
    const chain = segment === null ? null : registry.chain(segment);
    if (chain === undefined) return { kind: "unknown", what: "chain" };
    if (profile !== null && registry.served(profile) === undefined)
      return { kind: "unknown", what: "profile" };
    const selection = { ...rest, profile, chain: chain?.chainName ?? null };
    const [isGone, isComplete] = await Promise.all([
      own(selection),
      changes.record({ kind: "purge", selection }),
    ]);
    const tier = isGone ? "purged" : "pending";
    return {
      kind: "purged",
      chain: selection.chain,
      complete: isComplete,
      redis: hasSecondTier() ? tier : "none",
    };
  };
}
