// Answers as bytes against an oracle made of JSON.parse: whole ones, and long ones judged by head
// and tail with the cut at every place.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  readAnswer,
  readAnswerHead,
  readAnswerTail,
  readError,
  readLongResult,
} from "../../../src/core/rpc/answer.ts";
import { ValueScan } from "../../../src/core/rpc/value-scan.ts";
import { WIRE_ID_BYTES } from "../../../src/core/rpc/wire-request.ts";
import { nameText, objectText, stringText, valueText, whiteSpace } from "../../fakes/json-text.ts";

type Member = readonly [key: string, value: string];
const WIRE_ID = "1234567890123456";

const spacing = fc.array(whiteSpace, { maxLength: 10 });
const VERSION: Member = ['"jsonrpc"', '"2.0"'];
const ID: Member = ['"id"', WIRE_ID];
const extras = fc.array(
  fc.tuple(fc.constantFrom('"extra"', '"__proto__"', '"testing"'), valueText),
  { maxLength: 1 },
);

/** Every order of the members of a good answer. */
const goodMembers: fc.Arbitrary<readonly Member[]> = fc
  .tuple(valueText, fc.boolean(), extras)
  .chain(([result, withNull, more]) =>
    shuffled([
      VERSION,
      ID,
      ['"result"', result],
      ...(withNull ? [['"error"', "null"] as const] : []),
      ...more,
    ]),
  );

const anyMembers: fc.Arbitrary<readonly Member[]> = fc.array(
  fc.oneof(
    fc.constantFrom<Member>(
      VERSION,
      ID,
      ['"result"', "null"],
      ['"error"', "null"],
      ['"\\u0072esult"', "1"],
      ['"id"', "1234567890123457"],
      ['"id"', `"${WIRE_ID}"`],
      ['"id"', "null"],
      ['"\\u0069d"', WIRE_ID],
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
  const texts = (name: string): readonly string[] =>
    members.filter(([key]) => JSON.parse(key) === name).map(([, value]) => value);
  const [result] = texts("result");
  const [error = "null"] = texts("error");
  if (
    ["id", "jsonrpc", "result", "error", "method", "params"].some((name) => texts(name).length > 1)
  )
    return { kind: "bad" };
  if (error === "null" && result === undefined) return { kind: "bad" };
  const [id = "null"] = texts("id");
  if (id !== WIRE_ID && !id.startsWith("n")) return { kind: "foreign" };
  const owned = id === WIRE_ID;
  if (error !== "null")
    return result === undefined || result === "null"
      ? { kind: "error", value: error, owned }
      : { kind: "bad" };
  if (texts("jsonrpc")[0] !== '"2.0"') return { kind: "bad" };
  return owned ? { kind: "result", value: result, id } : { kind: "foreign" };
}

function whole(text: string) {
  const bytes = Buffer.from(text);
  const answer = readAnswer(bytes, WIRE_ID);
  switch (answer.kind) {
    case "bad":
    case "foreign":
      return { kind: answer.kind };
    case "error":
      return {
        kind: answer.kind,
        value: bytes.toString("utf8", answer.start, answer.end),
        owned: answer.owned,
      };
    case "result":
      return {
        kind: answer.kind,
        value: bytes.toString("utf8", answer.start, answer.end),
        id: bytes.toString("utf8", answer.idAt, answer.idAt + WIRE_ID_BYTES),
      };
  }
}

test("a whole answer is read as JSON.parse reads it, in every order of its members", () => {
  fc.assert(
    fc.property(
      fc.oneof(goodMembers, anyMembers),
      spacing,
      whiteSpace,
      (members, spaces, around) => {
        const text = around + objectText(members, spaces) + around;
        assert.deepEqual(whole(text), meaning(members), text);
      },
    ),
    { numRuns: 4_000 },
  );
});

test(
  "an answer that was cut short or changed in one byte is never taken for one, unless it still " +
    "is one",
  () => {
    fc.assert(
      fc.property(
        goodMembers,
        spacing,
        fc.nat(),
        fc.constantFrom("cut", ...'{}[]:,"\\ 1\0'),
        (members, spaces, chance, change) => {
          const text = objectText(members, spaces);
          const bytes = Buffer.from(text);
          const at = chance % bytes.length;
          const changed =
            change === "cut"
              ? bytes.subarray(0, at)
              : Buffer.concat([bytes.subarray(0, at), Buffer.from(change), bytes.subarray(at + 1)]);
          const answer = readAnswer(changed, WIRE_ID);
          if (answer.kind === "bad" || answer.kind === "foreign") return;
          const value: unknown = JSON.parse(changed.toString("utf8"));
          assert.ok(typeof value === "object" && value !== null && answer.kind in value);
        },
      ),
      { numRuns: 4_000 },
    );
  },
);

test(
  "the result of the usual answer is found to the byte, and anything behind the answer is " +
    "refused",
  () => {
    fc.assert(
      fc.property(valueText, whiteSpace, (value, space) => {
        const text = `{"jsonrpc":"2.0","id":${WIRE_ID},"result":${value}}${space}`;
        assert.deepEqual(whole(text), { kind: "result", value, id: WIRE_ID });
        for (const junk of ["}", "x", "{}", ",", "\0"])
          assert.equal(whole(text + junk).kind, "bad");
      }),
      { numRuns: 500 },
    );
  },
);

/** Ids that are not ours, however near they come. */
const OTHER_IDS = [
  "18",
  "1234567890123457",
  `${WIRE_ID}0`,
  WIRE_ID.slice(0, 15),
  `${WIRE_ID}.0`,
  "1.234567890123456e15",
  "1.234567890123456E+15",
  "12345678901234560e-1",
  `"${WIRE_ID}"`,
  `[${WIRE_ID}]`,
  `{"a":${WIRE_ID}}`,
  `-${WIRE_ID}`,
  '"\\u0031234567890123456"',
  "true",
];

test(
  "only the very same id is ours: another type, a longer number, a fraction or an exponent is " +
    "not, for a result as for an error",
  () => {
    for (const id of OTHER_IDS) {
      assert.deepEqual(whole(`{"jsonrpc":"2.0","id":${id},"result":1}`), { kind: "foreign" }, id);
      assert.deepEqual(whole(`{"jsonrpc":"2.0","result":1,"id":${id}}`), { kind: "foreign" }, id);
      assert.deepEqual(
        whole(`{"jsonrpc":"2.0","id":${id},"error":{"code":3}}`),
        { kind: "foreign" },
        id,
      );
    }
  },
);

test("what holds a second value is no answer, however long it is and whoever's the second one is", () => {
  const long = `["${"x".repeat(6_000)}",{"a":[{}]}]`;
  const own = `{"jsonrpc":"2.0","id":${WIRE_ID},"result":${long}`;
  for (const text of [
    `${own}}{"jsonrpc":"2.0","id":"18","result":${long}}`,
    `${own}}\n{"jsonrpc":"2.0","id":"18","result":{}}`,
    `${own},"id":18,"result":[]}`,
    `${own}},{"jsonrpc":"2.0","id":18,"result":[]}`,
    `${own}],[]}`,
    `${own}}}`,
    `${own},"x":[]}`,
  ]) {
    const bytes = Buffer.from(text);
    assert.equal(readLongResult(bytes, WIRE_ID), null, text.slice(-60));
    assert.notEqual(byHeadAndTail(text, 100).kind, "result", text.slice(-60));
  }
});

test("a result without an id is nobody's; an error without one is an error that is not ours", () => {
  for (const id of ['"id":null,', ""]) {
    assert.deepEqual(whole(`{"jsonrpc":"2.0",${id}"result":1}`), { kind: "foreign" });
    assert.deepEqual(whole(`{"jsonrpc":"2.0",${id}"error":{"code":3}}`), {
      kind: "error",
      value: '{"code":3}',
      owned: false,
    });
  }
});

test("two ids are no answer, whichever of them is ours and however they are written", () => {
  for (const [one, two] of [
    [WIRE_ID, "18"],
    ["18", WIRE_ID],
    [WIRE_ID, WIRE_ID],
  ]) {
    for (const key of ['"id"', '"\\u0069d"']) {
      const long = `"${"x".repeat(6_000)}"`;
      assert.equal(whole(`{"jsonrpc":"2.0","id":${one},${key}:${two},"result":1}`).kind, "bad");
      assert.equal(whole(`{"jsonrpc":"2.0","id":${one},"result":1,${key}:${two}}`).kind, "bad");
      for (const text of [
        `{"jsonrpc":"2.0","id":${one},${key}:${two},"result":${long}}`,
        `{"jsonrpc":"2.0","id":${one},"result":${long},${key}:${two}}`,
        `{"jsonrpc":"2.0","result":${long},"id":${one},${key}:${two}}`,
      ]) {
        assert.equal(readLongResult(Buffer.from(text), WIRE_ID), null, text.slice(-60));
        assert.notEqual(byHeadAndTail(text, 100).kind, "result", text.slice(-60));
      }
    }
  }
});

/** Reads a long answer as the transport does: its beginning, its result, and what is behind it. */
function byHeadAndTail(text: string, headBytes: number) {
  const bytes = Buffer.from(text);
  const head = readAnswerHead(bytes.subarray(0, headBytes), WIRE_ID);
  if (head.kind !== "result") return head;
  const end = ValueScan.of(bytes[head.start])?.take(bytes, head.start) ?? -1;
  const tailIdAt = end === -1 ? null : readAnswerTail(bytes.subarray(end), head, WIRE_ID);
  if (tailIdAt === null) return { kind: "broken" };
  const idAt = head.idAt ?? end + tailIdAt;
  assert.equal(bytes.toString("latin1", idAt, idAt + WIRE_ID_BYTES), WIRE_ID);
  return { kind: "result", value: bytes.toString("utf8", head.start, end) };
}

const longValue = fc.oneof(
  fc.array(valueText, { minLength: 1, maxLength: 4 }).map((items) => `[${items.join(",")}]`),
  fc.tuple(nameText, valueText).map(([key, value]) => `{${key}:${value}}`),
  stringText,
);

test(
  "by its head a long answer is a result or left for later, wherever the cut falls, and never " +
    "refused",
  () => {
    const members = longValue.chain((result) => shuffled([VERSION, ID, ['"result"', result]]));
    fc.assert(
      fc.property(members, spacing, (them, spaces) => {
        const bytes = Buffer.from(objectText(them, spaces));
        const answer = readAnswer(bytes, WIRE_ID);
        assert.ok(answer.kind === "result");
        for (let cut = 1; cut <= bytes.length; cut++) {
          const head = readAnswerHead(bytes.subarray(0, cut), WIRE_ID);
          assert.ok(
            head.kind === "result" || head.kind === "whole",
            bytes.toString("utf8", 0, cut),
          );
          if (head.kind !== "result") continue;
          assert.equal(head.start, answer.start);
          assert.equal(head.idAt, answer.idAt < answer.start ? answer.idAt : null);
        }
      }),
      { numRuns: 500 },
    );
  },
);

test("by head and tail a long result is the one JSON.parse finds, in every order of the members", () => {
  const members = longValue.chain((result) =>
    fc
      .boolean()
      .chain((withNull) =>
        shuffled([
          VERSION,
          ID,
          ['"result"', result],
          ...(withNull ? [['"error"', "null"] as const] : []),
        ]),
      ),
  );
  fc.assert(
    fc.property(members, spacing, whiteSpace, (them, spaces, after) => {
      const text = objectText(them, spaces) + after;
      const expected = them.find(([key]) => key === '"result"')?.[1];
      const errorFirst =
        them.findIndex(([key]) => key === '"error"') <
        them.findIndex(([key]) => key === '"result"');
      const found = byHeadAndTail(text, Buffer.byteLength(text));
      if (found.kind === "whole" && errorFirst) return;
      assert.deepEqual(found, { kind: "result", value: expected }, text);
    }),
    { numRuns: 2_000 },
  );
});

test(
  "a long answer with another id is refused, whether the id stands before the result or behind " +
    "it",
  () => {
    const result = `[${'"x",'.repeat(100)}1]`;
    for (const id of [...OTHER_IDS, "null"]) {
      for (const text of [
        `{"jsonrpc":"2.0","id":${id},"result":${result}}`,
        `{"jsonrpc":"2.0","result":${result},"id":${id}}`,
        `{"result":${result},"id": ${id} ,"jsonrpc":"2.0"}`,
        `{"jsonrpc":"2.0","result":${result}}`,
        `{"jsonrpc":"2.0","result":[${result},{"id":${WIRE_ID}}]}`,
        `{"jsonrpc":"2.0","result":{"a":${result},"id":${WIRE_ID}}}`,
      ]) {
        assert.notEqual(byHeadAndTail(text, 60).kind, "result", text.slice(-40));
      }
    }
  },
);

test("a long answer that ends too early, too late or as something else is broken", () => {
  const head = `{"jsonrpc":"2.0","id":${WIRE_ID},"result":`;
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
  for (const value of broken)
    assert.equal(byHeadAndTail(head + value, 60).kind, "broken", value.slice(-20));
  assert.equal(
    byHeadAndTail(`{"jsonrpc":"1.0","id":${WIRE_ID},"result":[${items}1]}`, 60).kind,
    "broken",
  );
  assert.equal(byHeadAndTail(`{"id":${WIRE_ID},"result":[${items}1]}`, 60).kind, "broken");
});

test("a string result that holds what looks like the end of an answer is passed on whole", () => {
  const value = JSON.stringify(`${"x".repeat(500)}","id":${WIRE_ID},"jsonrpc":"2.0"}`);
  assert.deepEqual(byHeadAndTail(`{"jsonrpc":"2.0","id":${WIRE_ID},"result":${value}}`, 60), {
    kind: "result",
    value,
  });
  assert.deepEqual(byHeadAndTail(`{"result":${value},"jsonrpc":"2.0","id":${WIRE_ID}}`, 60), {
    kind: "result",
    value,
  });
});

test(
  "an error, or a stranger before the result, is left to be read whole; what is no object is " +
    "refused at once",
  () => {
    assert.equal(
      byHeadAndTail(`{"jsonrpc":"2.0","id":${WIRE_ID},"error":{"code":-32000}}`, 60).kind,
      "whole",
    );
    assert.equal(
      byHeadAndTail(
        `{"padding":"${"x".repeat(2_000)}","id":${WIRE_ID},"jsonrpc":"2.0","result":1}`,
        1_024,
      ).kind,
      "whole",
    );
    for (const text of ["<html>", "[1]", '"x"', "null", "\0\0", "   <"])
      assert.equal(byHeadAndTail(text, 60).kind, "bad", text);
  },
);

test(
  "a long complete body is read by head and tail with the same outcome as whole, a short one " +
    "is left alone",
  () => {
    const strings = fc.array(stringText, { minLength: 100, maxLength: 900 });
    fc.assert(
      fc.property(
        strings,
        fc.shuffledSubarray([0, 1, 2], { minLength: 3 }),
        spacing,
        (items, order, spaces) => {
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
          if (bytes.length <= 1_024) assert.equal(long, null);
          else if (long !== null) assert.deepEqual(long, answer);
        },
      ),
      { numRuns: 100 },
    );
  },
);

test("an error member of any shape is read without a throw, and only a number is a code", () => {
  fc.assert(
    fc.property(valueText, (text) => {
      const { code, message, data } = readError(Buffer.from(text));
      assert.ok(code === null || typeof code === "number");
      assert.equal(typeof message, "string");
      assert.notEqual(data, undefined);
    }),
  );
  assert.deepEqual(
    readError(Buffer.from('{"code":3,"message":"execution reverted","data":"0x08"}')),
    { code: 3, message: "execution reverted", data: "0x08" },
  );
  assert.deepEqual(readError(Buffer.from('"plain text"')), {
    code: null,
    message: "plain text",
    data: null,
  });
  assert.deepEqual(readError(Buffer.from('{"code":"3","message":5}')), {
    code: null,
    message: "",
    data: null,
  });
});
