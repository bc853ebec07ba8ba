// The hosted service as a process: what it keeps when it is ended, killed, moved to PostgreSQL, or
// left without its database for a while.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { audit } from "../../src/hosted/audit/audit.ts";
import { openStore } from "../../src/shared/store/store.ts";
import { newDatabase, postgresAvailability, startCluster } from "../fakes/postgres.ts";
import { type ServiceProcess, startProcess } from "../fakes/process.ts";
import { configText } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";

const postgres = postgresAvailability();
const ON_POSTGRES = { skip: postgres.kind === "yes" ? false : postgres.reason };

/**
 * A configuration of a hosted service over a provider that answers, and the folder it keeps its
 * data in.
 */
async function setting(
  t: TestContext,
  extra: Record<string, unknown> = {},
): Promise<{ readonly text: string; readonly dataDir: string }> {
  const provider = await scriptedUpstream();
  const dataDir = mkdtempSync(join(tmpdir(), "svc-hosted-"));
  t.after(async () => {
    await provider.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const hosted = { enabled: true, flush_interval_ms: 100, keys_per_hour: 1_000 };
  return {
    dataDir,
    text: configText(
      [{ id: "a", url: provider.url }],
      { data_dir: dataDir, log_level: "info", hosted, ...extra },
      {},
      "public",
    ),
  };
}

async function newKey({ url }: ServiceProcess): Promise<string> {
  const answer = await fetch(`${url}/api/v1/agent/keys`, { method: "POST" });
  return JSON.parse(await answer.text()).key;
}

async function balanceOf({ url }: ServiceProcess, key: string): Promise<number> {
  return JSON.parse(await (await fetch(`${url}/api/v1/agent/keys/${key}`)).text()).balance_cu;
}

const call = (service: ServiceProcess, key: string) =>
  service.post(`/rpc/k/${key}/ethereum`, { jsonrpc: "2.0", id: 1, method: "eth_gasPrice" });

test("ended by SIGTERM: everything used is billed and every lease returned, before it is gone", async (t) => {
  const { text, dataDir } = await setting(t);
  const service = await startProcess(t, text);
  const key = await newKey(service);
  for (let n = 0; n < 10; n++) assert.equal((await call(service, key)).status, 200);
  service.signal("SIGTERM");
  assert.equal(await service.ended, 0);
  const store = await openStore({ url: "", dataDir });
  const account = await store.db
    .selectFrom("account")
    .select("balance_n")
    .executeTakeFirstOrThrow();
  assert.deepEqual(
    [account.balance_n, await store.db.selectFrom("credit_lease").selectAll().execute()],
    [(5_000n - 30n) * 5_000n, []],
  );
  assert.deepEqual(await audit(store), []);
  await store.close();
});

test(
  "killed while it serves: what was told as flushed stays billed, nobody pays for more than " +
    "was served, and its keys work in the next process",
  async (t) => {
    const { text } = await setting(t);
    let service = await startProcess(t, text);
    const key = await newKey(service);
    let served = 0;
    let told = 5_000;
    for (let life = 0; life < 3; life++) {
      for (let n = 0; n < 25; n++) {
        if ((await call(service, key)).status === 200) served++;
        if (n === 20) told = await balanceOf(service, key);
      }
      service.signal("SIGKILL");
      await service.ended;
      service = await startProcess(t, text);
      const now = await balanceOf(service, key);
      assert.ok(
        now <= told && now >= 5_000 - served * 3,
        `${5_000 - served * 3} ≤ ${now} ≤ ${told}`,
      );
    }
    assert.equal((await call(service, key)).status, 200);
  },
);

test("a second process on the same folder is refused and says why; the first one goes on", async (t) => {
  const { text, dataDir } = await setting(t);
  const first = await startProcess(t, text);
  await assert.rejects(
    startProcess(t, text),
    (error: Error) => error.message.includes(dataDir) && !/\n\s+at /.test(error.message),
  );
  assert.equal((await call(first, await newKey(first))).status, 200);
});

test("in production it does not start without SVC_SECRET", async (t) => {
  const { text: development } = await setting(t);
  const text = JSON.stringify({
    ...JSON.parse(development),
    server: { port: 0, public_url: "http://127.0.0.1" },
  });
  await assert.rejects(
    startProcess(t, text, { NODE_ENV: "production", SVC_SECRET: "" }),
    /SVC_SECRET/,
  );
  const secret = "0123456789abcdef0123456789abcdef";
  const service = await startProcess(t, text, { NODE_ENV: "production", SVC_SECRET: secret });
  assert.ok(!service.log().includes(secret));
});

test(
  "svc export moves everything into PostgreSQL: the same key has the same balance there",
  ON_POSTGRES,
  async (t) => {
    const { text } = await setting(t);
    const before = await startProcess(t, text);
    const key = await newKey(before);
    for (let n = 0; n < 5; n++) await call(before, key);
    before.signal("SIGTERM");
    await before.ended;
    const { url, drop } = await newDatabase();
    t.after(drop);
    const main = new URL("../../src/main.ts", import.meta.url).pathname;
    const run = () =>
      spawnSync(process.execPath, [main, "export", "--config", before.file, "--to", url], {
        encoding: "utf8",
      });
    const done = run();
    assert.equal(done.status, 0, done.stderr);
    assert.match(done.stdout, /account 1\n[\s\S]*books agree|books agree[\s\S]*account 1\n/);
    const again = run();
    assert.equal(again.status, 1, "a database that holds accounts is not written to");
    assert.ok(!again.stderr.includes(url));
    const after = await startProcess(t, text, { DATABASE_URL: url });
    assert.equal(await balanceOf(after, key), 5_000 - 15);
    assert.equal((await call(after, key)).status, 200);
  },
);

test(
  "with its database gone for a while, calls on leased credit go on, management says " +
    "unavailable, and afterwards all of it is billed",
  ON_POSTGRES,
  async (t) => {
    const cluster = await startCluster({ durable: true });
    t.after(() => cluster.stop());
    const { text } = await setting(t);
    const service = await startProcess(t, text, { DATABASE_URL: cluster.urlOf("postgres") });
    const key = await newKey(service);
    assert.equal((await call(service, key)).status, 200);
    await until("the first bill", async () => (await balanceOf(service, key)) === 4_997);
    await cluster.crash();
    let served = 1;
    for (let n = 0; n < 20; n++) {
      const { status } = await call(service, key);
      assert.equal(status, 200);
      served++;
    }
    const refused = await fetch(`${service.url}/api/v1/agent/keys`, { method: "POST" });
    assert.deepEqual(
      [refused.status, JSON.parse(await refused.text()).error.code],
      [503, "unavailable"],
    );
    const stranger = await service.post(`/rpc/k/${key.slice(0, -1)}/ethereum`, {
      jsonrpc: "2.0",
      id: 1,
      method: "eth_gasPrice",
    });
    assert.equal(stranger.status, 401, "what is no key needs no database to be refused");
    await cluster.restart();
    await until(
      "the bill",
      async () => (await balanceOf(service, key).catch(() => 0)) === 5_000 - served * 3,
    );
    assert.equal((await call(service, key)).status, 200);
  },
);
