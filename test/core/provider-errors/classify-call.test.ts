// What errors may teach that answer the calls of callers: where the caller may have chosen the
// words, they hold for the method alone and for 30 s, unless code, status or header say the same.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Effect } from "../../../src/core/provider/attempt.ts";
import { classifyCall } from "../../../src/core/provider-errors/classify-call.ts";
import { NO_BLOCK } from "../../../src/core/rpc/call.ts";
import { type Failure, plainFailure } from "../../../src/core/rpc/failure.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";

const ADDRESS = "0x0000000000000000000000000000000000000001";
const LOGS = [{ fromBlock: "0x1", toBlock: "latest", address: ADDRESS, topics: [null, "0xab"] }];

function effectOf(
  methodName: string,
  params: readonly unknown[],
  failure: Partial<Failure>,
): Effect {
  const request = writeRequest(methodName, Buffer.from(JSON.stringify(params)));
  return classifyCall(
    { ...plainFailure("error", ""), httpStatus: 200, code: -32000, ...failure },
    { ...request, methodName, method: methodOf(methodName), block: NO_BLOCK },
    { rules: [], wallMs: 0 },
  ).effect;
}

/** Calls of which a caller's words may come back. */
const REPEATING: readonly (readonly [method: string, params: readonly unknown[]])[] = [
  ["eth_call", [{}, "latest"]],
  ["eth_estimateGas", [{}]],
  ["debug_traceCall", [{}, "latest", { tracer: "callTracer" }]],
  ["debug_traceTransaction", ["0xab"]],
  ["trace_block", ["0x5"]],
  ["eth_sendRawTransaction", ["0xab"]],
  ["vendor_unheardOf", []],
  ["eth_getBalance", ["rate limit", "latest"]],
  ["eth_getBalance", ["\\u0072ate limit", "latest"]],
  ["eth_getLogs", [{ unauthorized: true }]],
  ["eth_feeHistory", ["0x1", "latest", ["quota exceeded"]]],
];
/** Calls of which none do. */
const PLAIN: readonly (readonly [method: string, params: readonly unknown[]])[] = [
  ["eth_gasPrice", []],
  ["eth_getBalance", [ADDRESS, "latest"]],
  ["eth_getBalance", [ADDRESS, { blockHash: "0xab", requireCanonical: true }]],
  ["eth_getBlockByNumber", ["0x5", false]],
  ["eth_feeHistory", ["0x1", "latest", [10, 50.5]]],
  ["eth_getLogs", LOGS],
];
const LIMITED = { message: "rate limit exceeded, retry in 5 minutes" };

test("words limit a whole provider only where the caller can have chosen none of them", () => {
  for (const [method, params] of REPEATING)
    assert.deepEqual(
      effectOf(method, params, LIMITED),
      { kind: "cooldown", ms: 30_000, scope: "method" },
      `${method} ${JSON.stringify(params)}`,
    );
  for (const [method, params] of PLAIN)
    assert.deepEqual(
      effectOf(method, params, LIMITED),
      { kind: "cooldown", ms: 300_000 },
      `${method} ${JSON.stringify(params)}`,
    );
});

test("what status, code or header say counts whatever the words are", () => {
  const retryAfter = "90";
  for (const [method, params] of [...REPEATING, ...PLAIN]) {
    assert.deepEqual(
      effectOf(method, params, { ...LIMITED, httpStatus: 429, retryAfter }),
      { kind: "cooldown", ms: 90_000 },
      method,
    );
    assert.equal(effectOf(method, params, { kind: "body", httpStatus: 502 }).kind, "failure");
  }
});

test("no words of a caller open a circuit, put a provider behind or teach anything for long", () => {
  const params = [{}, "latest", { tracer: "x" }];
  for (const message of ["bad gateway", "service unavailable", "the node is lagging behind"])
    assert.deepEqual(effectOf("debug_traceCall", params, { message }), { kind: "avoid" }, message);
  assert.deepEqual(
    effectOf("eth_call", [{}, "0x5"], { message: "missing trie node 0xab (path )" }),
    { kind: "learn", what: "pruned", brief: true },
  );
  assert.deepEqual(
    effectOf("eth_getBalance", [ADDRESS, "0x5"], { message: "missing trie node 0xab (path )" }),
    { kind: "learn", what: "pruned" },
  );
});

test("a 403 on what a caller wrote makes the service ask, and does not count as a failure", () => {
  const refused = { kind: "body", code: null, httpStatus: 403 } as const;
  assert.deepEqual(effectOf("debug_traceCall", [{}], refused), { kind: "cordon", reason: "auth" });
  assert.deepEqual(effectOf("eth_gasPrice", [], refused), { kind: "failure", cause: "auth" });
});
