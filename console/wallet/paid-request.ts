// Sends requests that cost money: first without a payment, to be told the offers, then with one.
// A payment that was recorded is never sent anew: its purchase is watched.

import { type Failure, refusalOf, SERVICE_URL } from "../api/client.ts";
import { memberOf } from "../api/json.ts";
import { type PaymentOffer, readOffers } from "./x402-offer.ts";

/** What is bought: an operation with its body. */
export interface PaidRequest {
  /** From the root of the service, as `/api/v1/…`. */
  readonly path: string;
  readonly body: object;
}

/** What came of it. */
export type PaidAnswer =
  | { readonly kind: "offers"; readonly offers: readonly PaymentOffer[] }
  | { readonly kind: "settled"; readonly purchaseId: string; readonly txHash: string | null }
  | { readonly kind: "pending"; readonly purchaseId: string }
  | { readonly kind: "failed"; readonly failure: Failure };

/** A payment is waited for while its chain confirms it. */
const TIMEOUT_MS = 90_000;
const PAYMENT_REQUIRED = 402;

/** Asks for the offers of a purchase. */
export function requestOffers(request: PaidRequest): Promise<PaidAnswer> {
  return send(request, {});
}

/** Sends a purchase with its signed payment. */
export function sendPayment(request: PaidRequest, header: string): Promise<PaidAnswer> {
  return send(request, { "payment-signature": header });
}

async function send(
  { path, body }: PaidRequest,
  payment: Readonly<Record<string, string>>,
): Promise<PaidAnswer> {
  try {
    const response = await fetch(new URL(path.slice(1), SERVICE_URL), {
      method: "POST",
      cache: "no-store",
      credentials: "same-origin",
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: { "content-type": "application/json", ...payment },
      body: JSON.stringify(body),
    });
    const answer: unknown = await response.json();
    if (response.ok) return settledOf(answer);
    const offers = readOffers(response.headers.get("payment-required"));
    const isFirst = Object.keys(payment).length === 0;
    if (response.status === PAYMENT_REQUIRED && isFirst) return { kind: "offers", offers };
    const error = memberOf(answer, "error");
    const purchaseId = memberOf(error, "purchase_id");
    if (memberOf(error, "code") === "payment_pending" && typeof purchaseId === "string")
      return { kind: "pending", purchaseId };
    return { kind: "failed", failure: refusalOf(response, answer) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { kind: "failed", failure: { kind: "unreachable", message } };
  }
}

function settledOf(answer: unknown): PaidAnswer {
  const txHash = memberOf(memberOf(answer, "receipt"), "tx_hash");
  return {
    kind: "settled",
    purchaseId: String(memberOf(answer, "purchase_id")),
    txHash: typeof txHash === "string" ? txHash : null,
  };
}
