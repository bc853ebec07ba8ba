// A hundred versions of one Custom profile while it is under load, over real sockets: no call
// fails, each is asked once, subscriptions go on without a gap, providers that stay keep their
// health and their connections; profiles that come and go beside it disturb nobody.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Profile, Provider } from "../../src/core/provider/profile.ts";
import { NO_BLOCK } from "../../src/core/rpc/call.ts";
import { methodOf } from "../../src/core/rpc/method.ts";
import { writeRequest } from "../../src/core/rpc/wire-request.ts";
import { readSubscription } from "../../src/core/stream/subscription.ts";
import { realRuntime } from "../../src/runtime.ts";
import { Router } from "../../src/upstream/engine/router.ts";
import { Prober } from "../../src/upstream/health/prober.ts";
import { HTTP_LIMITS, HttpUpstream } from "../../src/upstream/http/http-upstream.ts";
import { ProfileRegistry } from "../../src/upstream/registry/profile-registry.ts";
import { createSockets } from "../../src/upstream/socket/sockets.ts";
import { SsrfGuard } from "../../src/upstream/ssrf-guard.ts";
import { Subscriptions } from "../../src/upstream/stream/subscriptions.ts";
import { TimerWheel } from "../../src/upstream/timer-wheel.ts";
import { type ChainBlock, fakeChain } from "../fakes/chain.ts";
import { hostedFixture, OPERATOR_TOKEN } from "../fakes/hosted-fixture.ts";
import { fakeProvider, fakeSet, SELECTION } from "../fakes/providers.ts";
import { seededRandom } from "../fakes/runtime.ts";
import { until } from "../fakes/service-fixture.ts";
import { type SocketNode, startNode } from "../fakes/socket-fixture.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";

const NAMES = ["a", "b", "c", "d"];
const LIMITS = { maxAttempts: 3, firstAttemptShare: 0.6 };
/** Who serves in which version; `b` always does. */
const VERSIONS = ["ab", "b", "cdb", "bd", "abcd", "ba"];
const CHANGES = 100;

/** The whole wing towards providers, as the service puts it together. */
function wing(t: TestContext, chain: Profile) {
  const runtime = realRuntime;
  const timerWheel = new TimerWheel(runtime);
  const guard = new SsrfGuard({ rules: { allowPrivate: true, ownHost: null } });
  const ws = createSockets({ runtime, timerWheel, guard });
  const upstreams = { http: new HttpUpstream(runtime, HTTP_LIMITS, guard), ws };
  const registry = new ProfileRegistry([fakeSet([]).chain], [chain], runtime, SELECTION);
  const limits = (): typeof LIMITS => LIMITS;
  // Its streams use sockets alone.
  const streamRouter = new Router({
    runtime,
    timerWheel,
    upstreams: { ws },
    limits,
    hedge: () => null,
  });
  const subscriptions = new Subscriptions({
    runtime,
    timerWheel,
    router: streamRouter,
    sockets: ws,
  });
  const prober = new Prober({ runtime, timerWheel, upstreams, sockets: ws });
  const users = { health: prober, subscriptions, upstreams: Object.values(upstreams) };
  registry.applyTo({ ...users, callers: { forgetChains() {} }, kept: [] });
  t.after(async () => {
    prober.close();
    subscriptions.close();
    await Promise.all(Object.values(upstreams).map((it) => it.close()));
  });
  return {
    registry,
    subscriptions,
    ws,
    router: new Router({ runtime, timerWheel, upstreams, limits, hedge: () => null }),
  };
}

function profile(owner: string | null, slug: string, providers: readonly Provider[]): Profile {
  return {
    slug,
    owner,
    managed: false,
    chains: new Map([["test", fakeSet(providers.map((it, index) => ({ ...it, index })))]]),
  };
}

function providerOf({ id, http, ws }: SocketNode): Provider {
  return fakeProvider(0, { id, url: `${http.url}/`, wsUrl: ws.url, guarded: true });
}

test("a hundred changes of a profile under load fail no call and break no subscription", async (t) => {
  const chain = fakeChain(seededRandom(5));
  const nodes = await Promise.all(NAMES.map((name) => startNode(name, chain)));
  t.after(() => Promise.all(nodes.flatMap(({ ws, http }) => [ws.close(), http.close()])));
  for (const { http } of nodes)
    http.script(
      ({ params }, reply) => void setTimeout(() => reply.result(`"0x${String(params)}"`), 3),
    );
  const providers = nodes.map(providerOf);
  const of = (version: string, slug = "mine"): Profile =>
    profile(
      "acct_1",
      slug,
      [...version].flatMap((name) => providers[NAMES.indexOf(name)] ?? []),
    );
  const { registry, router, subscriptions } = wing(t, profile(null, "public", []));
  registry.put(of("ab"));
  const trackerNow = () => {
    const tracker = registry.served("acct_1/mine")?.trackers.get("test");
    assert.ok(tracker);
    return tracker;
  };

  const heads: ChainBlock[] = [];
  const ended: string[] = [];
  const subscription = readSubscription(["newHeads"]);
  assert.ok(subscription.kind === "newHeads");
  let started = false;
  subscriptions.open(
    {
      profile: "acct_1/mine",
      tracker: trackerNow(),
      subscription,
      strategy: "priority",
      pin: null,
      caller: null,
      deadlineMs: 10_000,
    },
    {
      started: () => (started = true),
      refused: (outcome) => void ended.push(outcome.kind),
      events: (results) =>
        void heads.push(...results.map((it): ChainBlock => JSON.parse(it.toString()))),
      ended: (reason) => void ended.push(reason),
    },
  );
  await until("the subscription", () => started);

  let running = true;
  let answered = 0;
  const failures: unknown[] = [];
  const worker = async (n: number): Promise<void> => {
    for (let i = 0; running; i++) {
      const params = [`${n}-${i}`];
      const sent = writeRequest("eth_getBalance", Buffer.from(JSON.stringify(params)));
      const call = {
        methodName: "eth_getBalance",
        method: methodOf("eth_getBalance"),
        block: NO_BLOCK,
        ...sent,
      };
      const strategy = n % 2 === 0 ? "load-balanced" : "priority";
      const request = {
        call,
        tracker: trackerNow(),
        strategy,
        pin: null,
        transport: "http",
        avoid: null,
        caller: { key: "test" },
        deadlineMs: 10_000,
        mayStream: false,
      } as const;
      await new Promise<void>((resolve) => {
        router.route(request, ({ outcome }, route) => {
          const got =
            outcome.kind === "result"
              ? outcome.body.toString("utf8", outcome.start, outcome.end)
              : outcome.kind;
          if (got !== `"0x${String(params)}"` || route.traces.length !== 1)
            failures.push(outcome.kind === "fault" ? outcome.fault.message : got);
          answered++;
          resolve();
        });
      });
    }
  };
  const workers = Array.from({ length: 12 }, (_, n) => worker(n));
  const mined: ChainBlock[] = [];
  for (let change = 0; change < CHANGES; change++) {
    registry.put(of(VERSIONS[change % VERSIONS.length] ?? "b"));
    registry.put(of("abcd", `beside-${change % 7}`));
    if (change % 3 === 0) registry.remove(`acct_1/beside-${(change + 3) % 7}`);
    if (change % 10 === 0) registry.replace(registry.chains, [profile(null, "public", [])]);
    const from = answered;
    chain.mine();
    mined.push(chain.tip());
    for (const it of nodes) it.follow();
    await until("some answers between two changes", () => answered >= from + 12);
  }
  running = false;
  await Promise.all(workers);
  await until("the last block", () => heads.length >= mined.length);

  assert.deepEqual(failures, []);
  assert.ok(answered >= CHANGES * 12);
  const asked = nodes.reduce((sum, { http }) => sum + http.asked.length, 0);
  assert.equal(asked, answered, "each call was asked once");
  assert.deepEqual([ended, heads.map((it) => it.hash)], [[], mined.map((it) => it.hash)]);
  const [, b] = nodes;
  const stayed = trackerNow().set.providers.find((it) => it.id === "b");
  assert.ok(stayed !== undefined && b !== undefined);
  assert.equal(
    trackerNow().health(stayed, "http").calls,
    b.http.asked.length,
    "who stays keeps its counts through all versions",
  );
  assert.equal(b.ws.opened(), 1, "and its socket");
  t.diagnostic(`${CHANGES} changes, ${answered} calls, 0 failed, ${mined.length} blocks told`);
});

test("a hundred PUTs of a profile, each checked live, fail no request of the key that uses it", async (t) => {
  const fixture = await hostedFixture(t, {
    allow_private_providers: true,
    free_cu_per_month: 0,
    buckets: { custom: { per_second: 1_000_000, burst: 1_000_000 } },
  });
  const upstreams = await Promise.all(
    NAMES.map(() =>
      scriptedUpstream(
        ({ params }, reply) => void setTimeout(() => reply.result(`"0x${String(params)}"`), 3),
      ),
    ),
  );
  t.after(() => Promise.all(upstreams.map((it) => it.close())));
  const owner = await fixture.account();
  const given = await fixture.manage(
    OPERATOR_TOKEN,
    "POST",
    `/api/v1/operator/accounts/${owner.accountId}/custom-access`,
    { days: 1 },
  );
  assert.equal(given.status, 200, given.text);
  const put = async (version: string): Promise<void> => {
    const providers = [...version].map((name) => ({
      name,
      url: `${upstreams[NAMES.indexOf(name)]?.url}/`,
    }));
    const { status, text } = await fixture.manage(owner.token, "PUT", "/api/v1/profiles/mine", {
      chains: { ethereum: { providers } },
    });
    assert.equal(status, 200, text);
  };
  await put("ab");
  let running = true;
  let answered = 0;
  const failures: string[] = [];
  const worker = async (n: number): Promise<void> => {
    for (let i = 0; running; i++) {
      const params = [`${n}-${i}`];
      const path = n % 2 === 0 ? "profile/mine/1" : "profile/mine/priority/ethereum";
      const { status, text, headers } = await fixture.service.post(`/rpc/k/${owner.key}/${path}`, {
        jsonrpc: "2.0",
        id: n,
        method: "eth_getBalance",
        params,
      });
      const good =
        status === 200 &&
        text === `{"jsonrpc":"2.0","id":${n},"result":"0x${String(params)}"}` &&
        headers.get("x-svc-access") === "custom";
      if (!good) failures.push(`${status} ${headers.get("x-svc-access")} ${text}`);
      answered++;
    }
  };
  const workers = Array.from({ length: 12 }, (_, n) => worker(n));
  for (let change = 0; change < CHANGES; change++) {
    const from = answered;
    await put(VERSIONS[change % VERSIONS.length] ?? "b");
    await until("some answers between two changes", () => answered >= from + 12);
  }
  running = false;
  await Promise.all(workers);
  assert.deepEqual(failures, []);
  const balances = upstreams.reduce(
    (sum, { asked }) => sum + asked.filter((it) => it.method === "eth_getBalance").length,
    0,
  );
  assert.equal(balances, answered, "each request was asked once");
  const { json } = await fixture.manage(owner.token, "GET", "/api/v1/profiles/mine");
  assert.equal(json.revision, CHANGES, "the first of them changed nothing");
  t.diagnostic(`${CHANGES} changes, ${answered} requests, 0 failed`);
});
