// Connections that the fast path hands over to node's HTTP server, beside connections that node's
// server has from the start: both behave alike in keep-alive, pipelining, upgrades, half-closes,
// time limits, bounds and the drain.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { callText, handshakeText, postText } from "../../fakes/http-text.ts";
import { openRawClient, type RawClient } from "../../fakes/raw-client.ts";
import type { Service } from "../../fakes/service.ts";
import { serviceFixture, until } from "../../fakes/service-fixture.ts";
import type { Script } from "../../fakes/upstream.ts";

const echo: Script = ({ params }, reply) => reply.result(JSON.stringify(params));
const GET = "GET /api/chains HTTP/1.1\r\nHost: x\r\n\r\n";

/** A request that the fast path serves. */
const plain = (id: number): string => postText(callText(id, "eth_call", `[${id}]`));
/** The same request, which the fast path hands over for its repeated field. */
const odd = (id: number): string =>
  postText(callText(id, "eth_call", `[${id}]`), ["X-Odd: 1", "X-Odd: 2"]);

async function serve(
  t: TestContext,
  fastPath: string,
  limits: Record<string, unknown> = {},
  script: Script = echo,
): Promise<Service> {
  const extra = { server: { port: 0, fast_path: fastPath }, limits };
  return (await serviceFixture(t, [script], { extra })).service;
}

/** A connection on which `first` was answered: where the fast path is on, it has served that. */
async function begun(t: TestContext, { port }: Service): Promise<RawClient> {
  const client = await openRawClient(t, port);
  client.socket.write(plain(1));
  assert.equal(await idOf(client), 1);
  return client;
}

async function idOf(client: RawClient): Promise<number> {
  const { status, body } = await client.answer();
  assert.equal(status, "HTTP/1.1 200 OK");
  const { id, result } = JSON.parse(body.toString());
  assert.deepEqual(result, [id]);
  return id;
}

for (const fastPath of ["auto", "off"]) {
  test(`requests after the hand-over are answered on the same connection (${fastPath})`, async (t) => {
    const client = await begun(t, await serve(t, fastPath));
    for (const [id, text] of [odd(2), plain(3), odd(4), plain(5)].entries()) {
      client.socket.write(text);
      assert.equal(await idOf(client), id + 2);
    }
    client.socket.write(GET);
    assert.match((await client.answer()).body.toString(), /"chains"/);
    assert.equal(client.rest.length, 0);
  });

  test(`requests that come in one write are answered in their order (${fastPath})`, async (t) => {
    const script: Script = ({ params }, reply) =>
      void setTimeout(
        () => reply.result(JSON.stringify(params)),
        JSON.stringify(params) === "[2]" ? 40 : 0,
      );
    const client = await begun(t, await serve(t, fastPath, {}, script));
    client.socket.write(plain(2) + odd(3) + GET + plain(4) + plain(5));
    assert.deepEqual([await idOf(client), await idOf(client)], [2, 3]);
    assert.match((await client.answer()).body.toString(), /"chains"/);
    assert.deepEqual([await idOf(client), await idOf(client)], [4, 5]);
  });

  test(`a long body that begins in the bytes that were read arrives whole (${fastPath})`, async (t) => {
    const client = await begun(t, await serve(t, fastPath));
    const body = callText(2, "eth_call", `["${"x".repeat(3_000_000)}"]`);
    client.socket.write(postText(body));
    const { result } = JSON.parse((await client.answer()).body.toString());
    assert.equal(result[0].length, 3_000_000);
  });

  test(`a WebSocket is opened on a connection that served calls (${fastPath})`, async (t) => {
    const service = await serve(t, fastPath);
    const ping = Buffer.from([0x89, 0x80, 0, 0, 0, 0]);
    for (const [name, write] of [
      ["in one write with its first frame", (text: string) => [Buffer.from(text), ping]],
      [
        "cut in two",
        (text: string) => [Buffer.from(text.slice(0, 20)), Buffer.from(text.slice(20)), ping],
      ],
    ] as const) {
      const client = await begun(t, service);
      const pieces = write(handshakeText("/ws/rpc/1"));
      if (pieces.length === 2) client.socket.write(Buffer.concat(pieces));
      else for (const piece of pieces) client.socket.write(piece);
      const { status } = await client.answer();
      assert.match(status, /^HTTP\/1\.1 101 /, name);
      await until("the pong", () => client.rest.equals(Buffer.from([0x8a, 0x00])));
      client.socket.destroy();
    }
  });

  test(`a client that ends its side gets the answers that are complete (${fastPath})`, async (t) => {
    const service = await serve(t, fastPath, {}, () => {});
    const client = await openRawClient(t, service.port);
    // Both are answered without a provider: as they are read, before the end is.
    client.socket.end(postText(callText(7, "eth_chainId"), ["X-Odd: 1", "X-Odd: 2"]) + GET);
    assert.match((await client.answer()).body.toString(), /"id":7/);
    assert.match((await client.answer()).body.toString(), /"chains"/);
    await client.closed;
    assert.equal(client.rest.length, 0);
    // A call that is under way is given up.
    const waiting = await openRawClient(t, service.port);
    waiting.socket.end(odd(8));
    await waiting.closed;
    assert.equal(waiting.rest.length, 0);
  });

  test(`a head that does not come to its end is refused in time (${fastPath})`, async (t) => {
    const limits = { headers_timeout_ms: 1_500, request_timeout_ms: 1_500 };
    const client = await begun(t, await serve(t, fastPath, limits));
    client.socket.write("POST /rpc/1 HTTP/1.1\r\nHost");
    assert.match((await client.answer()).status, /^HTTP\/1\.1 408 /);
    await client.closed;
  });

  test(`a connection that is idle after the hand-over is closed (${fastPath})`, async (t) => {
    const client = await begun(t, await serve(t, fastPath, { keep_alive_timeout_ms: 1_500 }));
    client.socket.write(odd(2));
    assert.equal(await idOf(client), 2);
    await client.closed;
    assert.equal(client.rest.length, 0);
  });

  test(`connections that were handed over count, and end with the service (${fastPath})`, async (t) => {
    const service = await serve(t, fastPath, { max_connections: 2 });
    const clients = [await begun(t, service), await begun(t, service)];
    for (const client of clients) {
      client.socket.write(odd(2));
      assert.equal(await idOf(client), 2);
    }
    const third = await openRawClient(t, service.port);
    await third.closed;
    assert.equal(third.rest.length, 0);
    await service.drain();
    await Promise.all(clients.map(({ closed }) => closed));
  });
}
