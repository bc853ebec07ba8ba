// Which answers to a check's question are "this block is not known yet", and so worth asking again,
// in simulated time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Failure, plainFailure } from "../../src/core/rpc/failure.ts";
import { Router } from "../../src/upstream/engine/router.ts";
import { Tracker } from "../../src/upstream/health/tracker.ts";
import { queryBlockLogs } from "../../src/upstream/stream/checks/block-logs.ts";
import { TimerWheel } from "../../src/upstream/timer-wheel.ts";
import type { Upstream } from "../../src/upstream/transport.ts";
import { fakeProvider, fakeSet, SELECTION } from "../fakes/providers.ts";
import { simulatedWorld } from "../fakes/runtime.ts";

const BLOCK = { number: 7, hash: `0x${"a".repeat(64)}`, parentHash: `0x${"b".repeat(64)}` };

/**
 * What comes of asking a provider that answers the same each time: how often it was asked, and what
 * was found.
 */
async function asked(
  answer: Failure | string,
): Promise<{ readonly times: number; readonly found: unknown; readonly failed: number }> {
  const runtime = simulatedWorld(3);
  const timerWheel = new TimerWheel(runtime);
  const provider = fakeProvider(0);
  const tracker = new Tracker(fakeSet([provider]), runtime, SELECTION);
  let times = 0;
  const ws: Pick<Upstream, "send"> = {
    send(_, listener) {
      times++;
      runtime.after(5, () => {
        const value = typeof answer === "string" ? Buffer.from(answer) : null;
        if (value !== null) listener.result(value, { start: 0, end: value.length, idAt: null });
        else if (typeof answer !== "string") listener.failed(answer, null);
      });
      return { sent: true, cancel() {} };
    },
  };
  let found: unknown = "nothing yet";
  const question = {
    tracker,
    channel: { provider, transport: "ws" as const },
    block: BLOCK,
    params: "[]",
    spend: () => true,
  };
  const router = new Router({
    runtime,
    timerWheel,
    upstreams: { ws },
    limits: () => ({ maxAttempts: 3, firstAttemptShare: 0.5 }),
    hedge: () => null,
  });
  void queryBlockLogs({ timerWheel, router }, question).then((it) => {
    found = it;
  });
  for (let n = 0; n < 300; n++) {
    runtime.advance(10);
    await Promise.resolve();
  }
  return { times, found, failed: tracker.health(provider, "ws").outcomes.failed };
}

const saying = (code: number, message: string): Failure => ({
  ...plainFailure("error", message),
  code,
});

test("a block that is not known yet is asked for four times, however that is said", async () => {
  const ways = [
    saying(-32000, "unknown block"),
    saying(-32001, "block not found: 0x12ab"),
    saying(-32000, "header not found"),
    saying(
      -32603,
      "one of the blocks specified in filter (fromBlock, toBlock or blockHash) cannot be found",
    ),
    "null",
  ];
  for (const way of ways)
    assert.deepEqual(await asked(way), { times: 4, found: null, failed: 0 }, JSON.stringify(way));
});

test("any other error is no reason to ask again", async () => {
  const ways = [
    saying(-32603, "Internal error"),
    saying(-32602, "invalid argument 0: blockHash"),
    saying(-32601, "the method eth_getLogs does not exist/is not available"),
    saying(-32000, "request timed out"),
    saying(-32000, "missing trie node"),
    saying(-32005, "limit exceeded"),
    saying(-32000, "somebody was here"),
    plainFailure("network", "ECONNRESET"),
  ];
  for (const way of ways)
    assert.deepEqual(await asked(way), { times: 1, found: null, failed: 0 }, JSON.stringify(way));
  assert.deepEqual(await asked("[]"), { times: 1, found: [], failed: 0 });
});
