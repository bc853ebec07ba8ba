// The live check of a profile's providers: honest ones pass on both transports; lying, silent,
// dying, refusing and crippled ones are named with what they said, never with their address; and
// whatever they do, the check ends in time.
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { type TestContext, test } from "node:test";
import type { Profile, Provider } from "../../src/core/provider/profile.ts";
import { startDevnet } from "../../src/devnet/devnet.ts";
import { type Runtime, realRuntime } from "../../src/runtime.ts";
import {
  type CheckBounds,
  checkProviders,
  type ProviderCheckResult,
} from "../../src/upstream/provider-check.ts";
import { SsrfGuard } from "../../src/upstream/ssrf-guard.ts";
import { TimerWheel } from "../../src/upstream/timer-wheel.ts";
import { fakeProvider, fakeSet } from "../fakes/providers.ts";
import { simulatedWorld } from "../fakes/runtime.ts";
import { until } from "../fakes/service-fixture.ts";
import { socketUpstream } from "../fakes/socket-upstream.ts";
import { type Script, scriptedUpstream } from "../fakes/upstream.ts";

const BOUNDS: CheckBounds = { timeoutMs: 60_000, totalMs: 120_000, concurrency: 8 };
/** One after the other, so that a test can let time pass for the one that is asked. */
const IN_TURN: CheckBounds = { timeoutMs: 1_000, totalMs: 100_000, concurrency: 1 };
const ANYWHERE = new SsrfGuard({ rules: { allowPrivate: true, ownHost: null } });
const KEY = "f00dfeedf00dfeedf00dfeed";

function profileOf(
  providers: readonly Provider[],
  overrides: Parameters<typeof fakeSet>[1] = {},
): Profile {
  return {
    slug: "mine",
    owner: "acct_1",
    managed: false,
    chains: new Map([["test", fakeSet(providers, overrides)]]),
  };
}

interface Circumstances {
  readonly bounds?: CheckBounds;
  readonly guard?: SsrfGuard;
  readonly runtime?: Runtime;
}

async function check(
  profile: Profile,
  { bounds = BOUNDS, guard = ANYWHERE, runtime = realRuntime }: Circumstances = {},
): Promise<Readonly<Record<string, ProviderCheckResult>>> {
  const found = await checkProviders(
    { runtime, timerWheel: new TimerWheel(runtime), guard },
    profile,
    bounds,
  );
  for (const { result } of found)
    if (result.kind === "failed")
      assert.ok(!/127\.0\.0\.1|f00d|https?:\/\/|wss?:\/\//.test(result.said), result.said);
  return Object.fromEntries(
    found.map(({ chain, provider, result }) => [`${chain} ${provider}`, result]),
  );
}

/** A provider over HTTP with a key in its path. */
async function node(t: TestContext, index: number, script?: Script) {
  const upstream = await scriptedUpstream(script);
  t.after(() => upstream.close());
  const provider = fakeProvider(index, {
    url: `${upstream.url}/v2/${KEY}`,
    wsUrl: null,
    headers: { "x-key": KEY },
    guarded: true,
  });
  return { upstream, provider };
}

test("honest providers pass, over HTTP and WebSocket, and are asked for what they will be asked for", async (t) => {
  const a = await node(t, 0);
  const ws = await socketUpstream();
  t.after(() => ws.close());
  const both = { ...a.provider, index: 1, id: "both", wsUrl: ws.url };
  const only = fakeProvider(2, { id: "ws", url: null, wsUrl: ws.url, guarded: true });
  assert.deepEqual(await check(profileOf([a.provider, both, only])), {
    "test p0": { kind: "ok", height: 100 },
    "test both": { kind: "ok", height: 100 },
    "test ws": { kind: "ok", height: 100 },
  });
  assert.deepEqual(
    new Set(a.upstream.asked.map((it) => it.method)),
    new Set(["eth_call", "eth_getLogs"]),
  );
  assert.deepEqual(a.upstream.asked.find((it) => it.method === "eth_getLogs")?.params, [
    { fromBlock: "0x60", toBlock: "0x60" },
  ]);
  assert.equal(ws.count("eth_chainId"), 2);
  assert.ok(a.upstream.connections() <= 8);
  await until("its connections end with it", () => ws.peers().length === 0);
});

const REFUSING: readonly (readonly [name: string, script: Script, expected: RegExp])[] = [
  [
    "a key that is not accepted",
    (_, reply) => reply.body('{"error":"invalid api key"}', 401),
    /^refused http eth_chainId: HTTP 401 invalid api key/,
  ],
  [
    "a rate limit",
    (_, reply) => reply.error('{"code":-32005,"message":"rate limit exceeded"}', 429),
    /^rate_limited http eth_\w+: -32005 rate limit exceeded/,
  ],
  ["a web page", (_, reply) => reply.body("<html>hello</html>"), /^bad_answer http .*<html>hello/],
  [
    "a redirect",
    (_, reply) => reply.body("", 302, { location: "http://127.0.0.1:9/" }),
    /^bad_answer http HTTP 302/,
  ],
  ["a dying connection", (_, reply) => reply.reset(), /^unreachable http /],
  [
    "its own address",
    (_, reply) => reply.error(`{"code":-32000,"message":"bad path /v2/${KEY}"}`, 500),
    /repeats a part of the provider's address/,
  ],
  [
    "an endless text",
    (_, reply) => reply.error(`{"code":-32603,"message":"${"oops ".repeat(1000)}"}`, 500),
    /^bad_answer http eth_\w+: -32603 (oops ){30,}.*…$/,
  ],
  [
    "links and control characters",
    (_, reply) =>
      reply.error('{"code":-32603,"message":"see http://127.0.0.1:1/x\\u0000\\u202e now"}', 500),
    /see \(address\) now/,
  ],
];

for (const [name, script, expected] of REFUSING)
  test(`a provider that answers with ${name} is refused with what it said`, async (t) => {
    const { upstream, provider } = await node(t, 0, script);
    upstream.probesSay(null);
    const good = await node(t, 1);
    const { "test p0": found, "test p1": other } = await check(
      profileOf([provider, good.provider]),
    );
    assert.ok(found?.kind === "failed");
    assert.match(`${found.reason} ${found.transport} ${found.said}`, expected);
    assert.equal(other?.kind, "ok");
  });

test("a provider that never answers is refused as silent, and the next one passes", async (t) => {
  const { upstream, provider } = await node(t, 0, () => {});
  upstream.probesSay(null);
  const good = await node(t, 1);
  const runtime = simulatedWorld(1);
  const checking = check(profileOf([provider, good.provider]), { bounds: IN_TURN, runtime });
  await until("it is asked", () => upstream.asked.length === 1);
  runtime.advance(1_100);
  assert.deepEqual(await checking, {
    "test p0": {
      kind: "failed",
      transport: "http",
      reason: "no_answer",
      said: "no answer in time",
    },
    "test p1": { kind: "ok", height: 100 },
  });
});

test(
  "methods: one that a provider does not have counts against it, unless it says so itself; an " +
    "error that only a node gives is an answer",
  async (t) => {
    const without = (method: string, error: string): Script => {
      return (asked, reply) =>
        asked.method === method ? reply.error(error) : reply.result('"0x"');
    };
    const missing =
      '{"code":-32601,"message":"the method eth_getLogs does not exist/is not available"}';
    const a = await node(t, 0, without("eth_getLogs", missing));
    const b = await node(t, 1, without("eth_getLogs", missing));
    const c = await node(t, 2, without("eth_call", '{"code":3,"message":"execution reverted"}'));
    const d = await node(
      t,
      3,
      without("eth_getLogs", '{"code":-32005,"message":"query returned more than 10000 results"}'),
    );
    const found = await check(
      profileOf([
        a.provider,
        { ...b.provider, unsupportedMethods: new Set(["eth_getLogs"]) },
        c.provider,
        d.provider,
      ]),
    );
    assert.deepEqual(
      Object.values(found).map((it) => (it.kind === "ok" ? "ok" : it.reason)),
      ["method_unsupported", "ok", "ok", "ok"],
    );
  },
);

test("a wrong chain on either transport, and blocks far behind the others, are told with numbers", async (t) => {
  const [a, b, c] = [await node(t, 0), await node(t, 1), await node(t, 2)];
  const ws = await socketUpstream();
  t.after(() => ws.close());
  a.upstream.probesSay({ chainId: 137, height: 100 });
  b.upstream.probesSay({ chainId: 1, height: 80 });
  ws.says({ chainId: 56 });
  const found = await check(
    profileOf([
      a.provider,
      b.provider,
      c.provider,
      { ...c.provider, index: 3, id: "ws", wsUrl: ws.url },
    ]),
  );
  assert.deepEqual(found, {
    "test p0": {
      kind: "failed",
      transport: "http",
      reason: "wrong_chain",
      said: "chain id 137 instead of 1",
    },
    "test p1": {
      kind: "failed",
      transport: "http",
      reason: "lagging",
      said: "block 80, while the others are at 100",
    },
    "test p2": { kind: "ok", height: 100 },
    "test ws": {
      kind: "failed",
      transport: "ws",
      reason: "wrong_chain",
      said: "chain id 56 instead of 1",
    },
  });
});

test("one provider that lies about its height does not make two honest ones late", async (t) => {
  const nodes = [await node(t, 0), await node(t, 1), await node(t, 2)];
  nodes[0]?.upstream.probesSay({ chainId: 1, height: 9_000_000_000_000 });
  const found = await check(profileOf(nodes.map((it) => it.provider)));
  assert.deepEqual([found["test p1"]?.kind, found["test p2"]?.kind], ["ok", "ok"]);
  const said = "block 9000000000000, while the others are at 100";
  assert.deepEqual(found["test p0"], {
    kind: "failed",
    transport: "http",
    reason: "bad_answer",
    said,
  });
});

test("sockets: a refused handshake, one that never ends, and silence on an open one", async (t) => {
  const sockets = await Promise.all([
    socketUpstream(),
    socketUpstream(),
    socketUpstream(() => {}),
    socketUpstream(),
  ]);
  t.after(() => Promise.all(sockets.map((it) => it.close())));
  sockets[0]?.refuse({ status: 403, body: "forbidden: key disabled" });
  sockets[1]?.refuse("silence");
  const providers = sockets.map((it, index) =>
    fakeProvider(index, { url: null, wsUrl: `${it.url}/${KEY}`, guarded: true }),
  );
  const runtime = simulatedWorld(1);
  const checking = check(profileOf(providers), { bounds: IN_TURN, runtime });
  await until("the second is tried", () => sockets[1]?.handshakes() === 1);
  runtime.advance(1_100);
  await until("the third is asked", () => sockets[2]?.asked.length === 1);
  runtime.advance(1_100);
  const found = Object.values(await checking);
  assert.deepEqual(
    found.map((it) => (it.kind === "ok" ? "ok" : `${it.transport} ${it.reason}`)),
    ["ws refused", "ws no_answer", "ws no_answer", "ok"],
  );
});

test(
  "an address that is not public is refused without a connection, by what it says and by what " +
    "it resolves to",
  async (t) => {
    let connections = 0;
    const server = createServer((socket) => {
      connections++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close());
    const address = server.address();
    const port = typeof address === "object" ? address?.port : 0;
    const guard = new SsrfGuard({
      resolve: (_, done) => setImmediate(() => done(["127.0.0.1"], null)),
    });
    const hosts = ["127.0.0.1", "rebound.example.com", "[::ffff:7f00:1]"];
    const providers = hosts.flatMap((host, n) => [
      fakeProvider(2 * n, { url: `http://${host}:${port}/`, wsUrl: null, guarded: true }),
      fakeProvider(2 * n + 1, { url: null, wsUrl: `ws://${host}:${port}/`, guarded: true }),
    ]);
    for (const found of Object.values(await check(profileOf(providers), { guard })))
      assert.deepEqual(found.kind === "failed" && [found.reason, found.said], [
        "not_public",
        "its host leads to an address that is not public",
      ]);
    assert.equal(connections, 0);
  },
);

test(
  "hundreds of providers that never answer: a bounded number is asked at once, and the check " +
    "is over in time",
  async (t) => {
    const { upstream, provider } = await node(t, 0, () => {});
    upstream.probesSay(null);
    const providers = Array.from({ length: 300 }, (_, index) => ({
      ...provider,
      index,
      id: `p${index}`,
      url: `${provider.url}/${index}`,
    }));
    const found = Object.values(
      await check(profileOf(providers), {
        bounds: { timeoutMs: 200, totalMs: 600, concurrency: 4 },
      }),
    );
    assert.equal(found.length, 300);
    assert.ok(found.every((it) => it.kind === "failed" && it.reason === "no_answer"));
    assert.ok(upstream.asked.length <= 20, `${upstream.asked.length} were asked`);
  },
);

test("real nodes pass", async (t) => {
  const devnet = await startDevnet({ nodes: 2, onProgress: () => {} });
  t.after(() => devnet.close());
  const providers = devnet.providers.map(({ id, url, wsUrl }, index) =>
    fakeProvider(index, { id, url, wsUrl, guarded: true }),
  );
  const found = await check({
    ...profileOf([]),
    chains: new Map([["local", fakeSet(providers, { chain: devnet.chain })]]),
  });
  assert.deepEqual(
    Object.values(found).map((it) => it.kind),
    ["ok", "ok"],
  );
  const other = await check(profileOf(providers));
  assert.deepEqual(Object.values(other)[0], {
    kind: "failed",
    transport: "http",
    reason: "wrong_chain",
    said: "chain id 31337 instead of 1",
  });
});
