// Payments on both engines, over a scripted chain: one who pays gets what was paid for, once;
// one who repeats a payment gets its first result; nobody is asked to pay after a payment was
// recorded; and nothing that can be read on a chain opens what a payer bought.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NANO_PER_UNIT, type Purpose } from "../../src/core/billing/payment.ts";
import { audit } from "../../src/hosted/audit/audit.ts";
import { createAnonymousKey } from "../../src/hosted/keys/create.ts";
import type { PaidPurchase, PaymentDeclined } from "../../src/payments/payments.ts";
import { eachStore } from "../fakes/stores.ts";
import { balanceOf, createAccount } from "../hosted/accounts/account-fixture.ts";
import { authorizationRail, type FakeRailParts } from "./fake-rail.ts";
import {
  bring,
  type How,
  insist,
  type Life,
  offersFor,
  type PaymentFixture,
  paymentFixture,
  sign,
  type Wish,
  wordOf,
} from "./payment-fixture.ts";

const UNITS = 1_000_000n;
const WAYS: readonly How[] = ["mpp", "x402", "pull", "push"];

eachStore(({ engine, open }) => {
  test(
    "each way of paying credits the account once, and every repeat gets the first result " +
      `(${engine})`,
    async (t) => {
      for (const how of WAYS) {
        const fixture = paymentFixture(await open(t));
        const { wish, life } = await opened(fixture);
        const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
          how,
          from: "0xa",
          units: UNITS,
        });
        const first = paid(await insist(fixture, life, { given, wish }));
        assert.equal(first.repeated, false, how);
        assert.deepEqual(first.fulfilment, {
          kind: "credit_account",
          accountId: "acc_a",
          balanceN: UNITS * NANO_PER_UNIT,
          fundedN: UNITS * NANO_PER_UNIT,
        });
        assert.deepEqual(life.changed, ["acc_a"]);
        const again = paid(await fixture.run(bring(life, given, { ...wish, units: 7n })));
        assert.deepEqual(
          { ...again, repeated: false },
          first,
          "whatever the order would say by now",
        );
        life.kill();
        const later = await fixture.start();
        assert.deepEqual(
          { ...paid(await insist(fixture, later, { given, wish })), repeated: false },
          first,
        );
        assert.deepEqual(
          later.changed,
          ["acc_a"],
          "the process that credited it may have ended before memory heard of it",
        );
        assert.equal(await balanceOf(fixture.store, "acc_a"), UNITS * NANO_PER_UNIT);
        assert.equal(fixture.chain.received(), UNITS);
        assert.deepEqual(await audit(fixture.store), []);
        const view = await later.payments.purchase(first.purchase.id);
        assert.deepEqual(view, first.purchase);
        assert.equal(view?.state, "settled");
      }
    },
  );

  test(
    "identical payments at once, also at two instances, are one purchase with one result " +
      `(${engine})`,
    async (t) => {
      for (const how of WAYS) {
        const fixture = paymentFixture(await open(t));
        const { wish, life } = await opened(fixture);
        const other = await fixture.start({ node: "other" });
        const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
          how,
          from: "0xa",
          units: UNITS,
        });
        const all = await fixture.run(
          Promise.all(
            Array.from({ length: 8 }, (_, index) =>
              bring(index % 2 === 0 ? life : other, given, wish),
            ),
          ),
        );
        const ids = new Set(
          all.map((it) =>
            it.kind === "paid" ? it.purchase.id : it.kind === "declined" ? it.purchaseId : null,
          ),
        );
        assert.equal(ids.size, 1, how);
        for (const it of all)
          assert.ok(["paid", "payment_pending"].includes(wordOf(it)), `${how}: ${wordOf(it)}`);
        paid(await insist(fixture, other, { given, wish }));
        assert.equal(await balanceOf(fixture.store, "acc_a"), UNITS * NANO_PER_UNIT);
        assert.equal(
          (await fixture.store.db.selectFrom("purchase").select("id").execute()).length,
          1,
        );
        assert.deepEqual(await audit(fixture.store), []);
      }
    },
  );

  test(`a payment buys what its request asked for, and nothing else (${engine})`, async (t) => {
    const fixture = paymentFixture(await open(t));
    const { wish, life } = await opened(fixture);
    for (const how of WAYS) {
      const signing = { how, from: "0xa", units: UNITS };
      const offers = await fixture.run(offersFor(life, wish));
      const elsewhere = await fixture.run(
        bring(life, sign(fixture, offers, signing), { ...wish, request: "another body" }),
      );
      assert.equal(wordOf(elsewhere), "payment_invalid", `${how}: an offer is for one request`);
      const given = sign(fixture, await fixture.run(offersFor(life, wish)), signing);
      const first = paid(await insist(fixture, life, { given, wish }));
      const other = unpaid(
        await fixture.run(bring(life, given, { ...wish, request: "another body" })),
      );
      assert.equal(other.fault.code, "payment_conflict");
      assert.equal(other.purchaseId, first.purchase.id);
    }
  });

  test(`what is wrong is refused before anything is recorded, and says what (${engine})`, async (t) => {
    const fixture = paymentFixture(await open(t));
    const { wish, life } = await opened(fixture);
    const offers = await fixture.run(offersFor(life, wish));
    const signing = { from: "0xa", units: UNITS };
    const cases = [
      [
        "a forged signature",
        sign(fixture, offers, { ...signing, how: "x402", signature: "forged" }),
        "verification-failed",
      ],
      [
        "another amount",
        sign(fixture, offers, { ...signing, how: "x402", units: 5n }),
        "payment-insufficient",
      ],
      [
        "an expired authorization",
        sign(fixture, offers, { ...signing, how: "x402", validMs: 0 }),
        "payment-expired",
      ],
      [
        "a payer without money",
        sign(fixture, offers, { ...signing, how: "x402", from: "0xpoor" }),
        "payment-insufficient",
      ],
      ["no payment", { protocol: "mpp", text: "garbage" }, "malformed-credential"],
      [
        "a challenge that is not ours",
        { protocol: "mpp", text: '{"challenge":"another","payload":{}}' },
        "invalid-challenge",
      ],
      [
        "an offer without its mark",
        withoutMark(sign(fixture, offers, { ...signing, how: "x402" })),
        "invalid-challenge",
      ],
    ] as const;
    for (const [what, given, problem] of cases) {
      const refused = unpaid(await insist(fixture, life, { given, wish }));
      assert.deepEqual(
        [refused.fault.code, refused.problem, refused.purchaseId],
        ["payment_invalid", problem, null],
        what,
      );
      assert.equal(refused.fault.status, 402);
    }
    await fixture.pass(61_000);
    for (const how of ["mpp", "x402", "pull"] as const) {
      const late = unpaid(
        await insist(fixture, life, { given: sign(fixture, offers, { ...signing, how }), wish }),
      );
      assert.deepEqual(
        [late.fault.code, late.problem],
        ["payment_invalid", "payment-expired"],
        how,
      );
    }
    assert.deepEqual(await fixture.store.db.selectFrom("purchase").select("id").execute(), []);
    // Money that a client has sent is credited also when it is shown late.
    paid(
      await insist(fixture, life, {
        given: sign(fixture, offers, { ...signing, how: "push" }),
        wish,
      }),
    );
    assert.equal(await balanceOf(fixture.store, "acc_a"), UNITS * NANO_PER_UNIT);
  });

  test(
    "an offer is taken up once: who signs a second payment for it is told of the first " +
      `(${engine})`,
    async (t) => {
      const fixture = paymentFixture(await open(t));
      const { wish, life } = await opened(fixture);
      const offers = await fixture.run(offersFor(life, wish));
      const first = sign(fixture, offers, { how: "x402", from: "0xa", units: UNITS });
      const second = sign(fixture, offers, { how: "x402", from: "0xa", units: UNITS });
      const both = await fixture.run(
        Promise.all([bring(life, first, wish), bring(life, second, wish)]),
      );
      const words = both.map(wordOf).sort();
      assert.deepEqual(words, ["paid", "payment_conflict"]);
      const conflict = both.find((it) => it.kind === "declined");
      const winner = both.find((it) => it.kind === "paid");
      assert.equal(
        conflict?.kind === "declined" && conflict.purchaseId,
        winner?.kind === "paid" && winner.purchase.id,
      );
      assert.equal(fixture.chain.received(), UNITS);
      // A failed purchase gives its offer free.
      const again = await fixture.run(offersFor(life, wish));
      const lost = sign(fixture, again, { how: "x402", from: "0xa", units: UNITS, validMs: 2_500 });
      fixture.chain.perBlock = 0;
      assert.equal(wordOf(await insist(fixture, life, { given: lost, wish })), "payment_failed");
      fixture.chain.perBlock = 100;
      paid(
        await insist(fixture, life, {
          given: sign(fixture, again, { how: "x402", from: "0xa", units: UNITS }),
          wish,
        }),
      );
      // Money that was sent by the payer itself is credited for each transfer.
      const pushes = await fixture.run(offersFor(life, wish));
      for (const validMs of [90_000, 91_000])
        paid(
          await insist(fixture, life, {
            given: sign(fixture, pushes, { how: "push", from: "0xa", units: UNITS, validMs }),
            wish,
          }),
        );
      assert.equal(
        await balanceOf(fixture.store, "acc_a"),
        fixture.chain.received() * NANO_PER_UNIT,
      );
      assert.equal(fixture.chain.received(), 4n * UNITS);
      assert.deepEqual(await audit(fixture.store), []);
    },
  );

  test(`what stands on a chain for everybody to read does not open what was bought (${engine})`, async (t) => {
    const fixture = paymentFixture(await open(t));
    const { wish, life } = await opened(fixture, { kind: "create_key", name: "" });
    for (const how of ["x402", "mpp"] as const) {
      const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
        how,
        from: "0xa",
        units: UNITS,
      });
      const first = paid(await insist(fixture, life, { given, wish }));
      assert.ok(
        first.fulfilment.kind === "create_key" && first.fulfilment.secret.startsWith("svc_ak_"),
      );
      // An onlooker knows the authorization with its signature, and gets offers for the same
      // request.
      const own = await fixture.run(offersFor(life, wish));
      const { payload } = JSON.parse(given.text);
      const copied =
        how === "x402"
          ? { accepted: own.x402[0], payload }
          : { challenge: own.mpp["fake-auth"], payload };
      const taken = unpaid(
        await fixture.run(bring(life, { protocol: how, text: JSON.stringify(copied) }, wish)),
      );
      assert.deepEqual([taken.fault.code, taken.purchaseId], ["payment_conflict", null]);
      assert.ok(!JSON.stringify(taken).includes("svc_ak_"));
      const again = paid(await insist(fixture, life, { given, wish }));
      assert.deepEqual(again.fulfilment, first.fulfilment, "its payer sees the key again");
    }
  });

  test(
    "a chain that cannot be asked before the payment is recorded: nothing is, and the same " +
      `payment is good later (${engine})`,
    async (t) => {
      const fixture = paymentFixture(await open(t));
      const { wish } = await opened(fixture);
      let isGone = false;
      const life = await fixture.start({
        fate: (_, name) => (isGone && name !== "transaction" ? "lost request" : "fine"),
      });
      const offers = await fixture.run(offersFor(life, wish));
      const given = sign(fixture, offers, { how: "mpp", from: "0xa", units: UNITS });
      isGone = true;
      const refused = unpaid(await insist(fixture, life, { given, wish }));
      assert.deepEqual([refused.fault.code, refused.purchaseId], ["unavailable", null]);
      assert.ok((refused.fault.retryAfterMs ?? 0) > 0);
      await fixture.pass(20_000);
      assert.equal(
        await fixture.run(life.payments.challenge({ ...orderLike(wish) })),
        null,
        "nothing is offered that could not be settled",
      );
      isGone = false;
      await fixture.pass(3_000);
      paid(await insist(fixture, life, { given, wish }));
      await fixture.run(offersFor(life, wish));
      assert.ok(!life.log().includes("signed by"), "signatures are not logged");
    },
  );

  test(`what takes longer than a request is told as pending, and goes on without it (${engine})`, async (t) => {
    const fixture = paymentFixture(await open(t));
    const { wish } = await opened(fixture);
    const life = await fixture.start({ waitMs: 500 });
    const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
      how: "mpp",
      from: "0xa",
      units: UNITS,
    });
    const pending = unpaid(await fixture.run(bring(life, given, wish)));
    assert.deepEqual([pending.fault.code, pending.fault.status], ["payment_pending", 503]);
    assert.ok(["accepted", "submitted"].includes((await stateOf(life, pending)) ?? ""));
    for (let passes = 0; passes < 60 && (await stateOf(life, pending)) !== "settled"; passes++)
      await fixture.pass(2_000);
    assert.equal(await stateOf(life, pending), "settled", "without anybody asking");
    assert.equal(await balanceOf(fixture.store, "acc_a"), UNITS * NANO_PER_UNIT);
    assert.equal(paid(await insist(fixture, life, { given, wish })).repeated, true);
  });

  test(`money for a beneficiary that is gone is held, and given when it can be (${engine})`, async (t) => {
    const fixture = paymentFixture(await open(t));
    const key = await createAnonymousKey(fixture.store, { name: "", grantN: 0n }, 1);
    const { wish, life } = await opened(fixture, {
      kind: "fund_key",
      accountId: key.accountId,
      keyId: key.id,
    });
    const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
      how: "mpp",
      from: "0xa",
      units: UNITS,
    });
    await fixture.store.db
      .updateTable("api_key")
      .set({ revoked_at: 1n })
      .where("id", "=", key.id)
      .execute();
    const held = unpaid(await insist(fixture, life, { given, wish }));
    assert.deepEqual([held.fault.code, held.fault.status], ["beneficiary_conflict", 409]);
    assert.equal(await balanceOf(fixture.store, key.accountId), 0n);
    assert.deepEqual(await audit(fixture.store), []);
    await fixture.pass(11_000);
    assert.equal(life.payments.gauges().held, 1);
    assert.equal(wordOf(await fixture.run(bring(life, given, wish))), "beneficiary_conflict");
    await fixture.store.db
      .updateTable("api_key")
      .set({ revoked_at: null })
      .where("id", "=", key.id)
      .execute();
    const given2 = paid(await insist(fixture, life, { given, wish }));
    assert.equal(
      given2.fulfilment.kind === "fund_key" && given2.fulfilment.balanceN,
      UNITS * NANO_PER_UNIT,
    );
    assert.equal(wordOf(await fixture.run(bring(life, given, wish))), "paid");
    assert.equal(await balanceOf(fixture.store, key.accountId), UNITS * NANO_PER_UNIT);
    assert.deepEqual(await audit(fixture.store), []);
  });

  test(
    "an account that became part of another one meanwhile: the other one is credited and has the " +
      `days (${engine})`,
    async (t) => {
      for (const kind of ["credit_account", "custom_access"] as const) {
        const fixture = paymentFixture(await open(t));
        const purpose: Purpose =
          kind === "credit_account"
            ? { kind, accountId: "acc_a" }
            : { kind, accountId: "acc_a", keyId: "key_a", days: 3 };
        const { wish, life } = await opened(fixture, purpose);
        await createAccount(fixture.store, "acc_owner");
        const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
          how: "mpp",
          from: "0xa",
          units: UNITS,
        });
        await fixture.store.db
          .updateTable("account")
          .set({ merged_into: "acc_owner" })
          .where("id", "=", "acc_a")
          .execute();
        const done = paid(await insist(fixture, life, { given, wish }));
        assert.equal("accountId" in done.fulfilment && done.fulfilment.accountId, "acc_owner");
        assert.equal(
          await balanceOf(fixture.store, "acc_owner"),
          kind === "credit_account" ? UNITS * NANO_PER_UNIT : 0n,
        );
        const days = await fixture.store.db
          .selectFrom("custom_access")
          .selectAll()
          .where("account_id", "=", "acc_owner")
          .execute();
        assert.equal(days.length, kind === "credit_account" ? 0 : 1);
        if (done.fulfilment.kind === "custom_access")
          assert.equal(done.fulfilment.untilMs - done.fulfilment.fromMs, 3 * 86_400_000);
        assert.deepEqual(await audit(fixture.store), []);
      }
    },
  );

  test(
    "a key that was bought is shown to its payer for seven days, and not kept any longer " +
      `(${engine})`,
    async (t) => {
      const fixture = paymentFixture(await open(t));
      const { wish, life } = await opened(fixture, { kind: "create_key", name: "of an agent" });
      const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
        how: "mpp",
        from: "0xa",
        units: UNITS,
      });
      const first = paid(await insist(fixture, life, { given, wish })).fulfilment;
      assert.ok(first.kind === "create_key" && first.secret !== "");
      assert.equal(
        await balanceOf(fixture.store, first.accountId),
        UNITS * NANO_PER_UNIT,
        "the whole amount, and no grant",
      );
      const rows = await fixture.store.db.selectFrom("purchase").selectAll().execute();
      assert.ok(
        !JSON.stringify(rows, (_, it) => (typeof it === "bigint" ? `${it}` : it)).includes(
          first.secret,
        ),
        "the store holds it sealed only",
      );
      fixture.runtime.jump(7 * 86_400_000 - 60_000);
      await fixture.pass(2_000);
      const before = paid(await insist(fixture, life, { given, wish })).fulfilment;
      assert.equal(before.kind === "create_key" && before.secret, first.secret);
      await fixture.pass(180_000);
      const after = paid(await insist(fixture, life, { given, wish })).fulfilment;
      assert.deepEqual(after, { ...first, secret: "" });
    },
  );

  test(`one payer has a bounded number of payments under way, and others are not held up (${engine})`, async (t) => {
    const fixture = paymentFixture(await open(t));
    const { wish } = await opened(fixture);
    fixture.chain.fund("0xb", UNITS * 100n);
    fixture.chain.fund("0xa", UNITS * 100n);
    const life = await fixture.start({ waitMs: 50 });
    fixture.chain.perBlock = 0;
    const words: string[] = [];
    for (let index = 0; index < 18; index++) {
      const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
        how: "mpp",
        from: "0xa",
        units: UNITS,
      });
      words.push(wordOf(await fixture.run(bring(life, given, wish))));
    }
    assert.deepEqual(words, [
      ...Array.from({ length: 16 }, () => "payment_pending"),
      "rate_limited",
      "rate_limited",
    ]);
    const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
      how: "mpp",
      from: "0xb",
      units: UNITS,
    });
    assert.equal(wordOf(await fixture.run(bring(life, given, wish))), "payment_pending");
    fixture.chain.perBlock = 100;
    const all = 17n * UNITS * NANO_PER_UNIT;
    for (let passes = 0; passes < 100 && (await balanceOf(fixture.store, "acc_a")) < all; passes++)
      await fixture.pass(5_000);
    assert.equal(fixture.chain.received(), 17n * UNITS);
    assert.equal(await balanceOf(fixture.store, "acc_a"), 17n * UNITS * NANO_PER_UNIT);
  });

  test(
    "purchases of a local chain that was started anew fail; those of a rail that is gone wait " +
      `for it (${engine})`,
    async (t) => {
      const fixture = paymentFixture(await open(t));
      const { wish } = await opened(fixture);
      const life = await fixture.start({ waitMs: 50, local: true });
      fixture.chain.perBlock = 0;
      const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
        how: "mpp",
        from: "0xa",
        units: UNITS,
      });
      assert.equal(wordOf(await fixture.run(bring(life, given, wish))), "payment_pending");
      life.kill();
      fixture.chain.restart();
      fixture.chain.perBlock = 100;
      const distant = await fixture.start({ local: false });
      await fixture.pass(5_000);
      assert.equal(
        wordOf(await fixture.run(bring(distant, given, wish))),
        "payment_pending",
        "a chain that is not local may come back",
      );
      assert.match(distant.log(), /another chain 77/);
      distant.kill();
      const none = await fixture.start({ rails: () => [] });
      await fixture.pass(5_000);
      assert.equal(none.log().split("no such rail is configured").length, 2, "said once");
      none.kill();
      const local = await fixture.start({ local: true });
      await fixture.pass(5_000);
      const failed = unpaid(await insist(fixture, local, { given, wish }));
      assert.equal(failed.fault.code, "payment_failed");
      assert.match(failed.fault.message, /started anew/);
      // The wallet counts from the chain's own number again.
      const fresh = sign(fixture, await fixture.run(offersFor(local, wish)), {
        how: "mpp",
        from: "0xa",
        units: UNITS,
      });
      paid(await insist(fixture, local, { given: fresh, wish }));
      assert.deepEqual(await audit(fixture.store), []);
    },
  );

  test(
    "a wallet that cannot pay for gas: its rail is not offered, and the operator hears of it " +
      `once (${engine})`,
    async (t) => {
      const fixture = paymentFixture(await open(t));
      const { wish } = await opened(fixture);
      let isEmpty = false;
      const rails = (parts: FakeRailParts) => {
        const rail = authorizationRail(parts);
        return [
          {
            ...rail,
            wallet: async () => ({
              id: "77:0xwallet",
              balanceWei: 0n,
              low: isEmpty,
              empty: isEmpty,
              dear: false,
              nonce: 0n,
            }),
          },
        ];
      };
      const life = await fixture.start({ rails });
      const given = sign(fixture, await fixture.run(offersFor(life, wish)), {
        how: "mpp",
        from: "0xa",
        units: UNITS,
      });
      isEmpty = true;
      await fixture.pass(40_000);
      assert.equal(await fixture.run(life.payments.challenge(orderLike(wish))), null);
      assert.equal(life.log().split("cannot pay for gas").length, 2);
      assert.deepEqual(life.payments.gauges().wallets, [{ chainId: 77, low: true, empty: true }]);
      assert.equal(
        wordOf(await fixture.run(bring(life, given, wish))),
        "unavailable",
        "nothing is recorded that could not be settled",
      );
      isEmpty = false;
      await fixture.pass(16_000);
      paid(await insist(fixture, life, { given, wish }));
      await fixture.run(life.payments.close());
      assert.equal(wordOf(await fixture.run(bring(life, given, wish))), "unavailable");
    },
  );

  test(
    "gas that costs more than a settlement may: its rail is not offered meanwhile, and nobody is " +
      `told to refill (${engine})`,
    async (t) => {
      const fixture = paymentFixture(await open(t));
      const { wish } = await opened(fixture);
      let dear = true;
      const rails = (parts: FakeRailParts) => {
        return [
          {
            ...authorizationRail(parts),
            wallet: async () => ({
              id: "77:0xwallet",
              balanceWei: 9n,
              low: false,
              empty: false,
              dear,
              nonce: 0n,
            }),
          },
        ];
      };
      const life = await fixture.start({ rails });
      await fixture.pass(20_000);
      assert.equal(await fixture.run(life.payments.challenge(orderLike(wish))), null);
      assert.equal(life.log().split("max_gas_wei").length, 2);
      assert.deepEqual(life.payments.gauges().wallets, [{ chainId: 77, low: false, empty: false }]);
      dear = false;
      await fixture.pass(16_000);
      assert.notEqual(await fixture.run(life.payments.challenge(orderLike(wish))), null);
    },
  );
});

async function opened(
  fixture: PaymentFixture,
  purpose: Purpose = { kind: "credit_account", accountId: "acc_a" },
): Promise<{ readonly wish: Wish; readonly life: Life }> {
  await createAccount(fixture.store, "acc_a");
  fixture.chain.fund("0xa", UNITS * 10n);
  return { wish: { purpose, units: UNITS, request: "buy" }, life: await fixture.start() };
}

function orderLike(wish: Wish) {
  return {
    purpose: wish.purpose,
    amountN: wish.units * NANO_PER_UNIT,
    request: { fingerprint: "f", digest: "d", resourceUrl: "" },
    description: "",
    keepsAuthorization: false,
  };
}

async function stateOf(
  { payments }: Life,
  { purchaseId }: PaymentDeclined,
): Promise<string | undefined> {
  return (await payments.purchase(purchaseId ?? ""))?.state;
}

function withoutMark(given: { readonly protocol: "mpp" | "x402"; readonly text: string }) {
  const { accepted, payload } = JSON.parse(given.text);
  return {
    ...given,
    text: JSON.stringify({
      accepted: { ...accepted, extra: { name: "Token", version: "1" } },
      payload,
    }),
  };
}

function paid(taken: PaidPurchase | PaymentDeclined | { readonly kind: "refused" }): PaidPurchase {
  assert.ok(
    taken.kind === "paid",
    `${wordOf(taken)}: ${taken.kind === "declined" ? taken.fault.message : ""}`,
  );
  return taken;
}

function unpaid(
  taken: PaidPurchase | PaymentDeclined | { readonly kind: "refused" },
): PaymentDeclined {
  assert.ok(taken.kind === "declined", wordOf(taken));
  return taken;
}
