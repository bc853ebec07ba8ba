// Hedges over real sockets: a provider that takes its time has a second one asked beside it, the
// caller gets one answer, evidence and metrics tell of both, and settings switch it off.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { hostedFixture } from "../fakes/hosted-fixture.ts";
import { metaOf, type ServiceFixture, serviceFixture, walked } from "../fakes/service-fixture.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

const READ = "eth_getBalance";
const HEDGE = { max_extra: 1, floor_ms: 20, ceiling_ms: 50 };

/** Provider `a` keeps its callers waiting for ever, `b` answers. */
async function waiting(t: TestContext, extra: Record<string, unknown>): Promise<ServiceFixture> {
  const fixture = await serviceFixture(t, [() => {}, undefined], { extra });
  await fixture.service.probed();
  return fixture;
}

test("a second provider answers, the first is left, and evidence and metrics tell so", async (t) => {
  const { call, service, upstreams } = await waiting(t, { hedge: HEDGE });
  const answer = await call(READ, ["0x00", "latest"]);
  assert.equal(answer.json.result, "0x1");
  assert.equal(walked(answer), "a:overtaken b:ok");
  const meta = metaOf(answer);
  const [first, hedge] = meta.attempts;
  assert.equal(first?.hedged_after_ms, undefined);
  assert.ok((hedge?.hedged_after_ms ?? 0) >= 50, "not before the ceiling");
  assert.equal(meta["retries"], 0, "a hedge is no retry");
  assert.deepEqual(
    upstreams.map(({ asked }) => asked.length),
    [1, 1],
  );
  const { text } = await service.get("/metrics");
  assert.match(text, /^svc_hedges_total\{profile="team",chain="ethereum",result="won"\} 1$/m);
  assert.match(
    text,
    /^svc_upstream_attempts_total\{[^}]*provider="a",transport="http",outcome="cancelled"\} 1$/m,
  );
  assert.doesNotMatch(service.log(), /more than one attempt/, "a hedge is nothing to warn of");
});

test("a write is never asked of two", async (t) => {
  const { call, upstreams } = await waiting(t, {
    hedge: HEDGE,
    deadlines: { default_ms: 1_000 },
  });
  const answer = await call("eth_sendRawTransaction", ["0x02aa"]);
  assert.equal(answer.json.error.data.code, "outcome_unknown");
  assert.deepEqual(
    upstreams.map(({ asked }) => asked.length),
    [1, 0],
  );
});

test("hedges are switched off for all, or for one profile", async (t) => {
  // What is left for the second one is enough for a machine that stands still for a while.
  const deadlines = { standard_ms: 4_000 };
  const { service, call, upstreams } = await serviceFixture(t, [() => {}, undefined], {
    extra: { deadlines, hedge: "off" },
  });
  await service.probed();
  assert.equal(walked(await call(READ, ["0x00", "latest"])), "a:timeout b:ok");

  const providers = upstreams.map(({ url }, n) => ({ id: `p${n}`, url, priority: n + 1 }));
  const chains = { ethereum: { providers } };
  const both = await serviceFixture(t, [undefined], {
    extra: {
      deadlines,
      hedge: HEDGE,
      profiles: { team: { chains, hedge: "off" }, quick: { chains } },
    },
  });
  await both.service.probed();
  const attemptsAt = async (slug: string) =>
    walked(
      await both.service.post(`/rpc/profile/${slug}/priority/ethereum?include_meta=headers`, {
        jsonrpc: "2.0",
        id: 1,
        method: READ,
        params: ["0x00", "latest"],
      }),
    );
  assert.equal(await attemptsAt("team"), "p0:timeout p1:ok");
  assert.equal(await attemptsAt("quick"), "p0:overtaken p1:ok");
});

test("a hedged call is charged once", async (t) => {
  const [silent, answering] = [await scriptedUpstream(() => {}), await scriptedUpstream()];
  t.after(() => Promise.all([silent.close(), answering.close()]));
  const profile = (upstreams: readonly ScriptedUpstream[]) => ({
    chains: {
      ethereum: {
        providers: upstreams.map(({ url }, n) => ({ id: `p${n}`, url, priority: n })),
      },
    },
  });
  const profiles = { premium: profile([silent, answering]), public: profile([answering]) };
  const hosted = await hostedFixture(t, {}, { hedge: HEDGE, profiles });
  await hosted.service.probed();
  const key = await hosted.anonymousKey();
  const balance = async (): Promise<number> =>
    (await hosted.service.get(`/api/v1/agent/keys/${key}`)).json.balance_cu;
  const before = await balance();
  const answer = await hosted.call(key, READ, "priority/ethereum");
  assert.deepEqual([answer.json.result, silent.asked.length], ["0x1", 1]);
  assert.equal(answer.headers.get("x-svc-cu"), "3");
  assert.equal(await balance(), before - 3);
});
