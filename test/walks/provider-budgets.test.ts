// Limits of providers over real sockets: the next provider is asked, evidence and metrics tell why,
// and what was spent of a day outlives the process, also one that is killed.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { startProcess } from "../fakes/process.ts";
import { configText } from "../fakes/service.ts";
import { metaOf, serviceFixture, until, walked } from "../fakes/service-fixture.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

const OPERATOR = "operator-operator-operator";
const CALL = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] };

/** What a provider was sent: calls and probes. */
const arrivals = ({ asked, probes }: ScriptedUpstream): number => asked.length + probes();

function dataDirectory(t: TestContext): string {
  const dataDir = mkdtempSync(join(tmpdir(), "svc-budgets-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  return dataDir;
}

async function limitsOf(url: string, provider: string) {
  const response = await fetch(`${url}/api/metrics/1`, {
    headers: { authorization: `Bearer ${OPERATOR}` },
  });
  const { profiles } = JSON.parse(await response.text());
  return profiles[0].providers.find(({ id }: { id: string }) => id === provider).limits;
}

test("a provider at its limit is passed over, and evidence says which limit", async (t) => {
  const { service, upstreams, call } = await serviceFixture(t, [undefined, undefined], {
    providers: [{ limits: { rps: 6 } }, {}],
  });
  await service.probed();
  const startedAtMs = performance.now();
  const answers = await Promise.all(Array.from({ length: 60 }, () => call("eth_gasPrice")));
  assert.ok(answers.every(({ json }) => json.result === "0x1"));
  const seconds = Math.ceil((performance.now() - startedAtMs) / 1_000);
  const [limited = assert.fail()] = upstreams;
  assert.ok(limited.asked.length <= 6 * (seconds + 1), `${limited.asked.length} in ${seconds} s`);
  const passed = answers.find((answer) => walked(answer) === "b:ok") ?? assert.fail();
  assert.deepEqual(metaOf(passed)["excluded"], [{ provider: "a", reason: "rps_limit" }]);
});

test("a backup is asked only where nobody else can be", async (t) => {
  const { service, upstreams, call } = await serviceFixture(t, [undefined, undefined], {
    providers: [{ backup: true }, { priority: 9 }],
  });
  await service.probed();
  assert.equal(walked(await call("eth_gasPrice")), "b:ok");
  upstreams[1]?.script((_, reply) => reply.body("", 503));
  assert.equal(walked(await call("eth_gasPrice")), "b:server a:ok");
});

test("what was spent of a day outlives the process, and one that is killed loses nothing", async (t) => {
  const dataDir = dataDirectory(t);
  const [vendor, own] = await Promise.all([scriptedUpstream(), scriptedUpstream()]);
  t.after(() => Promise.all([vendor.close(), own.close()]));
  const limits = { daily: 40, monthly: 400, credits: { eth_gasPrice: 3 } };
  const text = configText(
    [
      { id: "vendor", url: vendor.url, priority: 1, limits },
      { id: "own", url: own.url, priority: 2 },
    ],
    { server: { port: 0, operator_token: OPERATOR }, data_dir: dataDir },
  );
  const first = await startProcess(t, text);
  await until("the vendor is probed", () => vendor.probes() >= 2);
  for (let n = 0; n < 3; n++) await first.post("/rpc/priority/ethereum", CALL);
  const arrived = (): number => vendor.probes() + 3 * vendor.asked.length;
  // A probe that is taken back before it was sent counts as well.
  const counted = async (url: string) => {
    const { daily, monthly } = await limitsOf(url, "vendor");
    assert.ok(daily.spent >= arrived(), `${daily.spent} counted, ${arrived()} arrived`);
    assert.deepEqual([daily.left, monthly.spent], [40 - daily.spent, daily.spent]);
    return daily.spent;
  };
  const before = await counted(first.url);
  assert.ok(before <= arrived() + 9, "little more is counted than was sent");
  first.signal("SIGTERM");
  assert.equal(await first.ended, 0);
  const second = await startProcess(t, text);
  await second.post("/rpc/priority/ethereum", CALL);
  const after = await counted(second.url);
  assert.ok(after >= before + 3, "it goes on from there");
  second.signal("SIGKILL");
  await second.ended;
  const third = await startProcess(t, text);
  assert.ok((await limitsOf(third.url, "vendor")).daily.spent >= after, "nothing is forgotten");
  for (let n = 0; n < 30; n++) {
    const answer = await third.post("/rpc/priority/ethereum?include_meta=headers", CALL);
    assert.equal(answer.status, 200);
  }
  assert.ok(arrived() <= 40, "the day's credits at most");
  assert.ok(own.asked.length >= 20, "the rest went to the other provider");
});

test("a burst waits for credits that are on their way, as long as there are some", async (t) => {
  const dataDir = dataDirectory(t);
  const vendor = await scriptedUpstream();
  t.after(() => vendor.close());
  const text = configText([{ id: "vendor", url: vendor.url, limits: { monthly: 700 } }], {
    server: { port: 0, operator_token: OPERATOR },
    data_dir: dataDir,
  });
  const service = await startProcess(t, text);
  await until("the vendor is probed", () => vendor.probes() >= 1);
  const burst = (calls: number) =>
    Promise.all(Array.from({ length: calls }, () => service.post("/rpc/ethereum", CALL)));
  const isRefused = ({ text: body }: { readonly text: string }): boolean => /"error"/.test(body);
  const answers = await burst(200);
  const { left } = (await limitsOf(service.url, "vendor")).monthly;
  assert.deepEqual(answers.filter(isRefused), [], `${left} left`);
  const { length: refused } = (await burst(250)).concat(await burst(250)).filter(isRefused);
  assert.ok(refused > 0, "the month is spent");
  assert.ok(arrivals(vendor) <= 700 && arrivals(vendor) >= 680, `${arrivals(vendor)} of 700`);
});

test("two workers spend one budget", async (t) => {
  const dataDir = dataDirectory(t);
  const [vendor, own] = await Promise.all([scriptedUpstream(), scriptedUpstream()]);
  t.after(() => Promise.all([vendor.close(), own.close()]));
  const text = configText(
    [
      { id: "vendor", url: vendor.url, priority: 1, limits: { daily: 60 } },
      { id: "own", url: own.url, priority: 2 },
    ],
    { server: { port: 0, workers: 2, operator_token: OPERATOR }, data_dir: dataDir },
  );
  const service = await startProcess(t, text);
  // Until the day is spent but for what a worker may hold back: each holds one lease at most.
  await until("most of it is spent", async () => {
    const calls = Array.from({ length: 20 }, () => service.post("/rpc/priority/ethereum", CALL));
    for (const { status } of await Promise.all(calls)) assert.equal(status, 200);
    assert.ok(arrivals(vendor) <= 60, `${arrivals(vendor)} of 60`);
    return arrivals(vendor) >= 60 - 16;
  });
  service.signal("SIGTERM");
  assert.equal(await service.ended, 0);
  assert.ok(arrivals(vendor) <= 60);
});
