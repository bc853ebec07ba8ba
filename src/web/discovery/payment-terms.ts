// The payment facts in documents: the rails, what is sold, and prices. Contains no secret; knows no
// document.
import { type PurposeKind, unitsOf } from "../../core/billing/payment.ts";
import { usdText } from "../../core/billing/price.ts";
import type { RailTerms } from "../../payments/rails/rail-kind.ts";
import { type PaymentSettings, railTerms } from "../../payments/rails/rails.ts";

type Json = Readonly<Record<string, unknown>>;

/** What is sold and how it is paid for. */
export interface PaymentTerms {
  readonly rails: readonly RailTerms[];
  /** The range of one purchase, in nano-USD. */
  readonly minN: bigint;
  readonly maxN: bigint;
  readonly customDayN: bigint;
  readonly maxCustomDays: number;
}

/** Reads the terms from settings. */
export function termsOf({
  rails,
  minN,
  maxN,
  customDayN,
  maxCustomDays,
}: PaymentSettings): PaymentTerms {
  return { rails: rails.map(railTerms), minN, maxN, customDayN, maxCustomDays };
}

/** Whether pay-per-call is available. */
export function sellsCalls(terms: PaymentTerms | null): boolean {
  return terms?.rails.some((rail) => rail.intent === "session") ?? false;
}

/** Declared minimum price of a call in base units; the challenge contains the exact price. */
const CALL_UNITS = 100n;

/**
 * `x-payment-info` for what a payment buys; null = nothing can be bought. Amounts are minimums, in
 * base units of the token.
 */
export function paymentInfo(terms: PaymentTerms | null, buys: PurposeKind | "call"): Json | null {
  if (terms === null) return null;
  const units =
    buys === "call"
      ? CALL_UNITS
      : unitsOf(buys === "custom_access" ? terms.customDayN : terms.minN);
  const description = DESCRIPTIONS[buys];
  const offers = terms.rails
    .filter((rail) => (rail.intent === "session") === (buys === "call"))
    .map(({ method, intent, token }) => ({
      amount: String(units),
      currency: token,
      description,
      intent,
      method,
    }));
  const [only] = offers;
  if (only === undefined) return null;
  return offers.length === 1 ? only : { offers };
}

const DESCRIPTIONS: Readonly<Record<PurposeKind | "call", string>> = {
  fund_key: "Funds the key. The least: `amount_usd` of the body says how much.",
  create_key:
    "A key with this much, where the body has `initial_fund_usd`. The least: that field says " +
    "how much.",
  credit_account: "Credits the account. The least: `usd` of the body says how much.",
  custom_access: "A day of Custom access: `days` of the body says how many.",
  call: "One call. The challenge says what its method costs.",
};

/** The `payments` field of `/agent.json`. */
export function paymentsJson(terms: PaymentTerms | null, baseUrl: string): Json {
  if (terms === null) return { enabled: false, rails: [] };
  return {
    enabled: true,
    rails: terms.rails.map(railJson),
    purchase_usd: { min: usdText(terms.minN), max: usdText(terms.maxN) },
    custom_access: {
      usd_per_day: usdText(terms.customDayN),
      days: { min: 1, max: terms.maxCustomDays },
    },
    carried_in: ["Authorization: Payment", "Payment-Authorization", "PAYMENT-SIGNATURE"],
    unit: "base units of a token with six decimals: 1000000 = 1 USD",
    status_url: `${baseUrl}/api/v1/purchases/{id}`,
    calls: {
      keyed:
        "402 balance_exhausted on /rpc/k/{key}/… carries an offer to fund the key; the same " +
        "request with the payment is credited and served",
      session: sellsCalls(terms) ? `${baseUrl}/rpc/session/{strategy}/{chain}` : null,
      websocket: "takes no payment: fund the key over HTTP",
    },
  };
}

function railJson({
  kind,
  offers,
  chainId,
  token,
  tokenName,
  tokenVersion,
  recipient,
  local,
  rpcUrl,
  depositN,
  localNote,
}: RailTerms): Json {
  const named = tokenName === "" ? {} : { token_name: tokenName, token_version: tokenVersion };
  const deposit = depositN === null ? {} : { suggested_deposit_usd: usdText(depositN) };
  const rail = {
    kind,
    offers,
    network: `eip155:${chainId}`,
    chain_id: chainId,
    token,
    ...named,
    recipient,
    ...deposit,
    local,
  };
  if (!local) return rail;
  return localNote === null
    ? { ...rail, rpc_url: rpcUrl, note: WORTHLESS }
    : { ...rail, rpc_url: rpcUrl, note: `${WORTHLESS} ${localNote}`, stand_in: true };
}

const WORTHLESS = "A development chain of this instance: its money is worth nothing.";
