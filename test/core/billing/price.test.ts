// Prices: every published weight and factor, and money that is never rounded in anyone's favour.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  cachedCuOf,
  cacheShareOf,
  cuFor,
  cuOf,
  estimatedRequests,
  notificationCuOf,
  parseUsd,
  tariffOf,
  usdText,
} from "../../../src/core/billing/price.ts";
import { byStrategy } from "../../../src/core/routing/strategy.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";

const factors = byStrategy(({ factor }) => factor);
const tariff = tariffOf({
  factors,
  nanoPerCu: 5_000,
  cachePercent: 100,
  notificationCu: 3,
  weights: {},
});

test("every weight of the published table at load-balanced", () => {
  const weights: Readonly<Record<number, string>> = {
    1: "eth_blockNumber eth_chainId eth_syncing net_listening net_version web3_clientVersion",
    3: "eth_call eth_getBalance eth_getTransactionReceipt something_unlisted",
    5:
      "eth_getBlockByHash eth_getBlockByNumber eth_newFilter eth_getFilterChanges " +
      "eth_sendRawTransaction",
    15: "eth_getLogs eth_getFilterLogs eth_getBlockReceipts",
    50: "debug_traceCall debug_traceTransaction trace_call trace_replayTransaction",
    100: "debug_traceBlockByNumber debug_traceBlockByHash trace_block",
  };
  for (const [cu, names] of Object.entries(weights)) {
    for (const name of names.split(" "))
      assert.equal(cuOf(tariff, methodOf(name), "load-balanced"), Number(cu), name);
  }
});

test("the factor of a strategy is applied and rounded down, to at least one", () => {
  const cost = (name: string) => [
    cuOf(tariff, methodOf(name), "latency-weighted"),
    cuOf(tariff, methodOf(name), "fastest"),
  ];
  assert.deepEqual(
    [cost("eth_blockNumber"), cost("eth_call"), cost("eth_getLogs")],
    [
      [1, 2],
      [4, 6],
      [22, 30],
    ],
  );
  assert.equal(notificationCuOf(tariff, "fastest"), 6);
  const free = tariffOf({
    factors: { ...factors, fastest: 0.1 },
    nanoPerCu: 5_000,
    cachePercent: 100,
    notificationCu: 3,
    weights: { eth_call: 0 },
  });
  assert.deepEqual(
    [
      cuOf(free, methodOf("eth_blockNumber"), "fastest"),
      cuOf(free, methodOf("eth_call"), "load-balanced"),
    ],
    [1, 1],
  );
});

test("a kept answer costs its share, rounded up to whole units, and never more than its call", () => {
  for (let cachePercent = 0; cachePercent <= 100; cachePercent++) {
    for (const cu of [1, 2, 3, 7, 15, 50, 99, 100, 101, 1_000_000_000, 200_000_000_000]) {
      const cached = cachedCuOf({ cachePercent }, cu);
      assert.ok(Number.isSafeInteger(cached) && cached <= cu, `${cachePercent} % of ${cu}`);
      // The least whole number that is not below the share, in exact arithmetic.
      const exact = (BigInt(cu) * BigInt(cachePercent) + 99n) / 100n;
      assert.equal(BigInt(cached), exact, `${cachePercent} % of ${cu}`);
    }
    assert.equal(cacheShareOf({ cachePercent }), cachePercent / 100);
  }
});

test("a configured weight replaces that of the table, and no other", () => {
  const other = tariffOf({
    factors,
    nanoPerCu: 5_000,
    cachePercent: 100,
    notificationCu: 3,
    weights: { eth_call: 7, unknown: 9 },
  });
  assert.deepEqual(
    ["eth_call", "eth_getBalance", "no_such"].map((name) =>
      cuOf(other, methodOf(name), "load-balanced"),
    ),
    [7, 3, 9],
  );
});

test("amounts are plain decimals without trailing zeros, and read back as they were", () => {
  assert.deepEqual(
    [
      0,
      0n,
      5_000,
      1_000_000_000n,
      25_000_000,
      1_300_000_000n,
      -5_000n,
      123_456_789_012_345_678n,
    ].map((it) => usdText(it)),
    ["0", "0", "0.000005", "1", "0.025", "1.3", "-0.000005", "123456789.012345678"],
  );
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 18n - 1n }), (amount) => {
      const text = usdText(amount);
      assert.match(text, /^\d+(\.\d*[1-9])?$/);
      assert.equal(parseUsd(text), amount);
      if (amount <= BigInt(Number.MAX_SAFE_INTEGER)) assert.equal(usdText(Number(amount)), text);
    }),
  );
});

test("what is no plain decimal is no amount", () => {
  for (const text of [
    "",
    "-1",
    "+1",
    "1.",
    ".5",
    "1e3",
    " 1",
    "1 ",
    "0x10",
    "1,5",
    "1.0000000001",
    "1234567890",
    "NaN",
    "Infinity",
    "1_000",
    "١",
  ])
    assert.equal(parseUsd(text), null, text);
});

test("a balance buys whole units, and estimates follow the weights", () => {
  assert.equal(cuFor(tariff, 24_999n), 4);
  assert.deepEqual(estimatedRequests(5_000), {
    cheap_reads: 5_000,
    standard_reads: 1_666,
    heavy_reads: 333,
  });
});
