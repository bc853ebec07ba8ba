// A caller that reads slowly holds memory in proportion to what it has not read. Pieces that come
// in large buffers, as those of TLS providers do, may not use up its share of memory: it would be
// cut off and charged.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryBudget } from "../../../src/upstream/memory-budget.ts";
import type { AnswerStream } from "../../../src/upstream/transport.ts";
import { StreamedAnswer } from "../../../src/web/rpc/answers/streamed-answer.ts";
import type { HttpExchange } from "../../../src/web/rpc/caller.ts";
import { RequestMemory } from "../../../src/web/rpc/request-memory.ts";

const BUFFER_BYTES = 525_312;

/** A streamed answer to a caller that reads nothing until it is told to. */
function slowCaller() {
  const unwritten: { readonly chunk: Buffer; readonly written: () => void }[] = [];
  const recycled: Buffer[] = [];
  let isPaused = false;
  const unsent = (): number => unwritten.reduce((sum, { chunk }) => sum + chunk.length, 0);
  const exchange = {
    requestId: "req-1",
    get unsent() {
      return unsent();
    },
    write(chunk: Buffer, written: () => void) {
      unwritten.push({ chunk, written });
      return unsent();
    },
    drained() {},
    destroy: () => assert.fail("the answer was cut off"),
  } as unknown as HttpExchange;
  const source = {
    pause() {
      isPaused = true;
    },
    recycle: (chunk: Buffer) => void recycled.push(chunk),
  } as unknown as AnswerStream;
  const budget = MemoryBudget.unbounded();
  const room = new RequestMemory({ budget, caller: { key: "test" } });
  const answer = new StreamedAnswer({} as never, {
    exchange,
    reply: { target: { meta: "none" } } as never,
    source,
    room,
    settle: () => assert.fail("the answer was settled"),
  });
  return { answer, budget, unwritten, unsent, recycled, paused: () => isPaused };
}

test("short pieces in large buffers take little more than their length while they wait", () => {
  const { answer, budget, unwritten, unsent, recycled, paused } = slowCaller();
  const pieces: Buffer[] = [];
  while (!paused()) {
    const piece = Buffer.allocUnsafeSlow(BUFFER_BYTES).subarray(1_024, 3_072).fill(pieces.length);
    pieces.push(piece);
    const isDone = answer.data(piece, true);
    assert.equal(
      isDone,
      pieces.length > 1,
      "the first one is kept as it is, all others are copied",
    );
    // Its memory is used again at once.
    if (isDone) Buffer.from(piece.buffer).fill(0xff);
  }
  assert.ok(budget.used <= BUFFER_BYTES + unsent(), `${budget.used} for ${unsent()}`);
  for (const [n, { chunk }] of unwritten.entries())
    assert.ok(chunk.every((byte) => byte === n % 256));
  for (const { written } of unwritten.splice(0)) written();
  assert.equal(budget.used, 0);
  assert.deepEqual(recycled, pieces.slice(0, 1), "what was kept is returned, once");
});
