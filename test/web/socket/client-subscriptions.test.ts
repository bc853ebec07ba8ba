// Subscriptions as one caller sees them: ids, acknowledgements before events, leaving, bounds and
// ends; and events as frames for many.
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test } from "node:test";
import fc from "fast-check";
import { fault } from "../../../src/core/faults/rpc-fault.ts";
import { FrameEncoder, SUBSCRIPTION_ID_CHARS } from "../../../src/web/socket/notification.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { until } from "../../fakes/service-fixture.ts";
import { bare, call, createFixture, frame, open } from "./socket-fixture.ts";

const events = (...texts: readonly string[]): readonly Buffer[] =>
  texts.map((it) => Buffer.from(it));

test(
  "a subscription is acknowledged once it is real, with an id of our own, and its events " +
    "follow raw and in order",
  async (t) => {
    const it = await createFixture(t);
    const client = await open(t, it.port, "/ws/rpc/profile/team/fastest/1?provider=a");
    client.send(call(1, "eth_subscribe", ["newHeads"]));
    const { request, subscriber } = await until("the subscription", () => it.asked[0]);
    assert.deepEqual(
      [
        request.profile,
        request.strategy,
        request.pin?.id,
        request.subscription.kind,
        request.deadlineMs,
      ],
      ["team", "fastest", "a", "newHeads", 10_000],
    );
    assert.deepEqual(request.caller, { id: "address 127.0.0.1", maxLogFilters: 32 });
    client.send(call(2, "eth_chainId"));
    assert.equal((await client.next()).id, 2);
    subscriber.started(null);
    const { id, result } = await client.next();
    assert.equal(id, 1);
    assert.match(result, /^0x[1-9a-f][0-9a-f]{31}$/);
    subscriber.events(events('{"n":1e3}', "2"));
    subscriber.events(events('"drei é"'));
    await client.next();
    await client.next();
    await client.next();
    const text = (raw: string): string =>
      `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${result}","result":${raw}}}`;
    assert.deepEqual(client.texts.slice(-3), [text('{"n":1e3}'), text("2"), text('"drei é"')]);
    assert.equal(it.observer.series("team", "ethereum").notifications[0], 3);
    client.ws.close();
    await client.closed;
    await until("the leave", () => it.asked[0]?.left);
  },
);

test(
  "events that come before the acknowledgement is written wait for it, also when that stands " +
    "in a batch",
  async (t) => {
    const it = await createFixture(t);
    it.echo = false;
    const client = await open(t, it.port);
    client.send([call(1, "eth_subscribe", ["newHeads"], { svc_meta: "notify" }), call(2)]);
    const { subscriber } = await until("the subscription", () => it.asked[0]);
    subscriber.started(null);
    subscriber.events(events("1", "2"));
    client.send(call(3, "eth_chainId"));
    assert.equal((await client.next()).id, 3);
    subscriber.events(events("3"));
    it.calls[0]?.answer("0");
    const batch = await client.next();
    const subscription = batch[0].result;
    assert.equal((await client.next()).method, "svc_meta");
    for (const result of [1, 2, 3])
      assert.deepEqual((await client.next()).params, { subscription, result });
  },
);

test("that strict is not held is told to those who ask how they are served", async (t) => {
  const it = await createFixture(t);
  const client = await open(t, it.port);
  const block = { number: 7, hash: `0x${"1".repeat(64)}`, parentHash: `0x${"2".repeat(64)}` };
  const notices: unknown[] = [];
  for (const more of [{}, { svc_meta: "notify" }]) {
    client.send(call(1, "eth_subscribe", ["logs", {}], more));
    const { subscriber } = await until("the subscription", () => it.asked[notices.length]);
    subscriber.started(null);
    const { result: subscription } = await client.next();
    if ("svc_meta" in more) assert.equal((await client.next()).params.id, 1);
    subscriber.unconfirmed?.(block, "over_budget");
    subscriber.events(events("1"));
    const heard = await client.next();
    notices.push(heard.method === "svc_meta" ? heard.params.unconfirmed : null);
    assert.equal(heard.params.subscription, subscription);
  }
  const { number, hash } = block;
  assert.deepEqual(notices, [null, { block: { number, hash }, reason: "over_budget" }]);
});

test(
  "unsubscribing answers true and nothing comes afterwards; unknown and foreign ids are an " +
    "error of their own",
  async (t) => {
    const it = await createFixture(t);
    const [client, other] = [await open(t, it.port), await open(t, it.port)];
    client.send(call(1, "eth_subscribe", ["newPendingTransactions"]));
    const { subscriber } = await until("the subscription", () => it.asked[0]);
    subscriber.started(null);
    const { result: id } = await client.next();
    for (const params of [[id], ["0x1"], [], [7], { id }]) {
      other.send({ jsonrpc: "2.0", id: 1, method: "eth_unsubscribe", params });
      const { error } = await other.next();
      assert.deepEqual(
        [error.code, error.data.code, error.data.retryable],
        [-32000, "subscription_not_found", false],
      );
    }
    assert.equal(it.asked[0]?.left, false);
    client.send(call(2, "eth_unsubscribe", [id]));
    assert.equal((await client.next()).result, true);
    assert.equal(it.asked[0]?.left, true);
    subscriber.events(events("1"));
    client.send(call(3, "eth_unsubscribe", [id]));
    assert.equal((await client.next()).error.data.code, "subscription_not_found");
  },
);

test(
  "what is no subscription is refused with the kinds there are, a refusal from upstream is " +
    "passed on, and neither leaves anything behind",
  async (t) => {
    const it = await createFixture(t, { max_socket_subscriptions: 1 });
    const client = await open(t, it.port);
    for (const params of [[], ["newStuff"], ["logs", { address: "0x12" }], { 0: "newHeads" }]) {
      client.send({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params });
      const { error } = await client.next();
      assert.deepEqual([error.code, error.data.code], [-32602, "invalid_field"]);
      assert.match(error.data.next_action, /newHeads, logs, newPendingTransactions, syncing/);
    }
    client.send({ jsonrpc: "2.0", method: "eth_subscribe", params: ["newHeads"] });
    client.send(call(2, "eth_subscribe", ["newHeads"]));
    const { subscriber } = await until("the subscription", () => it.asked[0]);
    subscriber.refused({ kind: "fault", fault: fault("unavailable", "nobody") }, null);
    assert.equal((await client.next()).error.data.code, "unavailable");
    assert.equal(it.asked.length, 1);
    client.send(call(3, "eth_subscribe", ["newHeads"]));
    await until("the next", () => it.asked.length === 2);
    client.send(call(4, "eth_subscribe", ["newHeads"]));
    const { id, error } = await client.next();
    assert.deepEqual([id, error.data.code], [4, "rate_limit_exceeded"]);
  },
);

test(
  "a subscription under way whose caller goes is left, and one that cannot go on closes the " +
    "socket with 1011",
  async (t) => {
    const it = await createFixture(t);
    const gone = await open(t, it.port);
    gone.send(call(1, "eth_subscribe", ["newHeads"]));
    await until("the subscription", () => it.asked[0]);
    gone.ws.terminate();
    await until("the leave", () => it.asked[0]?.left);
    it.asked[0]?.subscriber.started(null);
    const client = await open(t, it.port);
    client.send(call(1, "eth_subscribe", ["newHeads"]));
    client.send(call(2, "eth_subscribe", ["logs", {}]));
    await until("both", () => it.asked.length === 3);
    for (const { subscriber } of it.asked.slice(1)) subscriber.started(null);
    it.asked[1]?.subscriber.ended("why");
    const [code, reason] = await client.closed;
    assert.equal(code, 1011);
    assert.match(reason, /recovery exceeded its bounds; reconnect/);
    assert.ok(it.asked[2]?.left);
  },
);

test("a subscriber that does not read is closed with 1013 and others get everything", async (t) => {
  const it = await createFixture(t, { max_socket_queue_bytes: 2_000_000 });
  const slow = await bare(t, it.port);
  slow.pause();
  const fast = await open(t, it.port);
  slow.write(frame(1, JSON.stringify(call(1, "eth_subscribe", ["newHeads"]))));
  fast.send(call(1, "eth_subscribe", ["newHeads"]));
  await until("both", () => it.asked.length === 2);
  for (const { subscriber } of it.asked) subscriber.started(null);
  await fast.next();
  let sent = 0;
  for (; it.observer.sockets.closes.size === 0 && sent < 400; sent++) {
    const head = events(`"${String(sent).padStart(100_000, "x")}"`);
    for (const { subscriber } of it.asked) subscriber.events(head);
    assert.equal((await fast.next()).params.result.length, 100_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await until("the close", () => it.observer.sockets.closes.get("1013") === 1);
  assert.equal(it.asked.filter(({ left }) => left).length, 1);
  assert.equal(it.observer.sockets.open, 1);
  await until("its bytes given back", () => it.budget.used === 0);
});

test(
  "a slow subscriber that reads on is told 1013 behind what waited for it; one that does not " +
    "is cut off",
  async (t) => {
    const runtime = simulatedWorld(9);
    t.after(() => void setInterval(() => runtime.advance(500), 5).unref());
    const it = await createFixture(t, { max_socket_queue_bytes: 2_000_000 }, runtime);
    const [late, dead] = [await bare(t, it.port), await bare(t, it.port)];
    for (const slow of [late, dead]) {
      slow.pause();
      slow.write(frame(1, JSON.stringify(call(1, "eth_subscribe", ["newHeads"]))));
    }
    await until("both", () => it.asked.length === 2);
    for (const { subscriber } of it.asked) subscriber.started(null);
    for (let sent = 0; it.asked.some(({ left }) => !left) && sent < 400; sent++) {
      for (const { subscriber } of it.asked) subscriber.events(events(`"${"x".repeat(100_000)}"`));
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.ok(it.asked.every(({ left }) => left));
    runtime.advance(3_000);
    assert.equal(it.observer.sockets.closes.size, 0);
    const got: Buffer[] = [];
    late.on("data", (chunk: Buffer) => got.push(chunk)).resume();
    await until("the close", () =>
      Buffer.concat(got).includes("\x88\x0a\x03\xf5too slow", 0, "latin1"),
    );
    for (let n = 0; n < 6; n++) runtime.advance(1_000);
    await until("the end of both", () => it.observer.sockets.closes.get("1013") === 2);
    assert.equal(it.budget.used, 0);
  },
);

test(
  "printed once or piece by piece, every subscriber reads its own id and the results, also " +
    "while others have yet to send theirs",
  () => {
    const result = fc.string({ maxLength: 300 }).map((it) => JSON.stringify(it));
    const long = fc
      .integer({ min: 60_000, max: 140_000 })
      .map((n) => JSON.stringify("y".repeat(n)));
    const results = fc.array(
      fc.oneof({ weight: 9, arbitrary: result }, { weight: 1, arbitrary: long }),
      { minLength: 1, maxLength: 5 },
    );
    fc.assert(
      fc.property(
        fc.array(
          fc.record({ results, reading: fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }) }),
          { maxLength: 4 },
        ),
        (batches) => {
          const frameEncoder = new FrameEncoder();
          for (const batch of batches) {
            const shared = batch.results.map((it) => Buffer.from(it));
            const sockets = batch.reading.map((reads, n) =>
              fakeSocket(reads, `0x${String(n + 1).repeat(SUBSCRIPTION_ID_CHARS - 2)}`),
            );
            for (const it of sockets) frameEncoder.write(it.socket, it.id, shared);
            for (const it of sockets) {
              const expected = batch.results.map(
                (raw) =>
                  `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${it.id}","result":${raw}}}`,
              );
              assert.deepEqual(payloads(it.bytes()), expected);
            }
          }
        },
      ),
      { numRuns: 200 },
    );
  },
);

/**
 * A socket that sends at once, or keeps what it got (uncopied, as a real one) until it is asked for
 * it.
 */
function fakeSocket(
  reads: boolean,
  id: string,
): { readonly socket: Socket; readonly id: string; readonly bytes: () => Buffer } {
  const kept: Buffer[] = [];
  let waiting = 0;
  const socket = {
    cork() {},
    uncork() {},
    write(data: Buffer | string, encoding?: BufferEncoding) {
      const bytes = typeof data === "string" ? Buffer.from(data, encoding) : data;
      kept.push(reads ? Buffer.from(bytes) : bytes);
      if (!reads) waiting += bytes.length;
      return true;
    },
    get writableLength() {
      return waiting;
    },
  };
  return { socket: socket as unknown as Socket, id, bytes: () => Buffer.concat(kept) };
}

function payloads(bytes: Buffer): readonly string[] {
  const found: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    assert.equal(bytes[at], 0x81);
    const short = bytes[at + 1] ?? 0;
    const size =
      short < 126
        ? short
        : short === 126
          ? bytes.readUInt16BE(at + 2)
          : Number(bytes.readBigUInt64BE(at + 2));
    const start = at + (short < 126 ? 2 : short === 126 ? 4 : 10);
    found.push(bytes.toString("utf8", start, start + size));
    at = start + size;
  }
  return found;
}
