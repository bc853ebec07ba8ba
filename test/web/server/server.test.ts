// The server around the pages: settings that could contradict each other, bounds on connections,
// and requests that name their target in odd ways.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { build } from "../../../src/app/app.ts";
import { realRuntime } from "../../../src/runtime.ts";
import { configOf, configText, type Service, startService } from "../../fakes/service.ts";
import { until } from "../../fakes/service-fixture.ts";

const BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}';

async function serve(t: TestContext, limits: Record<string, unknown> = {}): Promise<Service> {
  const service = await startService(
    configText([{ id: "a", url: "http://127.0.0.1:1" }], { limits }),
  );
  t.after(() => service.close());
  return service;
}

/**
 * Sends text on a connection of its own and returns all that comes back until it is closed, or
 * until `enough` is there.
 */
function raw(t: TestContext, port: number, text: string, enough = "\0"): Promise<string> {
  return new Promise((resolve) => {
    let got = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    t.after(() => socket.destroy());
    socket.on("data", (chunk: Buffer) => {
      got += chunk.toString("latin1");
      if (got.includes(enough)) resolve(got);
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(got));
  });
}

const statusOf = (answer: string): string => answer.split(" ")[1] ?? "";
const post = (target: string, lines: readonly string[], version = "1.1"): string =>
  `POST ${target} ` +
  `HTTP/${version}\r\n${[...lines, `Content-Length: ${BODY.length}`].join("\r\n")}\r\n\r\n${BODY}`;

test("a header time longer than the request time is no reason not to start", async (t) => {
  const service = await serve(t, { headers_timeout_ms: 60_000, request_timeout_ms: 1_000 });
  assert.equal((await service.get("/api/health")).status, 200);
});

test("a taken port is told, not thrown about", async (t) => {
  const service = await serve(t);
  const config = configOf(configText([{ id: "a", url: "http://127.0.0.1:1" }]));
  const taken = { ...config, server: { ...config.server, port: service.port } };
  await assert.rejects(
    build(taken, { runtime: realRuntime, log: pino({ level: "silent" }), version: "0" }),
    { code: "EADDRINUSE" },
  );
});

test("connections beyond the bound are closed at once, and there is room again when one ends", async (t) => {
  const { port } = await serve(t, { max_connections: 3 });
  const held = Array.from({ length: 3 }, () => connect(port, "127.0.0.1"));
  t.after(() => {
    for (const it of held) it.destroy();
  });
  await Promise.all(held.map((it) => new Promise<void>((resolve) => it.once("connect", resolve))));
  const request = post("/rpc/1", ["Host: x"]);
  await until("a refused connection", async () => (await raw(t, port, request, "}")) === "");
  held[0]?.destroy();
  await until("room", async () => statusOf(await raw(t, port, request, '"0x1"}')) === "200");
});

test("a target with scheme and host is the same path", async (t) => {
  const { port } = await serve(t);
  for (const target of [
    "http://any.example/rpc/1",
    "HTTPS://any.example:8443/rpc/ethereum?include_meta=headers",
  ]) {
    assert.match(
      await raw(t, port, post(target, ["Host: any.example"]), '"0x1"}'),
      /^HTTP\/1\.1 200 /,
      target,
    );
  }
  assert.match(
    await raw(t, port, post("http://any.example", ["Host: x"]), "}}"),
    /^HTTP\/1\.1 405 /,
  );
  assert.match(
    await raw(t, port, "GET http://any.example/api/health HTTP/1.1\r\nHost: x\r\n\r\n", "}}"),
    /^HTTP\/1\.1 200 /,
  );
});

test("HTTP/1.1 without a host is refused in JSON, HTTP/1.0 without one is served and closed", async (t) => {
  const { port } = await serve(t);
  const refused = await raw(t, port, post("/rpc/1", ["X: y"]), "}}");
  assert.match(
    refused,
    /^HTTP\/1\.1 400 .*Access-Control-Expose-Headers.*"code":"invalid_request"/is,
  );
  const served = await raw(t, port, post("/rpc/1", ["X: y"], "1.0"));
  assert.match(served, /^HTTP\/1\.1 200 .*"result":"0x1"\}$/s);
});

test("a request that names two hosts is refused: a proxy may have gone by the other one", async (t) => {
  const { port } = await serve(t);
  for (const lines of [
    ["Host: x", "Host: y"],
    ["host: x", "X: y", "HOST: x"],
  ]) {
    const refused = await raw(t, port, post("/rpc/1", lines), "}}");
    assert.match(refused, /^HTTP\/1\.1 400 .*"code":"invalid_request"/is);
  }
});

test("a client that waits for 100 Continue gets it, then its answer", async (t) => {
  const { port } = await serve(t);
  const answer = await raw(t, port, post("/rpc/1", ["Host: x", "Expect: 100-continue"]), '"0x1"}');
  assert.match(answer, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
});

test("connections that the kernel has taken are served by a server that is told to end", async (t) => {
  const service = await startService(configText([{ id: "a", url: "http://127.0.0.1:1" }]));
  const answers = Array.from({ length: 30 }, () =>
    raw(t, service.port, post("/rpc/1", ["Host: x", "Content-Type: application/json"])),
  );
  // They are connected at the end of this tick, and none is accepted before the next turn.
  await new Promise<void>((resolve) => process.nextTick(resolve));
  await service.drain();
  assert.deepEqual((await Promise.all(answers)).map(statusOf), Array(30).fill("200"));
  const late = await raw(t, service.port, "");
  assert.equal(late, "", "nobody listens any more");
});
