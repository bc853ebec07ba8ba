// Several nodes over one PostgreSQL database: who is there, what one changes and the others follow,
// and what each does while its way to the database is broken.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CLUSTER_OPERATOR,
  type ClusterNode,
  clusterFixture,
  type NodeSettings,
} from "../fakes/cluster-fixture.ts";
import { newDatabase, postgresAvailability } from "../fakes/postgres.ts";
import { until } from "../fakes/service-fixture.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";

const postgres = postgresAvailability();
const skip = postgres.kind === "no" && postgres.reason;

async function healthOf({ service }: ClusterNode) {
  const { json } = await service.get("/api/health");
  assert.equal(json.status, "healthy");
  return json.cluster;
}

test("nodes find each other, are told of in health, evidence, logs and metrics, and leave at once", {
  skip,
}, async (t) => {
  const { nodes, add } = await clusterFixture(t, 1, { cluster: { expected_nodes: 2 } });
  const [first] = nodes;
  assert.ok(first !== undefined);
  assert.deepEqual(
    { ...(await healthOf(first)), problems: [] },
    {
      enabled: true,
      nodes_connected: 1,
      nodes_responding: 1,
      nodes_total: 2,
      regions: ["eu"],
      status: "degraded",
      problems: [],
    },
  );
  const second = await add({ cluster: { region: "us" } });
  for (const node of [first, second])
    await until("both are there", async () => (await healthOf(node)).status === "healthy");
  assert.deepEqual((await healthOf(second)).regions, ["eu", "us"]);
  const plain = await second.service.post("/rpc/profile/public/ethereum", call());
  assert.equal(plain.headers.get("x-svc-node"), null);
  const { json: made } = await second.manage("", "POST", "/api/v1/agent/keys");
  const asked = await second.call(made.key, "eth_gasPrice", "ethereum?include_meta=body");
  assert.match(asked.headers.get("x-svc-node") ?? "", /^n-[0-9a-f]{6}$/);
  assert.deepEqual(asked.json.svc_meta.node, {
    id: asked.headers.get("x-svc-node"),
    region: "us",
  });
  assert.match(second.service.log(), /"node":"n2","region":"us"/);
  const metrics = await second.service.get("/metrics");
  assert.match(metrics.text, /svc_cluster_nodes\{state="responding",node="[^"]+",region="us"\} 2/);
  await second.service.drain();
  await until("the one that drained is gone", async () => {
    const { nodes_connected, nodes_responding } = await healthOf(first);
    return nodes_connected === 1 && nodes_responding === 1;
  });
});

test("an operator sees nodes side by side, what each counted for 90 days, and that one left", {
  skip,
}, async (t) => {
  const { nodes } = await clusterFixture(t, 2);
  const [first, second] = nodes;
  assert.ok(first !== undefined && second !== undefined);
  const read = async (path: string) => {
    const { status, json, text } = await first.manage(CLUSTER_OPERATOR, "GET", path);
    assert.equal(status, 200, text);
    return json;
  };
  const { json: made } = await first.manage("", "POST", "/api/v1/keys", { name: "one" });
  for (const node of [first, second, second]) assert.equal((await node.call(made.key)).status, 200);
  const listed = await until("the load of both is known", async () => {
    const body = await read("/api/v1/operator/nodes");
    const isKnown = body.nodes.every((node: { calls_per_s: unknown }) => node.calls_per_s !== null);
    return body.nodes.length === 2 && isKnown ? body : null;
  });
  assert.deepEqual(
    listed.nodes.map((node: Record<string, unknown>) => [
      node["id"],
      node["this"],
      node["region"],
      node["state"],
    ]),
    [
      ["n1", true, "eu", "live"],
      ["n2", false, "eu", "live"],
    ],
  );
  const [, other] = listed.nodes;
  assert.match(other.alias, /^n-[0-9a-f]{6}$/);
  assert.ok(other.memory_bytes > 0 && other.cpu_cores >= 0 && other.workers.length === 1);
  assert.ok(Math.abs(Date.parse(other.last_heartbeat_at) - Date.now()) < 60_000);
  assert.ok(Math.abs(other.clock_ahead_ms) < 5_000);
  assert.equal(listed.clustered, true);
  const provider = listed.providers.find(
    (each: Record<string, unknown>) => each["profile"] === "premium",
  );
  assert.deepEqual(
    provider.seen.map((each: Record<string, unknown>) => [each["node"], each["circuit"]]),
    [
      ["n1", "closed"],
      ["n2", "closed"],
    ],
  );
  await second.service.drain();
  await until("it is gone, and its calls are in the history of the other", async () => {
    const { nodes: rows } = await read("/api/v1/operator/nodes");
    return rows[1].state === "gone";
  });
  const { changes } = await until("its leaving is remembered", async () => {
    const body = await read("/api/v1/operator/changes");
    return body.changes.some(({ type }: { type: string }) => type === "node") ? body : null;
  });
  const left = changes.find(({ type }: { type: string }) => type === "node");
  assert.deepEqual([left.data.node, left.data.change], ["node n2", "left"]);
  const { series, kept } = await read("/api/v1/history?range=90d");
  const calls = series[0].calls.reduce((sum: number, each: number | null) => sum + (each ?? 0), 0);
  assert.equal(calls, 3);
  assert.equal(kept.stored, true);
  first.proxy.cut();
  const { status, json } = await first.manage(
    CLUSTER_OPERATOR,
    "GET",
    "/api/v1/history?range=90d&points=300",
  );
  assert.deepEqual([status, json.error.code], [503, "unavailable"]);
  const { problems } = await read("/api/v1/operator/nodes");
  assert.match(problems.join(), /the load of other nodes is not known/);
});

test("a key that one node revokes or changes is refused on the others, and its sockets close", {
  skip,
}, async (t) => {
  const { nodes } = await clusterFixture(t, 3);
  const [first, second, third] = nodes;
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  const { json: made } = await first.manage("", "POST", "/api/v1/keys", { name: "one" });
  for (const node of nodes) assert.equal((await node.call(made.key)).status, 200);
  const sockets = await Promise.all([second, third].map((node) => openSocket(node, made.key)));
  const { json: other } = await second.manage(made.management_token, "POST", "/api/v1/keys", {
    name: "two",
  });
  const answer = await third.manage(made.management_token, "DELETE", `/api/v1/keys/${made.id}`);
  assert.equal(answer.status, 204);
  for (const node of nodes)
    await until("it is refused", async () => {
      const { status, json } = await node.call(made.key);
      return status === 401 && json.error.data.code === "key_revoked";
    });
  await Promise.all(sockets.map(({ closed }) => closed));
  for (const node of nodes) assert.equal((await node.call(other.key)).status, 200);
});

test("credit given at one node is felt at once by a node that had told its caller that it is out", {
  skip,
}, async (t) => {
  const { nodes } = await clusterFixture(t, 2, {
    hosted: { starting_grant_cu: 0, free_cu_per_month: 0 },
  });
  const [first, second] = nodes;
  assert.ok(first !== undefined && second !== undefined);
  const { json: made } = await first.manage("", "POST", "/api/v1/keys", { name: "one" });
  assert.equal((await second.call(made.key)).json.error.data.code, "balance_exhausted");
  const credit = await first.manage(
    CLUSTER_OPERATOR,
    "POST",
    `/api/v1/operator/accounts/${made.account_id}/credit`,
    { usd: "1", reference: "invoice-1" },
  );
  assert.equal(credit.status, 200, credit.text);
  await until("it is served", async () => (await second.call(made.key)).status === 200);
});

test("a call at a node where a balance is dry is paid by what other nodes have of it idle", {
  skip,
}, async (t) => {
  const { nodes } = await clusterFixture(t, 3, {
    hosted: { free_cu_per_month: 0, fallback_days: 0 },
  });
  const [first, ...others] = nodes;
  assert.ok(first !== undefined);
  const { json: made } = await first.manage("", "POST", "/api/v1/keys", { name: "one" });
  // Sixty compute units.
  const credit = await first.manage(
    CLUSTER_OPERATOR,
    "POST",
    `/api/v1/operator/accounts/${made.account_id}/credit`,
    { usd: "0.0003", reference: "sixty" },
  );
  assert.equal(credit.status, 200, credit.text);
  let served = 0;
  for (const node of [first, ...others, first]) {
    // A call waits half a second for credit that is recalled; on a busy machine the next has it.
    await until("the node has credit", async () => {
      const { status, json, text } = await node.call(made.key);
      if (status !== 200) assert.equal(json.error.data.code, "balance_exhausted", text);
      return status === 200;
    });
    served++;
  }
  // Three compute units a call, wherever they lie.
  for (let calls = 0, refused = 0; refused < nodes.length; calls++) {
    const { status, json } = await (nodes[calls % nodes.length] ?? first).call(made.key);
    if (status === 200) served++;
    else assert.equal(json.error.data.code, "balance_exhausted");
    refused = status === 200 ? 0 : refused + 1;
  }
  t.diagnostic(`${served} calls were served`);
  await until("every node has written what it served", async () => {
    const { json: account } = await first.manage(
      made.management_token,
      "GET",
      "/api/v1/accounts/current",
    );
    return account.balance_cu === 60 - 3 * served;
  });
  const audit = await first.manage(CLUSTER_OPERATOR, "GET", "/api/v1/operator/audit");
  assert.deepEqual(audit.json.differences, [], audit.text);
  // What one node found is told by every node, with its name.
  for (const node of nodes) {
    const { json } = await node.manage(CLUSTER_OPERATOR, "GET", "/api/v1/operator/audit/last");
    assert.deepEqual(
      [json.state, json.books.run_by, json.books.node],
      ["balanced", "operator", "n1"],
    );
  }
});

test("hosted nodes spend the credits of a provider together, and one that drains gives back", {
  skip,
}, async (t) => {
  const { nodes } = await clusterFixture(t, 2, { limits: { rps: 1_000, monthly: 60 } });
  const [first, second] = nodes;
  assert.ok(first !== undefined && second !== undefined);
  const { json: made } = await first.manage("", "POST", "/api/v1/keys", { name: "one" });
  let served = 0;
  const isServed = async (node: ClusterNode): Promise<boolean> => {
    const { json } = await node.call(made.key);
    if (json.result !== undefined) served++;
    return json.result !== undefined;
  };
  for (let n = 0; n < 10; n++) for (const node of nodes) await isServed(node);
  await second.service.close();
  // Probes cost the others; a call may be refused while more is being leased.
  await until("the rest is spent", async () => !(await isServed(first)) && served >= 40);
  assert.ok(served <= 60, `${served} of 60`);
});

test("a node without its database says so; keys it knows go on, others and paid calls get 503", {
  skip,
}, async (t) => {
  const { nodes } = await clusterFixture(t, 2, {
    hosted: { node_timeout_ms: 12_000, free_cu_per_month: 1_000_000 },
  });
  const [first, second] = nodes;
  assert.ok(first !== undefined && second !== undefined);
  const { json: known } = await first.manage("", "POST", "/api/v1/keys", { name: "known" });
  const { json: unknown } = await first.manage("", "POST", "/api/v1/agent/keys");
  assert.equal((await second.call(known.key)).status, 200);
  second.proxy.cut();
  await until("it notices", () => /"the database does not answer/.test(second.service.log()));
  assert.equal((await second.call(known.key)).status, 200);
  assert.equal((await second.call(unknown.key)).status, 503);
  assert.equal((await first.call(unknown.key)).status, 200);
  const readiness = async (query: string): Promise<number> =>
    (await second.service.get(`/api/ready${query}`)).status;
  assert.deepEqual([await readiness(""), await readiness("?for=traffic")], [503, 200]);
  assert.equal((await first.service.get("/api/ready")).status, 200);
  const began = performance.now();
  const health = await healthOf(second);
  t.diagnostic(`health in ${(performance.now() - began).toFixed(1)} ms`);
  assert.equal(health.enabled, true);
  await until("everything is refused", async () => {
    const { status, json } = await second.call(known.key);
    return status === 503 && json.error.data.code === "unavailable";
  });
  await until("it tells of it", async () => {
    const { problems, nodes_responding } = await healthOf(second);
    return nodes_responding === 1 && /database has not answered/.test(problems[0] ?? "");
  });
  await until(
    "the other one has noticed",
    async () => (await healthOf(first)).status !== "healthy",
  );
  second.proxy.mend();
  await until("it serves again", async () => (await second.call(known.key)).status === 200);
  await until("it is ready", async () => (await readiness("")) === 200);
  for (const node of nodes)
    await until("all is well", async () => (await healthOf(node)).status === "healthy");
});

test("a node that serves alone is not ready while it may spend no credit", { skip }, async (t) => {
  const { nodes } = await clusterFixture(t, 1, {
    cluster: { enabled: false },
    hosted: { node_timeout_ms: 1_000, flush_interval_ms: 50 },
  });
  const [node] = nodes;
  assert.ok(node !== undefined);
  const readiness = async (query = ""): Promise<number> =>
    (await node.service.get(`/api/ready${query}`)).status;
  await until("it is ready", async () => (await readiness()) === 200);
  node.proxy.cut();
  await until("it is not", async () => (await readiness()) === 503);
  assert.equal(await readiness("?for=traffic"), 200);
  node.proxy.mend();
  await until("it is ready again", async () => (await readiness()) === 200);
});

test("what was changed while a node heard nothing, it hears when it is back", {
  skip,
}, async (t) => {
  const { nodes } = await clusterFixture(t, 2);
  const [first, second] = nodes;
  assert.ok(first !== undefined && second !== undefined);
  const { json: made } = await first.manage("", "POST", "/api/v1/keys", { name: "one" });
  assert.equal((await second.call(made.key)).status, 200);
  second.proxy.stall();
  await first.manage(made.management_token, "DELETE", `/api/v1/keys/${made.id}`);
  second.proxy.mend();
  await until("it is refused", async () => (await second.call(made.key)).status === 401);
});

test("a start beside a living node of the same id is refused, after a dead one it is not", {
  skip,
}, async (t) => {
  const { nodes, add } = await clusterFixture(t, 1, { hosted: { node_timeout_ms: 2_000 } });
  const [first] = nodes;
  assert.ok(first !== undefined);
  await assert.rejects(add({ cluster: { node_id: "n1" } }), /Another process lives as node n1/);
  assert.equal((await healthOf(first)).nodes_responding, 1);
  await first.service.close();
  await add({ cluster: { node_id: "n1" } });
});

test("an address at which changes are not heard is refused at the start", { skip }, async (t) => {
  const { add } = await clusterFixture(t, 0);
  const other = await newDatabase();
  t.after(other.drop);
  await assert.rejects(add({ cluster: { listen_url: other.url } }), /Nothing that is told/);
  await assert.rejects(
    add({ cluster: { listen_url: "postgres://postgres@127.0.0.1:1/svc" } }),
    /cannot be listened to/,
  );
});

test("clocks that are far apart are told of in the log and in health, by every node", {
  skip,
}, async (t) => {
  const { nodes, add } = await clusterFixture(t, 1);
  await add({ aheadMs: 8_000 });
  for (const { service } of nodes) {
    await until("health tells of it", async () => {
      const { json } = await service.get("/api/health");
      return json.cluster.problems.some((problem: string) => /are [789] s apart/.test(problem));
    });
    await until("so does the log", () =>
      /"clocks of nodes and the database are [789] s apart"/.test(service.log()),
    );
  }
});

test("a Custom profile is served by every node within two seconds of its answer, and so are its changes", {
  skip,
}, async (t) => {
  const { nodes } = await clusterFixture(t, 3, { hosted: { allow_private_providers: true } });
  const [first, second, third] = nodes;
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  const owner = await customAccount(first);
  for (const [at, writer] of [first, second, third].entries()) {
    const mine = await scriptedUpstream((_, reply) => reply.result(`"0x${at}"`));
    t.after(() => mine.close());
    const written = await writer.manage(owner.token, "PUT", "/api/v1/profiles/own", {
      chains: { ethereum: { providers: [{ name: "mine", url: mine.url }] } },
    });
    assert.equal(written.status, 200, written.text);
    const answeredMs = performance.now();
    let slowestMs = 0;
    for (const node of nodes) {
      await until("it is served", async () => {
        const { json } = await callOwn(node, owner.key);
        return json.result === `0x${at}`;
      });
      slowestMs = performance.now() - answeredMs;
    }
    t.diagnostic(`on all nodes after ${slowestMs.toFixed(0)} ms`);
  }
  const { status } = await third.manage(owner.token, "DELETE", "/api/v1/profiles/own");
  assert.equal(status, 204);
  for (const node of nodes)
    await until("it is gone", async () => {
      const { json } = await callOwn(node, owner.key);
      return json.result !== "0x2";
    });
});

test("the secret of three nodes is changed in two rounds, one node at a time, without an interruption", {
  skip,
}, async (t) => {
  const old = { secret: "the old secret, which has to go, of three nodes", previousSecret: null };
  const { nodes, add } = await clusterFixture(t, 3, {
    hosted: { allow_private_providers: true },
    secrets: old,
  });
  const [first] = nodes;
  assert.ok(first !== undefined);
  const owner = await customAccount(first);
  const mine = await scriptedUpstream((_, reply) => reply.result('"0xmine"'));
  t.after(() => mine.close());
  let writes = 0;
  const write = async (node: ClusterNode): Promise<void> => {
    const written = await node.manage(owner.token, "PUT", `/api/v1/profiles/own-${++writes}`, {
      chains: { ethereum: { providers: [{ name: "mine", url: mine.url }] } },
    });
    assert.equal(written.status, 200, written.text);
  };
  await write(first);
  const living = [...nodes];
  const allServe = async (): Promise<void> => {
    for (const node of living)
      for (let profile = 1; profile <= writes; profile++)
        await until("every profile is served by every node", async () => {
          const { json } = await callOwn(node, owner.key, `own-${profile}`);
          return json.result === "0xmine";
        });
  };
  const replace = async (secrets: NodeSettings["secrets"]): Promise<void> => {
    await living.shift()?.service.close();
    living.push(await add(secrets === undefined ? {} : { secrets }));
    await allServe();
  };
  const next = "the new secret, which all three are to have in the end";
  for (let node = 0; node < 3; node++) await replace({ secret: old.secret, previousSecret: next });
  for (let node = 0; node < 3; node++) {
    await replace({ secret: next, previousSecret: old.secret });
    // By a node of the first round, as long as there is one.
    if (node < 2 && living[0] !== undefined) await write(living[0]);
    await allServe();
  }
  // What the first round wrote meanwhile is sealed anew by one more start.
  await replace({ secret: next, previousSecret: old.secret });
  for (let node = 0; node < 3; node++) await replace({ secret: next, previousSecret: null });
});

/** A new account with access to Custom profiles. */
async function customAccount(
  node: ClusterNode,
): Promise<{ readonly key: string; readonly token: string }> {
  const { json: made } = await node.manage("", "POST", "/api/v1/keys", { name: "one" });
  const path = `/api/v1/operator/accounts/${made.account_id}/custom-access`;
  const given = await node.manage(CLUSTER_OPERATOR, "POST", path, { days: 1 });
  assert.equal(given.status, 200, given.text);
  return { key: made.key, token: made.management_token };
}

function callOwn({ service }: ClusterNode, key: string, slug = "own") {
  return service.post(`/rpc/profile/${slug}/ethereum?key=${key}`, call());
}

function call() {
  return { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] };
}

/** Opens a socket with a key; `closed` resolves when the service has closed it. */
async function openSocket({ service }: ClusterNode, key: string) {
  const socket = new WebSocket(`${service.url.replace("http", "ws")}/ws/rpc/k/${key}/ethereum`);
  const closed = new Promise<void>((resolve) => {
    socket.addEventListener("close", () => resolve());
  });
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener("open", () => resolve());
    socket.addEventListener("error", () =>
      reject(new Error(`the socket was refused: ${service.log().slice(-600)}`)),
    );
  });
  return { closed };
}
