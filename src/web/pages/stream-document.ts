// Subscriptions and provider sockets as `GET /api/metrics/{chain}` shows them. Omits the filter
// criteria, which are private to their callers.
import type { Provider } from "../../core/provider/profile.ts";
import { COUNTED_KINDS } from "../../core/stream/subscription.ts";
import { CHECK_RESULTS } from "../../observe/metrics.ts";
import type { StreamFacts } from "../../observe/readings.ts";
import type { Series } from "../../observe/series.ts";
import { FAILOVER_REASONS } from "../../upstream/stream/subscriber.ts";
import type { SocketReport } from "../../upstream/transport.ts";

const MAX_SHOWN = 100;

/** The subscriptions of one profile on one chain; `shown` returns the public id of a provider. */
export function subscriptionsDocument(
  { subscriptions }: StreamFacts,
  series: Series,
  shown: (provider: Provider) => string,
): unknown {
  const own = ({ profile, chain }: { readonly profile: string; readonly chain: string }): boolean =>
    profile === series.profile && chain === series.chain;
  const open = subscriptions.reports().filter(own);
  const counts = subscriptions.counts().find(own);
  const checks = subscriptions.checks().find(own);
  return {
    open: open.length,
    subscribers: sumOf(open, (stream) => stream.subscribers),
    failovers: Object.fromEntries(
      FAILOVER_REASONS.map((reason) => [reason, counts?.failovers[reason] ?? 0]),
    ),
    blocks_filled: (counts?.filledBlocks ?? 0) + sumOf(open, (stream) => stream.filledBlocks),
    ended: counts?.ended ?? 0,
    log_checks: {
      ...Object.fromEntries(CHECK_RESULTS.map(([name, member]) => [name, checks?.[member] ?? 0])),
      calls: checks?.calls ?? 0,
    },
    notifications: Object.fromEntries(
      COUNTED_KINDS.map((kind, i) => [kind, series.notifications[i] ?? 0]),
    ),
    streams: open.slice(0, MAX_SHOWN).map((stream) => ({
      kind: stream.kind,
      state: stream.state,
      provider: stream.provider === null ? null : shown(stream.provider),
      pinned: stream.pinned,
      subscribers: stream.subscribers,
      block_height: stream.height,
      blocks_behind: stream.behind,
      events: stream.events,
      failovers: stream.failovers,
      blocks_filled: stream.filledBlocks,
    })),
  };
}

/** The WebSocket to a provider. */
export function socketDocument({
  state,
  subscriptions,
  opened,
  strayFrames,
}: SocketReport): unknown {
  return { state, subscriptions, opened, stray_frames: strayFrames };
}

function sumOf<T>(list: readonly T[], amountOf: (item: T) => number): number {
  return list.reduce((sum, item) => sum + amountOf(item), 0);
}
