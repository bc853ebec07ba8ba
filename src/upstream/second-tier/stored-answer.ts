// How an answer is written for the second tier of the cache, and read back. Anybody may have
// written to the server, so an answer counts only if it has this format, answers the question, is
// of the present generation, has the stated length, and ends with the checksum of all this under
// the key of its scope. Knows no server.
import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";

/** The answer to one question, as it is kept in the second tier. */
export interface StoredAnswer {
  /** The id of the provider that answered. */
  readonly provider: string;
  /** True = the value is the provider's error object. */
  readonly isError: boolean;
  /** When it was asked for, by the wall clock (ms). */
  readonly askedAtWallMs: number;
  /** JSON. */
  readonly value: Buffer;
}

/** Whose answers: of a profile on a chain, as nodes have them that ask the same providers. */
export interface TierScope {
  /** A digest of them. */
  readonly name: string;
  /** The key of their checksums. */
  readonly key: KeyObject;
}

/** What an answer is stored under. */
export interface TierKey {
  readonly scope: TierScope;
  /** SHA-256 of the scope and of everything that decides the answer. */
  readonly digest: Buffer;
}

/** An answer as it was read: its value may still be compressed. */
export interface ReadAnswer extends StoredAnswer {
  readonly isCompressed: boolean;
  /** The length of the value when it is not compressed. */
  readonly valueBytes: number;
}

export const GENERATION_BYTES = 16;
const DIGEST_BYTES = 32;
/** Of a value that is stored, before it is compressed. */
export const MAX_VALUE_BYTES = 262_144;
const MAX_PROVIDER_BYTES = 256;
/** Begins every stored answer: the last byte is the version of the format. */
const MAGIC = Buffer.from([0x73, 0x76, 0x63, 0x02]);
const ERROR = 1;
const COMPRESSED = 2;
const AT = { flags: 4, generation: 5, digest: 21, askedAt: 53, bytes: 61, provider: 65 } as const;
const HEAD_BYTES = 67;
const CHECKSUM_BYTES = 16;

/** The longest that a stored answer is. */
export const MAX_STORED_BYTES = HEAD_BYTES + MAX_PROVIDER_BYTES + MAX_VALUE_BYTES + CHECKSUM_BYTES;

/**
 * An answer as bytes; null = it is not one to be stored. `generation` was chosen by chance; a purge
 * chooses another one.
 */
export function writeAnswer(
  { scope: { key }, digest }: TierKey,
  generation: Buffer,
  { provider, isError, askedAtWallMs, value, isCompressed, valueBytes }: ReadAnswer,
): Buffer | null {
  const name = Buffer.from(provider);
  if (name.length > MAX_PROVIDER_BYTES || valueBytes > MAX_VALUE_BYTES) return null;
  const head = Buffer.alloc(HEAD_BYTES);
  MAGIC.copy(head);
  head[AT.flags] = (isError ? ERROR : 0) | (isCompressed ? COMPRESSED : 0);
  generation.copy(head, AT.generation, 0, GENERATION_BYTES);
  digest.copy(head, AT.digest, 0, DIGEST_BYTES);
  head.writeDoubleBE(askedAtWallMs, AT.askedAt);
  head.writeUInt32BE(valueBytes, AT.bytes);
  head.writeUInt16BE(name.length, AT.provider);
  return Buffer.concat([head, name, value, checksumOf(key, [head, name, value])]);
}

/** The checksum of a stored answer, over its head (with the digest of its key) and its value. */
export function checksumOf(key: KeyObject, parts: readonly Buffer[]): Buffer {
  const mac = createHmac("sha256", key);
  for (const part of parts) mac.update(part);
  return mac.digest().subarray(0, CHECKSUM_BYTES);
}

/** Reads a stored answer; null = not a stored answer, or the answer to another call. */
export function readStored(stored: Buffer, key: TierKey, generation: Buffer): ReadAnswer | null {
  if (stored.length < HEAD_BYTES + CHECKSUM_BYTES || stored.length > MAX_STORED_BYTES) return null;
  const bytes = stored.subarray(0, -CHECKSUM_BYTES);
  const read = readBefore(bytes, key.digest, generation);
  if (read === null) return null;
  const checksum = checksumOf(key.scope.key, [bytes]);
  return timingSafeEqual(checksum, stored.subarray(-CHECKSUM_BYTES)) ? read : null;
}

/** Reads what stands before the checksum. */
function readBefore(bytes: Buffer, digest: Buffer, generation: Buffer): ReadAnswer | null {
  const flags = bytes[AT.flags] ?? 0;
  if (MAGIC.compare(bytes, 0, MAGIC.length) !== 0 || flags > (ERROR | COMPRESSED)) return null;
  if (generation.compare(bytes, AT.generation, AT.digest) !== 0) return null;
  if (digest.compare(bytes, AT.digest, AT.askedAt) !== 0) return null;
  const valueAt = HEAD_BYTES + bytes.readUInt16BE(AT.provider);
  const valueBytes = bytes.readUInt32BE(AT.bytes);
  const askedAtWallMs = bytes.readDoubleBE(AT.askedAt);
  const isCompressed = (flags & COMPRESSED) !== 0;
  if (valueAt >= bytes.length || valueBytes > MAX_VALUE_BYTES) return null;
  if (!Number.isFinite(askedAtWallMs)) return null;
  if (!isCompressed && bytes.length - valueAt !== valueBytes) return null;
  return {
    provider: bytes.toString("utf8", HEAD_BYTES, valueAt),
    isError: (flags & ERROR) !== 0,
    askedAtWallMs,
    value: bytes.subarray(valueAt),
    isCompressed,
    valueBytes,
  };
}
