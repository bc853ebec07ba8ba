// Heads and logs as nodes send them: reads the members that decide about order, and rewrites the
// text into the shapes that subscribers receive. Ignores all other members.
import { isRecord, parseJson } from "../fields.ts";
import { isHeight } from "../rpc/call.ts";
import * as json from "../rpc/json.ts";
import type { LogKeys } from "./log-bloom.ts";

/** A block by number and hash, with the hash of its parent. */
export interface Block {
  readonly number: number;
  readonly hash: string;
  readonly parentHash: string;
}

/**
 * A block with its JSON: a header as subscriptions push it, or a whole block from
 * `eth_getBlockBy…`.
 */
export interface Head extends Block {
  readonly raw: Buffer;
}

/** A log with its position in the chain and its JSON. */
export interface Log {
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly logIndex: number;
  /** It is a removal: its block has left the chain. */
  readonly removed: boolean;
  readonly raw: Buffer;
}

/** Parses a header or block; null = the text is neither. */
export function readHead(raw: Buffer): Head | null {
  const value = recordIn(raw);
  if (value === null) return null;
  const { number, hash, parentHash } = value;
  const height = quantity(number);
  return height === null || !isHash(hash) || !isHash(parentHash)
    ? null
    : { number: height, hash: hash.toLowerCase(), parentHash: parentHash.toLowerCase(), raw };
}

/** Parses a log; null = the text is not a log of a block. */
export function readLog(raw: Buffer): Log | null {
  const value = recordIn(raw);
  if (value === null) return null;
  const blockNumber = quantity(value["blockNumber"]);
  const logIndex = quantity(value["logIndex"]);
  const { blockHash, removed = false } = value;
  if (blockNumber === null || logIndex === null) return null;
  if (!isHash(blockHash) || typeof removed !== "boolean") return null;
  return { blockNumber, blockHash: blockHash.toLowerCase(), logIndex, removed, raw };
}

/** The address and topics of a log, in lower case; null = they are missing or malformed. */
export function readLogKeys({ raw }: Log): LogKeys | null {
  const { address, topics } = recordIn(raw) ?? {};
  if (typeof address !== "string" || !Array.isArray(topics)) return null;
  const texts = topics.filter((topic): topic is string => typeof topic === "string");
  return texts.length < topics.length
    ? null
    : { address: address.toLowerCase(), topics: texts.map((text) => text.toLowerCase()) };
}

/**
 * Members of a block that headers usually lack; used until a pushed header has shown its members.
 */
const NOT_IN_HEADERS: ReadonlySet<string> = new Set(
  "transactions uncles withdrawals size totalDifficulty".split(" "),
);

/** The names of the members of a JSON object, in order. */
export function memberNames(raw: Buffer): readonly string[] {
  return members(raw).map((member) => member.name);
}

/**
 * A block reduced to the members of a pushed header: those in `names`, in that order; null = the
 * usual members of headers.
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

/** The JSON of a log's removal: the log with `removed: true`. */
export function asRemoved(raw: Buffer): Buffer {
  const all = members(raw);
  const kept = all
    .filter((member) => member.name !== "removed")
    .map((member) => raw.toString("latin1", member.start, member.end));
  return Buffer.from(`{${[...kept, '"removed":true'].join(",")}}`, "latin1");
}

interface Member extends json.Span {
  readonly name: string;
}

/** Offsets of the members of a valid JSON object, each with key and value; of `most` at most. */
function members(raw: Buffer, most = Number.POSITIVE_INFINITY): readonly Member[] {
  const found: Member[] = [];
  const end = raw.length;
  let at = json.skipSpace(raw, 0, end);
  if (raw[at] !== json.OPEN_OBJECT) return found;
  at = json.skipSpace(raw, at + 1, end);
  while (at < end && raw[at] === json.QUOTE && found.length < most) {
    const keyEnd = json.skipString(raw, at, end);
    const value = json.skipSpace(raw, json.skipSpace(raw, keyEnd, end) + 1, end);
    const valueEnd = json.skipValue(raw, value, end, MAX_DEPTH);
    if (keyEnd === -1 || valueEnd === -1) return found;
    found.push({ name: raw.toString("utf8", at + 1, keyEnd - 1), start: at, end: valueEnd });
    at = json.skipSpace(raw, valueEnd, end);
    if (raw[at] === json.CLOSE_OBJECT) break;
    if (raw[at] === json.COMMA) at = json.skipSpace(raw, at + 1, end);
  }
  return found;
}

const MAX_DEPTH = 64;

/**
 * From this size on only short members are parsed: the data of a log may be as long as a message.
 */
const LONG_EVENT_BYTES = 65_536;
const SHORT_MEMBER_BYTES = 8_192;

function recordIn(raw: Buffer): Readonly<Record<string, unknown>> | null {
  if (raw.length > LONG_EVENT_BYTES) return shortMembersOf(raw);
  return parseRecord(raw.toString("utf8"));
}

/**
 * Parses the short members of a long object, in one scan; null = it is not a JSON object, or has
 * more members than anything that is read.
 */
function shortMembersOf(raw: Buffer): Readonly<Record<string, unknown>> | null {
  const all = members(raw, json.MAX_MEMBERS);
  const end = json.skipSpace(raw, all.at(-1)?.end ?? raw.length, raw.length);
  const isWhole =
    raw[end] === json.CLOSE_OBJECT && json.skipSpace(raw, end + 1, raw.length) === raw.length;
  if (!isWhole || !all.every((member, at) => isSeparated(raw, all[at - 1]?.end ?? null, member)))
    return null;
  const short = all.filter((member) => member.end - member.start <= SHORT_MEMBER_BYTES);
  return parseRecord(
    `{${short.map((member) => raw.toString("utf8", member.start, member.end)).join(",")}}`,
  );
}

/** Whether a member has its colon, and a comma before it unless it is the first. */
function isSeparated(raw: Buffer, before: number | null, { start, end }: Member): boolean {
  const colon = json.skipSpace(raw, json.skipString(raw, start, end), end);
  const isApart = before === null || raw[json.skipSpace(raw, before, start)] === json.COMMA;
  return raw[colon] === json.COLON && isApart;
}

function parseRecord(text: string): Readonly<Record<string, unknown>> | null {
  const value = parseJson(text);
  return isRecord(value) ? value : null;
}

function quantity(value: unknown): number | null {
  if (typeof value !== "string" || !/^0x[0-9a-fA-F]{1,13}$/.test(value)) return null;
  const height = Number(value);
  return isHeight(height) ? height : null;
}

function isHash(value: unknown): value is string {
  return typeof value === "string" && /^0x[0-9a-fA-F]{64}$/.test(value);
}
