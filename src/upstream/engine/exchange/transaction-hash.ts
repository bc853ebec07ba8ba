// The hash of a signed transaction, so that "already known" can be answered as the success it is.
// Reads no further than the hash needs.
import { keccak_256 } from "@noble/hashes/sha3.js";
import { canonicalBytes } from "../../../core/rpc/transactions/signed-transaction.ts";

/**
 * The transaction hash of the body of an `eth_sendRawTransaction` request or one like it; null when
 * its parameter is not a raw transaction. Blob transactions (EIP-4844) travel with their blobs,
 * which the hash leaves out.
 */
export function transactionHash(request: Buffer): string | null {
  const params: unknown = JSON.parse(request.toString("utf8"));
  const hex = firstParam(params);
  if (hex === null || !/^0x(?:[0-9a-fA-F]{2})+$/.test(hex)) return null;
  return hashOfTransaction(Buffer.from(hex.slice(2), "hex"));
}

/** The hash of a raw transaction. */
export function hashOfTransaction(raw: Buffer): string {
  return `0x${Buffer.from(keccak_256(canonicalBytes(raw))).toString("hex")}`;
}

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
