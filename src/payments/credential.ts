// What a request shows to pay with, and which offer of ours it answers: for MPP a challenge, for
// x402 an offer with a mark. Asks no chain and no store.

import type { OfferMacs } from "./offer-mac.ts";
import type { PaymentHeaders, RequestMark } from "./payments.ts";
import type { Protocol, ReadPayment } from "./protocol.ts";
import type { BadPayment, Rail } from "./rails/rail.ts";

/** A payment that answers an offer of ours. */
export interface OfferedPayment {
  readonly kind: "presented";
  readonly read: ReadPayment;
  /**
   * The offer; with the payment's key it tells the payer from whoever copied the payment from its
   * chain.
   */
  readonly offerId: string;
  /** Milliseconds since the epoch. */
  readonly offeredUntilMs: number;
  /** Whether the offer was made for this request. */
  isFor(request: RequestMark): boolean;
}

/** Reads a payment; refuses what no offer of ours was made for. Never throws. */
export function readOfferedPayment(
  protocol: Pick<Protocol, "read">,
  marks: OfferMacs,
  given: PaymentHeaders,
): OfferedPayment | BadPayment {
  const read = protocol.read(given);
  if ("kind" in read) return read;
  if (read.protocol === "x402") {
    const mark = marks.read(read.accepted);
    if (mark === null) return { ...NOT_OFFERED, offerId: marks.idIn(read.accepted) };
    return {
      kind: "presented",
      read,
      offerId: mark.id,
      offeredUntilMs: mark.expiresAtMs,
      isFor: ({ fingerprint }) => mark.isFor(fingerprint),
    };
  }
  const { bound } = read;
  const offeredUntilMs = read.challenge.expires === null ? 0 : Date.parse(read.challenge.expires);
  const isFor = ({ fingerprint, digest }: RequestMark): boolean =>
    bound?.fingerprint === fingerprint && bound.digest === digest;
  return { kind: "presented", read, offerId: read.challenge.id, offeredUntilMs, isFor };
}

const NOT_OFFERED: BadPayment = {
  kind: "bad_payment",
  problem: "invalid-challenge",
  reason:
    "`accepted` is no offer of this service, or was changed: send one entry of `accepts` back " +
    "as it was, `extra` included",
};

/** Every key that some rail would know a payment by. */
export function keysOf(rails: readonly Rail[], read: ReadPayment): readonly string[] {
  const asked =
    read.protocol === "x402"
      ? rails
      : rails.filter(({ method }) => method === read.challenge.method);
  return [...new Set(asked.map((it) => it.keyOf(read)).filter((it) => it !== null))];
}

/** The rail whose offer a payment answers; null = none is configured (any more). */
export function railFor(rails: readonly Rail[], read: ReadPayment, units: bigint): Rail | null {
  if (read.protocol === "x402") return rails.find((it) => it.takesX402(read.accepted)) ?? null;
  const { method, intent, request } = read.challenge;
  const named = rails.filter((it) => it.method === method && it.offer(units).intent === intent);
  // Where several have the method, the request tells which; what else is wrong with it the rail
  // says.
  return (
    named.find((it) => canonical(it.offer(units).request) === canonical(request)) ??
    named[0] ??
    null
  );
}

/** The same text for the same value, whatever the order of its fields. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, it: unknown) =>
    isRecord(it) ? Object.fromEntries(Object.entries(it).sort(([a], [b]) => (a < b ? -1 : 1))) : it,
  );
}

function isRecord(it: unknown): it is Readonly<Record<string, unknown>> {
  return typeof it === "object" && it !== null && !Array.isArray(it);
}
