// Payments that were given up and got into a block later: the money has moved, so one who shows the
// payment again gets what it bought, once.
import assert from "node:assert/strict";
import { test } from "node:test";
import { audit } from "../../src/hosted/audit/audit.ts";
import type { Rail } from "../../src/payments/rails/rail.ts";
import { eachStore } from "../fakes/stores.ts";
import { createAccount } from "../hosted/accounts/account-fixture.ts";
import { authorizationRail, type FakeRailParts, payerRail } from "./fake-rail.ts";
import {
  bring,
  type How,
  insist,
  offersFor,
  type PaymentFixture,
  paymentFixture,
  sign,
  type Wish,
  wordOf,
} from "./payment-fixture.ts";

const UNITS = 1_000_000n;
const WISH: Wish = {
  purpose: { kind: "credit_account", accountId: "acc_a" },
  units: UNITS,
  request: "buy",
};

/** Rails of payers' own transactions that do not wait for a block. */
const impatient = (parts: FakeRailParts): readonly Rail[] => {
  const rail = payerRail(parts);
  return [
    authorizationRail(parts),
    {
      ...rail,
      look: async (purchase) => {
        const truth = await rail.look(purchase);
        return truth.kind === "open" && purchase.submissions.length > 0
          ? { kind: "failed", reason: "it took too long" }
          : truth;
      },
    },
  ];
};

async function opened(fixture: PaymentFixture) {
  await createAccount(fixture.store, "acc_a");
  fixture.chain.fund("0xa", UNITS * 10n);
  fixture.chain.perBlock = 0;
  return {
    life: await fixture.start({ rails: impatient }),
    other: await fixture.start({ rails: impatient, node: "other" }),
  };
}

async function creditedN(fixture: PaymentFixture): Promise<bigint> {
  const row = await fixture.store.db
    .selectFrom("account")
    .select("funded_n")
    .where("id", "=", "acc_a")
    .executeTakeFirstOrThrow();
  return row.funded_n;
}

eachStore(({ engine, open }) => {
  for (const how of ["pull", "push"] satisfies How[]) {
    test(
      `a ${how} that was given up and is in a block later is credited once when it is shown, and ` +
        `the books agree (${engine})`,
      async (t) => {
        const fixture = paymentFixture(await open(t));
        const { life, other } = await opened(fixture);
        const given = sign(fixture, await fixture.run(offersFor(life, WISH)), {
          how,
          from: "0xa",
          units: UNITS,
          validMs: 3_600_000,
        });
        assert.equal(wordOf(await insist(fixture, life, { given, wish: WISH })), "payment_failed");
        assert.equal(
          wordOf(await fixture.run(bring(life, given, WISH))),
          "payment_failed",
          "nothing has moved",
        );
        assert.equal(await creditedN(fixture), 0n);
        fixture.chain.perBlock = 100;
        await fixture.pass(10_000);
        assert.equal(fixture.chain.received(), UNITS);
        const shows = [life, other, life, other].map((it) => bring(it, given, WISH));
        const taken = await fixture.run(Promise.all(shows));
        assert.deepEqual(taken.map(wordOf), ["paid", "paid", "paid", "paid"]);
        assert.equal(await creditedN(fixture), UNITS * 1_000n);
        assert.deepEqual(await audit(fixture.store), []);
        const row = await fixture.store.db
          .selectFrom("purchase")
          .select(["state", "reason", "offer_claim"])
          .executeTakeFirstOrThrow();
        assert.deepEqual([row.state, row.reason], ["settled", null]);
        assert.equal(
          wordOf(await fixture.run(bring(life, given, { ...WISH, request: "other" }))),
          "payment_conflict",
        );
      },
    );
  }

  test(`a transfer that has paid for one purchase pays for no other that had failed (${engine})`, async (t) => {
    const fixture = paymentFixture(await open(t));
    const { life } = await opened(fixture);
    const push = async () =>
      sign(fixture, await fixture.run(offersFor(life, WISH)), {
        how: "push",
        from: "0xa",
        units: UNITS,
        validMs: 3_600_000,
      });
    const [first, second] = [await push(), await push()];
    for (const given of [first, second])
      assert.equal(wordOf(await insist(fixture, life, { given, wish: WISH })), "payment_failed");
    const [moved] = await movedBy(fixture);
    assert.equal(wordOf(await fixture.run(bring(life, first, WISH))), "paid");
    // A node that says of one transfer that it is another one's.
    const rails = (parts: FakeRailParts): readonly Rail[] => {
      return [
        {
          ...payerRail(parts),
          look: async () => ({
            kind: "settled",
            txHash: moved?.txHash ?? "",
            block: 1n,
            logIndex: moved?.logIndex ?? 0,
          }),
        },
      ];
    };
    const lied = await fixture.start({ rails, node: "third" });
    assert.equal(wordOf(await fixture.run(bring(lied, second, WISH))), "payment_failed");
    assert.equal(await creditedN(fixture), UNITS * 1_000n);
    assert.deepEqual(await audit(fixture.store), []);
    assert.equal(
      wordOf(await fixture.run(bring(life, second, WISH))),
      "paid",
      "its own transfer is there as well",
    );
    assert.equal(await creditedN(fixture), UNITS * 2_000n);
    assert.deepEqual(await audit(fixture.store), []);
  });
});

async function movedBy(fixture: PaymentFixture) {
  fixture.chain.perBlock = 100;
  await fixture.pass(10_000);
  return fixture.chain.at(0).state.moved;
}
