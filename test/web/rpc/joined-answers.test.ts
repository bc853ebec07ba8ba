// The answers of a batch joined to one array: every byte is that of the answers written one by one,
// whatever their ids, lengths and order of members.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readAnswer } from "../../../src/core/rpc/answer.ts";
import type { Evidence } from "../../../src/web/rpc/answers/evidence.ts";
import { itemAnswerOf, JoinedAnswers } from "../../../src/web/rpc/answers/joined-answers.ts";
import { renderReply } from "../../../src/web/rpc/answers/render-reply.ts";
import type { Reply } from "../../../src/web/rpc/answers/reply.ts";
import { objectText, stringText } from "../../fakes/json-text.ts";
import { resultOutcome } from "../../fakes/outcome.ts";

const WIRE_ID = "1234567890123456";
const callerId = fc.oneof(
  stringText,
  fc.constantFrom("1", "null", '"é"', `"${"x".repeat(46)}"`, `"${"x".repeat(47)}"`, "-7"),
);
const resultText = fc.oneof(
  stringText,
  fc.integer({ min: 3_990, max: 4_060 }).map((chars) => `"${"y".repeat(chars)}"`),
  fc.constantFrom("null", `"${"z".repeat(70_000)}"`),
);
const envelope = resultText.chain((value) =>
  fc.shuffledSubarray<readonly [string, string]>(
    [
      ['"jsonrpc"', '"2.0"'],
      ['"id"', WIRE_ID],
      ['"result"', value],
    ],
    { minLength: 3 },
  ),
);
const evidence = { version: 1 } as unknown as Evidence;

/** A reply as far as it is rendered. */
function replyOf(id: string, outcome: Reply["outcome"]): Reply {
  return { id, outcome, target: { legacyForms: null } } as unknown as Reply;
}

const item = fc
  .tuple(callerId, fc.oneof(envelope, resultText), fc.constantFrom(null, null, null, evidence))
  .map(([id, given, meta]) => {
    if (typeof given === "string") return { reply: replyOf(id, resultOutcome(given)), meta };
    const body = Buffer.from(objectText(given, []));
    const answer = readAnswer(body, WIRE_ID);
    assert.ok(answer.kind === "result");
    return { reply: replyOf(id, { ...answer, body }), meta };
  });

/** Items, and for each how late its answer comes. */
const batch = fc
  .tuple(
    fc.constantFrom(0, 60, 70),
    fc.array(fc.tuple(fc.option(item), fc.nat()), { maxLength: 40 }),
  )
  .map(([more, some]) => [...some, ...Array.from({ length: more }, () => SHORT)]);
const SHORT = [{ reply: replyOf("1", resultOutcome("2")), meta: null }, 0] as const;

test("joined answers are the answers one by one, in order, and long ones are not copied", () => {
  fc.assert(
    fc.property(batch, (given) => {
      const items = given.map(([one]) => one);
      const shown = items.filter((one) => one !== null);
      const answers = items.map((one) => (one === null ? null : itemAnswerOf(one.reply, one.meta)));
      const all = new JoinedAnswers(items.length);
      const places = given.map(([, lateness], place) => ({ lateness, place }));
      for (const { place } of places.toSorted((a, b) => a.lateness - b.lateness))
        all.put(place, answers[place] ?? null);
      const pieces = all.end();
      if (shown.length === 0) return assert.equal(pieces, null);
      const texts = shown.map(({ reply, meta }) => Buffer.concat(renderReply(reply, meta)));
      assert.equal(Buffer.concat(pieces ?? []).toString(), `[${texts.join(",")}]`);
      const lengths = answers.flatMap((answer) => (answer === null ? [] : [answer.bytes]));
      assert.deepEqual(
        lengths,
        texts.map(({ length }) => length),
      );
      const long = texts.filter(({ length }) => length > 70_000).length;
      assert.ok((pieces ?? []).filter(({ length }) => length > 65_536).length >= long);
    }),
    { numRuns: 400 },
  );
});
