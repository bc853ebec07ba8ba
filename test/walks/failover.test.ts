// Every way a provider can answer badly, over real sockets: the caller gets the next provider's
// answer, the bad one is asked once, others notice nothing.
import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import { realRuntime } from "../../src/runtime.ts";
import { configText, type Service, startService } from "../fakes/service.ts";
import { healthOf, metaOf, serviceFixture, until, walked } from "../fakes/service-fixture.ts";
import {
  type Asked,
  type Replier,
  type ScriptedUpstream,
  scriptedUpstream,
} from "../fakes/upstream.ts";

interface BadAnswer {
  readonly name: string;
  /** The category the evidence must show. */
  readonly category: string;
  readonly answer: (reply: Replier, asked: Asked) => void;
}

const HTML = "<html><head><title>502 Bad Gateway</title></head><body>cloud</body></html>";
const html = { "content-type": "text/html" };
const bad = (name: string, category: string, answer: BadAnswer["answer"]): BadAnswer => ({
  name,
  category,
  answer,
});

/** Writes `bytes` again and again until the caller hangs up; `wrote` counts. */
function endless({ response }: Replier, head: string, bytes: string): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.write(head);
  const chunk = Buffer.from(bytes.repeat(Math.ceil(16_384 / bytes.length)));
  const more = (): void => {
    while (!response.destroyed) {
      endlessBytes += chunk.length;
      if (!response.write(chunk)) return void response.once("drain", more);
    }
  };
  more();
}
let endlessBytes = 0;

const BAD_ANSWERS: readonly BadAnswer[] = [
  bad("a connection reset before the answer", "network", (reply) => reply.reset()),
  bad("a connection closed before the answer", "network", (reply) => reply.close()),
  bad("half a body, then a reset", "network", (reply) => {
    const answer = reply.begin('{"jsonrpc":"2.0","id":');
    setTimeout(() => answer.reset(), 20);
  }),
  bad("a body shorter than its Content-Length", "network", ({ raw, close }) => {
    raw('HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{"jsonrpc":"2.0","id":7,"result":"0xa"}');
    close();
  }),
  bad("bytes that are no HTTP", "network", ({ raw, close }) => {
    raw("SSH-2.0-OpenSSH_9.6\r\n");
    close();
  }),
  bad("HTTP 500 with HTML", "server", (reply) => reply.body(HTML, 500, html)),
  bad("HTTP 502 with HTML", "server", (reply) => reply.body(HTML, 502, html)),
  bad("HTTP 503 without a body", "server", (reply) => reply.body("", 503, html)),
  bad("HTTP 500 around a result", "server", (reply, { id }) =>
    reply.body(`{"jsonrpc":"2.0","id":${id},"result":"0xa"}`, 500),
  ),
  bad("HTTP 429 with HTML", "rate_limit", (reply) => reply.body(HTML, 429, html)),
  bad("HTTP 200 with HTML", "bad_body", (reply) => reply.body(HTML, 200, html)),
  bad("HTTP 204", "bad_body", ({ response }) => void response.writeHead(204).end()),
  bad("a redirect", "endpoint_missing", (reply) =>
    reply.body("", 301, { location: "/redirected" }),
  ),
  bad("an empty body", "bad_body", (reply) => reply.body("")),
  bad("another id", "bad_body", (reply) =>
    reply.body('{"jsonrpc":"2.0","id":424242,"result":"0xa"}'),
  ),
  bad("no id", "bad_body", (reply) => reply.body('{"jsonrpc":"2.0","result":"0xa"}')),
  bad("the id null", "bad_body", (reply) =>
    reply.body('{"jsonrpc":"2.0","id":null,"result":"0xa"}'),
  ),
  bad("the id as a string", "bad_body", (reply, { id }) =>
    reply.body(`{"jsonrpc":"2.0","id":"${id}","result":"0xa"}`),
  ),
  bad("the id with a fraction", "bad_body", (reply, { id }) =>
    reply.body(`{"jsonrpc":"2.0","id":${id}.0,"result":"0xa"}`),
  ),
  bad("neither result nor error", "bad_body", (reply, { id }) =>
    reply.body(`{"jsonrpc":"2.0","id":${id}}`),
  ),
  bad("both result and error", "bad_body", (reply, { id }) =>
    reply.body(`{"jsonrpc":"2.0","id":${id},"result":"0xa","error":{"code":1,"message":"x"}}`),
  ),
  bad("two results", "bad_body", (reply, { id }) =>
    reply.body(`{"jsonrpc":"2.0","id":${id},"result":"0xa","result":"0xc"}`),
  ),
  bad("no version", "bad_body", (reply, { id }) => reply.body(`{"id":${id},"result":"0xa"}`)),
  bad("another version", "bad_body", (reply, { id }) =>
    reply.body(`{"jsonrpc":"1.0","id":${id},"result":"0xa"}`),
  ),
  bad("two documents", "bad_body", (reply, { id }) =>
    reply.body(`{"jsonrpc":"2.0","id":${id},"result":1}{"jsonrpc":"2.0","id":${id},"result":2}`),
  ),
  bad("an array", "bad_body", (reply, { id }) =>
    reply.body(`[{"jsonrpc":"2.0","id":${id},"result":"0xa"}]`),
  ),
  bad("a result that is not JSON", "bad_body", (reply, { id }) =>
    reply.body(`{"jsonrpc":"2.0","id":${id},"result":nope}`),
  ),
  bad("a complete HTTP answer around half a document", "bad_body", (reply, { id }) =>
    reply.body(`{"jsonrpc":"2.0","id":${id},"result":{"a":[1,2`),
  ),
  bad("nesting without end", "bad_body", (reply, { id }) =>
    reply.body(`{"jsonrpc":"2.0","id":${id},"result":${"[".repeat(3_000)}`),
  ),
  bad("gzip that nobody asked for", "bad_body", (reply, { id }) =>
    reply.body(gzipSync(`{"jsonrpc":"2.0","id":${id},"result":"0xa"}`), 200, {
      "content-encoding": "gzip",
    }),
  ),
  bad("an endless body of spaces", "bad_body", (reply) => endless(reply, "", " ")),
  bad("an endless body of zeros", "bad_body", (reply) => endless(reply, "", "\0")),
  bad("an endless page", "bad_body", (reply) => endless(reply, "<html>", "<p>more</p>")),
  bad("an endless error", "bad_body", (reply, { id }) =>
    endless(reply, `{"jsonrpc":"2.0","id":${id},"error":{"code":-32000,"message":"`, "x"),
  ),
  bad("an endless member before the result", "bad_body", (reply, { id }) =>
    endless(reply, `{"jsonrpc":"2.0","id":${id},"padding":"`, "x"),
  ),
  bad("an endless compressed body", "bad_body", ({ response }) => {
    response.writeHead(200, { "content-encoding": "gzip" });
    response.on("close", () => clearInterval(timer));
    const timer = setInterval(() => response.write(Buffer.alloc(262_144)), 2);
  }),
];

const slugOf = (index: number): string => `case-${index}`;

describe("a bad answer from the first provider ends in the second one's answer", () => {
  let worst: ScriptedUpstream;
  let sound: ScriptedUpstream;
  let service: Service;

  before(async () => {
    worst = await scriptedUpstream((asked, reply) =>
      BAD_ANSWERS[Number(asked.path.slice(1))]?.answer(reply, asked),
    );
    sound = await scriptedUpstream((_, reply) => reply.result('"0xb"'));
    const profile = (path: string) => ({
      chains: {
        ethereum: {
          providers: [
            { id: "a", url: worst.url + path, priority: 1 },
            { id: "b", url: sound.url, priority: 2 },
          ],
        },
      },
    });
    const profiles = Object.fromEntries(
      BAD_ANSWERS.map((_, index) => [slugOf(index), profile(`/${index}`)]),
    );
    const bystander = { chains: { ethereum: { providers: [{ id: "b", url: sound.url }] } } };
    service = await startService(configText([], { profiles: { ...profiles, bystander } }));
  });
  after(() => Promise.all([service.close(), worst.close(), sound.close()]));

  for (const [index, { name, category }] of BAD_ANSWERS.entries()) {
    it(`after ${name} (${category})`, async () => {
      const path = `/rpc/profile/${slugOf(index)}/priority/1?include_meta=headers`;
      const answer = await service.post(path, {
        jsonrpc: "2.0",
        id: 7,
        method: "eth_getBalance",
        params: [`0x${index}`],
      });
      assert.equal(answer.text, '{"jsonrpc":"2.0","id":7,"result":"0xb"}');
      assert.equal(walked(answer), `a:${category} b:ok`);
      assert.equal(worst.asked.filter((it) => it.path === `/${index}`).length, 1);
      assert.equal(sound.asked.filter((it) => it.body.includes(`"0x${index}"`)).length, 1);
    });
  }

  it("and no redirect is ever followed", () => {
    assert.deepEqual(
      [worst, sound].flatMap((it) => it.asked.filter(({ path }) => path.includes("redirected"))),
      [],
    );
  });

  it("and endless answers are cut off within a few megabytes", () =>
    assert.ok(endlessBytes < 40_000_000, `${endlessBytes} bytes were taken`));

  it("and all of them at once change nothing for other requests", async () => {
    const post = (slug: string, id: number) =>
      service.post(`/rpc/profile/${slug}/priority/1`, {
        jsonrpc: "2.0",
        id,
        method: "eth_gasPrice",
      });
    const trouble = BAD_ANSWERS.map((_, index) => post(slugOf(index), index));
    const calm = Array.from({ length: 60 }, (_, index) => post("bystander", 1_000 + index));
    for (const [index, { text }] of (await Promise.all(calm)).entries())
      assert.equal(text, `{"jsonrpc":"2.0","id":${1_000 + index},"result":"0xb"}`);
    for (const { json } of await Promise.all(trouble)) assert.equal(json.result, "0xb");
  });
});

test("a refused port is passed over, and three in a row open its circuit", async (t) => {
  const { call, service, upstreams } = await serviceFixture(t, [undefined, undefined]);
  assert.equal(walked(await call("eth_gasPrice")), "a:ok");
  await upstreams[0]?.close();
  for (let n = 0; n < 3; n++) assert.equal(walked(await call("eth_gasPrice")), "a:unsent b:ok");
  assert.equal(walked(await call("eth_gasPrice")), "b:ok");
  assert.equal((await healthOf(service, "a")).circuit_breaker_state, "open");
});

test(
  "HTTP 429 with Retry-After goes on to the next provider and is seen as that long a " +
    "cool-down, which does not open the circuit",
  async (t) => {
    const limited = (reply: Replier): void => reply.body("slow down", 429, { "retry-after": "70" });
    const { call, service, upstreams } = await serviceFixture(t, [
      (_, reply) => limited(reply),
      undefined,
    ]);
    const answer = await call("eth_gasPrice");
    assert.equal(answer.json.result, "0x1");
    assert.equal(walked(answer), "a:rate_limit b:ok");
    const { rate_limited_for_ms, circuit_breaker_state } = await healthOf(service, "a");
    assert.ok(
      rate_limited_for_ms > 40_000 && rate_limited_for_ms <= 70_000,
      `${rate_limited_for_ms}`,
    );
    assert.equal(circuit_breaker_state, "closed");
    assert.equal(walked(await call("eth_gasPrice")), "b:ok", "demoted while it cools down");
    assert.equal(upstreams[0]?.asked.length, 1);
  },
);

const DEADLINE_MS = 600_000;
const DEADLINE = { extra: { deadlines: { standard_ms: DEADLINE_MS } } };

/**
 * The service's clock, which runs ahead while it is waited with: a hundredth of the deadline at
 * each look. Timers stay real.
 */
function fastClock(t: TestContext): {
  readonly until: (what: string, look: () => boolean) => Promise<boolean>;
} {
  const { now } = realRuntime;
  let aheadMs = 0;
  t.mock.method(realRuntime, "now", () => now() + aheadMs);
  return {
    until: (what, look) =>
      until(what, () => {
        aheadMs += DEADLINE_MS / 100;
        return look();
      }),
  };
}

test("a provider that hangs is left in time for the next one, and hung up on", async (t) => {
  const clock = fastClock(t);
  const { call, upstreams } = await serviceFixture(t, [() => {}, undefined], DEADLINE);
  let hungUp = false;
  upstreams[0]?.script((_, { response }) => void response.on("close", () => (hungUp = true)));
  const answering = call("eth_getBalance", ["0x0"]);
  await clock.until("the next provider", () => upstreams[1]?.asked.length === 1);
  const answer = await answering;
  assert.equal(answer.json.result, "0x1");
  assert.equal(walked(answer), "a:timeout b:ok");
  await until("the end of the first request", () => hungUp);
});

test("an answer that drips byte by byte gets 60 % of the deadline, then the next one is asked", async (t) => {
  const clock = fastClock(t);
  const { call, upstreams } = await serviceFixture(
    t,
    [
      (_, { response }) => {
        response.writeHead(200).write("{");
        const drip = setInterval(() => response.write(" "), 20);
        response.on("close", () => clearInterval(drip));
      },
      undefined,
    ],
    DEADLINE,
  );
  const answering = call("eth_getBalance", ["0x0"]);
  await until("the question", () => upstreams[0]?.asked.length === 1);
  await clock.until("the next provider", () => upstreams[1]?.asked.length === 1);
  const answer = await answering;
  assert.equal(walked(answer), "a:timeout b:ok");
  const [first] = metaOf(answer).attempts;
  // The clock runs in steps beside real timers, so the cut was seen a few steps early; in simulated
  // time test/upstream/engine/router.test.ts holds the share.
  assert.ok(first !== undefined && first.latency_ms >= DEADLINE_MS / 2, `${first?.latency_ms}`);
});

test("when everybody hangs the caller is told at the deadline", async (t) => {
  const clock = fastClock(t);
  const { call } = await serviceFixture(t, [() => {}, () => {}, () => {}, () => {}], DEADLINE);
  let told = false;
  const answering = call("eth_getBalance", ["0x0"]).finally(() => {
    told = true;
  });
  await clock.until("the answer", () => told);
  const answer = await answering;
  const { end_to_end_latency_ms: tookMs, attempts } = metaOf(answer);
  assert.ok(Number(tookMs) >= DEADLINE_MS, `${tookMs}`);
  assert.equal(answer.status, 200);
  assert.deepEqual(
    [answer.json.error.code, answer.json.error.data.code, answer.json.error.data.reason],
    [-32002, "unavailable", "deadline_exceeded"],
  );
  assert.equal(answer.json.error.data.upstream_attempts, attempts.length);
  assert.equal(attempts.length, 4);
});

test("a caller who hangs up ends the upstream request, and that is held against nobody", async (t) => {
  const { service, upstreams } = await serviceFixture(t, [undefined, undefined]);
  let hungUp = false;
  upstreams[0]?.script((_, { response }) => void response.on("close", () => (hungUp = true)));
  const leaving = new AbortController();
  const body = '{"jsonrpc":"2.0","id":5,"method":"eth_gasPrice","params":[]}';
  const gone = fetch(`${service.url}/rpc/priority/1`, {
    method: "POST",
    body,
    signal: leaving.signal,
  }).catch(() => "gone");
  await until("the upstream request", () => upstreams[0]?.asked.length === 1);
  leaving.abort();
  assert.equal(await gone, "gone");
  await until("the end of the upstream request", () => hungUp);
  assert.equal(upstreams[1]?.asked.length, 0);
  assert.deepEqual((await healthOf(service, "a")).calls, 0);
});

test("all providers are asked for one call, or as many as the configuration allows", async (t) => {
  const broken = (_: Asked, reply: Replier): void => reply.body("", 500);
  const five = [broken, broken, broken, broken, broken];
  const { call, upstreams } = await serviceFixture(t, five);
  const answer = await call("eth_gasPrice");
  assert.equal(walked(answer), "a:server b:server c:server d:server e:server");
  assert.deepEqual(
    upstreams.map((it) => it.asked.length),
    [1, 1, 1, 1, 1],
  );
  assert.equal(answer.json.error.data.upstream_attempts, 5);
  const bounded = await serviceFixture(t, five, { extra: { limits: { max_attempts: 3 } } });
  assert.equal(walked(await bounded.call("eth_gasPrice")), "a:server b:server c:server");
});

test("four of five that are dead, hung or refusing from the start lose no read", async (t) => {
  const scripts = { hung() {}, refusing: (_: Asked, reply: Replier) => reply.body("", 503) };
  const [hung, refusing, well] = await Promise.all([
    scriptedUpstream(scripts.hung),
    scriptedUpstream(scripts.refusing),
    scriptedUpstream(),
  ]);
  for (const bad of [hung, refusing]) bad.probesSay(null);
  const dead = "http://127.0.0.1:1";
  const urls = [dead, hung.url, refusing.url, dead, well.url];
  const providers = urls.map((url, n) => ({ id: "abcde".charAt(n), url, priority: n + 1 }));
  const service = await startService(configText(providers));
  t.after(() => Promise.all([service, hung, refusing, well].map((it) => it.close())));
  await until("the fifth has answered", async () => {
    const { latency_ms: latencyMs } = await healthOf(service, "e");
    return latencyMs.probe !== null;
  });
  const read = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] };
  const answers = await Promise.all(
    Array.from({ length: 40 }, () =>
      service.post("/rpc/priority/ethereum?include_meta=headers", read),
    ),
  );
  assert.deepEqual([...new Set(answers.map(walked))], ["e:ok"]);
  assert.equal((await healthOf(service, "a")).circuit_breaker_state, "never_answered");
});

test("healthy traffic causes exactly one upstream request each, in every strategy", async (t) => {
  const { service, upstreams } = await serviceFixture(t, [undefined, undefined, undefined]);
  const strategies = ["load-balanced", "latency-weighted", "fastest", "priority"];
  const calls = Array.from({ length: 400 }, (_, n) => ({
    jsonrpc: "2.0",
    id: 1_000 + n,
    method: "eth_getBalance",
    params: [`0x${n}`, "latest"],
  }));
  const answers = await Promise.all(
    calls.map((one, n) => service.post(`/rpc/${strategies[n % 4]}/1`, one)),
  );
  for (const [n, { json }] of answers.entries())
    assert.deepEqual(json, { jsonrpc: "2.0", id: 1_000 + n, result: "0x1" });
  const batch = await service.post("/rpc/1", calls.slice(0, 50));
  assert.equal(batch.json.length, 50);
  const asked = upstreams.flatMap((it) => it.asked);
  assert.equal(asked.length, 450);
  assert.deepEqual(
    [new Set(asked.map((it) => it.id)).size, new Set(asked.map((it) => String(it.params))).size],
    [450, 400],
  );
});

test("the answer to another question goes no further: the next provider is asked, two that say the same are believed", async (t) => {
  const block = (number: number) =>
    `{"number":"0x${number.toString(16)}","hash":"0x${"1".repeat(64)}"}`;
  const { call, upstreams } = await serviceFixture(t, [undefined, undefined]);
  const ask = async (first: string, second: string) => {
    upstreams[0]?.script((_, reply) => reply.result(first));
    upstreams[1]?.script((_, reply) => reply.result(second));
    return call("eth_getBlockByNumber", ["0x5", false]);
  };
  const mended = await ask(block(6), block(5));
  assert.deepEqual([walked(mended), mended.json.result.number], ["a:integrity b:ok", "0x5"]);
  const alike = await ask(block(6), block(6));
  assert.deepEqual([walked(alike), alike.json.result.number], ["a:integrity b:ok", "0x6"]);
  const neither = await ask(block(6), block(7));
  assert.equal(walked(neither), "a:integrity b:integrity");
  assert.equal(neither.json.error.data.code, "unavailable");
});

test("of an answer that streams the beginning is held against its question before it is delivered", async (t) => {
  const logs = (address: string) =>
    `[${Array.from({ length: 3_000 }, (_, n) => `{"address":"${address}","logIndex":"0x${n}"}`).join()}]`;
  const [own, foreign, other] = ["a", "b", "c"].map((letter) => logs(`0x${letter.repeat(40)}`));
  const { call, upstreams } = await serviceFixture(t, [undefined, undefined]);
  const ask = async (first = "", second = "") => {
    // Without a length the answer is streamed once enough is here.
    upstreams[0]?.script(({ id }, reply) =>
      reply.begin(`{"jsonrpc":"2.0","id":${id},"result":${first}`).write("}"),
    );
    upstreams[1]?.script((_, reply) => reply.result(second));
    return call("eth_getLogs", [{ address: `0x${"a".repeat(40)}` }]);
  };
  const mended = await ask(foreign, own);
  assert.deepEqual([walked(mended), mended.text.includes(own ?? "-")], ["a:integrity b:ok", true]);
  const alike = await ask(foreign, foreign);
  assert.deepEqual(
    [walked(alike), alike.text.includes(foreign ?? "-")],
    ["a:integrity b:ok", true],
  );
  const neither = await ask(foreign, other);
  assert.equal(walked(neither), "a:integrity b:integrity");
  assert.equal(neither.json.error.data.code, "unavailable");
});

test("an answer of a form that nobody else corrects is told, and nobody is blamed", async (t) => {
  const { service, call, upstreams } = await serviceFixture(t, [undefined, undefined]);
  const ask = async (first: string, second: string) => {
    upstreams[0]?.script((_, reply) => reply.result(first));
    upstreams[1]?.script((_, reply) => reply.result(second));
    const answer = await call("eth_gasPrice", []);
    return [walked(answer), answer.json.result];
  };
  assert.deepEqual(await ask("[]", '"0x5"'), ["a:integrity b:ok", "0x5"]);
  assert.deepEqual(await ask("100", "101"), ["a:integrity b:ok", 101]);
  upstreams[1]?.script((_, reply) => reply.error('{"code":-32000,"message":"busy"}', 503));
  upstreams[0]?.script((_, reply) => reply.result("100"));
  const alone = await call("eth_gasPrice", []);
  assert.deepEqual([walked(alone), alone.json.result], ["a:integrity b:server", 100]);
  assert.equal((await healthOf(service, "a")).circuit_breaker_state, "closed");
});
