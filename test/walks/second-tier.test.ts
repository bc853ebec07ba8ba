// The second tier of the cache on a real server: services that share what one of them has asked
// for, and what callers notice when the server is halted, killed and started again: nothing.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Runtime, realRuntime } from "../../src/runtime.ts";
import { TIER_LIMIT_MS } from "../../src/upstream/second-tier/second-tier.ts";
import {
  REDIS_PASSWORD,
  type RedisServer,
  startRedis,
  WITHOUT_REDIS,
} from "../fakes/redis-server.ts";
import { type Answer, configText, type Service, startService } from "../fakes/service.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

const HASHES = `"hash":"0x${"a".repeat(64)}","parentHash":"0x${"b".repeat(64)}"`;
const LONG = `0x${"ab".repeat(20_000)}`;
const skip = WITHOUT_REDIS;

let redis: RedisServer;
let provider: ScriptedUpstream;
/** A provider of its own: the set of those who have both is another one. */
let other: ScriptedUpstream;

before(async () => {
  if (skip !== false) return;
  redis = await startRedis();
  [provider, other] = await Promise.all([finalProvider(), finalProvider()]);
});

after(async () => {
  if (skip !== false) return;
  await Promise.all([redis.stop(), provider.close(), other.close()]);
});

/** A provider at block 100 that reports it as final, which the depth of 64 makes block 36. */
async function finalProvider(): Promise<ScriptedUpstream> {
  const upstream = await scriptedUpstream((asked, reply) => {
    if (asked.method === "eth_chainId") return reply.result('"0x1"');
    if (asked.method === "eth_blockNumber") return reply.result('"0x64"');
    if (JSON.stringify(asked.params).startsWith('["finalized"'))
      return reply.result(`{"number":"0x64",${HASHES}}`);
    return reply.result(asked.method === "eth_getCode" ? `"${LONG}"` : '"0x7"');
  });
  upstream.probesSay(null);
  return upstream;
}

/** For tests of what is found: a busy machine may take longer over a look-up than it may take. */
const PATIENT: Runtime = {
  ...realRuntime,
  after: (ms, run) => realRuntime.after(ms === TIER_LIMIT_MS ? 30_000 : ms, run),
};

interface Setting {
  readonly runtime?: Runtime;
  readonly slug?: string;
  readonly ids?: readonly string[];
  readonly providers?: readonly ScriptedUpstream[];
}

/** A service that keeps nothing in memory for long, and knows what is final. */
async function tieredService(name: number, setting: Setting = {}): Promise<Service> {
  const { runtime = PATIENT, slug = "team", providers = [provider], ids = ["p0", "p1"] } = setting;
  const service = await startService(
    configText(
      providers.map(({ url }, index) => ({ id: ids[index] ?? assert.fail(), url })),
      { cache: { redis_url: redis.url }, coalesce: "on" },
      {},
      slug,
    ),
    runtime,
  );
  after(() => service.close());
  await until(async () => (await metric(service, "svc_cache_redis_state")) === 0);
  // It looks up what is final once it knows what is, and the first look-up makes the generation.
  let tries = 0;
  await until(async () => {
    await balance(service, name * 10_000 + tries++);
    return (await lookUps(service, "miss")) > 0;
  });
  return service;
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  for (let n = 0; n < 3_000; n++) {
    if (await isTrue()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail("it did not come about");
}

async function metric(service: Service, name: string): Promise<number> {
  const { text } = await service.get("/metrics");
  assert.ok(!text.includes(REDIS_PASSWORD));
  const line = text.split("\n").find((one) => one.startsWith(`${name} `));
  return line === undefined ? Number.NaN : Number(line.slice(name.length + 1));
}

const lookUps = (service: Service, result: string): Promise<number> =>
  metric(service, `svc_cache_redis_lookups_total{result="${result}"}`);
const writes = (service: Service): Promise<number> =>
  metric(service, 'svc_cache_redis_writes_total{result="stored"}');

/** Asks for the balance of an address that is named by a number, at a final block. */
function balance(service: Service, name: number, method = "eth_getBalance"): Promise<Answer> {
  const params = [`0x${name.toString(16).padStart(40, "0")}`, "0x10"];
  const call = { jsonrpc: "2.0", id: name, method, params };
  return service.post("/rpc/ethereum?include_meta=body", call);
}

const askedFor = (upstream: ScriptedUpstream, name: number): number =>
  upstream.asked.filter(({ params }) =>
    JSON.stringify(params).includes(`${name.toString(16).padStart(40, "0")}"`),
  ).length;

test("what one service has asked for is known to another, and to nobody with other providers", {
  skip,
}, async () => {
  const first = await tieredService(1_000);
  const stored = await writes(first);
  for (const method of ["eth_getBalance", "eth_getCode"])
    assert.equal((await balance(first, 1, method)).headers.get("x-svc-cache"), "miss");
  await until(async () => (await writes(first)) >= stored + 2);

  const second = await tieredService(1_001);
  const before = askedFor(provider, 1);
  const hit = await balance(second, 1);
  assert.deepEqual([hit.json.result, hit.json.id], ["0x7", 1]);
  const { result, class: kind, tier, age_ms } = hit.json.svc_meta.cache;
  assert.deepEqual([result, kind, tier], ["hit", "immutable", "redis"]);
  assert.ok(age_ms >= 0);
  assert.equal(hit.json.svc_meta.selected_provider.id, "p0");
  assert.equal((await balance(second, 1)).json.svc_meta.cache.tier, "memory");
  assert.equal((await balance(second, 1, "eth_getCode")).json.result, LONG);
  assert.equal(askedFor(provider, 1), before, "no provider was asked");

  // Others have their own, each in its own way.
  const strangers: readonly Setting[] = [
    { slug: "others" },
    { ids: ["renamed"] },
    { providers: [provider, other] },
  ];
  for (const [index, setting] of strangers.entries()) {
    const stranger = await tieredService(2_000 + index, setting);
    const answer = await balance(stranger, 1);
    assert.equal(answer.json.svc_meta.cache.result, "miss", JSON.stringify(setting));
    assert.equal(await lookUps(stranger, "hit"), 0);
  }
  assert.ok(!first.log().includes(REDIS_PASSWORD));
});

test("a server that is halted under load, killed and started again fails no call", {
  skip,
}, async () => {
  const service = await tieredService(3_000, { runtime: realRuntime });
  let name = 10_000;
  const load = async (calls: number): Promise<void> => {
    const answers = await Promise.all(
      Array.from({ length: calls }, () => balance(service, ++name)),
    );
    for (const { status, json } of answers) assert.deepEqual([status, json.result], [200, "0x7"]);
  };
  const state = (): Promise<number> => metric(service, "svc_cache_redis_state");
  await load(20);

  redis.signal("SIGSTOP");
  await load(60);
  assert.notEqual(await state(), 0, "its circuit is open");
  const timeouts = await lookUps(service, "timeout");
  assert.ok(timeouts >= 1);
  await load(60);
  assert.equal(await lookUps(service, "timeout"), timeouts, "nobody waits for it any more");
  redis.signal("SIGCONT");
  await until(async () => (await state()) === 0);

  const running = load(60);
  redis.signal("SIGKILL");
  await running;
  await until(async () => (await state()) !== 0);
  await load(20);
  await redis.restart();
  await until(async () => (await state()) === 0);
  const stored = await writes(service);
  await until(async () => {
    await load(5);
    return (await writes(service)) > stored;
  });
  assert.ok(!service.log().includes(REDIS_PASSWORD));
  assert.match(service.log(), /calls go on without it/);
});
