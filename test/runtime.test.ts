// What is put off to the end of a turn: the order in which it runs, and that one failure costs
// nobody else.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createTurnEnd } from "../src/runtime.ts";

test(
  "what is put off runs once, in order, after what this turn has still to do; what is put off " +
    "then runs in the turn after",
  async () => {
    const atTurnEnd = createTurnEnd();
    const order: string[] = [];
    atTurnEnd(() => {
      order.push("first");
      atTurnEnd(() => order.push("next turn"));
    });
    atTurnEnd(() => order.push("second"));
    queueMicrotask(() => order.push("this turn"));
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(order, ["this turn", "first", "second", "next turn"]);
  },
);

test("what throws is heard of, and the rest runs in the turn after", () => {
  const turns: (() => void)[] = [];
  const atTurnEnd = createTurnEnd((run) => turns.push(run));
  const ran: number[] = [];
  for (const at of [0, 1, 2, 3]) {
    atTurnEnd(() => {
      ran.push(at);
      if (at === 1) throw new Error("a bug");
    });
  }
  assert.throws(() => turns.shift()?.(), /a bug/);
  turns.shift()?.();
  assert.deepEqual(ran, [0, 1, 2, 3]);
  assert.equal(turns.length, 0);
});
