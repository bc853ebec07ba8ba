// Sends requests that cost money: first without a payment, to be told the offers, then with one.
// A payment that was recorded is never sent anew: its purchase is watched.

import type { Client, Failure } from "../api/client.ts";
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
  | { readonly kind: "settled"; readonly txHash: string | null }
  | { readonly kind: "pending"; readonly purchaseId: string }
  | { readonly kind: "failed"; readonly failure: Failure };

interface Bought {
  readonly receipt: { readonly tx_hash: string | null };
}

/** A payment is waited for while its chain confirms it. */
const TIMEOUT_MS = 90_000;
const PAYMENT_REQUIRED = 402;

/** Sends a purchase with its signed payment; null = asks what it costs. */
export async function sendPaid(
  client: Client,
  { path, body }: PaidRequest,
  payment: string | null,
): Promise<PaidAnswer> {
  const headers = payment === null ? {} : { "payment-signature": payment };
  const options = { body, headers, timeoutMs: TIMEOUT_MS };
  const result = await client.request<Bought>("POST", path, options);
  if (result.kind === "ok") return { kind: "settled", txHash: result.body.receipt.tx_hash };
  const { failure } = result;
  const { status, code, purchaseId, paymentRequired } = failure;
  if (status === PAYMENT_REQUIRED && payment === null)
    return { kind: "offers", offers: readOffers(paymentRequired) };
  if (code === "payment_pending" && purchaseId !== "") return { kind: "pending", purchaseId };
  return { kind: "failed", failure };
}
