// Requests that are sent together over one connection: each caller gets the answer to its own
// request or one error, whatever the provider does and whoever leaves; in plain text and over TLS.
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test } from "node:test";
import { realRuntime } from "../../../src/runtime.ts";
import type { Origin } from "../../../src/upstream/http/origin.ts";
import { Asking, ask, echo, peer, pool, send, testBoth, whole } from "../../fakes/bare-provider.ts";
import { seededRandom } from "../../fakes/runtime.ts";
import { chanceSeed } from "../../fakes/seed.ts";
import { until } from "../../fakes/service-fixture.ts";

/** A request that takes no other answer than its own body. */
class Checked extends Asking {
  readonly #body: string;

  constructor(body: string) {
    super();
    this.#body = body;
  }

  override onResponseComplete(): boolean {
    return Buffer.concat(this.chunks).toString("latin1").startsWith(this.#body);
  }

  /** Its caller leaves. */
  leave(): void {
    this.cancelled = true;
    this.controller?.abort(new Error("cancelled"), this);
  }
}

/** Sends requests in one turn, as many callers do whose requests come together. */
function together(origin: Origin, bodies: readonly string[]): readonly Checked[] {
  return bodies.map((body) => send(origin, body, new Checked(body), "pipelined"));
}

const bodiesOf = (count: number, name = "call"): readonly string[] =>
  Array.from({ length: count }, (_, at) => `${name}${at}`);
const outcomes = (asked: readonly Checked[]): Promise<readonly string[]> =>
  Promise.all(asked.map(({ done }) => done));
const own = (bodies: readonly string[]): readonly string[] => bodies.map((body) => `200 ${body}`);

/** A connected origin: only open connections take several requests. */
async function connected(...parts: Parameters<typeof pool>): Promise<Origin> {
  const origin = pool(...parts);
  assert.equal(await ask(origin, "first"), "200 first");
  return origin;
}

testBoth("calls of one turn share a connection, up to eight; others do not join", async (t) => {
  const { port, opened, asked } = await peer(t, echo);
  const origin = await connected(t, port, { connections: 4 });
  const bodies = bodiesOf(9);
  const calls = together(origin, bodies);
  const alone = send(origin, "alone", new Checked("alone"));
  assert.deepEqual(await outcomes(calls), own(bodies));
  assert.equal(await alone.done, "200 alone");
  assert.deepEqual([opened(), asked.length], [3, 11]);
  assert.deepEqual(await outcomes(together(origin, bodies)), own(bodies));
  assert.equal(opened(), 3);
});

testBoth("a call of a later turn does not wait behind one that is under way", async (t) => {
  const held: Socket[] = [];
  const { port } = await peer(t, (socket, body, count) =>
    body === "slow" ? void held.push(socket) : echo(socket, body, count),
  );
  const origin = await connected(t, port, { connections: 2 });
  const [slow] = together(origin, ["slow"]);
  await until("the slow call", () => held[0] ?? null);
  assert.deepEqual(await outcomes(together(origin, ["quick"])), ["200 quick"]);
  held[0]?.write(whole("slow"));
  assert.equal(await slow?.done, "200 slow");
});

testBoth("answers that are cut anywhere are each read whole", async (t) => {
  const chunked =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nca\r\n3\r\nll1\r\n0\r\n\r\n";
  const wire = whole("call0") + chunked + whole("call2");
  let cut = 0;
  const { port, opened } = await peer(t, (socket, body, count) => {
    if (body === "first") return echo(socket, body, count);
    if (body !== "call2") return;
    socket.write(wire.slice(0, cut));
    setImmediate(() => socket.write(wire.slice(cut)));
  });
  const origin = await connected(t, port);
  const bodies = bodiesOf(3);
  for (; cut < wire.length; cut++)
    assert.deepEqual(await outcomes(together(origin, bodies)), own(bodies), `cut at ${cut}`);
  assert.equal(opened(), 1);
});

testBoth(
  "a wrong answer ends the connection; those behind it are asked again, alone",
  async (t) => {
    const { port, opened, asked } = await peer(t, (socket, body, count) =>
      // The first time, the answers to the second and third call are swapped.
      count <= 4 && body !== "first"
        ? void socket.write(whole({ call0: "call0", call1: "call2", call2: "call1" }[body] ?? body))
        : echo(socket, body, count),
    );
    const again: number[] = [];
    const origin = await connected(t, port, { connections: 4, onAgain: (n) => again.push(n) });
    const calls = together(origin, bodiesOf(3));
    assert.deepEqual(await outcomes(calls), ["200 call0", "200 call2", "200 call2"]);
    assert.deepEqual(
      [again, asked],
      [[1], ["first", "call0", "call1", "call2", "call2"]],
      "the caller of call1 is told by `onResponseComplete`, which failed",
    );
    const before = opened();
    assert.deepEqual(await outcomes(together(origin, bodiesOf(3))), own(bodiesOf(3)));
    assert.equal(opened(), before + 2, "for a minute each goes alone");
  },
);

const ENDS: Readonly<Record<string, (socket: Socket, body: string) => void>> = {
  breaks: (socket) => void socket.destroy(),
  "is closed by the head of an answer": (socket, body) =>
    void socket.write(whole(body, "Connection: close")),
  "is HTTP/1.0": (socket, body) =>
    void socket.write(`HTTP/1.0 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`),
  "ends with an answer": (socket, body) => void socket.end(`HTTP/1.1 200 OK\r\n\r\n${body}`),
  "sends no HTTP": (socket) => void socket.write("nonsense\r\n\r\n"),
};
for (const [name, end] of Object.entries(ENDS)) {
  testBoth(`where a connection ${name}, those behind are asked again, once`, async (t) => {
    const { port, asked } = await peer(t, (socket, body, count) => {
      if (count === 3) end(socket, body);
      else if (count < 3 || count > 5) echo(socket, body, count);
    });
    const origin = await connected(t, port, { connections: 4 });
    const [first, second, ...behind] = await outcomes(together(origin, bodiesOf(4)));
    assert.equal(first, "200 call0");
    assert.match(second ?? "", /^(200 call1|ECONNRESET|EPROTO)$/);
    assert.deepEqual(behind, ["200 call2", "200 call3"]);
    assert.ok(asked.length <= 7, `asked: ${asked}`);
  });
}

testBoth("who leaves cuts nobody else's call, wherever it stands", async (t) => {
  const { port, opened, open } = await peer(t, echo);
  const origin = await connected(t, port);
  const bodies = bodiesOf(4);
  for (const leaver of [0, 1, 3]) {
    const calls = together(origin, bodies);
    calls[leaver]?.leave();
    const others = calls.filter((_, at) => at !== leaver);
    assert.deepEqual(await outcomes(others), own(bodies.toSpliced(leaver, 1)));
    assert.equal(calls[leaver]?.ends, 0);
  }
  assert.equal(opened(), 1);
  for (const call of together(origin, bodies)) call.leave();
  await until("the end of a connection that nobody waits for", () => open() === 0);
  assert.equal(await ask(origin, "next"), "200 next");
});

testBoth("who leaves in the middle of an answer cuts nobody else's call", async (t) => {
  const { port, opened } = await peer(t, (socket, body, count) => {
    if (body === "first") echo(socket, body, count);
    else if (body === "call0") socket.write(whole("call0".padEnd(90_000)).slice(0, 50_000));
    else if (body === "call1")
      socket.write(whole("call0".padEnd(90_000)).slice(50_000) + whole("call1"));
  });
  const origin = await connected(t, port);
  const calls = together(origin, bodiesOf(2));
  const [leaving] = calls;
  if (leaving !== undefined) leaving.onData = () => leaving.leave();
  assert.equal(await calls[1]?.done, "200 call1");
  assert.deepEqual([opened(), leaving?.ends], [1, 0]);
});

testBoth("a long answer to somebody who has left is not read to its end", async (t) => {
  const { port } = await peer(t, (socket, body, count) => {
    if (body === "call0" && count < 4) socket.write(whole("call0".padEnd(9_000_000)));
    else if (body !== "call1" || count > 3) echo(socket, body, count);
  });
  const again: number[] = [];
  const origin = await connected(t, port, { connections: 2, onAgain: (n) => again.push(n) });
  const calls = together(origin, bodiesOf(2));
  calls[0]?.leave();
  assert.equal(await calls[1]?.done, "200 call1");
  assert.deepEqual(again, [1]);
});

testBoth(
  "an answer that is streamed holds up nobody: those behind it are asked again",
  async (t) => {
    const { port } = await peer(t, (socket, body, count) => {
      if (body === "call0") socket.write(whole("call0".padEnd(200_000)).slice(0, 150_000));
      else if (body !== "call1" || count > 3) echo(socket, body, count);
    });
    const origin = await connected(t, port, { connections: 2 });
    const calls = together(origin, bodiesOf(2));
    const [streamed] = calls;
    if (streamed !== undefined)
      streamed.onData = () => {
        streamed.keeps = true;
        streamed.controller?.pause();
      };
    assert.equal(await calls[1]?.done, "200 call1");
  },
);

testBoth("who waits to be asked again and leaves does not cut the answer before", async (t) => {
  const wire = whole("call0".padEnd(200_000));
  const sockets: Socket[] = [];
  const { port } = await peer(t, (socket, body, count) => {
    if (body === "first") echo(socket, body, count);
    if (body !== "call0") return;
    sockets.push(socket);
    socket.write(wire.slice(0, 150_000));
  });
  const origin = await connected(t, port, { connections: 1 });
  const [streamed, waiting] = together(origin, bodiesOf(2));
  assert.ok(streamed !== undefined && waiting !== undefined);
  streamed.onData = () => {
    streamed.keeps = true;
    waiting.leave();
  };
  await until("a part", () => (waiting.cancelled ? true : null));
  sockets[0]?.write(wire.slice(150_000));
  assert.match(await streamed.done, /^200 call0/);
});

test("whatever a provider does, each call ends once, with its answer or an error", async (t) => {
  const seed = chanceSeed();
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const below = (count: number): number => Math.floor(random() * count);
  const { port, asked } = await peer(t, (socket, body, count) => {
    const chance = random();
    if (chance < 0.02) socket.resetAndDestroy();
    else if (chance < 0.03) socket.write(whole("somebody else's"));
    else if (chance < 0.04) socket.write(whole(body, "Connection: close"));
    else if (chance < 0.05) socket.write("nonsense\r\n\r\n");
    else if (chance < 0.3) {
      const wire = whole(body.padEnd(below(100_000)));
      const cut = below(wire.length);
      socket.write(wire.slice(0, cut));
      socket.write(wire.slice(cut));
    } else echo(socket, body, count);
  });
  let now = 0;
  const runtime = { ...realRuntime, now: () => now };
  const origin = pool(t, port, { connections: 4, queue: 1_000, runtime });
  const [all, sent]: [Checked[], string[]] = [[], []];
  const leaving = new Set<Checked>();
  for (let turn = 0; turn < 150; turn++) {
    // The minute after a fault has passed.
    now += 61_000;
    const bodies = bodiesOf(1 + below(12), `turn${turn}call`);
    const calls = together(origin, bodies);
    all.push(...calls);
    sent.push(...bodies);
    for (const call of calls) {
      const chance = random();
      if (chance < 0.2) leaving.add(call);
      if (chance < 0.1) call.leave();
      else if (chance < 0.2) call.onData = () => call.leave();
    }
    await new Promise((resolve) => setImmediate(resolve));
    if (turn % 3 === 0) await outcomes(calls.filter((call) => !leaving.has(call)));
  }
  for (const [at, call] of all.entries()) {
    if (leaving.has(call)) continue;
    const outcome = await call.done;
    if (!outcome.startsWith("200")) assert.match(outcome, /^E(CONNRESET|PROTO)$/);
    else if (call.onResponseComplete()) assert.ok(outcome.startsWith(`200 ${sent[at]}`));
    assert.equal(call.ends, 1);
  }
  const times = Map.groupBy(asked, (body) => body);
  for (const [body, { length }] of times)
    assert.ok(length <= 2, `${body} was asked ${length} times`);
});
