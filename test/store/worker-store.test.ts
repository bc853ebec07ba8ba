// The embedded store of several workers: each sees the rows as the process with the file does, none
// gets into a transaction of another, and one that is silent or gone leaves nothing half done.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { sql } from "kysely";
import { openStore, type Store } from "../../src/shared/store/store.ts";
import { isStoreFailure } from "../../src/shared/store/store-failure.ts";
import { simulatedWorld } from "../fakes/runtime.ts";
import { newPlace } from "../fakes/stores.ts";
import { openWorkerFile, type WorkerFile } from "../fakes/worker-store.ts";
import { balanceOf, createAccount } from "../hosted/accounts/account-fixture.ts";

interface Fixture {
  readonly file: WorkerFile;
  readonly world: ReturnType<typeof simulatedWorld>;
  readonly one: Store;
  readonly other: Store;
}

async function fixture(t: TestContext): Promise<Fixture> {
  const { place, remove } = await newPlace("sqlite");
  const world = simulatedWorld(1);
  const file = await openWorkerFile(place.dataDir, world);
  t.after(async () => {
    await file.close();
    await remove();
  });
  const [one, other] = [await file.open("1"), await file.open("2")];
  await createAccount(one, "acc_a");
  return { file, world, one, other };
}

function raise(store: Store): Promise<void> {
  return store.transaction(async (tx) => {
    const { balance_n } = await tx
      .selectFrom("account")
      .select("balance_n")
      .executeTakeFirstOrThrow();
    await new Promise((resolve) => setImmediate(resolve));
    await tx
      .updateTable("account")
      .set({ balance_n: balance_n + 1n })
      .execute();
  });
}

test("rows, changes and errors are those of the process that has the file", async (t) => {
  const { place, remove } = await newPlace("sqlite");
  const local = await openStore(place);
  const seen = async (store: Store) => {
    const run = async (text: string) => {
      const { rows, numAffectedRows } = await sql.raw(text).execute(store.db);
      return { rows, numAffectedRows };
    };
    const failure = await run("insert into t values (1, null, null, null)").catch(
      (e: unknown) => e,
    );
    assert.ok(failure instanceof Error);
    const { code, errcode } = { code: null, errcode: null, ...failure };
    return [
      await run("select * from t order by a"),
      await run("update t set b = 'x' where a < 3"),
      await run("insert into t values (9, 'y', 1.5, x'ff') returning a, d"),
      await run("delete from t where a = 9"),
      await run("select count(*) as n, max(a) as a, sum(c) as c from t"),
      [failure.message, code, errcode],
    ];
  };
  await sql
    .raw("create table t (a integer primary key, b text not null, c real, d blob) strict")
    .execute(local.db);
  await sql
    .raw("insert into t values (1, 'ä', 0.5, x'0001'), (9007199254740993, '', null, null)")
    .execute(local.db);
  const before = await seen(local);
  await local.close();
  const file = await openWorkerFile(place.dataDir);
  t.after(async () => {
    await file.close();
    await remove();
  });
  await sql.raw("update t set b = 'ä' where a = 1").execute((await file.open("1")).db);
  assert.deepEqual(await seen(await file.open("2")), before);
});

test("transactions of two workers on one row all count, and none sees half of another", async (t) => {
  const { one, other } = await fixture(t);
  const all = Array.from({ length: 50 }, () => [raise(one), raise(other)]);
  await Promise.all(all.flat());
  assert.equal(await balanceOf(one, "acc_a"), 100n);
  const inside = Promise.withResolvers<void>();
  const failing = one.transaction(async (tx) => {
    await tx.updateTable("account").set({ balance_n: 5n }).execute();
    inside.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    throw new Error("no");
  });
  await inside.promise;
  assert.equal(await balanceOf(other, "acc_a"), 100n);
  await assert.rejects(failing, /^Error: no$/);
});

test("a worker that is silent in a transaction loses it, and holds nobody up for longer", async (t) => {
  const { world, one, other } = await fixture(t);
  const silent = Promise.withResolvers<void>();
  const inside = Promise.withResolvers<void>();
  const late = one.transaction(async (tx) => {
    await tx.updateTable("account").set({ balance_n: 5n }).execute();
    inside.resolve();
    await silent.promise;
    await tx.updateTable("account").set({ balance_n: 6n }).execute();
  });
  await inside.promise;
  const waiting = raise(other);
  world.advance(5_000);
  await waiting;
  silent.resolve();
  const failure = await late.then(
    () => null,
    (error: unknown) => error,
  );
  assert.equal(isStoreFailure(failure), true);
  assert.equal(await balanceOf(other, "acc_a"), 1n);
  await raise(one);
  assert.equal(await balanceOf(other, "acc_a"), 2n);
});

test("a commit that comes too late says so", async (t) => {
  const { file, world, other } = await fixture(t);
  const send = file.sendAs("3");
  await send({ transaction: 1, sql: "begin", parameters: [] });
  const update = "update account set balance_n = 7";
  await send({ transaction: 1, sql: update, parameters: [] });
  world.advance(5_000);
  const committed = await send({ transaction: 1, sql: "commit", parameters: [] });
  assert.equal(committed.ok, false);
  assert.equal((await send({ transaction: 1, sql: "rollback", parameters: [] })).ok, true);
  assert.equal(await balanceOf(other, "acc_a"), 0n);
});

test("a begin that its worker gave up never runs, and holds nobody up", async (t) => {
  const { file, one, other } = await fixture(t);
  const [first, second] = [file.sendAs("3"), file.sendAs("4")];
  await first({ transaction: 1, sql: "begin", parameters: [] });
  const begun = second({ transaction: 7, sql: "begin", parameters: [] });
  const balance = balanceOf(other, "acc_a");
  // Answered although the transaction of another is open.
  assert.equal((await second({ transaction: 7, sql: "rollback", parameters: [] })).ok, true);
  assert.equal((await begun).ok, false);
  assert.equal((await first({ transaction: 1, sql: "commit", parameters: [] })).ok, true);
  assert.equal(await balance, 0n);
  await raise(one);
  assert.equal(await balanceOf(one, "acc_a"), 1n);
});

test("a begin that waited longer than its worker does is not run", async (t) => {
  const { file, world, one } = await fixture(t);
  for (const [worker, transaction] of [
    ["3", 1],
    ["4", 1],
    ["5", 1],
  ] as const)
    void file.sendAs(worker)({ transaction, sql: "begin", parameters: [] });
  const last = file.sendAs("6")({ transaction: 1, sql: "begin", parameters: [] });
  world.advance(15_000);
  assert.equal((await last).ok, false);
  await raise(one);
  assert.equal(await balanceOf(one, "acc_a"), 1n);
});

test("a worker that dies in a transaction leaves nothing of it, nor what it still wanted", async (t) => {
  const { file, one, other } = await fixture(t);
  const send = file.sendAs("3");
  await send({ transaction: 1, sql: "begin", parameters: [] });
  const update = "update account set balance_n = 7";
  await send({ transaction: 1, sql: update, parameters: [] });
  const waiting = raise(other);
  void send({ transaction: 2, sql: "begin", parameters: [] });
  file.statements.forget("3");
  await waiting;
  assert.equal(await balanceOf(one, "acc_a"), 1n);
  await raise(one);
  assert.equal(await balanceOf(one, "acc_a"), 2n);
});

test("a store that was opened by another version is refused before workers see it", async (t) => {
  const { place, remove } = await newPlace("sqlite");
  t.after(remove);
  const local = await openStore(place);
  await sql
    .raw("insert into kysely_migration (name, timestamp) values ('999-later', '2030-01-01')")
    .execute(local.db);
  await local.close();
  await assert.rejects(openWorkerFile(place.dataDir), /newer version/);
});
