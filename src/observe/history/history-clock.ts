// Ends the steps of history in time: passes on what this process counted in each, with how the
// providers are at its end. Tells the feed of providers whose heads fell behind or caught up.
import { isDevelopmentChain } from "../../core/provider/chain.ts";
import type { ProviderSet } from "../../core/provider/profile.ts";
import type { Runtime } from "../../runtime.ts";
import type { ProfileRegistry } from "../../upstream/registry/profile-registry.ts";
import type { EventFeed } from "../feed/event-feed.ts";
import type { FailureCounts } from "./failure-counts.ts";
import { RESOLUTIONS } from "./history.ts";
import type { CountedStep, HistoryCounts } from "./history-counts.ts";
import type { ChainEvidence } from "./step-evidence.ts";

const [{ stepMs: STEP_MS }] = RESOLUTIONS;
const LEAST_STALLED_MS = 20_000;
const STALLED_BLOCKS = 10;
const STALLED_PROBES = 3;

/** What the clock works with. */
export interface HistoryClockParts {
  readonly counts: HistoryCounts;
  readonly failures: FailureCounts;
  readonly feed: Pick<EventFeed, "emit">;
  readonly registry: Pick<ProfileRegistry, "profiles">;
  readonly runtime: Pick<Runtime, "after" | "wallMs">;
  readonly receive: (step: CountedStep) => void;
}

/** Passes on what was counted, step by step, until closed. */
export class HistoryClock {
  readonly #parts: HistoryClockParts;
  #beganMs: number;
  #cancel = (): void => {};
  /** Providers that are behind. */
  #behind: ReadonlySet<string> = new Set();

  constructor(parts: HistoryClockParts) {
    this.#parts = parts;
    this.#beganMs = parts.runtime.wallMs();
    this.#schedule();
  }

  /** Passes on what was counted until now. */
  refresh(): void {
    const { counts, failures, registry, runtime, receive } = this.#parts;
    const samples = samplesOf(registry);
    const evidence = { chains: samples.map(evidenceOf), failures: failures.take() };
    receive({ atMs: this.#beganMs, rows: counts.take(samples), evidence });
    this.#beganMs = runtime.wallMs();
    this.#behind = this.#compareHeads(samples);
  }

  close(): void {
    this.#cancel();
  }

  #schedule(): void {
    const { runtime } = this.#parts;
    this.#cancel = runtime.after(STEP_MS - (runtime.wallMs() % STEP_MS), () => {
      this.#schedule();
      this.refresh();
    });
  }

  #compareHeads(samples: ReturnType<typeof samplesOf>): ReadonlySet<string> {
    const now = new Set<string>();
    for (const { profile, chain, maxLagBlocks, providers } of samples)
      for (const { provider, lagBlocks } of providers) {
        const key = `${profile} ${chain} ${provider.id}`;
        const isBehind = lagBlocks !== null && lagBlocks > maxLagBlocks;
        if (isBehind) now.add(key);
        if (isBehind === this.#behind.has(key)) continue;
        const about = { profile, chain, provider: provider.id };
        const data = { ...about, behind: isBehind, lag_blocks: lagBlocks };
        this.#parts.feed.emit({ type: "head", data });
      }
    return now;
  }
}

/** How the configured providers are now. */
function samplesOf({ profiles }: Pick<ProfileRegistry, "profiles">) {
  return profiles.flatMap(({ profile, trackers }) =>
    [...trackers].map(([chain, tracker]) => ({
      profile: profile.slug,
      chain,
      // A development chain makes blocks when it is asked to: it is never stalled.
      head: isDevelopmentChain(tracker.set.chain) ? null : tracker.head(),
      stalledMs: stalledMs(tracker.set),
      maxLagBlocks: tracker.set.maxLagBlocks,
      providers: tracker.set.providers.map((provider) => tracker.summary(provider)),
    })),
  );
}

/** From when on a chain without a new block is stalled: what is probed hears of one late. */
function stalledMs({ chain, probeIntervalMs }: ProviderSet): number {
  return Math.max(
    LEAST_STALLED_MS,
    STALLED_BLOCKS * chain.blockTimeMs,
    STALLED_PROBES * probeIntervalMs,
  );
}

/** What a sample says to those who judge providers; users' own providers are not judged. */
function evidenceOf({ providers, ...chain }: ReturnType<typeof samplesOf>[number]): ChainEvidence {
  return {
    ...chain,
    providers: providers.flatMap(({ provider, lagBlocks: _, circuit: __, ...known }) =>
      provider.guarded ? [] : [{ ...known, provider: { id: provider.id, alias: provider.alias } }],
    ),
  };
}
