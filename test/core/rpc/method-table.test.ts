// The method table as a configuration extends it: attributes, places in per-method arrays, what
// stays after a reload.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type BlockParam,
  MAX_ADDED_METHODS,
  METHOD_SLOTS,
  METHODS,
  type Method,
  methodOf,
  UNKNOWN_METHOD,
} from "../../../src/core/rpc/method.ts";
import { type ConfiguredMethod, methodTable } from "../../../src/core/rpc/method-table.ts";

const NOTHING = { kind: null, blockAt: null, cu: null, deadline: null } as const;
const added = (name: string, settings: Partial<ConfiguredMethod> = {}): ConfiguredMethod => ({
  ...NOTHING,
  name,
  kind: "read",
  ...settings,
});

test("a method of the configuration has a row of its own, with the defaults of unlisted ones", () => {
  const table = methodTable([
    added("foo_read"),
    added("foo_write", { kind: "write", cu: 7, blockAt: 2, deadline: "traceTx" }),
  ]);
  const { index, ...read } = table.of("foo_read");
  assert.deepEqual(read, {
    name: "foo_read",
    origin: "configured",
    category: "unknown",
    cu: 3,
    replaySafe: true,
    deadline: "default",
    block: null,
    resource: "state",
    handling: "route",
    transaction: null,
    coalesce: false,
    mayBeMissing: false,
    hedge: false,
    batch: false,
    cache: null,
    naming: null,
    fillsBlock: false,
    takesHash: false,
    byHashName: null,
  });
  assert.equal(index, METHODS.length);
  const { replaySafe, cu, block, deadline } = table.of("foo_write");
  assert.deepEqual(
    [replaySafe, cu, block, deadline],
    [false, 7, { kind: "block", at: 2 }, "traceTx"],
  );
  assert.equal(table.of("foo_other"), UNKNOWN_METHOD);
  assert.deepEqual(
    table.rows.slice(METHODS.length).map((it) => it.name),
    ["foo_read", "foo_write"],
  );
});

test("a known method keeps its place and whatever is not said of it", () => {
  const table = methodTable([{ ...NOTHING, name: "eth_getLogs", cu: 40 }]);
  assert.deepEqual(table.of("eth_getLogs"), { ...methodOf("eth_getLogs"), cu: 40 });
  assert.equal(table.rows.length, METHODS.length);
  assert.equal(table.of("eth_call"), methodOf("eth_call"));
});

test(
  "a place belongs to one name for good: reloads neither move a method nor give its place to " +
    "another",
  () => {
    const first = methodTable([added("a_a"), added("a_b")]);
    const second = methodTable([added("a_c"), added("a_b")], first);
    assert.equal(second.of("a_b").index, first.of("a_b").index);
    assert.notEqual(second.of("a_c").index, first.of("a_a").index);
    assert.equal(methodTable([added("a_a")], second).of("a_a").index, first.of("a_a").index);
  },
);

test("however often names change, places stay within the arrays", () => {
  let table = methodTable([]);
  for (let round = 0; round < 10; round++) {
    table = methodTable(
      Array.from({ length: MAX_ADDED_METHODS }, (_, n) => added(`r${round}_m${n}`)),
      table,
    );
    assert.ok(
      table.rows.every((it) => it.index < METHOD_SLOTS) && table.labels.length <= METHOD_SLOTS,
    );
  }
  assert.equal(table.of("r9_m0").index, UNKNOWN_METHOD.index);
  assert.equal(table.of("r9_m0").replaySafe, true);
});

test("what chains and vendors add is known, and only reads of theirs may be sent twice", () => {
  const rowsOf = (names: string) => names.split(" ").map((name) => methodOf(name));
  const reads = rowsOf(
    "eth_getStorageValues eth_capabilities eth_config optimism_outputAtBlock arbtrace_block " +
      "zks_estimateFee linea_estimateGas bor_getAuthor ots_hasCode eth_getUserOperationReceipt " +
      "alchemy_getAssetTransfers",
  );
  for (const { name, replaySafe, origin } of reads)
    assert.ok(replaySafe && origin === "built_in", name);
  const writes = rowsOf(
    "eth_sendRawTransactionSync eth_sendRawTransactionConditional eth_sendUserOperation " +
      "timeboost_sendExpressLaneTransaction zks_sendRawTransactionWithDetailedOutput " +
      "mev_sendBundle pm_sponsorUserOperation",
  );
  for (const { name, replaySafe, origin } of writes)
    assert.ok(!replaySafe && origin === "built_in", name);
});

test("what may share a request is a read with a short answer, and a configuration can only take it out", () => {
  const table = methodTable([
    added("eth_call", { kind: "write" }),
    added("eth_getCode", { kind: null, deadline: "traceTx" }),
    added("eth_getBalance", { cu: 9, deadline: "cheap" }),
    added("foo_read", { deadline: "cheap" }),
  ]);
  assert.equal(table.of("eth_getBalance").batch, true);
  for (const name of ["eth_call", "eth_getCode", "foo_read"])
    assert.equal(table.of(name).batch, false, name);
  for (const name of [
    "eth_sendRawTransaction",
    "eth_getLogs",
    "trace_block",
    "eth_getBlockReceipts",
  ])
    assert.equal(methodOf(name).batch, false, name);
  assert.ok(METHODS.every(({ batch, replaySafe }) => !batch || replaySafe));
});

test("methods that nodes and vendors have added have rows of their own", () => {
  const rows: readonly (readonly [names: string, row: Partial<Method>])[] = [
    ["eth_getBlockAccessList", { block: at(0), mayBeMissing: true, batch: false, cu: 3 }],
    ["debug_getRawBlockAccessList", { block: at(0), resource: "blocks", hedge: false }],
    ["eth_baseFee", { origin: "built_in", category: "eip1559", cache: { kind: "head" } }],
    ["eth_config", { cache: { kind: "head" }, deadline: "cheap" }],
    [
      "eth_getStorageValues",
      { block: at(1), cache: { kind: "block", params: 2 }, fillsBlock: true, takesHash: true },
    ],
    ["debug_executionWitness", { block: at(0), resource: "traces", cu: 100 }],
    ["debug_getBlockReceipts", { block: at(0), resource: "receipts", cu: 15 }],
    ["klay_getBlockReceipts parity_getBlockReceipts", { resource: "receipts", cu: 15 }],
    ["debug_accountRange", { block: at(0), resource: "state" }],
    ["debug_intermediateRoots", { block: null, resource: "traces", deadline: "traceBlock" }],
    ["debug_codeByHash", { block: at(1), resource: "state" }],
    ["debug_traceChain trace_blockOpcodeGas", { block: at(0), resource: "traces", cu: 100 }],
    ["trace_transactionOpcodeGas trace_transactionStorageAccess", { cu: 50, hedge: false }],
    ["op_supportedCapabilities rpc_modules", { deadline: "cheap", block: null }],
    ["pimlico_getUserOperationStatus monad_getTxnStatus", { block: null, hedge: true }],
    ["clique_getSigners", { block: at(0), resource: "blocks" }],
  ];
  for (const [names, row] of rows)
    for (const name of names.split(" ")) {
      const known = methodOf(name);
      assert.deepEqual({ ...known, ...row, name }, known, name);
      assert.equal(known.replaySafe, true, name);
    }
  const writes: readonly (readonly [name: string, transaction: Method["transaction"]])[] = [
    ["realtime_sendRawTransaction", "receipt"],
    ["eth_sendRawTransactionWithPreconf", "other"],
    ["eth_sendEndOfBlockBundle", null],
    ["eth_sendMegabundle", null],
    ["pimlico_sponsorUserOperation", null],
  ];
  for (const [name, transaction] of writes) {
    const { replaySafe, hedge, batch, cache, ...known } = methodOf(name);
    assert.deepEqual(
      [known.name, known.transaction, replaySafe, hedge, batch, cache],
      [name, transaction, false, false, false, null],
    );
  }
  for (const name of ["eth_getBlockAccessListByBlockHash", "eth_getBlockAccessListByBlockNumber"])
    assert.equal(methodOf(name), UNKNOWN_METHOD, name);
});

function at(index: number): BlockParam {
  return { kind: "block", at: index };
}
