// What a filter has unread: in order, each change once, none lost whatever becomes of the answers,
// within bounds.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  changesJson,
  FilterChanges,
  type TakenChanges,
} from "../../../src/core/stream/filter-changes.ts";

type Step =
  | { readonly kind: "add" }
  | { readonly kind: "take" }
  | { readonly kind: "settle"; readonly which: number; readonly written: boolean };

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof<fc.Arbitrary<Step>[]>(
    fc.constant({ kind: "add" }),
    fc.constant({ kind: "take" }),
    fc.record({ kind: fc.constant("settle" as const), which: fc.nat(5), written: fc.boolean() }),
  ),
  { maxLength: 60 },
);

test(
  "whatever becomes of answers: nothing is lost, nothing that was written is told again, and " +
    "each answer is in order",
  () => {
    fc.assert(
      fc.property(steps, (all) => {
        const changes = new FilterChanges();
        const open: TakenChanges[] = [];
        const written: number[] = [];
        let added = 0;
        for (const step of all) {
          if (step.kind === "add") assert.ok(changes.add(String(added++)));
          else if (step.kind === "take") {
            const taken = changes.take();
            const texts = taken.texts.map(Number);
            assert.deepEqual(
              texts,
              texts.toSorted((left, right) => left - right),
            );
            assert.deepEqual(JSON.parse(changesJson(taken).toString()), texts);
            open.push(taken);
          } else {
            const [taken] = open.splice(step.which % Math.max(1, open.length), 1);
            if (taken === undefined) continue;
            changes.settle(taken, step.written);
            if (step.written) written.push(...taken.texts.map(Number));
          }
        }
        for (const taken of open) changes.settle(taken, false);
        const rest = changes.take();
        assert.deepEqual(
          [...written, ...rest.texts.map(Number)].toSorted((left, right) => left - right),
          Array.from({ length: added }, (_, n) => n),
        );
        changes.settle(rest, true);
        assert.deepEqual([changes.count, changes.bytes], [0, 0]);
      }),
    );
  },
);

test(
  "10,000 changes or 4 MiB may be unread, also counting what is on its way; then there is no " +
    "room",
  () => {
    const many = new FilterChanges();
    for (let n = 0; n < 10_000; n++) assert.ok(many.add("1"));
    assert.equal(many.add("1"), false);
    const taken = many.take();
    assert.equal(many.add("1"), false, "an answer on its way may come back");
    many.settle(taken, true);
    assert.ok(many.add("1"));
    const long = new FilterChanges();
    assert.ok(long.add("x".repeat(4_194_304)));
    assert.equal(long.add("1"), false);
  },
);

test("bytes of a change come out as they went in", () => {
  const changes = new FilterChanges();
  const text = Buffer.from('{"data":"é\\u00e9 ☃"}');
  changes.add(text.toString("latin1"));
  assert.deepEqual(
    changesJson(changes.take()),
    Buffer.concat([Buffer.from("["), text, Buffer.from("]")]),
  );
});
