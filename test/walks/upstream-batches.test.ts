// Batches to providers over real sockets: what shares a request, and that callers get right answers
// whatever a provider makes of a batch. What it refuses is learned; how it fails counts once.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startDevnet } from "../../src/devnet/devnet.ts";
import { seededRandom } from "../fakes/runtime.ts";
import { chanceSeed } from "../fakes/seed.ts";
import { configOf, configText, PATIENT, type Service, startService } from "../fakes/service.ts";
import { healthOf, type ShownAttempt, serviceFixture } from "../fakes/service-fixture.ts";
import { type Asked, type Replier, type Script, scriptedUpstream } from "../fakes/upstream.ts";

/** One answer of a batch. */
interface Item {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
  readonly svc_meta: { readonly attempts: readonly (ShownAttempt & { batched?: number })[] };
}

interface Sent {
  readonly id: string;
  readonly params: readonly string[];
}

const CHANCE = chanceSeed();
const METHOD = "eth_getBalance";
const OPERATOR = "operator-operator-operator";

/** The calls of a request upstream, their ids as text; a single call is one. */
function callsOf({ body }: Asked): readonly Sent[] {
  const parsed: unknown = JSON.parse(body);
  const calls: readonly { id: number; params: readonly string[] }[] = Array.isArray(parsed)
    ? parsed
    : [parsed];
  return calls.map(({ id, params }) => ({ id: String(id), params }));
}

/** Calls of each request, most first: which connection is served first is chance. */
function sizesOf(asked: readonly Asked[]): readonly number[] {
  return asked.map((one) => callsOf(one).length).sort((left, right) => right - left);
}

const isBatch = ({ body }: Asked): boolean => body.startsWith("[");
const resultOf = ({ id, params }: Sent): string =>
  `{"jsonrpc":"2.0","id":${id},"result":"${params[0]}"}`;
const errorOf = (id: string, message: string, code = -32_000): string =>
  `{"jsonrpc":"2.0","id":${id},"error":{"code":${code},"message":"${message}"}}`;

/** A good node: it tells each call its own first parameter. */
const honest: Script = (asked, reply) => {
  const answers = callsOf(asked).map(resultOf);
  reply.body(isBatch(asked) ? `[${answers.join(",")}]` : (answers[0] ?? ""));
};

/** A node that answers single calls well, and batches like this. */
function toBatches(answer: (calls: readonly Sent[], reply: Replier) => void): Script {
  return (asked, reply) => (isBatch(asked) ? answer(callsOf(asked), reply) : honest(asked, reply));
}

/** Sends calls in one request to the service: they are ready in one turn. */
async function send(
  service: Service,
  path: string,
  count: number,
  from = 0,
): Promise<readonly Item[]> {
  const body = Array.from({ length: count }, (_, n) => ({
    jsonrpc: "2.0",
    id: n,
    method: METHOD,
    params: [`0x${from + n}`, "latest"],
  }));
  const { json } = await service.post(`${path}?include_meta=body`, body);
  return json;
}

/** Provider, category and size of the batch of each attempt. */
function walkOf({ svc_meta: { attempts } }: Item): string {
  return attempts
    .map(
      ({ provider, category, batched }) =>
        `${provider}:${category ?? "ok"}${batched === undefined ? "" : `/${batched}`}`,
    )
    .join(" ");
}

function checkOwnAnswers(items: readonly Item[], from = 0): void {
  assert.deepEqual(
    items.map(({ id, result }) => [id, result]),
    items.map((_, n) => [n, `0x${from + n}`]),
  );
}

test("calls of one turn go in one request, writes, logs and single calls as ever; a reload ends it", async (t) => {
  const { service, upstreams } = await serviceFixture(t, [honest], {
    providers: [{ batch: { max: 5 } }],
  });
  const [a = assert.fail()] = upstreams;
  await service.probed();
  const items = await send(service, "/rpc/ethereum", 12);
  checkOwnAnswers(items);
  assert.deepEqual(sizesOf(a.asked), [5, 5, 2]);
  assert.deepEqual(
    items.map(walkOf),
    [5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 2, 2].map((size) => `a:ok/${size}`),
  );
  const [one] = await send(service, "/rpc/ethereum", 1);
  assert.equal(one === undefined ? "" : walkOf(one), "a:ok");
  assert.equal(isBatch(a.asked[3] ?? assert.fail()), false, "one call is no batch");
  const methods = ["eth_getLogs", "eth_getBlockReceipts", "debug_traceTransaction", "vendor_read"];
  const request = (method: string, id: number) => ({ jsonrpc: "2.0", id, method, params: ["0x1"] });
  await service.post("/rpc/ethereum", [...methods, ...methods].map(request));
  assert.ok(a.asked.slice(4).every((asked) => !isBatch(asked)));
  const long = Array.from({ length: 5 }, (_, id) => ({
    ...request(METHOD, id),
    params: [`${id}${"0".repeat(9_000)}`],
  }));
  const { json } = await service.post("/rpc/ethereum", long);
  assert.deepEqual(
    json.map((item: Item) => item.result),
    long.map(({ params: [param] }) => param),
    "45 kB in one request, and as much in its answer",
  );
  assert.equal(isBatch(a.asked.at(-1) ?? assert.fail()), true);
  const metrics = (await service.get("/metrics")).text;
  assert.match(metrics, /^svc_upstream_batches_total\{result="sent"\} 4$/m);
  assert.match(metrics, /^svc_upstream_batched_calls_total\{result="sent"\} 17$/m);
  const before = a.asked.length;
  const plain = configText([{ id: "a", url: a.url, priority: 1 }]);
  assert.equal(service.app.reload(configOf(plain)), null);
  checkOwnAnswers(await send(service, "/rpc/ethereum", 4));
  assert.equal(a.asked.length, before + 4);
});

test("what a provider makes of a batch reaches no wrong caller, and counts as one failure", async (t) => {
  const { service, upstreams } = await serviceFixture(t, [honest, honest], {
    providers: [{ batch: { max: 100 } }, { batch: { max: 100 } }],
  });
  const [a = assert.fail()] = upstreams;
  await service.probed();
  const first = ([call]: readonly Sent[]): string => resultOf(call ?? assert.fail());
  const cases: readonly (readonly [
    name: string,
    answer: (calls: readonly Sent[], reply: Replier) => void,
    walks: readonly string[],
  ])[] = [
    [
      "in another order",
      (calls, reply) => reply.body(`[${calls.map(resultOf).reverse().join(" ,\n")}]`),
      Array(8).fill("a:ok/8"),
    ],
    [
      "with answers to nobody, and one twice",
      (calls, reply) => {
        const strange = [resultOf({ id: "7777777777777777", params: ["0xbad"] }), first(calls)];
        reply.body(`[${[...calls.map(resultOf), ...strange].join(",")}]`);
      },
      Array(8).fill("a:ok/8"),
    ],
    [
      "with an item that goes on as the answer to another",
      (calls, reply) => {
        const [victim = assert.fail()] = calls.slice(1);
        const long = `{"jsonrpc":"2.0","id":${calls[0]?.id},"result":"${"x".repeat(2_000)}"`;
        const evil = `${long},"id":${victim.id},"result":"0xbad"}`;
        reply.body(`[${[evil, ...calls.slice(1).map(resultOf)].join(",")}]`);
      },
      ["a:bad_body/8 b:ok", ...Array(7).fill("a:ok/8")],
    ],
    [
      "cut in the middle",
      (calls, reply) => {
        reply.begin(`[${first(calls)},${resultOf(calls[1] ?? assert.fail())},{"js`);
        reply.close();
      },
      ["a:ok/8", "a:ok/8", ...Array(6).fill("a:network/8 b:ok")],
    ],
    [
      "ended too early",
      (calls, reply) => reply.body(`[${first(calls)},`),
      ["a:ok/8", ...Array(7).fill("a:bad_body/8 b:ok")],
    ],
    [
      "a page of a proxy",
      (_, reply) => reply.body("<html>Bad Gateway</html>", 502),
      Array(8).fill("a:server/8 b:ok"),
    ],
    ["reset", (_, reply) => reply.reset(), Array(8).fill("a:network/8 b:ok")],
    [
      "one item of it failed",
      (calls, reply) =>
        reply.body(
          `[${calls.map((call, n) => (n === 3 ? errorOf(call.id, "internal error", -32_603) : resultOf(call))).join(",")}]`,
        ),
      Array.from({ length: 8 }, (_, n) => (n === 3 ? "a:server/8 b:ok" : "a:ok/8")),
    ],
    [
      "too many requests",
      (_, reply) => reply.body(errorOf("null", "slow down"), 429, { "retry-after": "0" }),
      Array(8).fill("a:rate_limit/8 b:ok"),
    ],
  ];
  for (const [at, [name, answer, walks]] of cases.entries()) {
    a.script(toBatches(answer));
    const items = await send(service, "/rpc/priority/ethereum", 8, 10 * at);
    checkOwnAnswers(items, 10 * at);
    assert.deepEqual(items.map(walkOf), walks, name);
    assert.equal((await healthOf(service, "a")).circuit_breaker_state, "closed", name);
  }
  const { text } = await service.get("/metrics");
  assert.match(text, /^svc_buffer_double_returns_total 0$/m, "memory goes back once");
});

test(`many callers at a provider that lies now and then get their own answers only (seed ${CHANCE})`, async (t) => {
  const random = seededRandom(CHANCE);
  const chance = (count: number): number => Math.floor(random() * count);
  const lying = toBatches((calls, reply) => {
    const answers = calls.map(resultOf).sort(() => random() - 0.5);
    const stranger = resultOf({ id: String(8_000_000_000_000_000 + chance(999)), params: ["bad"] });
    const whole = Buffer.from(`[${answers.join(",")}]`);
    switch (chance(12)) {
      case 0:
        return reply.body(`[${[...answers, stranger].join(",")}]`);
      case 1:
        return reply.body(`[${[...answers, ...answers].join(",")}]`);
      case 2:
        return reply.body("<html>", 502);
      case 3:
        return reply.reset();
      case 4:
        reply.begin(whole.subarray(0, chance(whole.length)));
        return reply.close();
      default: {
        const at = chance(whole.length);
        const stream = reply.begin(whole.subarray(0, at));
        setImmediate(() => {
          stream.write(whole.subarray(at));
          stream.end();
        });
      }
    }
  });
  const { service } = await serviceFixture(t, [lying, honest], {
    providers: [{ batch: { max: 12 } }, { batch: { max: 12 } }],
  });
  await service.probed();
  let [asked, shared] = [0, 0];
  const caller = async (from: number): Promise<void> => {
    for (let round = 0; round < 25; round++) {
      const start = 1_000 * (from + round);
      const items = await send(service, "/rpc/priority/ethereum", 1 + chance(20), start);
      checkOwnAnswers(items, start);
      asked += items.length;
      shared += items.filter((item) => walkOf(item).includes("/")).length;
    }
  };
  await Promise.all([100, 200, 300, 400].map(caller));
  t.diagnostic(`${shared} of ${asked} calls shared a request`);
  assert.ok(shared > 0);
  assert.match((await service.get("/metrics")).text, /^svc_buffer_double_returns_total 0$/m);
});

test("a provider that refuses batches, or large ones, is asked call by call at once, and that is learned", async () => {
  const refusals: Readonly<Record<string, readonly [Script, later: readonly number[]]>> = {
    never: [
      toBatches((_, reply) => reply.error('{"code":-32600,"message":"batches are not supported"}')),
      [1, 1, 1, 1, 1, 1, 1, 1],
    ],
    unread: [toBatches((_, reply) => reply.body("Bad Request", 400)), [1, 1, 1, 1, 1, 1, 1, 1]],
    named: [
      toBatches((calls, reply) =>
        calls.length > 3
          ? reply.body(errorOf("null", "maximum batch size is 3", -32_600))
          : reply.body(`[${calls.map(resultOf).join(",")}]`),
      ),
      [3, 3, 2],
    ],
    "like-geth": [
      toBatches((calls, reply) =>
        calls.length > 4
          ? reply.body(`[${errorOf(calls[0]?.id ?? "", "batch too large", -32_600)}]`)
          : reply.body(`[${calls.map(resultOf).join(",")}]`),
      ),
      [4, 4],
    ],
    "too-long": [toBatches((_, reply) => reply.body("", 413)), [4, 4, 1, 1, 1, 1, 1, 1, 1, 1]],
    "first-only": [
      toBatches(([call], reply) => reply.body(resultOf(call ?? assert.fail()))),
      [1, 1, 1, 1, 1, 1, 1, 1],
    ],
    forgetful: [
      toBatches((calls, reply) => reply.body(`[${calls.slice(0, 2).map(resultOf).join(",")}]`)),
      [2, 2, 2, 2],
    ],
  };
  const nodes = await Promise.all(
    Object.entries(refusals).map(async ([id, [script, later]]) => ({
      id,
      later,
      upstream: await scriptedUpstream(script),
    })),
  );
  const providers = nodes.map(({ id, upstream }) => ({
    id,
    url: upstream.url,
    batch: { max: 50 },
  }));
  const service = await startService(configText(providers));
  after(() => Promise.all([service.close(), ...nodes.map(({ upstream }) => upstream.close())]));
  await service.probed();
  for (const { id, upstream, later } of nodes) {
    const items = await send(service, `/rpc/provider/${id}/ethereum`, 8);
    checkOwnAnswers(items);
    assert.ok(
      items.every(({ svc_meta: { attempts } }) => attempts.length === 1),
      `${id}: it is the same attempt`,
    );
    const asked = upstream.asked.length;
    assert.equal(isBatch(upstream.asked[0] ?? assert.fail()), true);
    checkOwnAnswers(await send(service, `/rpc/provider/${id}/ethereum`, 8, 20), 20);
    assert.deepEqual(sizesOf(upstream.asked.slice(asked)), later, id);
  }
  const { text } = await service.get("/metrics");
  const refused = /^svc_upstream_batches_total\{result="refused"\} (\d+)$/m.exec(text)?.[1];
  assert.ok(Number(refused) >= nodes.length);
  assert.match(service.log(), /"provider":"never","most":1,.*the provider refused a batch/);
});

test("each call of a batch counts toward the limits of its provider", async (t) => {
  const limits = { daily: 1_000_000, credits: { [METHOD]: 5 } };
  const { service, upstreams } = await serviceFixture(t, [honest], {
    extra: { server: { port: 0, operator_token: OPERATOR } },
    providers: [{ batch: { max: 100 }, limits }],
  });
  await service.probed();
  const spent = async (): Promise<number> => {
    const response = await fetch(`${service.url}/api/metrics/1`, {
      headers: { authorization: `Bearer ${OPERATOR}` },
    });
    const { profiles } = JSON.parse(await response.text());
    return profiles[0].providers[0].limits.daily.spent;
  };
  const before = await spent();
  checkOwnAnswers(await send(service, "/rpc/ethereum", 7));
  assert.equal(upstreams[0]?.asked.length, 1);
  assert.ok((await spent()) >= before + 35, "as vendors count");
});

test("a real node answers every read in a batch as it answers it alone", async () => {
  const devnet = await startDevnet({ nodes: 1, onProgress: () => {} });
  after(() => devnet.close());
  const [{ url } = assert.fail()] = devnet.providers;
  const providers = [
    { id: "together", url, batch: { max: 100, wait_ms: 1 }, archival: true },
    { id: "alone", url, archival: true },
  ];
  const service = await startService(
    JSON.stringify({
      server: { port: 0 },
      chains: { local: { chain_id: 31_337, block_time_ms: 12_000 } },
      profiles: { team: { chains: { local: { providers } } } },
      deadlines: PATIENT,
    }),
  );
  after(() => service.close());
  const [account, nobody] = ["0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", `0x${"12".repeat(20)}`];
  const reads: readonly (readonly [method: string, params: readonly unknown[]])[] = [
    ["eth_getBalance", [account, "0x0"]],
    ["eth_getBalance", [nobody, "0x0"]],
    ["eth_getTransactionCount", [account, "0x0"]],
    ["eth_getCode", [account, "0x0"]],
    ["eth_getStorageAt", [nobody, "0x0", "0x0"]],
    ["eth_getBlockByNumber", ["0x0", true]],
    ["eth_getBlockByNumber", ["nonsense", true]],
    ["eth_getTransactionReceipt", [`0x${"ab".repeat(32)}`]],
    ["eth_call", [{ to: nobody, data: "0x" }, "0x0"]],
    ["eth_call", [{ to: nobody, data: "0xzz" }, "0x0"]],
    ["eth_estimateGas", [{ from: account, to: nobody, value: "0x1" }, "0x0"]],
    ["eth_feeHistory", ["0x1", "0x0", []]],
    ["web3_clientVersion", []],
  ];
  const body = reads.map(([method, params], id) => ({ jsonrpc: "2.0", id, method, params }));
  const [together, alone] = await Promise.all(
    ["together", "alone"].map((id) => service.post(`/rpc/provider/${id}/local`, body)),
  );
  assert.equal(together?.text, alone?.text);
  assert.equal(JSON.parse(together?.text ?? "[]").length, reads.length);
  const { text } = await service.get("/metrics");
  assert.match(
    text,
    new RegExp(`^svc_upstream_batched_calls_total\\{result="sent"\\} ${reads.length}$`, "m"),
  );
  assert.match(text, /^svc_upstream_batches_total\{result="refused"\} 0$/m);
});
