// Handlers of paid operations: the order of each, the answer after its payment has settled, and the
// state of a purchase. Knows no payment protocol and no header.
import type { z } from "zod";
import { unitsOf } from "../../../core/billing/payment.ts";
import { cuFor, parseUsd, usdText } from "../../../core/billing/price.ts";
import { type ApiFault, apiFault } from "../../../core/faults/api-fault.ts";
import { accountById, mergedInto } from "../../../hosted/accounts/accounts.ts";
import { keyById } from "../../../hosted/keys/keys.ts";
import { isSubscribed } from "../../../hosted/profiles/custom-access.ts";
import type {
  PaidPurchase,
  PaymentRange,
  Payments,
  PurchaseView,
} from "../../../payments/payments.ts";
import { purchasesOfAccount } from "../../../payments/purchase/all-purchases.ts";
import { prefixOf } from "../../../secrets/secret.ts";
import type { ApiCaller } from "../../contract/operation.ts";
import type { PAYMENT_OPERATIONS, purchase as shape } from "../../contract/payments.ts";
import type { HandlerParts, StoreHandlers } from "../parts.ts";
import { balanceView, instant, instantOrNull, ok } from "./views.ts";

type AgentCaller = Extract<ApiCaller, { readonly kind: "agent" }>;

/** The handlers of paid operations and purchases. */
export const PURCHASE_HANDLERS: StoreHandlers<keyof typeof PAYMENT_OPERATIONS> = {
  fundAgentKey: {
    instead: "create another key with POST /api/v1/agent/keys, or try again later",
    order({ body, caller }, { payments }) {
      const amountN = orderedN(payments, "amount_usd", body.amount_usd);
      if (typeof amountN !== "bigint") return amountN;
      const { accountId, id, prefix } = caller.key;
      return {
        purpose: { kind: "fund_key", accountId, keyId: id },
        amountN,
        description: `${usdText(amountN)} USD for the key ${prefix}...`,
      };
    },
    answer(paid, { params }, { settings }) {
      const { amountN } = paid.purchase;
      return ok({
        key_prefix: prefixOf(params.key),
        ...balanceView(creditedN(paid), settings.tariff),
        funded_cu: cuFor(settings.tariff, amountN),
        funded_usd: usdText(amountN),
        ...paidFor(paid),
      });
    },
  },
  buyCredit: {
    instead: "ask the operator of the instance for credit, or try again later",
    async order({ body, params, caller }, parts) {
      const why = await accountFault(parts, caller, params.id);
      if (why !== null) return why;
      const amountN = orderedN(parts.payments, "usd", body.usd);
      if (typeof amountN !== "bigint") return amountN;
      return {
        purpose: { kind: "credit_account", accountId: params.id },
        amountN,
        description: `${usdText(amountN)} USD for the account ${params.id}`,
      };
    },
    answer: (paid) =>
      ok({
        credited_usd: usdText(paid.purchase.amountN),
        balance_usd: usdText(creditedN(paid)),
        ...paidFor(paid),
      }),
  },
  buyCustomAccess: {
    instead: "ask the operator of the instance for Custom access, or try again later",
    async order({ body, params, caller }, parts) {
      const { store, runtime, payments } = parts;
      const why = await accountFault(parts, caller, params.id);
      if (why !== null) return why;
      const key = await keyById(store.db, body.key_id, caller.agent, runtime.wallMs());
      if (key === null)
        return apiFault("not_found", "no key of the account has the id in key_id", {
          nextAction: "GET /api/v1/keys lists the keys with their ids",
        });
      if (key.revokedAtMs !== null)
        return apiFault("key_revoked", "the key in key_id has been deleted");
      if (await isSubscribed(store.db, params.id, runtime.wallMs()))
        return apiFault("already_subscribed", "the account has Custom access that covers today");
      const amountN = daysN(payments, body.days);
      if (typeof amountN !== "bigint") return amountN;
      const { days, key_id: keyId } = body;
      return {
        purpose: { kind: "custom_access", accountId: params.id, keyId, days },
        amountN,
        description: `${days} days of Custom access for the account ${params.id}`,
      };
    },
    async answer(paid, _, { store, runtime }) {
      const { fulfilment } = paid;
      if (fulfilment.kind !== "custom_access") throw otherThanAsked(paid);
      const account = await accountById(store, fulfilment.accountId, runtime.wallMs());
      return ok({
        days: fulfilment.days,
        from: instant(fulfilment.fromMs),
        until: instant(fulfilment.untilMs),
        balance_usd: usdText(account?.balanceN ?? 0n),
        ...paidFor(paid),
      });
    },
  },
  async listPurchases({ query, caller }, { store }) {
    const { purchases, next } = await purchasesOfAccount(store.db, caller.agent.accountId, query);
    return ok({ purchases: purchases.map(purchaseBody), next });
  },
  async getPurchase({ params, caller }, { payments, store }) {
    const purchase = payments === null ? null : await payments.purchase(params.id);
    if (purchase === null) return NO_PURCHASE;
    if (caller.kind !== "agent") return ok(publicPurchaseBody(purchase));
    const accountId = accountOf(purchase) ?? (await createdAccount(store, purchase.id));
    const own = caller.agent.accountId;
    if (accountId !== null && [accountId, await mergedInto(store.db, accountId)].includes(own))
      return ok(purchaseBody(purchase));
    // A key created by a payment belongs to no account with tokens until it is claimed, so its
    // payer reads the purchase without one.
    return purchase.purpose.kind === "create_key" ? ok(publicPurchaseBody(purchase)) : NO_PURCHASE;
  },
};

const NO_PURCHASE = apiFault("not_found", "no purchase has this id", {
  nextAction: "use the id of the answer, or its status_url as it stands",
});

/** The account of the key that a purchase created; null = none was created. */
async function createdAccount(
  { db }: HandlerParts["store"],
  purchaseId: string,
): Promise<string | null> {
  const row = await db
    .selectFrom("ledger_tx")
    .innerJoin("ledger_entry", "ledger_entry.tx_id", "ledger_tx.id")
    .select("ledger_entry.account_id")
    .where("ledger_tx.idem_key", "=", `purchase:${purchaseId}`)
    .where("ledger_entry.book", "=", "account")
    .executeTakeFirst();
  return row?.account_id ?? null;
}

/** Why a token may not buy for an account; null = it may. */
async function accountFault(
  { store }: HandlerParts,
  { agent }: AgentCaller,
  accountId: string,
): Promise<ApiFault<"not_found" | "already_claimed"> | null> {
  if (agent.accountId !== accountId)
    return apiFault("not_found", "the account of the token has another id", {
      nextAction: "GET /api/v1/accounts/current tells the id",
    });
  return (await mergedInto(store.db, accountId)) == null
    ? null
    : apiFault(
        "already_claimed",
        "the account has become part of another one, and has nothing of its own any more",
      );
}

function accountOf({ purpose }: PurchaseView): string | null {
  return purpose.kind === "create_key" ? null : purpose.accountId;
}

function creditedN(paid: PaidPurchase): bigint {
  const { fulfilment } = paid;
  if (fulfilment.kind === "custom_access") throw otherThanAsked(paid);
  return fulfilment.balanceN;
}

/** Unreachable: a payment is bound to the request that carried it. */
export function otherThanAsked({ purchase }: PaidPurchase): Error {
  return new Error(`purchase ${purchase.id} bought something else than was asked for`);
}

/** The payment of what was bought. */
function paidFor({ purchase }: PaidPurchase) {
  const receipt = { ...paymentView(purchase), settled_at: instantOrNull(purchase.endedAtMs) };
  return { purchase_id: purchase.id, receipt };
}

function paymentView({ protocol, rail, chainId, txHash, payer, amountN }: PurchaseView) {
  return {
    ...{ protocol, rail, payer },
    chain_id: chainId,
    tx_hash: txHash,
    amount_usd: usdText(amountN),
  };
}

const ON_CHAIN = /0x[0-9a-fA-F]{40,}/g;

/** The part of a purchase that is public to holders of its id. */
function publicPurchaseBody({ state, reason }: PurchaseView): z.output<typeof shape> {
  return { state, reason: reason === null ? null : reason.replace(ON_CHAIN, "0x…") };
}

export function purchaseBody(purchase: PurchaseView): z.output<typeof shape> {
  const { purpose } = purchase;
  return {
    id: purchase.id,
    state: purchase.state,
    buys: purpose.kind,
    account_id: accountOf(purchase),
    key_id: "keyId" in purpose ? purpose.keyId : null,
    days: purpose.kind === "custom_access" ? purpose.days : null,
    ...paymentView(purchase),
    reason: purchase.reason,
    created_at: instant(purchase.createdAtMs),
    ended_at: instantOrNull(purchase.endedAtMs),
  };
}

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
function daysN(payments: Selling, days: number): bigint | ApiFault<"amount_out_of_range"> {
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
