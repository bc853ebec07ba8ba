// Accepts a payment: looks for its record, else checks the payment, records it before doing
// anything else, and follows it for a while. This order keeps payers from losing money.
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

/** What accepting a payment needs. */
export interface AcceptParts extends AdvanceParts {
  readonly protocol: Pick<Protocol, "read" | "receipt">;
  readonly offerMacs: OfferMacs;
  readonly scheduler: Pick<PurchaseScheduler, "follow">;
  /** How long a request waits for its chain. */
  readonly waitMs: number;
  /** Bounds repeated payments that wait; beyond, the present state is answered at once. */
  readonly waiters: Waiters;
  /** Whether a rail can settle now, as far as is known. */
  readonly canSettle: (rail: Rail) => boolean;
}

/** Accepts a payment; see the port. */
export async function acceptPayment<F>(
  parts: AcceptParts,
  { given, request }: { readonly given: PaymentHeaders; readonly request: RequestMark },
  order: () => Promise<Order | F>,
): Promise<PaidPurchase | PaymentDeclined | F> {
  const offered = readOfferedPayment(parts.protocol, parts.offerMacs, given);
  if (offered.kind === "bad_payment") return notOurs(parts, offered);
  const there = await byKeys(parts.store, keysOf(parts.rails, offered.read));
  if (there !== null) return found(parts, there, { offered, request });
  const ordered = await order();
  return isOrder(ordered) ? takeNew(parts, { offered, request }, ordered) : ordered;
}

/**
 * Refuses a payment for no present offer. The offer may be ours under a former secret or realm: if
 * a purchase has used it, the payer is not asked to pay again.
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
  readonly offered: OfferedPayment;
  readonly request: RequestMark;
}

function isOrder<F>(value: Order | F): value is Order {
  return typeof value === "object" && value !== null && "purpose" in value && "amountN" in value;
}

/** The result of a recorded payment, for a caller with its offer and its request. */
async function found(
  parts: AcceptParts,
  row: PurchaseRow,
  { offered, request }: Shown,
): Promise<PaidPurchase | PaymentDeclined> {
  // Everything else of a payment is public on its chain.
  if (row.offer_id !== offered.offerId)
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
      : ((await parts.waiters.at(row.id, () => latest(parts, row))) ?? row);
  return result(parts, now, true);
}

/** Follows an open purchase, or checks a failed one again: its money may have moved late. */
function latest(parts: AcceptParts, row: PurchaseRow): Promise<PurchaseRow> {
  return row.ended_at === null ? parts.scheduler.follow(row, parts.waitMs) : recheck(parts, row);
}

async function takeNew(
  parts: AcceptParts,
  shown: Shown,
  order: Order,
): Promise<PaidPurchase | PaymentDeclined> {
  const recorded = await recordNew(parts, shown, order);
  if (recorded.kind === "new")
    return result(parts, await parts.scheduler.follow(recorded.row, parts.waitMs), false);
  if (recorded.kind === "there") return found(parts, recorded.row, shown);
  // The same payment, or another payment for this offer, may have been recorded meanwhile: that
  // would be why its chain refuses this one.
  const { read, offerId } = shown.offered;
  const there = await byKeys(parts.store, keysOf(parts.rails, read));
  if (there !== null) return found(parts, there, shown);
  const used =
    recorded.fault.code === "payment_invalid" ? await usedOffer(parts.store, offerId) : null;
  return used === null ? recorded : conflict(OFFER_USED, used);
}

type Recording = (Recorded & { readonly kind: "new" | "there" }) | PaymentDeclined;

/** Checks a new payment and records it; a refused one is not recorded. */
async function recordNew(parts: AcceptParts, shown: Shown, order: Order): Promise<Recording> {
  const { offered, request } = shown;
  const units = unitsOf(order.amountN);
  if (units === null || units <= 0n)
    throw new RangeError(`an order of ${order.amountN} nano-USD is no amount of whole base units`);
  const rail = railFor(parts.rails, offered.read, units);
  if (rail === null)
    return invalid({
      problem: "method-unsupported",
      reason: "no rail takes this payment: answer an offer of this response",
    });
  const payment = await rail.read(offered.read, units);
  if ("kind" in payment) return invalid(payment);
  const refusal = await refusalOf(parts, { rail, payment, ...shown });
  if (refusal !== null) return refusal;
  const network = await parts.railCalls.call(rail, () => rail.network());
  if (network.kind === "unavailable") return unavailable(UNREACHABLE);
  const bad = await parts.railCalls.call(rail, () => rail.check(payment));
  if (bad.kind === "unavailable") return unavailable(UNREACHABLE);
  if (bad.value !== null) return invalid(bad.value);
  const { read, offerId } = offered;
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
 * Why a valid payment is refused for this request. Money that has already moved is not refused for
 * a reason that only serves to keep money from moving.
 */
async function refusalOf(
  { store, runtime, canSettle }: AcceptParts,
  { offered, request, rail, payment }: Shown & { readonly rail: Rail; readonly payment: Payment },
): Promise<PaymentDeclined | null> {
  if (!offered.isFor(request)) {
    return invalid({
      problem: "verification-failed",
      reason:
        "the offer that this payment answers was made for another request: another method, " +
        "path or body",
    });
  }
  if (payment.isSent) return null;
  if (!(offered.offeredUntilMs > runtime.wallMs()))
    return invalid({
      problem: "payment-expired",
      reason: "the offer that this payment answers is over",
    });
  const used = await usedOffer(store, offered.offerId);
  if (used !== null) return conflict(OFFER_USED, used);
  return canSettle(rail) ? null : unavailable("payments by this rail cannot be settled right now");
}

/** The result of a recorded payment. */
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
  // Also for a repeated payment: its process may have ended before it announced the change.
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

/** How many may wait. */
export interface WaiterLimits {
  readonly each: number;
  readonly all: number;
}

/** Requests that wait. */
export class Waiters {
  readonly #limits: WaiterLimits;
  readonly #counts = new Map<string, number>();
  #inAll = 0;

  constructor(limits: WaiterLimits) {
    this.#limits = limits;
  }

  /** Runs `wait` if one more may wait for this purchase; null = none may. */
  async at<T>(purchaseId: string, wait: () => Promise<T>): Promise<T | null> {
    const { each, all } = this.#limits;
    const count = this.#counts.get(purchaseId) ?? 0;
    if (count >= each || this.#inAll >= all) return null;
    this.#counts.set(purchaseId, count + 1);
    this.#inAll++;
    try {
      return await wait();
    } finally {
      this.#inAll--;
      const left = (this.#counts.get(purchaseId) ?? 1) - 1;
      if (left > 0) this.#counts.set(purchaseId, left);
      else this.#counts.delete(purchaseId);
    }
  }
}
