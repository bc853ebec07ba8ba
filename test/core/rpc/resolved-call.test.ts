// A call at one block: a tag, or a block that was left out, becomes the block of the view, and no
// other byte changes.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Call, readBlockRef, type View } from "../../../src/core/rpc/call.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { requestByHash, resolveCall } from "../../../src/core/rpc/resolved-call.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";

const HASH = `0x${"ab".repeat(32)}`;
const VIEW: View = { number: 255, hash: HASH, safe: 200, finalized: 100, isAlone: false };
const A = `0x${"1".repeat(40)}`;

function callOf(name: string, params: string): Call {
  const method = methodOf(name);
  const written = writeRequest(name, Buffer.from(params));
  const block = readBlockRef(written.body, written.params, method);
  return { methodName: name, method, block, ...written };
}

/** The parameters that are sent; null = the call stays as it is. */
function resolved(name: string, params: string, view = VIEW): string | null {
  const call = resolveCall(callOf(name, params), view);
  if (call === null) return null;
  const { params: span } = call;
  assert.deepEqual(JSON.parse(call.body.toString()).method, name);
  return span === undefined ? null : call.body.toString("utf8", span.start, span.end);
}

test("a written tag becomes the number of its block, wherever it stands", () => {
  assert.equal(resolved("eth_getBalance", `["${A}","latest"]`), `["${A}","0xff"]`);
  assert.equal(resolved("eth_getBalance", `["${A}", "safe" ]`), `["${A}", "0xc8" ]`);
  assert.equal(resolved("eth_getBlockByNumber", `["finalized",false]`), `["0x64",false]`);
  assert.equal(resolved("eth_feeHistory", `["0x5","latest",[1]]`), `["0x5","0xff",[1]]`);
  assert.equal(resolved("eth_estimateGas", `[{"to":"${A}"},"latest"]`), `[{"to":"${A}"},"0xff"]`);
});

test("a block that is left out is filled in where that means the newest one everywhere", () => {
  assert.equal(resolved("eth_call", `[{"to":"${A}"}]`), `[{"to":"${A}"},"0xff"]`);
  assert.equal(resolved("eth_getStorageAt", `["${A}","0x0" ]`), `["${A}","0x0" ,"0xff"]`);
  assert.equal(resolved("eth_estimateGas", `[{"to":"${A}"}]`), null);
  assert.equal(resolved("eth_call", "[]"), null, "without its own parameters it is no call");
  assert.equal(resolved("eth_getStorageAt", `["${A}"]`), null);
});

test("what names no block of the view is left alone", () => {
  for (const block of [
    '"pending"',
    '"earliest"',
    '"0x5"',
    "null",
    `{"blockHash":"${HASH}"}`,
    '"Latest"',
  ])
    assert.equal(resolved("eth_getBalance", `["${A}",${block}]`), null, block);
  const unknown = { ...VIEW, safe: null };
  assert.equal(resolved("eth_getBalance", `["${A}","safe"]`, unknown), null);
  assert.equal(resolved("eth_getTransactionReceipt", `["${HASH}"]`), null);
});

test("the bounds of a log filter are resolved, in whatever order they stand", () => {
  assert.equal(resolved("eth_getLogs", "[{}]"), '[{"toBlock":"0xff","fromBlock":"0xff"}]');
  assert.equal(
    resolved("eth_getLogs", `[{"toBlock":"latest","fromBlock":"0x1","address":"${A}"}]`),
    `[{"toBlock":"0xff","fromBlock":"0x1","address":"${A}"}]`,
  );
  assert.equal(
    resolved("eth_getLogs", '[{"fromBlock":"safe"}]'),
    '[{"toBlock":"0xff","fromBlock":"0xc8"}]',
  );
  for (const filter of [
    `{"blockHash":"${HASH}"}`,
    '{"fromBlock":"0x1","toBlock":"0x2"}',
    '{"toBlock":"pending"}',
  ])
    assert.equal(resolved("eth_getLogs", `[${filter}]`), null, filter);
  const call = resolveCall(callOf("eth_getLogs", '[{"fromBlock":"0x1"}]'), VIEW);
  assert.deepEqual(call?.block, { kind: "range", from: 1, to: 255 });
});

test("reads of state and blocks can be asked for by the hash of the tip, and of the tip alone", () => {
  const byHash = (name: string, params: string): unknown => {
    const call = resolveCall(callOf(name, params), VIEW);
    const request = call === null ? null : requestByHash(call);
    if (request === null) return null;
    const { method, params: sent } = JSON.parse(request.body.toString());
    return [method, sent];
  };
  assert.deepEqual(byHash("eth_getBalance", `["${A}","latest"]`), [
    "eth_getBalance",
    [A, { blockHash: HASH }],
  ]);
  assert.deepEqual(byHash("eth_getBlockByNumber", '["latest",true]'), [
    "eth_getBlockByHash",
    [HASH, true],
  ]);
  assert.equal(byHash("eth_getBalance", `["${A}","safe"]`), null);
  assert.equal(byHash("eth_estimateGas", `[{"to":"${A}"},"latest"]`), null);
});

test("all bytes but the block stay, and the id keeps its place, before or behind the parameters", () => {
  const params = fc.record({
    id: fc.nat(),
    key: fc.string().map((text) => JSON.stringify(text)),
    space: fc.constantFrom("", " ", "\n\t"),
    isIdFirst: fc.boolean(),
  });
  fc.assert(
    fc.property(params, ({ id, key, space, isIdFirst }) => {
      const list = `[{"data":${key}},${space}"latest"]`;
      const text = isIdFirst
        ? `{"id":${id},"method":"eth_call","params":${list}}`
        : `{"method":"eth_call","params":${list},"id":${id}}`;
      const body = Buffer.from(text);
      const start = body.indexOf(list);
      const idStart = body.indexOf(`"id":${id}`) + 5;
      const span = { start, end: start + Buffer.byteLength(list) };
      const call = resolveCall(
        {
          methodName: "eth_call",
          method: methodOf("eth_call"),
          block: { kind: "none" },
          body,
          idStart,
          idEnd: idStart + String(id).length,
          params: span,
        },
        VIEW,
      );
      assert.ok(call !== null && call.params !== undefined);
      assert.equal(call.body.toString(), text.replace(/"latest"(?=\])/, '"0xff"'));
      assert.equal(call.body.toString("utf8", call.idStart, call.idEnd), String(id));
      assert.equal(
        call.body.toString("utf8", call.params.start, call.params.end),
        list.replace(/"latest"(?=\]$)/, '"0xff"'),
      );
    }),
  );
});
