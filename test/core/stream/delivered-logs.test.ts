// The book of told logs, against a plain model: no log twice unless taken back, take-backs last
// first, every byte accounted for.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Block, Log } from "../../../src/core/stream/chain-event.ts";
import {
  DeliveredLogs,
  isLate,
  lacks,
  newestDelivered,
  note,
  noteRemoved,
  takeBack,
  trim,
} from "../../../src/core/stream/delivered-logs.ts";

const blockOf = (number: number): Block => ({
  number,
  hash: `h${number}`,
  parentHash: `h${number - 1}`,
});
const logOf = (
  number: number,
  logIndex: number,
  text = `{"block":${number},"index":${logIndex}}`,
): Log => ({
  blockNumber: number,
  blockHash: `h${number}`,
  logIndex,
  removed: false,
  raw: Buffer.from(text),
});

/** What the book says it holds, counted anew. */
function bytesIn(book: DeliveredLogs): number {
  let bytes = 0;
  for (const page of book.blocks.values()) {
    const own = [...page.logs.values()].reduce((sum, raw) => sum + (raw?.length ?? 0), 0);
    assert.equal(page.bytes, own);
    bytes += own;
  }
  return bytes;
}

test("a log is told once, and again only after it was taken back", () => {
  const book = new DeliveredLogs();
  assert.deepEqual(
    [note(book, logOf(1, 0)), note(book, logOf(1, 0)), note(book, logOf(1, 1))],
    [true, false, true],
  );
  assert.deepEqual(
    [
      noteRemoved(book, logOf(1, 0)),
      noteRemoved(book, logOf(1, 0)),
      noteRemoved(book, logOf(2, 0)),
    ],
    [true, false, false],
  );
  assert.equal(lacks(book, "h1"), true);
  assert.equal(note(book, logOf(1, 0)), true);
  assert.deepEqual([lacks(book, "h1"), lacks(book, "h9")], [false, false]);
  assert.equal(takeBack(book, blockOf(1))?.length, 2);
  assert.deepEqual([takeBack(book, blockOf(1)), book.bytes], [[], 0]);
  assert.equal(note(book, logOf(1, 0)), true);
});

test("logs of a block are taken back last first, without those the provider took back", () => {
  const book = new DeliveredLogs();
  for (const index of [4, 0, 10, 2]) note(book, logOf(1, index));
  noteRemoved(book, logOf(1, 2));
  assert.deepEqual(
    takeBack(book, blockOf(1))?.map((it) => JSON.parse(it.toString())),
    [10, 4, 0].map((index) => ({ block: 1, index, removed: true })),
  );
});

test(
  "beyond its bytes the oldest texts are dropped: such a block cannot be taken back, and its " +
    "logs still count as told",
  () => {
    const book = new DeliveredLogs();
    for (let number = 1; number <= 4; number++)
      note(book, logOf(number, 0, `{"text":"${"x".repeat(90)}"}`));
    trim(book, { blocks: 10, bytes: 250 });
    assert.equal(book.bytes, bytesIn(book));
    assert.ok(book.bytes <= 250);
    assert.equal(takeBack(book, blockOf(4))?.length, 1);
    assert.equal(note(book, logOf(1, 0)), false);
    assert.equal(takeBack(book, blockOf(1)), null);
    assert.equal(book.bytes, bytesIn(book));
  },
);

test("beyond its blocks the oldest are forgotten", () => {
  const book = new DeliveredLogs();
  for (let number = 1; number <= 5; number++) note(book, logOf(number, 0));
  trim(book, { blocks: 2, bytes: 1_000_000 });
  assert.deepEqual([...book.blocks.keys()], ["h4", "h5"]);
  assert.equal(book.bytes, bytesIn(book));
});

test("the book agrees with a plain model, whatever comes in whatever order", () => {
  const step = fc.record({
    act: fc.constantFrom("note", "note", "note", "remove", "back"),
    number: fc.integer({ min: 1, max: 5 }),
    index: fc.nat(4),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const book = new DeliveredLogs();
      const told = new Set<string>();
      for (const { act, number, index } of steps) {
        const key = `${number} ${index}`;
        if (act === "note") {
          assert.equal(note(book, logOf(number, index)), !told.has(key));
          told.add(key);
        } else if (act === "remove")
          assert.equal(noteRemoved(book, logOf(number, index)), told.delete(key));
        else {
          const expected = [4, 3, 2, 1, 0].filter((it) => told.delete(`${number} ${it}`));
          assert.deepEqual(
            takeBack(book, blockOf(number))?.map((it) => JSON.parse(it.toString()).index),
            expected,
          );
        }
        assert.equal(book.bytes, bytesIn(book));
      }
    }),
    { numRuns: 500 },
  );
});

test(
  "a log comes too late when one that follows it stands, in its block or a later one; one that " +
    "was told never does",
  () => {
    const book = new DeliveredLogs();
    const blocks = [blockOf(1), blockOf(2), blockOf(3)];
    note(book, logOf(2, 1));
    const late = (number: number, index: number): boolean =>
      isLate(book, logOf(number, index), newestDelivered(book, blocks));
    assert.deepEqual(
      [late(1, 9), late(2, 0), late(2, 1), late(2, 2), late(3, 0)],
      [true, true, false, false, false],
    );
    noteRemoved(book, logOf(2, 1));
    assert.deepEqual(
      [late(1, 9), late(2, 0)],
      [false, false],
      "what was taken back does not stand",
    );
  },
);
