// The audit of purchases on both engines: what has settled came in once and went where its purchase
// says; whatever differs is named, on every page; what is right never is.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { audit } from "../../../src/hosted/audit/audit.ts";
import type { PurchaseRow } from "../../../src/payments/purchase/record.ts";
import { type LedgerEvent, postAll } from "../../../src/shared/ledger/ledger.ts";
import type { Store } from "../../../src/shared/store/store.ts";
import { eachStore } from "../../fakes/stores.ts";
import { createAccount } from "../accounts/account-fixture.ts";

const AMOUNT_N = 250_000_000n;
const PURCHASES = 1_203;
const KINDS = [
  "credited",
  "access",
  "held",
  "released",
  "released access",
  "failed",
  "under way",
] as const;

eachStore(({ engine, open }) => {
  test(
    "purchases of every kind agree with the ledger over many pages, and each difference is named " +
      `(${engine})`,
    async (t) => {
      const store = await open(t);
      await fill(store);
      assert.deepEqual(await audit(store), []);
      for (const at of [0, 497, 602, 1_196]) {
        const id = (kind: (typeof KINDS)[number]) =>
          idOf(at - (at % KINDS.length) + KINDS.indexOf(kind));
        const more = sql`units = units + 1, amount_n = amount_n + 1000`;
        for (const kind of ["credited", "access", "held", "released", "released access"] as const) {
          await expectOnly(store, sql`update purchase set ${more} where id = ${id(kind)}`, [
            ["purchase", id(kind), AMOUNT_N, AMOUNT_N + 1_000n],
          ]);
        }
        for (const kind of ["credited", "access", "released"] as const) {
          await expectOnly(
            store,
            sql`update purchase set fulfilment = null where id = ${id(kind)}`,
            [["purchase", id(kind), AMOUNT_N, 0n]],
          );
        }
        await expectOnly(
          store,
          sql`update purchase set fulfilment = 'given' where id = ${id("held")}`,
          [["purchase", id("held"), 0n, AMOUNT_N]],
        );
        const settled = sql`state = 'settled', reason = null, ended_at = 1, fulfilment = 'given'`;
        for (const kind of ["failed", "under way"] as const) {
          const planted = sql`update purchase set ${settled}, settled_ref = 'planted' where id = ${id(kind)}`;
          await expectOnly(store, planted, [["purchase", id(kind), 0n, AMOUNT_N]]);
        }
        const { id: event } = await store.db
          .selectFrom("ledger_tx")
          .select("id")
          .where("idem_key", "=", `purchase:${id("credited")}`)
          .executeTakeFirstOrThrow();
        const failed = sql`update purchase set state = 'failed', reason = 'x', settled_ref = null, fulfilment = null where id = ${id("credited")}`;
        await expectOnly(store, failed, [
          ["purchase", event, AMOUNT_N, 0n],
          ["purchase", id("credited"), AMOUNT_N, 0n],
        ]);
        await expectOnly(
          store,
          sql`insert into ledger_tx values (${`ltx_planted${at}`}, 'purchase:pur_nobody', 'grant', 1)`,
          [
            ["event", `ltx_planted${at}`, 0n, 0n],
            ["purchase", `ltx_planted${at}`, 0n, 0n],
          ],
        );
      }
    },
  );

  test(
    "money that comes in without a purchase is named, under whatever name it is booked " +
      `(${engine})`,
    async (t) => {
      const store = await open(t);
      await fill(store);
      const amountN = 7n;
      const events: readonly LedgerEvent[] = [
        { kind: "hold", idemKey: "something", amountN, atMs: 1 },
        { kind: "release", idemKey: "else", accountId: "acc_a", amountN, atMs: 1 },
        {
          kind: "payment",
          idemKey: `purchase:${idOf(0)}:again`,
          accountId: "acc_a",
          amountN,
          atMs: 1,
        },
      ];
      await store.transaction((tx) => postAll(tx, events));
      const found = await audit(store);
      assert.deepEqual(
        found.map(({ check, isN, shouldN }) => [check, isN, shouldN]),
        events.map(() => ["purchase", amountN, 0n]),
      );
      await store.transaction((tx) =>
        postAll(tx, [
          { kind: "payment", idemKey: "operator:x", accountId: "acc_a", amountN, atMs: 1 },
        ]),
      );
      assert.equal(
        (await audit(store)).length,
        events.length,
        "what the operator books is no purchase",
      );
    },
  );
});

function idOf(index: number): string {
  return `pur_${String(index).padStart(20, "0")}`;
}

async function fill(store: Store): Promise<void> {
  await createAccount(store, "acc_a");
  const ids = Array.from({ length: PURCHASES }, (_, index) => idOf(index));
  const rows = ids.map((id, index) => rowOf(id, KINDS[index % KINDS.length] ?? "failed"));
  for (let from = 0; from < rows.length; from += 50) {
    await store.db
      .insertInto("purchase")
      .values(rows.slice(from, from + 50))
      .execute();
  }
  const events = ids.flatMap((id, index) => eventsOf(id, KINDS[index % KINDS.length] ?? "failed"));
  await store.transaction((tx) => postAll(tx, events));
}

function rowOf(id: string, kind: (typeof KINDS)[number]): PurchaseRow {
  const state = kind === "failed" ? "failed" : kind === "under way" ? "submitted" : "settled";
  return {
    id,
    payment_key: `key ${id}`,
    offer_id: `offer ${id}`,
    offer_claim: null,
    fingerprint: "f",
    purpose: "{}",
    units: AMOUNT_N / 1_000n,
    amount_n: AMOUNT_N,
    rail: "evm",
    protocol: "mpp",
    chain_id: 77n,
    network: "0x1",
    token: "0x2",
    recipient: "0x3",
    payer: "0x4",
    material: "",
    is_sent: 0n,
    valid_until: null,
    state,
    reason: state === "failed" ? "expired" : null,
    tx_hash: null,
    settled_ref: state === "settled" ? `77:0x1:${id}:0` : null,
    fulfilment: state === "settled" && kind !== "held" ? "given" : null,
    blank_at: null,
    created_at: 1n,
    ended_at: state === "submitted" ? null : 1n,
    look_at: 1n,
    looks: 0n,
    lease_node: null,
    lease_until: null,
  };
}

function eventsOf(id: string, kind: (typeof KINDS)[number]): readonly LedgerEvent[] {
  const first = { idemKey: `purchase:${id}`, amountN: AMOUNT_N, atMs: 1 };
  const second = { ...first, idemKey: `purchase:${id}:released` };
  switch (kind) {
    case "credited":
      return [{ kind: "payment", accountId: "acc_a", ...first }];
    case "access":
      return [{ kind: "access", ...first }];
    case "held":
      return [{ kind: "hold", ...first }];
    case "released":
      return [
        { kind: "hold", ...first },
        { kind: "release", accountId: "acc_a", ...second },
      ];
    case "released access":
      return [
        { kind: "hold", ...first },
        { kind: "release_access", ...second },
      ];
    case "failed":
    case "under way":
      return [];
  }
}

/** What was planted is named and nothing else; afterwards it is taken away again. */
async function expectOnly(
  store: Store,
  plant: ReturnType<typeof sql>,
  expected: readonly (readonly [string, string, bigint, bigint])[],
): Promise<void> {
  const undo = new Error("undo");
  await assert.rejects(
    store.transaction(async (tx) => {
      await plant.execute(tx);
      const found = await audit({
        ...store,
        db: tx,
        engine: "sqlite",
        transaction: (run) => run(tx),
      });
      assert.deepEqual(
        found.map(({ check, id, isN, shouldN }) => [check, id, isN, shouldN]),
        expected,
      );
      throw undo;
    }),
    (error: unknown) => {
      if (error !== undo) throw error;
      return true;
    },
  );
}
