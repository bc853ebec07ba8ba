// The list of attempts that are out: like an insertion-ordered set under any order of adding and
// removing, and no link outlives a removal.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { AttemptsOut, type Linked } from "../../../src/upstream/health/silence-watch.ts";

interface One extends Linked<One> {
  readonly n: number;
}

test("it holds what a set would, in the same order, and what left holds on to nothing", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(30), { maxLength: 200 }), (moves) => {
      const list = new AttemptsOut<One>();
      const model = new Set<One>();
      const ones = new Map<number, One>();
      for (const n of moves) {
        const known = ones.get(n);
        if (known === undefined) {
          const one: One = { n, before: null, after: null };
          ones.set(n, one);
          list.add(one);
          model.add(one);
        } else {
          ones.delete(n);
          list.delete(known);
          list.delete(known);
          model.delete(known);
          assert.deepEqual([known.before, known.after], [null, null]);
        }
        assert.deepEqual(
          list.all().map((it) => it.n),
          [...model].map((it) => it.n),
        );
        assert.deepEqual([list.size, list.first?.n], [model.size, [...model][0]?.n]);
      }
    }),
  );
});
