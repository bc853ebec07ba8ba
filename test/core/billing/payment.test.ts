// Units of payment tokens: money is neither made nor lost between them and nano-USD.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { nanoOf, unitsOf } from "../../../src/core/billing/payment.ts";

test("property: base units survive the way to nano-USD and back", () => {
  fc.assert(fc.property(fc.bigInt(), (units) => assert.equal(unitsOf(nanoOf(units)), units)));
});

test("property: an amount that is finer than a base unit is refused, never rounded", () => {
  fc.assert(
    fc.property(fc.bigInt(), (nanoUsd) => {
      const units = unitsOf(nanoUsd);
      if (units === null) assert.notEqual(nanoUsd % 1_000n, 0n);
      else assert.equal(nanoOf(units), nanoUsd);
    }),
  );
});

test("a dollar is a million base units", () => {
  assert.equal(unitsOf(1_000_000_000n), 1_000_000n);
});
