// Errors that no rule knows: one shape whatever the numbers, bounded memory, the frequent outlast
// the rare.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  noteUnknown,
  UnknownErrors,
  type UnknownOccurrence,
  unknownShapes,
} from "../../../src/core/provider-errors/error-samples.ts";

const note = (
  errors: UnknownErrors,
  message: string,
  changes: Partial<UnknownOccurrence> = {},
  wallMs = 0,
) =>
  noteUnknown(
    errors,
    {
      provider: "a",
      method: "eth_call",
      code: -32000,
      httpStatus: 200,
      message,
      redact: (text) => text,
      ...changes,
    },
    wallMs,
  );

test(
  "messages that differ in numbers, hashes and case alone are one shape, with the first of " +
    "them as its sample",
  () => {
    const errors = new UnknownErrors();
    assert.notEqual(note(errors, "flux 12 of 0xabcdef0123 misaligned", {}, 5), null);
    assert.equal(note(errors, "Flux 7 of 0x99 misaligned", {}, 9), null);
    assert.notEqual(note(errors, "flux 12 misaligned"), null);
    assert.notEqual(note(errors, "flux 12 of 0xabc misaligned", { code: 7 }), null);
    assert.notEqual(note(errors, "flux 12 of 0xabc misaligned", { provider: "b" }), null);
    const [first] = unknownShapes(errors);
    assert.deepEqual(first, {
      provider: "a",
      method: "eth_call",
      code: -32000,
      httpStatus: 200,
      sample: "flux 12 of 0x… misaligned",
      count: 2,
      lastMs: 9,
    });
    assert.equal(errors.total, 5);
  },
);

test("shapes that callers make up neither fill the memory nor drive out what comes again", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ minLength: 3, maxLength: 400 }), { maxLength: 300 }),
      (texts) => {
        const errors = new UnknownErrors();
        for (let n = 0; n < 3; n++) note(errors, "the engine is odd");
        for (const [n, text] of texts.entries())
          note(errors, `${text} ${String.fromCodePoint(0x4e00 + n)}`);
        assert.ok(errors.shapes.size <= 64);
        assert.ok(
          unknownShapes(errors).some((it) => it.sample === "the engine is odd" && it.count === 3),
        );
        for (const { sample } of unknownShapes(errors)) assert.ok(sample.length <= 260);
      },
    ),
    { numRuns: 50 },
  );
});
