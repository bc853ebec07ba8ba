// The search for the oldest block: exact for short windows, within a share for long ones, in few
// questions, whatever block it is and however many blocks are empty.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type BlockPresence, oldestBlock } from "../../../src/upstream/probe/oldest-block.ts";

async function search(head: number, look: (block: number) => BlockPresence) {
  let questions = 0;
  const found = await oldestBlock(head, async (block) => {
    questions++;
    return look(block);
  });
  return { found, questions };
}

test("windows of any length are found within their 256th part, in at most 40 questions", async () => {
  for (const head of [1, 2, 63, 64, 65, 1_000, 20_000_000, 400_000_000])
    for (const window of [0, 1, 2, 63, 64, 65, 127, 128, 200, 10_000, 90_000, 15_000_000]) {
      const oldest = head - window;
      if (oldest <= 1) continue;
      const { found, questions } = await search(head, (block) =>
        block >= oldest ? "present" : "absent",
      );
      assert.ok(found !== null && found >= oldest, `${head} ${window}: ${found}`);
      assert.ok(found - oldest <= window / 200, `${head} ${window}: ${found - oldest} too new`);
      assert.ok(questions <= 40, `${head} ${window}: ${questions} questions`);
    }
});

test("nothing, everything, and blocks that hold nothing", async () => {
  assert.deepEqual(await search(1_000, () => "absent"), { found: null, questions: 1 });
  assert.deepEqual(await search(1_000, () => "present"), { found: 0, questions: 2 });
  assert.equal((await search(1_000, () => "empty")).found, null);
  const young = (block: number): BlockPresence => (block < 900 ? "empty" : "present");
  assert.equal((await search(1_000, young)).found, 0);
  const cut = (block: number): BlockPresence => {
    if (block < 100) return "empty";
    return block < 500 ? "absent" : "present";
  };
  assert.equal((await search(1_000, cut)).found, 500);
});
