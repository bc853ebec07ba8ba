// The audit on both engines: whatever does not add up is named, also where its pages meet; what is
// right is never named, also with posts meanwhile; and no statement reads more rows than a page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Kysely, type KyselyPlugin, sql } from "kysely";
import {
  audit,
  type BookDifference,
  DIFFERENCES_PER_CHECK,
} from "../../../src/hosted/audit/audit.ts";
import { ACCOUNT_IDS } from "../../../src/hosted/audit/books.ts";
import { closeLeases, lease } from "../../../src/hosted/credit/lease.ts";
import { flush } from "../../../src/hosted/credit/node.ts";
import { type LedgerEvent, postAll } from "../../../src/shared/ledger/ledger.ts";
import { join } from "../../../src/shared/nodes/node-rows.ts";
import { isBetween, ROWS_PER_PAGE, rangesOf } from "../../../src/shared/store/scan.ts";
import { openStore, type Store } from "../../../src/shared/store/store.ts";
import type { Tables } from "../../../src/shared/store/tables.ts";
import { seededRandom } from "../../fakes/runtime.ts";
import { chanceSeed } from "../../fakes/seed.ts";
import { type Ending, eachStore } from "../../fakes/stores.ts";

/** An account with more rows than three pages hold. */
const LARGE = "acc_0500";
/** Money has to move while the books are looked at, or it shows nothing. */
const MIN_ROUNDS = 6;
const ACCOUNTS = ROWS_PER_PAGE * 2 + 7;

eachStore(({ engine, open, place }) => {
  test(
    "books that agree are found to agree over many pages, and no statement returns more than its " +
      `pages hold (${engine})`,
    async (t) => {
      const store = await open(t);
      await fill(store);
      const { counted, sizes } = counting(store);
      assert.deepEqual(await audit(counted), []);
      assert.ok(sizes.length > 15, `only ${sizes.length} statements`);
      assert.ok(
        Math.max(...sizes) <= ROWS_PER_PAGE,
        `a statement returned ${Math.max(...sizes)} rows`,
      );
    },
  );

  test(
    "ranges leave out no row and take none twice, and none of a table has more than a page " +
      `(${engine})`,
    async (t) => {
      const store = await open(t);
      await fill(store);
      for (const columns of [ACCOUNT_IDS, EVENT_IDS]) {
        const seen = columns.map(() => 0n);
        for await (const range of rangesOf(store.db, columns)) {
          for (const [index, { table, column }] of columns.entries()) {
            const inside = await count(
              store,
              sql`${sql.table(table)} where ${isBetween(column, range)}`,
            );
            assert.ok(inside < ROWS_PER_PAGE, `${inside} rows of ${table} in one range`);
            const atEnd =
              range.end === null
                ? 0n
                : await count(
                    store,
                    sql`${sql.table(table)} where ${sql.ref(column)} = ${range.end}`,
                  );
            seen[index] = (seen[index] ?? 0n) + inside + atEnd;
          }
        }
        for (const [index, { table, column }] of columns.entries()) {
          assert.equal(
            seen[index],
            await count(store, sql`${sql.table(table)} where ${sql.ref(column)} is not null`),
            table,
          );
        }
      }
    },
  );

  test(
    "every kind of difference is named, in the middle of a page, at its border and at both ends " +
      `(${engine})`,
    async (t) => {
      const store = await loose(t, await place(t));
      await fill(store);
      const accounts: string[] = [
        "acc_0000",
        "acc_0003",
        LARGE,
        `acc_${String(ACCOUNTS - 1).padStart(4, "0")}`,
      ];
      const events: string[] = [];
      for await (const { end } of rangesOf(store.db, ACCOUNT_IDS))
        if (end !== null) accounts.push(end);
      for await (const { end } of rangesOf(store.db, EVENT_IDS)) if (end !== null) events.push(end);
      assert.ok(accounts.length > 6 && events.length > 2);
      for (const id of new Set(accounts)) {
        await expectOnly(
          store,
          sql`update account set balance_n = balance_n + 1 where id = ${id}`,
          ["balance"],
          id,
        );
        await expectOnly(
          store,
          sql`insert into usage_hour values (${id}, 'k', 'planted', 9, 1, 1, 1, 0, 0)`,
          ["usage"],
          id,
        );
        await expectOnly(
          store,
          sql`insert into credit_lease values (${id}, 'planted', 1, 0, 1)`,
          ["usage", "lease"],
          id,
        );
        await expectOnly(
          store,
          sql`insert into credit_lease values (${id}, 'planted', 1, 1, 0)`,
          ["balance"],
          id,
        );
        await expectOnly(
          store,
          sql`update account set balance_n = -5 where id = ${id}`,
          ["balance", "lease"],
          id,
        );
        await expectOnly(store, sql`delete from account where id = ${id}`, ["balance"], id);
      }
      const { rows } = await sql<{
        readonly low: string;
        readonly high: string;
      }>`select min(id) as low, max(id) as high from ledger_tx`.execute(store.db);
      for (const id of new Set([...events, rows[0]?.low ?? "", rows[0]?.high ?? ""])) {
        await expectOnly(
          store,
          sql`update ledger_entry set amount_n = amount_n + 1 where tx_id = ${id} and account_id is null`,
          ["event"],
          id,
        );
        await expectOnly(
          store,
          sql`delete from ledger_entry where tx_id = ${id} and account_id is null`,
          ["event"],
          id,
        );
        await expectOnly(
          store,
          sql`insert into ledger_entry values (${id}, 7, 'revenue', null, 1)`,
          ["event"],
          id,
        );
      }
    },
  );

  test(
    "entries of an event or account that does not exist are named, also when they sum to zero " +
      `(${engine})`,
    async (t) => {
      const store = await loose(t, await place(t));
      await fill(store);
      await expectOnly(
        store,
        sql`insert into ledger_tx values ('ltx_empty', 'empty', 'grant', 1)`,
        ["event"],
        "ltx_empty",
      );
      const nobody = ["", "acc_", "acc_05000", "zzz"];
      for (const id of nobody) {
        const entries = sql`insert into ledger_entry select id, 7, 'account', ${id}, 3 from ledger_tx where idem_key = 'acc_0001:grant'
        union all select id, 8, 'account', ${id}, -3 from ledger_tx where idem_key = 'acc_0001:grant'`;
        await expectOnly(store, entries, ["balance"], id);
      }
      for (const id of ["", "ltx_", "zzz"]) {
        await expectOnly(
          store,
          sql`insert into ledger_entry values (${id}, 0, 'revenue', null, 3), (${id}, 1, 'grants', null, -3)`,
          ["event"],
          id,
        );
      }
    },
  );

  test(`the list is bounded for each check, and one check does not hide another (${engine})`, async (t) => {
    const store = await open(t);
    await fill(store);
    await sql`update account set balance_n = balance_n + 1`.execute(store.db);
    await sql`update ledger_entry set amount_n = amount_n + 1 where account_id is null`.execute(
      store.db,
    );
    await sql`insert into usage_hour values ('zzz', 'k', 'm', 1, 1, 1, 1, 0, 0)`.execute(store.db);
    const found = await audit(store);
    assert.equal(found.filter(({ check }) => check === "event").length, DIFFERENCES_PER_CHECK);
    assert.equal(found.filter(({ check }) => check === "balance").length, DIFFERENCES_PER_CHECK);
    assert.deepEqual(
      found.filter(({ check }) => check === "usage"),
      [{ check: "usage", id: "zzz", isN: 1n, shouldN: 0n }],
    );
  });

  test(
    "nothing is named while money comes in, is leased, spent and settled, also of the account " +
      `with the most rows (${engine})`,
    async (t) => {
      const at = await place(t);
      const store = await openStore(at);
      // The embedded engine has one connection in one process; a server gets another pool.
      const poster = engine === "sqlite" ? store : await openStore(at);
      let isOver = false;
      const seed = chanceSeed();
      t.diagnostic(`seed ${seed}`);
      await fill(store);
      let rounds = 0;
      const onRound = () => void rounds++;
      const posting = post(poster, {
        random: seededRandom(seed),
        isOver: () => isOver,
        onRound,
      }).finally(() => {
        isOver = true;
      });
      try {
        for (let audits = 0; (audits < 6 || rounds < MIN_ROUNDS) && !isOver; audits++)
          assert.deepEqual(await audit(store), []);
      } finally {
        isOver = true;
        await posting;
        if (poster !== store) await poster.close();
        await store.close();
        t.diagnostic(`${rounds} rounds were posted`);
      }
    },
  );
});

const EVENT_IDS = [
  { table: "ledger_tx", column: "id" },
  { table: "ledger_entry", column: "tx_id" },
] as const;

const LARGE_EVENTS = ROWS_PER_PAGE * 3 + 2;

/** Many accounts with some rows, one with very many; the books agree. */
async function fill(store: Store): Promise<void> {
  const ids = Array.from(
    { length: ACCOUNTS },
    (_, index) => `acc_${String(index).padStart(4, "0")}`,
  );
  const nothing = {
    kind: "account",
    balance_n: 0n,
    funded_n: 0n,
    first_paid_at: null,
    exhausted_at: null,
    merged_into: null,
    created_at: 1n,
  } as const;
  for (let from = 0; from < ids.length; from += 200) {
    const rows = ids.slice(from, from + 200).map((id) => ({ id, ...nothing }));
    await store.db.insertInto("account").values(rows).execute();
  }
  const grants = ids.map(
    (accountId): LedgerEvent => ({
      kind: "grant",
      idemKey: `${accountId}:grant`,
      accountId,
      amountN: 10_000_000n,
      atMs: 1,
    }),
  );
  const used = Array.from({ length: LARGE_EVENTS }, (_, index): LedgerEvent => {
    return {
      kind: "usage",
      idemKey: `large:${index}`,
      accountId: LARGE,
      amountN: BigInt(1 + (index % 7)),
      atMs: 1,
    };
  });
  await store.transaction((tx) => postAll(tx, [...grants, ...used]));
  const hours = used.map(({ amountN }, index) => {
    return {
      account_id: LARGE,
      key_id: `k${index % 3}`,
      method: `m${index % 2}`,
      hour: BigInt(index),
      calls: 1n,
      cu: 1n,
      charge_n: amountN,
    };
  });
  for (let from = 0; from < hours.length; from += 200) {
    const rows = hours.slice(from, from + 200);
    await store.db.insertInto("usage_hour").values(rows).execute();
  }
}

/**
 * A store whose engine does not watch over amounts and references, so that anything can be planted.
 */
async function loose(
  t: Ending,
  at: { readonly url: string; readonly dataDir: string },
): Promise<Store> {
  const store = await openStore(at);
  t.after(() => store.close());
  if (store.engine === "sqlite") {
    await sql`pragma foreign_keys = off`.execute(store.db);
    await sql`pragma ignore_check_constraints = on`.execute(store.db);
    return store;
  }
  const { rows } = await sql<{
    readonly owner: string;
    readonly name: string;
  }>`select conrelid::regclass::text as owner, conname as name
    from pg_constraint where contype in ('c', 'f') and connamespace = 'public'::regnamespace order by contype desc`.execute(
    store.db,
  );
  for (const { owner, name } of rows)
    await sql`alter table ${sql.table(owner)} drop constraint ${sql.ref(name)}`.execute(store.db);
  return store;
}

/** What was planted is named and nothing else; afterwards it is taken away again. */
async function expectOnly(
  store: Store,
  plant: ReturnType<typeof sql>,
  checks: readonly BookDifference["check"][],
  id: string,
): Promise<void> {
  const undo = new Error("undo");
  await assert.rejects(
    store.transaction(async (tx) => {
      await plant.execute(tx);
      // Within the transaction that is undone: the audit is given it as its store.
      const inside: Store = { ...store, db: tx, engine: "sqlite", transaction: (run) => run(tx) };
      const found = await audit(inside);
      assert.deepEqual(
        found.map((it) => [it.check, it.id]),
        checks.map((check) => [check, id]),
        `${checks.join(" and ")} of ${id}`,
      );
      throw undo;
    }),
    (error: unknown) => {
      if (error !== undo) throw error;
      return true;
    },
  );
}

/** The same store, and how many rows each of its statements returned. */
function counting(store: Store): { readonly counted: Store; readonly sizes: readonly number[] } {
  const sizes: number[] = [];
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      sizes.push(result.rows.length);
      return result;
    },
  };
  const db: Kysely<Tables> = store.db.withPlugin(plugin);
  return { counted: { ...store, db }, sizes };
}

async function count(store: Store, from: ReturnType<typeof sql>): Promise<bigint> {
  const { rows } = await sql<{
    readonly rows: bigint;
  }>`select count(*) as rows from ${from}`.execute(store.db);
  return rows[0]?.rows ?? 0n;
}

interface Posting {
  readonly random: () => number;
  readonly isOver: () => boolean;
  readonly onRound: () => void;
}

/** Does to a store what a node does, all the time. */
async function post(store: Store, { random, isOver, onRound }: Posting): Promise<void> {
  const poster = { id: "poster", region: "" };
  const epoch = await join(store, poster, { wallMs: 1, replaces: "any", processId: "p" });
  assert.ok(epoch !== null);
  for (let rounds = 0; !isOver() && rounds < 10_000; rounds++) {
    const accountId =
      random() < 0.5 ? LARGE : `acc_${String(Math.floor(random() * ACCOUNTS)).padStart(4, "0")}`;
    const toId = `acc_${String(Math.floor(random() * ACCOUNTS)).padStart(4, "0")}`;
    const money: LedgerEvent[] = [
      { kind: "payment", idemKey: `round:${rounds}`, accountId, amountN: 5_000n, atMs: 1 },
    ];
    if (toId !== accountId)
      money.push({
        kind: "move",
        idemKey: `move:${rounds}`,
        fromId: accountId,
        toId,
        amountN: 7n,
        atMs: 1,
      });
    await store.transaction((tx) => postAll(tx, money));
    const ask = { accountId, shortN: 100, needN: 100, wantedN: 0, hereN: 0, grantedN: 0 };
    await store.transaction((tx) =>
      lease(tx, epoch, {
        requests: [ask],
        terms: { minSliceN: 100, smallestN: 1, atMs: 1, month: 1 },
      }),
    );
    const usage = [
      {
        account_id: accountId,
        key_id: "k",
        method: "posted",
        hour: BigInt(rounds % 50),
        calls: 1n,
        cu: 1n,
        charge_n: 60n,
        cached_calls: 0n,
        cached_cu: 0n,
      },
    ];
    const batch = {
      seq: BigInt(rounds + 1),
      spent: [{ accountId, amountN: 60n }],
      usage,
      free: [],
      runningOut: { accountIds: [], smallestN: 1, atMs: 1 },
    };
    assert.equal(await flush(store, epoch, { batch, wallMs: 1 }), "written");
    await store.transaction((tx) =>
      closeLeases(tx, { kind: "idle", epoch, accountIds: [accountId], seq: BigInt(rounds + 1) }, 1),
    );
    onRound();
    await new Promise(setImmediate);
  }
}
