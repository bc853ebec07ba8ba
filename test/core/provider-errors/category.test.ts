// The decisions about categories: that no call is carried out twice, and that only what a provider
// did wrong counts against it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { DECISIONS, ERROR_CATEGORIES } from "../../../src/core/provider-errors/category.ts";

/** A provider that answers so has certainly not carried the call out. */
const CERTAINLY_NOT_DONE = new Set([
  "rate_limit",
  "quota",
  "quota_exhausted",
  "auth",
  "forbidden",
  "refused",
  "endpoint_missing",
  "wrong_chain",
  "request_size",
  "method_unsupported",
  "subscription_unsupported",
  "lagging",
  "pool_policy",
  "pool_full",
  "unsent",
]);
/** A provider that broke: what became of the call is unknown. */
const BROKE = ["execution_timeout", "trace_timeout", "timeout", "cancelled", "server", "network"];

test("a call that may not be replayed goes on to the next provider only where it was certainly not carried out", () => {
  const goOn = [...DECISIONS].filter(([, [, otherwise]]) => otherwise === "next");
  assert.deepEqual(new Set(goOn.map(([name]) => name)), CERTAINLY_NOT_DONE);
});

test("where a provider broke, a call that may not be replayed stops with an unknown outcome", () => {
  for (const name of [...BROKE, "bad_body"]) assert.equal(DECISIONS.get(name)?.[1], "stop", name);
});

test("transactions are looked up or handed in once more only for calls that hand them in", () => {
  for (const [name, [replaySafe]] of DECISIONS)
    assert.ok(replaySafe !== "known" && replaySafe !== "verify" && replaySafe !== "stop", name);
});

test("what is true wherever it is asked goes back to the caller and counts against nobody", () => {
  for (const [name, [replaySafe, otherwise, effect]] of DECISIONS) {
    if (replaySafe !== "return" || otherwise !== "return") continue;
    assert.deepEqual(effect, { kind: "ignored" }, name);
  }
});

test("every effect that counts toward a circuit names a cause, and every category has one decision", () => {
  for (const [name, [, , effect]] of DECISIONS)
    if (typeof effect !== "string" && effect.kind === "failure")
      assert.ok(["server", "network", "timeout", "auth"].includes(effect.cause), name);
  assert.equal(new Set(ERROR_CATEGORIES).size, DECISIONS.size);
});
