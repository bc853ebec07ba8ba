// Marks in x402 offers. Of an x402 payment only the authorization is signed, and all of that stands
// on the chain for everybody to read; the mark does not. It binds an offer to a request and a time,
// as MPP's challenges are, and tells the payer from whoever copied the payment. Knows no rail.
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import type { X402Offer } from "./rails/rail.ts";

/** Puts marks into offers and reads them. */
export interface OfferMacs {
  /** The offer, to be taken up for one request and up to a time. */
  marked(offer: X402Offer, fingerprint: string, expiresAtMs: number): X402Offer;
  /** The mark of an offer that came back; null = it is not one of ours. */
  read(offer: X402Offer): OfferMac | null;
  /** What stands where the id of a mark does, unchecked; empty = nothing does. */
  idIn(offer: X402Offer): string;
}

/** What the mark of an offer says. */
export interface OfferMac {
  /** No other offer has it. */
  readonly id: string;
  readonly expiresAtMs: number;
  /** Whether the offer was made for this request. */
  isFor(fingerprint: string): boolean;
}

const FIELD = "offer";
const RANDOM_BYTES = 18;
const MAC_BYTES = 16;
const KEY_BYTES = 32;

/** Marks by a secret; those of the previous one (null = there was none) are still known. */
export function createOfferMacs(secret: string, previous: string | null): OfferMacs {
  const current = keyOf(secret);
  const keys = previous === null ? [current] : [current, keyOf(previous)];
  return {
    marked(offer, fingerprint, expiresAtMs) {
      const id = randomBytes(RANDOM_BYTES).toString("base64url");
      const expires = Math.floor(expiresAtMs).toString(36);
      const mark = `${id}.${expires}.${macOf(current, { id, expires, offer }, null)}.${macOf(current, { id, expires, offer }, fingerprint)}`;
      return { ...offer, extra: { ...offer.extra, [FIELD]: mark } };
    },
    read(offer) {
      const mark = offer.extra[FIELD];
      const [id = "", expires = "", mac = "", requestMac = "", ...more] =
        typeof mark === "string" ? mark.split(".") : [];
      const key =
        more.length > 0
          ? undefined
          : keys.find((it) => isSame(mac, macOf(it, { id, expires, offer }, null)));
      if (key === undefined) return null;
      return {
        id,
        expiresAtMs: Number.parseInt(expires, 36),
        isFor: (fingerprint) => isSame(requestMac, macOf(key, { id, expires, offer }, fingerprint)),
      };
    },
    idIn({ extra }) {
      const mark = extra[FIELD];
      return typeof mark === "string" ? (mark.split(".", 1)[0] ?? "") : "";
    },
  };
}

function keyOf(secret: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", "svc payment offers", KEY_BYTES));
}

interface Marked {
  readonly id: string;
  readonly expires: string;
  readonly offer: X402Offer;
}

/** Of what the offer says, or (with a fingerprint) of the request that it is for. */
function macOf(key: Buffer, { id, expires, offer }: Marked, fingerprint: string | null): string {
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
