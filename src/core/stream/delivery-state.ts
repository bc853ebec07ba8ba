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
  readonly view: RecentBlocks;
  /** Null = a subscription to heads. */
  readonly book: DeliveredLogs | null;
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
  const view = createRecentBlocks(window);
  adopt(view, head);
  return {
    view,
    book: kind === "logs" ? createDeliveredLogs() : null,
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
  track: DeliveryState,
  head: Head,
  pushed: boolean,
): readonly Buffer[] | null {
  const left = adopt(track.view, head);
  if (pushed) track.sample = head.raw;
  const { book } = track;
  if (book === null)
    return [
      pushed
        ? head.raw
        : inLiveShape(head.raw, track.sample === null ? null : memberNames(track.sample)),
    ];
  const told: Buffer[] = [];
  for (const block of left) {
    const texts = takeBack(book, block);
    if (texts === null) return null;
    told.push(...texts);
  }
  const own = track.held.filter((log) => log.blockHash === head.hash);
  if (own.length > 0) track.held = track.held.filter((log) => log.blockHash !== head.hash);
  for (const log of own) if (note(book, log)) told.push(log.raw);
  trim(book, { blocks: track.view.window, bytes: MAX_BOOK_BYTES });
  return told;
}

/**
 * Takes in a log. Returns what the subscriber is told; null = it waits for its block, as does
 * everything that is told of that block.
 */
export function takeLog(track: DeliveryState, log: Log): readonly Buffer[] | null {
  const { book, view, held } = track;
  if (book === null || log.blockHash === track.startHash) return [];
  if (log.removed) {
    track.held = held.filter(
      (waiting) => waiting.blockHash !== log.blockHash || waiting.logIndex !== log.logIndex,
    );
    return noteRemoved(book, log) ? [log.raw] : [];
  }
  if (holds(view, log.blockNumber, log.blockHash)) return note(book, log) ? [log.raw] : [];
  if (log.blockNumber < (view.blocks[0]?.number ?? 0)) return [];
  held.push(log);
  return null;
}

/**
 * Takes in logs of blocks in the view in their place: what was told behind the first of them is
 * taken back, and told again after them. Returns what the subscriber is told; null = the texts of
 * those are no longer held.
 */
export function insertLogs(track: DeliveryState, logs: readonly Log[]): readonly Buffer[] | null {
  const { book, view, startHash } = track;
  if (book === null) return [];
  const fresh = logs.filter(
    (log) =>
      log.blockHash !== startHash &&
      !isDelivered(book, log) &&
      holds(view, log.blockNumber, log.blockHash),
  );
  fresh.sort(
    (left, right) => left.blockNumber - right.blockNumber || left.logIndex - right.logIndex,
  );
  const [first] = fresh;
  if (first === undefined) return [];
  const behind = deliveredBehind(book, view.blocks, first);
  if (behind === null) return null;
  for (const log of fresh) note(book, log);
  const again =
    behind.length === 0
      ? fresh.map((log) => log.raw)
      : (deliveredBehind(book, view.blocks, { ...first, logIndex: first.logIndex - 1 }) ?? []);
  return [...behind.toReversed().map(asRemoved), ...again];
}

/** Whether a log comes behind one that follows it in the chain. */
export function comesLate({ book, view }: DeliveryState, log: Log): boolean {
  return book !== null && isLate(book, log, newestDelivered(book, view.blocks));
}

/** Drops the logs that wait for a block which is not on the chain. */
export function dropHeld(track: DeliveryState, blockHash: string): void {
  track.held = track.held.filter((log) => log.blockHash !== blockHash);
}
