// Fetches blocks and logs between the last delivered block and a new head from one provider, and
// checks that each block links to its parent. Delivers nothing.
import { elements, OPEN_ARRAY } from "../../core/rpc/json.ts";
import {
  type Block,
  type Head,
  type Log,
  readHead,
  readLog,
} from "../../core/stream/chain-event.ts";
import type { DeliveryState } from "../../core/stream/delivery-state.ts";
import { place } from "../../core/stream/recent-blocks.ts";
import { type LogFilter, logsOfBlock, type Subscription } from "../../core/stream/subscription.ts";
import type { Runtime } from "../../runtime.ts";
import type { TimerWheel } from "../timer-wheel.ts";

/** Dependencies of a backfill. */
export interface Backfill {
  readonly runtime: Runtime;
  readonly query: (method: string, params: string) => Promise<Buffer | null>;
  /** The logs of a block that the provider has and the filter matches. */
  readonly logsOf: (
    block: Block,
    filter: LogFilter,
    queryAlone: () => Promise<readonly Log[] | null>,
  ) => Promise<readonly Log[] | null>;
  readonly state: DeliveryState;
  readonly subscription: Subscription;
  /** Most blocks to fetch. */
  readonly maxBlocks: number;
  /** Called for each useful answer. */
  readonly progress: () => void;
}

/**
 * Why there is no path. `far`: more blocks are missing than may be fetched. `unanswered`: the
 * provider did not return what it must have, or is behind all known blocks. `reorged`: the
 * requested blocks have meanwhile left its chain.
 */
export type BackfillFailure = "far" | "unanswered" | "reorged";

/** Retries, since a node that has just announced a block may need a moment to serve it. */
const TRIES = 6;
const RETRY_MS = 150;
const LOGS_AT_ONCE = 4;
const MAX_LOGS_PER_BLOCK = 100_000;

/**
 * Fetches the blocks between the delivered ones and `head`: they link to a known one, oldest first,
 * and end with `head`.
 */
export async function backfillTo(
  backfill: Backfill,
  head: Head,
): Promise<readonly Head[] | BackfillFailure> {
  const { state, maxBlocks } = backfill;
  const path: Head[] = [head];
  for (let oldest = head; ; ) {
    switch (place(state.recent, oldest, maxBlocks)) {
      case "known":
        return path.slice(1);
      case "next":
        return path;
      case "old":
        return oldest === head ? "unanswered" : "far";
      case "far":
        return "far";
      case "unlinked": {
        if (path.length > maxBlocks) return "far";
        const parent = await readParent(backfill, oldest);
        if (parent === "reorged") return parent;
        if (parent?.number !== oldest.number - 1) return "unanswered";
        path.unshift(parent);
        oldest = parent;
      }
    }
  }
}

/** Fetches the provider's block with a number, or its newest one; null = it did not answer. */
export async function blockAt(
  from: Pick<Backfill, "query">,
  number: number | "latest",
): Promise<Head | null> {
  const block = number === "latest" ? number : `0x${number.toString(16)}`;
  const raw = await from.query("eth_getBlockByNumber", `["${block}",false]`);
  return raw === null ? null : readHead(raw);
}

/** Fetches the matching logs of some blocks, by block hash: all of them, or none. */
export async function logsOf(
  backfill: Backfill,
  blocks: readonly Block[],
): Promise<ReadonlyMap<string, readonly Log[]> | "unanswered" | "reorged"> {
  const found = new Map<string, readonly Log[]>();
  const open = [...blocks];
  let failure: "unanswered" | "reorged" | null = null;
  const work = async (): Promise<void> => {
    for (let block = open.shift(); block !== undefined && failure === null; block = open.shift()) {
      const logs = await logsOfOne(backfill, block);
      if (logs === "reorged") failure = logs;
      else if (logs === null) failure ??= "unanswered";
      else found.set(block.hash, logs);
    }
  };
  await Promise.all(Array.from({ length: Math.min(LOGS_AT_ONCE, blocks.length) }, work));
  return failure ?? found;
}

async function readParent(backfill: Backfill, child: Block): Promise<Head | "reorged" | null> {
  const { parentHash } = child;
  return withRetries(backfill, child, async () => {
    const raw = await backfill.query("eth_getBlockByHash", `["${parentHash}",false]`);
    const head = raw === null ? null : readHead(raw);
    return head?.hash === parentHash ? head : null;
  });
}

async function logsOfOne(
  backfill: Backfill,
  block: Block,
): Promise<readonly Log[] | "reorged" | null> {
  const { filter } = backfill.subscription;
  if (filter === null) return [];
  const params = logsOfBlock(filter, block.hash);
  const queryAlone = async (): Promise<readonly Log[] | null> => {
    const raw = await backfill.query("eth_getLogs", params);
    return raw === null ? null : readLogs(raw, block);
  };
  return withRetries(backfill, block, () => backfill.logsOf(block, filter, queryAlone));
}

/** Parses the logs of an answer, in order; null = it is not a list of logs of this block. */
export function readLogs(raw: Buffer, { number, hash }: Block): readonly Log[] | null {
  if (raw[0] !== OPEN_ARRAY) return null;
  const logs: Log[] = [];
  for (const span of elements(raw, 0, raw.length, MAX_LOGS_PER_BLOCK)) {
    const log = readLog(raw.subarray(span.start, span.end));
    if (log === null || log.blockHash !== hash || log.blockNumber !== number || log.removed)
      return null;
    logs.push(log);
  }
  return logs.sort((left, right) => left.logIndex - right.logIndex);
}

/** Retries `query` for a while, unless `block` has been replaced on the provider's chain. */
async function withRetries<T>(
  backfill: Backfill,
  block: Block,
  query: () => Promise<T | null>,
): Promise<T | "reorged" | null> {
  for (let tries = 0; tries < TRIES; tries++) {
    const found = await query();
    if (found !== null) {
      backfill.progress();
      return found;
    }
    const instead = tries === 0 ? null : await blockAt(backfill, block.number);
    if (instead !== null && instead.hash !== block.hash) return "reorged";
    await new Promise<void>((resolve) => backfill.runtime.after(RETRY_MS * (tries + 1), resolve));
  }
  return null;
}

const LEAST_STALL_MS = 1_000;
const MOST_STALL_MS = 3_000;
const STALL_SHARE = 10;
const TOTAL_SHARE = 2;

/**
 * Starts a backfill from one source, and gives up after silence, or when it takes the time that
 * other sources need: both are shares of the time that an outage may last. The silence may double
 * with each `round` in which all sources were tried in vain. Does not stop the work: the caller
 * closes the source.
 */
export function withBackfillDeadline<T>(
  timerWheel: TimerWheel,
  { outageMs, round }: { readonly outageMs: number; readonly round: number },
  begin: (progress: () => void) => Promise<T>,
): Promise<T | "unanswered"> {
  const shareMs = Math.min(MOST_STALL_MS, Math.max(LEAST_STALL_MS, outageMs / STALL_SHARE));
  const stallMs = shareMs * 2 ** round;
  return new Promise((resolve, reject) => {
    let isOver = false;
    const end = (): void => {
      isOver = true;
      stall.clear();
      total.clear();
    };
    const giveUp = (): void => {
      end();
      resolve("unanswered");
    };
    let stall = timerWheel.set(stallMs, giveUp);
    const total = timerWheel.set(outageMs / TOTAL_SHARE, giveUp);
    const progress = (): void => {
      if (isOver) return;
      stall.clear();
      stall = timerWheel.set(stallMs, giveUp);
    };
    begin(progress).finally(end).then(resolve, reject);
  });
}
