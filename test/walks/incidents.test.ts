// Providers that go wrong under traffic, over real sockets: the list of incidents names each of
// them, its cause and since when, and who noticed; a provider that is good again has one incident,
// which is over. The time of the service runs four times as fast as that of the machine.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fasterRuntime } from "../fakes/faster-runtime.ts";
import { configText, type Service, startService } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { type Script, scriptedUpstream } from "../fakes/upstream.ts";

const STEP_MS = 10_000;
const FASTER = 4;
const SLOWER_MS = 600;
const CALLS_AT_ONCE = 16;

const good: Script = (_, reply) => reply.result('"0x1"');
/** Answers so many of ten calls so, and the others well. */
function partly(ofTen: number, bad: Script): Script {
  let n = 0;
  return (asked, reply) => (n++ % 10 < ofTen ? bad : good)(asked, reply);
}
const badGateway: Script = (_, reply) => reply.body("<html>bad gateway</html>", 502);
const tooMany: Script = (_, reply) => reply.body("", 429, { "retry-after": "1" });

interface ShownIncident {
  readonly id: string;
  readonly profile: string;
  readonly provider: string | null;
  readonly cause: string;
  readonly state: string;
  readonly words: string;
  readonly started_at: string;
  readonly ended_at: string | null;
  readonly failed: number;
  readonly failed_calls: number;
  readonly users: number;
}

async function incidentsOf(service: Service, query = ""): Promise<readonly ShownIncident[]> {
  return (await service.get(`/api/v1/incidents${query}`)).json.incidents;
}

/** Sends calls, so many at once, until told to stop. */
function traffic(service: Service, profile: string): () => Promise<void> {
  let isOver = false;
  let id = 0;
  const send = async (): Promise<void> => {
    while (!isOver) {
      const body = {
        jsonrpc: "2.0",
        id: ++id,
        method: "eth_getBalance",
        params: [`0x${id}`, "latest"],
      };
      await service.post(`/rpc/profile/${profile}/load-balanced/ethereum`, body);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const sending = Promise.all(Array.from({ length: CALLS_AT_ONCE }, send));
  return async () => {
    isOver = true;
    await sending;
  };
}

const TIMEOUT = { timeout: 180_000 };

test("each fault is an incident with its cause, which ends once", TIMEOUT, async (t) => {
  const names = ["g1", "g2", "g3", "g4", "badgw", "limited", "slow", "behind", "killed"] as const;
  const upstreams = new Map(
    await Promise.all(
      [...names, "alone"].map(async (name) => [name, await scriptedUpstream()] as const),
    ),
  );
  const at = (name: string) => upstreams.get(name) ?? assert.fail(name);
  const providerOf = (name: string) => ({ id: name, url: at(name).url });
  const runtime = fasterRuntime(FASTER);
  const monitoring = { probe_interval_ms: 5_000 };
  const set = (...ids: readonly string[]) => ({
    chains: { ethereum: { monitoring, providers: ids.map(providerOf) } },
  });
  const text = configText([], {
    profiles: { team: set(...names), solo: set("alone") },
    console: { public: true },
  });
  const service = await startService(text, runtime);
  await service.probed();
  const stops = [traffic(service, "team"), traffic(service, "solo")];
  t.after(async () => {
    await Promise.all(stops.map((stop) => stop()));
    await Promise.all([service.close(), ...Array.from(upstreams.values(), (each) => each.close())]);
  });
  const isJudged = async (): Promise<boolean> => {
    // Where the first calls were slow, that is over soon.
    runtime.skip(STEP_MS);
    const { json } = await service.get("/api/metrics/ethereum");
    return json.profiles[0].providers.every((it: { state: string }) => it.state === "good");
  };
  await until("all are judged, and good", isJudged);
  const before = await incidentsOf(service, "?open=true&profile=team");
  assert.deepEqual(
    before.filter(({ provider }) => provider !== null),
    [],
  );

  const faultMs = runtime.wallMs();
  at("badgw").script(partly(7, badGateway));
  at("limited").script(partly(5, tooMany));
  at("slow").script(
    (asked, reply) => void setTimeout(() => good(asked, reply), SLOWER_MS / FASTER),
  );
  for (const name of ["g1", "g2", "g3", "g4", "badgw", "limited", "slow"])
    at(name).probesSay({ chainId: 1, height: 140 });
  await at("killed").close();
  at("alone").script(badGateway);

  const expected: readonly (readonly [string, string, RegExp])[] = [
    ["badgw", "failing", /HTTP 502/],
    ["limited", "limited", /HTTP 429/],
    ["slow", "slow", /ms, its peers/],
    ["behind", "lagging", /40 blocks behind/],
    ["killed", "down", /probes are not answered/],
    ["alone", "failing", /HTTP 502/],
  ];
  for (const [name, state, words] of expected) {
    const found = await until(`${name} is ${state}`, async () => {
      const open = await incidentsOf(service, `?open=true&provider=${name}`);
      return open.find((each) => each.state === state && words.test(each.words));
    });
    assert.ok(
      Math.abs(Date.parse(found.started_at) - faultMs) < 60_000,
      `since when ${name} was so`,
    );
  }
  const open = await incidentsOf(service, "?open=true");
  const down = open.filter(({ state }) => state === "down").map(({ provider }) => provider);
  assert.deepEqual(down, ["killed"]);
  const noticed = await until("the users who noticed are counted", async () => {
    const [alone] = await incidentsOf(service, "?profile=solo");
    return alone !== undefined && alone.failed_calls > 0 && alone;
  });
  assert.equal(noticed.users, 1, "one address, whatever it sent");
  const { json } = await service.get("/api/metrics/ethereum");
  const shown = json.profiles[0].providers.find((it: { id: string }) => it.id === "badgw");
  assert.deepEqual([shown.state, typeof shown.state_since], ["failing", "string"]);
  assert.match(shown.cause, /HTTP 502/);
  const { text: metrics } = await service.get("/metrics");
  assert.match(
    metrics,
    /^svc_provider_state\{profile="team",chain="ethereum",provider="killed",state="down"\} 1$/m,
  );
  assert.match(metrics, /^svc_incidents_total\{cause="failing"\} [1-9]/m);
  assert.doesNotMatch(JSON.stringify(open), /127\.0\.0\.1|http:/, "no address is told");

  for (const name of ["badgw", "limited", "slow", "alone"]) at(name).script(good);
  at("behind").probesSay({ chainId: 1, height: 140 });
  const over = async (name: string): Promise<readonly ShownIncident[] | false> => {
    runtime.skip(STEP_MS);
    const all = await incidentsOf(service, `?provider=${name}`);
    return all.every((each) => each.ended_at !== null) && all;
  };
  for (const name of ["badgw", "limited", "slow", "behind", "alone"]) {
    const all = await until(`the incident of ${name} is over`, () => over(name));
    assert.equal(
      new Set(all.map(({ cause }) => cause)).size,
      all.length,
      `${name}: each ended once`,
    );
  }
  const left = await incidentsOf(service, "?open=true&profile=team");
  // Time was skipped, and blocks were not: the chain is stalled.
  assert.deepEqual(
    left.filter(({ provider }) => provider !== null).map(({ state }) => state),
    ["down"],
  );
  const page = (await service.get("/api/v1/incidents?limit=2")).json;
  const rest = (await service.get(`/api/v1/incidents?limit=200&after=${page.next}`)).json;
  const whole = await incidentsOf(service, "?limit=200");
  assert.deepEqual(
    [...page.incidents, ...rest.incidents].map(({ id }: ShownIncident) => id),
    whole.map(({ id }) => id),
  );
});
