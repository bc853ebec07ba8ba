// One reader of the live feed on a real socket, by a simulated clock: one that does not read loses
// events, is told how many, and slows nobody down; a stream ends with its credential.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ANY_CALL } from "../../../src/observe/feed/call-filter.ts";
import { EventFeed } from "../../../src/observe/feed/event-feed.ts";
import { FeedHub } from "../../../src/observe/feed/feed-hub.ts";
import { EventStream } from "../../../src/web/http/event-stream.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { createCallMaker } from "../../observe/feed/feed-fixture.ts";

/** Of the stream, and what one write of a fifth of a second adds. */
const MOST_BACKLOG_BYTES = 262_144 + 131_072;
const GATHER_MS = 200;
const CALLS_AT_ONCE = 20;

/** A service that has nothing but the feed, with a reader for each credential. */
async function startFeed(t: TestContext) {
  const world = simulatedWorld(1);
  const feed = new EventFeed({ runtime: world, worker: "1", workers: 1 });
  const hub = new FeedHub({ runtime: world, feed, exchange: null });
  const allowed = { check: async (): Promise<boolean> => true };
  const responses: ServerResponse[] = [];
  const server = createServer((_, response) => {
    responses.push(response);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const isStillAllowed = (): Promise<boolean> => allowed.check();
    const stream = new EventStream({ runtime: world, hello: {}, isStillAllowed }, response);
    const reading = hub.join(stream, { filter: ANY_CALL, lastId: null });
    if (reading !== null) stream.begin(reading);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;

  /** Connects; nothing is read before `read`. */
  async function connect() {
    const at = responses.length;
    const sent = request({ port, host: "127.0.0.1", agent: false }).end();
    const [answer] = await once(sent, "response");
    const served = responses[at];
    assert.ok(served !== undefined);
    const state = { text: "", isOver: false };
    answer.on("close", () => {
      state.isOver = true;
    });
    return {
      served,
      state,
      read: () => answer.on("data", (chunk: Buffer) => (state.text += chunk.toString())),
    };
  }
  // Long events fill the buffers of a socket sooner.
  const series = { profile: "x".repeat(4_000), chain: "test" };
  const { call } = createCallMaker(world, ["p0", "p1"], series);
  return { world, feed, hub, allowed, connect, call };
}

/** Lets sockets carry what was written, until something is so. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await turn();
}

const callsIn = (text: string): number => text.split("event: call\n").length - 1;

test("a reader that does not read takes bounded memory, is told what it lost, and slows nobody", async (t) => {
  const { world, feed, call, connect } = await startFeed(t);
  const quick = await connect();
  quick.read();
  const slow = await connect();
  let calls = 0;
  const some = async (): Promise<void> => {
    for (let n = 0; n < CALLS_AT_ONCE; n++) {
      call(feed);
      calls++;
    }
    world.advance(GATHER_MS);
    await until(() => callsIn(quick.state.text) === calls);
    assert.ok(slow.served.writableLength <= MOST_BACKLOG_BYTES, `${slow.served.writableLength}`);
  };
  while (slow.served.writableLength <= 262_144) await some();
  for (let n = 0; n < 10; n++) await some();
  slow.read();
  await until(() => slow.served.writableLength === 0);
  await some();
  await until(() => slow.state.text.includes("slow_reader"));
  const missed = /event: resync\ndata: (.*)\n/.exec(slow.state.text)?.[1] ?? "";
  const told: unknown = JSON.parse(missed);
  await until(() => callsIn(slow.state.text) + 10 * CALLS_AT_ONCE >= calls);
  assert.equal(calls - callsIn(slow.state.text), 10 * CALLS_AT_ONCE);
  // Of a second or two there is a beat among them.
  const { reason, missed: count } = told as { reason: string; missed: number };
  assert.equal(reason, "slow_reader");
  assert.ok(count >= 10 * CALLS_AT_ONCE && count <= 10 * CALLS_AT_ONCE + 4, missed);
});

test("a stream ends within two seconds of its session, and not where that cannot be checked for a while", async (t) => {
  const { world, hub, allowed, connect } = await startFeed(t);
  const reader = await connect();
  reader.read();
  const seconds = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) {
      world.advance(1_000);
      await turn();
      await turn();
    }
  };
  for (let outage = 0; outage < 3; outage++) {
    allowed.check = () => Promise.reject(new Error("the store does not answer"));
    await seconds(10);
    allowed.check = async () => true;
    await seconds(4);
  }
  assert.equal(hub.readers, 1);
  allowed.check = async () => false;
  world.advance(2_000);
  await until(() => reader.state.isOver);
  assert.match(reader.state.text, /event: end\ndata: {"reason":"session_ended"}\n\n$/);
  assert.equal(hub.readers, 0);
});

for (const [how, check] of [
  ["fails", () => Promise.reject(new Error("the store does not answer"))],
  ["never ends", () => new Promise<boolean>(() => {})],
] as const)
  test(`a stream whose check ${how} ends 15 s after the last good one, and leaves nothing behind`, async (t) => {
    const { world, hub, allowed, connect } = await startFeed(t);
    const reader = await connect();
    reader.read();
    world.advance(2_000);
    await turn();
    allowed.check = check;
    for (let n = 0; n < 14; n++) {
      world.advance(1_000);
      await turn();
    }
    assert.equal(hub.readers, 1);
    world.advance(1_000);
    assert.equal(hub.readers, 0);
    await until(() => reader.state.isOver);
    assert.match(reader.state.text, /event: end\ndata: {"reason":"unchecked"}\n\n$/);
    world.advance(60_000);
    assert.equal(world.pendingTimers(), 0);
  });

test("a check that is answered late, and that the session has ended, ends the stream", async (t) => {
  const { world, allowed, connect } = await startFeed(t);
  const reader = await connect();
  reader.read();
  let answer: (isAllowed: boolean) => void = () => assert.fail("it is checked");
  allowed.check = () => new Promise((resolve) => (answer = resolve));
  world.advance(9_000);
  answer(false);
  await until(() => reader.state.isOver);
  assert.match(reader.state.text, /event: end\ndata: {"reason":"session_ended"}\n\n$/);
});

test("a stream ends after half a day, and with the service", async (t) => {
  const { world, hub, connect } = await startFeed(t);
  const long = await connect();
  long.read();
  // Its credential is checked meanwhile.
  for (let seconds = 0; seconds < 12 * 3_600; seconds += 10) {
    world.advance(10_000);
    await turn();
  }
  await until(() => long.state.isOver);
  assert.match(long.state.text, /event: end\ndata: {"reason":"too_long"}\n\n$/);
  const last = await connect();
  last.read();
  hub.close();
  await until(() => last.state.isOver);
  assert.match(last.state.text, /event: end\ndata: {"reason":"draining"}\n\n$/);
});

test("a reader that leaves is forgotten at once", async (t) => {
  const { hub, connect } = await startFeed(t);
  const reader = await connect();
  assert.equal(hub.readers, 1);
  reader.served.destroy();
  await until(() => hub.readers === 0);
});
