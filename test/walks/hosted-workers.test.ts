// The hosted service with several workers and the embedded store: usage is billed once and whole,
// also for workers that are killed, and every worker knows a change once it is answered.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { audit } from "../../src/hosted/audit/audit.ts";
import { deleteKey } from "../../src/hosted/keys/change.ts";
import { openStore } from "../../src/shared/store/store.ts";
import { newDatabase, postgresAvailability } from "../fakes/postgres.ts";
import { type ServiceProcess, startProcess } from "../fakes/process.ts";
import { seededRandom } from "../fakes/runtime.ts";
import { chanceSeed } from "../fakes/seed.ts";
import { configText } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";
import { childrenOf, isAlive, openCaller, type WorkerCaller } from "../fakes/worker-load.ts";

const CU = 5_000n;
/** What a standard read costs. */
const CALL_N = 3n * CU;
const GRANT_N = 5_000n * CU;
/** A rate that no test reaches. */
const FAST = { per_second: 10_000, burst: 10_000 };
const OPERATOR = "operator-operator-operator";

interface Fixture {
  readonly service: ServiceProcess;
  readonly port: number;
  readonly dataDir: string;
}

async function fixture(
  t: TestContext,
  env: Record<string, string> = {},
  hosted: Record<string, unknown> = {},
): Promise<Fixture> {
  const provider = await scriptedUpstream((_asked, reply) => reply.result('"0x1"'));
  const dataDir = mkdtempSync(join(tmpdir(), "svc-workers-"));
  t.after(async () => {
    await provider.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const text = configText(
    [{ id: "a", url: provider.url }],
    {
      server: { port: 0, workers: 2, operator_token: OPERATOR },
      data_dir: dataDir,
      log_level: "info",
      hosted: {
        enabled: true,
        flush_interval_ms: 100,
        keys_per_hour: 1_000,
        buckets: Object.fromEntries(["managed", "reduced", "public"].map((name) => [name, FAST])),
        ...hosted,
      },
    },
    {},
    "public",
  );
  const service = await startProcess(t, text, env);
  return { service, port: Number(new URL(service.url).port), dataDir };
}

async function post(url: string, token = "", body: unknown = undefined) {
  const response = await fetch(url, {
    method: "POST",
    headers: {
      ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, json: text === "" ? null : JSON.parse(text) };
}

async function grantedKey({ service }: Fixture): Promise<string> {
  return (await post(`${service.url}/api/v1/agent/keys`)).json.key;
}

/** Connections with a key, of which each worker has some. */
async function keyed(t: TestContext, { port }: Fixture, key: string, count = 8) {
  const callers = Array.from({ length: count }, () => openCaller(t, port, `/rpc/k/${key}/1`));
  for (const caller of callers) assert.ok(await caller.call(), caller.status);
  assert.equal(new Set(callers.map(({ worker }) => worker)).size, 2);
  return callers;
}

async function booksOf(dataDir: string, url = "") {
  const store = await openStore({ url, dataDir });
  try {
    const account = await store.db
      .selectFrom("account")
      .select("balance_n")
      .executeTakeFirstOrThrow();
    const leases = await store.db.selectFrom("credit_lease").selectAll().execute();
    return { balanceN: account.balance_n, leases, differences: await audit(store) };
  } finally {
    await store.close();
  }
}

/** The calls of the whole service in all hours that were kept. */
async function keptCalls(dataDir: string, url = ""): Promise<number> {
  const store = await openStore({ url, dataDir });
  try {
    const rows = await store.db
      .selectFrom("history_hour")
      .select("counts")
      .where("profile", "=", "")
      .execute();
    return rows.reduce((sum, { counts }) => sum + (JSON.parse(counts).calls ?? 0), 0);
  } finally {
    await store.close();
  }
}

async function billsWhole(t: TestContext, env: Record<string, string>): Promise<void> {
  const own = await fixture(t, env);
  const callers = await keyed(t, own, await grantedKey(own));
  for (const caller of callers) for (let n = 0; n < 9; n++) assert.ok(await caller.call());
  own.service.signal("SIGTERM");
  assert.equal(await own.service.ended, 0);
  assert.deepEqual(await booksOf(own.dataDir, env["DATABASE_URL"]), {
    balanceN: GRANT_N - 80n * CALL_N,
    leases: [],
    differences: [],
  });
  assert.equal(await keptCalls(own.dataDir, env["DATABASE_URL"]), 80, "hours are kept as well");
}

test("ended by SIGTERM: what both workers served is billed, and every lease is returned", async (t) => {
  await billsWhole(t, {});
});

const postgres = postgresAvailability();
test("the same over PostgreSQL", {
  skip: postgres.kind === "yes" ? false : postgres.reason,
}, async (t) => {
  const { url, drop } = await newDatabase();
  t.after(drop);
  await billsWhole(t, { DATABASE_URL: url });
});

test("a worker that is killed as its service ends leaves no lease behind in PostgreSQL", {
  skip: postgres.kind === "yes" ? false : postgres.reason,
}, async (t) => {
  const { url, drop } = await newDatabase();
  t.after(drop);
  const own = await fixture(t, { DATABASE_URL: url });
  await keyed(t, own, await grantedKey(own));
  const [victim] = childrenOf(own.service.pid);
  assert.ok(victim);
  process.kill(victim, "SIGKILL");
  own.service.signal("SIGTERM");
  assert.equal(await own.service.ended, 0);
  const { balanceN, leases, differences } = await booksOf(own.dataDir, url);
  assert.deepEqual([leases, differences], [[], []]);
  assert.ok(balanceN >= GRANT_N - 8n * CALL_N && balanceN < GRANT_N, `${balanceN} is left`);
});

test("workers that are killed at any moment lose no money and bill nothing twice", async (t) => {
  const seed = chanceSeed();
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const own = await fixture(t);
  const key = await grantedKey(own);
  let servedAtLeast = 0;
  let sentAtMost = 0;
  for (let kills = 0; kills < 4; kills++) {
    await until("both workers", () => childrenOf(own.service.pid).length === 2);
    const callers = Array.from({ length: 8 }, () => openCaller(t, own.port, `/rpc/k/${key}/1`));
    const loops = callers.map((caller) => callOften(caller, 25));
    await sleep(random() * 200);
    const victims = childrenOf(own.service.pid);
    const victim = victims[Math.floor(random() * victims.length)];
    assert.ok(victim);
    process.kill(victim, "SIGKILL");
    await Promise.all(loops);
    await until("its end", () => !isAlive(victim));
    servedAtLeast += callers.reduce((sum, { answered }) => sum + answered, 0);
    sentAtMost += callers.reduce((sum, { answered, failed }) => sum + answered + failed, 0);
  }
  // The last one has no successor, or one that starts, or one that serves.
  own.service.signal("SIGTERM");
  assert.equal(await own.service.ended, 0);
  const { balanceN, leases, differences } = await booksOf(own.dataDir);
  assert.deepEqual([leases, differences], [[], []]);
  const billed = Number((GRANT_N - balanceN) / CALL_N);
  t.diagnostic(`${servedAtLeast} calls answered, ${billed} billed`);
  assert.ok(billed > 0 && billed <= sentAtMost, `${billed} of at most ${sentAtMost}`);
});

async function callOften(caller: WorkerCaller, times: number): Promise<void> {
  for (let n = 0; n < times && !caller.isOver; n++) await caller.call();
}

test("credit that lies idle in one worker pays calls in the other", async (t) => {
  const own = await fixture(t, {}, { free_cu_per_month: 0, fallback_days: 0 });
  const { url } = own.service;
  const { json: made } = await post(`${url}/api/v1/keys`, "", { name: "one" });
  // Sixty compute units, less than the smallest lease.
  const credit = await post(`${url}/api/v1/operator/accounts/${made.account_id}/credit`, OPERATOR, {
    usd: "0.0003",
    reference: "sixty",
  });
  assert.equal(credit.status, 200);
  // Each of these connections is served once, whichever worker has it. Where a machine is so busy
  // that a recall takes longer than a call waits for it, the next call is served.
  const callers = Array.from({ length: 8 }, () => openCaller(t, own.port, `/rpc/k/${made.key}/1`));
  for (const caller of callers) await until("credit at every worker", () => caller.call(), 20_000);
  assert.equal(new Set(callers.map(({ worker }) => worker)).size, 2);
  own.service.signal("SIGTERM");
  assert.equal(await own.service.ended, 0);
  const { balanceN, leases, differences } = await booksOf(own.dataDir);
  assert.deepEqual(
    { balanceN, leases, differences },
    { balanceN: 60n * CU - 8n * CALL_N, leases: [], differences: [] },
  );
});

test("a revocation is heard of by all workers when the one that wrote it tells nobody", {
  skip: postgres.kind === "yes" ? false : postgres.reason,
}, async (t) => {
  const { url, drop } = await newDatabase();
  t.after(drop);
  const own = await fixture(t, { DATABASE_URL: url });
  const made = (await post(`${own.service.url}/api/v1/keys`)).json;
  const credit = `${own.service.url}/api/v1/operator/accounts/${made.account_id}/credit`;
  await post(credit, OPERATOR, { usd: "1", reference: "test" });
  const callers = await keyed(t, own, made.key);
  // What a worker leaves that is killed between its commit and its broadcast.
  const store = await openStore({ url, dataDir: own.dataDir });
  t.after(() => store.close());
  const changes = { key: async () => {}, account: async () => {} };
  const ref = { id: made.id, scope: { accountId: made.account_id, profiles: null } };
  assert.equal(await deleteKey({ store, changes, nowMs: Date.now() }, ref), "deleted");
  for (const caller of callers)
    await until("a refusal", async () => !(await caller.call()) && / 401 /.test(caller.status));
});

test("workers serve the rate limit of an account together, the burst of a fresh one included", async (t) => {
  const managed = { per_second: 20, burst: 40 };
  const own = await fixture(t, {}, { buckets: { managed, reduced: managed, public: managed } });
  const key = await grantedKey(own);
  const callers = Array.from({ length: 16 }, () => openCaller(t, own.port, `/rpc/k/${key}/1`));
  const startMs = performance.now();
  const floods = callers.map(async (caller) => {
    while (performance.now() - startMs < 3_000) {
      await caller.call();
      assert.match(caller.status, / (200|429) /);
    }
  });
  await Promise.all(floods);
  const allowed = 40 + (20 * (performance.now() - startMs)) / 1_000;
  const served = callers.reduce((sum, { answered }) => sum + answered, 0);
  t.diagnostic(`${served} of ${Math.floor(allowed)}`);
  assert.equal(new Set(callers.map(({ worker }) => worker)).size, 2);
  assert.ok(served <= allowed * 1.05, `${served}, more than ${allowed}`);
  assert.ok(served >= 40, `${served}, less than the burst`);
});

test("an address creates as many keys at all workers together as it may, however fast it asks", async (t) => {
  const own = await fixture(t, {}, { keys_per_hour: 10 });
  const made = await Promise.all(
    Array.from({ length: 60 }, () => post(`${own.service.url}/api/v1/agent/keys`)),
  );
  const statuses = made.map(({ status }) => status);
  assert.equal(statuses.filter((status) => status === 201).length, 10, `${statuses}`);
  assert.equal(statuses.filter((status) => status === 429).length, 50, `${statuses}`);
});

test("a key that is revoked at one worker is refused at all, and its sockets are closed", async (t) => {
  const own = await fixture(t);
  const { service } = own;
  const made = (await post(`${service.url}/api/v1/keys`)).json;
  const credit = `${service.url}/api/v1/operator/accounts/${made.account_id}/credit`;
  const credited = await post(credit, OPERATOR, { usd: "1", reference: "test" });
  assert.equal(credited.status, 200, JSON.stringify(credited.json));
  const callers = await keyed(t, own, made.key, 16);
  const closed: number[] = [];
  const sockets = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const socket = new WebSocket(made.ws_url);
      socket.on("close", (code) => closed.push(code));
      await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
      return socket;
    }),
  );
  t.after(() => {
    for (const socket of sockets) socket.terminate();
  });
  const deleted = await fetch(`${service.url}/api/v1/keys/${made.id}`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${made.management_token}` },
  });
  assert.equal(deleted.status, 204);
  await Promise.all(callers.map((caller) => caller.call()));
  assert.deepEqual(
    [...new Set(callers.map(({ status }) => status))],
    ["HTTP/1.1 401 Unauthorized"],
  );
  await until("the end of all sockets", () => closed.length === sockets.length);
});
