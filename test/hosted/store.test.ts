// The store on both engines.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { openStore } from "../../src/hosted/store.ts";
import { eachStore } from "../fakes/stores.ts";

eachStore(({ engine, open, place }) => {
  test(`every integer is a bigint, sums too (${engine})`, async (t) => {
    const store = await open(t);
    await store.db
      .insertInto("account")
      .values({ ...ACCOUNT, balance_n: 9_007_199_254_740_993n })
      .execute();
    assert.deepEqual(await store.db.selectFrom("account").selectAll().execute(), [{ ...ACCOUNT, balance_n: 9_007_199_254_740_993n }]);
    const { rows } = await sql`select sum(balance_n) as a, count(*) as b, 1 as c from account`.execute(store.db);
    assert.deepEqual({ ...Object(rows[0]) }, { a: 9_007_199_254_740_993n, b: 1n, c: 1n });
  });
  test(`migrate together (${engine})`, { skip: engine === "sqlite" }, async (t) => {
    const at = await place(t);
    const stores = await Promise.all([openStore(at), openStore(at), openStore(at)]);
    for (const store of stores) await store.close();
  });
});
const ACCOUNT = {
  id: "acc_1",
  kind: "account",
  balance_n: 0n,
  funded_n: 0n,
  first_paid_at: null,
  exhausted_at: null,
  merged_into: null,
  created_at: 1n,
} as const;
