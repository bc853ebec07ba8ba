// The reading of one answer, fed by hand: what a transport may hand over that our own would refuse.
import assert from "node:assert/strict";
import { test } from "node:test";
import { BufferPool } from "../../../src/upstream/http/buffer-pool.ts";
import { HttpDispatch } from "../../../src/upstream/http/dispatch.ts";
import { MemoryBudget } from "../../../src/upstream/memory-budget.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { AnswerListener } from "../../../src/upstream/transport.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const WIRE_ID = "1234567890123456";
const LIMITS = { maxAnswerBytes: 100_000_000, maxWholeBytes: 50_000_000 };
const CONTROLLER = { abort() {}, pause() {}, resume() {} };

/** What the caller of one answer was told, in order. */
function hear(lengthHeader: string | string[], bodyBytes: number): string[] {
  const told: string[] = [];
  const listener: AnswerListener = {
    result: () => void told.push("result"),
    stream(stream) {
      told.push(`stream of ${stream.bodyBytes}`);
      stream.flow({
        data: () => true,
        end: () => told.push("end") === 0,
        broken: () => void told.push("broken"),
      });
    },
    streamed() {
      if (!told.includes("over")) told.push("over");
    },
    broken() {},
    failed: ({ kind, message }) => void told.push(`${kind} ${message}`),
  };
  const room = MemoryBudget.unbounded().roomOf("a caller");
  const expected = {
    wireId: WIRE_ID,
    mayStream: true,
    room,
    deadlineMs: 60_000,
    distrust: () => void told.push("distrust"),
  };
  const runtime = simulatedWorld(1);
  const dispatch = new HttpDispatch(expected, listener, LIMITS, {
    buffers: new BufferPool(),
    runtime,
    timerWheel: new TimerWheel(runtime),
  });
  const head = `{"jsonrpc":"2.0","id":${WIRE_ID},"result":"`;
  dispatch.onRequestStart(CONTROLLER);
  dispatch.onResponseStart(CONTROLLER, 200, { "content-length": lengthHeader });
  for (let left = bodyBytes - head.length - 2, first = true; left > 0; first = false) {
    const piece = Math.min(left, 30_000);
    left -= piece;
    dispatch.onResponseData(
      CONTROLLER,
      Buffer.from(`${first ? head : ""}${"x".repeat(piece)}${left === 0 ? '"}' : ""}`),
    );
  }
  dispatch.onResponseEnd();
  return told;
}

test(
  "a long answer that is longer or shorter than it said is cut: the caller was told how long " +
    "it is",
  () => {
    assert.deepEqual(hear("200000", 200_000), ["stream of 200000", "over", "end"]);
    for (const bytes of [200_001, 200_300, 300_000, 199_999, 199_700])
      assert.deepEqual(
        hear("200000", bytes),
        ["stream of 200000", "over", "broken"],
        String(bytes),
      );
  },
);

test("a length that is no plain number is none", () => {
  for (const length of ["2e5", "-1", "200000, 200000", "0x30d40", "", "200000 ", ["200000", "5"]]) {
    assert.deepEqual(hear(length, 200_000), ["stream of null", "over", "end"], String(length));
  }
});

test("pieces that lie side by side in memory of others are passed on as they came, and what lies before them is left alone", () => {
  const told: string[] = [];
  const listener: AnswerListener = {
    result: () => void told.push("result"),
    stream: (stream) =>
      stream.flow({
        data(piece) {
          told.push(piece.toString("latin1"));
          return true;
        },
        end: (last) => told.push(last.toString("latin1")) === 0,
        broken: () => void told.push("broken"),
      }),
    broken: () => void told.push("broken"),
    failed: ({ message }) => void told.push(message),
  };
  const runtime = simulatedWorld(1);
  const dispatch = new HttpDispatch(
    {
      wireId: WIRE_ID,
      mayStream: true,
      room: MemoryBudget.unbounded().roomOf("a caller"),
      deadlineMs: 60_000,
      distrust() {},
    },
    listener,
    LIMITS,
    { buffers: new BufferPool(), runtime, timerWheel: new TimerWheel(runtime) },
  );
  const head = `{"jsonrpc":"2.0","id":${WIRE_ID},"result":"`;
  const value = Array.from({ length: 40_000 }, (_, n) => n.toString(16)).join("-");
  const memory = Buffer.from(`${head}${value}"}`);
  const before = Buffer.from(memory);
  dispatch.onRequestStart(CONTROLLER);
  dispatch.onResponseStart(CONTROLLER, 200, {});
  for (let at = 0; at < memory.length; at += 9_973)
    dispatch.onResponseData(CONTROLLER, memory.subarray(at, at + 9_973));
  dispatch.onResponseEnd();
  assert.ok(told.join("") === `"${value}"}`, "the value as it came");
  assert.ok(memory.equals(before));
});
