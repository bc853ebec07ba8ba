// Authenticates x402 offers by a MAC. The payer signs only the authorization, which is public on
// the chain; the MAC is not. It binds an offer to a request and a time, as MPP does with
// challenges, and distinguishes the payer from a copier of the payment. Knows no rail.
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import type { X402Offer } from "./rails/rail.ts";

/** What the MAC of an offer authenticates. */
export interface OfferMac {
  /** Unique. */
  readonly id: string;
  readonly expiresAtMs: number;
  /** Whether the offer was made for this request. */
  isFor(fingerprint: string): boolean;
}

const FIELD = "offer";
const RANDOM_BYTES = 18;
const MAC_BYTES = 16;
const KEY_BYTES = 32;

/** Signs offers and verifies them. */
export class OfferMacs {
  readonly #current: Buffer;
  /** Those that are accepted. */
  readonly #keys: readonly Buffer[];

  /** MACs by the previous secret (null = there was none) are still accepted. */
  constructor(secret: string, previous: string | null) {
    this.#current = keyOf(secret);
    this.#keys = previous === null ? [this.#current] : [this.#current, keyOf(previous)];
  }

  /** The offer with a MAC, valid for one request and until a time. */
  signed(offer: X402Offer, fingerprint: string, expiresAtMs: number): X402Offer {
    const id = randomBytes(RANDOM_BYTES).toString("base64url");
    const expires = Math.floor(expiresAtMs).toString(36);
    const input = { id, expires, offer };
    const macs = [macOf(this.#current, input, null), macOf(this.#current, input, fingerprint)];
    const field = [id, expires, ...macs].join(".");
    return { ...offer, extra: { ...offer.extra, [FIELD]: field } };
  }

  /** Verifies an offer that came back; null = it is not one of ours. */
  read(offer: X402Offer): OfferMac | null {
    const field = offer.extra[FIELD];
    const [id = "", expires = "", mac = "", requestMac = "", ...more] =
      typeof field === "string" ? field.split(".") : [];
    const key =
      more.length > 0
        ? undefined
        : this.#keys.find((key) => isSame(mac, macOf(key, { id, expires, offer }, null)));
    if (key === undefined) return null;
    return {
      id,
      expiresAtMs: Number.parseInt(expires, 36),
      isFor: (fingerprint) => isSame(requestMac, macOf(key, { id, expires, offer }, fingerprint)),
    };
  }

  /** The id in an offer, unverified; empty = none. */
  idIn({ extra }: X402Offer): string {
    const field = extra[FIELD];
    return typeof field === "string" ? (field.split(".", 1)[0] ?? "") : "";
  }
}

function keyOf(secret: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", "svc payment offers", KEY_BYTES));
}

interface MacInput {
  readonly id: string;
  readonly expires: string;
  readonly offer: X402Offer;
}

/** The MAC of an offer, or (with a fingerprint) of an offer and the request that it is for. */
function macOf(key: Buffer, { id, expires, offer }: MacInput, fingerprint: string | null): string {
  const { scheme, network, amount, asset, payTo } = offer;
  const parts = [
    id,
    expires,
    scheme,
    network,
    amount,
    asset.toLowerCase(),
    payTo.toLowerCase(),
    fingerprint,
  ];
  return createHmac("sha256", key)
    .update(JSON.stringify(parts))
    .digest()
    .subarray(0, MAC_BYTES)
    .toString("base64url");
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
