// The block in which a transaction or receipt was mined, read from its bytes; and the same
// transaction in the form of a node that lacks the block.

import type { Span } from "./json.ts";
import { membersOf } from "./json.ts";

/** The block in which a transaction was mined. */
export interface MinedBlock {
  readonly number: number;
  readonly hash: string | null;
}

const NUMBER = /^"(0x[0-9a-fA-F]{1,13})"$/;
const HASH = /^"(0x[0-9a-fA-F]{64})"$/;
/** Members of a transaction that say where it was mined. */
const PLACES = ["blockHash", "blockNumber", "transactionIndex", "blockTimestamp"] as const;

/** The block that a transaction or receipt names; null = it names none. */
export function minedIn(bytes: Buffer, span: Span): MinedBlock | null {
  const members = membersOf(bytes, span);
  const text = (name: string): string => {
    const value = members?.get(name);
    return value === undefined ? "" : bytes.toString("latin1", value.start, value.end);
  };
  const number = NUMBER.exec(text("blockNumber"))?.[1];
  if (number === undefined) return null;
  const hash = HASH.exec(text("blockHash"))?.[1] ?? null;
  return { number: Number(number), hash: hash === null ? null : hash.toLowerCase() };
}

/** A mined transaction as a pending one: it names no block. */
export function pendingText(bytes: Buffer, span: Span): string {
  const members = membersOf(bytes, span);
  const places = PLACES.flatMap((name) => members?.get(name) ?? []).sort(
    (left, right) => left.start - right.start,
  );
  let text = "";
  let at = span.start;
  for (const { start, end } of places) {
    text += `${bytes.toString("utf8", at, start)}null`;
    at = end;
  }
  return text + bytes.toString("utf8", at, span.end);
}
