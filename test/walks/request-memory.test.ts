// What one caller's requests may take of the memory, over any number of connections: bodies that
// come slowly, long ones under way, messages on sockets. Beyond its share it is refused, and others
// are served as before.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { WebSocket } from "ws";
import { configText, type Service, startService } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

const PART_BYTES = 300_000;
const LIMITS = {
  max_in_flight_bytes: 20_000_000,
  max_caller_bytes: 1_000_000,
  max_body_bytes: 900_000,
};

interface Fixture {
  readonly service: Service;
  readonly upstream: ScriptedUpstream;
  readonly held: () => Promise<number>;
}

/** A service behind a trusted proxy, so that the test can be any number of callers. */
async function createFixture(t: TestContext): Promise<Fixture> {
  const upstream = await scriptedUpstream();
  const server = { port: 0, trusted_proxies: ["127.0.0.1"] };
  const service = await startService(
    configText([{ id: "a", url: upstream.url }], { server, limits: LIMITS }),
  );
  t.after(() => Promise.all([service.close(), upstream.close()]));
  const held = async () =>
    Number(/^svc_in_flight_bytes (\d+)$/m.exec((await service.get("/metrics")).text)?.[1]);
  return { service, upstream, held };
}

/** A body of so many bytes; white space in front is part of it. */
function bodyOf(bytes: number): string {
  const call = '{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}';
  return " ".repeat(bytes - call.length) + call;
}

/** A connection of the caller at an address, which sends a body and keeps the rest of it back. */
function post(
  t: TestContext,
  port: number,
  from: string,
  sent: number,
  announced = sent + 100_000,
) {
  const socket = connect({ port, host: "127.0.0.1" });
  let got = "";
  socket.on("data", (chunk: Buffer) => {
    got += chunk.toString("latin1");
  });
  socket.on("error", () => {});
  t.after(() => socket.destroy());
  socket.write(
    `POST /rpc/1 HTTP/1.1\r\nHost: svc\r\nX-Forwarded-For: ${from}\r\nContent-Length: ` +
      `${announced}\r\n\r\n${bodyOf(announced).slice(0, sent)}`,
  );
  return { socket, got: () => got };
}

async function socketOf(t: TestContext, port: number, from: string): Promise<WebSocket> {
  const ws = new WebSocket(`ws://127.0.0.1:${port}/ws/rpc/1`, {
    headers: { "x-forwarded-for": from },
  });
  t.after(() => ws.terminate());
  ws.on("error", () => {});
  await new Promise((resolve) => ws.on("open", resolve));
  return ws;
}

test(
  "bodies that a caller sends slowly over many connections stay within its share, others are " +
    "served, and the room comes back",
  async (t) => {
    const { service, held } = await createFixture(t);
    const slow = [];
    for (let n = 1; n <= 3; n++) {
      slow.push(post(t, service.port, "9.9.9.9", PART_BYTES));
      await until("its part is held", async () => (await held()) === n * PART_BYTES);
    }
    const beyond = post(t, service.port, "9.9.9.9", PART_BYTES);
    await until("the refusal", () => beyond.got().includes("limits.max_caller_bytes"));
    assert.match(beyond.got(), /^HTTP\/1\.1 503 .*\r\nRetry-After: [1-9]/s);
    const other = post(t, service.port, "8.8.8.8", 800_000, 800_000);
    await until("another caller's answer", () => other.got().includes('"result":"0x1"'));
    for (const { socket } of slow) socket.destroy();
    await until("the room is back", async () => (await held()) === 0);
    const again = post(t, service.port, "9.9.9.9", 800_000, 800_000);
    await until("its answer", () => again.got().includes('"result":"0x1"'));
  },
);

test(
  "long requests whose answers are slow count as long as they are under way, over HTTP and on " +
    "sockets together",
  async (t) => {
    const { service, upstream, held } = await createFixture(t);
    const answers: (() => void)[] = [];
    upstream.script((_, reply) => void answers.push(() => reply.result('"0x1"')));
    const whole = post(t, service.port, "9.9.9.9", 400_000, 400_000);
    const ws = await socketOf(t, service.port, "9.9.9.9");
    const messages: string[] = [];
    ws.on("message", (data) => messages.push(String(data)));
    ws.send(bodyOf(400_000));
    await until("both are under way", () => answers.length === 2);
    ws.send(bodyOf(100_000));
    await until("a third still fits", () => answers.length === 3);
    const beyond = post(t, service.port, "9.9.9.9", 400_000, 400_000);
    await until("the refusal", () => beyond.got().includes('"code":"unavailable"'));
    const other = await socketOf(t, service.port, "8.8.8.8");
    other.send(bodyOf(400_000));
    await until("another caller's is taken", () => answers.length === 4);
    for (const answer of answers) answer();
    await until(
      "the answers",
      () => whole.got().includes('"result":"0x1"') && messages.length === 2,
    );
    await until("the room is back", async () => (await held()) === 0);
  },
);

test(
  "answers whose readers stop reading stay within their caller's share: streams beyond it are " +
    "cut off, and those within it go on when they are read",
  async (t) => {
    const { service, upstream, held } = await createFixture(t);
    const size = 24_000_000;
    const long = `"${"x".repeat(size)}"`;
    upstream.script((_, reply) => void reply.result(long));
    const streams = Array.from({ length: 8 }, () => {
      const call = post(t, service.port, "9.9.9.9", 100, 100);
      call.socket.pause();
      let isCut = false;
      call.socket.once("close", () => {
        isCut = true;
      });
      return { ...call, isCut: () => isCut };
    });
    await until("a stream beyond the share", async () => {
      assert.ok((await held()) <= LIMITS.max_caller_bytes);
      return service.log().includes("no room in memory for what its reader leaves lying");
    });
    for (const { socket } of streams) socket.resume();
    const isWhole = (got: string): boolean => got.length > size && got.endsWith('"}\r\n0\r\n\r\n');
    await until("each is whole or cut", () =>
      streams.every(({ got, isCut }) => isCut() || isWhole(got())),
    );
    assert.ok(
      streams.some(({ got }) => isWhole(got())),
      "those within the share are whole",
    );
    await until("the room is back", async () => (await held()) === 0);
  },
);

test(
  "messages that a caller sends slowly on many sockets stay within its share: the socket that " +
    "goes beyond is closed with 1013",
  async (t) => {
    const { service, held } = await createFixture(t);
    const sockets: WebSocket[] = [];
    for (let n = 1; n <= 3; n++) {
      const ws = await socketOf(t, service.port, "9.9.9.9");
      sockets.push(ws);
      ws.send(bodyOf(PART_BYTES), { fin: false });
      await until("its part is held", async () => (await held()) > n * PART_BYTES);
    }
    const beyond = await socketOf(t, service.port, "9.9.9.9");
    const closed = new Promise((resolve) => beyond.on("close", resolve));
    beyond.send(bodyOf(PART_BYTES), { fin: false });
    assert.equal(await closed, 1013);
    const other = await socketOf(t, service.port, "8.8.8.8");
    const answer = new Promise((resolve) => other.on("message", (data) => resolve(String(data))));
    other.send(bodyOf(800_000));
    assert.match(String(await answer), /"result":"0x1"/);
    for (const ws of sockets) ws.terminate();
    await until("the room is back", async () => (await held()) === 0);
  },
);
