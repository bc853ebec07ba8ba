// Marks of seen blocks: what is one, and that each comes back as it was written.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseSeen, seenText } from "../../../src/core/rpc/seen.ts";

const HASH = `0x${"0123456789abcdef".repeat(4)}`;

test("a mark is a number, with or without the hash of the block", () => {
  assert.deepEqual(parseSeen("0"), { number: 0, hash: null });
  assert.deepEqual(parseSeen(`21000000-${HASH}`), { number: 21_000_000, hash: HASH });
  assert.deepEqual(parseSeen("9007199254740991"), { number: 2 ** 53 - 1, hash: null });
  const upper = `7-0x${HASH.slice(2).toUpperCase()}`;
  assert.deepEqual(parseSeen(upper), { number: 7, hash: HASH }, "hashes are compared as text");
});

test("nothing else is a mark", () => {
  for (const text of [
    ...["", "-", " 1", "1 ", "1\n", "+1", "-1", "01", "00", "1.0", "1e3", "0x1", "١", "1,2"],
    ...["9007199254740992", "9999999999999999", "10000000000000000", "1".repeat(5_000)],
    ...[`-${HASH}`, HASH, `1${HASH}`, "1-", "1-0x", `1-${HASH}0`, `1-${HASH.slice(0, -1)}`],
    ...[`1-${HASH.slice(2)}`, `1-${HASH.slice(0, -1)}g`, `1-${HASH}-`, `1-${HASH}\n`],
  ])
    assert.equal(parseSeen(text), null, JSON.stringify(text));
});

const hashes = fc.stringMatching(/^0x[0-9a-f]{64}$/);
const blocks = fc.record(
  {
    number: fc.oneof(fc.nat(), fc.maxSafeNat()),
    hash: fc.option(hashes),
  },
  { noNullPrototype: true },
);

test("each block comes back from its mark, and each text that is a mark from its block", () => {
  fc.assert(fc.property(blocks, (block) => assert.deepEqual(parseSeen(seenText(block)), block)));
  const digits = fc.stringMatching(/^[0-9]{1,18}$/);
  const ends = fc.oneof(
    fc.constant(""),
    hashes.map((hash) => `-${hash}`),
    fc.string(),
  );
  const texts = fc.oneof(
    fc.string(),
    fc.tuple(digits, ends).map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const block = parseSeen(text);
      if (block !== null) assert.equal(seenText(block), text.toLowerCase());
    }),
  );
});
