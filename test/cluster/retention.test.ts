// The sweep of rows that no process needs any more, as a service without a cluster does it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { recordChange } from "../../src/shared/changes/change-log.ts";
import { startRetention } from "../../src/shared/nodes/retention.ts";
import type { Store } from "../../src/shared/store/store.ts";
import { ALONE } from "../fakes/jobs.ts";
import { simulatedWorld } from "../fakes/runtime.ts";
import { eachStore } from "../fakes/stores.ts";
import { createAccount } from "../hosted/accounts/account-fixture.ts";

const OLD = 2_500;
const SWEEP_MS = 600_000;

eachStore(({ engine, open }) => {
  test(`a service without a cluster removes old changes and ended nodes (${engine})`, async (t) => {
    const store = await open(t);
    await writeOld(store);
    const runtime = simulatedWorld(1);
    const errors: unknown[] = [];
    const end = startRetention({
      store,
      runtime,
      claims: ALONE,
      onError: (error) => errors.push(error),
    });
    runtime.advance(SWEEP_MS);
    await end();
    assert.equal(errors.length, 0);
    assert.ok((await changesOf(store)).length > 0, "a sweep under way ends with its service");

    const endAgain = startRetention({
      store,
      runtime,
      claims: ALONE,
      onError: (error) => errors.push(error),
    });
    runtime.advance(SWEEP_MS);
    const deadline = performance.now() + 60_000;
    while ((await nodesOf(store)).length > 3 && performance.now() < deadline)
      await new Promise(setImmediate);
    await endAgain();
    assert.equal(errors.length, 0);
    assert.deepEqual(await changesOf(store), ["new"]);
    assert.deepEqual(await nodesOf(store), ["alive", "just-left", "leases"]);
  });
});

/** Rows of long ago, and beside them rows that have to stay. */
async function writeOld(store: Store): Promise<void> {
  const changes = Array.from({ length: OLD }, (_, n) => ({ topic: "key", ref: `${n}` }) as const);
  await store.transaction((tx) => recordChange(tx, ...changes));
  await sql`update change_log set at = at - 3700000`.execute(store.db);
  await store.transaction((tx) => recordChange(tx, { topic: "key", ref: "new" }));
  const rows = [
    ["alive", "alive", 0],
    ["leases", "dead", 0],
    ["just-left", "left", Date.now()],
    ...Array.from({ length: OLD }, (_, n) => [`ended-${n}`, "dead", 0] as const),
  ] as const;
  for (let from = 0; from < rows.length; from += 500) {
    await store.db
      .insertInto("node")
      .values(
        rows.slice(from, from + 500).map(([id, state, at]) => ({
          id,
          epoch: 1n,
          region: "",
          state,
          flush_seq: 0n,
          heartbeat_at: BigInt(at),
          skew_ms: 0n,
          process_id: id,
        })),
      )
      .execute();
  }
  await createAccount(store, "acc_a");
  await store.db
    .insertInto("credit_lease")
    .values({ account_id: "acc_a", node_id: "leases", epoch: 1n, granted_n: 0n, spent_n: 0n })
    .execute();
}

async function changesOf(store: Store): Promise<readonly string[]> {
  const rows = await store.db.selectFrom("change_log").select("ref").execute();
  return rows.map((row) => row.ref);
}

async function nodesOf(store: Store): Promise<readonly string[]> {
  const rows = await store.db.selectFrom("node").select("id").orderBy("id").execute();
  return rows.map((row) => row.id);
}
