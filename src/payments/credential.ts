// Reads the payment of a request and finds the offer of ours that it answers: an MPP challenge, or
// an x402 offer with our MAC. Reads no chain and no store.
import { isRecord } from "../core/fields.ts";
import type { OfferMacs } from "./offer-mac.ts";
import type { PaymentHeaders, RequestMark } from "./payments.ts";
import type { Protocol } from "./protocol.ts";
import type { ReadPayment } from "./protocol-credential.ts";
import type { BadPayment, Rail } from "./rails/rail.ts";

/** A payment that answers an offer of ours. */
export interface OfferedPayment {
  readonly kind: "offered";
  readonly read: ReadPayment;
  /** Known to the payer only: a copier of the payment from its chain does not have it. */
  readonly offerId: string;
  /** Milliseconds since the epoch. */
  readonly offeredUntilMs: number;
  /** Whether the offer was made for this request. */
  isFor(request: RequestMark): boolean;
}

/** Reads a payment; refuses one that answers no offer of ours. Never throws. */
export function readOfferedPayment(
  protocol: Pick<Protocol, "read">,
  offerMacs: OfferMacs,
  given: PaymentHeaders,
): OfferedPayment | BadPayment {
  const read = protocol.read(given);
  if ("kind" in read) return read;
  if (read.protocol === "x402") {
    const offered = offerMacs.read(read.accepted);
    if (offered === null) return { ...NOT_OFFERED, offerId: offerMacs.idIn(read.accepted) };
    return {
      kind: "offered",
      read,
      offerId: offered.id,
      offeredUntilMs: offered.expiresAtMs,
      isFor: ({ fingerprint }) => offered.isFor(fingerprint),
    };
  }
  const { bound } = read;
  const offeredUntilMs = read.challenge.expires === null ? 0 : Date.parse(read.challenge.expires);
  const isFor = ({ fingerprint, digest }: RequestMark): boolean =>
    bound?.fingerprint === fingerprint && bound.digest === digest;
  return { kind: "offered", read, offerId: read.challenge.id, offeredUntilMs, isFor };
}

const NOT_OFFERED: BadPayment = {
  kind: "bad_payment",
  problem: "invalid-challenge",
  reason:
    "`accepted` is no offer of this service, or was changed: send one entry of `accepts` back " +
    "as it was, `extra` included",
};

/** The keys of a payment at all rails that could settle it. */
export function keysOf(rails: readonly Rail[], read: ReadPayment): readonly string[] {
  const candidates =
    read.protocol === "x402"
      ? rails
      : rails.filter(({ method }) => method === read.challenge.method);
  return [...new Set(candidates.map((rail) => rail.keyOf(read)).filter((key) => key !== null))];
}

/** The rail whose offer a payment answers; null = it is not configured, or not any more. */
export function railFor(rails: readonly Rail[], read: ReadPayment, units: bigint): Rail | null {
  if (read.protocol === "x402") return rails.find((rail) => rail.takesX402(read.accepted)) ?? null;
  const { method, intent, request } = read.challenge;
  const named = rails.filter(
    (rail) => rail.method === method && rail.offer(units).intent === intent,
  );
  // Rails with one method differ by their requests. The rail itself refuses any other mismatch.
  return (
    named.find((rail) => canonical(rail.offer(units).request) === canonical(request)) ??
    named[0] ??
    null
  );
}

/** The same text for equal values, independent of the order of their fields. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, field: unknown) =>
    isRecord(field)
      ? Object.fromEntries(Object.entries(field).sort(([a], [b]) => (a < b ? -1 : 1)))
      : field,
  );
}
