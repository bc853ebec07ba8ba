// What operators do with providers, at a plain router: a cordoned provider gets no calls and no
// pins, over reloads and restarts; waits end; tests and comparisons ask the real providers.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { configOf, configText, type Service, startService } from "../fakes/service.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

const TOKEN = "operator-of-a-plain-router-0123456789";
const SET = { profile: "team", chain: "ethereum" };

const act = async (service: Service, what: string, body?: object) => {
  const [method = "GET", path = "/"] = what.split(" ");
  const response = await fetch(service.url + path, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, json: text === "" ? null : JSON.parse(text) };
};
const call = async (service: Service, path = "/rpc/priority/ethereum") => {
  const body = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] };
  return service.post(`${path}?include_meta=body`, body);
};

const callsOf = ({ asked }: ScriptedUpstream): number =>
  asked.filter(({ method }) => method === "eth_gasPrice").length;

async function pair(t: TestContext): Promise<readonly [ScriptedUpstream, ScriptedUpstream]> {
  const [a, b] = [await scriptedUpstream(), await scriptedUpstream()];
  t.after(() => Promise.all([a.close(), b.close()]));
  return [a, b];
}

test("a cordoned provider gets no calls, over reloads and restarts, until it is put back", async (t) => {
  const [a, b] = await pair(t);
  const dataDir = mkdtempSync(join(tmpdir(), "svc-operator-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const extra = { server: { port: 0, operator_token: TOKEN }, data_dir: dataDir };
  const providers = [
    { id: "a", url: a.url, priority: 1 },
    { id: "b", url: b.url, priority: 2 },
  ];
  const text = configText(providers, extra);
  let service = await startService(text);
  t.after(() => service.close());
  await service.probed();
  const answeredBy = async (): Promise<unknown> =>
    (await call(service)).json.svc_meta.selected_provider.id;
  const first = await answeredBy();

  assert.equal(
    (await act(service, "POST /api/v1/operator/cordons", { ...SET, provider: "x" })).status,
    404,
  );
  const cordoned = await act(service, "POST /api/v1/operator/cordons", {
    ...SET,
    provider: "a",
    reason: "answers <b>old</b> blocks",
  });
  assert.equal(cordoned.status, 200);
  const callsBefore = callsOf(a);
  const { json } = await call(service);
  assert.notEqual(json.svc_meta.selected_provider.id, first);
  assert.deepEqual(json.svc_meta.excluded, [{ provider: "a", reason: "cordoned_by_operator" }]);
  const pinned = await call(service, "/rpc/provider/a/ethereum");
  assert.equal(pinned.json.error.data.code, "unavailable", "not even by a pin");
  const document = (await act(service, "GET /api/metrics/ethereum")).json;
  assert.equal(document.profiles[0].providers[0].cordon.reason, "answers <b>old</b> blocks");
  const anyone = await service.get("/api/metrics/ethereum");
  assert.equal(anyone.json.profiles[0].providers[0].cordon.reason, null, "for operators only");

  assert.equal(service.app.reload(configOf(text)), null);
  assert.notEqual(await answeredBy(), first, "a reload keeps it");
  await service.close();
  service = await startService(text);
  assert.notEqual(await answeredBy(), first, "a restart keeps it");
  assert.equal(callsOf(a), callsBefore);

  const ref = "profile=team&chain=ethereum&provider=a";
  assert.equal((await act(service, `DELETE /api/v1/operator/cordons?${ref}`)).status, 204);
  assert.equal(await answeredBy(), first);
  const { actions } = (await act(service, "GET /api/v1/operator/actions")).json;
  assert.deepEqual(
    actions.map((one: { action: string; outcome: string }) => `${one.action} ${one.outcome}`),
    ["uncordonProvider done", "cordonProvider done", "cordonProvider refused"],
  );
  assert.equal(actions[1].target, "team/ethereum/a");
});

test("a provider is out of every chain at once, until its end or until it is put back", async (t) => {
  const [a, b] = await pair(t);
  const providers = [
    { id: "a", url: a.url },
    { id: "b", url: b.url },
  ];
  const profiles = {
    team: { chains: { ethereum: { providers } } },
    other: { chains: { ethereum: { providers: providers.toReversed() } } },
  };
  const extra = { server: { port: 0, operator_token: TOKEN }, profiles };
  const service = await startService(configText([], extra));
  t.after(() => service.close());
  const statesOf = async (provider: string) => {
    const { json } = await act(service, "GET /api/metrics/ethereum");
    const all: Shown[] = json.profiles.flatMap((each: { providers: Shown[] }) => each.providers);
    return all
      .filter(({ id }) => id === provider)
      .map(({ state, cordon }) => [state === "maintenance", cordon?.until ?? null]);
  };
  const everywhere = "/api/v1/operator/cordons/everywhere";
  const cordon = (terms: object) =>
    act(service, `POST ${everywhere}`, { provider: "a", reason: "new disk", ...terms });
  const at = (ms: number): string => new Date(Date.now() + ms).toISOString();
  for (const ms of [-1_000, 31 * DAY_MS])
    assert.equal((await cordon({ until: at(ms) })).status, 422);
  assert.equal((await cordon({ provider: "nobody" })).status, 404);
  const until = at(DAY_MS);
  const { status, json } = await cordon({ until });
  assert.equal(status, 200);
  assert.equal(json.cordons.length, 2);
  const isOut = [true, until];
  const isIn = [false, null];
  assert.deepEqual(await statesOf("a"), [isOut, isOut]);
  assert.deepEqual(await statesOf("b"), [isIn, isIn]);
  assert.equal((await act(service, `DELETE ${everywhere}?provider=a`)).status, 204);
  assert.equal((await act(service, "GET /api/v1/operator/cordons")).json.cordons.length, 0);
  assert.deepEqual(await statesOf("a"), [isIn, isIn]);
});

interface Shown {
  readonly id: string;
  readonly state: string | null;
  readonly cordon: { readonly until: string | null } | null;
}

const DAY_MS = 86_400_000;

test("tests and comparisons ask the providers themselves, and show errors without secrets", async (t) => {
  const [a, b] = await pair(t);
  const message = "no state at http://user:hunter2@node.example/secret";
  b.script((_, reply) => reply.error(JSON.stringify({ code: -32_000, message })));
  const extra = { server: { port: 0, operator_token: TOKEN } };
  const providers = [
    { id: "a", url: a.url },
    { id: "b", url: b.url },
  ];
  const service = await startService(configText(providers, extra));
  t.after(() => service.close());
  const tested = await act(service, "POST /api/v1/operator/tests", { ...SET, provider: "a" });
  assert.equal(tested.json.results[0].ok, true);
  assert.equal(tested.json.results[0].chain_id, 1);
  const compared = await act(service, "POST /api/v1/operator/compare", {
    ...SET,
    method: "eth_getBalance",
    params: ["0x0000000000000000000000000000000000000000", "latest"],
  });
  assert.equal(compared.status, 200);
  const [left, right] = compared.json.results;
  assert.deepEqual([left.provider, left.outcome], ["a", "answer"]);
  assert.equal(typeof left.digest, "string");
  assert.equal(right.outcome, "error");
  assert.doesNotMatch(JSON.stringify(compared.json), /hunter2/);
  const wrote = await act(service, "POST /api/v1/operator/compare", {
    ...SET,
    method: "eth_sendRawTransaction",
    params: ["0x00"],
  });
  assert.equal(wrote.status, 422);
  const reloaded = await act(service, "POST /api/v1/operator/reload");
  assert.equal(reloaded.json.reloaded, false);
});
