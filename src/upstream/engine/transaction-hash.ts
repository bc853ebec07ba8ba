// The hash of a signed transaction, so that "already known" can be answered as the success it is.
// Reads no further than the hash needs.
import { keccak_256 } from "@noble/hashes/sha3.js";

/**
 * The transaction hash of the body of an `eth_sendRawTransaction` request or one like it; null when
 * its parameter is not a raw transaction. Blob transactions (EIP-4844) travel with their blobs,
 * which the hash leaves out.
 */
export function transactionHash(request: Buffer): string | null {
  const params: unknown = JSON.parse(request.toString("utf8"));
  const hex = firstParam(params);
  if (hex === null || !/^0x(?:[0-9a-fA-F]{2})+$/.test(hex)) return null;
  const raw = Buffer.from(hex.slice(2), "hex");
  const signed = raw[0] === BLOB_TYPE ? withoutBlobs(raw) : raw;
  return `0x${Buffer.from(keccak_256(signed)).toString("hex")}`;
}

const BLOB_TYPE = 3;

function firstParam(request: unknown): string | null {
  if (
    typeof request !== "object" ||
    request === null ||
    !("params" in request) ||
    !Array.isArray(request.params)
  )
    return null;
  const [first]: unknown[] = request.params;
  return typeof first === "string" ? first : null;
}

/**
 * `0x03 || rlp([tx, blobs, commitments, proofs])` → `0x03 || rlp(tx)`; without that wrapping the
 * bytes stay as they are.
 */
function withoutBlobs(raw: Buffer): Buffer {
  const outer = listAt(raw, 1);
  const inner = outer === null ? null : listAt(raw, outer.start);
  return inner === null
    ? raw
    : Buffer.concat([raw.subarray(0, 1), raw.subarray(outer?.start, inner.end)]);
}

/** Payload of the RLP list whose header is at `at`; null when there is none. */
function listAt(
  bytes: Buffer,
  at: number,
): { readonly start: number; readonly end: number } | null {
  const prefix = bytes[at];
  if (prefix === undefined || prefix < 0xc0) return null;
  if (prefix <= 0xf7) return within(bytes, at + 1, prefix - 0xc0);
  const width = prefix - 0xf7;
  if (width > 4 || at + 1 + width > bytes.length) return null;
  return within(bytes, at + 1 + width, bytes.readUIntBE(at + 1, width));
}

function within(
  bytes: Buffer,
  start: number,
  length: number,
): { readonly start: number; readonly end: number } | null {
  return start + length <= bytes.length ? { start, end: start + length } : null;
}
