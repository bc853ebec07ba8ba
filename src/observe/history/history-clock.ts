// Ends the steps of history in time: passes on what this process counted in each, with how the
// providers are at its end. Tells the feed of providers whose heads fell behind or caught up.
import type { Runtime } from "../../runtime.ts";
import type { ProfileRegistry } from "../../upstream/registry/profile-registry.ts";
import type { EventFeed } from "../feed/event-feed.ts";
import { RESOLUTIONS } from "./history.ts";
import type { ChainSample, CountedStep, HistoryCounts } from "./history-counts.ts";

/** Passes on what was counted. */
export interface HistoryClock {
  /** Passes on what was counted until now. */
  refresh(): void;
  close(): void;
}

const [{ stepMs: STEP_MS }] = RESOLUTIONS;

/** What the clock works with. */
export interface HistoryClockParts {
  readonly counts: HistoryCounts;
  readonly feed: Pick<EventFeed, "emit">;
  readonly registry: Pick<ProfileRegistry, "profiles">;
  readonly runtime: Pick<Runtime, "after" | "wallMs">;
  readonly receive: (step: CountedStep) => void;
}

/** Begins to end the steps. */
export function startHistoryClock(parts: HistoryClockParts): HistoryClock {
  const { counts, feed, registry, runtime, receive } = parts;
  let beganMs = runtime.wallMs();
  let cancel: () => void = schedule();
  /** Providers that are behind. */
  let behind: ReadonlySet<string> = new Set();

  function schedule(): () => void {
    return runtime.after(STEP_MS - (runtime.wallMs() % STEP_MS), () => {
      cancel = schedule();
      refresh();
    });
  }

  function refresh(): void {
    const samples = samplesOf(registry);
    receive({ atMs: beganMs, rows: counts.take(samples) });
    beganMs = runtime.wallMs();
    behind = compareHeads(samples);
  }

  function compareHeads(samples: readonly LimitedSample[]): ReadonlySet<string> {
    const now = new Set<string>();
    for (const { profile, chain, maxLagBlocks, providers } of samples)
      for (const { provider, lagBlocks } of providers) {
        const key = `${profile} ${chain} ${provider.id}`;
        const isBehind = lagBlocks !== null && lagBlocks > maxLagBlocks;
        if (isBehind) now.add(key);
        if (isBehind === behind.has(key)) continue;
        const about = { profile, chain, provider: provider.id };
        feed.emit({ type: "head", data: { ...about, behind: isBehind, lag_blocks: lagBlocks } });
      }
    return now;
  }

  return { refresh, close: () => cancel() };
}

interface LimitedSample extends ChainSample {
  readonly maxLagBlocks: number;
}

/** How the configured providers are now. */
function samplesOf({ profiles }: Pick<ProfileRegistry, "profiles">): readonly LimitedSample[] {
  return profiles.flatMap(({ profile, trackers }) =>
    [...trackers].map(([chain, tracker]) => ({
      profile: profile.slug,
      chain,
      maxLagBlocks: tracker.set.maxLagBlocks,
      providers: tracker.set.providers.map((provider) => tracker.summary(provider)),
    })),
  );
}
