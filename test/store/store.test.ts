// The store on both engines: the same rows from both, transactions that nobody gets into, tables
// that are brought up to date, and refusals that say why.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import { sql } from "kysely";
import { openStore, type Store, urgently } from "../../src/shared/store/store.ts";
import { newDatabase, postgresAvailability } from "../fakes/postgres.ts";
import { eachStore, newPlace } from "../fakes/stores.ts";
import { balanceOf, createAccount } from "../hosted/accounts/account-fixture.ts";

eachStore(({ engine, open, place }) => {
  test(`every integer is a bigint, also beyond 2^53, sums and counts too (${engine})`, async (t) => {
    const store = await open(t);
    await createAccount(store, "acc_a", { balance_n: 9_007_199_254_740_993n });
    await createAccount(store, "acc_b", { balance_n: 1n });
    const row = await store.db
      .selectFrom("account")
      .select(["id", "balance_n", "first_paid_at"])
      .orderBy("id")
      .executeTakeFirst();
    assert.deepEqual(row, { id: "acc_a", balance_n: 9_007_199_254_740_993n, first_paid_at: null });
    const { rows } =
      await sql`select sum(balance_n) as sum, count(*) as count, 1 as one from account`.execute(
        store.db,
      );
    assert.deepEqual(rows, [{ sum: 9_007_199_254_740_994n, count: 2n, one: 1n }]);
  });

  test(
    "nobody gets into a transaction of someone else, and one that fails leaves nothing " +
      `(${engine})`,
    async (t) => {
      const store = await open(t);
      await createAccount(store, "acc_a");
      const inside = Promise.withResolvers<void>();
      const failing = store.transaction(async (tx) => {
        await tx.updateTable("account").set({ balance_n: 5n }).execute();
        inside.resolve();
        await new Promise((resolve) => setTimeout(resolve, 30));
        throw new Error("no");
      });
      const rejected = assert.rejects(failing, /^Error: no$/);
      await inside.promise;
      assert.equal(await balanceOf(store, "acc_a"), 0n);
      await rejected;
      assert.equal(await balanceOf(store, "acc_a"), 0n);
    },
  );

  test(`a hundred transactions at once that read and write the same row all count (${engine})`, async (t) => {
    const store = await open(t);
    await createAccount(store, "acc_a");
    await Promise.all(Array.from({ length: 100 }, () => raise(store)));
    assert.equal(await balanceOf(store, "acc_a"), 100n);
  });

  test(`bounds and references are kept by the store itself (${engine})`, async (t) => {
    const store = await open(t);
    await createAccount(store, "acc_a");
    await store.db
      .insertInto("node")
      .values({ id: "n", epoch: 1n, region: "", state: "alive", flush_seq: 0n, heartbeat_at: 0n })
      .execute();
    const lease = { account_id: "acc_a", node_id: "n", epoch: 1n, granted_n: 5n, spent_n: 6n };
    const agent = {
      account_id: "acc_a",
      name: "",
      token_hash: "h",
      profiles: null,
      read_only: 0n,
      expires_at: null,
      revoked_at: null,
      created_at: 1n,
    };
    await store.db
      .insertInto("agent")
      .values({ id: "agt_a", ...agent })
      .execute();
    await assert.rejects(createAccount(store, "acc_b", { balance_n: -1n }), /check/i);
    await assert.rejects(store.db.insertInto("credit_lease").values(lease).execute(), /check/i);
    await assert.rejects(
      store.db
        .insertInto("credit_lease")
        .values({ ...lease, spent_n: -1n })
        .execute(),
      /check/i,
    );
    await assert.rejects(
      store.db
        .insertInto("agent")
        .values({ id: "agt_b", ...agent })
        .execute(),
      /unique/i,
    );
    await assert.rejects(
      store.db
        .insertInto("agent")
        .values({ id: "agt_c", ...agent, token_hash: "i", account_id: "acc_none" })
        .execute(),
      /foreign key/i,
    );
  });

  test(`rows are there when the store is opened again, and opening again changes nothing (${engine})`, async (t) => {
    const at = await place(t);
    const first = await openStore(at);
    await createAccount(first, "acc_a", { balance_n: 3n });
    await first.close();
    const second = await openStore(at);
    assert.equal(await balanceOf(second, "acc_a"), 3n);
    await second.close();
  });

  test(`a store of a newer version is refused with what to do (${engine})`, async (t) => {
    const at = await place(t);
    const store = await openStore(at);
    await sql`insert into kysely_migration (name, timestamp) values ('999_later', '2030-01-01T00:00:00.000Z')`.execute(
      store.db,
    );
    await store.close();
    await assert.rejects(openStore(at), /newer version of svc \(it has step 999_later\)/);
    await assert.rejects(openStore(at), /newer version/, "the first refusal let go of the store");
  });
});

eachStore(({ engine, place }) => {
  if (engine !== "postgres") return;
  test("processes that bring the tables of one server up to date at the same time all succeed", async (t) => {
    const at = await place(t);
    const stores = await Promise.all(Array.from({ length: 6 }, () => openStore(at)));
    for (const store of stores) await store.close();
  });

  test(
    "a connection that breaks inside a transaction, between two statements, fails that " +
      "transaction and nothing else",
    async (t) => {
      const store = await openStore(await place(t));
      t.after(() => store.close());
      const failing = store.transaction(async (tx) => {
        const { rows } = await sql<{
          readonly pid: bigint;
        }>`select pg_backend_pid() as pid`.execute(tx);
        await sql`select pg_terminate_backend(${sql.lit(Number(rows[0]?.pid))})`.execute(store.db);
        await new Promise((resolve) => setTimeout(resolve, 50));
        await createAccount(store, "acc_a");
        await tx.selectFrom("account").selectAll().execute();
      });
      await assert.rejects(failing);
      assert.equal(await balanceOf(store, "acc_a"), 0n);
      await Promise.all(Array.from({ length: 20 }, () => raise(store)));
      assert.equal(await balanceOf(store, "acc_a"), 20n);
    },
  );

  test("a deadlock between transactions is tried again and ends well", async (t) => {
    const store = await openStore(await place(t));
    t.after(() => store.close());
    for (const id of ["acc_a", "acc_b"]) await createAccount(store, id);
    const both = [0, 0];
    const entered = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const cross = (first: string, second: string, index: number) =>
      store.transaction(async (tx) => {
        both[index] = (both[index] ?? 0) + 1;
        await tx
          .updateTable("account")
          .set({ balance_n: sql<bigint>`balance_n + 1` })
          .where("id", "=", first)
          .execute();
        entered[index]?.resolve();
        // Each holds its first account before either asks for the second; the one tried again
        // finds the other gone.
        await entered[1 - index]?.promise;
        await tx
          .updateTable("account")
          .set({ balance_n: sql<bigint>`balance_n + 1` })
          .where("id", "=", second)
          .execute();
      });
    await Promise.all([cross("acc_a", "acc_b", 0), cross("acc_b", "acc_a", 1)]);
    assert.deepEqual([await balanceOf(store, "acc_a"), await balanceOf(store, "acc_b")], [2n, 2n]);
    const tries = both.reduce((sum, it) => sum + it, 0);
    assert.ok(tries >= 3 && tries <= 4, "one is given up, or each finds the other in its way");
  });
});

test(
  "a data directory has one owner at a time, in this process and in others, and is free when " +
    "its owner was killed",
  async (t) => {
    const { place, remove } = await newPlace("sqlite");
    t.after(remove);
    const store = await openStore(place);
    await assert.rejects(
      openStore(place),
      (error: Error) => error.message.includes(place.dataDir) && /Another svc/.test(error.message),
    );
    // It holds on to its store: one that nobody can reach any more is collected, and its lock goes
    // with it.
    const text =
      `import("${new URL("../../src/shared/store/store.ts", import.meta.url)}").then(({ openStore }) => ` +
      `openStore(${JSON.stringify(place)})).then((store) => { console.log("open"); setInterval(() ` +
      "=> store, 1e6); }, (error) => { console.log(error.message); })";
    const spawnOpener = () =>
      spawn(process.execPath, ["-e", text], { stdio: ["ignore", "pipe", "inherit"] });
    const refused = spawnOpener();
    t.after(() => void refused.kill("SIGKILL"));
    assert.match(String(await once(refused.stdout, "data")), /Another svc uses the data directory/);
    await store.close();
    const owner = spawnOpener();
    t.after(() => void owner.kill("SIGKILL"));
    assert.match(String(await once(owner.stdout, "data")), /^open/);
    await assert.rejects(openStore(place), /Another svc/);
    owner.kill("SIGKILL");
    await once(owner, "exit");
    await (await openStore(place)).close();
  },
);

test("what lies in the data directory is for its owner alone", async (t) => {
  const { place, remove } = await newPlace("sqlite");
  t.after(remove);
  const dataDir = join(place.dataDir, "deep", "data");
  const store = await openStore({ url: "", dataDir });
  await createAccount(store, "acc_a");
  assert.equal(statSync(dataDir).mode & 0o777, 0o700);
  for (const name of ["svc.db", "svc.db-wal", "svc.lock"])
    assert.equal(statSync(join(dataDir, name)).mode & 0o777, 0o600, name);
  await store.close();
});

test("a file that is no store, and a server that is not there, are refused with what to do", async (t) => {
  const { place, remove } = await newPlace("sqlite");
  t.after(remove);
  writeFileSync(
    join(place.dataDir, "svc.db"),
    "this is no database, whatever its name says".repeat(100),
  );
  await assert.rejects(
    openStore(place),
    /svc\.db cannot be opened: file is not a database\. Go back to a backup/,
  );
  rmSync(join(place.dataDir, "svc.db"));
  await (await openStore(place)).close();
  await assert.rejects(
    openStore({ url: "postgres://svc@localhost:1/svc", dataDir: "" }),
    /cannot be opened: .*ECONNREFUSED.*Check that the server runs/,
  );
});

test("no failure of a database address shows its password", async () => {
  const password = "hunter2";
  const urls = [
    `postgres://svc:${password}@127.0.0.1:1/svc`,
    `postgres://svc:${password}@no-such-host.invalid/svc`,
    `postgres://svc:${password}#x@127.0.0.1:1/svc`,
    `postgres://svc:${password}/x@127.0.0.1:1/svc`,
    `postgres://svc:${password}?x@127.0.0.1:1/svc`,
    `postgres://svc:9${password}@/tmp:1/svc`,
    `mysql://svc:${password}@127.0.0.1/svc`,
    `svc:${password}@127.0.0.1`,
    password,
  ];
  for (const url of urls) {
    const error = await openStore({ url, dataDir: "" }).then(
      () => assert.fail("it opened"),
      (reason: unknown) => reason,
    );
    assert.ok(
      !inspect(error, { depth: 10, showHidden: true }).includes(password),
      `${url}: ${inspect(error)}`,
    );
  }
});

/** Reads a balance and writes one more: loses updates where transactions do not keep apart. */
function raise(store: Store): Promise<void> {
  return store.transaction(async (tx) => {
    const query = tx.selectFrom("account").select("balance_n").where("id", "=", "acc_a");
    const { balance_n } = await (store.engine === "postgres"
      ? query.forUpdate()
      : query
    ).executeTakeFirstOrThrow();
    await tx
      .updateTable("account")
      .set({ balance_n: balance_n + 1n })
      .where("id", "=", "acc_a")
      .execute();
  });
}

test("statements that must not wait have connections of their own, and end in their time", {
  skip: postgresAvailability().kind === "no" && "no PostgreSQL",
}, async (t) => {
  const { url, drop } = await newDatabase();
  const store = await openStore({ url, dataDir: "", urgentMs: 3_000 });
  t.after(async () => {
    await store.close();
    await drop();
  });
  const urgent = urgently(store);
  const gate = Promise.withResolvers<void>();
  const begun: Promise<void>[] = [];
  const busy = Array.from({ length: 8 }, () => {
    const one = Promise.withResolvers<void>();
    begun.push(one.promise);
    return store.transaction(async (tx) => {
      await sql`select 1`.execute(tx);
      one.resolve();
      await gate.promise;
    });
  });
  // All connections for other statements are taken, and nobody gives one back.
  await Promise.all(begun);
  await urgent.transaction((tx) => tx.selectFrom("node").selectAll().execute());
  gate.resolve();
  await Promise.all(busy);
  await assert.rejects(sql`select pg_sleep(600)`.execute(urgent.db), /timeout/i);
  assert.equal((await urgent.db.selectFrom("node").selectAll().execute()).length, 0);
});
