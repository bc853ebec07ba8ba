// Computes the price of an order, from a requested amount or from a number of days, and refuses
// orders outside the range of one purchase.

import { unitsOf } from "../../../core/billing/payment.ts";
import { parseUsd, usdText } from "../../../core/billing/price.ts";
import { type ApiFault, apiFault } from "../../../core/faults/api-fault.ts";
import type { PaymentRange, Payments } from "../../../payments/payments.ts";

type Selling = Pick<Payments, "range"> | null;

/** The amount in the field `field` as nano-USD, or why it cannot be bought. */
export function orderedN(
  payments: Selling,
  field: string,
  usd: string,
): bigint | ApiFault<"invalid_field" | "amount_out_of_range"> {
  const { minN, maxN } = rangeOf(payments);
  const amountN = parseUsd(usd);
  if (amountN === null || unitsOf(amountN) === null)
    return apiFault("invalid_field", `invalid value: ${field}`, {
      details: [field],
      nextAction: `${field}: US dollars with at most six places, like 0.10`,
    });
  if (amountN >= minN && amountN <= maxN) return amountN;
  return apiFault("amount_out_of_range", "the amount is outside of what one purchase may have", {
    details: [field],
    nextAction: `${field}: from ${usdText(minN)} to ${usdText(maxN)}`,
  });
}

/** The price of days of Custom access in nano-USD, or why so many cannot be bought. */
export function daysN(payments: Selling, days: number): bigint | ApiFault<"amount_out_of_range"> {
  const { customDayN, maxCustomDays } = rangeOf(payments);
  if (days >= 1 && days <= maxCustomDays) return customDayN * BigInt(days);
  return apiFault("amount_out_of_range", "the days are outside of what one purchase may have", {
    details: ["days"],
    nextAction: `days: from 1 to ${maxCustomDays}`,
  });
}

function rangeOf(payments: Selling): PaymentRange {
  if (payments === null) throw new Error("something was ordered where payments are not taken");
  return payments.range;
}
