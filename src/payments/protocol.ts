// MPP and x402 in HTTP headers: writes challenges bound to a request, parses credentials, checks
// that an MPP credential answers a challenge of this service, and writes receipts. Knows no chain
// and no store; rails decide what a payment is worth.
import { hkdfSync, randomBytes } from "node:crypto";
import { encodePaymentRequiredHeader, encodePaymentResponseHeader } from "@x402/core/http";
import { Challenge, Constants, Receipt } from "mppx";
import type { PaymentProtocol } from "../core/billing/payment.ts";
import type { PaymentHeaders } from "./payments.ts";
import { parseCredential, type ReadPayment } from "./protocol-credential.ts";
import type { BadPayment, RailOffer, X402Offer } from "./rails/rail.ts";

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

/** The realm and secrets of challenges. */
export interface ProtocolParts {
  readonly realm: string;
  /**
   * Of the service: those of challenges are derived from it, and do not reveal it. Challenges of
   * the previous secret (null = none) are still accepted.
   */
  readonly secret: string;
  readonly previousSecret: string | null;
}

const X402_VERSION = 2;
const EVM_NETWORK = "eip155:";
const NONCE_BYTES = 12;
const SECRET_BYTES = 32;
const MAX_DESCRIPTION_CHARS = 200;

/** The payment protocols of one realm: writes challenges and receipts, parses credentials. */
export class Protocol {
  readonly #realm: string;
  readonly #secret: string;
  /** Those that are accepted. */
  readonly #secrets: readonly string[];

  constructor({ realm, secret, previousSecret }: ProtocolParts) {
    this.#realm = realm;
    this.#secret = challengeSecret(secret);
    this.#secrets = [
      this.#secret,
      ...(previousSecret === null ? [] : [challengeSecret(previousSecret)]),
    ];
  }

  /** Header names and values in turn; empty if nothing is offered. */
  challenge(parts: ChallengeParts): readonly string[] {
    const mpp = parts.offers.flatMap((offer) => [
      Constants.Headers.wwwAuthenticate,
      this.#mppChallenge(offer, parts),
    ]);
    return parts.x402.length === 0 ? mpp : [...mpp, "PAYMENT-REQUIRED", x402Challenge(parts)];
  }

  /** Never throws. */
  read(given: PaymentHeaders): ReadPayment | BadPayment {
    return parseCredential(
      given.text,
      (challenge) =>
        challenge.realm === this.#realm &&
        this.#secrets.some((secretKey) => Challenge.verify(challenge, { secretKey })),
    );
  }

  /** Header names and values in turn. */
  receipt(parts: ReceiptParts): readonly string[] {
    return parts.protocol === "mpp"
      ? [Constants.Headers.paymentReceipt, mppReceipt(parts)]
      : ["PAYMENT-RESPONSE", x402Receipt(parts)];
  }

  #mppChallenge(offer: RailOffer, parts: ChallengeParts): string {
    return Challenge.serialize(
      Challenge.from({
        ...offer,
        secretKey: this.#secret,
        realm: this.#realm,
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
}

function challengeSecret(secret: string): string {
  const bytes = hkdfSync("sha256", secret, "", "svc payment challenges", SECRET_BYTES);
  return Buffer.from(bytes).toString("base64url");
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
