// Answers that never end, in simulated time: cut when they come too slowly while they are read, or
// take too long, over plain HTTP, TLS and sockets; a slow reader is not held against the
// provider.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";
import { AnswerPace } from "../../../src/upstream/http/answer-pace.ts";
import { HTTP_LIMITS, HttpUpstream } from "../../../src/upstream/http/http-upstream.ts";
import { MemoryBudget } from "../../../src/upstream/memory-budget.ts";
import { createSockets } from "../../../src/upstream/socket/sockets.ts";
import { SsrfGuard } from "../../../src/upstream/ssrf-guard.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { AnswerStream } from "../../../src/upstream/transport.ts";
import { fakeProvider } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { configText, startService } from "../../fakes/service.ts";
import { until } from "../../fakes/service-fixture.ts";
import { socketUpstream } from "../../fakes/socket-upstream.ts";
import { scriptedUpstream } from "../../fakes/upstream.ts";

const CERTIFICATE = new URL("../../data/tls/certificate.pem", import.meta.url);

/** A pace that is watched, and what became of it. */
function watched(deadlineMs: number) {
  const runtime = simulatedWorld(1);
  const ends: (readonly [message: string, byReader: boolean, afterMs: number])[] = [];
  const startMs = runtime.now();
  const pace = new AnswerPace(
    { runtime, timerWheel: new TimerWheel(runtime) },
    deadlineMs,
    (message, byReader) => ends.push([message, byReader, runtime.now() - startMs]),
  );
  /** So many seconds at so many bytes in each. */
  const flow = (seconds: number, bytes: number): void => {
    for (let n = 0; n < seconds && ends.length === 0; n++) {
      pace.came(bytes);
      runtime.advance(1_000);
    }
  };
  return { runtime, pace, ends, flow };
}

test(
  "an answer at 1 KiB a second goes on until its time is over; one that is slower is cut after " +
    "a window of reading",
  () => {
    const steady = watched(60_000);
    steady.flow(599, 1_030);
    assert.equal(steady.ends.length, 0);
    steady.flow(5, 1_030);
    assert.deepEqual(steady.ends[0]?.slice(0, 2), ["the answer took too long", false]);
    const slow = watched(60_000);
    slow.flow(60, 900);
    const [message, byReader, afterMs = 0] = slow.ends[0] ?? [];
    assert.deepEqual([message, byReader], ["the answer came too slowly", false]);
    assert.ok(afterMs >= 30_000 && afterMs <= 31_000, `${afterMs} ms`);
  },
);

test(
  "a burst does not pay for a window of silence after it, and an answer that has ended is not " +
    "watched",
  () => {
    const burst = watched(60_000);
    burst.flow(30, 1_000_000);
    burst.flow(60, 0);
    assert.equal(burst.ends[0]?.[0], "the answer came too slowly");
    assert.ok((burst.ends[0]?.[2] ?? 0) <= 62_000);
    const ended = watched(1_000);
    ended.pace.end();
    ended.flow(100, 0);
    assert.deepEqual(ended.ends, []);
    assert.equal(ended.runtime.pendingTimers(), 0);
  },
);

test(
  "time in which nothing is read counts in no window, but in the whole; who was read from less " +
    "than half of it is not to blame",
  () => {
    const paused = watched(60_000);
    paused.flow(20, 100);
    paused.pace.pause();
    paused.runtime.advance(500_000);
    assert.deepEqual(paused.ends, []);
    paused.pace.resume();
    paused.flow(20, 100);
    assert.equal(paused.ends[0]?.[0], "the answer came too slowly");
    assert.ok((paused.ends[0]?.[2] ?? 0) <= 532_000);
    const left = watched(60_000);
    left.flow(1, 1_000_000);
    left.pace.pause();
    left.runtime.advance(700_000);
    assert.deepEqual(left.ends[0]?.slice(0, 2), ["the answer took too long", true]);
    // Read for most of the time, and not at the end: what lies ready then was not taken.
    const late = watched(10_000);
    late.flow(80, 2_000);
    late.pace.pause();
    late.runtime.advance(30_000);
    assert.deepEqual(late.ends[0]?.slice(0, 2), ["the answer took too long", true]);
    // Reads a second, rests a second.
    const turns = watched(10_000);
    for (let n = 0; n < 20; n++) {
      turns.flow(1, 2_000);
      turns.pace.pause();
      turns.runtime.advance(1_000);
      turns.pace.resume();
    }
    assert.deepEqual(turns.ends, []);
  },
);

/** A provider that sends what the test tells it, over plain HTTP or TLS. */
async function dribbler(t: TestContext, secure: boolean) {
  const state = { write: (_: string): void => {}, closed: false };
  const listener: Parameters<typeof createServer>[1] = (request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      response.write(
        `{"jsonrpc":"2.0","id":${JSON.parse(body).id},"result":"${"x".repeat(400_000)}`,
      );
      state.write = (text) => void response.write(text);
    });
    response.on("close", () => {
      state.closed = true;
    });
  };
  const server = secure
    ? createSecureServer(
        {
          key: readFileSync(new URL("../../data/tls/key.pem", import.meta.url)),
          cert: readFileSync(CERTIFICATE),
        },
        listener,
      )
    : createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    ...state,
    state,
    url: `${secure ? "https" : "http"}://127.0.0.1:${(server.address() as AddressInfo).port}/`,
  };
}

for (const secure of [false, true]) {
  const over = secure ? "TLS" : "plain HTTP";

  async function flowing(t: TestContext) {
    if (secure)
      setDefaultCACertificates([
        ...getCACertificates("default"),
        readFileSync(CERTIFICATE, "utf8"),
      ]);
    const runtime = simulatedWorld(1);
    const timerWheel = new TimerWheel(runtime);
    const http = new HttpUpstream(runtime, HTTP_LIMITS, new SsrfGuard(), {
      budget: MemoryBudget.unbounded(),
      timerWheel,
    });
    t.after(() => http.close());
    const { url, state } = await dribbler(t, secure);
    const heard = {
      bytes: 0,
      broken: "",
      byReader: false,
      blamed: "",
      failed: "",
      stream: null as AnswerStream | null,
    };
    const outgoing = {
      provider: fakeProvider(0, { url }),
      ...writeRequest("eth_call", null),
      mayStream: true,
      deadlineMs: 10_000,
    };
    http.send(outgoing, {
      result: () => assert.fail("whole"),
      failed: ({ message }) => {
        heard.failed = message;
      },
      broken: (message) => {
        heard.blamed = message;
      },
      stream(stream) {
        heard.stream = stream;
        stream.flow({
          data(chunk) {
            heard.bytes += chunk.length;
            return true;
          },
          end: () => assert.fail("ended as if whole"),
          broken(message, by) {
            heard.broken = message;
            heard.byReader = by === "reader";
          },
        });
      },
    });
    await until("the first bytes", () => {
      if (heard.failed !== "") throw new Error(heard.failed);
      return heard.bytes > 100_000;
    });
    return { runtime, heard, state };
  }

  test(
    `${over}: an answer that dribbles is cut off, its provider is to blame, and its connection ` +
      "ends",
    async (t) => {
      const { runtime, heard, state } = await flowing(t);
      for (let n = 0; n < 80 && heard.broken === ""; n++) {
        const { bytes } = heard;
        state.write("y".repeat(300));
        await until("its bytes", () => heard.bytes >= bytes + 300);
        runtime.advance(1_000);
      }
      assert.deepEqual(
        [heard.broken, heard.blamed, heard.byReader],
        ["the answer came too slowly", "the answer came too slowly", false],
      );
      await until("the end of the connection", () => state.closed);
    },
  );

  test(`${over}: an answer that goes on for ten deadlines is cut off`, async (t) => {
    const { runtime, heard, state } = await flowing(t);
    for (let n = 0; n < 20 && heard.broken === ""; n++) {
      const { bytes } = heard;
      state.write("y".repeat(20_000));
      await until("its bytes", () => heard.bytes >= bytes + 20_000);
      runtime.advance(10_000);
    }
    assert.deepEqual(
      [heard.broken, heard.blamed],
      ["the answer took too long", "the answer took too long"],
    );
    await until("the end of the connection", () => state.closed);
  });

  test(`${over}: a caller that does not read is not its provider's fault`, async (t) => {
    const { runtime, heard, state } = await flowing(t);
    heard.stream?.pause();
    runtime.advance(95_000);
    assert.equal(heard.broken, "");
    runtime.advance(6_000);
    assert.deepEqual(
      [heard.broken, heard.byReader, heard.blamed],
      ["the answer took too long", true, ""],
    );
    await until("the end of the connection", () => state.closed);
  });
}

test("a message that dribbles, or takes too long, ends the connection of a provider's socket", async (t) => {
  const runtime = simulatedWorld(1);
  const sockets = createSockets({ runtime, timerWheel: new TimerWheel(runtime) });
  const node = await socketUpstream();
  t.after(() => Promise.all([sockets.close(), node.close()]));
  const provider = fakeProvider(0, { wsUrl: node.url });
  for (const [perSecond, leastMs, mostMs] of [
    [100, 30_000, 70_000],
    [40_000, 450_000, 460_000],
  ] as const) {
    const outcomes: string[] = [];
    node.script((asked, reply) => {
      if (asked.method === "eth_call")
        reply.peer.raw(Buffer.from([0x81, 127, 0, 0, 0, 0, 0x04, 0, 0, 0]));
    });
    const before = node.count("eth_call");
    sockets.send(
      { provider, ...writeRequest("eth_call", null), mayStream: false },
      {
        result: () => outcomes.push("result"),
        stream() {},
        broken() {},
        failed: ({ message }) => void outcomes.push(message),
      },
    );
    await until("the call", () => node.count("eth_call") > before);
    const [peer] = node.peers();
    const startMs = runtime.now();
    while (outcomes.length === 0 && runtime.now() - startMs < 600_000) {
      peer?.raw(Buffer.alloc(3 * perSecond, "x"));
      await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setImmediate(resolve));
      runtime.advance(3_000);
    }
    assert.deepEqual(outcomes, ["a message that does not get on"]);
    const tookMs = runtime.now() - startMs;
    assert.ok(tookMs >= leastMs && tookMs <= mostMs, `${tookMs} ms at ${perSecond} bytes a second`);
    // The next attempt to connect waits.
    runtime.advance(60_000);
  }
});

test(
  "a caller's connection is cut with the answer, never closed as if it were whole, and the " +
    "provider gets the failure",
  async (t) => {
    const runtime = simulatedWorld(1);
    const node = await scriptedUpstream(
      ({ id }, reply) =>
        void reply.begin(`{"jsonrpc":"2.0","id":${id},"result":"${"x".repeat(200_000)}`),
    );
    const service = await startService(
      configText([{ id: "a", url: node.url }], { limits: { max_answer_bytes: 1_000_000 } }),
      runtime,
    );
    t.after(async () => {
      const closed = service.close();
      // Closing takes time, which stands still otherwise.
      const clock = setInterval(() => runtime.advance(1_000), 5);
      await closed;
      clearInterval(clock);
      await node.close();
    });
    const asked = (): Promise<Response> =>
      fetch(`${service.url}/rpc/1`, {
        method: "POST",
        body: '{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[]}',
      });
    const answer = await asked();
    const reader = answer.body?.getReader();
    let bytes = 0;
    while (bytes < 190_000) bytes += (await reader?.read())?.value?.length ?? 0;
    const rest = (async () => {
      for (;;) if ((await reader?.read())?.done !== false) return "ended";
    })();
    runtime.advance(65_000);
    await assert.rejects(rest, "the answer ended as if it were whole");
    const { json } = await service.get("/api/metrics/1");
    assert.equal(json.profiles[0].providers[0].transports[0].outcomes.failed, 1);
    // Announced too long: refused before anything was passed on.
    node.script(({ id }, { response }) => {
      response.writeHead(200, { "content-length": 2_000_000 });
      response.write(`{"jsonrpc":"2.0","id":${id},"result":"${"x".repeat(200_000)}`);
    });
    assert.match(await (await asked()).text(), /"code":"unavailable"/);
  },
);
