// The logs bloom of a block header (2,048 bits): whether the block may hold logs that match a
// filter, and whether the bloom covers a given log. Judges no provider; the hash function is an
// argument.
import { isRecord, parseJson } from "../fields.ts";
import type { LogFilter } from "./subscription.ts";

/** The Keccak-256 hash function. */
export type Keccak = (bytes: Uint8Array) => Uint8Array;

/** Positions of the three bits of one address or topic. */
type Bits = readonly [number, number, number];

/**
 * A filter as bloom bits: of each list at least one entry must be in the bloom. Lists that are too
 * long to exclude anything are left out.
 */
export type FilterBits = readonly (readonly Bits[])[];

/** The parts of a log that filters match, in lower case. */
export interface LogKeys {
  readonly address: string;
  readonly topics: readonly string[];
}

const BLOOM_BYTES = 256;
const BLOOM = /^0x[0-9a-fA-F]{512}$/;
const NONE = /^0x0*$/;
/** Lists with more entries are left out: nearly every bloom would match them. */
const MAX_CHOICES = 64;

/** Reads the bloom of a header or block; null = it has none, or all zero bits with gas used. */
export function headerBloom(raw: Buffer): Buffer | null {
  const header = parseJson(raw.toString("utf8"));
  const { logsBloom, gasUsed } = isRecord(header) ? header : {};
  if (typeof logsBloom !== "string" || !BLOOM.test(logsBloom)) return null;
  if (NONE.test(logsBloom) && !(typeof gasUsed === "string" && NONE.test(gasUsed))) return null;
  return Buffer.from(logsBloom.slice(2), "hex");
}

/** Computes the bits of a filter. */
export function filterBits({ addresses, topics }: LogFilter, keccak: Keccak): FilterBits {
  const lists = [addresses, ...topics].filter(
    (list) => list.length > 0 && list.length <= MAX_CHOICES,
  );
  return lists.map((list) => list.map((text) => bitsOf(text, keccak)));
}

/** Whether a block with this bloom may hold logs that match the filter. */
export function mayHold(bloom: Buffer, lists: FilterBits): boolean {
  // A filter without conditions matches every block that has logs.
  if (lists.length === 0) return bloom.some((byte) => byte !== 0);
  return lists.every((list) => list.some((bits) => has(bloom, bits)));
}

/** Whether the bloom covers a log. */
export function covers(bloom: Buffer, { address, topics }: LogKeys, keccak: Keccak): boolean {
  return [address, ...topics].every((text) => has(bloom, bitsOf(text, keccak)));
}

function bitsOf(text: string, keccak: Keccak): Bits {
  const hash = keccak(Buffer.from(text.slice(2), "hex"));
  const bit = (at: number): number => (((hash[at] ?? 0) << 8) | (hash[at + 1] ?? 0)) & 0x7ff;
  return [bit(0), bit(2), bit(4)];
}

function has(bloom: Buffer, bits: Bits): boolean {
  return bits.every((bit) => ((bloom[byteOf(bit)] ?? 0) & maskOf(bit)) !== 0);
}

/** Bit 0 is the last one of the last byte. */
function byteOf(bit: number): number {
  return BLOOM_BYTES - 1 - (bit >> 3);
}

function maskOf(bit: number): number {
  return 1 << (bit & 7);
}

// Whether the logs blooms of a chain can be trusted when they say that a block has no matching
// logs. Trust is earned over many blocks and lost at the first counterexample. Pure; knows no
// clock.

/** The trust in the blooms of one chain. `proven` counts blocks. */
export type BloomTrust =
  | { readonly kind: "learning"; readonly proven: number }
  | { readonly kind: "trusted" }
  /** A bloom lacked a log that its block has. */
  | { readonly kind: "off"; readonly untilMs: number };

/** Blocks with logs, each confirmed by two providers and wholly covered by its bloom. */
const BLOCKS_TO_TRUST = 100;
const OFF_MS = 86_400_000;

/** The trust before any block was compared. */
export const NO_TRUST: BloomTrust = { kind: "learning", proven: 0 };

/** The trust at `nowMs`: distrust ends after a day, and learning starts again. */
export function trustAt(trust: BloomTrust, nowMs: number): BloomTrust {
  return trust.kind === "off" && nowMs >= trust.untilMs ? NO_TRUST : trust;
}

/** The trust after one more block whose bloom covered all of its logs. */
export function proven(trust: BloomTrust): BloomTrust {
  if (trust.kind !== "learning") return trust;
  return trust.proven + 1 >= BLOCKS_TO_TRUST
    ? { kind: "trusted" }
    : { kind: "learning", proven: trust.proven + 1 };
}

/** The trust after a block whose bloom lacked one of its logs. */
export function disproved(nowMs: number): BloomTrust {
  return { kind: "off", untilMs: nowMs + OFF_MS };
}
