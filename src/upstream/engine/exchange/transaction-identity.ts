// The hash of a signed transaction, so that "already known" can be answered as the success it is.
// And who signed it: the curve takes 60 ms and 16 MB to load, so it is loaded with the first
// transaction that is handed in.
import { keccak_256 } from "@noble/hashes/sha3.js";
import { canonicalBytes, type SignedTransaction } from "../../../core/rpc/signed-transaction.ts";

/**
 * The hash of a raw transaction. Blob transactions (EIP-4844) travel with their blobs, which the
 * hash leaves out.
 */
export function hashOfTransaction(raw: Buffer): string {
  return `0x${Buffer.from(keccak_256(canonicalBytes(raw))).toString("hex")}`;
}

/** The curve of signatures. */
type Curve = Pick<typeof import("ox/Secp256k1"), "recoverAddress">;

/** Recovers the senders of transactions. */
export class TransactionSenders {
  #curve: Curve | null = null;
  #loading: Promise<void> | null = null;

  get isReady(): boolean {
    return this.#curve !== null;
  }

  /** Never rejects: without a curve no sender is known. */
  load(): Promise<void> {
    this.#loading ??= import("ox/Secp256k1").then(
      (curve) => {
        this.#curve = curve;
      },
      () => undefined,
    );
    return this.#loading;
  }

  /** The address in lower case; null = the signature is none, or nothing was loaded yet. */
  senderOf({ signedBytes, signature }: SignedTransaction): string | null {
    const curve = this.#curve;
    if (curve === null) return null;
    const payload = keccak_256(signedBytes);
    try {
      return curve.recoverAddress({ payload, signature }).toLowerCase();
    } catch {
      // Numbers that are no signature: the library says so by throwing.
      return null;
    }
  }
}
