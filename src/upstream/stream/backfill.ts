// Fetches the blocks between the last one delivered and a new head, and their logs, from one
// provider, and checks that each block links to its parent. Delivers nothing.
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

/** `path`: blocks that link to a known one, oldest first, ending with the requested head. */
export type BackfillResult =
  | { readonly kind: "path"; readonly path: readonly Head[] }
  /**
   * `far`: more blocks are missing than may be fetched. `unanswered`: the provider did not return
   * what it must have, or is behind all known blocks.
   */
  | { readonly kind: "far" }
  | { readonly kind: "unanswered" }
  | Reorged;

/** The requested blocks have meanwhile left the provider's own chain. */
export interface Reorged {
  readonly kind: "reorged";
}

/** Retries, since a node that has just announced a block may need a moment to serve it. */
const TRIES = 6;
const RETRY_MS = 150;
const LOGS_AT_ONCE = 4;
const MAX_LOGS_PER_BLOCK = 100_000;

/** Fetches the blocks between the delivered ones and `head`. */
export async function backfillTo(backfill: Backfill, head: Head): Promise<BackfillResult> {
  const { state, maxBlocks } = backfill;
  const path: Head[] = [head];
  for (let oldest = head; ; ) {
    switch (place(state.recent, oldest, maxBlocks)) {
      case "known":
        return { kind: "path", path: path.slice(1) };
      case "next":
        return { kind: "path", path };
      case "old":
        return { kind: oldest === head ? "unanswered" : "far" };
      case "far":
        return { kind: "far" };
      case "unlinked": {
        if (path.length > maxBlocks) return { kind: "far" };
        const parent = await readParent(backfill, oldest);
        if (parent !== null && "kind" in parent) return parent;
        if (parent === null || parent.number !== oldest.number - 1) return { kind: "unanswered" };
        path.unshift(parent);
        oldest = parent;
      }
    }
  }
}

/** Fetches the provider's newest block; null = it did not answer. */
export async function newestBlock({ query }: Pick<Backfill, "query">): Promise<Head | null> {
  const raw = await query("eth_getBlockByNumber", '["latest",false]');
  return raw === null ? null : readHead(raw);
}

/** Fetches the hash of the provider's block with a number; null = it did not answer. */
export async function blockAt(
  { query }: Pick<Backfill, "query">,
  number: number,
): Promise<Head | null> {
  const raw = await query("eth_getBlockByNumber", `["0x${number.toString(16)}",false]`);
  return raw === null ? null : readHead(raw);
}

/**
 * Fetches the matching logs of some blocks, by block hash; null = the provider did not return all
 * of them.
 */
export async function logsOf(
  backfill: Backfill,
  blocks: readonly Block[],
): Promise<ReadonlyMap<string, readonly Log[]> | Reorged | null> {
  const found = new Map<string, readonly Log[]>();
  const open = [...blocks];
  let failure: Reorged | "unanswered" | null = null;
  const work = async (): Promise<void> => {
    for (let block = open.shift(); block !== undefined && failure === null; block = open.shift()) {
      const logs = await logsOfOne(backfill, block);
      if (logs === null) failure ??= "unanswered";
      else if ("kind" in logs) failure = logs;
      else found.set(block.hash, logs);
    }
  };
  await Promise.all(Array.from({ length: Math.min(LOGS_AT_ONCE, blocks.length) }, work));
  if (failure === null) return found;
  return failure === "unanswered" ? null : REORGED;
}

const REORGED: Reorged = { kind: "reorged" };

async function readParent(backfill: Backfill, child: Block): Promise<Head | Reorged | null> {
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
): Promise<readonly Log[] | Reorged | null> {
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
): Promise<T | Reorged | null> {
  for (let tries = 0; tries < TRIES; tries++) {
    const found = await query();
    if (found !== null) {
      backfill.progress();
      return found;
    }
    const instead = tries === 0 ? null : await blockAt(backfill, block.number);
    if (instead !== null && instead.hash !== block.hash) return REORGED;
    await new Promise<void>((resolve) => backfill.runtime.after(RETRY_MS * (tries + 1), resolve));
  }
  return null;
}

// How long one source may take for a backfill: silence ends it, and so does using up the time that
// other sources need. Knows nothing of the queries.

/** Time limits of one source. */
export interface BackfillDeadlineLimits {
  /** Longest time without a useful answer. */
  readonly stallMs: number;
  /** Longest time in total. */
  readonly totalMs: number;
}

const LEAST_STALL_MS = 1_000;
const MOST_STALL_MS = 3_000;
const STALL_SHARE = 10;
const TOTAL_SHARE = 2;

/**
 * The time limits of one source, as a share of the time that an outage may last. Doubled with each
 * `round` in which all sources were tried in vain.
 */
export function backfillDeadlineFor(outageMs: number, round: number): BackfillDeadlineLimits {
  const stallMs =
    Math.min(MOST_STALL_MS, Math.max(LEAST_STALL_MS, outageMs / STALL_SHARE)) * 2 ** round;
  return { stallMs, totalMs: outageMs / TOTAL_SHARE };
}

/**
 * Starts work and reports when it exceeds its limits. Does not stop the work: the caller closes the
 * source.
 */
export function withBackfillDeadline<T>(
  timerWheel: TimerWheel,
  { stallMs, totalMs }: BackfillDeadlineLimits,
  begin: (progress: () => void) => Promise<T>,
): Promise<T | "given up"> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => {
      over = true;
      stall.clear();
      total.clear();
      resolve("given up");
    };
    let over = false;
    let stall = timerWheel.set(stallMs, giveUp);
    const total = timerWheel.set(totalMs, giveUp);
    const progress = (): void => {
      if (over) return;
      stall.clear();
      stall = timerWheel.set(stallMs, giveUp);
    };
    const done = (): void => {
      over = true;
      stall.clear();
      total.clear();
    };
    begin(progress).then(
      (found) => {
        done();
        resolve(found);
      },
      (error: unknown) => {
        done();
        reject(error);
      },
    );
  });
}
