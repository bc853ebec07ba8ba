// The position of a subscription to heads or logs as text, from which another process can continue:
// the last delivered blocks, and the delivered logs of each. Pure.
import { isRecord, parseJson } from "../fields.ts";
import { isHeight } from "../rpc/call.ts";
import { asRemoved, type Block } from "./chain-event.ts";
import { DeliveredLogs, DROPPED, isDropped, logsFrom, note } from "./delivered-logs.ts";
import type { DeliveryState } from "./delivery-state.ts";
import { adopt, holds, RecentBlocks, tipOf } from "./recent-blocks.ts";

/** What a subscriber has been told. */
export interface StreamMark {
  /** The last blocks, oldest first, each the parent of the next; at least one. */
  readonly blocks: readonly Block[];
  /** The oldest block is the one that the subscription started with. */
  readonly rooted: boolean;
  /** Hash of the block whose logs are not delivered; empty = it is no longer among the blocks. */
  readonly startHash: string;
  /** Of blocks from this number on, logs may be missing; null = of none. */
  readonly unsureFrom: number | null;
  /** Delivered logs by block hash and log index; null = a subscription to heads. */
  readonly logs: ReadonlyMap<string, ReadonlyMap<number, MarkedLog>> | null;
}

/** The JSON of a delivered log; null = it is too long to be kept. */
type MarkedLog = string | null;

/**
 * What a subscriber at a mark has to be told. `behind`: the state does not have all that the mark
 * has. `apart`: too little is known of the blocks between. `forgotten`: logs have to be taken back
 * whose JSON was not kept.
 */
export type MarkDifference =
  | { readonly kind: "events"; readonly events: readonly Buffer[] }
  | { readonly kind: "behind" | "apart" | "forgotten" };

/** Most blocks of a mark, and most bytes of the JSON of their logs. */
const MAX_BLOCKS = 64;
const MAX_LOG_BYTES = 16_384;
/** Most logs of a mark. */
const MAX_LOGS = 2_000;
const HASH_BYTES = 32;

/** The mark of a state. `unsure`: hashes of blocks whose logs may be missing. */
export function markOf(state: DeliveryState, unsure: ReadonlySet<string>): StreamMark | null {
  const { recent, delivered, startHash } = state;
  if (recent.blocks.length === 0) return null;
  const logs = delivered === null ? null : new Map<string, ReadonlyMap<number, MarkedLog>>();
  const room = { bytes: MAX_LOG_BYTES, logs: MAX_LOGS };
  let from = recent.blocks.length;
  while (from > 0 && recent.blocks.length - from < MAX_BLOCKS) {
    const { hash = "" } = recent.blocks[from - 1] ?? {};
    const own = delivered === null ? null : logsOf(delivered, hash, room);
    if (own !== null && room.logs < 0 && from < recent.blocks.length) break;
    if (own !== null && own.size > 0) logs?.set(hash, own);
    from--;
  }
  const blocks = recent.blocks.slice(from);
  return {
    blocks,
    rooted: recent.rooted && from === 0,
    startHash: blocks.some(({ hash }) => hash === startHash) ? startHash : "",
    unsureFrom: blocks.find(({ hash }) => unsure.has(hash))?.number ?? null,
    logs,
  };
}

function logsOf(
  delivered: DeliveredLogs,
  hash: string,
  room: { bytes: number; logs: number },
): ReadonlyMap<number, MarkedLog> {
  const marked = new Map<number, MarkedLog>();
  for (const [index, raw] of delivered.blocks.get(hash)?.logs ?? []) {
    if (raw === null) continue;
    room.logs--;
    room.bytes -= raw.length;
    marked.set(index, isDropped(raw) || room.bytes < 0 ? null : raw.toString("latin1"));
  }
  return marked;
}

/** The state of a subscription that goes on from a mark. */
export function stateAt(mark: StreamMark, window: number): DeliveryState {
  const recent = new RecentBlocks(Math.max(window, mark.blocks.length));
  for (const block of mark.blocks) adopt(recent, block);
  recent.rooted = mark.rooted;
  let delivered: DeliveredLogs | null = null;
  if (mark.logs !== null) {
    delivered = new DeliveredLogs();
    for (const { hash: blockHash } of mark.blocks)
      for (const [logIndex, text] of mark.logs.get(blockHash) ?? []) {
        const raw = text === null ? DROPPED : Buffer.from(text, "latin1");
        note(delivered, { blockHash, logIndex, raw });
      }
  }
  return { recent, delivered, startHash: mark.startHash, sample: null, held: [] };
}

/** Hashes of the blocks of a mark whose logs may be missing. */
export function unsureIn({ blocks, unsureFrom }: StreamMark): readonly string[] {
  const from = unsureFrom ?? Number.POSITIVE_INFINITY;
  return blocks.filter(({ number }) => number >= from).map(({ hash }) => hash);
}

/**
 * What a subscriber at a mark has to be told, to stand where another subscription stands. Heads are
 * told by number, hash and parent alone.
 */
export function eventsSince(state: DeliveryState, mark: StreamMark): MarkDifference {
  const { recent, delivered } = state;
  const common = mark.blocks.findLast(({ number, hash }) => holds(recent, number, hash));
  const marked = mark.blocks.at(-1);
  const tip = tipOf(recent);
  if (marked === undefined || tip === null) return { kind: "apart" };
  if (common === undefined) return { kind: tip.number < marked.number ? "behind" : "apart" };
  const gone = mark.blocks.filter(({ number }) => number > common.number);
  if (gone.length > 0 && tip.number < marked.number) return { kind: "behind" };
  const news = recent.blocks.filter(({ number }) => number > common.number);
  if (delivered === null || mark.logs === null)
    return { kind: "events", events: news.map(shortHead) };
  const removed = removalsOf(mark.logs, gone);
  if (removed === null) return { kind: "forgotten" };
  const first = firstKnown(state);
  const asked = Math.min(mark.unsureFrom ?? common.number + 1, common.number + 1);
  const same = mark.blocks.filter(({ number }) => number <= common.number);
  if (asked < first || same.some(({ number, hash }) => number < first && mark.logs?.has(hash)))
    return { kind: "apart" };
  for (const { hash } of same)
    for (const index of mark.logs.get(hash)?.keys() ?? [])
      if (!delivered.blocks.get(hash)?.logs.get(index)) return { kind: "behind" };
  const fresh = freshLogs({ recent, delivered }, mark.logs, asked);
  return fresh === null ? { kind: "apart" } : { kind: "events", events: [...removed, ...fresh] };
}

/** The number from which on all logs are known. */
function firstKnown({ recent, startHash }: DeliveryState): number {
  const start = recent.blocks.find(({ hash }) => hash === startHash);
  return start === undefined ? (recent.blocks[0]?.number ?? 0) : start.number + 1;
}

/** The removals of marked logs, newest first; null = the JSON of one is not kept. */
function removalsOf(
  logs: NonNullable<StreamMark["logs"]>,
  gone: readonly Block[],
): readonly Buffer[] | null {
  const removals: Buffer[] = [];
  for (const { hash } of gone.toReversed()) {
    const own = [...(logs.get(hash) ?? [])].sort(([left], [right]) => right - left);
    for (const [, raw] of own) {
      if (raw === null) return null;
      removals.push(asRemoved(Buffer.from(raw, "latin1")));
    }
  }
  return removals;
}

/** The delivered logs from a number on that are not marked; null = the JSON of one is not kept. */
function freshLogs(
  { recent, delivered }: { readonly recent: RecentBlocks; readonly delivered: DeliveredLogs },
  marked: NonNullable<StreamMark["logs"]>,
  from: number,
): readonly Buffer[] | null {
  const fresh: Buffer[] = [];
  for (const { blockHash, logIndex, raw } of logsFrom(delivered, recent.blocks, from)) {
    if (marked.get(blockHash)?.has(logIndex) === true) continue;
    if (isDropped(raw)) return null;
    fresh.push(raw);
  }
  return fresh;
}

function shortHead({ number, hash, parentHash }: Block): Buffer {
  return Buffer.from(JSON.stringify({ number: `0x${number.toString(16)}`, hash, parentHash }));
}

/** A mark as text. */
export function markText({ blocks, rooted, startHash, unsureFrom, logs }: StreamMark): string {
  const [first] = blocks;
  const hashes = [first?.parentHash ?? "", ...blocks.map(({ hash }) => hash)];
  const packed = Buffer.from(hashes.map((hash) => hash.slice(2)).join(""), "hex");
  const at = new Map(blocks.map(({ hash }, index) => [hash, index]));
  return JSON.stringify({
    from: first?.number ?? 0,
    hashes: packed.toString("base64"),
    rooted,
    start: at.get(startHash) ?? null,
    unsureFrom,
    logs: logs === null ? null : [...logs].map(([hash, own]) => [at.get(hash), [...own]]),
  });
}

/** Parses the text of a mark; null = it is none. */
export function readMark(text: string): StreamMark | null {
  const value = parseJson(text);
  if (!isRecord(value)) return null;
  const { from, hashes, rooted, start, unsureFrom, logs } = value;
  const blocks = blocksIn(from, hashes);
  if (blocks === null || typeof rooted !== "boolean") return null;
  if (unsureFrom !== null && !isNumber(unsureFrom)) return null;
  const marked = logs === null ? null : logsIn(blocks, logs);
  if (marked === undefined) return null;
  const startHash = isNumber(start) ? (blocks[start]?.hash ?? "") : "";
  return { blocks, rooted, startHash, unsureFrom, logs: marked };
}

function blocksIn(from: unknown, hashes: unknown): readonly Block[] | null {
  if (!isNumber(from) || typeof hashes !== "string") return null;
  const packed = Buffer.from(hashes, "base64");
  const count = packed.length / HASH_BYTES - 1;
  if (!Number.isInteger(count) || count < 1 || count > MAX_BLOCKS) return null;
  const hashAt = (at: number): string =>
    `0x${packed.toString("hex", at * HASH_BYTES, (at + 1) * HASH_BYTES)}`;
  return Array.from({ length: count }, (_, at) => ({
    number: from + at,
    hash: hashAt(at + 1),
    parentHash: hashAt(at),
  }));
}

/** The marked logs; undefined = they are malformed. */
function logsIn(blocks: readonly Block[], value: unknown): StreamMark["logs"] | undefined {
  if (!Array.isArray(value) || value.length > blocks.length) return undefined;
  const logs = new Map<string, ReadonlyMap<number, MarkedLog>>();
  for (const entry of value) {
    if (!Array.isArray(entry)) return undefined;
    const [at, own]: readonly unknown[] = entry;
    const block = isNumber(at) ? blocks[at] : undefined;
    if (block === undefined || !Array.isArray(own)) return undefined;
    const marked = new Map<number, MarkedLog>();
    for (const log of own) {
      if (!Array.isArray(log)) return undefined;
      const [index, raw]: readonly unknown[] = log;
      if (!isNumber(index) || (raw !== null && typeof raw !== "string")) return undefined;
      marked.set(index, raw);
    }
    logs.set(block.hash, marked);
  }
  return logs;
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && isHeight(value);
}
