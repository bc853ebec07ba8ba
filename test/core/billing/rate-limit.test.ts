// The buckets of an account: one for each name, whatever the name is.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  rateLimitStatusOf,
  takeSharedToken,
  takeToken,
} from "../../../src/core/billing/rate-limit.ts";
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

test("a call of several parts takes a token for each, or none at all", () => {
  const owner = { fullAtMs: null };
  const bucket = { name: "managed", size: "managed" } as const;
  const size = { perSecond: 10, burst: 8 };
  const take = (tokens: number, nowMs: number) =>
    takeSharedToken(owner, bucket, { size, nowMs, tokens, isFinal: true });
  assert.equal(take(5, 0), null);
  const refused = take(5, 0);
  assert.ok(refused !== null && "code" in refused && refused.code === "rate_limit_exceeded");
  assert.equal(refused.retryAfterMs, 200);
  assert.equal(take(3, 0), null, "nothing was taken by the one that was refused");
  assert.equal(take(50, 800), null, "more than there can ever be take all");
  assert.notEqual(take(1, 800), null);
});
