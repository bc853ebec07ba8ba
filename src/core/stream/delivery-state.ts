// What one subscription to heads or logs has been told, and what a further head or log means for
// it: to be told, to wait, or to be dropped. Pure but for the record it changes. Asks nobody: a
// head whose parent is unknown is the caller's to trace.
import { asRemoved, type Head, inLiveShape, type Log, memberNames } from "./chain-event.ts";
import {
  createDeliveredLogs,
  type DeliveredLogs,
  deliveredBehind,
  isDelivered,
  isLate,
  newestDelivered,
  note,
  noteRemoved,
  takeBack,
  trim,
} from "./delivered-logs.ts";
import { adopt, createRecentBlocks, holds, type RecentBlocks } from "./recent-blocks.ts";

/** Where a subscription stands on its chain; changed in place by the functions of this file. */
export interface DeliveryState {
  readonly recent: RecentBlocks;
  /** Null = a subscription to heads. */
  readonly delivered: DeliveredLogs | null;
  /** Hash of the block behind which it begins: of that block nothing is told. */
  readonly startHash: string;
  /** The latest head that was pushed: the shape of those that had to be asked for. */
  sample: Buffer | null;
  /** Logs whose block is not known yet, in order of arrival. */
  held: Log[];
}

/** Most text of logs held by one subscription so that it can be taken back. */
const MAX_BOOK_BYTES = 8_388_608;
/** Most logs that may wait for their block. */
export const MAX_HELD_LOGS = 10_000;

/** A subscription that begins behind `head`. `window` is how many blocks are remembered. */
export function createDeliveryState(
  kind: "newHeads" | "logs",
  head: Head,
  window: number,
): DeliveryState {
  const recent = createRecentBlocks(window);
  adopt(recent, head);
  return {
    recent,
    delivered: kind === "logs" ? createDeliveredLogs() : null,
    startHash: head.hash,
    sample: null,
    held: [],
  };
}

/**
 * Takes in a head whose parent is known. Returns what the subscriber is told; null = it would have
 * to be told of logs that are no longer held. `pushed` = in the shape of subscriptions, otherwise a
 * block that was asked for.
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
    const texts = takeBack(delivered, block);
    if (texts === null) return null;
    events.push(...texts);
  }
  const own = state.held.filter((log) => log.blockHash === head.hash);
  if (own.length > 0) state.held = state.held.filter((log) => log.blockHash !== head.hash);
  for (const log of own) if (note(delivered, log)) events.push(log.raw);
  trim(delivered, { blocks: state.recent.window, bytes: MAX_BOOK_BYTES });
  return events;
}

/**
 * Takes in a log. Returns what the subscriber is told; null = it waits for its block, as does
 * everything that is told of that block.
 */
export function takeLog(state: DeliveryState, log: Log): readonly Buffer[] | null {
  const { delivered, recent, held } = state;
  if (delivered === null || log.blockHash === state.startHash) return [];
  if (log.removed) {
    state.held = held.filter(
      (waiting) => waiting.blockHash !== log.blockHash || waiting.logIndex !== log.logIndex,
    );
    return noteRemoved(delivered, log) ? [log.raw] : [];
  }
  if (holds(recent, log.blockNumber, log.blockHash)) return note(delivered, log) ? [log.raw] : [];
  if (log.blockNumber < (recent.blocks[0]?.number ?? 0)) return [];
  held.push(log);
  return null;
}

/**
 * Takes in logs of blocks in the view in their place: what was told behind the first of them is
 * taken back, and told again after them. Returns what the subscriber is told; null = the texts of
 * those are no longer held.
 */
export function insertLogs(state: DeliveryState, logs: readonly Log[]): readonly Buffer[] | null {
  const { delivered, recent, startHash } = state;
  if (delivered === null) return [];
  const fresh = logs.filter(
    (log) =>
      log.blockHash !== startHash &&
      !isDelivered(delivered, log) &&
      holds(recent, log.blockNumber, log.blockHash),
  );
  fresh.sort(
    (left, right) => left.blockNumber - right.blockNumber || left.logIndex - right.logIndex,
  );
  const [first] = fresh;
  if (first === undefined) return [];
  const behind = deliveredBehind(delivered, recent.blocks, first);
  if (behind === null) return null;
  for (const log of fresh) note(delivered, log);
  const again =
    behind.length === 0
      ? fresh.map((log) => log.raw)
      : (deliveredBehind(delivered, recent.blocks, { ...first, logIndex: first.logIndex - 1 }) ??
        []);
  return [...behind.toReversed().map(asRemoved), ...again];
}

/** Whether a log comes behind one that follows it in the chain. */
export function comesLate({ delivered, recent }: DeliveryState, log: Log): boolean {
  return delivered !== null && isLate(delivered, log, newestDelivered(delivered, recent.blocks));
}

/** Drops the logs that wait for a block which is not on the chain. */
export function dropHeld(state: DeliveryState, blockHash: string): void {
  state.held = state.held.filter((log) => log.blockHash !== blockHash);
}
