// Answers under the caller's id: every byte of the provider's but those of the id, for answers and
// ids of every length.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readAnswer } from "../../../src/core/rpc/answer.ts";
import {
  renderResult,
  renderStreamHead,
  rewriteResult,
} from "../../../src/web/rpc/answers/render-reply.ts";
import { objectText, stringText, valueText, whiteSpace } from "../../fakes/json-text.ts";

const WIRE_ID = "1234567890123456";
const callerId = fc.oneof(
  stringText,
  fc.constantFrom(
    "1",
    "null",
    '"é😀"',
    `"${"x".repeat(48)}"`,
    `"${"long".repeat(500)}"`,
    "123456789012345678901234567890",
  ),
);
const result = fc.oneof(
  valueText,
  fc.integer({ min: 3_900, max: 4_200 }).map((chars) => `"${"ü".repeat(chars / 2)}"`),
);
const members = result.chain((value) =>
  fc.shuffledSubarray<readonly [string, string]>(
    [
      ['"jsonrpc"', '"2.0"'],
      ['"id"', WIRE_ID],
      ['"result"', value],
      ['"extra"', '"ä"'],
    ],
    { minLength: 4 },
  ),
);

test(
  "a result is the provider's answer byte for byte with the caller's id, in every order of the " +
    "members and wherever the id stands",
  () => {
    fc.assert(
      fc.property(members, callerId, fc.array(whiteSpace, { maxLength: 8 }), (them, id, spaces) => {
        const text = objectText(them, spaces);
        const body = Buffer.from(text);
        const answer = readAnswer(body, WIRE_ID);
        assert.ok(answer.kind === "result");
        const expected = objectText(
          them.map(([key, value]) => [key, key === '"id"' ? id : value] as const),
          spaces,
        );
        assert.equal(Buffer.concat(renderResult(body, answer, id)).toString(), expected);
        assert.equal(
          body.toString(),
          text,
          "what the provider sent stays as it is: others may read it",
        );
        assert.equal(
          Buffer.concat(rewriteResult(Buffer.from(text), answer, id)).toString(),
          expected,
          "rewritten where it lies",
        );
        if (answer.idAt > answer.start) return;
        const head = renderStreamHead(Buffer.from(id), {
          head: body.subarray(0, answer.start),
          idAt: answer.idAt,
        });
        assert.ok(expected.startsWith(head.toString()));
      }),
      { numRuns: 2_000 },
    );
  },
);

test("a value without an envelope gets one of ours", () => {
  const body = Buffer.from('xx"0x1"yy');
  assert.equal(
    Buffer.concat(renderResult(body, { start: 2, end: 7, idAt: null }, '"a"')).toString(),
    '{"jsonrpc":"2.0","id":"a","result":"0x1"}',
  );
  assert.equal(
    renderStreamHead(Buffer.from('"a"'), null).toString(),
    '{"jsonrpc":"2.0","id":"a","result":',
  );
});
