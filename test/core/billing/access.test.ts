// How a key is served: the specification's order of payment, and what a caller is told of it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { customServiceTiers, LAPSED, serviceTiersOf } from "../../../src/core/billing/access.ts";

test(
  "premium is paid from the balance, then in grace, then from the free allowance, the latter " +
    "two on public providers",
  () => {
    assert.deepEqual(
      serviceTiersOf("premium").map((it) => [
        it.funding,
        it.access,
        it.fallback,
        it.profile,
        it.rateLimit.name,
        it.rateLimit.size,
      ]),
      [
        ["balance", "premium", null, "premium", "managed", "managed"],
        ["payment", "public", "payment", "public", "managed", "reduced"],
        ["free", "public", "free", "public", "managed", "reduced"],
      ],
    );
  },
);

test("who asks for public uses what is free first, and is not told of a fallback", () => {
  assert.deepEqual(
    serviceTiersOf("public").map((it) => [
      it.funding,
      it.access,
      it.fallback,
      it.profile,
      it.rateLimit.name,
      it.rateLimit.size,
    ]),
    [
      ["free", "public", null, "public", "public", "public"],
      ["balance", "public", null, "public", "public", "public"],
      ["payment", "public", null, "public", "public", "public"],
    ],
  );
});

test(
  "a Custom profile is served by its access only; one that rests, as premium is, which is told " +
    "as a fallback of the profile",
  () => {
    assert.deepEqual(
      customServiceTiers("mine").map((it) => [
        it.funding,
        it.access,
        it.fallback,
        it.profile,
        it.rateLimit.name,
        it.rateLimit.size,
      ]),
      [["custom", "custom", null, "mine", "mine", "custom"]],
    );
    assert.deepEqual(
      LAPSED.map((it) => [it.funding, it.access, it.fallback, it.profile]),
      [
        ["balance", "premium", "profile", "premium"],
        ["payment", "public", "payment", "public"],
        ["free", "public", "free", "public"],
      ],
    );
  },
);
