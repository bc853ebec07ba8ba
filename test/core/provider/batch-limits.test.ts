// Refusals of batches: which words and statuses mean one, what is learned of the number of calls,
// and for how long.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  batchRefusalOf,
  isCutShort,
  LEARNED_BATCH_MS,
  learnedFrom,
  mostAtOnce,
} from "../../../src/core/provider/budget/batch-limits.ts";
import { type Failure, plainFailure } from "../../../src/core/rpc/failure.ts";

function failure(message: string, code: number | null = null, httpStatus = 200): Failure {
  return { ...plainFailure(code === null ? "body" : "error", message), code, httpStatus };
}

/** What a refusal of the whole batch says: a number, or what there is instead of one. */
function wholeOf(message: string, code: number | null = null, httpStatus = 200) {
  const refusal = batchRefusalOf(failure(message, code, httpStatus), true);
  return refusal?.kind === "too_large" ? (refusal.most ?? "fewer") : (refusal?.kind ?? null);
}

test("words of nodes and vendors about batches are understood", () => {
  const cases = [
    ["batch too large", -32600, "fewer"],
    [
      "batch limit 100 exceeded (can increase by --rpc.batch.limit). Requested batch of size: 250",
      -32000,
      100,
    ],
    ["Batch of more than 3 requests are not allowed on free tier", 31, 3],
    ["Batched requests are not supported by this server", -32005, "unsupported"],
    ["batch requests are disabled", -32000, "unsupported"],
    ["Batch size too large", -32600, "fewer"],
    ["maximum batch size is 10", -32600, 10],
    ["The batch request was too large. Server limit: 50", -32010, 50],
    ["Invalid Request", -32600, "unsupported"],
    ["Parse error", -32700, "unsupported"],
    ["invalid type: sequence, arrays not supported", -32000, "unsupported"],
  ] as const;
  for (const [message, code, said] of cases) assert.equal(wholeOf(message, code), said, message);
});

test("a status that says that the body was not read is a refusal, one about load or rights is none", () => {
  for (const status of [400, 405, 415, 422, 501])
    assert.equal(wholeOf("", null, status), "unsupported");
  assert.equal(wholeOf("<html>", null, 413), "fewer");
  for (const status of [200, 401, 402, 403, 404, 408, 429, 500, 502, 503])
    assert.equal(wholeOf("<html>no</html>", null, status), null, String(status));
  assert.equal(wholeOf("batch limit 10 exceeded", -32005, 429), null, "it may come again later");
  assert.equal(wholeOf("batch rate limit: 10 per second", -32005), null);
  assert.equal(wholeOf("internal error", -32603), null);
});

test("of single calls only the words of a node about the batch count, never those of a contract", () => {
  assert.deepEqual(batchRefusalOf(failure("batch too large", -32600), false), {
    kind: "too_large",
    most: null,
  });
  assert.equal(batchRefusalOf(failure("Invalid Request", -32600), false), null);
  assert.equal(batchRefusalOf(failure("execution reverted: batch limit exceeded", 3), false), null);
  assert.equal(batchRefusalOf(failure("execution reverted: batch too large", -32000), false), null);
  assert.ok(isCutShort(failure("response too large", -32003)));
  assert.ok(!isCutShort(failure("response too large", -32000)));
});

test("what is learned is always fewer than were sent, and is forgotten after an hour", () => {
  const limits = { max: 100, waitMs: 0 };
  const mostAfter = (most: number | null, sent: number): number =>
    learnedFrom({ kind: "too_large", most }, sent, 0).most;
  assert.deepEqual([mostAfter(10, 64), mostAfter(null, 64), mostAfter(200, 64)], [10, 32, 32]);
  assert.deepEqual([mostAfter(null, 3), mostAfter(null, 2), mostAfter(64, 64)], [1, 1, 32]);
  const learned = learnedFrom({ kind: "unsupported" }, 64, 5_000);
  assert.equal(mostAtOnce(limits, null, 0), 100);
  assert.equal(mostAtOnce(limits, learned, 5_000), 1);
  assert.equal(mostAtOnce(limits, learned, 4_999 + LEARNED_BATCH_MS), 1);
  assert.equal(mostAtOnce(limits, learned, 5_000 + LEARNED_BATCH_MS), 100);
  assert.equal(mostAtOnce(limits, learned, 4_000), 100, "learned in the future: nothing is known");
});
