// Several messages on one connection: each request gets its own whole answer and is charged for it,
// whatever follows it on the wire, on both paths of the server.
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { type HostedFixture, hostedFixture } from "../fakes/hosted-fixture.ts";
import { until } from "../fakes/service-fixture.ts";

const GRANT_CU = 5_000;
const WRITE_CU = 5;

/** A connection whose bytes the test writes and reads. */
interface Wire {
  readonly socket: Socket;
  readonly received: () => string;
  readonly closed: () => boolean;
}

function open(t: TestContext, { service }: HostedFixture): Wire {
  const socket = connect({ port: service.port, host: "127.0.0.1", noDelay: true });
  let received = "";
  let closed = false;
  socket.on("data", (chunk) => {
    received += chunk.toString("latin1");
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    closed = true;
  });
  t.after(() => socket.destroy());
  return { socket, received: () => received, closed: () => closed };
}

/** A transaction; with `viaNode` its connection goes on to node's HTTP server. */
function write(
  key: string,
  id: number,
  viaNode: boolean,
  method = "eth_sendRawTransaction",
): string {
  const body = `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":["0x02"]}`;
  return (
    `POST /rpc/k/${key}/ethereum HTTP/1.1\r\nHost: ` +
    `svc\r\n${viaNode ? "TE: trailers\r\n" : ""}Content-Length: ${body.length}\r\n\r\n${body}`
  );
}

/** Statuses and, of answers to calls, their ids, in the order in which they came. */
function answers(text: string): string[] {
  return text
    .split(/(?=HTTP\/1\.1 )/)
    .filter((it) => it !== "")
    .map((it) => `${it.slice(9, 12)} ${/"id":(\w+)/.exec(it)?.[1] ?? "-"}`);
}

async function usedCu({ service }: HostedFixture, key: string): Promise<number> {
  return GRANT_CU - (await service.get(`/api/v1/agent/keys/${key}`)).json.balance_cu;
}

/**
 * What may follow a request, and how it is answered. A handshake that is read once the connection
 * is free is judged by itself: this one has no key.
 */
const FOLLOWERS: readonly (readonly [name: string, bytes: string, status: RegExp])[] = [
  ["bytes that are no HTTP", "\x00\x01garbage\r\n\r\n", /^400$/],
  [
    "a head that is too long",
    `GET / HTTP/1.1\r\nHost: svc\r\nX: ${"x".repeat(20_000)}\r\n\r\n`,
    /^431$/,
  ],
  [
    "contradictory framing",
    "POST /rpc/ethereum HTTP/1.1\r\nHost: svc\r\nContent-Length: 2\r\nTransfer-Encoding: " +
      "chunked\r\n\r\n{}",
    /^400$/,
  ],
  [
    "a body that breaks off as no chunk",
    "POST /no/such/path HTTP/1.1\r\nHost: svc\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    /^404$/,
  ],
  ["CONNECT", "CONNECT svc:1 HTTP/1.1\r\nHost: svc:1\r\n\r\n", /^400$/],
  [
    "a WebSocket handshake",
    "GET /ws/rpc/ethereum HTTP/1.1\r\nHost: svc\r\nConnection: Upgrade\r\nUpgrade: " +
      "websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " +
      "dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    /^40[01]$/,
  ],
];

for (const viaNode of [false, true]) {
  const path = viaNode ? "node's HTTP server" : "the fast path";

  for (const [name, bytes, status] of FOLLOWERS) {
    test(
      `a request that is followed by ${name} is answered and charged, then that is refused, at ` +
        `${path}`,
      async (t) => {
        const fixture = await hostedFixture(t);
        const key = await fixture.anonymousKey();
        const release: (() => void)[] = [];
        fixture.premium.script((_, reply) => void release.push(() => reply.result('"0xab"')));
        // In the same write, and in one of its own once the request is under way.
        for (const inOneWrite of [true, false]) {
          const asked = fixture.premium.asked.length;
          const before = await usedCu(fixture, key);
          const { socket, received, closed } = open(t, fixture);
          const first = write(key, 7, viaNode);
          socket.write(inOneWrite ? first + bytes : first);
          await until("the provider is asked", () => fixture.premium.asked.length > asked);
          if (!inOneWrite) socket.write(bytes);
          // More of it changes nothing.
          socket.write("more\r\n\r\n");
          await new Promise((resolve) => setTimeout(resolve, 30));
          assert.equal(received(), "", "nothing is written while the request is under way");
          release.shift()?.();
          await until("the connection ends", closed);
          const [own, last, ...others] = answers(received());
          assert.deepEqual([own, others], ["200 7", []]);
          assert.match(last?.slice(0, 3) ?? "", status);
          assert.match(received(), /"result":"0xab"/);
          await until(
            "it is charged",
            async () => (await usedCu(fixture, key)) === before + WRITE_CU,
          );
        }
      },
    );

    test(`a streamed answer is whole when its request is followed by ${name}, at ${path}`, async (t) => {
      const fixture = await hostedFixture(t);
      const key = await fixture.anonymousKey();
      const long = "y".repeat(200_000);
      const streams: { write(more: string): void; end(): void }[] = [];
      fixture.premium.script(
        ({ id }, reply) =>
          void streams.push(reply.begin(`{"jsonrpc":"2.0","id":${id},"result":"${long}`)),
      );
      const { socket, received, closed } = open(t, fixture);
      socket.write(write(key, 8, viaNode, "debug_traceBlockByNumber"));
      await until("the answer begins", () => received().length > 100_000);
      socket.write(bytes);
      await new Promise((resolve) => setTimeout(resolve, 30));
      assert.ok(!closed());
      streams[0]?.write(`${long}"}`);
      streams[0]?.end();
      await until("the connection ends", closed);
      const text = received().replaceAll(/\r\n[0-9a-f]+\r\n/g, "");
      assert.ok(text.includes(`"result":"${long}${long}"}`), "the answer is whole");
      const behind = received().slice(received().indexOf("\r\n0\r\n\r\n") + 7);
      assert.match(behind.slice(9, 12), status);
      await until("it is charged", async () => (await usedCu(fixture, key)) === 100);
    });
  }

  test(`a streamed answer that breaks behind one under way ends the connection after that, at ${path}`, async (t) => {
    const fixture = await hostedFixture(t);
    const key = await fixture.anonymousKey();
    const release: (() => void)[] = [];
    const streams: { write(more: string): void; end(): void }[] = [];
    fixture.premium.script(({ id }, reply) => {
      if (release.length === 0) return void release.push(() => reply.result('"0xab"'));
      const begun = reply.begin(`{"jsonrpc":"2.0","id":${id},"result":"${"y".repeat(200_000)}`);
      streams.push(begun);
    });
    const { socket, received, closed } = open(t, fixture);
    socket.write(write(key, 1, viaNode));
    await until("the provider is asked", () => release.length === 1);
    socket.write(write(key, 2, viaNode, "debug_traceBlockByNumber"));
    if (viaNode) {
      await until("the stream begins", () => streams.length === 1);
      await new Promise((resolve) => setTimeout(resolve, 50));
      streams[0]?.write("]}");
      streams[0]?.end();
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    release[0]?.();
    await until("the stream begins", () => streams.length === 1);
    streams[0]?.write("]}");
    streams[0]?.end();
    await until("the connection ends", closed);
    assert.match(received(), /"result":"0xab"/);
    assert.ok(!received().includes("]}"));
  });

  test(
    "requests that come in one write are answered in their order and charged one by one, at " +
      `${path}`,
    async (t) => {
      const fixture = await hostedFixture(t);
      const key = await fixture.anonymousKey();
      fixture.premium.script(
        ({ id }, reply) => void setTimeout(() => reply.result(`"0x${id}"`), id === "1" ? 60 : 0),
      );
      const { socket, received } = open(t, fixture);
      socket.write([1, 2, 3].map((id) => write(key, id, viaNode)).join(""));
      await until(
        "three answers",
        () => answers(received()).length === 3 && received().endsWith("}"),
      );
      assert.deepEqual(answers(received()), ["200 1", "200 2", "200 3"]);
      await until("all are charged", async () => (await usedCu(fixture, key)) === 3 * WRITE_CU);
      socket.write(`${write(key, 4, viaNode)}${write(key, 5, viaNode)}junk\r\n\r\n`);
      await until("the refusal", () => answers(received()).length === 6);
      assert.deepEqual(answers(received()).slice(3), ["200 4", "200 5", "400 null"]);
      await until("all are charged", async () => (await usedCu(fixture, key)) === 5 * WRITE_CU);
    },
  );
}

test(
  "a request whose own body turns out malformed is refused at once, behind the answers to " +
    "those before it",
  async (t) => {
    const fixture = await hostedFixture(t);
    const key = await fixture.anonymousKey();
    const broken =
      `POST /rpc/k/${key}/ethereum HTTP/1.1\r\nHost: svc\r\nTransfer-Encoding: ` +
      `chunked\r\n\r\n5\r\n{"jso\r\nzz\r\n`;
    const alone = open(t, fixture);
    alone.socket.write(broken);
    await until("the refusal", alone.closed);
    assert.deepEqual(answers(alone.received()), ["400 null"]);
    const release: (() => void)[] = [];
    fixture.premium.script((_, reply) => void release.push(() => reply.result('"0x1"')));
    const behind = open(t, fixture);
    behind.socket.write(write(key, 9, true) + broken);
    await until("the provider is asked", () => fixture.premium.asked.length === 1);
    release[0]?.();
    await until("the refusal", behind.closed);
    assert.deepEqual(answers(behind.received()), ["200 9", "400 null"]);
  },
);

test("a body that is too long to be read to its end costs no answer that was under way before it", async (t) => {
  const fixture = await hostedFixture(t);
  const key = await fixture.anonymousKey();
  const release: (() => void)[] = [];
  fixture.premium.script((_, reply) => void release.push(() => reply.result('"0x1"')));
  const { socket, received, closed } = open(t, fixture);
  socket.write(
    `${write(key, 9, true)}POST /rpc/k/${key}/ethereum HTTP/1.1\r\nHost: ` +
      `svc\r\nContent-Length: 900000000\r\n\r\n`,
  );
  await until("the provider is asked", () => fixture.premium.asked.length === 1);
  // More than is read of a refused body, and than fits between: the rest stays unread.
  const megabyte = Buffer.alloc(1_000_000, " ");
  let taken = 0;
  const more = (): void =>
    void socket.write(megabyte, (error) => (error || ++taken === 60 ? undefined : more()));
  more();
  for (let before = -1, still = 0; !closed() && (still < 20 || taken < 16); before = taken) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    still = taken === before ? still + 1 : 0;
  }
  assert.ok(!closed());
  release[0]?.();
  await until("the connection ends", closed);
  assert.deepEqual(answers(received()), ["200 9", "413 null"]);
});
