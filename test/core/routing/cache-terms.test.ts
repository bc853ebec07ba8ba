// Who may have an answer kept: only a provider that had the block when it was asked, on the branch
// on which all are. What is kept wrongly is told to everybody, and of final blocks for good.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Answering,
  type BlocksNow,
  type CacheableAnswer,
  type KeepFacts,
  keepTerms,
} from "../../../src/core/routing/cache-terms.ts";

const A = `0x${"a".repeat(64)}`;
const B = `0x${"b".repeat(64)}`;
const BLOCK_TIME_MS = 12_000;
const NO_BLOCK = { number: null, hash: null };
const RESULT: CacheableAnswer = { kind: "result", isNull: false, isEmpty: false, block: NO_BLOCK };
/** Block 50 is final, 90 is not, 100 is the newest. */
const NOW: BlocksNow = {
  servedTip: () => 100,
  finalized: () => 60,
  epoch: 0,
  agreedHash: () => A,
  isDisputed: () => false,
  agreedMs: () => BLOCK_TIME_MS,
  isUntouched: () => true,
};
const PROVIDER: Answering = {
  highestBefore: 100,
  tipBefore: 100,
  tipNow: 100,
  hashAt: () => A,
};

function termsOf(
  number: number,
  {
    provider = {},
    now = {},
    ...more
  }: {
    readonly provider?: Partial<Answering>;
    readonly now?: Partial<BlocksNow>;
  } & Partial<Pick<KeepFacts, "subject" | "answer" | "named">> = {},
) {
  return keepTerms({
    subject: { kind: "number", number },
    answer: RESULT,
    named: false,
    now: { ...NOW, ...now },
    before: { epoch: 0, servedTip: 100, servedHash: A },
    provider: { ...PROVIDER, ...provider },
    blockTimeMs: BLOCK_TIME_MS,
    finalityDepth: 64,
    ...more,
  });
}

/** Answers that name block `number`, by what was asked for. */
function asked(
  number: number,
): readonly Partial<Pick<KeepFacts, "subject" | "answer" | "named">>[] {
  const answer = { ...RESULT, block: { number, hash: A } };
  return [
    { answer: RESULT },
    { answer: { ...RESULT, isEmpty: true } },
    { answer, named: true },
    { answer, subject: { kind: "transaction" } },
    { answer, subject: { kind: "hash" } },
  ];
}

test("only of a provider that was known to have the block when it was asked", () => {
  for (const number of [50, 90])
    for (const more of asked(number)) {
      assert.notEqual(termsOf(number, more), null, JSON.stringify(more));
      for (const highestBefore of [number - 1, -1])
        assert.equal(termsOf(number, { ...more, provider: { highestBefore } }), null);
      assert.notEqual(termsOf(number, { ...more, provider: { highestBefore: number } }), null);
    }
});

test("not of a provider that has another block there, and nothing that is disputed", () => {
  for (const number of [50, 90])
    for (const more of asked(number)) {
      assert.equal(termsOf(number, { ...more, provider: { hashAt: () => B } }), null);
      const now = { isDisputed: () => true, agreedHash: () => null };
      assert.equal(termsOf(number, { ...more, now, provider: { hashAt: () => null } }), null);
    }
});

test("what names another block than the one that is agreed on is not kept", () => {
  for (const number of [50, 90])
    for (const more of asked(number).slice(2)) {
      const answer = { ...RESULT, block: { number, hash: B } };
      assert.equal(termsOf(number, { ...more, answer }), null);
    }
});

test("`null` is never kept, and what is empty by a hash not where it names no block", () => {
  const answer = { ...RESULT, isNull: true, isEmpty: true };
  for (const number of [50, 90]) assert.equal(termsOf(number, { answer }), null);
  const empty = { ...RESULT, isEmpty: true };
  assert.equal(termsOf(50, { answer: empty, subject: { kind: "hash" } }), null);
});

test("a block that names itself is kept also of a provider without a socket, state is not", () => {
  const silent = { hashAt: () => null, tipBefore: null, tipNow: null };
  const answer = { ...RESULT, block: { number: 90, hash: A } };
  assert.equal(termsOf(90, { answer, named: true, provider: silent })?.class, "block");
  assert.equal(termsOf(90, { provider: silent }), null);
});
