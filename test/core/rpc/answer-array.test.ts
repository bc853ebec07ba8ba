// Arrays that are cut while they arrive: every element whole and in order, wherever the pieces end;
// nothing of what is no array of objects.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ArrayCutter, type ArrayProgress } from "../../../src/core/rpc/answer-array.ts";

interface Cut {
  readonly elements: readonly string[];
  readonly progress: ArrayProgress;
}

/** Cuts a text that arrives in pieces of these lengths, the last of them again and again. */
function cut(text: string, lengths: readonly number[]): Cut {
  const bytes = Buffer.from(text);
  const cutter = new ArrayCutter();
  const elements: string[] = [];
  let element: Buffer[] = [];
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const chunk = bytes.subarray(at, at + (lengths[n] ?? lengths.at(-1) ?? bytes.length));
    at += chunk.length;
    cutter.take(chunk, (start, end, isLast) => {
      element.push(chunk.subarray(start, end));
      if (!isLast) return true;
      elements.push(Buffer.concat(element).toString());
      element = [];
      return true;
    });
  }
  return { elements, progress: cutter.progress };
}

const lengths = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 });
const objects = fc.array(
  fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 }),
  { maxLength: 6 },
);
const space = fc.constantFrom("", " ", "\n\t ", "\r\n");

test("property: an array falls into its elements, wherever its pieces end", () => {
  fc.assert(
    fc.property(objects, lengths, space, (values, pieces, blank) => {
      const texts = values.map((value) => JSON.stringify(value, null, blank.length));
      const text = `${blank}[${blank}${texts.join(`${blank},${blank}`)}${blank}]${blank}`;
      assert.deepEqual(cut(text, pieces), { elements: texts, progress: "closed" });
    }),
  );
});

test("quotes, brackets and backslashes in strings end nothing, in pieces of one byte too", () => {
  const element = JSON.stringify({ 'a"]},[{': '\\" ] } \\\\', b: ["\\", "]"] });
  assert.deepEqual(cut(`[${element},${element}]`, [1]), {
    elements: [element, element],
    progress: "closed",
  });
});

test("what is no array of objects is told apart", () => {
  const cases: readonly (readonly [text: string, progress: ArrayProgress, elements: number])[] = [
    ["", "start", 0],
    [" \n", "start", 0],
    ['{"error":{}}', "other", 0],
    ["<html>[{}]", "other", 0],
    ["[]", "closed", 0],
    ["[", "between", 0],
    ['[{"a":1}', "between", 1],
    ['[{"a":1},', "between", 1],
    ['[{"a":1},{"b"', "element", 1],
    ["[1]", "malformed", 0],
    ["[null,{}]", "malformed", 0],
    ["[[{}]]", "malformed", 0],
    ["[{},]", "malformed", 1],
    ["[,{}]", "malformed", 0],
    ["[{}{}]", "malformed", 1],
    ["[{}] {}", "malformed", 1],
    ["[{}]]", "malformed", 1],
    ['[{} "a"]', "malformed", 1],
  ];
  for (const [text, progress, count] of cases)
    for (const pieces of [[1], [2], [100]]) {
      const found = cut(text, pieces);
      assert.deepEqual([found.progress, found.elements.length], [progress, count], text);
    }
});

test("a reader that has enough is told no more", () => {
  const cutter = new ArrayCutter();
  let pieces = 0;
  cutter.take(Buffer.from("[{},{},{}]"), () => ++pieces < 2);
  assert.equal(pieces, 2);
});
