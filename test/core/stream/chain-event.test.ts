// Heads and logs as nodes send them: no bytes break the readers, and what is told again keeps every
// member's bytes as they came.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  asRemoved,
  inLiveShape,
  memberNames,
  readHead,
  readLog,
} from "../../../src/core/stream/chain-event.ts";
import { blockText, fakeChain, headerText, logText } from "../../fakes/chain.ts";
import { nameText, objectText, valueText, whiteSpace } from "../../fakes/json-text.ts";
import { seededRandom } from "../../fakes/runtime.ts";

const HASH = `0x${"aB".repeat(32)}`;
const HEAD = { number: "0x1f", hash: HASH, parentHash: `0x${"0".repeat(64)}` };
const LOG = { blockNumber: "0x1f", blockHash: HASH, logIndex: "0x0" };

const bytes = fc
  .oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc
      .string({
        unit: fc.constantFrom("{", "}", "[", "]", '"', ":", ",", "\\", "a", " ", "1", "\xff"),
        maxLength: 30,
      })
      .map((it) => Buffer.from(it, "latin1")),
    valueText.map((it) => Buffer.from(it)),
  )
  .map((it) => Buffer.from(it));

const members = fc.uniqueArray(fc.tuple(nameText, valueText), {
  maxLength: 6,
  selector: ([key]) => String(JSON.parse(key)),
});

test("no bytes break the readers", () => {
  fc.assert(
    fc.property(bytes, bytes, (raw, other) => {
      readHead(raw);
      readLog(raw);
      asRemoved(raw);
      inLiveShape(raw, null);
      inLiveShape(raw, memberNames(other));
    }),
    { numRuns: 3_000 },
  );
});

test("a log is read whatever its length, and a long one that is no JSON is none", () => {
  const data = `0x${"0".repeat(6_000_000)}`;
  const whole = JSON.stringify({ address: "0x1", data, ...LOG, removed: true });
  const log = readLog(Buffer.from(` ${whole} `));
  assert.deepEqual(
    [log?.blockNumber, log?.logIndex, log?.removed, log?.raw.length],
    [31, 0, true, whole.length + 2],
  );
  for (const broken of [
    whole.slice(0, -1),
    `${whole}}`,
    `${whole.slice(0, -1)},}`,
    whole.replace('"data":', '"data" '),
    whole.replace(',"data"', ' "data"'),
    `[${whole}]`,
  ])
    assert.equal(readLog(Buffer.from(broken)), null, broken.slice(-40));
  const names = Array.from({ length: 8_000 }, (_, n) => [`name${n}`, n]);
  const many = JSON.stringify({ ...LOG, ...Object.fromEntries(names) });
  assert.equal(readLog(Buffer.from(many)), null, "of too many members nothing is parsed");
  const longMember = JSON.stringify({ ...LOG, blockHash: data });
  assert.equal(readLog(Buffer.from(longMember)), null);
});

test("heads and logs are read by what decides about their order, and anything else is none", () => {
  const head = readHead(Buffer.from(JSON.stringify(HEAD)));
  assert.deepEqual(
    [head?.number, head?.hash, head?.parentHash],
    [31, HASH.toLowerCase(), HEAD.parentHash],
  );
  const log = readLog(Buffer.from(JSON.stringify(LOG)));
  assert.deepEqual(
    [log?.blockNumber, log?.blockHash, log?.logIndex, log?.removed],
    [31, HASH.toLowerCase(), 0, false],
  );
  assert.equal(readLog(Buffer.from(JSON.stringify({ ...LOG, removed: true })))?.removed, true);
  const noHeads = [
    { number: 31 },
    { number: "31" },
    { number: "0x" },
    { number: "0x10000000000000" + "0" },
    { number: null },
    { hash: "0x1" },
    { hash: 1 },
    { parentHash: null },
  ];
  for (const wrong of noHeads)
    assert.equal(
      readHead(Buffer.from(JSON.stringify({ ...HEAD, ...wrong }))),
      null,
      JSON.stringify(wrong),
    );
  for (const wrong of [
    { logIndex: null },
    { blockHash: null },
    { blockNumber: "0xg" },
    { removed: "true" },
    { removed: null },
  ])
    assert.equal(
      readLog(Buffer.from(JSON.stringify({ ...LOG, ...wrong }))),
      null,
      JSON.stringify(wrong),
    );
  for (const text of ["null", "[]", '"0x"', "1", "", "{"])
    assert.deepEqual([readHead(Buffer.from(text)), readLog(Buffer.from(text))], [null, null]);
});

test("a block in the live shape has the members of the pushed header, in its order, byte by byte", () => {
  const tip = fakeChain(seededRandom(1)).tip();
  const block = Buffer.from(blockText(tip));
  const header = Buffer.from(headerText(tip));
  assert.equal(inLiveShape(block, memberNames(header)).toString(), headerText(tip));
  assert.equal(inLiveShape(block, null).toString(), headerText(tip));
  assert.equal(
    inLiveShape(block, memberNames(header).toReversed()).toString(),
    `{${headerText(tip)
      .slice(1, -1)
      .split(/,(?="\w+":\s?["{])(?!"s")/)
      .toReversed()
      .join(",")}}`,
  );
});

test("members keep their bytes and order, whatever they are", () => {
  fc.assert(
    fc.property(members, fc.array(whiteSpace, { maxLength: 8 }), (list, spaces) => {
      const kept = list.filter(
        ([key]) => JSON.parse(key) !== "removed" && JSON.parse(key) !== "__proto__",
      );
      const raw = Buffer.from(objectText(kept, spaces));
      assert.equal(memberNames(raw).length, kept.length);
      const removed = asRemoved(raw).toString();
      assert.deepEqual(JSON.parse(removed), { ...JSON.parse(raw.toString()), removed: true });
      for (const [key, value] of kept)
        assert.ok(
          removed.includes(key) && removed.includes(value),
          `${removed} has lost ${key}: ${value}`,
        );
      const again = inLiveShape(raw, memberNames(raw)).toString();
      assert.deepEqual(JSON.parse(again), JSON.parse(raw.toString()));
      assert.deepEqual(Object.keys(JSON.parse(again)), Object.keys(JSON.parse(raw.toString())));
    }),
    { numRuns: 500 },
  );
});

test("a log is taken back in the words in which it was told, but for removed", () => {
  const chain = fakeChain(seededRandom(3));
  for (let n = 0; n < 20; n++) {
    const block = chain.mine();
    for (const log of block.logs)
      assert.equal(
        asRemoved(Buffer.from(logText(block, log))).toString(),
        logText(block, log, true),
      );
  }
  assert.equal(
    asRemoved(
      Buffer.from('{ "removed" : false, "n":12345678901234567890.10, "s":"\\u00e9" }'),
    ).toString(),
    '{"n":12345678901234567890.10,"s":"\\u00e9","removed":true}',
  );
});
