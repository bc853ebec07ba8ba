// Heads and logs as nodes send them: what of them decides about order, and their text in the shapes
// that subscribers get. The rest is never looked at.
import { isHeight } from "../rpc/block-height.ts";
import {
  CLOSE_OBJECT,
  COLON,
  COMMA,
  OPEN_OBJECT,
  QUOTE,
  type Span,
  skipSpace,
  skipString,
  skipValue,
} from "../rpc/json.ts";

/** A block's place in its chain. */
export interface Block {
  readonly number: number;
  readonly hash: string;
  readonly parentHash: string;
}

/**
 * A block with the text that says so: a header as subscriptions push it, or a whole block that was
 * asked for.
 */
export interface Head extends Block {
  readonly raw: Buffer;
}

/** A log, and which block it belongs to. */
export interface Log {
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly logIndex: number;
  /** Its block has left the chain. */
  readonly removed: boolean;
  readonly raw: Buffer;
}

/** A header or block; null when it is none. */
export function readHead(raw: Buffer): Head | null {
  const value = recordIn(raw);
  if (value === null) return null;
  const { number, hash, parentHash } = value;
  const height = quantity(number);
  return height === null || !isHash(hash) || !isHash(parentHash)
    ? null
    : { number: height, hash: hash.toLowerCase(), parentHash: parentHash.toLowerCase(), raw };
}

/** A log of a block; null when it is none. */
export function readLog(raw: Buffer): Log | null {
  const value = recordIn(raw);
  if (value === null) return null;
  const blockNumber = quantity(value["blockNumber"]);
  const logIndex = quantity(value["logIndex"]);
  const { blockHash, removed = false } = value;
  if (
    blockNumber === null ||
    logIndex === null ||
    !isHash(blockHash) ||
    typeof removed !== "boolean"
  )
    return null;
  return { blockNumber, blockHash: blockHash.toLowerCase(), logIndex, removed, raw };
}

/** What a log is found by, in lower case; null when it does not say. */
export function readLogKeys({
  raw,
}: Log): { readonly address: string; readonly topics: readonly string[] } | null {
  const { address, topics } = recordIn(raw) ?? {};
  if (typeof address !== "string" || !Array.isArray(topics)) return null;
  const texts = topics.filter((topic): topic is string => typeof topic === "string");
  return texts.length < topics.length
    ? null
    : { address: address.toLowerCase(), topics: texts.map((text) => text.toLowerCase()) };
}

/** The members of a block that pushed headers carry, where no pushed one has shown it. */
const NOT_IN_HEADERS: ReadonlySet<string> = new Set([
  "transactions",
  "uncles",
  "withdrawals",
  "size",
  "totalDifficulty",
]);

/** The names of the members of a JSON object, in order. */
export function memberNames(raw: Buffer): readonly string[] {
  return members(raw).map((member) => member.name);
}

/**
 * A block in the shape of pushed headers: the members in `names`, in that order; null = those that
 * headers usually have.
 */
export function inLiveShape(block: Buffer, names: readonly string[] | null): Buffer {
  const all = members(block);
  const wanted =
    names === null
      ? all.filter((member) => !NOT_IN_HEADERS.has(member.name))
      : names.flatMap((name) => all.find((member) => member.name === name) ?? []);
  const text = wanted.map((member) => block.toString("latin1", member.start, member.end)).join(",");
  return Buffer.from(`{${text}}`, "latin1");
}

/** The text of a log that says that its block has left the chain. */
export function asRemoved(raw: Buffer): Buffer {
  const all = members(raw);
  const kept = all
    .filter((member) => member.name !== "removed")
    .map((member) => raw.toString("latin1", member.start, member.end));
  return Buffer.from(`{${[...kept, '"removed":true'].join(",")}}`, "latin1");
}

interface Member extends Span {
  readonly name: string;
}

/** Where the members of an object that has been parsed before are, key and value together. */
function members(raw: Buffer): readonly Member[] {
  const found: Member[] = [];
  const end = raw.length;
  let at = skipSpace(raw, 0, end);
  if (raw[at] !== OPEN_OBJECT) return found;
  at = skipSpace(raw, at + 1, end);
  while (at < end && raw[at] === QUOTE) {
    const keyEnd = skipString(raw, at, end);
    const value = skipSpace(raw, skipSpace(raw, keyEnd, end) + 1, end);
    const valueEnd = skipValue(raw, value, end, MAX_DEPTH);
    if (keyEnd === -1 || valueEnd === -1) return found;
    found.push({ name: raw.toString("utf8", at + 1, keyEnd - 1), start: at, end: valueEnd });
    at = skipSpace(raw, valueEnd, end);
    if (raw[at] === CLOSE_OBJECT) break;
    if (raw[at] === COMMA) at = skipSpace(raw, at + 1, end);
  }
  return found;
}

const MAX_DEPTH = 64;

/**
 * From this size on only the short members are looked at: the data of a log may be as long as a
 * message.
 */
const LONG_EVENT_BYTES = 65_536;
const SHORT_MEMBER_BYTES = 8_192;

function recordIn(raw: Buffer): Readonly<Record<string, unknown>> | null {
  if (raw.length > LONG_EVENT_BYTES) return shortMembersOf(raw);
  return parseRecord(raw.toString("utf8"));
}

/** The short members of a long object; null when it is no JSON object. Scans it once. */
function shortMembersOf(raw: Buffer): Readonly<Record<string, unknown>> | null {
  const all = members(raw);
  const end = skipSpace(raw, all.at(-1)?.end ?? raw.length, raw.length);
  const isWhole = raw[end] === CLOSE_OBJECT && skipSpace(raw, end + 1, raw.length) === raw.length;
  if (!isWhole || !all.every((member, at) => isSeparated(raw, all[at - 1]?.end ?? null, member)))
    return null;
  const short = all.filter((member) => member.end - member.start <= SHORT_MEMBER_BYTES);
  return parseRecord(
    `{${short.map((member) => raw.toString("utf8", member.start, member.end)).join(",")}}`,
  );
}

/** Whether a member has its colon, and a comma before it unless it is the first one. */
function isSeparated(raw: Buffer, before: number | null, { start, end }: Member): boolean {
  const colon = skipSpace(raw, skipString(raw, start, end), end);
  return raw[colon] === COLON && (before === null || raw[skipSpace(raw, before, start)] === COMMA);
}

function parseRecord(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : null;
  } catch {
    return null;
  }
}

function quantity(value: unknown): number | null {
  if (typeof value !== "string" || !/^0x[0-9a-fA-F]{1,13}$/.test(value)) return null;
  const height = Number(value);
  return isHeight(height) ? height : null;
}

function isHash(value: unknown): value is string {
  return typeof value === "string" && /^0x[0-9a-fA-F]{64}$/.test(value);
}
