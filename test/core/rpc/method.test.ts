// The method table: every row is sane, prices are the published tariff, and what is not listed gets
// one cautious row.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  CATEGORIES,
  METHODS,
  mayBeConfigured,
  methodOf,
  methodOn,
  UNKNOWN_METHOD,
} from "../../../src/core/rpc/method.ts";

const LISTED = METHODS.slice(2);

/** The tariff in compute units at load-balanced; everything else costs 3. */
const TARIFF: readonly (readonly [cu: number, names: string])[] = [
  [1, "eth_blockNumber eth_chainId eth_syncing net_listening net_version web3_clientVersion"],
  [
    5,
    "eth_getBlockByHash eth_getBlockByNumber eth_newFilter eth_getFilterChanges " +
      "eth_sendRawTransaction",
  ],
  [15, "eth_getLogs eth_getFilterLogs eth_getBlockReceipts erigon_getLogs erigon_getLatestLogs"],
  [15, "debug_getBlockReceipts klay_getBlockReceipts parity_getBlockReceipts"],
  [
    50,
    "debug_traceCall debug_traceTransaction trace_call trace_callMany trace_rawTransaction " +
      "trace_replayTransaction trace_transaction trace_get",
  ],
  [
    50,
    "debug_traceCallMany arbtrace_call arbtrace_callMany arbtrace_replayTransaction " +
      "arbtrace_transaction arbtrace_get tenderly_traceTransaction",
  ],
  [50, "trace_transactionOpcodeGas trace_transactionStorageAccess"],
  [100, "debug_traceChain debug_executionWitness debug_intermediateRoots trace_blockOpcodeGas"],
  [50, "ots_getInternalOperations ots_traceTransaction ots_getTransactionError"],
  [100, "arbtrace_block arbtrace_filter arbtrace_replayBlockTransactions"],
  [
    100,
    "debug_traceBlock debug_traceBlockByHash debug_traceBlockByNumber trace_block trace_filter " +
      "trace_replayBlockTransactions",
  ],
];

test("every row has its own name, its own index in order, and sane values", () => {
  assert.equal(new Set(METHODS.map((it) => it.name)).size, METHODS.length);
  for (const [index, method] of METHODS.entries()) {
    assert.equal(method.index, index);
    assert.match(method.name, /^[a-z0-9]+(_[a-zA-Z0-9]+)*$/);
    assert.ok(CATEGORIES.includes(method.category), method.name);
    assert.ok(Number.isInteger(method.cu) && method.cu >= 1, method.name);
    assert.ok(
      method.block === null || (Number.isInteger(method.block.at) && method.block.at >= 0),
      method.name,
    );
  }
});

test("every listed name leads to its own row", () => {
  for (const method of LISTED) assert.equal(methodOf(method.name), method);
});

test("prices are those of the tariff, and everything that is not in it costs 3", () => {
  const prices = new Map(
    TARIFF.flatMap(([cu, names]) => names.split(" ").map((name) => [name, cu] as const)),
  );
  for (const name of prices.keys())
    assert.ok(
      LISTED.some((it) => it.name === name),
      `${name} is missing`,
    );
  for (const method of METHODS) assert.equal(method.cu, prices.get(method.name) ?? 3, method.name);
});

test("whatever may change something, or has state at one node, is sent to one provider only", () => {
  const changing =
    /^([a-z0-9]+_send|[a-z]+_sponsor|[a-z]+_cancel|eth_sign|eth_accounts|eth_newFilter|eth_newBlockFilter|eth_newPending|eth_uninstall|eth_getFilterChanges|personal|unknown|blocked)/;
  for (const method of METHODS)
    if (changing.test(method.name)) assert.equal(method.replaySafe, false, method.name);
  for (const name of [
    "eth_call",
    "eth_getLogs",
    "eth_getBalance",
    "debug_traceTransaction",
    "eth_estimateGas",
  ])
    assert.equal(methodOf(name).replaySafe, true);
});

test(
  "a subscription is asked of the next provider when one refuses it: its id is ours, so " +
    "nothing happens twice",
  () => {
    assert.equal(methodOf("eth_subscribe").replaySafe, true);
  },
);

test("deadlines follow the class of the work: traces of blocks longest, facts shortest", () => {
  const classOf = (name: string): string => methodOf(name).deadline;
  assert.deepEqual(
    [
      "eth_blockNumber",
      "eth_getBalance",
      "eth_call",
      "eth_getLogs",
      "debug_traceTransaction",
      "trace_block",
      "debug_traceBlockByNumber",
      "no_such",
    ].map(classOf),
    ["cheap", "standard", "default", "default", "traceTx", "traceBlock", "traceBlock", "default"],
  );
});

test("logs, filters and subscriptions are categories of their own", () => {
  const categoryOf = (name: string): string => methodOf(name).category;
  assert.deepEqual(
    [
      "eth_getLogs",
      "eth_newFilter",
      "eth_getFilterLogs",
      "eth_subscribe",
      "eth_feeHistory",
      "eth_blobBaseFee",
      "txpool_content",
      "eth_sign",
    ].map(categoryOf),
    ["logs", "filters", "filters", "subscriptions", "eip1559", "eip4844", "txpool", "local_only"],
  );
});

test("names for operators of nodes, for wallets and for development chains are blocked", () => {
  const blocked =
    "admin_peers engine_newPayloadV4 miner_start les_serverInfo testing_buildBlockV1 " +
    "wallet_getPermissions debug_setHead debug_dumpBlock debug_standardTraceBlockToFile " +
    "debug_standardTraceBadBlockToFile debug_bundler_clearState eth_resend " +
    "eth_signUserOperation eth_getWork eth_submitWork eth_submitHashrate anvil_setBalance " +
    "hardhat_reset evm_mine tenderly_setBalance";
  for (const name of blocked.split(" ")) {
    assert.equal(methodOf(name).handling, "blocked", name);
    const isForDevelopment = /^(?:anvil|hardhat|evm|tenderly)_/.test(name);
    const there = methodOn(methodOf(name), name, true);
    assert.equal(there, isForDevelopment ? UNKNOWN_METHOD : methodOf(name), name);
    assert.equal(mayBeConfigured(name), !name.startsWith("wallet_"), name);
  }
  const served = "debug_setHeadless debug_traceBlock eth_resendAll evmos_x tenderly_estimateGas";
  for (const name of served.split(" ")) assert.equal(methodOf(name).handling, "route", name);
});

test("methods that use keys of a node are blocked, whatever follows personal_", () => {
  const blocked = [
    "eth_sendTransaction",
    "eth_coinbase",
    "eth_sign",
    "eth_signTransaction",
    "eth_signTypedData_v4",
    "personal_unlockAccount",
    "personal_",
    "personal_x",
  ];
  for (const name of blocked) assert.equal(methodOf(name).handling, "blocked", name);
  for (const name of ["eth_subscribe", "eth_unsubscribe"])
    assert.equal(methodOf(name).handling, "socket_only");
  for (const name of ["eth_chainId", "net_version", "eth_accounts"])
    assert.equal(methodOf(name).handling, "local");
});

test("any name that is not listed shares one cautious row, so that names never become memory", () => {
  const listed = new Set(LISTED.map((it) => it.name));
  const names = fc.oneof(
    fc.string(),
    fc.constantFrom(
      "__proto__",
      "constructor",
      "toString",
      "unknown",
      "blocked",
      "ETH_CALL",
      "eth_call ",
      "eth_Call",
      "",
    ),
  );
  fc.assert(
    fc.property(names, (name) => {
      fc.pre(!listed.has(name) && methodOf(name).handling === "route");
      assert.equal(methodOf(name), UNKNOWN_METHOD);
    }),
  );
  const { category, replaySafe, deadline, block, handling, cu } = UNKNOWN_METHOD;
  assert.deepEqual(
    { category, replaySafe, deadline, block, handling, cu },
    {
      category: "unknown",
      replaySafe: false,
      deadline: "default",
      block: null,
      handling: "route",
      cu: 3,
    },
  );
});
