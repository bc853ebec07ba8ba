// The log checks of every profile and chain that has streams, and their counts for display.

import { type Provider, publicLabel } from "../../core/provider/profile.ts";
import type { Head } from "../../core/stream/chain-event.ts";
import type { Tracker } from "../health/tracker.ts";
import { BlockLogs } from "./block-logs.ts";
import { type CheckCounts, LogChecks, noChecks, type StreamLog } from "./log-checks.ts";
import type { BlockLogsQueryParts } from "./log-query.ts";

/** The log checks of all profiles and chains. */
export interface LogCheckRegistry {
  /** The checks of one profile on the chain of a tracker. */
  of(profile: string, tracker: Tracker): LogChecks;
  /** Records a head that a provider pushed. */
  see(tracker: Tracker, provider: Provider, head: Head): void;
  counts(): readonly CheckCounts[];
}

/** Most profiles and chains that are remembered; beyond that the oldest starts from nothing. */
const MAX_REMEMBERED = 10_000;

/** Creates an empty registry. */
export function createLogCheckRegistry(
  parts: BlockLogsQueryParts,
  log: StreamLog | null,
): LogCheckRegistry {
  const checkParts = { ...parts, log, blockLogs: new BlockLogs() };
  const checksByKey = new Map<string, LogChecks>();
  const byTracker = new WeakMap<Tracker, Set<LogChecks>>();
  const counted = new Map<string, CheckCounts>();

  function countsOf(profile: string, chain: string): CheckCounts {
    const key = `${profile} ${chain}`;
    const counts = counted.get(key) ?? noChecks(profile, chain);
    counted.set(key, counts);
    return counts;
  }

  return {
    of(profile, tracker) {
      const { chainName } = tracker.set.chain;
      const key = `${profile} ${chainName}`;
      const checks =
        checksByKey.get(key) ??
        new LogChecks(key, checkParts, countsOf(publicLabel(profile), chainName));
      checks.bind(tracker);
      checksByKey.set(key, checks);
      byTracker.set(tracker, (byTracker.get(tracker) ?? new Set()).add(checks));
      const [oldest = key] = checksByKey.keys();
      if (checksByKey.size > MAX_REMEMBERED) checksByKey.delete(oldest);
      return checks;
    },
    see(tracker, provider, head) {
      if (tracker.set.logVerification === "off") return;
      for (const checks of byTracker.get(tracker) ?? []) checks.see(provider, head.hash, head.raw);
    },
    counts: () => [...counted.values()],
  };
}
