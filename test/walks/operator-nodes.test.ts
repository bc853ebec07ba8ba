// What an operator does at one of two nodes, real processes over one PostgreSQL, and what follows
// at the other: cordons, reloads, and the lines that say who did what, when and where.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { type DatabaseProxy, databaseProxy } from "../fakes/database-proxy.ts";
import { newDatabase, postgresAvailability, waitLongFor } from "../fakes/postgres.ts";
import { type ServiceProcess, startProcess } from "../fakes/process.ts";
import { configText } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { type ScriptedUpstream, scriptedUpstream } from "../fakes/upstream.ts";

const postgres = postgresAvailability();
const skip = postgres.kind === "no" && postgres.reason;

const TOKEN = "operator-of-two-nodes-0123456789abcdef";
const REF = { profile: "team", chain: "ethereum", provider: "a" };

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
type Json = any;

interface Nodes {
  readonly first: ServiceProcess;
  readonly second: ServiceProcess;
  readonly a: ScriptedUpstream;
  readonly b: ScriptedUpstream;
  /** The way of the second one to the database. */
  readonly link: DatabaseProxy;
  readonly databaseUrl: string;
}

/** Two plain routers before two providers, of which `a` is asked first; the second has a link. */
async function startNodes(t: TestContext): Promise<Nodes> {
  const { url, drop } = await newDatabase();
  t.after(drop);
  const link = await databaseProxy(url);
  t.after(() => link.close());
  waitLongFor(url);
  const [a, b] = [await scriptedUpstream(), await scriptedUpstream()];
  t.after(() => Promise.all([a.close(), b.close()]));
  const providers = [
    { id: "a", url: a.url, priority: 1 },
    { id: "b", url: b.url, priority: 2 },
  ];
  const start = (node: string, place: string, workers: number): Promise<ServiceProcess> =>
    startProcess(
      t,
      configText(providers, {
        server: { port: 0, operator_token: TOKEN, workers },
        storage: { url: place },
        cluster: { enabled: true, node_id: node },
      }),
    );
  const [first, second] = await Promise.all([start("n1", url, 1), start("n2", link.url, 2)]);
  return { first, second, a, b, link, databaseUrl: url };
}

async function act(
  { url }: ServiceProcess,
  what: string,
  body?: object,
): Promise<{ readonly status: number; readonly json: Json }> {
  const [method = "GET", path = "/"] = what.split(" ");
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, json: text === "" ? null : JSON.parse(text) };
}

/** The provider that a call at a node is answered by. */
async function answeredBy(node: ServiceProcess): Promise<string> {
  const body = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] };
  const { text } = await node.post("/rpc/priority/ethereum?include_meta=body", body);
  return JSON.parse(text).svc_meta?.selected_provider?.id;
}

const callsOf = ({ asked }: ScriptedUpstream): number =>
  asked.filter(({ method }) => method === "eth_gasPrice").length;

test("a cordon at one node holds at the other, until the other one lifts it", {
  skip,
}, async (t) => {
  const { first, second, a } = await startNodes(t);
  for (const node of [first, second])
    await until("it is asked", async () => (await answeredBy(node)) === "a");
  const cordon = { ...REF, reason: "it lies" };
  assert.equal((await act(first, "POST /api/v1/operator/cordons", cordon)).status, 200);
  assert.equal(await answeredBy(first), "b", "at this node at once");
  await until("it is left out at the other", async () => (await answeredBy(second)) === "b");
  const calls = callsOf(a);
  for (let n = 0; n < 5; n++) assert.equal(await answeredBy(second), "b");
  assert.equal(callsOf(a), calls);
  const ref = "profile=team&chain=ethereum&provider=a";
  const everywhere = "/api/v1/operator/cordons/everywhere";
  assert.equal((await act(second, `DELETE /api/v1/operator/cordons?${ref}`)).status, 204);
  for (const node of [second, first])
    await until("it is asked again", async () => (await answeredBy(node)) === "a");
  assert.equal((await act(second, `POST ${everywhere}`, { provider: "a" })).status, 200);
  for (const node of [second, first])
    await until("it is left out everywhere", async () => (await answeredBy(node)) === "b");
  assert.equal((await act(first, `DELETE ${everywhere}?provider=a`)).status, 204);
  for (const node of [first, second])
    await until("it is back everywhere", async () => (await answeredBy(node)) === "a");
  const { actions } = (await act(first, "GET /api/v1/operator/actions")).json;
  assert.deepEqual(
    actions.map((line: Json) => [line.action, line.target, line.actor, line.node, line.outcome]),
    [
      ["uncordonEverywhere", "a", "operator token", "n1", "done"],
      ["cordonEverywhere", "a", "operator token", "n2", "done"],
      ["uncordonProvider", "team/ethereum/a", "operator token", "n2", "done"],
      ["cordonProvider", "team/ethereum/a", "operator token", "n1", "done"],
    ],
  );
  for (const { at, address } of actions) {
    assert.ok(Math.abs(Date.parse(at) - Date.now()) < 600_000);
    assert.equal(address, "127.0.0.1");
  }
});

test("a reload reaches every node, each with its own file and a line with its revision", {
  skip,
}, async (t) => {
  const { first, second } = await startNodes(t);
  await appendFile(first.file, "\n");
  const revisionOf = async ({ file }: ServiceProcess): Promise<string> =>
    createHash("sha256")
      .update(await readFile(file))
      .digest("hex")
      .slice(0, 12);
  const [own, other] = [await revisionOf(first), await revisionOf(second)];
  assert.notEqual(own, other);
  const lines = async (): Promise<readonly string[]> =>
    (await act(second, "GET /api/v1/operator/actions")).json.actions.map(
      (line: Json) => `${line.node} ${line.outcome} ${line.actor}: ${line.detail}`,
    );
  const { json } = await act(first, "POST /api/v1/operator/reload");
  assert.deepEqual(json, {
    reloaded: true,
    problem: null,
    revision: own,
    node: "n1",
    others_asked: true,
  });
  await until("both lines", async () => (await lines()).length === 2);
  assert.deepEqual([...(await lines())].sort(), [
    `n1 done operator token: revision ${own}`,
    `n2 done operator token: asked at n1; revision ${other}`,
  ]);
  await writeFile(second.file, "chains: [");
  await act(first, "POST /api/v1/operator/reload");
  await until("all lines", async () => (await lines()).length === 4);
  const refused = (await lines()).find((line) => line.startsWith("n2 refused"));
  const broken = await revisionOf(second);
  assert.match(refused ?? "", new RegExp(`^n2 refused .*: asked at n1; revision ${broken}: .+`));
  const failed = await act(second, "POST /api/v1/operator/reload");
  assert.deepEqual([failed.json.reloaded, failed.json.others_asked], [false, false]);
  await until("its own line", async () => (await lines()).length === 5);
});

test("a node that was cut off reloads as soon as it is back", { skip }, async (t) => {
  const { first, second, link } = await startNodes(t);
  const lines = async (): Promise<readonly string[]> =>
    (await act(first, "GET /api/v1/operator/actions")).json.actions.map(
      (line: Json) => `${line.node} ${line.outcome}: ${line.detail?.slice(0, 11)}`,
    );
  link.cut();
  const { json } = await act(first, "POST /api/v1/operator/reload");
  assert.deepEqual([json.reloaded, json.others_asked], [true, true]);
  assert.deepEqual(await lines(), [`n1 done: revision ${json.revision.slice(0, 2)}`]);
  link.mend();
  await until("the line of the other", async () => (await lines()).length === 2);
  assert.equal((await lines())[0], "n2 done: asked at n1");
  assert.equal(second.log().match(/configuration reloaded/g)?.length, 1);
});
