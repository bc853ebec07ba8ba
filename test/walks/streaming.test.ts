// Results pass through byte for byte, short or long, whatever they hold and whatever the caller's
// id is; a broken long answer is never passed off as whole.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type IncomingMessage, request } from "node:http";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { WIRE_ID_BYTES } from "../../src/core/rpc/wire-request.ts";
import { startProcess } from "../fakes/process.ts";
import { configText } from "../fakes/service.ts";
import { serviceFixture, until, walked } from "../fakes/service-fixture.ts";
import { type Script, scriptedUpstream } from "../fakes/upstream.ts";

const MIB = 1_048_576;

/** Values that a parser would not give back as they were. */
const DELICATE = [
  "9007199254740993",
  "1e3",
  "-0.0",
  "1E+2",
  '{"b":1,"a":2,"a":3,"__proto__":{"x":1}}',
  '"\\u0041\\/\\ud800 \\n"',
  '"\\ud83d\\ude00 ä 😀"',
  '{ "spaced" :\t[ 1 ,\r\n 2 ] }',
  "null",
  "false",
  "[]",
  '"]}"',
  '"\\"}"',
];
const IDS = [
  "7",
  "0",
  "-3",
  "null",
  '"x"',
  '"\\u0061\\"\\\\ \\n"',
  '"ä😀"',
  "123456789012345678901234567890",
  '""',
  '"1"',
];

/** The same member orders that nodes are known to write. */
const ORDERS: readonly ((id: string, result: string) => string)[] = [
  (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`,
  (id, result) => `{"id":${id},"jsonrpc":"2.0","result":${result}}`,
  (id, result) => `{"jsonrpc":"2.0","result":${result},"id":${id}}`,
  (id, result) => `{"result":${result},"id":${id},"jsonrpc":"2.0"}`,
  (id, result) => `{"result":${result},"jsonrpc":"2.0","id":${id}}\n`,
  (id, result) => ` { "jsonrpc" : "2.0" , "error" : null , "id" : ${id} , "result" : ${result} } `,
];

test(
  "short results survive byte for byte in every member order, and every id comes back as it " +
    "was sent",
  async (t) => {
    const { service, upstreams } = await serviceFixture(t, [undefined]);
    for (const [n, result] of DELICATE.entries()) {
      const order = ORDERS[n % ORDERS.length] ?? String;
      upstreams[0]?.script(({ id }, reply) => reply.body(order(id, result)));
      for (const id of IDS) {
        const { text } = await service.post(
          "/rpc/1",
          `{"jsonrpc":"2.0","id":${id},"method":"eth_gasPrice","params":[]}`,
        );
        assert.equal(text, order(id, result));
        JSON.parse(text);
      }
    }
  },
);

test(
  "long results survive byte for byte in every member order and with every id, with the " +
    "Content-Length that the id leaves",
  async (t) => {
    const { service, upstreams } = await serviceFixture(t, [undefined]);
    const result = `{"big":${DELICATE[0]},"values":[${DELICATE.join(",")}],"pad":"${"ab".repeat(60_000)}","end":[{}]}`;
    for (const order of ORDERS) {
      let sent = 0;
      upstreams[0]?.script(({ id }, { response }) => {
        const body = Buffer.from(order(id, result));
        sent = body.length;
        response.writeHead(200, { "content-length": body.length });
        response.write(body.subarray(0, 70_000));
        setImmediate(() => response.end(body.subarray(70_000)));
      });
      for (const id of IDS) {
        const { text, headers } = await service.post(
          "/rpc/1",
          `{"jsonrpc":"2.0","id":${id},"method":"eth_gasPrice","params":[]}`,
        );
        assert.ok(text === order(id, result), `${text.slice(0, 200)}…${text.slice(-200)}`);
        JSON.parse(text);
        assert.equal(
          headers.get("content-length"),
          String(sent - WIRE_ID_BYTES + Buffer.byteLength(id)),
        );
      }
    }
  },
);

test("a long result of any type passes, cut into pieces of any size", async (t) => {
  const { service, upstreams } = await serviceFixture(t, [undefined]);
  const long = "x".repeat(100_000);
  for (const result of [
    `"${long}"`,
    `["${long}"]`,
    `{"a":"${long}"}`,
    `["${long}",1e3]`,
    "1".repeat(100_000),
    `"${long}\\"}"`,
  ]) {
    for (const step of [1_000, 65_536, 99_999]) {
      upstreams[0]?.script(({ id }, { response }) => {
        const body = Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":${result}}`);
        for (let at = 0; at < body.length; at += step) response.write(body.subarray(at, at + step));
        response.end();
      });
      const { text } = await service.post(
        "/rpc/1",
        '{"jsonrpc":"2.0","id":"\\u0031","method":"eth_gasPrice","params":[]}',
      );
      assert.ok(
        text === `{"jsonrpc":"2.0","id":"\\u0031","result":${result}}`,
        `${text.slice(0, 60)}…${text.slice(-60)}`,
      );
    }
  }
});

const BROKEN_ENDINGS: readonly (readonly [name: string, script: Script])[] = [
  [
    "a reset",
    ({ id }, reply) =>
      void setTimeout(
        reply.begin(`{"jsonrpc":"2.0","id":${id},"result":"${"x".repeat(200_000)}`).reset,
        50,
      ),
  ],
  [
    "a clean end too early",
    ({ id }, reply) =>
      reply.begin(`{"jsonrpc":"2.0","id":${id},"result":"${"x".repeat(200_000)}`).end(),
  ],
  [
    "no version at all",
    ({ id }, reply) => reply.body(`{"id":${id},"result":"${"x".repeat(200_000)}"}`),
  ],
  [
    "an error beside the result",
    ({ id }, reply) =>
      reply.body(
        `{"jsonrpc":"2.0","id":${id},"result":"${"x".repeat(200_000)}","error":{"code":1,"message":"late"}}`,
      ),
  ],
  [
    "rubbish after the result",
    ({ id }, reply) =>
      reply.body(`{"jsonrpc":"2.0","id":${id},"result":"${"x".repeat(200_000)}"}<html>`),
  ],
];
const OTHER_OWNERS: readonly (readonly [
  name: string,
  body: (id: string, result: string) => string,
])[] = [
  ["another id in front", (_, result) => `{"jsonrpc":"2.0","id":1,"result":${result}}`],
  ["another id at the end", (_, result) => `{"jsonrpc":"2.0","result":${result},"id":1}`],
  ["a longer id at the end", (id, result) => `{"jsonrpc":"2.0","result":${result},"id":${id}0}`],
  [
    "the id as a string at the end",
    (id, result) => `{"jsonrpc":"2.0","result":${result},"id":"${id}"}`,
  ],
  ["no id at all", (_, result) => `{"jsonrpc":"2.0","result":${result}}`],
];
for (const [name, body] of OTHER_OWNERS) {
  test(`of a long answer with ${name} the caller sees no byte: the next provider answers`, async (t) => {
    const { call } = await serviceFixture(t, [
      ({ id }, reply) => reply.body(body(id, `"${"x".repeat(200_000)}"`)),
      (_, reply) => reply.result('"0xb"'),
    ]);
    const answer = await call("eth_gasPrice");
    assert.deepEqual([walked(answer), answer.json.result], ["a:bad_body b:ok", "0xb"]);
  });
}

for (const [name, script] of BROKEN_ENDINGS) {
  test(
    `a long answer that ends in ${name} reaches the caller as a broken connection, never as a ` +
      "complete answer",
    async (t) => {
      const { service } = await serviceFixture(t, [script]);
      for (const id of ["7", '"\\u0031"']) {
        await assert.rejects(
          service.post(
            "/rpc/1",
            `{"jsonrpc":"2.0","id":${id},"method":"eth_gasPrice","params":[]}`,
          ),
          TypeError,
        );
      }
      assert.match(service.log(), /answer cut off/);
      const metrics = await service.get("/api/metrics/1");
      assert.equal(
        metrics.json.profiles[0].providers[0].transports[0].outcomes.failed,
        2,
        "a broken answer is held against the provider",
      );
      const { text } = await service.get("/api/health");
      assert.match(text, /healthy/);
    },
  );
}

/** Sends a call and hands over the answer without reading it. */
function openAnswer(service: { readonly url: string }, id: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const asked = request(
      `${service.url}/rpc/1`,
      { method: "POST", headers: { "content-type": "application/json" } },
      resolve,
    );
    asked.on("error", reject);
    asked.end(`{"jsonrpc":"2.0","id":${id},"method":"eth_gasPrice","params":[]}`);
  });
}

/**
 * Writes `size` bytes of a string result, as fast as they are taken; `wrote` tells how far it is.
 */
function hugeAnswer(size: number): {
  readonly script: Script;
  readonly wrote: () => number;
  readonly digest: () => string;
} {
  const chunk = Buffer.alloc(65_536, "0123456789abcdef");
  let wrote = 0;
  const hash = createHash("sha256");
  const script: Script = ({ id }, { response }) => {
    response.writeHead(200);
    response.write(`{"jsonrpc":"2.0","id":${id},"result":"`);
    const more = (): void => {
      while (wrote < size) {
        wrote += chunk.length;
        hash.update(chunk);
        if (!response.write(chunk)) return void response.once("drain", more);
      }
      response.end('"}');
    };
    more();
  };
  return { script, wrote: () => wrote, digest: () => hash.digest("hex") };
}

for (const id of ["7", '"\\u0031"']) {
  test(`a result of 100 MiB passes whole with id ${id} while memory stays flat`, async (t) => {
    const huge = hugeAnswer(100 * MIB);
    const upstream = await scriptedUpstream(huge.script);
    t.after(() => upstream.close());
    const service = await startProcess(t, configText([{ id: "a", url: upstream.url }]));
    const before = await service.residentBytes();
    const answer = await openAnswer(service, id);
    const hash = createHash("sha256");
    const head = `{"jsonrpc":"2.0","id":${id},"result":"`;
    let size = 0;
    let peak = 0;
    let asked = 1;
    let tail = Buffer.alloc(0);
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      const skipped = Math.max(0, Math.min(chunk.length, head.length - size));
      size += chunk.length;
      const joined = Buffer.concat([tail, chunk.subarray(skipped)]);
      hash.update(joined.subarray(0, Math.max(0, joined.length - 2)));
      tail = joined.subarray(Math.max(0, joined.length - 2));
      if (size >= asked * 10 * MIB) {
        asked++;
        peak = Math.max(peak, await service.residentBytes());
      }
    }
    assert.equal(size, head.length + 100 * MIB + 2);
    assert.equal(tail.toString(), '"}');
    assert.equal(hash.digest("hex"), huge.digest());
    assert.ok(
      peak - before < 60 * MIB,
      `${Math.round((peak - before) / MIB)} MiB more at the peak`,
    );
    t.diagnostic(
      `${Math.round(before / MIB)} MiB before, ${Math.round(peak / MIB)} MiB at the peak`,
    );
  });
}

test("a caller who does not read holds the upstream back, and gets everything once he reads", async (t) => {
  const huge = hugeAnswer(64 * MIB);
  const { service } = await serviceFixture(t, [huge.script]);
  const answer = await openAnswer(service, "7");
  answer.pause();
  await until("the first bytes", () => huge.wrote() > 0);
  let before = -1;
  for (; before !== huge.wrote(); await sleep(150)) before = huge.wrote();
  assert.ok(huge.wrote() < 40 * MIB, `${huge.wrote() / MIB} MiB taken without a reader`);
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) size += chunk.length;
  assert.equal(size, `{"jsonrpc":"2.0","id":7,"result":""}`.length + 64 * MIB);
});

test("a caller who leaves in the middle of a long answer ends it upstream too", async (t) => {
  const { service, upstreams } = await serviceFixture(t, [undefined]);
  let closed = false;
  upstreams[0]?.script(({ id }, reply) => {
    reply.response.on("close", () => (closed = true));
    reply.begin(`{"jsonrpc":"2.0","id":${id},"result":"${"x".repeat(200_000)}`);
  });
  const answer = await openAnswer(service, "7");
  answer.destroy();
  await until("the end upstream", () => closed);
});

test("many long answers at once do not mix", async (t) => {
  const { service, upstreams } = await serviceFixture(t, [undefined, undefined]);
  for (const upstream of upstreams)
    upstream.script(({ params }, reply) => reply.result(`"0x${String(params).repeat(40_000)}"`));
  const calls = Array.from({ length: 60 }, (_, n) =>
    service.post("/rpc/1", { jsonrpc: "2.0", id: n, method: "eth_getBalance", params: [`<${n}>`] }),
  );
  for (const [n, { json }] of (await Promise.all(calls)).entries()) {
    assert.equal(json.id, n);
    assert.equal(json.result, `0x${`<${n}>`.repeat(40_000)}`);
  }
});
