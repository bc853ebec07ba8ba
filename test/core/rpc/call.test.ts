// Which blocks a call reads, from its raw parameters: right for every form of the execution API,
// and never a crash or a wrong reason for anything else.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type BlockRef, readBlockRef } from "../../../src/core/rpc/call.ts";
import { METHODS, methodOf } from "../../../src/core/rpc/method.ts";
import { valueText, whiteSpace } from "../../fakes/json-text.ts";

const NONE: BlockRef = { kind: "none" };
const LATEST_TAGS = ["latest", "safe", "finalized", "pending"];

function read(method: string, params: string): BlockRef {
  const bytes = Buffer.from(params);
  return readBlockRef(bytes, { start: 0, end: bytes.length }, methodOf(method));
}

/**
 * Where each method of the execution API, and of the nodes that extend it, has its block parameter.
 */
const BLOCK_AT: Readonly<Record<string, number>> = {
  eth_getBalance: 1,
  eth_getCode: 1,
  eth_getTransactionCount: 1,
  eth_getStorageAt: 2,
  eth_getProof: 2,
  eth_call: 1,
  eth_estimateGas: 1,
  eth_createAccessList: 1,
  eth_simulateV1: 1,
  eth_feeHistory: 1,
  eth_getBlockByNumber: 0,
  eth_getBlockReceipts: 0,
  eth_getBlockTransactionCountByNumber: 0,
  eth_getUncleCountByBlockNumber: 0,
  eth_getTransactionByBlockNumberAndIndex: 0,
  eth_getUncleByBlockNumberAndIndex: 0,
  debug_traceCall: 1,
  debug_traceBlockByNumber: 0,
  trace_call: 2,
  trace_callMany: 1,
  trace_block: 0,
  trace_replayBlockTransactions: 0,
};

test("a block number, tag or hash object is read at the parameter where each method has it", () => {
  for (const [method, at] of Object.entries(BLOCK_AT)) {
    const with_ = (block: string): string =>
      `[${Array.from({ length: at }, (_, n) => `{"n":[${n},"0x1"]}`).join(" , ")}${at > 0 ? " , " : ""}${block} ` +
      ",true]";
    assert.deepEqual(read(method, with_('"0x10"')), { kind: "number", number: 16 }, method);
    assert.deepEqual(read(method, with_('"earliest"')), { kind: "earliest" }, method);
    assert.deepEqual(
      read(method, with_('{"blockHash":"0xab","requireCanonical":true}')),
      { kind: "hash" },
      method,
    );
    assert.deepEqual(
      read(method, with_('{"blockNumber":"0x10"}')),
      { kind: "number", number: 16 },
      method,
    );
    assert.deepEqual(read(method, with_('"latest"')), NONE, method);
    assert.deepEqual(
      read(method, `[${Array.from({ length: at }, () => "1").join(",")}]`),
      NONE,
      `${method} without it`,
    );
  }
});

test("tags near the head are told apart from those that need history", () => {
  const tags = LATEST_TAGS.map((tag) => read("eth_getBalance", `["0xa","${tag}"]`));
  assert.deepEqual(tags, [
    NONE,
    { kind: "tag", tag: "safe" },
    { kind: "tag", tag: "finalized" },
    { kind: "tag", tag: "pending" },
  ]);
});

test("a log filter is read as its range, with null for the head and 0 for the beginning", () => {
  const range = (filter: string): BlockRef => read("eth_getLogs", `[${filter}]`);
  assert.deepEqual(range('{"fromBlock":"0x1","toBlock":"0xff"}'), {
    kind: "range",
    from: 1,
    to: 255,
  });
  assert.deepEqual(range('{"toBlock":"0xff","topics":[null,["0x1"]],"fromBlock":"earliest"}'), {
    kind: "range",
    from: 0,
    to: 255,
  });
  assert.deepEqual(range('{"fromBlock":"latest"}'), { kind: "range", from: null, to: null });
  assert.deepEqual(range("{}"), { kind: "range", from: null, to: null });
  assert.deepEqual(range('{"blockHash":"0x1","fromBlock":"0x1"}'), NONE);
  assert.deepEqual(range('{"__proto__":{"fromBlock":"0x1"}}'), {
    kind: "range",
    from: null,
    to: null,
  });
});

test("what is malformed is no reason for anything", () => {
  const blocks = [
    '"0x"',
    '"0xzz"',
    '"16"',
    "16",
    "null",
    "true",
    "[]",
    '""',
    '"EARLIEST"',
    '"0x1 "',
    '"-0x1"',
    '"0x12345678901234"',
    '{"blockNumber":16}',
  ];
  for (const block of blocks)
    assert.deepEqual(read("eth_getBalance", `["0xa",${block}]`), NONE, block);
  for (const params of ["[]", "{}", '{"block":"earliest"}', '"earliest"', "[[]]"])
    assert.deepEqual(read("eth_getBalance", params), NONE, params);
  for (const params of ["[]", "[null]", '["0x1"]', "[[]]", '[{"fromBlock":1,"toBlock":{}}]']) {
    const found = read("eth_getLogs", params);
    assert.ok(
      found.kind === "none" || (found.kind === "range" && found.from === null && found.to === null),
      params,
    );
  }
});

test("a filter object of more than a megabyte is passed on unread, in no time", () => {
  const huge = `[{"address":[${'"0x0000000000000000000000000000000000000000",'.repeat(30_000)}"0x1"],"fromBlock":"0x1"}]`;
  assert.deepEqual(read("eth_getLogs", huge), NONE);
});

test("no parameters of any method make it throw, and the answer is always a safe number", () => {
  const block = fc.oneof(
    valueText,
    fc.constantFrom(
      '"earliest"',
      '"0x1"',
      '{"blockHash":1}',
      '{"blockNumber":"0x5","blockHash":null}',
      '{"__proto__":1,"fromBlock":"0xfffffffffffff"}',
    ),
  );
  const list = fc
    .array(fc.tuple(whiteSpace, block, whiteSpace), { maxLength: 4 })
    .map((items) => `[${items.map((it) => it.join("")).join(",")}]`);
  fc.assert(
    fc.property(
      fc.constantFrom(...METHODS),
      fc.oneof({ weight: 4, arbitrary: list }, { weight: 1, arbitrary: valueText }),
      (method, params) => {
        const bytes = Buffer.from(params);
        const found = readBlockRef(bytes, { start: 0, end: bytes.length }, method);
        const numbers =
          found.kind === "number"
            ? [found.number]
            : found.kind === "range"
              ? [found.from ?? 0, found.to ?? 0]
              : [];
        for (const it of numbers) assert.ok(Number.isSafeInteger(it) && it >= 0, params);
        if (method.block === null) assert.deepEqual(found, NONE);
      },
    ),
    { numRuns: 5_000 },
  );
});

test("absent parameters read as no block", () => {
  for (const method of METHODS)
    assert.deepEqual(readBlockRef(Buffer.from("{}"), { start: -1, end: -1 }, method), NONE);
});
