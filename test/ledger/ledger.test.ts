// The ledger on both engines: every event once, every event sums to zero, no balance below zero,
// and the audit sees what is wrong.
import assert from "node:assert/strict";
import { test } from "node:test";
import { audit } from "../../src/hosted/audit/audit.ts";
import { type LedgerEvent, post, postAll } from "../../src/shared/ledger/ledger.ts";
import type { Store } from "../../src/shared/store/store.ts";
import { seededRandom } from "../fakes/runtime.ts";
import { chanceSeed } from "../fakes/seed.ts";
import { eachStore } from "../fakes/stores.ts";
import { accountOf, balanceOf, createAccount } from "../hosted/accounts/account-fixture.ts";

eachStore(({ engine, open }) => {
  test(`a grant raises balance and what was ever credited, and is no payment (${engine})`, async (t) => {
    const store = await open(t);
    await createAccount(store, "acc_a");
    assert.equal(
      await put(store, {
        kind: "grant",
        idemKey: "g1",
        accountId: "acc_a",
        amountN: 500n,
        atMs: 7,
      }),
      true,
    );
    assert.deepEqual(await accountOf(store, "acc_a"), {
      balance_n: 500n,
      funded_n: 500n,
      first_paid_at: null,
      exhausted_at: null,
    });
    assert.deepEqual(await audit(store), []);
  });

  test(`a payment notes when the account first paid, and ends its exhaustion (${engine})`, async (t) => {
    const store = await open(t);
    await createAccount(store, "acc_a", { exhausted_at: 3n });
    await put(store, {
      kind: "payment",
      idemKey: "p1",
      accountId: "acc_a",
      amountN: 10n,
      atMs: 8.9,
    });
    await put(store, { kind: "payment", idemKey: "p2", accountId: "acc_a", amountN: 10n, atMs: 9 });
    assert.deepEqual(await accountOf(store, "acc_a"), {
      balance_n: 20n,
      funded_n: 20n,
      first_paid_at: 8n,
      exhausted_at: null,
    });
  });

  test(`an event that comes again, also at the same moment, changes nothing (${engine})`, async (t) => {
    const store = await open(t);
    await createAccount(store, "acc_a");
    const event = {
      kind: "payment",
      idemKey: "p1",
      accountId: "acc_a",
      amountN: 10n,
      atMs: 8,
    } as const;
    const answers = await Promise.all(Array.from({ length: 8 }, () => put(store, event)));
    assert.equal(answers.filter((isNew) => isNew).length, 1);
    assert.equal(await balanceOf(store, "acc_a"), 10n);
    assert.equal(
      await store.transaction((tx) =>
        postAll(tx, [event, event, { ...event, idemKey: "p2" }, { ...event, idemKey: "p2" }]),
      ),
      1,
    );
    assert.equal(await balanceOf(store, "acc_a"), 20n);
    assert.deepEqual(await audit(store), []);
  });

  test(`money that is not there cannot be moved, and nothing of the try stays (${engine})`, async (t) => {
    const store = await open(t);
    await createAccount(store, "acc_a");
    await createAccount(store, "acc_b");
    await put(store, { kind: "grant", idemKey: "g1", accountId: "acc_a", amountN: 5n, atMs: 1 });
    await assert.rejects(
      put(store, {
        kind: "move",
        idemKey: "m1",
        fromId: "acc_a",
        toId: "acc_b",
        amountN: 6n,
        atMs: 1,
      }),
      /check/i,
    );
    await assert.rejects(
      put(store, { kind: "grant", idemKey: "g2", accountId: "acc_none", amountN: 6n, atMs: 1 }),
    );
    await assert.rejects(
      put(store, { kind: "grant", idemKey: "g3", accountId: "acc_a", amountN: 0n, atMs: 1 }),
      RangeError,
    );
    await assert.rejects(
      put(store, { kind: "grant", idemKey: "g4", accountId: "acc_a", amountN: -1n, atMs: 1 }),
      RangeError,
    );
    assert.equal(
      await put(store, {
        kind: "move",
        idemKey: "m1",
        fromId: "acc_a",
        toId: "acc_b",
        amountN: 5n,
        atMs: 1,
      }),
      true,
    );
    assert.deepEqual([await balanceOf(store, "acc_a"), await balanceOf(store, "acc_b")], [0n, 5n]);
    assert.deepEqual(await audit(store), []);
  });

  test(`amounts beyond 2^53 stay exact (${engine})`, async (t) => {
    const store = await open(t);
    await createAccount(store, "acc_a");
    await put(store, {
      kind: "payment",
      idemKey: "p1",
      accountId: "acc_a",
      amountN: 9_007_199_254_740_993n,
      atMs: 1,
    });
    await put(store, {
      kind: "payment",
      idemKey: "p2",
      accountId: "acc_a",
      amountN: 9_007_199_254_740_993n,
      atMs: 1,
    });
    assert.equal(await balanceOf(store, "acc_a"), 18_014_398_509_481_986n);
    assert.deepEqual(await audit(store), []);
  });

  test(`the audit lists a balance, an event and a usage that do not add up (${engine})`, async (t) => {
    const store = await open(t);
    await createAccount(store, "acc_a");
    await createAccount(store, "acc_b");
    await put(store, { kind: "grant", idemKey: "g1", accountId: "acc_a", amountN: 5n, atMs: 1 });
    await store.db
      .updateTable("account")
      .set({ balance_n: 6n })
      .where("id", "=", "acc_a")
      .execute();
    await store.db
      .insertInto("ledger_tx")
      .values({ id: "ltx_x", idem_key: "x", kind: "grant", created_at: 1n })
      .execute();
    await store.db
      .insertInto("ledger_entry")
      .values({ tx_id: "ltx_x", position: 0n, book: "account", account_id: "acc_b", amount_n: 3n })
      .execute();
    await store.db
      .insertInto("usage_hour")
      .values({
        account_id: "acc_b",
        key_id: "k",
        method: "m",
        hour: 1n,
        calls: 1n,
        cu: 1n,
        charge_n: 4n,
      })
      .execute();
    assert.deepEqual(await audit(store), [
      { check: "event", id: "ltx_x", isN: 3n, shouldN: 0n },
      { check: "balance", id: "acc_a", isN: 6n, shouldN: 5n },
      { check: "balance", id: "acc_b", isN: 0n, shouldN: 3n },
      { check: "usage", id: "acc_b", isN: 4n, shouldN: 0n },
    ]);
  });

  test(
    "property: random events, repeated and refused ones among them, and sixteen at a time, agree " +
      `with a model (${engine})`,
    async (t) => {
      const seed = chanceSeed();
      t.diagnostic(`seed ${seed}`);
      const random = seededRandom(seed);
      const store = await open(t);
      const ids = ["acc_a", "acc_b", "acc_c"];
      for (const id of ids) await createAccount(store, id);
      const events = Array.from({ length: 240 }, () => anEvent(random, ids));
      let happened = 0;
      for (let at = 0; at < events.length; at += 16) {
        const results = await Promise.allSettled(
          events.slice(at, at + 16).map((event) => put(store, event)),
        );
        happened += results.filter(
          (result) => result.status === "fulfilled" && result.value,
        ).length;
        for (const result of results)
          if (result.status === "rejected") assert.match(String(result.reason), /check/i);
      }
      const { count } = await store.db
        .selectFrom("ledger_tx")
        .select(({ fn }) => fn.countAll<bigint>().as("count"))
        .executeTakeFirstOrThrow();
      assert.equal(count, BigInt(happened));
      const differences = (await audit(store)).filter(({ check }) => check !== "usage");
      assert.deepEqual(differences, []);
    },
  );
});

function put(store: Store, event: LedgerEvent): Promise<boolean> {
  return store.transaction((tx) => post(tx, event));
}

function anEvent(random: () => number, ids: readonly string[]): LedgerEvent {
  const pick = () => ids[Math.floor(random() * ids.length)] ?? "";
  const rest = {
    idemKey: `e${Math.floor(random() * 200)}`,
    amountN: BigInt(1 + Math.floor(random() * 1_000)),
    atMs: 1,
  };
  const chance = random();
  if (chance < 0.3) return { kind: "grant", accountId: pick(), ...rest };
  if (chance < 0.5) return { kind: "payment", accountId: pick(), ...rest };
  if (chance < 0.7) return { kind: "usage", accountId: pick(), ...rest };
  return { kind: "move", fromId: pick(), toId: pick(), ...rest };
}
