// A deadline that fires late, since the event loop was held up, does not judge an answer that has
// arrived meanwhile and that nobody has read yet: the sockets get one more turn of the loop.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { NO_BLOCK } from "../../../src/core/rpc/call.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";
import { type Runtime, realRuntime } from "../../../src/runtime.ts";
import type { Outcome } from "../../../src/upstream/engine/answer.ts";
import { Router } from "../../../src/upstream/engine/router.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { HttpUpstream } from "../../../src/upstream/http/http-upstream.ts";
import { rpcCall } from "../../../src/upstream/rpc-call.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { AnswerListener, Upstream } from "../../../src/upstream/transport.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const DEADLINE_MS = 500;

interface Asked {
  readonly outcomes: Outcome[];
  readonly categories: () => readonly (string | null)[];
}

/** Asks the only provider there is. */
function asking(runtime: Runtime, http: Pick<Upstream, "send">, url = "http://node") {
  const tracker = new Tracker(fakeSet([fakeProvider(0, { url })]), runtime, SELECTION);
  const router = new Router({
    runtime,
    timerWheel: new TimerWheel(runtime),
    upstreams: { http },
    limits: () => ({ maxAttempts: 1, firstAttemptShare: 0.6 }),
    hedge: () => null,
  });
  const method = methodOf("eth_gasPrice");
  const call = { methodName: method.name, method, block: NO_BLOCK };
  return (deadlineMs: number, done: (outcome: Outcome) => void = () => {}): Asked => {
    const outcomes: Outcome[] = [];
    const route = router.route(
      {
        call: { ...call, ...writeRequest(method.name, null) },
        tracker,
        strategy: "priority",
        pin: null,
        avoid: null,
        transport: "http",
        caller: { key: "test" },
        deadlineMs,
        mayStream: false,
      },
      ({ outcome }) => {
        outcomes.push(outcome);
        done(outcome);
      },
    );
    return {
      outcomes,
      categories: () => route.traces.map(({ attempt }) => attempt.verdict?.category ?? null),
    };
  };
}

function simulated() {
  const runtime = simulatedWorld(3);
  const listeners: AnswerListener[] = [];
  const ask = asking(runtime, {
    send(_, listener) {
      listeners.push(listener);
      return { sent: true, cancel() {} };
    },
  });
  return { runtime, ask, listeners };
}

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const RESULT = Buffer.from('"0x1"');

test("a deadline that fires late waits for one turn of the loop, and then is a timeout", async () => {
  const { runtime, ask } = simulated();
  const { outcomes, categories } = ask(DEADLINE_MS);
  runtime.stall(DEADLINE_MS + 100);
  runtime.advance(10);
  assert.equal(outcomes.length, 0, "not judged yet");
  await turn();
  assert.equal(outcomes[0]?.kind, "fault");
  assert.deepEqual(categories(), ["timeout"]);
});

test("an answer that is read in that turn is the answer", async () => {
  const { runtime, ask, listeners } = simulated();
  const { outcomes, categories } = ask(DEADLINE_MS);
  runtime.stall(DEADLINE_MS + 100);
  runtime.advance(10);
  listeners[0]?.result(RESULT, { start: 0, end: RESULT.length, idAt: null });
  await turn();
  assert.deepEqual(
    outcomes.map(({ kind }) => kind),
    ["result"],
  );
  assert.deepEqual(categories(), [null], "and no timeout is counted");
});

test("a deadline that fires in time is judged at once", () => {
  const { runtime, ask } = simulated();
  const { outcomes } = ask(DEADLINE_MS);
  runtime.advance(DEADLINE_MS + 20);
  assert.equal(outcomes[0]?.kind, "fault");
});

/** A call outside of routing, of a probe or a check, that is under way. */
function probing() {
  const runtime = simulatedWorld(3);
  const listeners: AnswerListener[] = [];
  const upstream: Pick<Upstream, "send"> = {
    send(_, listener) {
      listeners.push(listener);
      return { sent: true, cancel() {} };
    },
  };
  const ends: string[] = [];
  rpcCall(
    new TimerWheel(runtime),
    {
      upstream,
      provider: fakeProvider(0),
      method: "eth_chainId",
      params: "[]",
      timeoutMs: DEADLINE_MS,
    },
    { result: (raw) => void ends.push(raw.toString()), failed: ({ kind }) => void ends.push(kind) },
  );
  return { runtime, listeners, ends };
}

test("a probe's deadline that fires late waits for one more turn as well", () => {
  const answered = probing();
  answered.runtime.stall(DEADLINE_MS + 100);
  answered.runtime.advance(1);
  assert.deepEqual(answered.ends, [], "not judged yet");
  answered.listeners[0]?.result(RESULT, { start: 0, end: RESULT.length, idAt: null });
  answered.runtime.advance(100);
  assert.deepEqual(answered.ends, ['"0x1"'], "what was read in that turn is the answer");

  const silent = probing();
  silent.runtime.stall(DEADLINE_MS + 100);
  silent.runtime.advance(1);
  assert.deepEqual(silent.ends, []);
  silent.runtime.advance(20);
  assert.deepEqual(silent.ends, ["timeout"]);
});

/** Answers each request of an HTTP/1.1 client, and counts the answers that were written. */
const PROVIDER = `
  const { workerData, parentPort } = require("node:worker_threads");
  const written = new Int32Array(workerData);
  const server = require("node:http").createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => { body += chunk; });
    request.on("end", () => {
      const { id } = JSON.parse(body);
      const answer = JSON.stringify({ jsonrpc: "2.0", id, result: "0x1" });
      response.setHeader("content-length", answer.length);
      response.end(answer);
      response.on("finish", () => { Atomics.add(written, 0, 1); Atomics.notify(written, 0); });
    });
  });
  server.keepAliveTimeout = 0;
  server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));
`;

test("an answer that has arrived while the loop was blocked beyond the deadline is delivered", async (t) => {
  const memory = new SharedArrayBuffer(4);
  const written = new Int32Array(memory);
  const worker = new Worker(PROVIDER, { eval: true, workerData: memory });
  t.after(() => worker.terminate());
  const port: unknown = await new Promise((resolve) => worker.once("message", resolve));
  const http = new HttpUpstream(realRuntime);
  t.after(() => http.close());
  const ask = asking(realRuntime, http, `http://127.0.0.1:${port}/`);
  // Opens the connection, so that the next request is sent at once.
  const first = await new Promise<Outcome>((resolve) => void ask(60_000, resolve));
  assert.equal(first.kind, "result");
  while (Atomics.load(written, 0) === 0) Atomics.wait(written, 0, 0, 60_000);
  const second = await new Promise<Outcome>((resolve) => {
    setImmediate(() => {
      ask(DEADLINE_MS, resolve);
      // Behind the end of this turn, at which the request is written.
      setImmediate(() => {
        const overMs = performance.now() + DEADLINE_MS + 100;
        while (Atomics.load(written, 0) === 1) Atomics.wait(written, 0, 1, 60_000);
        while (performance.now() < overMs) Atomics.wait(written, 0, 2, 10);
      });
    });
  });
  assert.equal(second.kind, "result");
});
