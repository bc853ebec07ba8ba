// What waits for a connection: whether a transport says so, on plain and on secure connections, and
// that what nobody waits for is never sent.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer as createPlain, type ServerResponse } from "node:http";
import { createServer as createSecure } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { isAnswer } from "../../../src/core/rpc/failure.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";
import { realRuntime } from "../../../src/runtime.ts";
import { HTTP_LIMITS, HttpUpstream } from "../../../src/upstream/http/http-upstream.ts";
import type { AnswerListener, Dispatch } from "../../../src/upstream/transport.ts";
import { fakeProvider } from "../../fakes/providers.ts";
import { until } from "../../fakes/service-fixture.ts";

const identity = {
  key: readFileSync(new URL("../../data/tls/key.pem", import.meta.url)),
  cert: readFileSync(new URL("../../data/tls/certificate.pem", import.meta.url)),
};

interface Asked {
  readonly text: string;
  readonly answer: () => void;
}

/** A provider that answers when it is told to. */
async function node(
  t: TestContext,
  secure: boolean,
): Promise<{ readonly url: string; readonly asked: Asked[] }> {
  const asked: Asked[] = [];
  const sockets = new Set<Socket>();
  const server = secure ? createSecure(identity) : createPlain();
  server.on("connection", (socket: Socket) => sockets.add(socket.on("error", () => {})));
  server.on("request", (request, response: ServerResponse) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () =>
      asked.push({
        text,
        answer: () => response.end(`{"jsonrpc":"2.0","id":${JSON.parse(text).id},"result":"0x1"}`),
      }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `${secure ? "https" : "http"}://localhost:${port}`, asked };
}

function listener(said: string[], name: string): AnswerListener {
  return {
    result: () => void said.push(`${name} ok`),
    stream: () => assert.fail("a short answer streams"),
    broken: () => assert.fail("a short answer breaks off"),
    failed: ({ kind, crowded }) =>
      void said.push(
        `${name} ${crowded === true ? "crowded" : isAnswer(kind) ? "answered" : kind}`,
      ),
  };
}

for (const secure of [false, true]) {
  test(
    "requests beyond the connections wait, are known to, leave when nobody waits for them, and " +
      `are refused beyond the queue (${secure ? "TLS" : "plain"})`,
    async (t) => {
      process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
      t.after(() => delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"]);
      const { url, asked } = await node(t, secure);
      const provider = fakeProvider(0, { url, wsUrl: null });
      const upstream = new HttpUpstream(realRuntime, {
        ...HTTP_LIMITS,
        connectionsPerOrigin: 2,
        maxWaiting: 2,
      });
      t.after(() => upstream.close());
      const said: string[] = [];
      const send = (name: string): Dispatch =>
        upstream.send(
          { provider, ...writeRequest(`eth_${name}`, null), mayStream: false },
          listener(said, name),
        );
      const isFree = (): boolean => upstream.isFree?.(provider) ?? assert.fail();
      // The first request finds out which protocol is spoken.
      send("zero");
      await until("it is asked", () => asked.length === 1);
      asked.shift()?.answer();
      await until("it is answered", () => said.shift() === "zero ok" && isFree());
      const [one, two] = [send("one"), send("two")];
      assert.equal(isFree(), false);
      await until("both are asked", () => asked.length === 2);
      assert.deepEqual([one.sent, one.queued, two.sent, two.queued], [true, false, true, false]);
      const three = send("three");
      const four = send("four");
      assert.deepEqual(
        [three.sent, three.queued, four.sent, four.queued],
        [false, true, false, true],
      );
      send("five");
      assert.equal(said.pop(), "five crowded", "two wait already");
      upstream.send(
        { provider, ...writeRequest("eth_chainId", null), mayStream: false, isProbe: true },
        listener(said, "probe"),
      );
      await until("a probe has a connection of its own", () => asked.length === 3);
      asked.pop()?.answer();
      await until("it is answered", () => said.pop() === "probe ok");
      three.cancel();
      asked[0]?.answer();
      await until("the one that is waited for is asked", () => asked.length === 3);
      assert.match(asked[2]?.text ?? "", /eth_four/);
      asked[1]?.answer();
      asked[2]?.answer();
      await until("all are answered", () => said.length === 3);
      assert.deepEqual(said.sort(), ["four ok", "one ok", "two ok"]);
      await until("a connection is free again", isFree);
      assert.equal(asked.length, 3, "what nobody waits for is not sent");
    },
  );
}

test("a request that a connection has taken waits for the provider, and no longer for others", async (t) => {
  const { url, asked } = await node(t, false);
  const provider = fakeProvider(0, { url, wsUrl: null });
  const upstream = new HttpUpstream(realRuntime, { ...HTTP_LIMITS, connectionsPerOrigin: 1 });
  t.after(() => upstream.close());
  const said: string[] = [];
  const ways = ["one", "two"].map((name) =>
    upstream.send(
      { provider, ...writeRequest(`eth_${name}`, null), mayStream: false },
      listener(said, name),
    ),
  );
  assert.deepEqual(
    ways.map(({ queued }) => queued),
    [false, true],
  );
  await until("the first is asked", () => asked.length === 1);
  ways[0]?.cancel();
  assert.deepEqual(
    [ways[1]?.sent, ways[1]?.queued],
    [false, false],
    "it is being connected: should that fail, it is the provider's failure",
  );
  await until("the second is asked", () => asked.length === 2);
  asked[1]?.answer();
  await until("it is answered", () => said.length === 1);
});
