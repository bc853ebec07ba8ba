// Leased credit of workers whose embedded file another process has open: each transaction is one
// question, so that a worker that stands still in the middle of its work holds nobody up.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { CREDIT, serveCredit } from "../../src/app/workers/supervisor-objects.ts";
import { audit } from "../../src/hosted/audit/audit.ts";
import type { Credit } from "../../src/hosted/credit/credit.ts";
import { realRuntime } from "../../src/runtime.ts";
import { callsOver } from "../../src/shared/processes/remote-calls.ts";
import type { StatementRequest } from "../../src/shared/store/statement.ts";
import { openStore, type Store, serveFile } from "../../src/shared/store/store.ts";
import { testBus } from "../cluster/bus-fixture.ts";
import { openCredit } from "../fakes/credit.ts";
import { until } from "../fakes/service-fixture.ts";
import { newPlace } from "../fakes/stores.ts";
import { balanceOf, createPaid } from "../hosted/accounts/account-fixture.ts";

const CU = 5_000;
const PRICE = 3 * CU;
const BALANCE = 10_000n * BigInt(CU);

interface Fixture {
  readonly store: Store;
  /** Statements of transactions that the worker sent by itself. */
  readonly sent: readonly StatementRequest[];
  readonly errors: readonly unknown[];
  open(worker: string): Promise<Credit>;
}

async function fixture(t: TestContext): Promise<Fixture> {
  const { place, remove } = await newPlace("sqlite");
  const file = await serveFile(place.dataDir, realRuntime);
  t.after(async () => {
    await file.close();
    await remove();
  });
  const bus = testBus(["1", "2"]);
  serveCredit(bus.hub, file.store);
  const sent: StatementRequest[] = [];
  const errors: unknown[] = [];
  await createPaid(file.store, "acc_a", BALANCE);
  const open = async (worker: string): Promise<Credit> => {
    const store = await openStore({
      ...place,
      send(request) {
        if (request.transaction !== null) sent.push(request);
        return file.statements.run(request, worker);
      },
    });
    return openCredit({
      store,
      transactions: callsOver(bus.worker(worker).bus, CREDIT),
      runtime: realRuntime,
      node: { id: worker, region: "" },
      settings: { flushIntervalMs: 600_000, nodeTimeoutMs: 30_000_000, minSliceN: 100 * CU },
      onError: (error) => void errors.push(error),
    });
  };
  return { store: file.store, sent, errors, open };
}

const CALL = { keyId: "key_a", method: "eth_call", cu: 3, freeCu: 0 };

async function spend(credit: Credit, calls: number): Promise<void> {
  for (let n = 0; n < calls; n++)
    await until("credit", () => {
      const wallet = credit.wallet("acc_a");
      if (!credit.hold(wallet, PRICE)) return false;
      credit.settle(wallet, { ...CALL, heldN: PRICE, chargeN: PRICE });
      return true;
    });
}

function transactionsIn(sent: readonly StatementRequest[]): readonly string[] {
  return sent.map(({ sql }) => sql);
}

test("what workers lease and spend is written without a transaction of their own", async (t) => {
  const { store, sent, errors, open } = await fixture(t);
  const workers = [await open("1"), await open("2")];
  const begun = sent.length;
  const own = (): readonly string[] => transactionsIn(sent.slice(begun));
  for (const credit of workers) await spend(credit, 20);
  for (const credit of workers) await credit.flush();
  // One of them is asked for what it can spare.
  workers[0]?.recall(["acc_a"]);
  await until("what it returned", async () => {
    const row = await store.db
      .selectFrom("change_log")
      .select("topic")
      .where("topic", "=", "returned")
      .executeTakeFirst();
    return row !== undefined;
  });
  assert.deepEqual(own(), []);
  const rows = await store.db.selectFrom("credit_lease").select(["node_id", "spent_n"]).execute();
  assert.deepEqual(
    rows.map(({ spent_n }) => spent_n),
    [20n * BigInt(PRICE), 20n * BigInt(PRICE)],
  );
  for (const credit of workers) await credit.close();
  assert.deepEqual(own(), []);
  assert.equal(await balanceOf(store, "acc_a"), BALANCE - 40n * BigInt(PRICE));
  assert.deepEqual([await audit(store), errors], [[], []]);
});

test("a transaction that fails says why, as if it ran where it was asked for", async (t) => {
  const { store, errors, open } = await fixture(t);
  const credit = await open("1");
  await spend(credit, 1);
  await store.db.schema.alterTable("node").renameTo("node_away").execute();
  await assert.rejects(credit.flush(), /no such table: node/);
  await store.db.schema.alterTable("node_away").renameTo("node").execute();
  await credit.close();
  assert.equal(await balanceOf(store, "acc_a"), BALANCE - BigInt(PRICE));
  assert.deepEqual(errors, []);
});
