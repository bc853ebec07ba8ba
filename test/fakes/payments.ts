// Payments that happen at once and on no chain: the port with what it promises, over any store. A
// payment says itself what becomes of it.
import assert from "node:assert/strict";
import type { Invalidations } from "../../src/core/billing/invalidations.ts";
import type { PurchaseState } from "../../src/core/billing/payment.ts";
import { unitsOf } from "../../src/core/billing/payment.ts";
import { apiFault } from "../../src/core/faults/api-fault.ts";
import { createAnonymousKey } from "../../src/hosted/keys/create.ts";
import { grantCustomAccess } from "../../src/hosted/profiles/custom-access.ts";
import type {
  Fulfilment,
  Order,
  PaidPurchase,
  PaymentDeclined,
  PaymentHeaders,
  PaymentRange,
  Payments,
  PurchaseView,
  RequestMark,
} from "../../src/payments/payments.ts";
import { newId } from "../../src/secrets/secret.ts";
import { post } from "../../src/shared/ledger/ledger.ts";
import type { Store } from "../../src/shared/store/store.ts";

/** Payments whose fate the test decides. */
export interface FakePayments extends Payments {
  /** What was asked to be offered and what was ordered by payments, in turn. */
  readonly offered: readonly Order[];
  readonly ordered: readonly Order[];
  /** Payments as they were handed over. */
  readonly given: readonly PaymentHeaders[];
  /** True = nothing can be offered. */
  closed: boolean;
  /** Takes the secret out of what was bought, as happens some days later. */
  forget(): void;
}

/** What becomes of a payment, by how its text begins. */
export type Fate = "good" | "bad" | "pending" | "failed" | "gone" | "down" | "busy";

/** What one purchase may cost here. */
const RANGE: PaymentRange = {
  minN: 100_000_000n,
  maxN: 100_000_000_000n,
  customDayN: 1_300_000_000n,
  maxCustomDays: 30,
};

/** What the fake works with. */
export interface FakePaymentParts {
  readonly store: Store;
  readonly changes: Invalidations;
  readonly wallMs: () => number;
}

interface Seen {
  readonly fingerprint: string;
  readonly purchase: PurchaseView;
  fulfilment: Fulfilment | null;
}

/** Payments over a store. */
export function fakePayments({ store, changes, wallMs }: FakePaymentParts): FakePayments {
  const offered: Order[] = [];
  const ordered: Order[] = [];
  const given: PaymentHeaders[] = [];
  const seen = new Map<string, Seen>();

  async function fulfil({ purpose, amountN }: Order, id: string): Promise<Fulfilment> {
    const atMs = wallMs();
    switch (purpose.kind) {
      case "create_key": {
        const made = await createAnonymousKey(store, { name: purpose.name, grantN: 0n }, atMs);
        await credit(made.accountId, amountN, id);
        return { ...made, kind: "create_key", keyId: made.id, balanceN: amountN };
      }
      case "custom_access": {
        const given = await grantCustomAccess(
          store,
          { accountId: purpose.accountId, days: purpose.days, source: `purchase:${id}` },
          atMs,
        );
        assert.equal(given.kind, "custom_time");
        await changes.account(purpose.accountId);
        return { ...purpose, ...given, kind: "custom_access" };
      }
      case "fund_key":
      case "credit_account": {
        await credit(purpose.accountId, amountN, id);
        const row = await store.db
          .selectFrom("account")
          .select(["balance_n", "funded_n"])
          .where("id", "=", purpose.accountId)
          .executeTakeFirstOrThrow();
        return {
          kind: purpose.kind,
          accountId: purpose.accountId,
          balanceN: row.balance_n,
          fundedN: row.funded_n,
        };
      }
    }
  }

  async function credit(accountId: string, amountN: bigint, id: string): Promise<void> {
    await store.transaction((tx) =>
      post(tx, { kind: "payment", idemKey: `purchase:${id}`, accountId, amountN, atMs: wallMs() }),
    );
    await changes.account(accountId);
  }

  function purchaseOf(order: Order, fate: Fate): PurchaseView {
    const atMs = wallMs();
    const state: PurchaseState =
      fate === "pending" ? "submitted" : fate === "failed" ? "failed" : "settled";
    return {
      id: newId("pur", atMs),
      state,
      purpose: order.purpose,
      amountN: order.amountN,
      rail: "tempo",
      protocol: "mpp",
      chainId: 1337,
      payer: `0x${"aa".repeat(20)}`,
      txHash: `0x${"bb".repeat(32)}`,
      reason: fate === "failed" ? "the transaction was reverted" : null,
      createdAtMs: atMs,
      endedAtMs: state === "submitted" ? null : atMs,
    };
  }

  function answerOf(
    { purchase, fulfilment }: Seen,
    repeated: boolean,
  ): PaidPurchase | PaymentDeclined {
    if (fulfilment !== null)
      return {
        kind: "paid",
        purchase,
        fulfilment,
        repeated,
        headers: ["Payment-Receipt", receiptText(purchase.id)],
      };
    const code =
      purchase.state === "submitted"
        ? "payment_pending"
        : purchase.state === "failed"
          ? "payment_failed"
          : "beneficiary_conflict";
    return {
      kind: "declined",
      fault: apiFault(code, `the payment is ${purchase.state}`, {}),
      purchaseId: purchase.id,
      problem: code,
    };
  }

  async function take<F>(
    headers: PaymentHeaders,
    request: RequestMark,
    order: () => Promise<Order | F>,
  ): Promise<PaidPurchase | PaymentDeclined | F> {
    given.push(headers);
    const text = headers.text.replace(/^Payment /, "");
    const known = seen.get(text);
    if (known !== undefined)
      return known.fingerprint === request.fingerprint
        ? answerOf(known, true)
        : {
            kind: "declined",
            fault: apiFault("payment_conflict", "this payment came with another request"),
            purchaseId: known.purchase.id,
            problem: "",
          };
    const fate = FATES.find((it) => text.startsWith(it)) ?? "bad";
    if (fate === "bad") return unrecorded("payment_invalid", "verification-failed");
    const wanted = await order();
    if (!isOrder(wanted)) return wanted;
    ordered.push(wanted);
    if (fate === "down") return unrecorded("unavailable", "internal-payment-error");
    if (fate === "busy") return unrecorded("rate_limited", "internal-payment-error");
    const purchase = purchaseOf(wanted, fate);
    const now: Seen = {
      fingerprint: request.fingerprint,
      purchase,
      fulfilment: fate === "good" ? await fulfil(wanted, purchase.id) : null,
    };
    seen.set(text, now);
    return answerOf(now, false);
  }

  const it: FakePayments = {
    range: RANGE,
    offered,
    ordered,
    given,
    closed: false,
    async challenge(order) {
      assert.notEqual(unitsOf(order.amountN), null);
      offered.push(order);
      if (it.closed) return null;
      const header = order.keepsAuthorization ? ', header="Payment-Authorization"' : "";
      const mpp =
        `Payment id="c${offered.length}", realm="test", method="tempo", intent="charge", ` +
        `request="e30"${header}`;
      return {
        headers: [
          "WWW-Authenticate",
          mpp,
          "WWW-Authenticate",
          mpp.replace("tempo", "evm"),
          "PAYMENT-REQUIRED",
          "e30=",
        ],
      };
    },
    take,
    purchase: async (id) =>
      [...seen.values()].find(({ purchase }) => purchase.id === id)?.purchase ?? null,
    wallets: () => [],
    gauges: () => ({ accepted: 0, submitted: 0, held: 0, wallets: [] }),
    forget() {
      for (const one of seen.values())
        if (one.fulfilment?.kind === "create_key")
          one.fulfilment = { ...one.fulfilment, secret: "" };
    },
    close: async () => undefined,
  };
  return it;
}

const FATES: readonly Fate[] = ["good", "bad", "pending", "failed", "gone", "down", "busy"];

/** The receipt of a purchase. */
function receiptText(purchaseId: string): string {
  return Buffer.from(JSON.stringify({ status: "success", externalId: purchaseId })).toString(
    "base64url",
  );
}

function unrecorded(
  code: "payment_invalid" | "unavailable" | "rate_limited",
  problem: string,
): PaymentDeclined {
  return {
    kind: "declined",
    fault: apiFault(code, "the payment could not be taken"),
    purchaseId: null,
    problem,
  };
}

function isOrder<F>(it: Order | F): it is Order {
  return typeof it === "object" && it !== null && "purpose" in it;
}
