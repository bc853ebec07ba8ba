// What an answer is kept under: the method on one profile and chain, and the bytes that decide it,
// compared in full. The hash differs from process to process, so that nobody can choose keys that
// share one.
import { randomBytes } from "node:crypto";

/** A key, with its bytes where they lie. */
export interface AnswerKey {
  /** The number of the method on one profile and chain. */
  readonly space: number;
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  /** Of the bytes. */
  readonly hash: number;
}

const SEED = randomBytes(4).readInt32LE();
const PRIME = 0x01000193;

/** The key of these bytes, which must not change as long as it is used. */
export function answerKeyOf(space: number, bytes: Buffer, start: number, end: number): AnswerKey {
  let hash = SEED;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), PRIME);
  return { space, bytes, start, end, hash: hash ^ (hash >>> 15) };
}
