// The byte scanner of JSON against JSON.parse: it must accept and refuse exactly the same
// documents, the nesting bound aside.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { elements, isJson, MAX_DEPTH, skipSpace, skipValue } from "../../../src/core/rpc/json.ts";
import { documentText, valueText, whiteSpace } from "../../fakes/json-text.ts";

function parses(bytes: Buffer): boolean {
  try {
    JSON.parse(bytes.toString("utf8"));
    return true;
  } catch {
    return false;
  }
}

const agrees = (bytes: Buffer): void =>
  assert.equal(isJson(bytes), parses(bytes), JSON.stringify(bytes.toString("latin1")));

/** Bytes that make JSON fall apart when they stand in the wrong place. */
const sharpByte = fc.constantFrom(
  ...Buffer.from('{}[]:,"\\ \n\t\0\x1f\x7f\xa0\xc3+-.0123456789eEtrufalsn/u', "latin1"),
);

test("every document that JSON.parse reads is accepted", () => {
  fc.assert(
    fc.property(documentText, (text) => {
      JSON.parse(text);
      assert.equal(isJson(Buffer.from(text)), true, text);
    }),
    { numRuns: 2_000 },
  );
});

test("a document that was cut short or changed in one byte is judged as JSON.parse judges it", () => {
  const change = fc.record({
    at: fc.nat(),
    kind: fc.constantFrom("cut", "replace", "insert", "remove"),
    byte: sharpByte,
  });
  fc.assert(
    fc.property(documentText, change, (text, { at: chance, kind, byte }) => {
      const bytes = Buffer.from(text);
      const at = chance % (bytes.length + 1);
      const after = kind === "replace" || kind === "remove" ? at + 1 : at;
      const middle = kind === "replace" || kind === "insert" ? [Buffer.from([byte])] : [];
      agrees(
        Buffer.concat([
          bytes.subarray(0, at),
          ...middle,
          ...(kind === "cut" ? [] : [bytes.subarray(after)]),
        ]),
      );
    }),
    { numRuns: 5_000 },
  );
});

test("any bytes at all are judged as JSON.parse judges them", () => {
  fc.assert(
    fc.property(fc.array(sharpByte, { maxLength: 12 }), (bytes) => agrees(Buffer.from(bytes))),
    { numRuns: 5_000 },
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 12 }), (bytes) => agrees(Buffer.from(bytes))),
    { numRuns: 1_000 },
  );
});

test("the corners of the grammar are judged as JSON.parse judges them", () => {
  const corners = [
    [
      "",
      " ",
      "{}",
      "[]",
      "[,]",
      "[1,]",
      "[1 2]",
      "{,}",
      '{"a"}',
      '{"a":}',
      '{"a":1,}',
      '{"a" 1}',
      "{a:1}",
      "{1:1}",
      '{"a":1}}',
      "[[]",
      "]",
      "}",
    ],
    [
      "0",
      "-0",
      "00",
      "01",
      "-",
      "+1",
      "1.",
      ".1",
      "1.e1",
      "1e",
      "1e+",
      "1e400",
      "0x1",
      "1_0",
      "NaN",
      "Infinity",
      "--1",
      "1e1.5",
    ],
    [
      '"',
      '"\\"',
      '"\\x"',
      '"\\u12"',
      '"\\u12g4"',
      '"\\u0000"',
      '"\n"',
      '"\t"',
      '"\0"',
      '"\\ud800"',
      "'a'",
      '"a" "b"',
      '"\u2028"',
      '"\x7f"',
    ],
    [
      "true",
      "tru",
      "truex",
      "nul",
      "null",
      "nulll",
      "True",
      "undefined",
      "\ufeff{}",
      "\u00a01",
      "1\u00a0",
      "//\n1",
      "/**/1",
      "1;",
      "\0",
      "\v1",
      "\f1",
    ],
  ];
  for (const text of corners.flat()) agrees(Buffer.from(text));
});

test(
  "nesting deeper than the bound is refused and up to it accepted, which is the one difference " +
    "from JSON.parse",
  () => {
    const nested = (depth: number): Buffer[] => [
      Buffer.from("[".repeat(depth) + "]".repeat(depth)),
      Buffer.from(`${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`),
    ];
    for (const bytes of nested(MAX_DEPTH)) assert.equal(isJson(bytes), true);
    for (const bytes of nested(MAX_DEPTH + 1)) assert.equal(isJson(bytes), false);
  },
);

test("a million brackets are refused without a deep stack", () => {
  for (const text of [
    "[".repeat(1_000_000),
    '{"a":'.repeat(200_000),
    "[".repeat(500_000) + "]".repeat(500_000),
  ])
    assert.equal(isJson(Buffer.from(text)), false);
});

test("a value is found to end where it ends, whatever follows it", () => {
  fc.assert(
    fc.property(
      whiteSpace,
      valueText,
      fc.constantFrom(",", "]", "}", " ", ""),
      (before, text, after) => {
        const bytes = Buffer.from(`${before}${text}${after}`);
        const start = skipSpace(bytes, 0, bytes.length);
        const end = skipValue(bytes, start, bytes.length, MAX_DEPTH);
        assert.equal(bytes.toString("utf8", start, end), text);
      },
    ),
    { numRuns: 1_000 },
  );
});

test("a scan never looks beyond the end it was given", () => {
  fc.assert(
    fc.property(valueText, fc.nat(), (text, chance) => {
      const bytes = Buffer.from(text);
      const end = chance % bytes.length;
      const whole = skipValue(bytes, 0, end, MAX_DEPTH);
      assert.equal(whole, skipValue(Buffer.from(bytes.subarray(0, end)), 0, end, MAX_DEPTH));
      assert.ok(whole <= end);
    }),
    { numRuns: 2_000 },
  );
});

test("the elements of an array are found as written, in order, up to the limit", () => {
  const array = fc.array(fc.tuple(whiteSpace, valueText, whiteSpace), { maxLength: 6 });
  fc.assert(
    fc.property(array, fc.nat(8), (items, limit) => {
      const bytes = Buffer.from(`[${items.map((it) => it.join("")).join(",")}]`);
      const found = elements(bytes, 0, bytes.length, limit).map(({ start, end }) =>
        bytes.toString("utf8", start, end),
      );
      assert.deepEqual(
        found,
        items.slice(0, limit).map(([, text]) => text),
      );
    }),
    { numRuns: 1_000 },
  );
});
