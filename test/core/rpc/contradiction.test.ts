// An answer is held against its question: what the official exchanges answer never contradicts
// theirs, and the answer to another block, transaction or filter does.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readBlockRef } from "../../../src/core/rpc/call.ts";
import { QUOTE } from "../../../src/core/rpc/json.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { contradictionIn, type Extent } from "../../../src/core/rpc/result-block.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";
import { readExchanges } from "../../conformance/exchanges.ts";

function contradictionOf(
  [methodName, params]: readonly [methodName: string, params: unknown],
  result: unknown,
  extent: Extent = "ends",
): string | null {
  const method = methodOf(methodName);
  const written = writeRequest(methodName, Buffer.from(JSON.stringify(params)));
  const block = readBlockRef(written.body, written.params, method);
  const bytes = Buffer.isBuffer(result) ? result : Buffer.from(JSON.stringify(result));
  const span = { start: 0, end: bytes.length };
  return contradictionIn({ methodName, method, block, ...written }, bytes, span, extent);
}

const hash = (letter: string): string => `0x${letter.repeat(64)}`;
const ADDRESS = `0x${"aA".repeat(20)}`;
const OTHER = `0x${"bb".repeat(20)}`;
const log = (more: object) => ({
  address: ADDRESS,
  blockNumber: "0x5",
  blockHash: hash("b"),
  ...more,
});

test("no official exchange contradicts its question", () => {
  let held = 0;
  for (const { method, request, answer } of readExchanges()) {
    const { params = [] } = JSON.parse(request) as { params?: unknown };
    const { result = null } = JSON.parse(answer) as { result?: unknown };
    if (methodOf(method).naming === null || "error" in JSON.parse(answer)) continue;
    held++;
    const bytes = Buffer.from(JSON.stringify(result));
    for (const extent of ["ends", "all"] as const)
      assert.equal(contradictionOf([method, params], bytes, extent), null, request);
    for (let length = 1; length <= bytes.length; length += Math.ceil(bytes.length / 200)) {
      const begun = bytes.subarray(0, length);
      if (bytes[0] !== QUOTE)
        assert.equal(contradictionOf([method, params], begun, "beginning"), null, `${begun}`);
    }
  }
  assert.ok(held > 70, `${held}`);
});

test("the answer to another question contradicts", () => {
  for (const [method, params, result, why] of [
    ["eth_getBlockByNumber", ["0x5", false], { number: "0x6", hash: hash("a") }, "number"],
    ["eth_getBlockByHash", [hash("a"), false], { number: "0x6", hash: hash("b") }, "hash"],
    ["eth_getBlockByNumber", ["0x5", false], [], "form"],
    ["eth_getBlockByHash", [hash("a"), false], hash("a"), "form"],
    ["eth_getBlockReceipts", ["0x5"], { blockNumber: "0x5" }, "form"],
    ["eth_getBlockReceipts", ["0x5"], [hash("a")], "form"],
    ["eth_getTransactionReceipt", [hash("a")], true, "form"],
    ["eth_getLogs", [{}], {}, "form"],
    ["eth_getLogs", [{}], [hash("a")], "form"],
    ["eth_getBalance", [ADDRESS, "0x5"], { number: "0x6" }, "form"],
    ["eth_getBalance", [ADDRESS, "0x5"], null, "form"],
    ["eth_gasPrice", [], "12", "form"],
    ["eth_chainId", [], 1, "form"],
    ["eth_call", [{}, "0x5"], "execution reverted", "form"],
    ["eth_getBlockReceipts", ["0x5"], [{ blockNumber: "0x6", blockHash: hash("a") }], "number"],
    ["eth_getBlockReceipts", [hash("a")], [{ blockNumber: "0x6", blockHash: hash("b") }], "hash"],
    ["eth_getTransactionByHash", [hash("a")], { hash: hash("b"), blockHash: hash("c") }, "hash"],
    ["eth_getTransactionReceipt", [hash("a")], { transactionHash: hash("b"), logs: [] }, "hash"],
    [
      "eth_getTransactionByBlockHashAndIndex",
      [hash("a"), "0x1"],
      { blockHash: hash("a"), blockNumber: "0x1", transactionIndex: "0x2" },
      "index",
    ],
    [
      "eth_getTransactionByBlockNumberAndIndex",
      ["0x4", "0x2"],
      { blockHash: hash("a"), blockNumber: "0x5", transactionIndex: "0x2" },
      "number",
    ],
    ["eth_getLogs", [{ fromBlock: "0x6", toBlock: "0x9" }], [log({})], "range"],
    ["eth_getLogs", [{ fromBlock: "0x1", toBlock: "0x4" }], [log({})], "range"],
    ["eth_getLogs", [{ blockHash: hash("a") }], [log({})], "hash"],
    ["eth_getLogs", [{ fromBlock: "0x1", toBlock: "0x9", address: OTHER }], [log({})], "address"],
    ["eth_getLogs", [{ fromBlock: "0x1", toBlock: "0x9", address: [OTHER] }], [log({})], "address"],
    [
      "eth_getLogs",
      [{ fromBlock: "0x1", toBlock: "0x5" }],
      [log({}), log({ blockNumber: "0x6" })],
      "range",
    ],
    ["eth_getLogs", [{ topics: [hash("a")] }], [log({ topics: [hash("b")] })], "topics"],
    ["eth_getLogs", [{ topics: [null, hash("a")] }], [log({ topics: [hash("b")] })], "topics"],
    [
      "eth_getLogs",
      [{ topics: [null, [hash("a"), hash("c")]] }],
      [log({ topics: [hash("b"), hash("c")] }), log({ topics: [hash("b"), hash("d")] })],
      "topics",
    ],
  ] as const)
    assert.equal(contradictionOf([method, params], result), why, `${method} ${why}`);
});

test("what says the same in another spelling, or says nothing, does not contradict", () => {
  for (const [method, params, result] of [
    ["eth_getBlockByNumber", ["0x05", false], { number: "0x5", hash: hash("a") }],
    ["eth_getBlockByNumber", ["latest", false], { number: "0x5", hash: hash("a") }],
    ["eth_getBlockByHash", [hash("A"), false], { number: "0x6", hash: hash("a") }],
    ["eth_getTransactionByHash", [hash("A")], { hash: hash("a") }],
    ["eth_getTransactionReceipt", [hash("a")], { status: "0x1" }],
    ["eth_getLogs", [{ fromBlock: "0x5", toBlock: "latest", address: [ADDRESS] }], [log({})]],
    ["eth_getLogs", [{ address: [] }], [log({ blockNumber: null })]],
    ["eth_getLogs", [{ topics: [hash("A"), null, []] }], [log({ topics: [hash("a")] })]],
    ["eth_getLogs", [{ topics: [null, hash("a")] }], [log({ more: { blockNumber: "0x7" } })]],
    ["eth_getLogs", [{ toBlock: "0x6" }], [log({}), log({ l1: { blockNumber: "0x7" } })]],
    ["eth_getLogs", [{ blockHash: hash("B") }], [log({})]],
    ["eth_getLogs", [{ fromBlock: "0x1", toBlock: "0x2" }], []],
    ["eth_getLogs", [null], [log({})]],
    ["eth_getLogs", [{ topics: [null, hash("a"), null] }], [log({ topics: [1, hash("a")] })]],
    ["eth_getLogs", [{}], null],
    ["eth_getBlockReceipts", ["0x5"], null],
    ["eth_getBalance", [ADDRESS, "0x5"], "0x"],
    ["eth_getCode", [ADDRESS, "0x5"], "0x"],
    ["eth_syncing", [], { number: "0x6" }],
    ["debug_traceTransaction", [hash("a")], "execution reverted"],
  ] as const)
    assert.equal(
      contradictionOf([method, params], result),
      null,
      `${method} ${JSON.stringify(params)}`,
    );
});

test("what is kept is read to its end: an element in the middle contradicts", () => {
  for (const [method, params, elements, why] of [
    ["eth_getLogs", [{ address: ADDRESS }], [log({}), log({ address: OTHER }), log({})], "address"],
    ["eth_getLogs", [{ toBlock: "0x5" }], [log({}), log({ blockNumber: "0x6" }), log({})], "range"],
    ["eth_getLogs", [{}], [log({}), null, log({})], "form"],
    [
      "eth_getBlockReceipts",
      ["0x5"],
      ["0x5", "0x6", "0x5"].map((blockNumber) => ({ blockNumber })),
      "number",
    ],
  ] as const) {
    assert.equal(contradictionOf([method, params], elements, "ends"), null, method);
    assert.equal(contradictionOf([method, params], elements, "all"), why, method);
  }
  const broken = Buffer.from(`[${JSON.stringify(log({}))} 1]`);
  assert.equal(contradictionOf(["eth_getLogs", [{}]], broken, "all"), "form");
});

test("the beginning of an answer contradicts by what it names completely", () => {
  const begins = (text: string, length = text.length): Buffer =>
    Buffer.from(text).subarray(0, length);
  const block = `{"difficulty":"0x0","hash":"${hash("b")}","number":"0x6","size":"0x`;
  const transaction = `{"blockHash":"${hash("c")}","hash":"${hash("b")}","input":"0x`;
  const logs = `[${JSON.stringify(log({}))},{"addr`;
  const receipt = `{"logs":[{"transactionHash":"${hash("b")}"},{"da`;
  for (const [method, params, first, why] of [
    ["eth_getBlockByHash", [hash("a"), true], begins(block), "hash"],
    ["eth_getBlockByHash", [hash("a"), true], begins(block, 80), null],
    ["eth_getBlockByHash", [hash("b"), true], begins(block), null],
    ["eth_getBlockByNumber", ["0x5", true], begins('{"number":"0x6","hash":"0x'), "number"],
    ["eth_getBlockByNumber", ["0x65", true], begins('{"number":"0x6'), null],
    ["eth_getTransactionByHash", [hash("a")], begins(transaction), "hash"],
    ["eth_getTransactionByHash", [hash("a")], begins(transaction, 120), null],
    ["eth_getTransactionReceipt", [hash("a")], begins(receipt), "hash"],
    ["eth_getTransactionReceipt", [hash("a")], begins(receipt, 60), null],
    ["eth_getLogs", [{ address: OTHER }], begins(logs), "address"],
    ["eth_getLogs", [{ address: OTHER }], begins(logs, 100), null],
    ["eth_getLogs", [{ address: ADDRESS }], begins(logs), null],
    ["eth_call", [{}, "0x5"], begins('{"data":"0x'), "form"],
  ] as const)
    assert.equal(contradictionOf([method, params], first, "beginning"), why, `${first}`);
});
