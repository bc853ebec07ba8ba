// MPP and x402 in HTTP headers: writes challenges bound to a request, parses credentials, checks
// that an MPP credential answers a challenge of this service, and writes receipts. Knows no chain
// and no store; rails decide what a payment is worth.
import { hkdfSync, randomBytes } from "node:crypto";
import { encodePaymentRequiredHeader, encodePaymentResponseHeader } from "@x402/core/http";
import { Challenge, Constants, Receipt } from "mppx";
import type { PaymentProtocol } from "../core/billing/payment.ts";
import type { PaymentHeaders } from "./payments.ts";
import { type MppCredential, parseCorrelation, parseCredential } from "./protocol-credential.ts";
import type { BadPayment, PaymentCredential, RailOffer, X402Offer } from "./rails/rail.ts";

/** The contents of a challenge. */
export interface ChallengeParts {
  readonly offers: readonly RailOffer[];
  readonly x402: readonly X402Offer[];
  /** Digest of the request to be paid for, as in `RequestMark`; null = any request. */
  readonly digest: string | null;
  readonly fingerprint: string;
  readonly resourceUrl: string;
  readonly description: string;
  readonly expiresAtMs: number;
  /** True = the credential is to be sent in `Payment-Authorization`. */
  readonly keepsAuthorization: boolean;
}

/** The contents of a receipt. */
export interface ReceiptParts {
  readonly protocol: PaymentProtocol;
  readonly purchaseId: string;
  /** MPP method. */
  readonly method: string;
  readonly txHash: string;
  /** CAIP-2. */
  readonly network: string;
  readonly payer: string;
  readonly atMs: number;
}

/** The request that a challenge is bound to; a null field = not bound in this respect. */
export interface ChallengeBinding {
  readonly digest: string | null;
  readonly fingerprint: string | null;
}

/**
 * A payment that answers one of this service's challenges (MPP), or answers no challenge (x402,
 * `bound` null).
 */
export type ReadPayment = PaymentCredential & { readonly bound: ChallengeBinding | null };

/** Writes challenges and receipts, parses credentials. */
export interface Protocol {
  /** Header names and values in turn; empty if nothing is offered. */
  challenge(parts: ChallengeParts): readonly string[];
  /** Never throws. */
  read(given: PaymentHeaders): ReadPayment | BadPayment;
  /** Header names and values in turn. */
  receipt(parts: ReceiptParts): readonly string[];
}

/** The realm and secrets of challenges. */
export interface ProtocolParts {
  readonly realm: string;
  /**
   * At least 32 bytes. Signatures made with the previous secret (null = none) are still accepted.
   */
  readonly secret: string;
  readonly previousSecret: string | null;
}

const X402_VERSION = 2;
const EVM_NETWORK = "eip155:";
const NONCE_BYTES = 12;
const MAX_DESCRIPTION_CHARS = 200;

/** The payment protocols of one realm. */
export function createProtocol({ realm, secret, previousSecret }: ProtocolParts): Protocol {
  const secrets = previousSecret === null ? [secret] : [secret, previousSecret];
  return {
    challenge: (parts) => [
      ...parts.offers.flatMap((offer) => [
        Constants.Headers.wwwAuthenticate,
        mppChallenge(offer, parts, { realm, secret }),
      ]),
      ...(parts.x402.length === 0 ? [] : ["PAYMENT-REQUIRED", x402Challenge(parts)]),
    ],
    read(given) {
      const credential = parseCredential(given.text);
      if ("kind" in credential) return credential;
      if (credential.protocol === "x402") return { ...credential, bound: null };
      return isOurs(credential, realm, secrets)
        ? paymentOf(credential)
        : { ...NOT_OURS, offerId: credential.challenge.id };
    },
    receipt: (parts) =>
      parts.protocol === "mpp"
        ? [Constants.Headers.paymentReceipt, mppReceipt(parts)]
        : ["PAYMENT-RESPONSE", x402Receipt(parts)],
  };
}

const NOT_OURS: BadPayment = {
  kind: "bad_payment",
  problem: "invalid-challenge",
  reason:
    "The challenge that this credential answers was not made here, or was changed. Answer a " +
    "challenge of this response.",
};

function mppChallenge(
  offer: RailOffer,
  parts: ChallengeParts,
  { realm, secret }: { readonly realm: string; readonly secret: string },
): string {
  return Challenge.serialize(
    Challenge.from({
      secretKey: secret,
      realm,
      method: offer.method,
      intent: offer.intent,
      request: offer.request,
      expires: new Date(parts.expiresAtMs).toISOString(),
      ...(parts.digest === null ? {} : { digest: parts.digest }),
      description: printable(parts.description),
      ...(parts.keepsAuthorization ? { header: Constants.Headers.paymentAuthorization } : {}),
      // Makes challenges of the same moment distinct, because their ids identify payments.
      meta: {
        fingerprint: parts.fingerprint,
        nonce: randomBytes(NONCE_BYTES).toString("base64url"),
      },
    }),
  );
}

function x402Challenge({ x402: accepts, resourceUrl, description }: ChallengeParts): string {
  return encodePaymentRequiredHeader({
    x402Version: X402_VERSION,
    resource: {
      url: resourceUrl,
      description: printable(description),
      mimeType: "application/json",
    },
    accepts: accepts.map(({ network, extra, ...rest }) => ({
      ...rest,
      network: evmNetwork(network),
      extra: { ...extra },
    })),
  });
}

function mppReceipt({ method, txHash, atMs, purchaseId, network }: ReceiptParts): string {
  return Receipt.serialize(
    Receipt.from({
      method,
      reference: txHash,
      status: "success",
      timestamp: new Date(atMs).toISOString(),
      externalId: purchaseId,
      network,
    }),
  );
}

function x402Receipt({ txHash, network, payer, purchaseId }: ReceiptParts): string {
  return encodePaymentResponseHeader({
    success: true,
    transaction: txHash,
    network: evmNetwork(network),
    payer,
    extra: { purchaseId },
  });
}

/**
 * The type that the library expects for CAIP-2 ids: all x402 rails of this service are on EVM
 * chains.
 */
function evmNetwork(network: string): `eip155:${number}` {
  return `eip155:${Number(network.slice(EVM_NETWORK.length))}`;
}

/** Text reduced to one line that is valid in a header. */
function printable(text: string): string {
  return text.replace(/\p{C}/gu, " ").slice(0, MAX_DESCRIPTION_CHARS);
}

function isOurs({ challenge }: MppCredential, realm: string, secrets: readonly string[]): boolean {
  const { expires, digest, header, opaque, ...rest } = challenge;
  const signed = {
    ...rest,
    ...(expires === null ? {} : { expires }),
    ...(digest === null ? {} : { digest }),
    ...(header === null ? {} : { header }),
    ...(opaque === null ? {} : { opaque }),
  };
  return (
    challenge.realm === realm &&
    secrets.some((secretKey) => Challenge.verify(signed, { secretKey }))
  );
}

function paymentOf({ challenge, ...credential }: MppCredential): ReadPayment {
  const { digest, opaque, header, ...rest } = challenge;
  const fingerprint = parseCorrelation(opaque)?.fingerprint ?? null;
  return { ...credential, challenge: rest, bound: { digest, fingerprint } };
}

const SECRET_BYTES = 32;

/** Secrets that sign challenges, derived from those of the service, which they do not reveal. */
export function challengeSecrets(
  secret: string,
  previousSecret: string | null,
): { readonly secret: string; readonly previousSecret: string | null } {
  const derived = (from: string) =>
    Buffer.from(hkdfSync("sha256", from, "", "svc payment challenges", SECRET_BYTES)).toString(
      "base64url",
    );
  return {
    secret: derived(secret),
    previousSecret: previousSecret === null ? null : derived(previousSecret),
  };
}
