// Which logs a subscriber has received, by block: none is delivered twice, and those of a block
// that leaves the chain can be taken back.
import { asRemoved, type Block, type Log } from "./chain-event.ts";

/**
 * The logs delivered, by block hash, oldest block first; changed in place by the functions of this
 * file.
 */
export interface DeliveredLogs {
  readonly blocks: Map<string, BlockLogs>;
  /** Text held for taking logs back. */
  bytes: number;
}

/** The logs of one block. */
interface BlockLogs {
  /** Text by log index; null = delivered and taken back. */
  readonly logs: Map<number, Buffer | null>;
  /** Of the texts held. */
  bytes: number;
}

/** No logs. */
export function createDeliveredLogs(): DeliveredLogs {
  return { blocks: new Map(), bytes: 0 };
}

/** Notes a log of a block in the chain. False = it was delivered before. */
export function note(delivered: DeliveredLogs, log: Log): boolean {
  const kept = delivered.blocks.get(log.blockHash) ?? {
    logs: new Map<number, Buffer | null>(),
    bytes: 0,
  };
  delivered.blocks.set(log.blockHash, kept);
  if (kept.logs.get(log.logIndex)) return false;
  kept.logs.set(log.logIndex, log.raw);
  kept.bytes += log.raw.length;
  delivered.bytes += log.raw.length;
  return true;
}

/** A log's place on its chain. */
export type Position = Pick<Log, "blockNumber" | "logIndex">;

/**
 * The position of the newest log that was delivered and not taken back; null = none. `blocks` are
 * those of the chain, in order.
 */
export function newestDelivered(
  delivered: DeliveredLogs,
  blocks: readonly Block[],
): Position | null {
  for (let at = blocks.length - 1; at >= 0; at--) {
    const { number = 0, hash = "" } = blocks[at] ?? {};
    let logIndex = -1;
    for (const [index, raw] of delivered.blocks.get(hash)?.logs ?? [])
      if (raw !== null) logIndex = Math.max(logIndex, index);
    if (logIndex !== -1) return { blockNumber: number, logIndex };
  }
  return null;
}

/** Whether a log that was never delivered comes after one that follows it. */
export function isLate(delivered: DeliveredLogs, log: Log, newest: Position | null): boolean {
  if (newest === null || delivered.blocks.get(log.blockHash)?.logs.get(log.logIndex)) return false;
  return (
    log.blockNumber < newest.blockNumber ||
    (log.blockNumber === newest.blockNumber && log.logIndex < newest.logIndex)
  );
}

/** Whether a log was delivered and then taken back by its provider. */
export function wasTakenBack(delivered: DeliveredLogs, { blockHash, logIndex }: Log): boolean {
  return delivered.blocks.get(blockHash)?.logs.get(logIndex) === null;
}

/** Whether a log was delivered and not taken back. */
export function isDelivered(delivered: DeliveredLogs, { blockHash, logIndex }: Log): boolean {
  return Boolean(delivered.blocks.get(blockHash)?.logs.get(logIndex));
}

/**
 * The logs that stand behind a position, in order; null = the text of one of them is no longer
 * held. `blocks` are those of the chain.
 */
export function deliveredBehind(
  delivered: DeliveredLogs,
  blocks: readonly Block[],
  position: Position,
): readonly Buffer[] | null {
  const behind: Buffer[] = [];
  for (const { number, hash } of blocks) {
    if (number < position.blockNumber) continue;
    const logs = [...(delivered.blocks.get(hash)?.logs ?? [])].sort(
      ([left], [right]) => left - right,
    );
    for (const [index, raw] of logs) {
      if (raw === null || (number === position.blockNumber && index <= position.logIndex)) continue;
      if (raw === DROPPED) return null;
      behind.push(raw);
    }
  }
  return behind;
}

/**
 * Notes that the provider itself took a log back. False = it was never delivered, or has been taken
 * back before.
 */
export function noteRemoved(delivered: DeliveredLogs, log: Log): boolean {
  const kept = delivered.blocks.get(log.blockHash);
  const events = kept?.logs.get(log.logIndex);
  if (kept === undefined || events === undefined || events === null) return false;
  kept.logs.set(log.logIndex, null);
  kept.bytes -= events.length;
  delivered.bytes -= events.length;
  return true;
}

/** Whether the provider took back a log of this block and did not deliver it again. */
export function lacks(delivered: DeliveredLogs, blockHash: string): boolean {
  return [...(delivered.blocks.get(blockHash)?.logs.values() ?? [])].includes(null);
}

/**
 * The removals of all delivered logs of a block that has left the chain, last log first; null =
 * their texts are no longer held.
 */
export function takeBack(delivered: DeliveredLogs, block: Block): readonly Buffer[] | null {
  const kept = delivered.blocks.get(block.hash);
  if (kept === undefined) return [];
  forget(delivered, block.hash);
  const events = [...kept.logs]
    .filter((log): log is [number, Buffer] => log[1] !== null)
    .sort(([left], [right]) => right - left);
  return events.some(([, raw]) => raw === DROPPED) ? null : events.map(([, raw]) => asRemoved(raw));
}

/**
 * Keeps the record within its bounds: forgets the oldest blocks, and drops the oldest texts of
 * those that stay.
 */
export function trim(
  delivered: DeliveredLogs,
  bounds: { readonly blocks: number; readonly bytes: number },
): void {
  for (const [hash, kept] of delivered.blocks) {
    if (delivered.blocks.size > bounds.blocks) forget(delivered, hash);
    else if (delivered.bytes > bounds.bytes) dropTexts(delivered, kept);
    else return;
  }
}

/** A log that was delivered and whose text is no longer held. */
const DROPPED = Buffer.alloc(0);

function forget(delivered: DeliveredLogs, hash: string): void {
  delivered.bytes -= delivered.blocks.get(hash)?.bytes ?? 0;
  delivered.blocks.delete(hash);
}

function dropTexts(delivered: DeliveredLogs, kept: BlockLogs): void {
  delivered.bytes -= kept.bytes;
  kept.bytes = 0;
  for (const [index, raw] of kept.logs) if (raw !== null) kept.logs.set(index, DROPPED);
}
