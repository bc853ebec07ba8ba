// A channel as a value: whatever is promised and charged in whatever order, nothing is taken that
// was not spent, and nothing is spent that was not promised.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  acceptedOf,
  type ChannelMoney,
  collectable,
  MAX_VOUCHERS,
  requiredFor,
  withCharge,
  withVoucher,
} from "../../../src/payments/session/channel.ts";
import { unitsFor } from "../../../src/payments/session/sessions.ts";

const EMPTY: ChannelMoney = {
  deposit_units: 10_000n,
  spent_units: 0n,
  settled_units: 0n,
  vouchers: [],
};
const voucher = (units: bigint) => ({ units, signature: `0x${units.toString(16)}` });

test(
  "a charge needs a voucher that promises all that is spent with it, and a deposit that covers " +
    "the voucher",
  () => {
    const once = withCharge(EMPTY, 15n, voucher(15n));
    assert.equal(once?.spent_units, 15n);
    assert.equal(withCharge(once ?? EMPTY, 15n, voucher(29n)), null);
    assert.equal(withCharge(once ?? EMPTY, 15n, voucher(30n))?.spent_units, 30n);
    assert.equal(withCharge(EMPTY, 15n, voucher(10_001n)), null);
  },
);

test("calls may end in another order than they began", () => {
  const later = withCharge(EMPTY, 15n, voucher(30n));
  assert.equal(later === null ? null : withCharge(later, 15n, voucher(15n))?.spent_units, 30n);
});

test("what is held for calls under way counts as spent for the next one", () => {
  assert.equal(requiredFor({ spent_units: 30n }, 45n, 15n), 90n);
});

test("nothing can be taken out before a voucher promises no more than was spent", () => {
  const ahead = withCharge(EMPTY, 15n, voucher(1_000n));
  assert.ok(ahead !== null);
  assert.equal(collectable(ahead), null);
  const paid = withCharge(withVoucher(ahead, voucher(20n)), 5n, voucher(1_000n));
  assert.equal(paid === null ? null : collectable(paid)?.units, 20n);
});

test("a price is rounded up to whole base units", () => {
  assert.deepEqual([1, 999, 1_000, 1_001, 15_000].map(unitsFor), [1n, 1n, 1n, 2n, 15n]);
});

test(
  "by any promises and charges: settled ≤ collectable ≤ spent ≤ promised ≤ deposit, and the " +
    "vouchers stay few",
  () => {
    const step = fc.record({
      kind: fc.constantFrom("promise", "charge", "settle"),
      ahead: fc.integer({ min: 0, max: 400 }),
      units: fc.integer({ min: 1, max: 60 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        let money = EMPTY;
        for (const { kind, ahead, units } of steps) {
          const promised = voucher(money.spent_units + BigInt(units + ahead));
          if (promised.units > money.deposit_units) continue;
          if (kind === "promise") money = withVoucher(money, promised);
          else if (kind === "charge") money = withCharge(money, BigInt(units), promised) ?? money;
          else
            money = { ...money, settled_units: collectable(money)?.units ?? money.settled_units };
          const take = collectable(money);
          assert.ok(
            take === null || (take.units > money.settled_units && take.units <= money.spent_units),
          );
          assert.ok(
            money.settled_units <= money.spent_units &&
              money.spent_units <= (money.vouchers.length === 0 ? 0n : acceptedOf(money)) &&
              acceptedOf(money) <= money.deposit_units,
          );
          assert.ok(money.vouchers.length <= MAX_VOUCHERS);
          const units_ = money.vouchers.map((it) => it.units);
          assert.deepEqual(
            units_,
            [...new Set(units_)].sort((a, b) => (a < b ? -1 : 1)),
          );
        }
      }),
    );
  },
);

test("a payer who promises ahead by one call for ever is settled up to one call", () => {
  let money = withCharge(EMPTY, 15n, voucher(30n)) ?? EMPTY;
  for (let call = 2n; call <= 200n; call++) {
    money = withCharge(money, 15n, voucher(15n * (call + 1n))) ?? EMPTY;
    assert.equal(collectable(money)?.units, money.spent_units);
  }
});
