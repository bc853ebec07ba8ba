// What providers with a purpose of their own are asked for: the methods of their kind or those that
// are listed, and nothing else.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  generalOf,
  isAskedFor,
  type ScopeSettings,
  scopeOf,
} from "../../../src/core/provider/method-scope.ts";

const with_ = (settings: Partial<ScopeSettings>) => ({
  scope: scopeOf({ kind: "node", methods: null, usesRelays: false, ...settings }),
});

test("a node without a list has no scope, and is asked for everything", () => {
  assert.equal(with_({}).scope, null);
  assert.ok(isAskedFor({}, "eth_sendRawTransaction"));
});

test("a list is all that a provider is asked for, beside its chain id, pinned or not", () => {
  const provider = with_({ methods: ["eth_getLogs"] });
  for (const isPinned of [false, true]) {
    assert.ok(isAskedFor(provider, "eth_getLogs", isPinned));
    assert.ok(isAskedFor(provider, "eth_chainId", isPinned));
    assert.ok(!isAskedFor(provider, "eth_blockNumber", isPinned));
  }
});

test("a relay is asked where a call pins it; where the profile uses relays, nobody else is", () => {
  const method = "eth_sendRawTransaction";
  const unused = with_({ kind: "relay" });
  assert.deepEqual([isAskedFor(unused, method), isAskedFor(unused, method, true)], [false, true]);
  assert.ok(!isAskedFor(unused, "eth_call", true));
  assert.ok(isAskedFor(with_({ kind: "relay", usesRelays: true }), method));
  const node = with_({ usesRelays: true });
  assert.deepEqual([isAskedFor(node, method), isAskedFor(node, method, true)], [false, true]);
  assert.ok(isAskedFor(node, "eth_call"));
});

test("bundlers and log services come first for their own methods", () => {
  assert.equal(with_({ kind: "bundler" }).scope?.first, "all");
  assert.equal(with_({ kind: "logs" }).scope?.first, "logs");
  assert.equal(with_({ methods: ["eth_call"] }).scope?.first, "none");
  assert.ok(isAskedFor(with_({ kind: "bundler" }), "eth_sendUserOperation"));
  assert.ok(!isAskedFor(with_({ kind: "bundler" }), "eth_call"));
});

test("providers for a few methods make a chain usable only where there are no others", () => {
  const [node, bundler] = [with_({}), with_({ kind: "bundler" })];
  assert.deepEqual(
    generalOf([bundler, node], (each) => each),
    [node],
  );
  assert.deepEqual(
    generalOf([bundler], (each) => each),
    [bundler],
  );
});
