// Queries one provider for the logs of one block, for a check. A block that the provider does not
// know yet is queried again; failures do not count against the provider.
import type { Channel, Counting } from "../../../core/provider/attempt.ts";
import type { ErrorCategory } from "../../../core/provider-errors/category.ts";
import type { Block, Log } from "../../../core/stream/chain-event.ts";
import { ALL_LOGS, logsOfBlock } from "../../../core/stream/subscription.ts";
import type { Runtime } from "../../../runtime.ts";
import type { RoutedCall, Router } from "../../engine/router.ts";
import type { Tracker } from "../../health/tracker.ts";
import type { TimerWheel } from "../../timer-wheel.ts";
import type { Shares } from "../../worker-shares.ts";
import { readLogs } from "../backfill.ts";
import { queryProvider } from "../service-call.ts";

/** Dependencies of queries. */
export interface BlockLogsQueryParts {
  /** Divides the budget of checks between workers; absent = this process is the whole service. */
  readonly shares?: Shares;
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly router: Pick<Router, "route" | "reaches">;
}

/** The logs to query and the provider. */
export interface BlockLogsQuery {
  readonly tracker: Tracker;
  readonly channel: Channel;
  readonly block: Block;
  /** The JSON array of `eth_getLogs`. */
  readonly params: string;
  /** Takes one call from the budget. False = no call may be made now. */
  readonly spend: () => boolean;
}

/** What a provider said once. */
type BlockAnswer = readonly Log[] | "unknown block" | "failed";

/** A query, and what its outcome counts for. */
interface OneQuery extends Omit<BlockLogsQuery, "spend"> {
  readonly counts: Counting;
}

/** Waits before retries for a block that the provider does not know yet. */
const AGAIN_MS = [100, 300, 900] as const;
const DEADLINE_MS = 2_000;

/** Queries the logs; null = the provider did not answer. Never rejects. */
export async function queryBlockLogs(
  parts: BlockLogsQueryParts,
  { spend, ...query }: BlockLogsQuery,
): Promise<readonly Log[] | null> {
  for (const waitMs of [0, ...AGAIN_MS]) {
    if (waitMs > 0)
      await new Promise<void>((resolve) => void parts.timerWheel.set(waitMs, resolve));
    if (!spend()) return null;
    const said = await queryOnce(parts.router, { ...query, counts: "limits" });
    if (said === "failed") return null;
    if (said !== "unknown block") return said;
  }
  return null;
}

/** Queries all logs of a block from the provider of streams, once. Never rejects. */
export function queryBlock(
  { router }: Pick<BlockLogsQueryParts, "router">,
  { tracker, channel, block }: Pick<BlockLogsQuery, "tracker" | "channel" | "block">,
): Promise<BlockAnswer> {
  const counts = channel.transport === "ws" ? "nothing" : "limits";
  const params = logsOfBlock(ALL_LOGS, block.hash);
  return queryOnce(router, { tracker, channel, counts, block, params });
}

function queryOnce(
  router: Pick<Router, "route" | "reaches">,
  { tracker, channel, counts, block, params }: OneQuery,
): Promise<BlockAnswer> {
  const query = {
    tracker,
    channel,
    counts,
    method: "eth_getLogs",
    params,
    deadlineMs: DEADLINE_MS,
  };
  return new Promise((resolve) => {
    queryProvider(router, query, (result, route) => {
      if (result === null) resolve(lacksBlock(route) ? "unknown block" : "failed");
      else if (result.toString("latin1", 0, NULL.length) === NULL) resolve("unknown block");
      else resolve(readLogs(result, block) ?? "failed");
    });
  });
}

const NULL = "null";

/** Whether the provider said that it does not know the block yet. Any other error would repeat. */
function lacksBlock({ traces }: RoutedCall): boolean {
  return UNKNOWN_BLOCK.has(traces.at(-1)?.attempt.verdict?.category ?? "");
}

const UNKNOWN_BLOCK: ReadonlySet<string> = new Set<ErrorCategory>([
  "block_missing",
  "block_ahead",
  "lagging",
]);
