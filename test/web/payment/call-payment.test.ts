// The port through which calls are paid for: every grant is charged by the one table of charges and
// by nothing else.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isCharged } from "../../../src/core/billing/charging.ts";
import { type Tariff, tariffOf } from "../../../src/core/billing/price.ts";
import type { SourceKind } from "../../../src/core/routing/answer-source.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { callPaymentOf, KEYLESS } from "../../../src/web/payment/call-payment.ts";
import { VoucherPayment } from "../../../src/web/rpc/paid/session-price.ts";

const SOURCES: readonly SourceKind[] = (
  ["provider", "cache", "merged", "shared", "local", "none"] as const
).map((kind) => ({ kind }));
const TARIFF: Tariff = tariffOf({
  factors: { "load-balanced": 1, "latency-weighted": 1.5, fastest: 2, priority: 1, cheapest: 1 },
  nanoPerCu: 5_000,
  cachePercent: 100,
  notificationCu: 3,
  weights: {},
});

function voucher(pinned = false, cachePercent = 100): VoucherPayment {
  return new VoucherPayment({
    tariff: { ...TARIFF, cachePercent },
    strategy: "fastest",
    pinned,
  });
}

function callOf(name: string) {
  return { profile: "premium", method: methodOf(name), strategy: "fastest" } as const;
}

test("a voucher is charged for a call by where its answer came from", () => {
  for (const source of SOURCES) {
    const payment = voucher();
    payment.admit(callOf("eth_call")).settle(source);
    // eth_call: 3 CU, twice as dear with `fastest`, 5,000 nano-USD each: 30 base units.
    assert.equal(payment.chargedUnits, isCharged(source) ? 30n : 0n, source.kind);
  }
});

test("a kept answer costs a voucher its share, in whole compute units", () => {
  for (const [percent, units, savedCu] of [
    [100, 30n, 0],
    [25, 10n, 4],
    [0, 0n, 6],
  ] as const) {
    const payment = voucher(false, percent);
    payment.admit(callOf("eth_call")).settle({ kind: "cache" });
    assert.deepEqual([payment.chargedUnits, payment.savedCu], [units, savedCu]);
    payment.admit(callOf("eth_call")).settle({ kind: "shared" });
    assert.deepEqual([payment.chargedUnits, payment.savedCu], [units + 30n, savedCu]);
  }
});

test("a voucher pays for the parts that were planned when its price was held", () => {
  const terms = { tariff: TARIFF, strategy: "load-balanced", pinned: false } as const;
  const payment = new VoucherPayment(terms, new Map([[40, 7]]));
  assert.deepEqual([payment.partsOf(40), payment.partsOf(1)], [7, 1]);
  const ranged = payment.admit({ ...callOf("eth_getLogs"), parts: payment.partsOf(40) });
  assert.equal(ranged.maxParts, undefined);
  ranged.settle({ kind: "merged" });
  // 7 parts of 15 CU, 5 base units each.
  assert.equal(payment.chargedUnits, 525n);
  assert.equal(payment.admit(callOf("eth_getFilterLogs")).maxParts, 1);
});

test("a voucher adds up the calls that were settled, and nothing for those that were released", () => {
  const payment = voucher();
  const grants = Array.from({ length: 5 }, () => payment.admit(callOf("eth_call")));
  for (const grant of grants.slice(0, 3)) grant.settle({ kind: "provider" });
  for (const grant of grants.slice(3)) grant.release();
  assert.equal(payment.chargedUnits, 90n);
});

test("a voucher pays for facts of the configuration only where a provider is asked for them", () => {
  const [plain, pinned] = [voucher(), voucher(true)];
  for (const payment of [plain, pinned])
    payment.admit(callOf("eth_chainId")).settle({ kind: "provider" });
  assert.equal(plain.chargedUnits, 0n);
  assert.ok(pinned.chargedUnits > 0n);
});

test("callers without a key are granted every call, and nothing is charged", () => {
  assert.equal(callPaymentOf(null, null), KEYLESS);
  for (const source of SOURCES) {
    const grant = KEYLESS.admit(callOf("eth_call"), 0);
    assert.ok(grant.kind === "keyless");
    assert.equal(grant.settle(source), null);
    assert.equal(grant.release(), null);
  }
});
