// How the script judges what a client's watcher saw: it must find what is missing, repeated or out
// of order.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Expected, problemsOf } from "./protocol.ts";

const EXPECTED: Expected = {
  blocks: [7, 8, 9].map((number) => ({ number, hash: `0x${number}` })),
  transactions: ["a", "b", "c"],
};

test("blocks count by number or by hash: all of them, once, in order", () => {
  const rows: readonly (readonly [seen: (string | number)[], texts: readonly string[]])[] = [
    [[6, 7, 8, 9, 10], []],
    [["0x6", "0x7", "0x8", "0x9"], []],
    [[7, 9], ["1 of 3 missing"]],
    [[], ["3 of 3 missing"]],
    [[7, 8, 8, 9], ["1 repeated"]],
    [[8, 7, 9], ["out of order"]],
    [["0x7", "0x8"], ["1 of 3 missing"]],
    [
      [9, 8, 8],
      ["1 of 3 missing", "1 repeated", "out of order"],
    ],
  ];
  for (const [seen, texts] of rows)
    assert.deepEqual(problemsOf({ feature: "blocks", seen }, EXPECTED).texts, texts, seen.join());
});

test("logs have to come in order, pending transactions need not", () => {
  for (const [feature, seen, texts] of [
    ["logs", ["x", "a", "b", "c"], []],
    ["logs", ["a", "c", "b"], ["out of order"]],
    ["pending", ["c", "a", "b"], []],
    ["pending", ["c", "a", "a"], ["1 of 3 missing", "1 repeated"]],
  ] as const)
    assert.deepEqual(problemsOf({ feature, seen: [...seen] }, EXPECTED).texts, texts);
});
