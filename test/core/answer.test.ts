// Answers as bytes against an oracle made of JSON.parse: whole ones, and long ones judged by head and tail with the cut at every place.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readAnswer, readAnswerHead, readAnswerTail, readError, readLongResult, TAIL_BYTES } from "../../src/core/answer.ts";
import { nameText, objectText, stringText, valueText, whiteSpace } from "../fakes/json-text.ts";

type Member = readonly [key: string, value: string];
const WIRE_ID = "17";

const spacing = fc.array(whiteSpace, { maxLength: 10 });
const VERSION: Member = ['"jsonrpc"', '"2.0"'];
const ID: Member = ['"id"', WIRE_ID];
const extras = fc.array(fc.tuple(fc.constantFrom('"extra"', '"__proto__"', '"testing"'), valueText), { maxLength: 1 });

/** Every order of the members of a good answer. */
const goodMembers: fc.Arbitrary<readonly Member[]> = fc
  .tuple(valueText, fc.boolean(), extras)
  .chain(([result, withNull, more]) => shuffled([VERSION, ID, ['"result"', result], ...(withNull ? [['"error"', "null"] as const] : []), ...more]));

const anyMembers: fc.Arbitrary<readonly Member[]> = fc.array(
  fc.oneof(
    fc.constantFrom<Member>(
      VERSION,
      ID,
      ['"result"', "null"],
      ['"error"', "null"],
      ['"\\u0072esult"', "1"],
      ['"id"', "18"],
      ['"id"', '"17"'],
      ['"jsonrpc"', '"1.0"'],
    ),
    fc.tuple(fc.constantFrom('"result"', '"error"'), valueText),
    fc.tuple(nameText, valueText),
  ),
  { maxLength: 6 },
);

function shuffled(members: readonly Member[]): fc.Arbitrary<readonly Member[]> {
  return fc.shuffledSubarray([...members], { minLength: members.length });
}

/** What a body means, by JSON.parse alone. */
function meaning(members: readonly Member[]) {
  const texts = (name: string): readonly string[] => members.filter(([key]) => JSON.parse(key) === name).map(([, value]) => value);
  const [result] = texts("result");
  const [error = "null"] = texts("error");
  if (["id", "jsonrpc", "result", "error", "method", "params"].some((name) => texts(name).length > 1)) return { kind: "bad" };
  const sameId = texts("id")[0] === WIRE_ID;
  if (error !== "null") return result === undefined || result === "null" ? { kind: "error", value: error, sameId } : { kind: "bad" };
  return result !== undefined && texts("jsonrpc")[0] === '"2.0"' ? { kind: "result", value: result, sameId } : { kind: "bad" };
}

function whole(text: string) {
  const bytes = Buffer.from(text);
  const answer = readAnswer(bytes, WIRE_ID);
  return answer.kind === "bad" ? { kind: "bad" } : { kind: answer.kind, value: bytes.toString("utf8", answer.start, answer.end), sameId: answer.sameId };
}

test("a whole answer is read as JSON.parse reads it, in every order of its members", () => {
  fc.assert(
    fc.property(fc.oneof(goodMembers, anyMembers), spacing, whiteSpace, (members, spaces, around) => {
      const text = around + objectText(members, spaces) + around;
      assert.deepEqual(whole(text), meaning(members), text);
    }),
    { numRuns: 4_000 },
  );
});

test("an answer that was cut short or changed in one byte is never taken for one, unless it still is one", () => {
  fc.assert(
    fc.property(goodMembers, spacing, fc.nat(), fc.constantFrom("cut", ...'{}[]:,"\\ 1\0'), (members, spaces, chance, change) => {
      const text = objectText(members, spaces);
      const bytes = Buffer.from(text);
      const at = chance % bytes.length;
      const changed = change === "cut" ? bytes.subarray(0, at) : Buffer.concat([bytes.subarray(0, at), Buffer.from(change), bytes.subarray(at + 1)]);
      const answer = readAnswer(changed, WIRE_ID);
      if (answer.kind === "bad") return;
      const value: unknown = JSON.parse(changed.toString("utf8"));
      assert.ok(typeof value === "object" && value !== null && answer.kind in value);
    }),
    { numRuns: 4_000 },
  );
});

test("the result of the usual answer is found to the byte, and anything behind the answer is refused", () => {
  fc.assert(
    fc.property(valueText, whiteSpace, (value, space) => {
      const text = `{"jsonrpc":"2.0","id":17,"result":${value}}${space}`;
      assert.deepEqual(whole(text), { kind: "result", value, sameId: true });
      for (const junk of ["}", "x", "{}", ",", "\0"]) assert.equal(whole(text + junk).kind, "bad");
    }),
    { numRuns: 500 },
  );
});

test("only the very same id is ours: another type, a longer number or a fraction is not", () => {
  for (const id of ["18", "1", "170", "17.0", "1.7e1", '"17"', "null", "[17]", '{"a":17}', "-17"]) {
    assert.notDeepEqual(whole(`{"jsonrpc":"2.0","id":${id},"result":1}`), { kind: "result", value: "1", sameId: true }, id);
  }
});

/** Reads a long answer as the transport does: its beginning, and its last bytes. */
function byHeadAndTail(text: string, headBytes: number) {
  const bytes = Buffer.from(text);
  const head = readAnswerHead(bytes.subarray(0, headBytes), WIRE_ID);
  if (head.kind !== "result") return head;
  const tail = bytes.subarray(Math.max(head.start, bytes.length - TAIL_BYTES));
  const fromEnd = readAnswerTail(tail, head, WIRE_ID, bytes[head.start] ?? 0);
  return fromEnd === null ? { kind: "broken" } : { kind: "result", value: bytes.toString("utf8", head.start, bytes.length - fromEnd) };
}

const longValue = fc.oneof(
  fc.array(valueText, { minLength: 1, maxLength: 4 }).map((items) => `[${items.join(",")}]`),
  fc.tuple(nameText, valueText).map(([key, value]) => `{${key}:${value}}`),
  stringText,
);

test("by its head a long answer is a result or left for later, wherever the cut falls, and never refused", () => {
  const members = longValue.chain((result) => shuffled([VERSION, ID, ['"result"', result]]));
  fc.assert(
    fc.property(members, spacing, (them, spaces) => {
      const bytes = Buffer.from(objectText(them, spaces));
      const answer = readAnswer(bytes, WIRE_ID);
      assert.ok(answer.kind === "result");
      for (let cut = 1; cut <= bytes.length; cut++) {
        const head = readAnswerHead(bytes.subarray(0, cut), WIRE_ID);
        assert.notEqual(head.kind, "bad", bytes.toString("utf8", 0, cut));
        if (head.kind === "result") assert.equal(head.start, answer.start);
      }
    }),
    { numRuns: 500 },
  );
});

test("by head and tail a long result is the one JSON.parse finds, in every order of the members", () => {
  const members = longValue.chain((result) =>
    fc.boolean().chain((withNull) => shuffled([VERSION, ID, ['"result"', result], ...(withNull ? [['"error"', "null"] as const] : [])])),
  );
  fc.assert(
    fc.property(members, spacing, whiteSpace, (them, spaces, after) => {
      const text = objectText(them, spaces) + after;
      const expected = them.find(([key]) => key === '"result"')?.[1];
      const errorFirst = them.findIndex(([key]) => key === '"error"') < them.findIndex(([key]) => key === '"result"');
      const found = byHeadAndTail(text, Buffer.byteLength(text));
      if (found.kind === "whole" && errorFirst) return;
      assert.deepEqual(found, { kind: "result", value: expected }, text);
    }),
    { numRuns: 2_000 },
  );
});

test("a long answer with another id is refused, whether the id stands before the result or behind it", () => {
  const result = `[${'"x",'.repeat(100)}1]`;
  for (const id of ["18", "170", "171", "1", "null", '"17"', "-17", "17.5"]) {
    for (const text of [
      `{"jsonrpc":"2.0","id":${id},"result":${result}}`,
      `{"jsonrpc":"2.0","result":${result},"id":${id}}`,
      `{"result":${result},"id": ${id} ,"jsonrpc":"2.0"}`,
      `{"jsonrpc":"2.0","result":${result}}`,
      `{"jsonrpc":"2.0","result":[${result},{"id":17}]}`,
      `{"jsonrpc":"2.0","result":{"a":${result},"id":17}}`,
    ]) {
      assert.notEqual(byHeadAndTail(text, 60).kind, "result", text.slice(-40));
    }
  }
});

test("a long answer that ends too early, too late or as something else is broken", () => {
  const head = '{"jsonrpc":"2.0","id":17,"result":';
  const items = '"0x1",'.repeat(100);
  const broken = [
    `[${items}1]`,
    `[${items}1}`,
    `[${items}"1`,
    `[${items}1],`,
    `{"a":[${items}1]}`,
    `{"a":[${items}1]]}`,
    `"${"x".repeat(600)}}`,
    `"${"x".repeat(600)}`,
    `[${items}1]}x`,
  ];
  for (const value of broken) assert.equal(byHeadAndTail(head + value, 60).kind, "broken", value.slice(-20));
  assert.equal(byHeadAndTail(`{"jsonrpc":"1.0","id":17,"result":[${items}1]}`, 60).kind, "broken");
  assert.equal(byHeadAndTail(`{"id":17,"result":[${items}1]}`, 60).kind, "broken");
});

test("a string result that holds what looks like the end of an answer is passed on whole", () => {
  const value = JSON.stringify(`${"x".repeat(500)}","id":17,"jsonrpc":"2.0"}`);
  assert.deepEqual(byHeadAndTail(`{"jsonrpc":"2.0","id":17,"result":${value}}`, 60), { kind: "result", value });
  assert.deepEqual(byHeadAndTail(`{"result":${value},"jsonrpc":"2.0","id":17}`, 60), { kind: "result", value });
});

test("an error, or a stranger before the result, is left to be read whole; what is no object is refused at once", () => {
  assert.equal(byHeadAndTail('{"jsonrpc":"2.0","id":17,"error":{"code":-32000}}', 60).kind, "whole");
  assert.equal(byHeadAndTail(`{"padding":"${"x".repeat(2_000)}","id":17,"jsonrpc":"2.0","result":1}`, 1_024).kind, "whole");
  for (const text of ["<html>", "[1]", '"x"', "null", "\0\0", "   <"]) assert.equal(byHeadAndTail(text, 60).kind, "bad", text);
});

test("a long complete body is read by head and tail with the same outcome as whole, a short one is left alone", () => {
  const strings = fc.array(stringText, { minLength: 400, maxLength: 900 });
  fc.assert(
    fc.property(strings, fc.shuffledSubarray([0, 1, 2], { minLength: 3 }), spacing, (items, order, spaces) => {
      const members: readonly Member[] = [VERSION, ID, ['"result"', `[${items.join(",")}]`]];
      const bytes = Buffer.from(
        objectText(
          order.map((at) => members[at] ?? VERSION),
          spaces,
        ),
      );
      const answer = readAnswer(bytes, WIRE_ID);
      const long = readLongResult(bytes, WIRE_ID);
      assert.ok(answer.kind === "result");
      if (bytes.length <= 4_096) assert.equal(long, null);
      else if (long !== null) assert.deepEqual(long, { start: answer.start, end: answer.end });
    }),
    { numRuns: 100 },
  );
});

test("an error member of any shape is read without a throw, and only a number is a code", () => {
  fc.assert(
    fc.property(valueText, (text) => {
      const { code, message, data } = readError(Buffer.from(text));
      assert.ok(code === null || typeof code === "number");
      assert.equal(typeof message, "string");
      assert.notEqual(data, undefined);
    }),
  );
  assert.deepEqual(readError(Buffer.from('{"code":3,"message":"execution reverted","data":"0x08"}')), { code: 3, message: "execution reverted", data: "0x08" });
  assert.deepEqual(readError(Buffer.from('"plain text"')), { code: null, message: "plain text", data: null });
  assert.deepEqual(readError(Buffer.from('{"code":"3","message":5}')), { code: null, message: "", data: null });
});
