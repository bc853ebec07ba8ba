// What a subscription to heads or logs has delivered. Decides whether the next head or log is
// delivered, held or dropped. Pure except for the state that it changes. Sends no queries: finding
// a head's missing parents is the caller's task.
import { asRemoved, type Head, inLiveShape, type Log, memberNames } from "./chain-event.ts";
import * as record from "./delivered-logs.ts";
import { adopt, holds, RecentBlocks } from "./recent-blocks.ts";

/** The delivery state of a subscription. Changed in place, only by the functions of this file. */
export interface DeliveryState {
  readonly recent: RecentBlocks;
  /** Null = the subscription is to heads. */
  readonly delivered: record.DeliveredLogs | null;
  /** Hash of the block after which the subscription starts; nothing is delivered for that block. */
  readonly startHash: string;
  /** The latest pushed head; backfilled blocks are given its shape. */
  sample: Buffer | null;
  /** Logs that arrived before their block, in order of arrival. */
  held: Log[];
}

/** Most bytes of JSON that one subscription keeps for removals. */
const MAX_KEPT_BYTES = 8_388_608;
/** Most logs that may wait for their block. */
export const MAX_HELD_LOGS = 10_000;

/** The state of a subscription that starts after `head`; `window` = most blocks remembered. */
export function stateAfter(kind: "newHeads" | "logs", head: Head, window: number): DeliveryState {
  const recent = new RecentBlocks(window);
  adopt(recent, head);
  return {
    recent,
    delivered: kind === "logs" ? new record.DeliveredLogs() : null,
    startHash: head.hash,
    sample: null,
    held: [],
  };
}

/**
 * Accepts a head whose parent is known. Returns the events to deliver; null = a removal is due
 * whose JSON is no longer kept. `pushed`: the head has the shape of pushed headers; false = it was
 * queried.
 */
export function takeHead(
  state: DeliveryState,
  head: Head,
  pushed: boolean,
): readonly Buffer[] | null {
  const left = adopt(state.recent, head);
  if (pushed) state.sample = head.raw;
  const { delivered } = state;
  if (delivered === null)
    return [
      pushed
        ? head.raw
        : inLiveShape(head.raw, state.sample === null ? null : memberNames(state.sample)),
    ];
  const events: Buffer[] = [];
  for (const block of left) {
    const texts = record.takeBack(delivered, block);
    if (texts === null) return null;
    events.push(...texts);
  }
  const own = state.held.filter((log) => log.blockHash === head.hash);
  if (own.length > 0) state.held = state.held.filter((log) => log.blockHash !== head.hash);
  for (const log of own) if (record.note(delivered, log)) events.push(log.raw);
  record.trim(delivered, { blocks: state.recent.window, bytes: MAX_KEPT_BYTES });
  return events;
}

/**
 * Accepts a log. Returns the events to deliver; null = the log waits for its block, together with
 * all later events of that block.
 */
export function takeLog(state: DeliveryState, log: Log): readonly Buffer[] | null {
  const { delivered, recent, held } = state;
  if (delivered === null || log.blockHash === state.startHash) return [];
  if (log.removed) {
    state.held = held.filter(
      (waiting) => waiting.blockHash !== log.blockHash || waiting.logIndex !== log.logIndex,
    );
    return record.noteRemoved(delivered, log) ? [log.raw] : [];
  }
  if (holds(recent, log.blockNumber, log.blockHash))
    return record.note(delivered, log) ? [log.raw] : [];
  if (log.blockNumber < (recent.blocks[0]?.number ?? 0)) return [];
  held.push(log);
  return null;
}

/**
 * Inserts late logs at their position: removes the delivered logs after the first of them and
 * delivers those again behind it. Returns the events to deliver; null = the JSON of a log to be
 * removed is no longer kept.
 */
export function insertLogs(state: DeliveryState, logs: readonly Log[]): readonly Buffer[] | null {
  const { delivered, recent, startHash } = state;
  if (delivered === null) return [];
  const fresh = logs.filter(
    (log) =>
      log.blockHash !== startHash &&
      !record.isDelivered(delivered, log) &&
      holds(recent, log.blockNumber, log.blockHash),
  );
  fresh.sort(
    (left, right) => left.blockNumber - right.blockNumber || left.logIndex - right.logIndex,
  );
  const [first] = fresh;
  if (first === undefined) return [];
  const behind = record.deliveredBehind(delivered, recent.blocks, first);
  if (behind === null) return null;
  for (const log of fresh) record.note(delivered, log);
  const again =
    behind.length === 0
      ? fresh.map((log) => log.raw)
      : (record.deliveredBehind(delivered, recent.blocks, {
          ...first,
          logIndex: first.logIndex - 1,
        }) ?? []);
  return [...behind.toReversed().map(asRemoved), ...again];
}

/** Whether a log arrives after a log that follows it in the chain was delivered. */
export function comesLate({ delivered, recent }: DeliveryState, log: Log): boolean {
  if (delivered === null) return false;
  return record.isLate(delivered, log, record.newestDelivered(delivered, recent.blocks));
}

/** Drops the logs that wait for a block that is not in the chain. */
export function dropHeld(state: DeliveryState, blockHash: string): void {
  state.held = state.held.filter((log) => log.blockHash !== blockHash);
}
