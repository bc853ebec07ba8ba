// Sockets to providers that answer late, twice, wrongly or not at all, that refuse, drop and fall
// silent: one end for every request and subscription, bounds that hold, and a way back. Real
// sockets, simulated time.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Provider } from "../../../src/core/provider/profile.ts";
import type { Failure } from "../../../src/core/rpc/failure.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";
import { SOCKET_LIMITS, type SocketLimits } from "../../../src/upstream/socket/socket-limits.ts";
import { createSockets } from "../../../src/upstream/socket/sockets.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import type { Dispatch, Sockets } from "../../../src/upstream/transport.ts";
import { fakeProvider } from "../../fakes/providers.ts";
import { type SimulatedWorld, seededRandom, simulatedWorld } from "../../fakes/runtime.ts";
import { namedSeeds } from "../../fakes/seed.ts";
import { until } from "../../fakes/service-fixture.ts";
import {
  notification,
  type SocketScript,
  type SocketUpstream,
  socketUpstream,
} from "../../fakes/socket-upstream.ts";

const HEADS = '["newHeads"]';
/** A timer may ring this much late. */
const LATE_MS = 20;

interface Rig {
  readonly upstream: SocketUpstream;
  readonly provider: Provider;
  readonly runtime: SimulatedWorld;
  readonly sockets: Sockets;
  /** Starts another provider on the port of one that was closed. */
  revive(): Promise<SocketUpstream>;
}

async function rig(
  t: TestContext,
  script: SocketScript | null = null,
  limits: Partial<SocketLimits> = {},
): Promise<Rig> {
  const upstream = await socketUpstream(script);
  const runtime = simulatedWorld(7);
  const sockets = createSockets({
    runtime,
    timerWheel: new TimerWheel(runtime),
    limits: { ...SOCKET_LIMITS, ...limits },
  });
  const started = [upstream];
  t.after(async () => {
    await sockets.close();
    for (const it of started) await it.close();
  });
  return {
    upstream,
    provider: fakeProvider(0, { wsUrl: upstream.url }),
    runtime,
    sockets,
    async revive() {
      const again = await socketUpstream(null, upstream.port);
      started.push(again);
      return again;
    },
  };
}

/** How a request ended. */
interface Ending {
  result: string | null;
  failure: Failure | null;
  raw: string | null;
  /** Times the listener was called. */
  ends: number;
  dispatch: Dispatch;
}

function ask(
  { sockets, provider }: Pick<Rig, "sockets" | "provider">,
  method = "eth_call",
  params = '[{"to":"0x1"},"latest"]',
): Ending {
  const ending: Ending = {
    result: null,
    failure: null,
    raw: null,
    ends: 0,
    dispatch: { sent: false, cancel() {} },
  };
  ending.dispatch = sockets.send(
    { provider, ...writeRequest(method, Buffer.from(params)), mayStream: true },
    {
      result(bytes, { start, end }) {
        ending.ends++;
        ending.result = bytes.toString("utf8", start, end);
      },
      stream: () => assert.fail("nothing streams on a socket"),
      broken: () => assert.fail("nothing streams on a socket"),
      failed(failure, raw) {
        ending.ends++;
        ending.failure = failure;
        ending.raw = raw?.toString() ?? null;
      },
    },
  );
  return ending;
}

/** Waits for the end of requests. */
async function ended(...endings: readonly Ending[]): Promise<void> {
  await until("every request ends", () => endings.every((it) => it.ends > 0));
}

async function answered(on: Rig, method = "eth_call"): Promise<Ending> {
  const ending = ask(on, method);
  await ended(ending);
  return ending;
}

/**
 * What a watcher heard, in order: `started`, `refused <kind> <message>`, `lost <reason>`, or the
 * event itself.
 */
interface Heard {
  readonly said: string[];
  dispatch: Dispatch;
}

function watch(
  { sockets, provider }: Pick<Rig, "sockets" | "provider">,
  params = HEADS,
  then: (said: string, heard: Heard) => void = () => {},
): Heard {
  const heard: Heard = { said: [], dispatch: { sent: false, cancel() {} } };
  const say = (text: string): void => {
    heard.said.push(text);
    then(text, heard);
  };
  heard.dispatch = sockets.subscribe(provider, params, {
    started: () => say("started"),
    refused: (failure, raw) =>
      say(`refused ${failure.kind} ${failure.message}${raw === null ? "" : ` ${raw}`}`),
    event: (result) => say(result.toString()),
    lost: (reason) => say(`lost ${reason}`),
  });
  return heard;
}

async function said(heard: Heard, ...texts: readonly string[]): Promise<void> {
  await until(`watcher hears ${texts.join(", ")}`, () => heard.said.length >= texts.length);
  assert.deepEqual(heard.said, texts);
}

/** What a keeper heard: `up`, or `down <kind> <status> <message> <lived>`. */
function keep({ sockets, provider }: Rig): {
  readonly said: string[];
  readonly failures: Failure[];
  stop: () => void;
} {
  const heard: string[] = [];
  const failures: Failure[] = [];
  const stop = sockets.keep(provider, {
    up: () => heard.push("up"),
    down(failure, livedMs) {
      failures.push(failure);
      heard.push(`down ${failure.kind} ${failure.httpStatus} ${failure.message} ${livedMs}`);
    },
  });
  return { said: heard, failures, stop };
}

/** Moves time on in steps, so that sockets get their turn in between. */
async function pass(runtime: SimulatedWorld, ms: number, stepMs = 3_000): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    runtime.advance(Math.min(stepMs, ms - passed));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

// Requests.

test(
  "requests share one connection under ids of their own, whatever the callers' ids are, and " +
    "each hears its own answer",
  async (t) => {
    const on = await rig(t, (asked, reply) => reply.result(JSON.stringify(asked.params)));
    const endings = Array.from({ length: 100 }, (_, n) => ask(on, "eth_call", `[${n}]`));
    assert.equal(endings[0]?.dispatch.sent, false);
    await ended(...endings);
    assert.deepEqual(
      endings.map((it) => it.result),
      endings.map((_, n) => `[${n}]`),
    );
    assert.equal(on.upstream.opened(), 1);
    assert.equal(new Set(on.upstream.asked.map((it) => it.id)).size, 100);
    assert.ok(on.upstream.asked.every((it) => /^\d{16}$/.test(it.id)));
    assert.ok(endings.every((it) => it.dispatch.sent));
  },
);

test(
  "the handshake carries the provider's headers and no compression, and providers of one " +
    "address share the socket, others do not",
  async (t) => {
    const on = await rig(t);
    const at = (path: string, headers: Record<string, string> = {}) => ({
      ...on,
      provider: fakeProvider(1, { wsUrl: `${on.upstream.url}${path}`, headers }),
    });
    await answered(at("/v2/key?x=1", { "X-Key": "secret-1" }));
    await answered(at("/v2/key?x=1", { "x-key": "secret-1" }));
    assert.equal(on.upstream.opened(), 1);
    const [peer] = on.upstream.peers();
    assert.equal(peer?.path, "/v2/key?x=1");
    assert.equal(peer?.headers["x-key"], "secret-1");
    assert.equal(peer?.headers["user-agent"], "svc");
    assert.equal(peer?.headers["sec-websocket-extensions"], undefined);
    await answered(at("/v2/key?x=1", { "x-key": "secret-2" }));
    await answered(at("/other"));
    assert.equal(on.upstream.opened(), 3);
  },
);

test(
  "parameters reach the provider as the caller wrote them, and results come back as the " +
    "provider wrote them",
  async (t) => {
    const result = '{ "b":1e3, "a":-0.0, "big":12345678901234567890, "s":"\\u00e9é" }';
    const on = await rig(t, (_, reply) => reply.result(result));
    const params = '[ 12345678901234567890, "\\u00e9é", {"z":1,"a":1e3} ]';
    const ending = ask(on, "eth_call", params);
    await ended(ending);
    assert.equal(ending.result, result);
    assert.ok(on.upstream.asked[0]?.body.includes(params));
  },
);

test("a result of many megabytes arrives whole", async (t) => {
  const long = `["${"x".repeat(20_000_000)}"]`;
  const on = await rig(t, (_, reply) => reply.result(long));
  assert.equal((await answered(on)).result?.length, long.length);
});

test("a provider's error is passed on as it is, and an answer that is none fails as a body", async (t) => {
  const on = await rig(t);
  const error = '{"code":3,"message":"execution reverted","data":"0x08"}';
  on.upstream.script((_, reply) => reply.error(error));
  const refused = await answered(on);
  assert.equal(refused.raw, error);
  assert.deepEqual(refused.failure, {
    kind: "error",
    httpStatus: 0,
    retryAfter: null,
    code: 3,
    message: "execution reverted",
    data: "0x08",
  });
  for (const rest of [
    '"result":1,"error":{"code":1}',
    '"result":',
    '"result":1,"result":2',
    '"error":null',
  ]) {
    on.upstream.script((asked, reply) =>
      reply.peer.send(`{"jsonrpc":"2.0","id":${asked.id},${rest}}`),
    );
    const { failure } = await answered(on);
    assert.equal(failure?.kind, "body", rest);
  }
  on.upstream.script((asked, reply) => reply.peer.send(`{"id":${asked.id},"result":1}`));
  assert.equal((await answered(on)).failure?.kind, "body");
  on.upstream.script((_, reply) => reply.error(`{"code":1,"message":"${"x".repeat(2_000_000)}"}`));
  assert.equal((await answered(on)).failure?.message, "the error is too long");
});

test("answers in any order, in binary frames, twice, or to nobody go to whom they belong or nowhere", async (t) => {
  const asked: { id: string; send: (frame: string | Buffer) => void }[] = [];
  const on = await rig(
    t,
    ({ id }, reply) => void asked.push({ id, send: (frame) => reply.peer.send(frame) }),
  );
  const endings = [ask(on), ask(on), ask(on)];
  await until("all have arrived", () => asked.length === 3);
  const answer = (id: string | undefined): string =>
    `{"jsonrpc":"2.0","id":${id},"result":"for ${id}"}`;
  const [first, second, third] = asked;
  first?.send("not json");
  first?.send(`[${answer(first.id)}]`);
  first?.send('{"jsonrpc":"2.0","result":"no id"}');
  first?.send(answer("4711"));
  first?.send(Buffer.from([0xff, 0xfe]));
  third?.send(Buffer.from(answer(third.id)));
  first?.send(answer(second?.id));
  first?.send(answer(second?.id));
  first?.send(answer(first.id));
  await ended(...endings);
  assert.deepEqual(
    endings.map((it) => it.result),
    asked.map(({ id }) => `"for ${id}"`),
  );
  assert.equal(on.sockets.report(on.provider).strayFrames, 6);
  assert.ok(endings.every((it) => it.ends === 1));
  assert.equal(on.upstream.opened(), 1);
});

test("a cancelled request hears nothing, and its late answer harms nobody", async (t) => {
  const late: (() => void)[] = [];
  const on = await rig(t, ({ method }, reply) =>
    method === "eth_call" ? void late.push(() => reply.result('"late"')) : reply.usual(),
  );
  const endings = [ask(on), ask(on)];
  const never = ask(on);
  never.dispatch.cancel();
  await until("both have arrived", () => late.length === 2);
  for (const it of endings) it.dispatch.cancel();
  for (const send of late) send();
  assert.equal((await answered(on, "eth_chainId")).result, '"0x1"');
  assert.deepEqual(
    [...endings, never].map((it) => it.ends),
    [0, 0, 0],
  );
  assert.equal(on.sockets.report(on.provider).strayFrames, 0);
  assert.equal(on.upstream.count("eth_call"), 2);
});

test("more requests than the bound, waiting for the socket or for answers, fail without having left", async (t) => {
  const on = await rig(t, () => {}, { maxWaiting: 3, maxPending: 5 });
  const waiting = Array.from({ length: 4 }, () => ask(on));
  assert.deepEqual(
    waiting.map((it) => it.failure?.kind),
    [undefined, undefined, undefined, "unsent"],
  );
  await until("three have arrived", () => on.upstream.asked.length === 3);
  const more = Array.from({ length: 3 }, () => ask(on));
  assert.deepEqual(
    more.map((it) => it.failure?.message),
    [undefined, undefined, "too many requests wait on this socket"],
  );
});

test("what a provider does not take is not heaped up without end: the request fails as never sent", async (t) => {
  const on = await rig(t, null, { maxBufferedBytes: 100_000, closeTimeoutMs: 50 });
  await answered(on);
  on.upstream.peers()[0]?.freeze();
  const endings = Array.from({ length: 40 }, () =>
    ask(on, "eth_call", `["${"x".repeat(1_000_000)}"]`),
  );
  const failed = endings.filter((it) => it.failure !== null);
  assert.ok(failed.length > 20, `${failed.length} of 40`);
  for (const { failure, dispatch } of failed) {
    assert.equal(failure?.kind, "unsent");
    assert.equal(failure?.message, "the socket is backed up");
    assert.equal(dispatch.sent, false);
  }
});

test("when the connection breaks, what was written fails as network, and what was not as unsent", async (t) => {
  const on = await rig(t, () => {});
  const written = [ask(on), ask(on)];
  await until("both have arrived", () => on.upstream.asked.length === 2);
  on.upstream.peers()[0]?.reset();
  await ended(...written);
  assert.deepEqual(
    written.map((it) => it.failure?.kind),
    ["network", "network"],
  );
  assert.match(written[0]?.failure?.message ?? "", /^closed 1006$/);
  on.runtime.advance(500);
  on.upstream.refuse({ status: 503 });
  assert.equal(ask(on).failure?.kind, "unsent");
  on.runtime.advance(600);
  const waiting = ask(on);
  assert.equal(waiting.ends, 0);
  await ended(waiting);
  assert.equal(waiting.failure?.kind, "unsent");
  assert.equal(waiting.dispatch.sent, false);
});

test("a socket that is down fails requests at once, and tries again as soon as a second has passed", async (t) => {
  const on = await rig(t);
  await on.upstream.close();
  const first = ask(on);
  await ended(first);
  assert.deepEqual([first.failure?.kind, first.failure?.message], ["unsent", "ECONNREFUSED"]);
  on.runtime.advance(900);
  const second = ask(on);
  assert.deepEqual(
    [second.ends, second.failure?.kind, second.failure?.message],
    [1, "unsent", "ECONNREFUSED"],
  );
  const again = await on.revive();
  on.runtime.advance(200);
  assert.equal((await answered(on)).result, '"0x1"');
  assert.equal(again.opened(), 1);
});

test(
  "listeners that ask again or cancel others while a connection breaks are safe: everybody " +
    "hears exactly one end",
  async (t) => {
    const on = await rig(t, () => {});
    const again: Ending[] = [];
    const endings: Ending[] = [];
    on.sockets.send(
      { provider: on.provider, ...writeRequest("eth_call", null), mayStream: false },
      {
        result() {},
        stream() {},
        broken() {},
        failed() {
          endings[1]?.dispatch.cancel();
          again.push(ask(on));
        },
      },
    );
    endings.push(ask(on), ask(on));
    await until("three have arrived", () => on.upstream.asked.length === 3);
    on.runtime.advance(2_000);
    on.upstream.drop();
    await until("the request made in between arrives", () => on.upstream.asked.length === 4);
    assert.deepEqual(
      endings.map((it) => it.ends),
      [1, 0],
    );
    assert.equal(again[0]?.ends, 0);
    assert.equal(on.upstream.opened(), 2);
  },
);

// Subscriptions.

test(
  "equal subscriptions are one upstream: watchers share it, late ones start at once, and the " +
    "last to leave ends it",
  async (t) => {
    const on = await rig(t);
    const [a, b] = [watch(on), watch(on)];
    const logs = watch(on, '["logs",{"address":["0x1"]}]');
    await Promise.all([said(a, "started"), said(b, "started"), said(logs, "started")]);
    const c = watch(on);
    assert.deepEqual(c.said, ["started"]);
    assert.equal(on.upstream.count("eth_subscribe"), 2);
    assert.equal(on.sockets.report(on.provider).subscriptions, 2);
    assert.equal(on.upstream.notify("newHeads", '{"number": "0x1"}'), 1);
    for (const it of [a, b, c]) await said(it, "started", '{"number": "0x1"}');
    a.dispatch.cancel();
    b.dispatch.cancel();
    on.upstream.notify("newHeads", "2");
    await said(c, "started", '{"number": "0x1"}', "2");
    c.dispatch.cancel();
    c.dispatch.cancel();
    await until("it is given up", () => on.upstream.subscriptions("newHeads") === 0);
    assert.equal(on.upstream.count("eth_unsubscribe"), 1);
    assert.deepEqual([a.said.length, b.said.length, logs.said], [2, 2, ["started"]]);
    const d = watch(on);
    await said(d, "started");
    assert.equal(on.upstream.count("eth_subscribe"), 3);
  },
);

test(
  "nobody is told of a subscription before the provider has acknowledged it, and notifications " +
    "that overtake the acknowledgement follow it",
  async (t) => {
    const on = await rig(t);
    on.upstream.script((_, reply) => {
      for (const n of [1, 2, 3]) reply.peer.send(notification("0xearly", String(n)));
      reply.peer.send(notification("0xother", "9"));
      reply.result('"0xearly"');
      reply.peer.send(notification("0xearly", "4"));
    });
    await said(watch(on), "started", "1", "2", "3", "4");
  },
);

test(
  "notifications held for an acknowledgement are bounded in number, bytes and age, and what is " +
    "kept has no gap inside",
  async (t) => {
    const on = await rig(t, null, { maxHeldFrames: 3, maxHeldBytes: 100, askAgainMs: 60_000 });
    const acknowledge = async (
      early: readonly string[],
      waitMs: number,
      expected: readonly string[],
    ): Promise<void> => {
      let reply = (): void => {};
      on.upstream.script((asked, replier) => {
        if (asked.method !== "eth_subscribe") return replier.usual();
        for (const result of early) replier.peer.send(notification("0x1", result));
        replier.peer.send('{"marker":1}');
        reply = () => replier.result('"0x1"');
      });
      const strays = on.sockets.report(on.provider).strayFrames;
      const heard = watch(on);
      await until(
        "the early ones are here",
        () => on.sockets.report(on.provider).strayFrames > strays,
      );
      on.runtime.advance(waitMs);
      reply();
      await said(heard, "started", ...expected);
      heard.dispatch.cancel();
      await until("given up", () => on.sockets.report(on.provider).subscriptions === 0);
      await answered(on, "eth_chainId");
    };
    await acknowledge(["1", "2", "3", "4", "5"], 0, ["3", "4", "5"]);
    await acknowledge([`"${"a".repeat(60)}"`, `"${"b".repeat(60)}"`], 0, [`"${"b".repeat(60)}"`]);
    await acknowledge(["1", `"${"a".repeat(200)}"`, "2"], 0, ["2"]);
    await acknowledge(["1", "2"], 6_000, []);
  },
);

test("numeric ids are ids, and go back to the provider as it wrote them", async (t) => {
  const on = await rig(t);
  on.upstream.script((asked, reply) => {
    if (asked.method !== "eth_subscribe") return reply.usual();
    reply.result("23584");
    reply.peer.send(
      '{"jsonrpc":"2.0","method":"eth_subscription","params":{"result":1,"subscription":23584}}',
    );
  });
  const heard = watch(on);
  await said(heard, "started", "1");
  heard.dispatch.cancel();
  await until("it is given up", () => on.upstream.count("eth_unsubscribe") === 1);
  assert.deepEqual(on.upstream.asked.at(-1)?.params, [23584]);
});

test(
  "a refused subscription tells every watcher the provider's error; an id that is none, or " +
    "given twice, is a bad body",
  async (t) => {
    const on = await rig(t);
    const error = '{"code":-32601,"message":"no subscriptions here"}';
    on.upstream.script((_, reply) => reply.error(error));
    const both = [watch(on), watch(on)];
    for (const it of both) await said(it, `refused error no subscriptions here ${error}`);
    on.upstream.script((_, reply) => reply.result("null"));
    await said(watch(on), "refused body the provider gave no subscription id");
    on.upstream.script((_, reply) => reply.result('"0x1"'));
    const good = watch(on);
    await said(good, "started");
    await said(
      watch(on, '["logs",{}]'),
      "refused body the provider gave one subscription id twice",
    );
    on.upstream.send(notification("0x1", "5"));
    await said(good, "started", "5");
    assert.equal(on.sockets.report(on.provider).subscriptions, 1);
  },
);

test(
  "an acknowledgement that comes when nobody waits any more is answered by giving the " +
    "subscription up",
  async (t) => {
    const on = await rig(t);
    const late: (() => void)[] = [];
    on.upstream.script((asked, reply) =>
      asked.method === "eth_subscribe" ? void late.push(reply.usual) : reply.usual(),
    );
    const gone = watch(on);
    await until("asked", () => late.length === 1);
    gone.dispatch.cancel();
    const next = watch(on);
    await until("asked anew, since the first may never be answered", () => late.length === 2);
    for (const send of late) send();
    await said(next, "started");
    await until("the first is given up", () => on.upstream.count("eth_unsubscribe") === 1);
    assert.equal(on.upstream.subscriptions(), 1);
    on.upstream.notify("newHeads", "1");
    await said(next, "started", "1");
    assert.deepEqual(gone.said, []);
  },
);

test(
  "an answer to a subscription that is lost is asked for again: those who wait and those who " +
    "come later are subscribed, once",
  async (t) => {
    const on = await rig(t);
    on.upstream.script((asked, reply) =>
      asked.method === "eth_subscribe" && on.upstream.count("eth_subscribe") === 1
        ? undefined
        : reply.usual(),
    );
    const first = watch(on);
    await until("asked", () => on.upstream.count("eth_subscribe") === 1);
    const later = watch(on);
    on.runtime.advance(SOCKET_LIMITS.askAgainMs + 2 * LATE_MS);
    for (const it of [first, later]) await said(it, "started");
    on.upstream.notify("newHeads", "1");
    for (const it of [first, later]) await said(it, "started", "1");
    assert.equal(on.upstream.count("eth_subscribe"), 2);
  },
);

test(
  "of several answers to one subscription the first counts, and what the others opened is " +
    "given up",
  async (t) => {
    const on = await rig(t);
    const held: (() => void)[] = [];
    on.upstream.script((asked, reply) =>
      asked.method === "eth_subscribe" ? void held.push(reply.usual) : reply.usual(),
    );
    const heard = watch(on);
    await until("asked", () => held.length === 1);
    on.runtime.advance(SOCKET_LIMITS.askAgainMs + 2 * LATE_MS);
    await until("asked again", () => held.length === 2);
    for (const answer of held) answer();
    await said(heard, "started");
    await until("the second is given up", () => on.upstream.count("eth_unsubscribe") === 1);
    on.upstream.notify("newHeads", "1");
    await said(heard, "started", "1");
    assert.equal(on.upstream.subscriptions(), 1);
  },
);

test(
  "a subscription that is never acknowledged is refused in time, and the next one to want it " +
    "asks anew",
  async (t) => {
    const on = await rig(t);
    on.upstream.script((asked, reply) =>
      asked.method === "eth_subscribe" ? undefined : reply.usual(),
    );
    const heard = watch(on);
    await until("asked", () => on.upstream.count("eth_subscribe") === 1);
    for (let n = 0; n < 6; n++) {
      on.runtime.advance(SOCKET_LIMITS.askAgainMs + 2 * LATE_MS);
      await answered(on, "eth_chainId");
    }
    await said(heard, "refused timeout the subscription was not acknowledged in time");
    assert.equal(on.upstream.count("eth_subscribe"), 3);
    on.upstream.script(null);
    await said(watch(on), "started");
  },
);

test("a watcher that leaves before anything was sent leaves no trace", async (t) => {
  const on = await rig(t);
  const heard = watch(on);
  assert.equal(heard.dispatch.sent, false);
  heard.dispatch.cancel();
  await answered(on);
  assert.equal(on.upstream.count("eth_subscribe"), 0);
  assert.deepEqual(heard.said, []);
});

test("watchers may leave, send others away and join anew while they are being told", async (t) => {
  const on = await rig(t);
  const all: Heard[] = [];
  const joined: Heard[] = [];
  all.push(
    watch(on, HEADS, (text, me) => {
      if (text === "started") joined.push(watch(on));
      if (text !== "1") return;
      me.dispatch.cancel();
      all[1]?.dispatch.cancel();
      joined.push(watch(on));
    }),
    watch(on),
    watch(on),
  );
  await said(all[2] as Heard, "started");
  on.upstream.notify("newHeads", "1");
  await said(all[2] as Heard, "started", "1");
  on.upstream.notify("newHeads", "2");
  await said(all[2] as Heard, "started", "1", "2");
  assert.deepEqual(
    [...all, ...joined].map((it) => it.said.join(" ")),
    ["started 1", "started", "started 1 2", "started 1 2", "started 2"],
  );
  const alone = watch(
    on,
    '["syncing"]',
    (text, me) => text === "started" && void setImmediate(() => me.dispatch.cancel()),
  );
  await said(alone, "started");
  await until("given up", () => on.upstream.subscriptions("syncing") === 0);
});

test(
  "when the connection breaks, started watchers lose it, waiting ones are refused, and nothing " +
    "is subscribed again by itself",
  async (t) => {
    const on = await rig(t);
    const socketListener = keep(on);
    const started = [watch(on), watch(on, '["syncing"]')];
    await said(started[0] as Heard, "started");
    await said(started[1] as Heard, "started");
    on.upstream.script(() => {});
    const waiting = watch(on, '["logs",{}]');
    await until("asked", () => on.upstream.count("eth_subscribe") === 3);
    on.upstream.script(null);
    on.runtime.advance(10_000);
    on.upstream.peers()[0]?.close(1012, "restart at wss://secret.example/key");
    for (const it of started) await said(it, "started", "lost closed 1012");
    await said(waiting, "refused network closed 1012");
    await pass(on.runtime, 1_500, 500);
    await until("open again", () => socketListener.said.at(-1) === "up");
    assert.deepEqual(
      socketListener.said.map((it) => it.replace(/1\d{4}$/, "lived")),
      ["up", "down network 0 closed 1012 lived", "up"],
    );
    await answered(on);
    assert.equal(on.upstream.subscriptions(), 0);
    for (const it of [...started, waiting]) it.dispatch.cancel();
    await answered(on);
    assert.equal(on.upstream.count("eth_unsubscribe"), 0);
  },
);

test(
  "a watcher that subscribes again the moment it has lost its subscription gets a new one, on " +
    "a new connection",
  async (t) => {
    const on = await rig(t);
    const again: Heard[] = [];
    const heard = watch(on, HEADS, (text) => text.startsWith("lost") && void again.push(watch(on)));
    await said(heard, "started");
    on.runtime.advance(2_000);
    on.upstream.drop();
    await until("lost", () => again.length === 1);
    await said(again[0] as Heard, "started");
    on.upstream.notify("newHeads", "1");
    await said(again[0] as Heard, "started", "1");
    assert.deepEqual(heard.said, ["started", "lost closed 1006"]);
  },
);

test("notifications of unknown subscriptions, and of one just given up, reach nobody", async (t) => {
  const on = await rig(t);
  const heard = watch(on);
  await said(heard, "started");
  const [id = ""] = on.upstream.peers()[0]?.subscriptions.keys() ?? [];
  on.upstream.send(notification("0xunknown", "1"));
  await answered(on);
  assert.equal(on.sockets.report(on.provider).strayFrames, 1);
  on.upstream.script((asked, reply) => {
    if (asked.method === "eth_unsubscribe") reply.peer.send(notification(id, "2"));
    reply.usual();
  });
  heard.dispatch.cancel();
  await answered(on);
  assert.deepEqual(heard.said, ["started"]);
  assert.equal(on.sockets.report(on.provider).strayFrames, 1);
});

test("subscriptions on one socket are bounded", async (t) => {
  const on = await rig(t, null, { maxFeeds: 2 });
  const [a, b] = [watch(on), watch(on, '["syncing"]')];
  assert.deepEqual(watch(on, '["logs",{}]').said, [
    "refused unsent too many subscriptions on this socket",
  ]);
  await Promise.all([said(a, "started"), said(b, "started")]);
  a.dispatch.cancel();
  await said(watch(on, '["logs",{}]'), "started");
});

// The connection.

test(
  "frames that belong to nothing are counted, and more than the bound in a row without a good " +
    "one end the connection",
  async (t) => {
    const on = await rig(t, null, { maxStrays: 10 });
    const socketListener = keep(on);
    await answered(on);
    const junk = (count: number): void => {
      for (let n = 0; n < count; n++) on.upstream.send(n % 2 === 0 ? "{}" : "junk");
    };
    junk(10);
    await answered(on);
    junk(10);
    await answered(on);
    assert.deepEqual(socketListener.said, ["up"]);
    junk(11);
    await until("down", () => socketListener.said.length > 1);
    assert.equal(socketListener.said[1], "down network 0 too many frames that belong to nothing 0");
    assert.equal(on.sockets.report(on.provider).strayFrames, 31);
  },
);

test("bytes that are no frames, and frames beyond the bound, end the connection and nothing else", async (t) => {
  const on = await rig(t, null, { maxFrameBytes: 10_000 });
  for (const harm of ["raw", "text", "long"]) {
    const pending = ask(on);
    on.upstream.script((_, reply) => {
      if (harm === "raw") reply.peer.raw("HTTP/1.1 500 Oops\r\n\r\n");
      else if (harm === "text") reply.peer.raw(Buffer.from([0x81, 0x02, 0xff, 0xfe]));
      else reply.result(`"${"x".repeat(20_000)}"`);
    });
    await ended(pending);
    assert.equal(pending.failure?.kind, "network", harm);
    assert.match(pending.failure?.message ?? "", /^WS_ERR_\w+$/, harm);
    on.upstream.script(null);
    on.runtime.advance(1_100);
    assert.equal((await answered(on)).result, '"0x1"', harm);
  }
});

test(
  "a silent connection is pinged; a provider that answers pings stays, one that does not is " +
    "given up",
  async (t) => {
    const on = await rig(t);
    const socketListener = keep(on);
    await until("up", () => socketListener.said.length === 1);
    await pass(on.runtime, 120_000);
    assert.deepEqual(socketListener.said, ["up"]);
    await answered(on);
    await pass(on.runtime, 3_000);
    on.upstream.script(() => {});
    on.upstream.pongs(false);
    const last = ask(on, "eth_call");
    await pass(on.runtime, 24_000);
    assert.deepEqual([socketListener.said.length, last.ends], [1, 0]);
    await pass(on.runtime, 12_000);
    await ended(last);
    assert.match(socketListener.said[1] ?? "", /^down network 0 silent 1\d{5}/);
    assert.equal(last.failure?.kind, "network");
  },
);

test(
  "a kept socket comes back after 1, 2, 4 … 30 s with a fifth of jitter, and after 120 s where " +
    "credentials are refused",
  async (t) => {
    const on = await rig(t);
    on.upstream.refuse({ status: 503, body: "busy", headers: { "Retry-After": "7" } });
    const socketListener = keep(on);
    const nextTry = async (meantMs: number): Promise<void> => {
      const [said, tries] = [socketListener.said.length, on.upstream.handshakes()];
      await pass(on.runtime, 0.78 * meantMs, 0.26 * meantMs);
      assert.equal(on.upstream.handshakes(), tries, `a try before ${meantMs} ms`);
      on.runtime.advance(0.44 * meantMs + LATE_MS);
      await until("told", () => socketListener.said.length > said);
    };
    await until("refused", () => socketListener.said.length === 1);
    for (const ms of [1_000, 2_000, 4_000, 8_000]) await nextTry(ms);
    const { incident, ...failure } = socketListener.failures[0] ?? assert.fail();
    assert.deepEqual(failure, {
      kind: "body",
      httpStatus: 503,
      retryAfter: "7",
      code: null,
      message: "busy",
      data: null,
    });
    assert.ok(incident !== undefined);
    on.upstream.refuse({ status: 401, body: "x".repeat(5_000) });
    await nextTry(16_000);
    assert.deepEqual(
      [socketListener.failures.at(-1)?.httpStatus, socketListener.failures.at(-1)?.message.length],
      [401, 512],
    );
    const tries = on.upstream.handshakes();
    await pass(on.runtime, 94_000, 1_000);
    assert.equal(on.upstream.handshakes(), tries);
    on.upstream.refuse(null);
    for (
      let ms = 0;
      ms < 52_000 && on.sockets.report(on.provider).state !== "connecting";
      ms += 1_000
    )
      on.runtime.advance(1_000);
    await until("up", () => socketListener.said.at(-1) === "up");
  },
);

test(
  "a connection that lived long enough makes the next wait short again; one accepted and " +
    "dropped does not",
  async (t) => {
    const on = await rig(t);
    const socketListener = keep(on);
    const dropAfter = async (ms: number): Promise<void> => {
      await until("up", () => socketListener.said.at(-1) === "up");
      on.runtime.advance(ms);
      on.upstream.peers()[0]?.close(1000);
      await until("down", () => socketListener.said.at(-1) !== "up");
    };
    for (const ms of [1_000, 2_000, 4_000]) {
      await dropAfter(100);
      assert.match(socketListener.said.at(-1) ?? "", /^down network 0 closed 1000 \d{3,4}$/);
      await pass(on.runtime, 0.7 * ms, 100);
      assert.match(socketListener.said.at(-1) ?? "", /^down/);
      await pass(on.runtime, 0.6 * ms, 100);
    }
    await dropAfter(6_000);
    await pass(on.runtime, 1_300, 100);
    await until("up soon", () => socketListener.said.at(-1) === "up");
  },
);

test(
  "a handshake that is never answered, is no WebSocket or leads nowhere fails as unsent, " +
    "without naming the address",
  async (t) => {
    const on = await rig(t);
    on.upstream.refuse("silence");
    const silent = ask(on);
    await until("tried", () => on.upstream.handshakes() === 1);
    await pass(on.runtime, 4_000, 1_000);
    assert.equal(silent.ends, 0);
    await pass(on.runtime, 1_500, 500);
    await ended(silent);
    assert.deepEqual(
      [silent.failure?.kind, silent.failure?.message],
      ["unsent", "the handshake timed out"],
    );
    on.upstream.refuse({
      status: 101,
      headers: { upgrade: "websocket", connection: "upgrade", "sec-websocket-accept": "wrong" },
    });
    on.runtime.advance(1_100);
    const wrong = ask(on);
    await ended(wrong);
    assert.deepEqual([wrong.failure?.kind, wrong.failure?.message], ["unsent", "bad handshake"]);
    on.upstream.refuse({ status: 302, headers: { location: on.upstream.url } });
    on.runtime.advance(1_100);
    const moved = ask(on);
    await ended(moved);
    assert.deepEqual(
      [moved.failure?.kind, moved.failure?.httpStatus, on.upstream.handshakes()],
      ["unsent", 302, 3],
    );
    for (const broken of [
      { wsUrl: "ws://secret-host.invalid/#key" },
      { wsUrl: "no address" },
      { wsUrl: on.upstream.url, headers: { "x-key": "line\nbreak" } },
    ]) {
      const ending = ask({ ...on, provider: fakeProvider(3, broken) });
      on.runtime.advance(100);
      await ended(ending);
      assert.equal(ending.failure?.kind, "unsent");
      assert.match(ending.failure?.message ?? "", /^(bad handshake|[A-Z_]+)$/);
    }
  },
);

test("a handshake that is refused and then never ends is still told by its status", async (t) => {
  const on = await rig(t);
  on.upstream.refuse({
    status: 429,
    headers: { "content-length": "999", "retry-after": "3" },
    body: "slow down",
  });
  const socketListener = keep(on);
  await pass(on.runtime, 6_000, 500);
  await until("told", () => socketListener.said.length > 0);
  assert.deepEqual(
    [
      socketListener.failures[0]?.httpStatus,
      socketListener.failures[0]?.retryAfter,
      socketListener.failures[0]?.message,
    ],
    [429, "3", "slow down"],
  );
});

test(
  "a connection nobody needs is closed after a minute and opened again on demand; one that is " +
    "kept or subscribed on stays",
  async (t) => {
    const on = await rig(t);
    await answered(on);
    await pass(on.runtime, 50_000);
    await answered(on);
    await pass(on.runtime, 50_000);
    assert.equal(on.sockets.report(on.provider).state, "open");
    await pass(on.runtime, 20_000);
    assert.equal(on.sockets.report(on.provider).state, "idle");
    await until("closed", () => on.upstream.peers().length === 0);
    const socketListener = keep(on);
    await until("up", () => socketListener.said.length === 1);
    await pass(on.runtime, 100_000);
    const heard = watch(on);
    await said(heard, "started");
    socketListener.stop();
    await pass(on.runtime, 100_000);
    assert.equal(on.sockets.report(on.provider).state, "open");
    heard.dispatch.cancel();
    await pass(on.runtime, 70_000);
    assert.equal(on.sockets.report(on.provider).state, "idle");
    assert.deepEqual(socketListener.said, ["up"]);
    assert.equal(on.upstream.opened(), 2);
  },
);

test("keepers hear at once of a socket that is open, and nothing after they have stopped", async (t) => {
  const on = await rig(t);
  const first = keep(on);
  await until("up", () => first.said.length === 1);
  const second = keep(on);
  assert.deepEqual(second.said, ["up"]);
  first.stop();
  on.upstream.drop();
  await until("down", () => second.said.length === 2);
  assert.deepEqual(first.said, ["up"]);
  second.stop();
  await pass(on.runtime, 60_000);
  assert.deepEqual([on.upstream.opened(), on.sockets.report(on.provider).state], [1, "idle"]);
});

test(
  "a provider that is removed keeps what is under way until it is answered, loses its " +
    "subscriptions, and is not reached again",
  async (t) => {
    const on = await rig(t);
    const replies: (() => void)[] = [];
    on.upstream.script((asked, reply) =>
      asked.method === "eth_call" ? void replies.push(reply.usual) : reply.usual(),
    );
    const socketListener = keep(on);
    const heard = watch(on);
    await said(heard, "started");
    const pending = ask(on);
    await until("arrived", () => replies.length === 1);
    on.sockets.retain([on.provider]);
    assert.deepEqual(heard.said, ["started"]);
    on.sockets.retain([fakeProvider(5, { wsUrl: "ws://elsewhere.test/" })]);
    assert.deepEqual(heard.said, ["started", "lost the provider was removed"]);
    assert.equal(pending.ends, 0);
    for (const send of replies) send();
    await ended(pending);
    assert.equal(pending.result, '"0x1"');
    await pass(on.runtime, 6_000);
    await until("closed", () => on.upstream.peers().length === 0);
    await pass(on.runtime, 60_000);
    assert.deepEqual([socketListener.said, on.upstream.opened()], [["up"], 1]);
    on.upstream.script(null);
    assert.equal((await answered(on)).result, '"0x1"');
    on.sockets.retain([]);
    await until("closed at once when nothing is under way", () => on.upstream.peers().length === 0);
  },
);

test("a removed provider that never answers is left after a minute all the same", async (t) => {
  const on = await rig(t, () => {});
  const pending = ask(on);
  await until("arrived", () => on.upstream.asked.length === 1);
  on.sockets.retain([]);
  await pass(on.runtime, 66_000);
  assert.deepEqual([pending.ends, pending.failure?.kind], [1, "network"]);
  await until("closed", () => on.upstream.peers().length === 0);
});

test(
  "closing ends every request and subscription and every connection, and nothing is opened " +
    "afterwards",
  async (t) => {
    const on = await rig(t, (asked, reply) => asked.method === "eth_subscribe" && reply.usual());
    const heard = watch(on);
    await said(heard, "started");
    const pending = ask(on);
    await until("arrived", () => on.upstream.count("eth_call") === 1);
    await on.sockets.close();
    assert.deepEqual(
      [pending.ends, pending.failure?.kind, heard.said.at(-1)],
      [1, "network", "lost the service is closing"],
    );
    await until("closed", () => on.upstream.peers().length === 0);
    assert.equal(ask(on).failure?.kind, "unsent");
    assert.equal(
      ask({ ...on, provider: fakeProvider(9, { wsUrl: `${on.upstream.url}/other` }) }).failure
        ?.kind,
      "unsent",
    );
    assert.equal(on.upstream.opened(), 1);
  },
);

test("a provider that neither reads nor closes cannot hold up the closing", async (t) => {
  const on = await rig(t, null, { closeTimeoutMs: 50 });
  await answered(on);
  on.upstream.peers()[0]?.freeze();
  await on.sockets.close();
});

test(
  "whatever a provider does, and whenever callers leave: every request hears one end, every " +
    "watcher a proper story",
  async (t) => {
    for (const seed of namedSeeds(1, 2, 3)) {
      const chance = seededRandom(seed);
      const pick = <T>(...them: readonly T[]): T => them[Math.floor(chance() * them.length)] as T;
      const on = await rig(t, null, { maxStrays: 20, maxPending: 200, maxWaiting: 50 });
      on.upstream.script((asked, reply) => {
        const { peer } = reply;
        const late = (): void => void setTimeout(reply.usual, chance() * 20);
        const once = notification([...peer.subscriptions.keys()].at(-1) ?? "0x0", "1");
        const whim = pick<() => void>(
          reply.usual,
          reply.usual,
          reply.usual,
          reply.usual,
          late,
          late,
          () => {},
          () => reply.error('{"code":-32000,"message":"no"}'),
          () => {
            const acts = [
              () => peer.send("junk"),
              () => peer.send(asked.body),
              () => peer.send(once),
              peer.drop,
              peer.reset,
              peer.close,
              () => peer.raw("\0\0\0\0"),
            ];
            pick(...acts).call(peer);
            if (chance() < 0.7) reply.usual();
            if (chance() < 0.3) reply.usual();
          },
        );
        whim();
      });
      const socketListener = keep(on);
      const endings: Ending[] = [];
      const heard: Heard[] = [];
      const cancelled = new Map<Ending | Heard, number>();
      const leave = (it: Ending | Heard): void => {
        it.dispatch.cancel();
        if (!cancelled.has(it)) cancelled.set(it, "said" in it ? it.said.length : it.ends);
      };
      for (let round = 0; round < 300; round++) {
        for (let n = 0; n < 4; n++) endings.push(ask(on));
        heard.push(watch(on, pick(HEADS, '["syncing"]', '["logs",{}]')));
        if (chance() < 0.5) leave(pick(...endings));
        if (chance() < 0.7) leave(pick(...heard));
        on.upstream.notify(pick("newHeads", "logs", "syncing"), String(round));
        on.runtime.advance(chance() < 0.1 ? 5_000 : 100);
        await new Promise((resolve) =>
          chance() < 0.3 ? setTimeout(resolve, 1) : setImmediate(resolve),
        );
      }
      await on.sockets.close();
      for (const it of endings) assert.equal(it.ends, cancelled.get(it) ?? 1, `seed ${seed}`);
      for (const it of heard) {
        const story = it.said.map((text) => text.split(" ")[0]).join(" ");
        const open = cancelled.has(it) ? "?" : "";
        assert.match(
          story,
          new RegExp(`^(refused|started( \\d+)*( lost)${open})${open}$`),
          `seed ${seed}`,
        );
        if (cancelled.has(it))
          assert.equal(it.said.length, cancelled.get(it), `seed ${seed}: heard after it had left`);
      }
      assert.ok(
        socketListener.said.length > 2 &&
          endings.some((it) => it.result !== null) &&
          heard.some((it) => it.said.length > 2),
        `seed ${seed}: too quiet`,
      );
    }
  },
);
