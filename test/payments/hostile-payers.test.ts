// Payments with payers and nodes that mean harm, over a scripted chain: an honest payer is
// served beside them, and what one of them does once is not felt for ever.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Rail } from "../../src/payments/rails/rail.ts";
import { eachStore } from "../fakes/stores.ts";
import { createAccount } from "../hosted/accounts/account-fixture.ts";
import { authorizationRail, type FakeRailParts, payerRail } from "./fake-rail.ts";
import {
  bring,
  insist,
  type LifeOptions,
  offersFor,
  type PaymentFixture,
  paymentFixture,
  sign,
  type Wish,
  wordOf,
} from "./payment-fixture.ts";

const UNITS = 1_000_000n;

eachStore(({ engine, open }) => {
  test(`who repeats one payment again and again takes no place of those who pay (${engine})`, async (t) => {
    const fixture = paymentFixture(await open(t));
    const { wish, life } = await opened(fixture);
    fixture.chain.perBlock = 0;
    const signed = async (from: string) =>
      sign(fixture, await fixture.run(offersFor(life, wish)), { how: "mpp", from, units: UNITS });
    const given = await signed("0xa");
    const other = await signed("0xb");
    assert.equal(wordOf(await fixture.run(bring(life, given, wish))), "payment_pending");
    // More than payments are taken at once. On a server each also waits for one of a few
    // connections, for seconds of real time at most.
    const repeats = Array.from({ length: engine === "sqlite" ? 600 : 100 }, () =>
      bring(life, given, wish),
    );
    await fixture.pass(100);
    fixture.chain.perBlock = 100;
    assert.equal(wordOf(await fixture.run(bring(life, other, wish))), "paid");
    for (const it of await fixture.run(Promise.all(repeats)))
      assert.ok(["paid", "payment_pending", "unavailable"].includes(wordOf(it)), wordOf(it));
    assert.equal(
      wordOf(await fixture.run(bring(life, given, wish))),
      "paid",
      "its payer hears of it all the same",
    );
  });

  test(`where all that this process drives is slow, others are sent within seconds (${engine})`, async (t) => {
    const fixture = paymentFixture(await open(t));
    const { wish, life } = await opened(fixture);
    fixture.chain.perBlock = 0;
    const payers = Array.from({ length: 64 }, (_, index) => `0xslow${index}`);
    const slow: ReturnType<typeof bring>[] = [];
    for (const from of payers) {
      fixture.chain.fund(from, UNITS);
      slow.push(
        bring(
          life,
          sign(fixture, await fixture.run(offersFor(life, wish)), {
            how: "mpp",
            from,
            units: UNITS,
            validMs: 600_000,
          }),
          wish,
        ),
      );
    }
    const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
      how: "pull",
      from: "0xb",
      units: UNITS,
      validMs: 600_000,
    });
    const paying = bring(life, given, wish);
    const state = async () =>
      (
        await fixture.store.db
          .selectFrom("purchase")
          .select("state")
          .where("payer", "=", "0xb")
          .executeTakeFirst()
      )?.state;
    for (let passed = 0; passed < 10 && (await state()) !== "submitted"; passed++)
      await fixture.pass(1_000);
    assert.equal(await state(), "submitted");
    await fixture.run(Promise.all([...slow, paying]));
  });

  test(
    "a chain that does not say what became of payments holds up none on another one, nor its own " +
      `for longer than that (${engine})`,
    async (t) => {
      const fixture = paymentFixture(await open(t));
      let isHanging = true;
      const rails = (parts: FakeRailParts): readonly Rail[] => {
        const slow = authorizationRail(parts);
        return [
          { ...slow, look: (it) => (isHanging ? new Promise(() => {}) : slow.look(it)) },
          payerRail(parts),
        ];
      };
      const { wish, life } = await opened(fixture, { rails, waitMs: 50 });
      const bought = async (how: "mpp" | "pull") => {
        const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
          how,
          from: how === "mpp" ? "0xa" : "0xb",
          units: UNITS,
          validMs: 600_000,
        });
        const taken = await fixture.run(bring(life, given, wish));
        assert.equal(wordOf(taken), "payment_pending");
        return taken.kind === "declined" ? (taken.purchaseId ?? "") : "";
      };
      const slow = [];
      for (let index = 0; index < 12; index++) slow.push(await bought("mpp"));
      const stateOf = async (id: string) => (await life.payments.purchase(id))?.state;
      // Leases of requests are over, and the worker has the slow ones.
      await fixture.pass(25_000);
      const quick = await bought("pull");
      for (let passed = 0; passed < 10 && (await stateOf(quick)) !== "settled"; passed++)
        await fixture.pass(1_000);
      assert.equal(await stateOf(quick), "settled");
      isHanging = false;
      for (const id of slow) {
        for (let passed = 0; passed < 200 && (await stateOf(id)) !== "settled"; passed++)
          await fixture.pass(1_000);
        assert.equal(await stateOf(id), "settled");
      }
    },
  );

  test(
    "an instance whose rails take no purchases looks after those that are there without trouble " +
      `(${engine})`,
    async (t) => {
      const fixture = paymentFixture(await open(t));
      const { wish, life } = await opened(fixture, { waitMs: 50 });
      const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
        how: "pull",
        from: "0xa",
        units: UNITS,
        validMs: 600_000,
      });
      assert.equal(wordOf(await fixture.run(bring(life, given, wish))), "payment_pending");
      await fixture.run(life.payments.close());
      const without = await fixture.start({ rails: () => [] });
      await fixture.pass(10_000);
      assert.match(without.log(), /no such rail is configured/);
      assert.doesNotMatch(without.log(), /store does not answer/);
    },
  );

  test(`a clock that is set back holds up no purchase (${engine})`, async (t) => {
    const fixture = paymentFixture(await open(t));
    const { wish, life } = await opened(fixture, { waitMs: 500 });
    const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
      how: "pull",
      from: "0xa",
      units: UNITS,
      validMs: 3_600_000,
    });
    const pending = await fixture.run(bring(life, given, wish));
    assert.equal(wordOf(pending), "payment_pending");
    fixture.runtime.jump(-3_600_000);
    await fixture.pass(30_000);
    assert.equal(
      pending.kind === "declined" &&
        (await life.payments.purchase(pending.purchaseId ?? ""))?.state,
      "settled",
    );
  });

  test(
    "a node that names a nonce far ahead once stops its wallet for no longer than it lies " +
      `(${engine})`,
    async (t) => {
      const fixture = paymentFixture(await open(t));
      let isLying = true;
      const rails = (parts: FakeRailParts): readonly Rail[] => [
        withDraft(authorizationRail(parts), (it) =>
          it.wallet === null || !isLying
            ? it
            : { ...it, wallet: { ...it.wallet, chainNonce: 1_000_000n } },
        ),
      ];
      const { wish, life } = await opened(fixture, { rails });
      const pay = async () => {
        const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
          how: "mpp",
          from: "0xa",
          units: UNITS,
          validMs: 30_000,
        });
        return wordOf(await insist(fixture, life, { given, wish }));
      };
      assert.equal(await pay(), "payment_failed");
      isLying = false;
      for (let payments = 0; payments < 3; payments++) assert.equal(await pay(), "paid");
      assert.equal(fixture.chain.at(0).state.walletNonce, 3n);
    },
  );

  test(`many authorizations of a payer who has the money for one cost gas for one (${engine})`, async (t) => {
    const fixture = paymentFixture(await open(t));
    const rails = (parts: FakeRailParts): readonly Rail[] => [
      withDraft(authorizationRail(parts), (it, payer) => ({
        ...it,
        heldUnits: fixture.chain.balance(payer),
      })),
    ];
    const { wish, life } = await opened(fixture, { rails });
    fixture.chain.fund("0xpoor", UNITS);
    const all: ReturnType<typeof bring>[] = [];
    for (let index = 0; index < 12; index++) {
      const offers = await fixture.run(offersFor(life, wish));
      all.push(
        bring(
          life,
          sign(fixture, offers, { how: "x402", from: "0xpoor", units: UNITS, validMs: 20_000 }),
          wish,
        ),
      );
    }
    const words = (await fixture.run(Promise.all(all))).map(wordOf);
    assert.equal(words.filter((it) => it === "paid").length, 1, words.join());
    await fixture.pass(90_000);
    const receipts = [...fixture.chain.at(0).state.receipts.values()];
    assert.equal(receipts.filter(({ ok }) => ok).length, 1);
    assert.equal(
      receipts.filter(({ ok }) => !ok).length,
      0,
      "each that reverts is paid for by the settlement wallet",
    );
    const states = await fixture.store.db.selectFrom("purchase").select("state").execute();
    assert.deepEqual(states.map(({ state }) => state).sort(), [
      ...Array<string>(11).fill("failed"),
      "settled",
    ]);
  });

  test(
    "a payment whose offer is not known to be ours any more is not asked for once more " +
      `(${engine})`,
    async (t) => {
      const fixture = paymentFixture(await open(t));
      const { wish, life } = await opened(fixture);
      const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
        how: "x402",
        from: "0xa",
        units: UNITS,
      });
      const unknown = {
        ...given,
        text: given.text.replace(/("offer":"[^"]*\.)[^".]*\.[^".]*"/, '$1ABCD.ABCD"'),
      };
      assert.notEqual(unknown.text, given.text);
      assert.equal(
        wordOf(await fixture.run(bring(life, unknown, wish))),
        "payment_invalid",
        "nothing was recorded",
      );
      assert.equal(wordOf(await insist(fixture, life, { given, wish })), "paid");
      const told = await fixture.run(bring(life, unknown, wish));
      assert.ok(told.kind === "declined");
      assert.deepEqual(
        [told.fault.code, told.purchaseId],
        ["payment_conflict", null],
        "and nothing is told of it",
      );
    },
  );

  test(
    "payments that were sent by one that says it is a payer take no places of that payer " +
      `(${engine})`,
    async (t) => {
      const fixture = paymentFixture(await open(t));
      const { wish, life } = await opened(fixture, { waitMs: 50 });
      fixture.chain.perBlock = 0;
      for (let index = 0; index < 18; index++) {
        const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
          how: "push",
          from: "0xa",
          units: UNITS,
          validMs: 600_000,
        });
        assert.equal(
          wordOf(await fixture.run(bring(life, given, wish))),
          "payment_pending",
          "its money is on the way: it is not sent away",
        );
      }
      const own = sign(fixture, await fixture.run(offersFor(life, wish)), {
        how: "pull",
        from: "0xa",
        units: UNITS,
        validMs: 600_000,
      });
      assert.equal(wordOf(await fixture.run(bring(life, own, wish))), "payment_pending");
    },
  );
});

async function opened(fixture: PaymentFixture, options: LifeOptions = {}) {
  await createAccount(fixture.store, "acc_a");
  for (const payer of ["0xa", "0xb"]) fixture.chain.fund(payer, UNITS * 100n);
  const wish: Wish = {
    purpose: { kind: "credit_account", accountId: "acc_a" },
    units: UNITS,
    request: "buy",
  };
  const rails =
    options.rails ?? ((parts: FakeRailParts) => [authorizationRail(parts), payerRail(parts)]);
  return { wish, life: await fixture.start({ ...options, rails }) };
}

type Drafted = NonNullable<Awaited<ReturnType<Rail["draft"]>>>;

/** A rail whose drafts are changed on their way. */
function withDraft(rail: Rail, changed: (draft: Drafted, payer: string) => Drafted): Rail {
  return {
    ...rail,
    async draft(purchase) {
      const draft = await rail.draft(purchase);
      return draft === null ? null : changed(draft, purchase.payment.payer);
    },
  };
}
