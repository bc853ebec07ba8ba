// Real processes, real crashes: nodes that are killed, two that spend the same money, a server that
// goes away, a disk that is full.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { audit } from "../../../src/hosted/audit/audit.ts";
import { realRuntime } from "../../../src/runtime.ts";
import { openStore, type Store, type StorePlace } from "../../../src/shared/store/store.ts";
import { openCredit } from "../../fakes/credit.ts";
import {
  createDatabase,
  postgresAvailability,
  startCluster,
  waitLongFor,
} from "../../fakes/postgres.ts";
import { seededRandom } from "../../fakes/runtime.ts";
import { chanceSeed } from "../../fakes/seed.ts";
import { until } from "../../fakes/service-fixture.ts";
import { eachStore } from "../../fakes/stores.ts";
import { balanceOf, createPaid } from "../accounts/account-fixture.ts";

const CU = 5_000;
const PAID_N = 100_000_000n * BigInt(CU);
const KILLS = 5;
const ACCOUNT_IDS = ["acc_a", "acc_b", "acc_c"];

eachStore(({ engine, place, open }) => {
  test(
    "kill -9 at any moment: nothing that was acknowledged is lost, and the books agree " +
      `(${engine})`,
    async (t) => {
      const seed = chanceSeed();
      t.diagnostic(`seed ${seed}`);
      const random = seededRandom(seed);
      const at = await place(t);
      await prepare(at);
      let acknowledgedN = 0;
      for (let kills = 0; kills < KILLS; kills++) {
        const node = await spender(t, at, "node");
        await sleep(100 + random() * 400);
        if (kills === KILLS - 1 && acknowledgedN === 0)
          await until("something is acknowledged", () => node.writtenN() > 0);
        node.child.kill("SIGKILL");
        await node.ended;
        acknowledgedN += node.writtenN();
      }
      const store = await openStore(at);
      t.after(() => store.close());
      assert.deepEqual(await audit(store), []);
      await settle(store, "node");
      assert.deepEqual(await audit(store), []);
      const billedN = await billed(store);
      t.diagnostic(`acknowledged ${acknowledgedN / CU} CU, billed ${billedN / CU} CU`);
      assert.ok(
        acknowledgedN > 0 && billedN >= acknowledgedN,
        `${acknowledgedN} nano-USD were acknowledged, ${billedN} are billed`,
      );
    },
  );

  test(`two processes that spend the same accounts bill exactly what they served (${engine})`, {
    skip: engine === "sqlite" && "one process at a time",
  }, async (t) => {
    const at = await place(t);
    await prepare(at);
    const nodes = await Promise.all([spender(t, at, "a"), spender(t, at, "b")]);
    await sleep(1_500);
    await until("both have served", () => nodes.every((node) => node.writtenN() > 0));
    for (const { child } of nodes) child.kill("SIGTERM");
    for (const { ended } of nodes) await ended;
    const servedN = nodes.reduce((sum, node) => sum + node.endedWith().servedN, 0);
    for (const node of nodes) {
      assert.deepEqual(node.endedWith().failures, []);
      assert.ok(node.endedWith().servedN > 0);
    }
    const store = await openStore(at);
    t.after(() => store.close());
    assert.deepEqual(await audit(store), []);
    assert.equal(await billed(store), servedN);
    t.diagnostic(`${servedN / 3 / CU} calls by two processes in 1.5 s`);
  });

  test(`a store that cannot grow says so, and half of nothing stays in it (${engine})`, {
    skip: engine === "postgres" && "its own matter",
  }, async (t) => {
    const store = await open(t);
    await createPaid(store, "acc_a", PAID_N);
    const errors: unknown[] = [];
    const credit = await openCredit({
      store,
      runtime: realRuntime,
      node: { id: "node", region: "" },
      settings: { flushIntervalMs: 60_000, nodeTimeoutMs: 120_000, minSliceN: 100 * CU },
      onError: (error) => errors.push(error),
    });
    const wallet = credit.wallet("acc_a");
    credit.hold(wallet, 100 * CU);
    await until("something is leased", () => wallet.availableN > 0);
    const { rows } = await sql<{ readonly page_count: bigint }>`pragma page_count`.execute(
      store.db,
    );
    await sql`pragma max_page_count = ${sql.lit(Number(rows[0]?.page_count ?? 0n))}`.execute(
      store.db,
    );
    for (let call = 0; call < 400; call++) {
      if (!credit.hold(wallet, 1)) break;
      credit.settle(wallet, {
        keyId: `key_${"x".repeat(200)}_${call}`,
        method: "eth_call",
        cu: 1,
        heldN: 1,
        chargeN: 1,
        freeCu: 0,
      });
    }
    await assert.rejects(credit.flush(), /full/);
    assert.deepEqual(await audit(store), []);
    assert.equal((await store.db.selectFrom("usage_hour").selectAll().execute()).length, 0);
    await sql`pragma max_page_count = 1000000`.execute(store.db);
    await credit.flush();
    assert.equal((await store.db.selectFrom("usage_hour").selectAll().execute()).length, 400);
    await credit.close();
    assert.deepEqual(await audit(store), []);
  });
});

const postgres = postgresAvailability();
test("a database server that crashes and comes back: leased credit is spent meanwhile, and all of " +
  "it is billed", {
  skip: postgres.kind === "no" && postgres.reason,
}, async (t) => {
  const cluster = await startCluster({ durable: true });
  t.after(() => cluster.stop());
  await createDatabase(cluster.urlOf("postgres"), "svc");
  waitLongFor(cluster.urlOf("svc"));
  const store = await openStore({ url: cluster.urlOf("svc"), dataDir: "" });
  t.after(() => store.close());
  await createPaid(store, "acc_a", PAID_N);
  const errors: unknown[] = [];
  const credit = await openCredit({
    store,
    runtime: realRuntime,
    node: { id: "node", region: "" },
    settings: { flushIntervalMs: 50, nodeTimeoutMs: 600_000, minSliceN: 1_000_000 * CU },
    onError: (error) => errors.push(error),
  });
  const wallet = credit.wallet("acc_a");
  credit.hold(wallet, CU);
  await until("something is leased", () => wallet.availableN > 0);
  let servedN = 0;
  const serve = async (forMs: number): Promise<void> => {
    for (const endMs = performance.now() + forMs; performance.now() < endMs; await sleep(1)) {
      assert.equal(credit.hold(wallet, 3 * CU), true);
      credit.settle(wallet, {
        keyId: "key_a",
        method: "eth_call",
        cu: 3,
        heldN: 3 * CU,
        chargeN: 3 * CU,
        freeCu: 0,
      });
      servedN += 3 * CU;
    }
  };
  await serve(200);
  await cluster.crash();
  await serve(800);
  await until("a write fails", () => errors.length > 0);
  await cluster.restart();
  await serve(600);
  const isWritten = (): Promise<boolean> =>
    credit.flush().then(
      () => true,
      () => false,
    );
  await until("what was served meanwhile is written", isWritten);
  const failed = errors.length;
  await serve(300);
  assert.equal(errors.length, failed);
  await credit.close();
  assert.deepEqual(await audit(store), []);
  assert.equal(await billed(store), servedN);
});

interface Spender {
  readonly child: ChildProcess;
  readonly ended: Promise<void>;
  /** What the store had acknowledged by the last line it said. */
  writtenN(): number;
  endedWith(): { readonly servedN: number; readonly failures: readonly string[] };
}

async function spender(t: TestContext, at: StorePlace, nodeId: string): Promise<Spender> {
  const input = JSON.stringify({ ...at, nodeId, accountIds: ACCOUNT_IDS });
  const child = spawn(
    process.execPath,
    [new URL("./spender.ts", import.meta.url).pathname, input],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  t.after(() => void child.kill("SIGKILL"));
  const ready = Promise.withResolvers<void>();
  let writtenN = 0;
  let ending = { servedN: -1, failures: ["it did not end by itself"] };
  const lines = createInterface(child.stdout);
  lines.on("line", (line) => {
    const said = JSON.parse(line);
    if (said.kind === "ready") ready.resolve();
    else if (said.kind === "written") writtenN = said.servedN;
    else ending = said;
  });
  const ended = new Promise<void>((resolve) => lines.once("close", resolve));
  await Promise.race([
    ready.promise,
    ended.then(() => Promise.reject(new Error("the spender ended before it was ready"))),
  ]);
  return { child, ended, writtenN: () => writtenN, endedWith: () => ending };
}

async function prepare(at: StorePlace): Promise<void> {
  const store = await openStore(at);
  for (const id of ACCOUNT_IDS) await createPaid(store, id, PAID_N);
  await store.close();
}

/** Joins as a node and stops: what its earlier starts left open is closed. */
async function settle(store: Store, id: string): Promise<void> {
  const parts = { store, runtime: realRuntime, node: { id, region: "" }, onError: () => undefined };
  await (
    await openCredit({
      ...parts,
      settings: { flushIntervalMs: 50, nodeTimeoutMs: 2_000, minSliceN: 100 * CU },
    })
  ).close();
}

/** What all accounts were charged. */
async function billed(store: Store): Promise<number> {
  const ids = (await store.db.selectFrom("account").select("id").execute()).map(({ id }) => id);
  const left = await Promise.all(ids.map((id) => balanceOf(store, id)));
  return Number(PAID_N * BigInt(ids.length) - left.reduce((sum, n) => sum + n, 0n));
}
