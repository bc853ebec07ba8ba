// Which layers of the engine a call passes: writes are asked of one provider at a time and never
// share an answer, what is pending is never shared, and a configuration can only narrow that.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HedgeSettings } from "../../../src/core/provider/profile.ts";
import { DEFAULT_HEDGE } from "../../../src/core/routing/hedge.ts";
import { policyOf } from "../../../src/core/routing/policy.ts";
import { type BlockRef, NO_BLOCK } from "../../../src/core/rpc/call.ts";
import { METHODS, methodOf } from "../../../src/core/rpc/method.ts";
import { methodTable } from "../../../src/core/rpc/method-table.ts";

const SHARING = {
  maxAttempts: 3,
  cache: false,
  coalesce: true,
  hedge: null,
  split: true,
  view: false,
  own: false,
};
const BLOCKS: readonly BlockRef[] = [
  NO_BLOCK,
  { kind: "tag", tag: "pending" },
  { kind: "tag", tag: "safe" },
  { kind: "tag", tag: "finalized" },
  { kind: "earliest" },
  { kind: "hash" },
  { kind: "number", number: 7 },
  { kind: "range", from: 1, to: null },
];

test("a read may have two late attempts beside it; a write is out at one provider at a time", () => {
  assert.equal(policyOf(methodOf("eth_getBalance"), NO_BLOCK, SHARING).maxOpen, 3);
  assert.equal(policyOf(methodOf("eth_sendRawTransaction"), NO_BLOCK, SHARING).maxOpen, 1);
  assert.equal(policyOf(methodOf("vendor_unheardOf"), NO_BLOCK, SHARING).maxOpen, 1);
});

test("a raw transaction passes its layer, by what it is answered with; nothing else does", () => {
  const transactionOf = (name: string) => policyOf(methodOf(name), NO_BLOCK, SHARING).transaction;
  assert.equal(transactionOf("eth_sendRawTransaction"), "hash");
  assert.equal(transactionOf("eth_sendRawTransactionSync"), "receipt");
  assert.equal(transactionOf("eth_call"), null);
  assert.equal(transactionOf("eth_sendTransaction"), null);
});

test("reads are hedged where the settings say so; never writes, traces, logs and unlisted methods", () => {
  const hedged = (name: string) =>
    policyOf(methodOf(name), NO_BLOCK, { ...SHARING, hedge: DEFAULT_HEDGE }).hedge;
  for (const name of ["eth_call", "eth_getBalance", "eth_blockNumber", "eth_getTransactionReceipt"])
    assert.equal(hedged(name), DEFAULT_HEDGE, name);
  for (const name of [
    "eth_sendRawTransaction",
    "eth_getLogs",
    "erigon_getLogs",
    "trace_filter",
    "debug_traceTransaction",
    "txpool_content",
    "vendor_unheardOf",
  ])
    assert.equal(hedged(name), null, name);
  assert.equal(policyOf(methodOf("eth_call"), NO_BLOCK, SHARING).hedge, null);
  // A configuration may declare a known read to be a write.
  const declared = methodTable([
    { name: "eth_call", kind: "write", blockAt: null, cu: null, deadline: null },
  ]).of("eth_call");
  assert.equal(policyOf(declared, NO_BLOCK, { ...SHARING, hedge: DEFAULT_HEDGE }).hedge, null);
});

test("what may be missing is asked again by hash or number, also where nothing is hedged", () => {
  const isAsked = (
    name: string,
    block: BlockRef = NO_BLOCK,
    hedge: HedgeSettings | null = DEFAULT_HEDGE,
  ) => policyOf(methodOf(name), block, { ...SHARING, hedge }).recheckNull;
  assert.equal(isAsked("eth_getTransactionReceipt"), true);
  assert.equal(isAsked("eth_getBlockByHash"), true);
  assert.equal(isAsked("eth_getBlockByNumber", { kind: "number", number: 7 }), true);
  assert.equal(isAsked("eth_getBlockReceipts", { kind: "hash" }), true);
  assert.equal(isAsked("eth_getBlockByNumber"), false, "`latest` is never missing");
  assert.equal(isAsked("eth_getBlockByNumber", { kind: "tag", tag: "pending" }), false);
  assert.equal(isAsked("eth_getBalance"), false);
  assert.equal(isAsked("eth_getTransactionReceipt", NO_BLOCK, null), true);
});

test("equal reads share an answer where the method and the settings say so", () => {
  const isShared = (name: string, block: BlockRef = NO_BLOCK, coalesce = true) =>
    policyOf(methodOf(name), block, { ...SHARING, coalesce }).coalesce;
  assert.equal(isShared("eth_gasPrice"), true);
  assert.equal(isShared("eth_getBalance", { kind: "number", number: 7 }), true);
  assert.equal(isShared("eth_getBalance", { kind: "tag", tag: "finalized" }), true);
  assert.equal(isShared("eth_getBalance", { kind: "tag", tag: "pending" }), false);
  assert.equal(isShared("eth_gasPrice", NO_BLOCK, false), false);
  assert.equal(isShared("eth_getLogs", { kind: "range", from: 1, to: 2 }), false);
  assert.equal(isShared("debug_traceTransaction"), false);
  assert.equal(isShared("vendor_unheardOf"), false);
});

test("a read over a range that begins at a number may be split, where the settings say so", () => {
  const isSplit = (name: string, block: BlockRef, split = true) =>
    policyOf(methodOf(name), block, { ...SHARING, split }).split;
  assert.equal(isSplit("eth_getLogs", { kind: "range", from: 1, to: 2 }), true);
  assert.equal(isSplit("trace_filter", { kind: "range", from: 1, to: null }), true);
  assert.equal(isSplit("eth_getLogs", { kind: "range", from: 1, to: 2 }, false), false);
  assert.equal(isSplit("eth_getLogs", { kind: "range", from: null, to: null }), false);
  assert.equal(isSplit("eth_getLogs", NO_BLOCK), false);
  assert.equal(isSplit("eth_newFilter", { kind: "range", from: 1, to: 2 }), false);
  assert.equal(isSplit("eth_getBalance", { kind: "number", number: 7 }), false);
});

test("of every method and block: what is shared is safe to repeat, and bounds are as configured", () => {
  for (const method of METHODS) {
    for (const block of BLOCKS) {
      for (const coalesce of [true, false]) {
        const settings = {
          maxAttempts: 5,
          cache: true,
          coalesce,
          hedge: DEFAULT_HEDGE,
          split: coalesce,
          view: false,
          own: false,
        };
        const policy = policyOf(method, block, settings);
        const about = `${method.name} ${JSON.stringify(block)} ${coalesce}`;
        assert.equal(policy.maxAttempts, 5, about);
        assert.equal(policy.maxOpen > 1, method.replaySafe, about);
        assert.equal(policy.transaction, method.transaction, about);
        if (policy.hedge !== null) {
          assert.ok(method.hedge && method.replaySafe && method.transaction === null, about);
          assert.doesNotMatch(method.category, /trace|debug|logs|pool/, about);
        }
        if (policy.transaction !== null) assert.equal(method.replaySafe, false, about);
        assert.equal(policy.isPart, false, about);
        if (policy.split) assert.ok(coalesce && method.replaySafe && block.kind === "range", about);
        if (!policy.coalesce) continue;
        assert.ok(coalesce && method.coalesce && method.replaySafe, about);
        assert.equal(method.handling, "route", about);
        assert.ok(block.kind !== "tag" || block.tag !== "pending", about);
      }
    }
  }
});
