// Which logs a subscriber has been told of, by block: so that none is told twice, and those of a
// block that leaves the chain can be taken back.
import { asRemoved, type Block, type Log } from "./chain-event.ts";

/**
 * The logs told, by block hash, oldest block first; changed in place by the functions of this file.
 */
export interface DeliveredLogs {
  readonly pages: Map<string, Page>;
  /** Text held for taking logs back. */
  bytes: number;
}

/** The logs of one block. */
interface Page {
  /** Text by log index; null = told and taken back. */
  readonly logs: Map<number, Buffer | null>;
  /** Of the texts held. */
  bytes: number;
}

/** An empty book. */
export function createDeliveredLogs(): DeliveredLogs {
  return { pages: new Map(), bytes: 0 };
}

/** Notes a log of a block in the chain. False = it has been told before. */
export function note(book: DeliveredLogs, log: Log): boolean {
  const page = book.pages.get(log.blockHash) ?? {
    logs: new Map<number, Buffer | null>(),
    bytes: 0,
  };
  book.pages.set(log.blockHash, page);
  if (page.logs.get(log.logIndex)) return false;
  page.logs.set(log.logIndex, log.raw);
  page.bytes += log.raw.length;
  book.bytes += log.raw.length;
  return true;
}

/** A log's place on its chain. */
export type Position = Pick<Log, "blockNumber" | "logIndex">;

/**
 * Where the newest log stands that has been told and not taken back; null = nowhere. `blocks` are
 * those of the chain, in order.
 */
export function newestDelivered(book: DeliveredLogs, blocks: readonly Block[]): Position | null {
  for (let at = blocks.length - 1; at >= 0; at--) {
    const { number = 0, hash = "" } = blocks[at] ?? {};
    let logIndex = -1;
    for (const [index, raw] of book.pages.get(hash)?.logs ?? [])
      if (raw !== null) logIndex = Math.max(logIndex, index);
    if (logIndex !== -1) return { blockNumber: number, logIndex };
  }
  return null;
}

/** Whether a log that was never told comes too late: one that follows it stands already. */
export function isLate(book: DeliveredLogs, log: Log, newest: Position | null): boolean {
  if (newest === null || book.pages.get(log.blockHash)?.logs.get(log.logIndex)) return false;
  return (
    log.blockNumber < newest.blockNumber ||
    (log.blockNumber === newest.blockNumber && log.logIndex < newest.logIndex)
  );
}

/** Whether a log was told and then taken back by its provider. */
export function wasTakenBack(book: DeliveredLogs, { blockHash, logIndex }: Log): boolean {
  return book.pages.get(blockHash)?.logs.get(logIndex) === null;
}

/** Whether a log stands as told. */
export function isDelivered(book: DeliveredLogs, { blockHash, logIndex }: Log): boolean {
  return Boolean(book.pages.get(blockHash)?.logs.get(logIndex));
}

/**
 * The logs that stand behind a position, in order; null = the text of one of them is no longer
 * held. `blocks` are those of the chain.
 */
export function deliveredBehind(
  book: DeliveredLogs,
  blocks: readonly Block[],
  position: Position,
): readonly Buffer[] | null {
  const behind: Buffer[] = [];
  for (const { number, hash } of blocks) {
    if (number < position.blockNumber) continue;
    const logs = [...(book.pages.get(hash)?.logs ?? [])].sort(([left], [right]) => left - right);
    for (const [index, raw] of logs) {
      if (raw === null || (number === position.blockNumber && index <= position.logIndex)) continue;
      if (raw === DROPPED) return null;
      behind.push(raw);
    }
  }
  return behind;
}

/**
 * Notes that the provider itself took a log back. False = it was never told, or has been taken back
 * before.
 */
export function noteRemoved(book: DeliveredLogs, log: Log): boolean {
  const page = book.pages.get(log.blockHash);
  const told = page?.logs.get(log.logIndex);
  if (page === undefined || told === undefined || told === null) return false;
  page.logs.set(log.logIndex, null);
  page.bytes -= told.length;
  book.bytes -= told.length;
  return true;
}

/** Whether the provider took back a log of this block that nobody has told again. */
export function lacks(book: DeliveredLogs, blockHash: string): boolean {
  return [...(book.pages.get(blockHash)?.logs.values() ?? [])].includes(null);
}

/**
 * The texts that take back what was told of a block that has left the chain, last log first; null =
 * they are no longer held.
 */
export function takeBack(book: DeliveredLogs, block: Block): readonly Buffer[] | null {
  const page = book.pages.get(block.hash);
  if (page === undefined) return [];
  forget(book, block.hash);
  const told = [...page.logs]
    .filter((log): log is [number, Buffer] => log[1] !== null)
    .sort(([left], [right]) => right - left);
  return told.some(([, raw]) => raw === DROPPED) ? null : told.map(([, raw]) => asRemoved(raw));
}

/**
 * Keeps the book within its bounds: forgets the oldest blocks, and drops the oldest texts of those
 * that stay.
 */
export function trim(
  book: DeliveredLogs,
  bounds: { readonly blocks: number; readonly bytes: number },
): void {
  for (const [hash, page] of book.pages) {
    if (book.pages.size > bounds.blocks) forget(book, hash);
    else if (book.bytes > bounds.bytes) dropTexts(book, page);
    else return;
  }
}

/** A log that was told and whose text is no longer held. */
const DROPPED = Buffer.alloc(0);

function forget(book: DeliveredLogs, hash: string): void {
  book.bytes -= book.pages.get(hash)?.bytes ?? 0;
  book.pages.delete(hash);
}

function dropTexts(book: DeliveredLogs, page: Page): void {
  book.bytes -= page.bytes;
  page.bytes = 0;
  for (const [index, raw] of page.logs) if (raw !== null) page.logs.set(index, DROPPED);
}
