// A Tempo transaction (0x76) that a payer has signed: reads its bytes, brings them into the one
// form that nodes hash, and verifies its signature, which a node's simulation does not. Knows no
// payment and no chain.
import { keccak256 } from "viem";
import { Transaction } from "viem/tempo";
import { z } from "zod";
import type { TempoCall } from "./transfer.ts";

/** The contents of a signed transaction. */
export interface TempoTransaction {
  /** Signed bytes in canonical form, 0x…. Secret until they are sent. */
  readonly raw: string;
  /** Its hash on the chain, in lower case. */
  readonly hash: string;
  /** In lower case. */
  readonly payer: string;
  readonly chainId: number;
  readonly calls: readonly TempoCall[];
  readonly nonceKey: bigint;
  readonly nonce: bigint;
  /** Block times between which it is valid, seconds; null = no bound. */
  readonly validAfterS: number | null;
  readonly validBeforeS: number | null;
  /** The payer's access key that signed; null = the payer's own key. */
  readonly accessKey: string | null;
  /** True if the transaction itself authorizes that key. */
  readonly bringsKey: boolean;
  /** As a request for a node's simulation. */
  readonly request: Readonly<Record<string, unknown>>;
}

/** Nonce key of transactions that are identified by their hash and expire soon. */
export const EXPIRING_NONCE_KEY = 2n ** 256n - 1n;

/** Longer ones pay for nothing more, and take long to parse. */
const MAX_TRANSACTION_BYTES = 4_096;

/** Reads signed bytes; the text of `wrong` is for the payer. Never throws. */
export function parseTransaction(given: string): TempoTransaction | { readonly wrong: string } {
  const canonical = canonicalOf(given);
  if (canonical === "sponsored")
    return { wrong: "Fees are not paid for you here: sign a transaction without a fee payer." };
  if (canonical === null)
    return {
      wrong:
        "The transaction is no signed Tempo transaction (0x76) of at most " +
        `${MAX_TRANSACTION_BYTES} bytes.`,
    };
  const { raw, envelope } = canonical;
  if (envelope.authorizationList !== undefined && envelope.authorizationList.length > 0)
    return { wrong: "The transaction does more than pay: sign one that holds only the transfer." };
  const signer = signerOf(envelope);
  if (signer === null) return { wrong: "The transaction's signature is not right." };
  const fields = fieldsShape.safeParse(envelope);
  if (!fields.success)
    return { wrong: "The transaction has a field that is no number of its range." };
  const { chainId, nonceKey, nonce, validAfter, validBefore } = fields.data;
  return {
    raw,
    hash: keccak256(raw),
    payer: signer.payer,
    chainId,
    calls: envelope.calls,
    nonceKey,
    nonce,
    validAfterS: validAfter ?? null,
    validBeforeS: validBefore ?? null,
    accessKey: signer.accessKey,
    bringsKey: envelope.keyAuthorization !== undefined,
    request: requestOf(envelope, signer.payer),
  };
}

/** The hash of signed bytes, unchecked; null = they are no transaction. */
export function hashOf(given: string): string | null {
  const canonical = canonicalOf(given);
  return canonical === null || canonical === "sponsored" ? null : keccak256(canonical.raw);
}

// The library exports these two under deprecated names only; its version is fixed.
const {
  z_TxEnvelopeTempo: Envelope,
  z_SignatureEnvelope: Signature,
  z_KeyAuthorization: KeyAuthorization,
} = Transaction;
type Envelope = ReturnType<typeof Envelope.deserialize>;
type Signature = NonNullable<Envelope["signature"]>;

const seconds = z.int().min(0).optional();
const fieldsShape = z.object({
  chainId: z.int().positive(),
  nonceKey: z.bigint().default(0n),
  nonce: z.bigint().default(0n),
  validAfter: seconds,
  validBefore: seconds,
});

/**
 * A transaction in canonical form: it can be encoded in several ways, and nodes hash one of them.
 * Null = it cannot be read; sponsored = somebody else is to pay its fee.
 */
function canonicalOf(
  given: string,
): { readonly raw: `0x${string}`; readonly envelope: Envelope } | "sponsored" | null {
  if (given.startsWith("0x78")) return "sponsored";
  if (!/^0x76(?:[0-9a-fA-F]{2})+$/.test(given) || given.length > 2 + 2 * MAX_TRANSACTION_BYTES)
    return null;
  try {
    const read = Envelope.deserialize(`0x76${given.slice(4).toLowerCase()}`);
    if (read.feePayerSignature !== undefined) return "sponsored";
    const raw = Envelope.serialize(read);
    const envelope = raw === given ? read : Envelope.deserialize(raw);
    return envelope.from?.toLowerCase() === read.from?.toLowerCase() ? { raw, envelope } : null;
  } catch {
    return null;
  }
}

/** The payer, if the signature is valid; null = it is not. */
function signerOf(
  envelope: Envelope,
): { readonly payer: string; readonly accessKey: string | null } | null {
  const { signature, from } = envelope;
  if (signature === undefined || from === undefined) return null;
  try {
    if (signature.type !== "keychain")
      return isSigned(signature, from, Envelope.getSignPayload(envelope))
        ? { payer: from.toLowerCase(), accessKey: null }
        : null;
    const payload = Envelope.getSignPayload(envelope, signature.version === "v2" ? { from } : {});
    const accessKey = Signature.extractAddress({ payload, signature: signature.inner });
    const isRight =
      isSigned(signature.inner, accessKey, payload) && isAuthorized(envelope, from, accessKey);
    return isRight ? { payer: from.toLowerCase(), accessKey: accessKey.toLowerCase() } : null;
  } catch {
    return null;
  }
}

/** Whether the transaction's own authorization is for this key and signed by the payer. */
function isAuthorized({ keyAuthorization }: Envelope, payer: string, accessKey: string): boolean {
  if (keyAuthorization === undefined) return true;
  if (keyAuthorization.address.toLowerCase() !== accessKey.toLowerCase()) return false;
  return isSigned(
    keyAuthorization.signature,
    payer,
    KeyAuthorization.getSignPayload(keyAuthorization),
  );
}

function isSigned(signature: Signature, address: string, payload: `0x${string}`): boolean {
  switch (signature.type) {
    case "secp256k1":
      return (
        signature.signature.s <= HALF_SECP256K1 &&
        Signature.verify(signature, { address: `0x${address.slice(2)}`, payload })
      );
    case "p256":
    case "webAuthn":
      return (
        signature.signature.s <= HALF_P256 &&
        Signature.verify(signature, { address: `0x${address.slice(2)}`, payload })
      );
    default:
      return false;
  }
}

/**
 * Of two equivalent signatures nodes accept the one with the lower half; otherwise one payment
 * could have two hashes.
 */
const HALF_SECP256K1 = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;
const HALF_P256 = 0x7fffffff800000007fffffffffffffffde737d56d38bcf4279dce5617e3192a8n;

function requestOf(envelope: Envelope, from: string): Record<string, unknown> {
  const {
    chainId,
    gas,
    maxFeePerGas,
    maxPriorityFeePerGas,
    nonce,
    nonceKey,
    validAfter,
    validBefore,
    feeToken,
    calls,
  } = envelope;
  const numbers = {
    chainId,
    gas,
    maxFeePerGas,
    maxPriorityFeePerGas,
    nonce: nonce ?? 0n,
    nonceKey,
    validAfter,
    validBefore,
  };
  return {
    type: "0x76",
    from,
    ...Object.fromEntries(
      Object.entries(numbers).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, `0x${value.toString(16)}`]],
      ),
    ),
    ...(typeof feeToken === "string" ? { feeToken } : {}),
    calls: calls.map(({ to, data = "0x", value = 0n }) => ({
      to,
      data,
      value: `0x${value.toString(16)}`,
    })),
  };
}
