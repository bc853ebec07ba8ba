// The move from the embedded store into a server: every row arrives, money agrees, and nothing is
// overwritten.
import assert from "node:assert/strict";
import { test } from "node:test";
import { audit } from "../../../src/hosted/audit/audit.ts";
import { exportStore } from "../../../src/hosted/audit/export.ts";
import { openStore, type Store } from "../../../src/shared/store/store.ts";
import type { Tables } from "../../../src/shared/store/tables.ts";
import { openCredit } from "../../fakes/credit.ts";
import { failedPurchase } from "../../fakes/purchase-row.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { eachStore, newPlace } from "../../fakes/stores.ts";
import { balanceOf, createAccount, createPaid } from "../accounts/account-fixture.ts";

const CU = 5_000;

eachStore(({ engine, open }) => {
  if (engine !== "postgres") return;

  test(
    "every row of the embedded store arrives, leases of a process that is gone are settled, and " +
      "the books agree",
    async (t) => {
      const from = await embedded(t);
      const to = await open(t);
      for (let index = 0; index < 450; index++)
        await createPaid(from, `acc_${index}`, 1_000_000_000n + BigInt(index));
      const names = { name: "ключ ☃ '\"\\", created_at: 1n, revoked_at: null };
      const agent = {
        token_hash: "h",
        profiles: '["a"]',
        read_only: 1n,
        expires_at: 9_007_199_254_740_993n,
      };
      await from.db
        .insertInto("agent")
        .values({ id: "agt_1", account_id: "acc_1", ...names, ...agent })
        .execute();
      const key = {
        agent_id: "agt_1",
        prefix: "svc_ak_x",
        default_profile: null,
        allowed_profiles: null,
        consistency: "caller" as const,
        revision: 2n,
      };
      await from.db
        .insertInto("api_key")
        .values({ id: "key_1", account_id: "acc_1", ...names, ...key })
        .execute();
      await from.db
        .insertInto("key_secret")
        .values({ secret_hash: "s", key_id: "key_1", valid_until: 7n, created_at: 1n })
        .execute();
      await from.db.insertInto("purchase").values(failedPurchase("pur_1", "acc_1")).execute();
      const sent = {
        position: 0n,
        tx_hash: "0x1",
        raw: "sealed",
        wallet_id: "77:0x5:0x1",
        nonce: 9n,
        created_at: 1n,
        passed_at: null,
      };
      await from.db
        .insertInto("purchase_submission")
        .values({ purchase_id: "pur_1", ...sent })
        .execute();
      await from.db
        .insertInto("settlement_wallet")
        .values({ id: "77:0x5:0x1", next_nonce: 10n })
        .execute();
      await spendAndDie(from);
      const counts = await exportStore(from, to, 1_000);
      assert.equal(counts.get("account"), 450n);
      assert.equal(counts.get("ledger_entry"), 902n);
      assert.equal(counts.get("credit_lease"), 0n);
      assert.equal(await balanceOf(to, "acc_7"), 1_000_000_007n - BigInt(9 * CU));
      for (const table of [
        "account",
        "agent",
        "api_key",
        "key_secret",
        "ledger_tx",
        "ledger_entry",
        "usage_hour",
        "node",
        ...PAYMENTS,
      ] as const) {
        const [here, there] = await Promise.all([rowsOf(from, table), rowsOf(to, table)]);
        assert.deepEqual(there, here, table);
      }
      assert.deepEqual(await audit(to), []);
      await assert.rejects(exportStore(from, to, 1_000), /holds accounts already/);
      assert.equal((await rowsOf(to, "account")).length, 450);
    },
  );

  test("a store whose books do not agree is not moved", async (t) => {
    const from = await embedded(t);
    const to = await open(t);
    await createAccount(from, "acc_a", { balance_n: 5n });
    await assert.rejects(
      exportStore(from, to, 1_000),
      /does not add up: balance of acc_a is 5, should be 0/,
    );
    assert.deepEqual(await rowsOf(to, "account"), []);
    await assert.rejects(exportStore(to, to, 1_000), /from the embedded store/);
  });
});

async function embedded(t: { after(run: () => Promise<void>): void }): Promise<Store> {
  const { place, remove } = await newPlace("sqlite");
  const store = await openStore(place);
  t.after(async () => {
    await store.close();
    await remove();
  });
  return store;
}

/** A process spends, writes what it spent, and is gone without a word. */
async function spendAndDie(store: Store): Promise<void> {
  const parts = {
    store,
    runtime: simulatedWorld(1),
    node: { id: "gone", region: "" },
    onError: () => undefined,
  };
  const credit = await openCredit({
    ...parts,
    settings: { flushIntervalMs: 1_000, nodeTimeoutMs: 30_000, minSliceN: 100 * CU },
  });
  const wallet = credit.wallet("acc_7");
  credit.hold(wallet, 9 * CU);
  await new Promise<void>((resolve) => void credit.refilled(wallet, resolve));
  credit.hold(wallet, 9 * CU);
  credit.settle(wallet, {
    keyId: "key_1",
    method: "eth_call",
    cu: 9,
    isCached: true,
    heldN: 9 * CU,
    chargeN: 9 * CU,
    freeCu: 0,
  });
  await credit.flush();
}

const PAYMENTS = ["purchase", "purchase_submission", "settlement_wallet"] as const;

async function rowsOf(store: Store, table: keyof Tables) {
  const rows = await store.db.selectFrom(table).selectAll().execute();
  return rows
    .map((row) =>
      JSON.stringify(row, (_, value) => (typeof value === "bigint" ? `${value}n` : value)),
    )
    .sort();
}
