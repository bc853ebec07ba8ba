// Payments that are opened at their first use: once, again after a failure, and not to answer what
// the service asks of them all the time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fault } from "../../src/core/faults/rpc-fault.ts";
import { holdsPayments, paymentsOnDemand, sessionsOnDemand } from "../../src/payments/on-demand.ts";
import type { Order, PaymentRange, Payments } from "../../src/payments/payments.ts";
import type { Sessions } from "../../src/payments/session/sessions.ts";
import { openStore } from "../../src/shared/store/store.ts";
import { failedPurchase } from "../fakes/purchase-row.ts";
import { newPlace } from "../fakes/stores.ts";
import { createAccount } from "../hosted/accounts/account-fixture.ts";

const RANGE: PaymentRange = { minN: 1n, maxN: 9n, customDayN: 2n, maxCustomDays: 3 };
const ORDER: Order = {
  purpose: { kind: "create_key", name: "" },
  amountN: 1_000n,
  request: { fingerprint: "f", digest: "d", resourceUrl: "u" },
  description: "a key",
  keepsAuthorization: false,
};
const CHALLENGE = { headers: ["WWW-Authenticate", "Payment"] };

test("on demand: nothing is opened for what the service reads all the time", async () => {
  let opened = 0;
  const payments = paymentsOnDemand(RANGE, async () => {
    opened++;
    return fakePayments();
  });
  const sessions = sessionsOnDemand(async () => {
    opened++;
    return fakeSessions();
  });
  assert.deepEqual(payments.range, RANGE);
  assert.deepEqual(payments.gauges(), { accepted: 0, submitted: 0, held: 0, wallets: [] });
  assert.deepEqual(sessions.gauges(), { channels: 0, held: 0, chainDown: false, walletLow: false });
  await Promise.all([payments.close(), sessions.close()]);
  assert.equal(opened, 0);
  await assert.rejects(payments.challenge(ORDER), /ending/);
  assert.equal(opened, 0, "an ended service opens nothing");
});

test("on demand: the first use opens once, whoever else comes meanwhile, and close ends it", async () => {
  let opened = 0;
  let closed = 0;
  const payments = paymentsOnDemand(RANGE, async () => {
    opened++;
    return { ...fakePayments(), close: async () => void closed++ };
  });
  const both = [payments.challenge(ORDER), payments.challenge(ORDER)];
  assert.deepEqual(await Promise.all(both), [CHALLENGE, CHALLENGE]);
  assert.equal(payments.gauges().accepted, 7);
  assert.equal(await payments.purchase("pur_1"), null);
  await payments.close();
  assert.deepEqual([opened, closed], [1, 1]);
});

test("on demand: what failed to open is opened at the next use", async () => {
  let tries = 0;
  const sessions = sessionsOnDemand(async () => {
    if (++tries === 1) throw new Error("the store is down");
    return fakeSessions();
  });
  await assert.rejects(sessions.challenge(null, null), /the store is down/);
  assert.equal((await sessions.challenge(null, null)).kind, "refusal");
  assert.equal(tries, 2);
  assert.equal(sessions.gauges().channels, 5);
});

test("on demand: a look at the wallets opens payments, and the next look shows them", async () => {
  const payments = paymentsOnDemand(RANGE, async () => fakePayments());
  assert.deepEqual(payments.wallets(), []);
  await payments.challenge(ORDER);
  assert.equal(payments.wallets().length, 1);
});

test("on demand: a store with a purchase or a channel has payments to continue", async (t) => {
  const { place, remove } = await newPlace("sqlite");
  t.after(remove);
  const store = await openStore(place);
  t.after(() => store.close());
  assert.equal(await holdsPayments(store), false);
  await createAccount(store, "acc_1");
  await store.db.insertInto("purchase").values(failedPurchase("pur_1", "acc_1")).execute();
  assert.equal(await holdsPayments(store), true);
});

function fakePayments(): Payments {
  return {
    range: RANGE,
    challenge: async () => CHALLENGE,
    take: () => Promise.reject(new Error("takes nothing")),
    purchase: async () => null,
    gauges: () => ({ accepted: 7, submitted: 0, held: 0, wallets: [] }),
    wallets: () => [{ rail: "evm", chainId: 1, recipient: "0x1", token: "0x2", wallet: null }],
    close: async () => {},
  };
}

function fakeSessions(): Sessions {
  const refusal = {
    kind: "refusal",
    fault: fault("payment_required", "pay"),
    headers: [],
  } as const;
  return {
    challenge: async () => ({ ...refusal, isWrong: false }),
    take: async () => ({ ...refusal, isWrong: false }),
    gauges: () => ({ channels: 5, held: 0, chainDown: false, walletLow: false }),
    close: async () => {},
  };
}
