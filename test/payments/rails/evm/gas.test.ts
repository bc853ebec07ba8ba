// Fees of settlements: taken soon, raised enough to replace what waits, and bounded whatever a node
// says.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { privateKeyToAccount } from "viem/accounts";
import { SETTLEMENT } from "../../../../src/devnet/payments/wallets.ts";
import {
  feesFor,
  feesToReplace,
  feesWithin,
  gasFor,
  parseSigned,
  signedBy,
} from "../../../../src/payments/rails/evm/gas.ts";

const GWEI = 10n ** 9n;
const anyFee = fc.bigInt({ min: 0n, max: 10n ** 30n });

test("fees leave room for a base fee twice as high, and never exceed their caps", () => {
  assert.deepEqual(feesFor(30n * GWEI, 2n * GWEI), { maxWei: 62n * GWEI, tipWei: 2n * GWEI });
  assert.deepEqual(feesFor(0n, null), { maxWei: GWEI, tipWei: GWEI });
  fc.assert(
    fc.property(anyFee, fc.option(anyFee), (base, tip) => {
      const fees = feesFor(base, tip);
      assert.ok(
        fees.tipWei <= fees.maxWei && fees.maxWei <= 2_000n * GWEI && fees.tipWei <= 100n * GWEI,
      );
    }),
  );
});

test("a replacement offers an eighth more of both at least, and there is an end to it", () => {
  fc.assert(
    fc.property(anyFee, anyFee, anyFee, anyFee, (base, tip, laterBase, laterTip) => {
      const before = feesFor(base, tip);
      const after = feesToReplace(before, feesFor(laterBase, laterTip));
      if (after === null) return;
      assert.ok(after.maxWei * 8n >= before.maxWei * 9n && after.tipWei * 8n >= before.tipWei * 9n);
      assert.ok(
        after.maxWei <= 2_000n * GWEI &&
          after.tipWei <= 100n * GWEI &&
          after.tipWei <= after.maxWei,
      );
    }),
  );
  let rounds = 0;
  for (
    let fees = feesToReplace(feesFor(1n, 1n), feesFor(1n, 1n));
    fees !== null;
    fees = feesToReplace(fees, fees)
  )
    rounds += 1;
  assert.ok(rounds < 500, `${rounds} rounds`);
});

test("gas has a margin and a bound", () => {
  assert.equal(gasFor(80_000n), 110_000n);
  assert.equal(gasFor(10n ** 12n), 1_000_000n);
});

test("gas never costs more than it may, and is paid for as long as the base fee leaves it at that", () => {
  const price = (baseFeeWei: bigint) => ({ baseFeeWei, fees: feesFor(baseFeeWei, GWEI) });
  assert.deepEqual(feesWithin(price(10n * GWEI), 100_000n, 10n ** 16n), {
    maxWei: 21n * GWEI,
    tipWei: GWEI,
  });
  assert.deepEqual(feesWithin(price(10n * GWEI), 100_000n, 10n ** 15n), {
    maxWei: 10n * GWEI,
    tipWei: GWEI,
  });
  assert.equal(feesWithin(price(10n * GWEI + 1n), 100_000n, 10n ** 15n), null);
  fc.assert(
    fc.property(
      anyFee,
      fc.bigInt({ min: 10_000n, max: 1_000_000n }),
      anyFee,
      (base, gas, mostWei) => {
        const fees = feesWithin(price(base), gas, mostWei);
        assert.ok(fees === null || (fees.maxWei * gas <= mostWei && fees.tipWei <= fees.maxWei));
        assert.equal(fees === null, base * gas > mostWei);
      },
    ),
  );
});

test("what was signed is read back as it was", async () => {
  const account = privateKeyToAccount(SETTLEMENT.key);
  const deed = {
    to: SETTLEMENT.address.toLowerCase() as `0x${string}`,
    data: "0x1234" as const,
    gas: 90_000n,
  };
  const fees = { maxWei: 5n, tipWei: 2n };
  const { raw, txHash, nonce } = await signedBy(account, deed, {
    chainId: 31_337,
    nonce: 0n,
    fees,
  });
  assert.deepEqual(parseSigned(raw), { deed, fees });
  assert.match(txHash, /^0x[0-9a-f]{64}$/);
  assert.equal(nonce, 0n);
  assert.throws(() => parseSigned("0x02"));
});
