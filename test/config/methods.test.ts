// `methods:` of the configuration: what it may say, and what it must not.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accepted, refused, VALID } from "./config-fixture.ts";

const withMethods = (...lines: readonly string[]): string =>
  [VALID, "methods:", ...lines.map((line) => `  ${line}`)].join("\n");

test("methods are read with what they leave to the built-in table", () => {
  const { methods } = accepted(
    withMethods(
      "foo_bar: { kind: write, block_param: 1, cu: 9, deadline: trace_block }",
      "eth_getLogs: { cu: 20 }",
      "zks_estimateFee: { deadline: cheap }",
    ),
  );
  assert.deepEqual(methods, [
    { name: "foo_bar", kind: "write", blockAt: 1, cu: 9, deadline: "traceBlock" },
    { name: "eth_getLogs", kind: null, blockAt: null, cu: 20, deadline: null },
    { name: "zks_estimateFee", kind: null, blockAt: null, cu: null, deadline: "cheap" },
  ]);
  assert.deepEqual(accepted(VALID).methods, []);
});

test("a write never becomes a read, and what the service answers or refuses itself stays so", () => {
  const cases: readonly (readonly [line: string, path: string, says: RegExp])[] = [
    [
      "eth_sendRawTransaction: { kind: read }",
      "methods.eth_sendRawTransaction.kind",
      /must not be `read`/,
    ],
    [
      "eth_sendUserOperation: { kind: read }",
      "methods.eth_sendUserOperation.kind",
      /must not be `read`/,
    ],
    ["eth_sign: { kind: read }", "methods.eth_sign", /answers or refuses itself/],
    ["personal_sign: { kind: read }", "methods.personal_sign", /answers or refuses itself/],
    ["eth_chainId: { cu: 2 }", "methods.eth_chainId", /answers or refuses itself/],
    ["foo_bar: { cu: 2 }", "methods.foo_bar", /must have `kind`/],
    ["foo_bar: { kind: both }", "methods.foo_bar.kind", /read/],
    ["foo_bar: { kind: read, cu: 0 }", "methods.foo_bar.cu", /1/],
    ["foo_bar: { kind: read, deadline: soon }", "methods.foo_bar.deadline", /trace_tx/],
    ["foo_bar: { kind: read, weight: 1 }", "methods.foo_bar.weight", /./],
    ["'foo bar': { kind: read }", "methods.…", /method name/],
  ];
  for (const [line, path, says] of cases) {
    const [fault, ...others] = refused(withMethods(line));
    assert.deepEqual(
      [fault?.path.replace(/[[\]"]/g, (it) => (it === "[" ? "." : "")), others],
      [path, []],
      line,
    );
    assert.match(fault?.message ?? "", says, line);
  }
});

test("at most 64 methods may be added", () => {
  const lines = Array.from({ length: 65 }, (_, n) => `foo_m${n}: { kind: read }`);
  assert.equal(
    accepted(withMethods(...lines.slice(1), "eth_getLogs: { cu: 3 }")).methods.length,
    65,
  );
  assert.equal(refused(withMethods(...lines))[0]?.path, "methods.foo_m64");
});
