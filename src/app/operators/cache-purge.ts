// Removes kept answers: in every worker of this service, over the bus, and on the other nodes of a
// cluster, through the log of changes. Each worker removes what it has in memory itself.

import type { Bus, QuestionTopic } from "../../core/workers/bus.ts";
import { recordChange } from "../../shared/changes/change-log.ts";
import type { Store } from "../../shared/store/store.ts";
import type { CachedAnswers, PurgeSelection } from "../../upstream/engine/cache/cached-answers.ts";
import type { ProfileRegistry } from "../../upstream/registry/profile-registry.ts";
import type { PurgeCache } from "../../web/api/parts.ts";

/** What this process removes answers with. */
export interface OwnPurgeParts {
  readonly cache: CachedAnswers;
  readonly registry: ProfileRegistry;
}

/** Removes answers in this process; tells whether they are gone from the second tier as well. */
export type OwnPurge = (selection: PurgeSelection) => Promise<boolean>;

/** What answers are removed with everywhere. */
export interface PurgeParts extends Pick<OwnPurgeParts, "registry"> {
  readonly own: OwnPurge;
  readonly hasSecondTier: () => boolean;
  /** Null = this process is the whole service. */
  readonly bus: Bus | null;
  /** Has the other nodes of a cluster do the same; null = there are none. */
  readonly recorded: ((selection: PurgeSelection) => Promise<void>) | null;
}

/** Everything. */
export const PURGE_ALL: PurgeSelection = {
  profile: null,
  chain: null,
  provider: null,
  method: null,
};

const PURGE: QuestionTopic<PurgeSelection, boolean> = { name: "cache purge" };
const ANSWER_MS = 3_000;

/** Creates the removal in this process: profiles that nobody has asked for yet included. */
export function createOwnPurge({ cache, registry }: OwnPurgeParts): OwnPurge {
  return (selection) => {
    for (const { trackers } of registry.profiles)
      for (const tracker of trackers.values()) cache.scopeOf(tracker);
    return cache.purge(selection);
  };
}

/** Creates the removal everywhere. */
export function createCachePurge(parts: PurgeParts): PurgeCache {
  const { registry, own, bus, recorded, hasSecondTier } = parts;
  bus?.serve(PURGE, own);
  return async ({ profile, chain: segment, ...rest }) => {
    const chain = segment === null ? null : registry.chain(segment);
    if (chain === undefined) return { kind: "unknown", what: "chain" };
    if (profile !== null && registry.served(profile) === undefined)
      return { kind: "unknown", what: "profile" };
    const selection = { ...rest, profile, chain: chain?.chainName ?? null };
    const others = bus === null ? [] : [...bus.workers(), ...bus.silent()];
    const asked = { topic: PURGE, message: selection, timeoutMs: ANSWER_MS };
    const [isGone, replies] = await Promise.all([
      own(selection),
      Promise.all(others.filter((id) => id !== bus?.self).map((id) => bus?.request(id, asked))),
      recorded?.(selection),
    ]);
    // A worker that is gone has nothing any more.
    const left = replies.filter((reply) => reply?.ok === false && reply.reason !== "gone");
    return {
      kind: "purged",
      chain: selection.chain,
      isComplete: left.length === 0,
      secondTier: hasSecondTier() ? { isGone } : null,
    };
  };
}

/** Has the nodes of a cluster remove answers. */
export function recordPurge(store: Store, selection: PurgeSelection): Promise<void> {
  const ref = JSON.stringify(selection);
  return store.transaction((tx) => recordChange(tx, { topic: "cache", ref }));
}

/** What another node has recorded; anything else is taken for everything. */
export function purgeOf(ref: string): PurgeSelection {
  try {
    return parsePurge(JSON.parse(ref)) ?? PURGE_ALL;
  } catch {
    return PURGE_ALL;
  }
}

function parsePurge(value: unknown): PurgeSelection | null {
  if (typeof value !== "object" || value === null) return null;
  const {
    profile = null,
    chain = null,
    provider = null,
    method = null,
  }: { profile?: unknown; chain?: unknown; provider?: unknown; method?: unknown } = value;
  return isName(profile) && isName(chain) && isName(provider) && isName(method)
    ? { profile, chain, provider, method }
    : null;
}

function isName(value: unknown): value is string | null {
  return value === null || (typeof value === "string" && value.length <= MAX_NAME_CHARS);
}

const MAX_NAME_CHARS = 300;
