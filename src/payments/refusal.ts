// Refusals of payments that have bought nothing, or nothing yet. Once a payment is recorded, none
// of them asks the payer to pay.
import { type ApiFault, type ApiFaultDetails, apiFault } from "../core/faults/api-fault.ts";
import type { PaymentDeclined } from "./payments.ts";
import type { ProblemCode } from "./protocol-problems.ts";
import type { PurchaseRow } from "./purchase/record.ts";
import type { BadPayment } from "./rails/rail.ts";

type Code = PaymentDeclined["fault"]["code"];

const PENDING_RETRY_MS = 2_000;
const UNAVAILABLE_RETRY_MS = 5_000;
const LIMIT_RETRY_MS = 30_000;

/** The payment is invalid, and nothing was recorded. */
export function invalid({
  problem,
  reason,
}: Pick<BadPayment, "problem" | "reason">): PaymentDeclined {
  return declined(apiFault("payment_invalid", reason), null, problem);
}

/** The payment cannot be accepted now, and nothing was recorded. */
export function unavailable(message: string): PaymentDeclined {
  const details = {
    nextAction:
      "repeat the same request with the same payment after Retry-After: nothing was recorded",
    retryAfterMs: UNAVAILABLE_RETRY_MS,
  };
  return declined(apiFault("unavailable", message, details), null, "internal-payment-error");
}

/** The payer has too many payments under way. */
export function tooMany(): PaymentDeclined {
  const message = "this payer has too many payments under way";
  return declined(
    apiFault("rate_limited", message, { retryAfterMs: LIMIT_RETRY_MS }),
    null,
    "internal-payment-error",
  );
}

/** The payment or its offer belongs to another request; null = that purchase is not named. */
export function conflict(message: string, purchaseId: string | null): PaymentDeclined {
  return declined(apiFault("payment_conflict", message), purchaseId, "invalid-challenge");
}

/** The state of a recorded payment that has bought nothing. */
export function purchaseRefusal(row: PurchaseRow): PaymentDeclined {
  switch (row.state) {
    case "accepted":
    case "submitted":
      return about(row, "payment_pending", "the payment is recorded and has not settled yet", {
        retryAfterMs: PENDING_RETRY_MS,
      });
    case "failed":
      return about(
        row,
        "payment_failed",
        `the payment was not carried out: ${row.reason ?? "its chain refused it"}`,
      );
    case "settled":
      return about(
        row,
        "beneficiary_conflict",
        "the money has arrived, and what it was for is gone: it is held",
      );
  }
}

/** The payment has settled, and its result cannot be read. */
export function unreadable(row: PurchaseRow): PaymentDeclined {
  const details = {
    nextAction:
      "do not pay again; report the purchase via feedback, and repeat the same request later",
    retryAfterMs: LIMIT_RETRY_MS,
  };
  return about(
    row,
    "unavailable",
    "the payment has settled, and what it gave cannot be shown right now",
    details,
  );
}

function about(
  row: PurchaseRow,
  code: Code,
  message: string,
  details: ApiFaultDetails = {},
): PaymentDeclined {
  return declined(
    apiFault(code, message, details),
    row.id,
    code === "payment_failed" ? "verification-failed" : "internal-payment-error",
  );
}

function declined(
  fault: ApiFault<Code>,
  purchaseId: string | null,
  problem: ProblemCode | string,
): PaymentDeclined {
  return { kind: "declined", fault, purchaseId, problem };
}
