// Which logs a subscriber has received, by block, so that no log is delivered twice and the logs of
// a block that leaves the chain can be removed again.
import { asRemoved, type Block, type Log } from "./chain-event.ts";

/**
 * The delivered logs by block hash, oldest block first. Changed in place, only by the functions of
 * this file.
 */
export class DeliveredLogs {
  readonly blocks = new Map<string, BlockLogs>();
  /** Bytes of JSON kept for removals. */
  bytes = 0;
}

/** The logs of one block. */
interface BlockLogs {
  /** JSON by log index; null = delivered and then removed. */
  readonly logs: Map<number, Buffer | null>;
  /** Bytes of JSON kept. */
  bytes: number;
}

/** Records a log as delivered. False = it was delivered before. */
export function note(
  delivered: DeliveredLogs,
  log: Pick<Log, "blockHash" | "logIndex" | "raw">,
): boolean {
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

/** The position of a log in the chain. */
export type Position = Pick<Log, "blockNumber" | "logIndex">;

/**
 * The position of the newest log that was delivered and not removed; null = there is none. `blocks`
 * are the blocks of the chain, in order.
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

/**
 * Whether a log arrives too late: it was never delivered, and a log that follows it in the chain
 * was.
 */
export function isLate(delivered: DeliveredLogs, log: Log, newest: Position | null): boolean {
  if (newest === null || delivered.blocks.get(log.blockHash)?.logs.get(log.logIndex)) return false;
  if (log.blockNumber !== newest.blockNumber) return log.blockNumber < newest.blockNumber;
  return log.logIndex < newest.logIndex;
}

/** Whether a log was delivered and then removed by its provider. */
export function wasTakenBack(delivered: DeliveredLogs, { blockHash, logIndex }: Log): boolean {
  return delivered.blocks.get(blockHash)?.logs.get(logIndex) === null;
}

/** Whether a log was delivered and not removed. */
export function isDelivered(delivered: DeliveredLogs, { blockHash, logIndex }: Log): boolean {
  return Boolean(delivered.blocks.get(blockHash)?.logs.get(logIndex));
}

/** The delivered logs from a block number on that were not removed, in order. */
export function* logsFrom(
  { blocks: logsOf }: DeliveredLogs,
  blocks: readonly Block[],
  from: number,
): Generator<Position & { readonly blockHash: string; readonly raw: Buffer }> {
  for (const { number, hash } of blocks) {
    if (number < from) continue;
    const logs = [...(logsOf.get(hash)?.logs ?? [])];
    for (const [logIndex, raw] of logs.sort(([left], [right]) => left - right))
      if (raw !== null) yield { blockNumber: number, blockHash: hash, logIndex, raw };
  }
}

/**
 * The delivered logs after a position, in order; null = the JSON of one of them is no longer kept.
 * `blocks` are the blocks of the chain, in order.
 */
export function deliveredBehind(
  delivered: DeliveredLogs,
  blocks: readonly Block[],
  position: Position,
): readonly Buffer[] | null {
  const behind: Buffer[] = [];
  for (const { blockNumber, logIndex, raw } of logsFrom(delivered, blocks, position.blockNumber)) {
    if (blockNumber === position.blockNumber && logIndex <= position.logIndex) continue;
    if (isDropped(raw)) return null;
    behind.push(raw);
  }
  return behind;
}

/**
 * Records that the provider removed a log. False = it was never delivered, or was removed before.
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

/** Whether the provider removed a log of this block and did not deliver it again. */
export function lacks(delivered: DeliveredLogs, blockHash: string): boolean {
  return [...(delivered.blocks.get(blockHash)?.logs.values() ?? [])].includes(null);
}

/**
 * The removals of all delivered logs of a block that has left the chain, last log first; null =
 * their JSON is no longer kept.
 */
export function takeBack(delivered: DeliveredLogs, block: Block): readonly Buffer[] | null {
  const kept = delivered.blocks.get(block.hash);
  if (kept === undefined) return [];
  forget(delivered, block.hash);
  const events = [...kept.logs]
    .filter((log): log is [number, Buffer] => log[1] !== null)
    .sort(([left], [right]) => right - left);
  return events.some(([, raw]) => isDropped(raw)) ? null : events.map(([, raw]) => asRemoved(raw));
}

/**
 * Keeps the record within its bounds: forgets the oldest blocks, and drops the JSON of the oldest
 * of the remaining ones.
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

/** Stands for a delivered log whose JSON is no longer kept. */
export const DROPPED = Buffer.alloc(0);

/** Whether the JSON of a delivered log is no longer kept. */
export function isDropped(raw: Buffer): boolean {
  return raw.length === 0;
}

function forget(delivered: DeliveredLogs, hash: string): void {
  delivered.bytes -= delivered.blocks.get(hash)?.bytes ?? 0;
  delivered.blocks.delete(hash);
}

function dropTexts(delivered: DeliveredLogs, kept: BlockLogs): void {
  delivered.bytes -= kept.bytes;
  kept.bytes = 0;
  for (const [index, raw] of kept.logs) if (raw !== null) kept.logs.set(index, DROPPED);
}
