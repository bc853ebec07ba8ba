// A worker's share of the connections to an origin, over both HTTP clients and real sockets: it is
// never exceeded, what waits is sent when the share grows, and idle connections beyond it close.
import assert from "node:assert/strict";
import { test } from "node:test";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";
import { realRuntime } from "../../../src/runtime.ts";
import { HTTP_LIMITS, HttpUpstream } from "../../../src/upstream/http/http-upstream.ts";
import { MemoryBudget } from "../../../src/upstream/memory-budget.ts";
import type { Shares, ShareUse } from "../../../src/upstream/shares.ts";
import { SsrfGuard } from "../../../src/upstream/ssrf-guard.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { AnswerListener } from "../../../src/upstream/transport.ts";
import { fakeProvider } from "../../fakes/providers.ts";
import { until } from "../../fakes/service-fixture.ts";
import { type Replier, scriptedUpstream } from "../../fakes/upstream.ts";

/** Adds to `outcomes` how a request ended. */
function listenerInto(outcomes: string[]): AnswerListener {
  return {
    result: () => void outcomes.push("result"),
    failed: ({ kind }) => void outcomes.push(kind),
    stream: () => assert.fail("the answer is short"),
    broken: (message) => void outcomes.push(message),
  };
}

for (const client of ["own", "undici"] as const)
  test(`connections stay within a share that changes (${client})`, async (t) => {
    const waiting: Replier[] = [];
    const node = await scriptedUpstream((_, reply) => void waiting.push(reply));
    const held: ShareUse[] = [];
    let limit = 2;
    const shares: Shares = {
      of(key, total, use) {
        assert.deepEqual([key, total], [`connections ${node.url.replace(/\/$/, "")}`, 128]);
        held.push(use);
        return {
          get limit() {
            return limit;
          },
          close() {},
        };
      },
    };
    const http = new HttpUpstream(realRuntime, HTTP_LIMITS, new SsrfGuard(), {
      budget: MemoryBudget.unbounded(),
      timerWheel: new TimerWheel(realRuntime),
      client,
      shares,
    });
    t.after(async () => {
      await http.close();
      await node.close();
    });
    const provider = fakeProvider(0, { url: node.url });
    const outcomes: string[] = [];
    const send = () =>
      http.send(
        { provider, ...writeRequest("eth_call", null), mayStream: false },
        listenerInto(outcomes),
      );
    const dispatches = Array.from({ length: 6 }, send);
    const [use] = held;
    assert.ok(use);
    await until("two requests", () => waiting.length === 2);
    assert.deepEqual([use.used(), use.wanted(), http.isFree?.(provider)], [2, 6, false]);
    assert.deepEqual(
      dispatches.map(({ queued }) => queued),
      [false, false, true, true, true, true],
    );
    dispatches[5]?.cancel();
    limit = 4;
    use.changed?.();
    await until("two more", () => waiting.length === 4);
    assert.equal(node.connections(), 4);
    limit = 1;
    use.changed?.();
    for (const reply of waiting.splice(0)) reply.result('"0x1"');
    await until("the fifth, on what is left", () => waiting.length === 1);
    for (const reply of waiting.splice(0)) reply.result('"0x1"');
    await until("all answers", () => outcomes.length === 5);
    assert.deepEqual(new Set(outcomes), new Set(["result"]));
    assert.ok(use.used() <= 1, `${use.used()}`);
    if (client === "own") await until("the others to close", () => node.connections() <= 1);
  });

for (const client of ["own", "undici"] as const)
  test(`what waits for a connection is answered after its provider was removed (${client})`, async (t) => {
    const node = await scriptedUpstream(
      (_, reply) => void setTimeout(() => reply.result('"0x1"'), 20),
    );
    const budget = MemoryBudget.unbounded();
    const shares: Shares = {
      of(_, total) {
        let limit = total;
        return {
          get limit() {
            return limit;
          },
          // As the share of a worker.
          close() {
            limit = 0;
          },
        };
      },
    };
    const parts = { budget, timerWheel: new TimerWheel(realRuntime), client, shares };
    const limits = { ...HTTP_LIMITS, connectionsPerOrigin: 2 };
    const http = new HttpUpstream(realRuntime, limits, new SsrfGuard(), parts);
    t.after(async () => {
      await http.close();
      await node.close();
    });
    const provider = fakeProvider(0, { url: node.url });
    const outcomes: string[] = [];
    for (let n = 0; n < 6; n++)
      http.send(
        { provider, ...writeRequest("eth_call", null), mayStream: false },
        listenerInto(outcomes),
      );
    http.retain([]);
    await until("six outcomes", () => outcomes.length === 6);
    assert.deepEqual(new Set(outcomes), new Set(["result"]));
  });
