// A payment is taken: found again if it was recorded, else checked, recorded before anything is
// done with it, and followed for a while. The order of these is what keeps payers from losing
// money; see `take`.
import { unitsOf } from "../core/billing/payment.ts";
import { keysOf, type OfferedPayment, railFor, readOfferedPayment } from "./credential.ts";
import type { OfferMacs } from "./offer-mac.ts";
import type {
  Order,
  PaidPurchase,
  PaymentDeclined,
  PaymentHeaders,
  RequestMark,
} from "./payments.ts";
import type { Protocol } from "./protocol.ts";
import { type AdvanceParts, announce, recheck } from "./purchase/advance.ts";
import { openFulfilment, type PurchaseRow, viewOf } from "./purchase/record.ts";
import { byKeys, type Recorded, record, usedOffer } from "./purchase/rows.ts";
import type { PurchaseScheduler } from "./purchase/scheduler.ts";
import { giveHeld } from "./purchase/transitions.ts";
import type { BadPayment, Payment, Rail } from "./rails/rail.ts";
import { conflict, invalid, purchaseRefusal, tooMany, unavailable, unreadable } from "./refusal.ts";
import type { Waiters } from "./waiters.ts";

/** What payments are taken with. */
export interface AcceptParts extends AdvanceParts {
  readonly protocol: Pick<Protocol, "read" | "receipt">;
  readonly marks: OfferMacs;
  readonly driver: Pick<PurchaseScheduler, "follow">;
  /** How long a request waits for its chain. */
  readonly waitMs: number;
  /** Where those who repeat a payment wait; whoever finds no place hears at once how it stands. */
  readonly waiting: Waiters;
  /** Whether a rail can settle now, as far as is known. */
  readonly canSettle: (rail: Rail) => boolean;
}

/** Takes a payment; see the port. */
export async function acceptPayment<F>(
  parts: AcceptParts,
  { given, request }: { readonly given: PaymentHeaders; readonly request: RequestMark },
  order: () => Promise<Order | F>,
): Promise<PaidPurchase | PaymentDeclined | F> {
  const presented = readOfferedPayment(parts.protocol, parts.marks, given);
  if (presented.kind === "bad_payment") return notOurs(parts, presented);
  const there = await byKeys(parts.store, keysOf(parts.rails, presented.read));
  if (there !== null) return found(parts, there, { presented, request });
  const ordered = await order();
  return isOrder(ordered) ? takeNew(parts, { presented, request }, ordered) : ordered;
}

/**
 * Its offer may have been ours under a secret or a name of before: where it was taken up nobody is
 * asked to pay once more.
 */
async function notOurs(
  { store }: AcceptParts,
  { offerId = "", ...bad }: BadPayment,
): Promise<PaymentDeclined> {
  const isUsed = offerId !== "" && (await usedOffer(store, offerId)) !== null;
  return isUsed
    ? conflict(
        "a payment for this offer is recorded, and it cannot be told any more that this is it: " +
          "do not pay again, see its status_url",
        null,
      )
    : invalid(bad);
}

interface Shown {
  readonly presented: OfferedPayment;
  readonly request: RequestMark;
}

function isOrder<F>(it: Order | F): it is Order {
  return typeof it === "object" && it !== null && "purpose" in it && "amountN" in it;
}

/**
 * A payment that was recorded before: whoever shows it with its offer and its request gets what it
 * came to.
 */
async function found(
  parts: AcceptParts,
  row: PurchaseRow,
  { presented, request }: Shown,
): Promise<PaidPurchase | PaymentDeclined> {
  // All else of a payment stands on its chain for everybody to read.
  if (row.offer_id !== presented.offerId)
    return conflict(
      "this payment was recorded with another offer: repeat exactly what was sent first",
      null,
    );
  if (row.fingerprint !== request.fingerprint)
    return conflict(
      "this payment was recorded with another request: repeat that one for its result",
      row.id,
    );
  const now =
    row.state === "settled"
      ? row
      : ((await parts.waiting.at(row.id, () => goneOn(parts, row))) ?? row);
  return result(parts, now, true);
}

/**
 * Follows what is under way. What has failed may be on its chain after all: nobody loses money that
 * came late.
 */
function goneOn(parts: AcceptParts, row: PurchaseRow): Promise<PurchaseRow> {
  return row.ended_at === null ? parts.driver.follow(row, parts.waitMs) : recheck(parts, row);
}

async function takeNew(
  parts: AcceptParts,
  shown: Shown,
  order: Order,
): Promise<PaidPurchase | PaymentDeclined> {
  const recorded = await recordNew(parts, shown, order);
  if (recorded.kind === "new")
    return result(parts, await parts.driver.follow(recorded.row, parts.waitMs), false);
  if (recorded.kind === "there") return found(parts, recorded.row, shown);
  // The same payment, or another one for its offer, may have been recorded while this one was
  // looked at: it is why its chain says no, then.
  const { read, offerId } = shown.presented;
  const there = await byKeys(parts.store, keysOf(parts.rails, read));
  if (there !== null) return found(parts, there, shown);
  const used =
    recorded.fault.code === "payment_invalid" ? await usedOffer(parts.store, offerId) : null;
  return used === null ? recorded : conflict(OFFER_USED, used);
}

type Recording = (Recorded & { readonly kind: "new" | "there" }) | PaymentDeclined;

/**
 * Checks a payment that was not seen before and writes it down; what it returns as unpaid is not
 * recorded.
 */
async function recordNew(parts: AcceptParts, shown: Shown, order: Order): Promise<Recording> {
  const { presented, request } = shown;
  const units = unitsOf(order.amountN);
  if (units === null || units <= 0n)
    throw new RangeError(`an order of ${order.amountN} nano-USD is no amount of whole base units`);
  const rail = railFor(parts.rails, presented.read, units);
  if (rail === null)
    return invalid({
      problem: "method-unsupported",
      reason: "no rail takes this payment: answer an offer of this response",
    });
  const payment = await rail.read(presented.read, units);
  if ("kind" in payment) return invalid(payment);
  const refusal = await refusalOf(parts, { rail, payment, ...shown });
  if (refusal !== null) return refusal;
  const network = await parts.asks.ask(rail, () => rail.network());
  if (network.kind === "trouble") return unavailable(UNREACHABLE);
  const bad = await parts.asks.ask(rail, () => rail.check(payment));
  if (bad.kind === "trouble") return unavailable(UNREACHABLE);
  if (bad.value !== null) return invalid(bad.value);
  const { read, offerId } = presented;
  const purchase = {
    payment,
    rail,
    network: network.value,
    protocol: read.protocol,
    offerId,
    purpose: order.purpose,
    amountN: order.amountN,
  };
  const recorded = await record(
    parts,
    { ...purchase, fingerprint: request.fingerprint },
    parts.runtime.wallMs(),
  );
  switch (recorded.kind) {
    case "new":
    case "there":
      return recorded;
    case "offer_used":
      return conflict(OFFER_USED, recorded.id);
    case "too_many":
      return tooMany();
  }
}

const UNREACHABLE = "the payment's chain cannot be asked right now";
const OFFER_USED = "another payment has taken this offer up: see what became of it";

/**
 * Why a payment that is right in itself is not taken for this request. Money that has moved already
 * is not refused for what only keeps money from moving.
 */
async function refusalOf(
  { store, runtime, canSettle }: AcceptParts,
  { presented, request, rail, payment }: Shown & { readonly rail: Rail; readonly payment: Payment },
): Promise<PaymentDeclined | null> {
  if (!presented.isFor(request)) {
    return invalid({
      problem: "verification-failed",
      reason:
        "the offer that this payment answers was made for another request: another method, " +
        "path or body",
    });
  }
  if (payment.isSent) return null;
  if (!(presented.offeredUntilMs > runtime.wallMs()))
    return invalid({
      problem: "payment-expired",
      reason: "the offer that this payment answers is over",
    });
  const used = await usedOffer(store, presented.offerId);
  if (used !== null) return conflict(OFFER_USED, used);
  return canSettle(rail) ? null : unavailable("payments by this rail cannot be settled right now");
}

/** What a recorded payment has come to. */
async function result(
  parts: AcceptParts,
  row: PurchaseRow,
  repeated: boolean,
): Promise<PaidPurchase | PaymentDeclined> {
  const given =
    row.state === "settled" && row.fulfilment === null
      ? await giveHeld(parts, row.id, parts.runtime.wallMs())
      : row;
  if (given.state !== "settled" || given.fulfilment === null) return purchaseRefusal(given);
  const fulfilment = openFulfilment(parts.sealer, given.id, given.fulfilment);
  if (fulfilment === null) return unreadable(given);
  // Also when it was given before: the one who gave it may have ended before memory heard of it.
  if (repeated) await announce(parts, given);
  const purchase = viewOf(given);
  const headers = parts.protocol.receipt({
    protocol: purchase.protocol,
    purchaseId: purchase.id,
    method: purchase.rail,
    txHash: purchase.txHash ?? "",
    network: `eip155:${purchase.chainId}`,
    payer: purchase.payer,
    atMs: purchase.endedAtMs ?? parts.runtime.wallMs(),
  });
  return { kind: "paid", purchase, fulfilment, repeated, headers };
}
