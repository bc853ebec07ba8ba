// What is sent for purchases, on both engines: written down before it is sent, one nonce for each,
// none left out, raised where it pays too little, and sent anew where its nonce was lost.
import assert from "node:assert/strict";
import { test } from "node:test";
import { audit } from "../../../src/hosted/audit/audit.ts";
import type { Rail } from "../../../src/payments/rails/rail.ts";
import type { Store } from "../../../src/shared/store/store.ts";
import { eachStore } from "../../fakes/stores.ts";
import { createAccount } from "../../hosted/accounts/account-fixture.ts";
import { authorizationRail, type FakeRailParts } from "../fake-rail.ts";
import {
  bring,
  insist,
  type Life,
  offersFor,
  type PaymentFixture,
  paymentFixture,
  sign,
  type Wish,
  wordOf,
} from "../payment-fixture.ts";

const UNITS = 1_000_000n;
const WISH: Wish = {
  purpose: { kind: "credit_account", accountId: "acc_a" },
  units: UNITS,
  request: "buy",
};

eachStore(({ engine, open }) => {
  test(`what is sent was written down before, with its state (${engine})`, async (t) => {
    const fixture = await opened(await open(t));
    const sent: string[] = [];
    const rails = (parts: FakeRailParts): readonly Rail[] => {
      const rail = authorizationRail(parts);
      return [
        {
          ...rail,
          async send(submission) {
            sent.push(await stateOf(fixture.store, submission.txHash));
            await rail.send(submission);
          },
        },
      ];
    };
    const life = await fixture.start({ rails });
    assert.equal(wordOf(await fixture.run(pay(fixture, life, "0xa"))), "paid");
    assert.deepEqual(sent, ["submitted"]);
  });

  test(
    "many purchases at once, at two instances: each has a nonce of its own, and none is left out " +
      `(${engine})`,
    async (t) => {
      const fixture = await opened(await open(t));
      const lives = [await fixture.start({ node: "a" }), await fixture.start({ node: "b" })];
      const payers = Array.from({ length: 12 }, (_, index) => `0xp${index}`);
      for (const payer of payers) fixture.chain.fund(payer, UNITS);
      await fixture.run(
        Promise.all(payers.map((payer, index) => pay(fixture, lives[index % 2] ?? never(), payer))),
      );
      for (
        let passes = 0;
        passes < 60 && fixture.chain.received() < UNITS * BigInt(payers.length);
        passes++
      )
        await fixture.pass(2_000);
      await fixture.pass(20_000);
      const nonces = (
        await fixture.store.db.selectFrom("purchase_submission").select("nonce").execute()
      ).map(({ nonce }) => Number(nonce));
      assert.deepEqual(
        nonces.sort((a, b) => a - b),
        payers.map((_, index) => index),
      );
      assert.equal(fixture.chain.received(), UNITS * BigInt(payers.length));
      assert.deepEqual(await audit(fixture.store), []);
    },
  );

  test(
    "somebody else carried the payment out and our transaction was lost: its nonce is used all " +
      `the same (${engine})`,
    async (t) => {
      const fixture = await opened(await open(t));
      const life = await fixture.start({ waitMs: 60 });
      fixture.chain.perBlock = 0;
      const offers = await fixture.run(offersFor(life, WISH));
      const given = sign(fixture, offers, { how: "mpp", from: "0xa", units: UNITS });
      assert.equal(wordOf(await fixture.run(bring(life, given, WISH))), "payment_pending");
      fixture.chain.forgetPool();
      fixture.chain.perBlock = 1;
      fixture.chain.send({
        kind: "stranger",
        authorization: JSON.parse(given.text).payload.authorization,
        salt: 1,
      });
      await fixture.pass(40_000);
      assert.equal(wordOf(await insist(fixture, life, { given, wish: WISH })), "paid");
      for (let passes = 0; passes < 60 && fixture.chain.at(0).state.walletNonce < 1n; passes++)
        await fixture.pass(5_000);
      assert.equal(fixture.chain.at(0).state.walletNonce, 1n);
      assert.equal(fixture.chain.received(), UNITS);
      assert.equal(wordOf(await fixture.run(pay(fixture, await fixture.start(), "0xa"))), "paid");
      assert.equal(fixture.chain.at(0).state.walletNonce, 2n);
    },
  );

  test(
    "what pays too little is replaced under the same nonce, also when its purchase has ended " +
      `(${engine})`,
    async (t) => {
      const fixture = await opened(await open(t));
      const life = await fixture.start({ waitMs: 60 });
      fixture.chain.perBlock = 0;
      const given = sign(fixture, await fixture.run(offersFor(life, WISH)), {
        how: "mpp",
        from: "0xa",
        units: UNITS,
        validMs: 300_000,
      });
      assert.equal(wordOf(await fixture.run(bring(life, given, WISH))), "payment_pending");
      fixture.chain.baseFee = 12;
      fixture.chain.perBlock = 100;
      await fixture.pass(20_000);
      assert.equal(wordOf(await insist(fixture, life, { given, wish: WISH })), "paid");
      const sent = await fixture.store.db
        .selectFrom("purchase_submission")
        .select(["position", "nonce"])
        .orderBy("position")
        .execute();
      assert.ok(sent.length > 1);
      assert.ok(sent.every(({ nonce }) => nonce === 0n));
      // Carried out by somebody else; what is left of it has to leave the way free.
      const other = sign(fixture, await fixture.run(offersFor(life, WISH)), {
        how: "mpp",
        from: "0xa",
        units: UNITS,
        validMs: 300_000,
      });
      assert.equal(wordOf(await fixture.run(bring(life, other, WISH))), "payment_pending");
      fixture.chain.baseFee = 20;
      fixture.chain.send({
        kind: "stranger",
        authorization: JSON.parse(other.text).payload.authorization,
        salt: 1,
      });
      await fixture.pass(5_000);
      assert.equal(wordOf(await insist(fixture, life, { given: other, wish: WISH })), "paid");
      for (let passes = 0; passes < 60 && fixture.chain.at(0).state.walletNonce < 2n; passes++)
        await fixture.pass(10_000);
      assert.equal(fixture.chain.at(0).state.walletNonce, 2n);
      assert.equal(fixture.chain.received(), 2n * UNITS);
      assert.deepEqual(await audit(fixture.store), []);
    },
  );

  test(
    "a nonce that something else used up: the payment is sent anew, with the chain's next one " +
      `(${engine})`,
    async (t) => {
      const fixture = await opened(await open(t));
      const life = await fixture.start({ waitMs: 60 });
      fixture.chain.perBlock = 0;
      const given = sign(fixture, await fixture.run(offersFor(life, WISH)), {
        how: "mpp",
        from: "0xa",
        units: UNITS,
      });
      assert.equal(wordOf(await fixture.run(bring(life, given, WISH))), "payment_pending");
      const foreign = { from: "0xnobody", nonce: "n", units: "5", validBeforeMs: 0 };
      for (const nonce of ["0", "1"])
        fixture.chain.send({ kind: "wallet", nonce, fee: 1_000, authorization: foreign });
      fixture.chain.perBlock = 100;
      await fixture.pass(30_000);
      assert.equal(wordOf(await insist(fixture, life, { given, wish: WISH })), "paid");
      const nonces = await fixture.store.db
        .selectFrom("purchase_submission")
        .select("nonce")
        .orderBy("position")
        .execute();
      assert.deepEqual(
        nonces.map(({ nonce }) => nonce),
        [0n, 2n],
      );
      assert.equal(fixture.chain.received(), UNITS);
    },
  );

  test(
    "a chain that goes back further than it should: what it has lost is sent again, and nothing " +
      `waits for ever (${engine})`,
    async (t) => {
      const fixture = await opened(await open(t));
      const life = await fixture.start();
      const wish = WISH;
      const first = sign(fixture, await fixture.run(offersFor(life, wish)), {
        how: "mpp",
        from: "0xa",
        units: UNITS,
        validMs: 900_000,
      });
      assert.equal(wordOf(await insist(fixture, life, { given: first, wish })), "paid");
      await fixture.pass(20_000);
      fixture.chain.reorg(fixture.chain.head - 1, true);
      assert.equal(fixture.chain.received(), 0n);
      for (let passes = 0; passes < 60 && fixture.chain.received() < UNITS; passes++)
        await fixture.pass(5_000);
      assert.equal(fixture.chain.received(), UNITS);
      const second = sign(fixture, await fixture.run(offersFor(life, wish)), {
        how: "mpp",
        from: "0xa",
        units: UNITS,
        validMs: 900_000,
      });
      assert.equal(wordOf(await insist(fixture, life, { given: second, wish })), "paid");
      assert.equal(fixture.chain.received(), 2n * UNITS);
      assert.deepEqual(await audit(fixture.store), []);
    },
  );

  test(
    "a row that fails does not hold up the others, and one lease keeps two instances apart " +
      `(${engine})`,
    async (t) => {
      const fixture = await opened(await open(t));
      fixture.chain.fund("0xb", UNITS);
      const asked: string[] = [];
      const rails =
        (node: string) =>
        (parts: FakeRailParts): readonly Rail[] => {
          const rail = authorizationRail(parts);
          return [
            {
              ...rail,
              async look(purchase) {
                asked.push(`${node} ${purchase.payment.payer}`);
                if (purchase.payment.payer === "0xbad")
                  throw new TypeError("a fault of the rail, with https://key@node in it");
                return rail.look(purchase);
              },
            },
          ];
        };
      const life = await fixture.start({ waitMs: 60, rails: rails("a"), node: "a" });
      fixture.chain.fund("0xbad", UNITS);
      assert.equal(wordOf(await fixture.run(pay(fixture, life, "0xbad"))), "payment_pending");
      assert.equal(wordOf(await fixture.run(pay(fixture, life, "0xb"))), "payment_pending");
      await fixture.start({ rails: rails("b"), node: "b" });
      asked.length = 0;
      for (let passes = 0; passes < 60 && fixture.chain.received() < UNITS; passes++)
        await fixture.pass(1_000);
      assert.equal(fixture.chain.received(), UNITS);
      asked.length = 0;
      await fixture.pass(20_000);
      const bad = asked.filter((it) => it.endsWith("0xbad"));
      assert.ok(
        bad.length > 0 && bad.length < 12,
        `${bad.length} looks in 20 s: they become fewer`,
      );
      assert.ok(!life.log().includes("https://"), "what a rail throws is not repeated");
    },
  );
});

async function opened(store: Store): Promise<PaymentFixture> {
  const fixture = paymentFixture(store);
  await createAccount(store, "acc_a");
  fixture.chain.fund("0xa", UNITS * 10n);
  return fixture;
}

async function pay(fixture: PaymentFixture, life: Life, from: string) {
  return bring(
    life,
    sign(fixture, await offersFor(life, WISH), { how: "mpp", from, units: UNITS }),
    WISH,
  );
}

async function stateOf(store: Store, txHash: string): Promise<string> {
  const row = await store.db
    .selectFrom("purchase_submission")
    .innerJoin("purchase", "purchase.id", "purchase_id")
    .select("state")
    .where("purchase_submission.tx_hash", "=", txHash)
    .executeTakeFirst();
  return row?.state ?? "not written";
}

function never(): never {
  throw new Error("there is no such instance");
}
