// The buckets of an account: one for each name, whatever the name is.
import assert from "node:assert/strict";
import { test } from "node:test";
import { rateLimitStatusOf, takeToken } from "../../../src/core/billing/rate-limit.ts";
import type { AccountState } from "../../../src/hosted/keys/key-context.ts";

test("a profile may be named like a member of every object and is limited all the same", () => {
  const payer: AccountState = { id: "acc", kind: "account", paid: null, own: null, fullAtMs: null };
  const at = { size: { perSecond: 1, burst: 2 }, nowMs: 1_000 };
  for (const name of ["constructor", "__proto__", "toString", "nodes"]) {
    const bucket = { name, size: "custom" } as const;
    assert.equal(rateLimitStatusOf(payer, bucket, at).remaining, 2, name);
    assert.deepEqual(
      [1, 2, 3].map(() => takeToken(payer, bucket, at)?.code ?? "taken"),
      ["taken", "taken", "rate_limit_exceeded"],
      name,
    );
    assert.deepEqual(
      [rateLimitStatusOf(payer, bucket, at).remaining, rateLimitStatusOf(payer, bucket, at).resetS],
      [0, 2],
      name,
    );
  }
});
