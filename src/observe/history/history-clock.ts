// Closes the steps of history in time, and notes how the providers are at the end of each. Tells
// the feed of providers whose heads fell behind or caught up.
import type { Runtime } from "../../runtime.ts";
import type { ProfileRegistry } from "../../upstream/registry/profile-registry.ts";
import type { EventFeed } from "../feed/event-feed.ts";
import { type ChainSample, type History, RESOLUTIONS } from "./history.ts";

/** Keeps history up to date. */
export interface HistoryClock {
  /** Brings history up to now. */
  refresh(): void;
  close(): void;
}

const [{ stepMs: STEP_MS }] = RESOLUTIONS;

/** Begins to close the steps. */
export function startHistoryClock(
  { history, feed }: { readonly history: History; readonly feed: Pick<EventFeed, "emit"> },
  registry: Pick<ProfileRegistry, "profiles">,
  runtime: Pick<Runtime, "after" | "wallMs">,
): HistoryClock {
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
    history.flush(samples);
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
