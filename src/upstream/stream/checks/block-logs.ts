// All logs of a block, as one provider returned them: asked once for everybody, and kept for a
// while for those who ask later. Knows no filter's owner and no budget.

import type { Channel, Counting } from "../../../core/provider/attempt.ts";
import type { ErrorCategory } from "../../../core/provider-errors/category.ts";
import { type Block, type Log, readLogKeys } from "../../../core/stream/chain-event.ts";
import type { LogKeys } from "../../../core/stream/log-bloom.ts";
import { matchesFilter } from "../../../core/stream/log-verification.ts";
import { ALL_LOGS, type LogFilter, logsOfBlock } from "../../../core/stream/subscription.ts";
import type { RoutedCall, Router } from "../../engine/router.ts";
import type { Tracker } from "../../health/tracker.ts";
import { readLogs } from "../backfill.ts";
import { queryProvider } from "../service-call.ts";
import type { StreamParts } from "../source.ts";

/** From so many different filters on, all logs of a block are asked for, and matched here. */
export const LEAST_FILTERS_TOGETHER = 5;

/** A log with what filters look at. */
export interface KeyedLog {
  readonly log: Log;
  readonly keys: LogKeys;
}

/** Most bytes and answers that are kept, for all profiles and chains. */
const MAX_BYTES = 33_554_432;
const MAX_ANSWERS = 512;
/** Memory of one log beside its text. */
const LOG_OVERHEAD_BYTES = 1_024;

interface KeptAnswer {
  readonly logs: readonly KeyedLog[];
  readonly bytes: number;
}

/** The answers of providers to the question for all logs of a block. */
export class BlockLogs {
  /** Oldest first. */
  readonly #kept = new Map<string, KeptAnswer>();
  readonly #underWay = new Map<string, Promise<readonly KeyedLog[] | null>>();
  #bytes = 0;

  /** The answer under a key; null = it is not kept. */
  kept(key: string): readonly KeyedLog[] | null {
    return this.#kept.get(key)?.logs ?? null;
  }

  /** The answer under a key, asked for with `queryAlone` if need be; null = there is none. */
  fetch(
    key: string,
    queryAlone: () => Promise<readonly Log[] | null>,
  ): Promise<readonly KeyedLog[] | null> {
    const kept = this.kept(key);
    if (kept !== null) return Promise.resolve(kept);
    const known = this.#underWay.get(key);
    if (known !== undefined) return known;
    const answer = queryAlone().then((logs) => {
      this.#underWay.delete(key);
      return logs === null ? null : this.#keep(key, logs);
    });
    this.#underWay.set(key, answer);
    return answer;
  }

  #keep(key: string, answered: readonly Log[]): readonly KeyedLog[] {
    const logs = keyed(answered);
    const bytes = logs.reduce((sum, { log }) => sum + log.raw.length + LOG_OVERHEAD_BYTES, 0);
    this.#kept.set(key, { logs, bytes });
    this.#bytes += bytes;
    for (const [oldest, answer] of this.#kept) {
      if (this.#bytes <= MAX_BYTES && this.#kept.size <= MAX_ANSWERS) break;
      this.#kept.delete(oldest);
      this.#bytes -= answer.bytes;
    }
    return logs;
  }
}

/** Logs with what filters look at; those that are malformed are left out. */
export function keyed(logs: readonly Log[]): readonly KeyedLog[] {
  return logs.flatMap((log) => {
    const keys = readLogKeys(log);
    return keys === null ? [] : [{ log, keys }];
  });
}

/**
 * The logs that a filter matches. They are copied: they may be remembered for longer than the
 * answer, which holds all logs of the block.
 */
export function matching(filter: LogFilter, logs: readonly KeyedLog[]): readonly Log[] {
  return logs
    .filter(({ keys }) => matchesFilter(filter, keys))
    .map(({ log }) => ({ ...log, raw: Buffer.from(log.raw) }));
}

// Queries one provider for the logs of one block, for a check. A block that the provider does not
// know yet is queried again; failures do not count against the provider.

/** A block whose logs are queried, and the provider. */
export interface SourceBlock {
  readonly tracker: Tracker;
  readonly channel: Channel;
  readonly block: Block;
}

/** Which of its logs. */
export interface BlockLogsQuery extends SourceBlock {
  /** The JSON array of `eth_getLogs`. */
  readonly params: string;
  /** Takes one call from the budget. False = no call may be made now. */
  readonly spend: () => boolean;
}

/** What a provider said once. */
type BlockAnswer = readonly Log[] | "unknown block" | "failed";

/** Waits before retries for a block that the provider does not know yet. */
const AGAIN_MS = [100, 300, 900] as const;
const DEADLINE_MS = 2_000;

/** Queries the logs; null = the provider did not answer. Never rejects. */
export async function queryBlockLogs(
  parts: Pick<StreamParts, "timerWheel" | "router">,
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
  { router }: Pick<StreamParts, "router">,
  source: SourceBlock,
): Promise<BlockAnswer> {
  const counts = source.channel.transport === "ws" ? "nothing" : "limits";
  return queryOnce(router, {
    ...source,
    counts,
    params: logsOfBlock(ALL_LOGS, source.block.hash),
  });
}

function queryOnce(
  router: Pick<Router, "route">,
  { block, ...asked }: Omit<BlockLogsQuery, "spend"> & { readonly counts: Counting },
): Promise<BlockAnswer> {
  const query = { ...asked, method: "eth_getLogs", deadlineMs: DEADLINE_MS };
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
