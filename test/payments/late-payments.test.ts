// Payments that were given up and got into a block later: the money has moved, so whoever shows the
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
  openShop,
  type Shop,
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

async function opened(shop: Shop) {
  await createAccount(shop.store, "acc_a");
  shop.chain.fund("0xa", UNITS * 10n);
  shop.chain.perBlock = 0;
  return {
    life: await shop.start({ rails: impatient }),
    other: await shop.start({ rails: impatient, node: "other" }),
  };
}

async function creditedN(shop: Shop): Promise<bigint> {
  const row = await shop.store.db
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
        const shop = openShop(await open(t));
        const { life, other } = await opened(shop);
        const given = sign(shop, await shop.run(offersFor(life, WISH)), {
          how,
          from: "0xa",
          units: UNITS,
          validMs: 3_600_000,
        });
        assert.equal(wordOf(await insist(shop, life, { given, wish: WISH })), "payment_failed");
        assert.equal(
          wordOf(await shop.run(bring(life, given, WISH))),
          "payment_failed",
          "nothing has moved",
        );
        assert.equal(await creditedN(shop), 0n);
        shop.chain.perBlock = 100;
        await shop.pass(10_000);
        assert.equal(shop.chain.received(), UNITS);
        const shows = [life, other, life, other].map((it) => bring(it, given, WISH));
        const taken = await shop.run(Promise.all(shows));
        assert.deepEqual(taken.map(wordOf), ["paid", "paid", "paid", "paid"]);
        assert.equal(await creditedN(shop), UNITS * 1_000n);
        assert.deepEqual(await audit(shop.store), []);
        const row = await shop.store.db
          .selectFrom("purchase")
          .select(["state", "reason", "offer_claim"])
          .executeTakeFirstOrThrow();
        assert.deepEqual([row.state, row.reason], ["settled", null]);
        assert.equal(
          wordOf(await shop.run(bring(life, given, { ...WISH, request: "other" }))),
          "payment_conflict",
        );
      },
    );
  }

  test(`a transfer that has paid for one purchase pays for no other that had failed (${engine})`, async (t) => {
    const shop = openShop(await open(t));
    const { life } = await opened(shop);
    const push = async () =>
      sign(shop, await shop.run(offersFor(life, WISH)), {
        how: "push",
        from: "0xa",
        units: UNITS,
        validMs: 3_600_000,
      });
    const [first, second] = [await push(), await push()];
    for (const given of [first, second])
      assert.equal(wordOf(await insist(shop, life, { given, wish: WISH })), "payment_failed");
    const [moved] = await movedBy(shop);
    assert.equal(wordOf(await shop.run(bring(life, first, WISH))), "paid");
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
    const lied = await shop.start({ rails, node: "third" });
    assert.equal(wordOf(await shop.run(bring(lied, second, WISH))), "payment_failed");
    assert.equal(await creditedN(shop), UNITS * 1_000n);
    assert.deepEqual(await audit(shop.store), []);
    assert.equal(
      wordOf(await shop.run(bring(life, second, WISH))),
      "paid",
      "its own transfer is there as well",
    );
    assert.equal(await creditedN(shop), UNITS * 2_000n);
    assert.deepEqual(await audit(shop.store), []);
  });
});

async function movedBy(shop: Shop) {
  shop.chain.perBlock = 100;
  await shop.pass(10_000);
  return shop.chain.at(0).state.moved;
}
