// What a provider does not serve, by name: bounds, order of leaving, expiry.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  confirmUnserved,
  isUnserved,
  learnUnserved,
  noteServed,
  type ServedNames,
  UnservedMethods,
  unlearnUnserved,
  unservedNames,
} from "../../../src/core/provider/unserved-methods.ts";

const TEN_MINUTES_MS = 600_000;

test("a name is unserved until ten minutes have passed, and never before it was learned", () => {
  const unserved = new UnservedMethods();
  learnUnserved(unserved, new Map(), "a_b", 1_000);
  assert.deepEqual(
    [999, 1_000, 1_000 + TEN_MINUTES_MS - 1, 1_000 + TEN_MINUTES_MS].map((nowMs) =>
      isUnserved(unserved, "a_b", nowMs),
    ),
    [false, true, true, false],
  );
});

test("both maps stay small on any input, and methods that others serve are kept longest", () => {
  const names = fc.array(
    fc.tuple(
      fc.string({ maxLength: 200 }),
      fc.constantFrom("learn", "serve", "confirm", "unlearn"),
    ),
    { maxLength: 2_000 },
  );
  fc.assert(
    fc.property(names, (events) => {
      const unserved = new UnservedMethods();
      const served: ServedNames = new Map();
      noteServed(served, "real_method", 0);
      learnUnserved(unserved, served, "real_method", 0);
      for (const [at, [text, event]] of events.entries()) {
        const name = `x${text}`;
        if (event === "learn") learnUnserved(unserved, served, name, at);
        if (event === "serve" && at % 50 === 0) noteServed(served, name, at);
        if (event === "confirm" && served.has(name)) confirmUnserved(unserved, name);
        if (event === "unlearn") unlearnUnserved(unserved, name);
      }
      assert.ok(unserved.real.size <= 128 && unserved.doubtful.size <= 32 && served.size <= 256);
      assert.ok(isUnserved(unserved, "real_method", 1));
      assert.ok(unservedNames(unserved, 1).includes("real_method"));
    }),
    { numRuns: 50 },
  );
});

test("a name that is too long to be anybody's is not kept", () => {
  const unserved = new UnservedMethods();
  const served: ServedNames = new Map();
  const long = "x".repeat(97);
  learnUnserved(unserved, served, long, 0);
  assert.equal(noteServed(served, long, 0), false);
  assert.deepEqual([unserved.doubtful.size, unserved.real.size, served.size], [0, 0, 0]);
});
