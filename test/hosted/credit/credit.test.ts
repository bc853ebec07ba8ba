// The leased credit on both engines: what a wallet may spend, what the store hears of it, and what
// becomes of it when either fails.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { audit } from "../../../src/hosted/audit/audit.ts";
import type { Credit, Wallet } from "../../../src/hosted/credit/credit.ts";
import type { CreditSettings } from "../../../src/hosted/credit/credit-store.ts";
import { grantOf } from "../../../src/hosted/credit/lease.ts";
import { ROUND_MS, WAIT_MS } from "../../../src/hosted/credit/refill-batcher.ts";
import { openStore, type Store } from "../../../src/shared/store/store.ts";
import { openCredit } from "../../fakes/credit.ts";
import { type SimulatedWorld, simulatedWorld } from "../../fakes/runtime.ts";
import { eachStore, newPlace } from "../../fakes/stores.ts";
import {
  accountOf,
  balanceOf,
  createAccount,
  createPaid,
  credit as pay,
} from "../accounts/account-fixture.ts";
import { faultyStore } from "./faulty-store.ts";

const CU = 5_000;
const SLICE = 100 * CU;
const SETTINGS = { flushIntervalMs: 1_000, nodeTimeoutMs: 30_000, minSliceN: SLICE } as const;
/** Of real time, for whatever a store has to finish. */
const MOST_MS = 60_000;
const ONE_CALL = {
  keyId: "key_1",
  method: "eth_call",
  cu: 3,
  heldN: 3 * CU,
  chargeN: 3 * CU,
  freeCu: 0,
} as const;

eachStore(({ engine, open }) => {
  test(
    "money goes from the balance through a lease into the books, and what is unspent returns " +
      `(${engine})`,
    async (t) => {
      const store = await open(t);
      await createPaid(store, "acc_a", 1_000_000_000n);
      const { credit, runtime } = await node(t, store);
      const wallet = credit.wallet("acc_a");
      assert.deepEqual(
        [wallet.state, wallet.availableN, credit.hold(wallet, 3 * CU)],
        ["unknown", 0, false],
      );
      await refill(credit, runtime, wallet);
      assert.equal(wallet.state, "open");
      assert.equal(wallet.availableN, SLICE);
      assert.equal(credit.estimateN(wallet), 1_000_000_000);
      assert.equal(credit.hold(wallet, 3 * CU), true);
      assert.equal(credit.hold(wallet, 3 * CU), true);
      credit.release(wallet, 3 * CU);
      credit.settle(wallet, ONE_CALL);
      assert.equal(wallet.availableN, SLICE - 3 * CU);
      await credit.flush();
      assert.deepEqual(await audit(store), []);
      const [usage] = await store.db.selectFrom("usage_hour").selectAll().execute();
      assert.deepEqual(
        [usage?.calls, usage?.cu, usage?.charge_n, usage?.method],
        [1n, 3n, BigInt(3 * CU), "eth_call"],
      );
      await credit.close();
      assert.equal(await balanceOf(store, "acc_a"), 1_000_000_000n - BigInt(3 * CU));
      assert.deepEqual(await store.db.selectFrom("credit_lease").selectAll().execute(), []);
      assert.deepEqual(await audit(store), []);
    },
  );

  test(`calls answered from the cache are counted apart, and cost what was not returned (${engine})`, async (t) => {
    const store = await open(t);
    await createPaid(store, "acc_a", 1_000_000_000n);
    const { credit, runtime } = await node(t, store);
    const wallet = credit.wallet("acc_a");
    await refill(credit, runtime, wallet, 3 * CU);
    const cached = { ...ONE_CALL, cu: 1, chargeN: CU, isCached: true };
    // Two batches: the second one adds to the row that the first one wrote.
    for (let round = 0; round < 2; round++) {
      for (const use of [ONE_CALL, cached, { ...cached, cu: 0, chargeN: 0 }]) {
        assert.equal(credit.hold(wallet, use.heldN), true);
        credit.settle(wallet, use);
      }
      await credit.flush();
    }
    assert.deepEqual(credit.metered(), { full: 6, cached: 2 });
    const [usage, ...others] = await store.db.selectFrom("usage_hour").selectAll().execute();
    assert.deepEqual(others, []);
    assert.deepEqual(
      [usage?.calls, usage?.cu, usage?.charge_n, usage?.cached_calls, usage?.cached_cu],
      [6n, 8n, BigInt(8 * CU), 4n, 2n],
    );
    assert.deepEqual(await audit(store), []);
    await credit.close();
    assert.equal(await balanceOf(store, "acc_a"), 1_000_000_000n - BigInt(8 * CU));
    assert.deepEqual(await audit(store), []);
  });

  test(
    "an account of which nothing is left reads empty, is noted as exhausted, and is awake as " +
      `soon as it is credited (${engine})`,
    async (t) => {
      const store = await open(t);
      await createPaid(store, "acc_a", BigInt(4 * CU));
      const { credit, runtime } = await node(t, store);
      const wallet = credit.wallet("acc_a");
      await refill(credit, runtime, wallet, 3 * CU);
      assert.equal(credit.hold(wallet, 3 * CU), true);
      credit.settle(wallet, ONE_CALL);
      assert.equal(credit.hold(wallet, 3 * CU), false);
      await credit.flush();
      runtime.advance(1_000);
      await refill(credit, runtime, wallet, 3 * CU);
      assert.deepEqual([wallet.state, wallet.availableN], ["empty", CU]);
      assert.notEqual((await accountOf(store, "acc_a")).exhausted_at, null);
      await pay(store, "acc_a", { idemKey: "p2", amountN: BigInt(50 * CU) });
      credit.refresh("acc_a");
      runtime.advance(ROUND_MS);
      await until(() => wallet.availableN === 51 * CU);
      assert.equal((await accountOf(store, "acc_a")).exhausted_at, null);
      await credit.close();
      assert.deepEqual(await audit(store), []);
    },
  );

  test(`the moment at which a balance ran out is of the clock that nodes agree on (${engine})`, async (t) => {
    const store = await open(t);
    const agreedMs = 1_234_567_890;
    const { credit, runtime } = await node(t, store, "a", { smallestN: CU }, () => agreedMs);
    for (const [id, calls] of [
      ["acc_even", 3],
      ["acc_dry", 4],
    ] as const) {
      await createPaid(store, id, BigInt(calls * CU));
      await refill(credit, runtime, credit.wallet(id), 3 * CU);
      assert.equal(credit.hold(credit.wallet(id), 3 * CU), true);
      credit.settle(credit.wallet(id), { ...ONE_CALL, keyId: `key_${id}` });
    }
    // The one by its last charge, the other by a call that it cannot pay.
    assert.equal(credit.hold(credit.wallet("acc_dry"), 3 * CU), false);
    await credit.flush();
    runtime.advance(1_000);
    await refill(credit, runtime, credit.wallet("acc_dry"), 3 * CU);
    for (const id of ["acc_even", "acc_dry"])
      assert.equal((await accountOf(store, id)).exhausted_at, BigInt(agreedMs), id);
    await credit.close();
  });

  test(
    "the moment at which a balance ran out is written with what was spent, without a further " +
      `call, and stays (${engine})`,
    async (t) => {
      const store = await open(t);
      // To the last unit, and to a rest that pays for no call.
      await createPaid(store, "acc_even", BigInt(3 * CU));
      await createPaid(store, "acc_rest", BigInt(4 * CU) - 1n);
      await createPaid(store, "acc_left", BigInt(4 * CU));
      await createAccount(store, "acc_gift");
      await store.db
        .updateTable("account")
        .set({ balance_n: BigInt(3 * CU), funded_n: BigInt(3 * CU) })
        .where("id", "=", "acc_gift")
        .execute();
      const { credit, runtime } = await node(t, store, "a", { smallestN: CU });
      const ids = ["acc_even", "acc_rest", "acc_left", "acc_gift"];
      for (const id of ids) {
        await refill(credit, runtime, credit.wallet(id), 3 * CU);
        assert.equal(credit.hold(credit.wallet(id), 3 * CU), true);
        credit.settle(credit.wallet(id), { ...ONE_CALL, keyId: `key_${id}` });
      }
      const noted = async () =>
        Promise.all(ids.map(async (id) => (await accountOf(store, id)).exhausted_at));
      assert.deepEqual(await noted(), [null, null, null, null]);
      const at = BigInt(Math.floor(runtime.wallMs()));
      await credit.flush();
      assert.deepEqual(await noted(), [at, at, null, null]);
      runtime.jump(86_400_000);
      await credit.flush();
      for (const id of ids) await refill(credit, runtime, credit.wallet(id), 3 * CU);
      assert.deepEqual(
        (await noted()).slice(0, 2),
        [at, at],
        "a call that comes later does not begin it anew",
      );
      assert.deepEqual(
        [credit.wallet("acc_even").state, credit.wallet("acc_even").exhaustedAtMs],
        ["empty", Number(at)],
      );
      await credit.close();
      const next = await node(t, store, "b", { smallestN: CU });
      await refill(next.credit, next.runtime, next.credit.wallet("acc_even"), 3 * CU);
      assert.equal(
        next.credit.wallet("acc_even").exhaustedAtMs,
        Number(at),
        "and outlives the process",
      );
      await next.credit.close();
    },
  );

  test(
    "a balance that two nodes use up ran out when the second one writes, and not before " +
      `(${engine})`,
    async (t) => {
      const store = await open(t);
      await createPaid(store, "acc_a", BigInt(200 * CU));
      const nodes = [
        await node(t, store, "a", { smallestN: CU }),
        await node(t, store, "b", { smallestN: CU }),
      ];
      for (const { credit, runtime } of nodes)
        await refill(credit, runtime, credit.wallet("acc_a"), 100 * CU);
      const noted: (bigint | null)[] = [];
      for (const { credit } of nodes) {
        const wallet = credit.wallet("acc_a");
        const allN = wallet.availableN;
        assert.ok(allN > 0 && credit.hold(wallet, allN));
        credit.settle(wallet, { ...ONE_CALL, cu: allN / CU, heldN: allN, chargeN: allN });
        await credit.flush();
        noted.push((await accountOf(store, "acc_a")).exhausted_at);
      }
      assert.deepEqual([noted[0], noted[1] === null], [null, false]);
      for (const { credit } of nodes) await credit.close();
      assert.deepEqual(await audit(store), []);
    },
  );

  test(
    "an account is not exhausted while another node has some of it, nor one that never paid " +
      `(${engine})`,
    async (t) => {
      const store = await open(t);
      await createPaid(store, "acc_a", BigInt(50 * CU));
      await createAccount(store, "acc_free");
      const a = await node(t, store, "a");
      const b = await node(t, store, "b");
      await refill(a.credit, a.runtime, a.credit.wallet("acc_a"), 3 * CU);
      await refill(b.credit, b.runtime, b.credit.wallet("acc_a"), 3 * CU);
      await refill(b.credit, b.runtime, b.credit.wallet("acc_free"), 3 * CU);
      assert.deepEqual(
        [
          a.credit.wallet("acc_a").availableN,
          b.credit.wallet("acc_a").state,
          b.credit.wallet("acc_free").state,
        ],
        [50 * CU, "empty", "empty"],
      );
      assert.equal((await accountOf(store, "acc_a")).exhausted_at, null);
      assert.equal((await accountOf(store, "acc_free")).exhausted_at, null);
      await a.credit.close();
      await b.credit.close();
      assert.equal(await balanceOf(store, "acc_a"), BigInt(50 * CU));
    },
  );

  test(`calls that wait together get what they need together, also where little is left (${engine})`, async (t) => {
    const store = await open(t);
    await createPaid(store, "acc_a", BigInt(1_000 * CU));
    const { credit, runtime } = await node(t, store);
    const wallet = credit.wallet("acc_a");
    for (let calls = 0; calls < 8; calls++) assert.equal(credit.hold(wallet, 120 * CU), false);
    await refill(credit, runtime, wallet, 0);
    for (let calls = 0; calls < 8; calls++) assert.equal(credit.hold(wallet, 120 * CU), true);
    assert.equal(credit.hold(wallet, 120 * CU), false);
    await credit.close();
  });

  test(
    "a batch whose answer was lost is not written twice, and what came meanwhile is written " +
      `after it (${engine})`,
    async (t) => {
      const { store, faults } = faultyStore(await open(t));
      const { credit, wallet } = await leased(t, store);
      spend(credit, wallet, 2);
      faults.answers = 0;
      await assert.rejects(credit.flush(), /lost/);
      spend(credit, wallet, 3);
      faults.statements = 2;
      await assert.rejects(credit.flush(), /failed/);
      spend(credit, wallet, 4);
      await credit.flush();
      const usage = await store.db.selectFrom("usage_hour").select(["calls", "charge_n"]).execute();
      assert.deepEqual(usage, [{ calls: 9n, charge_n: BigInt(27 * CU) }]);
      assert.deepEqual(await audit(store), []);
      await credit.close();
    },
  );

  test(`a grant whose answer was lost is found again by the next ask (${engine})`, async (t) => {
    const { store, faults } = faultyStore(await open(t));
    await createPaid(store, "acc_a", BigInt(50 * CU));
    const { credit, runtime } = await node(t, store);
    const wallet = credit.wallet("acc_a");
    faults.answers = 0;
    await refill(credit, runtime, wallet, 3 * CU);
    assert.deepEqual(
      [wallet.state, wallet.availableN, await balanceOf(store, "acc_a")],
      ["unreachable", 0, 0n],
    );
    runtime.advance(500);
    await refill(credit, runtime, wallet, 3 * CU);
    assert.equal(wallet.availableN, 50 * CU);
    assert.equal((await accountOf(store, "acc_a")).exhausted_at, null);
    await credit.close();
    assert.equal(await balanceOf(store, "acc_a"), BigInt(50 * CU));
  });

  test(`a grant whose answer was lost returns when nobody asks for it again (${engine})`, async (t) => {
    const { store, faults } = faultyStore(await open(t));
    await createPaid(store, "acc_a", BigInt(50 * CU));
    const { credit, runtime } = await node(t, store);
    faults.answers = 0;
    await refill(credit, runtime, credit.wallet("acc_a"), 3 * CU);
    assert.equal(await balanceOf(store, "acc_a"), 0n);
    await passUntil(runtime, 1_000, () => credit.size === 0);
    assert.equal(await balanceOf(store, "acc_a"), BigInt(50 * CU));
    await credit.close();
  });

  test(
    "a wallet tells that it was empty when the store went, unless its account was credited since " +
      `(${engine})`,
    async (t) => {
      const { store, faults } = faultyStore(await open(t));
      await createAccount(store, "acc_free");
      const { credit, runtime } = await node(t, store);
      const wallet = credit.wallet("acc_free");
      await refill(credit, runtime, wallet, 3 * CU);
      assert.deepEqual([wallet.state, wallet.wasEmpty], ["empty", false]);
      faults.isGone = true;
      runtime.advance(1_000);
      await refill(credit, runtime, wallet, 3 * CU);
      assert.deepEqual([wallet.state, wallet.wasEmpty], ["unreachable", true]);
      faults.isGone = false;
      runtime.advance(1_000);
      await refill(credit, runtime, wallet, 3 * CU);
      assert.equal(wallet.state, "empty");
      faults.isGone = true;
      credit.refresh("acc_free");
      await refill(credit, runtime, wallet, 3 * CU);
      assert.deepEqual([wallet.state, wallet.wasEmpty], ["unreachable", false]);
      faults.isGone = false;
      await credit.close();
    },
  );

  test(
    "leased credit is spent while the store is gone, until half of the time after which this " +
      `node counts as dead (${engine})`,
    async (t) => {
      const { store, faults } = faultyStore(await open(t));
      const { credit, runtime, wallet } = await leased(t, store);
      await credit.flush();
      faults.isGone = true;
      for (let seconds = 0; seconds < 14; seconds++) {
        runtime.advance(1_000);
        assert.equal(spend(credit, wallet, 1), 1);
      }
      assert.equal(credit.maySpend(), true);
      runtime.advance(1_001);
      assert.equal(credit.maySpend(), false);
      assert.equal(spend(credit, wallet, 1), 0);
      assert.equal(wallet.state, "unreachable");
      await assert.rejects(credit.flush());
      faults.isGone = false;
      await credit.flush();
      assert.equal(credit.maySpend(), true);
      assert.equal(spend(credit, wallet, 1), 1);
      await credit.close();
      assert.deepEqual(await audit(store), []);
      assert.equal(await balanceOf(store, "acc_a"), 1_000_000_000n - BigInt(15 * 3 * CU));
    },
  );

  test(
    "a process that stood still asks the store before it refuses, once as long as that fails " +
      `(${engine})`,
    async (t) => {
      const { store, faults } = faultyStore(await open(t));
      const { credit, runtime, wallet } = await leased(t, store);
      await credit.flush();
      runtime.jump(SETTINGS.nodeTimeoutMs / 2 + 1);
      assert.equal(credit.hold(wallet, 3 * CU), false, "others may take it for dead soon");
      await refill(credit, runtime, wallet);
      assert.equal(spend(credit, wallet, 1), 1);
      faults.isGone = true;
      runtime.jump(SETTINGS.nodeTimeoutMs / 2 + 1);
      assert.equal(credit.hold(wallet, 3 * CU), false);
      await refill(credit, runtime, wallet);
      assert.equal(spend(credit, wallet, 1), 0);
      const asked = faults.count;
      assert.ok(asked > 0);
      let isRefused = false;
      credit.refilled(wallet, () => {
        isRefused = true;
      });
      runtime.advance(300);
      await until(() => isRefused);
      assert.equal(faults.count, asked, "the store does not answer: nobody waits for it");
      faults.isGone = false;
      await credit.flush();
      assert.equal(spend(credit, wallet, 1), 1);
      await credit.close();
      assert.equal(await balanceOf(store, "acc_a"), 1_000_000_000n - BigInt(2 * 3 * CU));
      assert.deepEqual(await audit(store), []);
    },
  );

  test(
    "a process that stood still until it was taken for dead serves the calls that waited for it " +
      `(${engine})`,
    async (t) => {
      const store = await open(t);
      await createPaid(store, "acc_a", 1_000_000_000n);
      const silent = await node(t, store, "silent");
      const other = await node(t, store, "other");
      const wallet = silent.credit.wallet("acc_a");
      await refill(silent.credit, silent.runtime, wallet, SLICE);
      await silent.credit.flush();
      await passUntil(
        other.runtime,
        3_000,
        async () => (await balanceOf(store, "acc_a")) === 1_000_000_000n,
      );
      silent.runtime.jump(SETTINGS.nodeTimeoutMs + 1);
      assert.equal(silent.credit.hold(wallet, 3 * CU), false);
      await refill(silent.credit, silent.runtime, wallet);
      assert.equal(spend(silent.credit, wallet, 1), 1);
      await silent.credit.close();
      await other.credit.close();
      assert.equal(await balanceOf(store, "acc_a"), 1_000_000_000n - BigInt(3 * CU));
      assert.deepEqual(await audit(store), []);
    },
  );

  test(
    "a node that is silent is taken for dead: its unspent credit returns, and it stops and " +
      `begins anew (${engine})`,
    async (t) => {
      const inner = await open(t);
      const { store, faults } = faultyStore(inner);
      await createPaid(inner, "acc_a", BigInt(200 * CU));
      const silent = await node(t, store, "silent");
      const other = await node(t, inner, "other");
      const wallet = silent.credit.wallet("acc_a");
      await refill(silent.credit, silent.runtime, wallet, 200 * CU);
      spend(silent.credit, wallet, 10);
      await silent.credit.flush();
      spend(silent.credit, wallet, 5);
      assert.equal(silent.credit.hold(wallet, 3 * CU), true);
      faults.isGone = true;
      await passUntil(
        other.runtime,
        3_000,
        async () => (await balanceOf(inner, "acc_a")) === BigInt(170 * CU),
      );
      faults.isGone = false;
      await silent.credit.flush();
      assert.match(silent.errors.map(String).join("\n"), new RegExp(`${15 * CU} nano-USD`));
      silent.credit.settle(wallet, ONE_CALL);
      await silent.credit.flush();
      assert.match(silent.errors.map(String).join("\n"), new RegExp(`${3 * CU} nano-USD`));
      assert.equal(wallet.availableN, 0);
      await refill(silent.credit, silent.runtime, wallet, 3 * CU);
      assert.equal(spend(silent.credit, wallet, 1), 1);
      await silent.credit.close();
      await other.credit.close();
      assert.equal(await balanceOf(inner, "acc_a"), BigInt(167 * CU));
      assert.deepEqual(await audit(inner), []);
    },
  );

  test(
    "a wallet that nobody uses is returned and forgotten, and comes back when it is used again " +
      `(${engine})`,
    async (t) => {
      const store = await open(t);
      await createPaid(store, "acc_a", BigInt(1_000 * CU));
      const { credit, runtime } = await node(t, store);
      await refill(credit, runtime, credit.wallet("acc_a"), SLICE);
      spend(credit, credit.wallet("acc_a"), 2);
      for (let rounds = 0; rounds < 3; rounds++) {
        await passUntil(runtime, 1_000, () => credit.size === 0);
        assert.equal(await balanceOf(store, "acc_a"), BigInt(1_000 * CU - (rounds + 1) * 6 * CU));
        await refill(credit, runtime, credit.wallet("acc_a"), SLICE);
        spend(credit, credit.wallet("acc_a"), 2);
      }
      await credit.close();
      assert.deepEqual(await audit(store), []);
    },
  );

  test(`the free allowance is read once a month, counted here and added up in the store (${engine})`, async (t) => {
    const store = await open(t);
    await createAccount(store, "acc_a");
    const { credit, runtime } = await node(t, store);
    const wallet = credit.wallet("acc_a");
    assert.equal(credit.freeUsedCu(wallet), null);
    await refill(credit, runtime, wallet, 0);
    assert.equal(credit.freeUsedCu(wallet), 0);
    const free = { ...ONE_CALL, heldN: 0, chargeN: 0, freeCu: 3 };
    credit.holdFree(wallet, 3);
    credit.holdFree(wallet, 4);
    assert.equal(credit.freeUsedCu(wallet), 7, "held ones count");
    credit.release(wallet, 0, 4);
    credit.settle(wallet, free);
    assert.equal(credit.freeUsedCu(wallet), 3);
    await credit.flush();
    credit.holdFree(wallet, 3);
    credit.settle(wallet, free);
    await credit.flush();
    assert.deepEqual(await store.db.selectFrom("allowance_month").selectAll().execute(), [
      { account_id: "acc_a", month: 672n, used_cu: 6n },
    ]);
    runtime.jump(31 * 86_400_000);
    await credit.flush();
    assert.equal(credit.freeUsedCu(wallet), null);
    await credit.close();
    assert.deepEqual(await audit(store), []);
  });

  test(
    "a wall clock that jumps forth and back in between two writes loses and doubles nothing " +
      `(${engine})`,
    async (t) => {
      const store = await open(t);
      const { credit, runtime, wallet } = await leased(t, store);
      for (const hours of [0, 5, -5, 5, -9]) {
        runtime.jump(hours * 3_600_000);
        spend(credit, wallet, 1);
        await credit.flush();
        spend(credit, wallet, 1);
      }
      await credit.close();
      const usage = await store.db
        .selectFrom("usage_hour")
        .select(["hour", "calls"])
        .orderBy("hour")
        .execute();
      assert.ok(usage.length >= 2);
      assert.equal(
        usage.reduce((sum, { calls }) => sum + calls, 0n),
        BigInt((1_000_000_000 - Number(await balanceOf(store, "acc_a"))) / (3 * CU)),
      );
      assert.deepEqual(await audit(store), []);
    },
  );
});

test("a crowd of wallets asks in few transactions, and more than the bound are not leased to", async (t) => {
  const { opened, store } = await countedStore(t);
  const { credit, runtime } = await node(t, store, "node", { maxWallets: 1_000 });
  const wallets = Array.from({ length: 1_200 }, (_, index) => credit.wallet(`acc_${index}`));
  const before = opened();
  for (const wallet of wallets) credit.hold(wallet, CU);
  for (let ms = 0; ms < 1_000; ms += 5) await turn(runtime, 5);
  assert.ok(opened() - before <= 50 + 1, `${opened() - before} transactions in a second`);
  assert.equal(wallets.filter((wallet) => wallet.state === "empty").length, 1_000);
  assert.equal(wallets.filter((wallet) => wallet.state === "unreachable").length, 200);
  assert.equal(credit.size, 1_000);
  await credit.close();
});

test(
  "a caller who waits for a store that does not answer waits two seconds at most, once, and can " +
    "give up",
  async (t) => {
    const { store } = await countedStore(t);
    let hangs = false;
    const { credit, runtime } = await node(t, {
      ...store,
      transaction: (run) => (hangs ? new Promise(() => undefined) : store.transaction(run)),
    });
    hangs = true;
    let calls = 0;
    const wallet = credit.wallet("acc_a");
    credit.hold(wallet, CU);
    credit.refilled(wallet, () => calls++);
    credit.refilled(wallet, () => calls++)();
    runtime.advance(WAIT_MS - 1);
    assert.equal(calls, 0);
    runtime.advance(1);
    assert.equal(calls, 1);
    runtime.advance(10 * WAIT_MS);
    assert.equal(calls, 1);
  },
);

test("once credit may be spent again after a silence, calls wait for it as before", async (t) => {
  const { store } = await countedStore(t);
  await createPaid(store, "acc_a", 1_000_000_000n);
  const held: (() => void)[] = [];
  let hangs = false;
  const { credit, runtime } = await node(t, {
    ...store,
    transaction: (run) =>
      hangs
        ? new Promise((_, reject) => held.push(() => reject(new Error("lost"))))
        : store.transaction(run),
  });
  const wallet = credit.wallet("acc_a");
  await refill(credit, runtime, wallet, 3 * CU);
  hangs = true;
  let waited = 0;
  const wait = (): unknown => credit.refilled(wallet, () => waited++);
  wait();
  await turn(runtime, SETTINGS.nodeTimeoutMs / 2);
  for (const lose of held.splice(0)) lose();
  await turn(runtime, 0);
  assert.equal(waited, 1);
  wait();
  await turn(runtime, 0);
  assert.equal(waited, 2, "at once, while the store is silent");
  hangs = false;
  for (const lose of held.splice(0)) lose();
  await credit.flush().catch(() => credit.flush());
  assert.equal(credit.maySpend(), true);
  wait();
  runtime.advance(0);
  assert.equal(waited, 2, "not at once");
  await until(
    () => waited === 3,
    () => turn(runtime, ROUND_MS),
  );
  assert.equal(spend(credit, wallet, 1), 1);
});

test("a steady load goes on for ten seconds after the store fell silent, from what was leased", async (t) => {
  const { store } = await countedStore(t);
  await createPaid(store, "acc_a", 1_000_000_000_000n);
  let hangs = false;
  const { credit, runtime } = await node(t, {
    ...store,
    transaction: (run) => (hangs ? new Promise(() => undefined) : store.transaction(run)),
  });
  const wallet = credit.wallet("acc_a");
  await refill(credit, runtime, wallet, 3 * CU);
  const load = async (seconds: number): Promise<number> => {
    let served = 0;
    for (let step = 0; step < 20 * seconds; step++) {
      served += spend(credit, wallet, 50);
      await turn(runtime, 50);
    }
    return served;
  };
  await load(10);
  assert.equal(await load(5), 5_000, "the load is steady");
  hangs = true;
  assert.equal(await load(10), 10_000);
  const unwrittenN = credit.unwrittenN();
  const [lease] = await store.db.selectFrom("credit_lease").selectAll().execute();
  assert.ok(lease !== undefined && unwrittenN <= Number(lease.granted_n - lease.spent_n));
  await load(6);
  assert.equal(credit.hold(wallet, 3 * CU), false, "no longer than half the node timeout");
});

test("an answer that comes after this node was taken for dead puts nothing into a wallet", async (t) => {
  const { store } = await countedStore(t);
  await createPaid(store, "acc_a", BigInt(50 * CU));
  const { slowed, let: letGo } = held(store);
  const { credit, runtime, errors } = await node(t, slowed);
  const wallet = credit.wallet("acc_a");
  const answer = letGo();
  const asked = refill(credit, runtime, wallet, 3 * CU);
  await until(async () => (await balanceOf(store, "acc_a")) === 0n);
  await store.db.updateTable("node").set({ state: "dead" }).execute();
  await credit.flush();
  answer.resolve();
  await asked;
  assert.equal(wallet.availableN, 0);
  assert.match(String(errors), /epoch is over/);
  assert.equal(await balanceOf(store, "acc_a"), BigInt(50 * CU));
  await credit.close();
});

test(
  "an account that is used while its idle credit is being returned gets new credit as soon as " +
    "that is done",
  async (t) => {
    const { store } = await countedStore(t);
    await createPaid(store, "acc_a", BigInt(50 * CU));
    const { slowed, let: letGo } = held(store);
    const { credit, runtime } = await node(t, slowed);
    const wallet = credit.wallet("acc_a");
    await refill(credit, runtime, wallet, 3 * CU);
    runtime.jump(SETTINGS.flushIntervalMs * 100);
    await credit.flush();
    const answers = [letGo(), letGo()];
    answers[0]?.resolve();
    runtime.advance(1_000);
    await until(async () => (await balanceOf(store, "acc_a")) === BigInt(50 * CU));
    assert.equal(credit.hold(wallet, 3 * CU), false);
    runtime.advance(10 * ROUND_MS);
    answers[1]?.resolve();
    await until(() => {
      runtime.advance(1);
      return wallet.availableN === 50 * CU;
    });
    assert.equal(credit.wallet("acc_a"), wallet);
    await credit.close();
    assert.deepEqual(await audit(store), []);
  },
);

test("credit is spent on while the return of what is idle takes longer than a node may be silent", async (t) => {
  const { store } = await countedStore(t);
  await createPaid(store, "acc_a", BigInt(50 * CU));
  await createPaid(store, "acc_b", BigInt(50 * CU));
  const { slowed, let: letGo } = held(store);
  const { credit, runtime } = await node(t, slowed);
  await refill(credit, runtime, credit.wallet("acc_a"), 3 * CU);
  await refill(credit, runtime, credit.wallet("acc_b"), 3 * CU);
  runtime.jump(SETTINGS.flushIntervalMs * 100);
  await credit.flush();
  assert.equal(spend(credit, credit.wallet("acc_b"), 1), 1);
  const [flush, idleReturn] = [letGo(), letGo()];
  flush.resolve();
  runtime.advance(1_000);
  await until(async () => (await balanceOf(store, "acc_a")) === BigInt(50 * CU));
  for (let ms = 0; ms < SETTINGS.nodeTimeoutMs; ms += SETTINGS.flushIntervalMs) {
    await until(() => runtime.pendingTimers() > 0);
    runtime.advance(SETTINGS.flushIntervalMs);
    assert.equal(credit.hold(credit.wallet("acc_b"), 3 * CU), true, `after ${ms} ms`);
    credit.release(credit.wallet("acc_b"), 3 * CU);
  }
  idleReturn.resolve();
  await credit.close();
  assert.deepEqual(await audit(store), []);
});

test("a grant is what is needed now, and ahead of need no more than half of what is left", () => {
  const grant = (balanceN: number, shortN: number, wantedN: number) =>
    grantOf(balanceN, { shortN, wantedN }, 100);
  assert.equal(grant(0, 10, 100), 0);
  assert.equal(grant(30, 10, 100), 30);
  assert.equal(grant(400, 10, 1_000), 100);
  assert.equal(grant(1_000, 10, 10_000), 500);
  assert.equal(grant(1_000, 800, 10_000), 800);
  assert.equal(grant(1_000, 5_000, 0), 1_000);
  assert.equal(grant(1_000_000, 10, 5_000), 5_000);
  assert.equal(grant(1_000, 0, 0), 0);
});

interface Node {
  readonly credit: Credit;
  readonly runtime: SimulatedWorld;
  readonly errors: readonly unknown[];
}

async function node(
  _t: TestContext,
  store: Store,
  id = "node",
  settings: Partial<CreditSettings> = {},
  agreedMs?: () => number,
): Promise<Node> {
  const runtime = simulatedWorld(1);
  const errors: unknown[] = [];
  const credit = await openCredit({
    store,
    runtime,
    node: { id, region: "" },
    settings: { ...SETTINGS, ...settings },
    ...(agreedMs === undefined ? {} : { agreedMs }),
    onError: (error) => errors.push(error),
  });
  return { credit, runtime, errors };
}

/** A node that has leased a slice of the credit of `acc_a`. */
async function leased(t: TestContext, store: Store): Promise<Node & { readonly wallet: Wallet }> {
  await createPaid(store, "acc_a", 1_000_000_000n);
  const created = await node(t, store);
  const wallet = created.credit.wallet("acc_a");
  await refill(created.credit, created.runtime, wallet, SLICE);
  return { ...created, wallet };
}

/** Lets an account ask, and waits for the answer. */
async function refill(
  credit: Credit,
  runtime: SimulatedWorld,
  wallet: Wallet,
  amountN = 0,
): Promise<void> {
  let isDone = false;
  if (amountN > 0 && credit.hold(wallet, amountN)) credit.release(wallet, amountN);
  credit.refilled(wallet, () => {
    isDone = true;
  });
  runtime.advance(ROUND_MS);
  await until(() => isDone);
}

/** Calls that were paid for. */
function spend(credit: Credit, wallet: Wallet, calls: number): number {
  for (let call = 0; call < calls; call++) {
    if (!credit.hold(wallet, 3 * CU)) return call;
    credit.settle(wallet, ONE_CALL);
  }
  return calls;
}

/** Moves time and lets what falls due reach the store. */
async function turn(runtime: SimulatedWorld, ms: number): Promise<void> {
  runtime.advance(ms);
  for (let times = 0; times < 5; times++) await new Promise((resolve) => setTimeout(resolve, 0));
}

async function until(
  isDone: () => boolean | Promise<boolean>,
  meanwhile: () => Promise<void> = () => new Promise(setImmediate),
): Promise<void> {
  for (const deadline = performance.now() + MOST_MS; !(await isDone()); await meanwhile()) {
    if (performance.now() > deadline) throw new Error("it did not come to this");
  }
}

/**
 * Lets time pass until something has come about, however slow the store is: no time passes while
 * the periodic work of the node is under way, or half of the node timeout could, and it would stop.
 */
function passUntil(
  runtime: SimulatedWorld,
  stepMs: number,
  isDone: () => boolean | Promise<boolean>,
): Promise<void> {
  return until(isDone, async () => {
    await until(() => runtime.pendingTimers() > 0);
    await turn(runtime, stepMs);
  });
}

async function countedStore(
  t: TestContext,
): Promise<{ readonly store: Store; readonly opened: () => number }> {
  const { place, remove } = await newPlace("sqlite");
  const inner = await openStore(place);
  t.after(async () => {
    await inner.close();
    await remove();
  });
  let count = 0;
  return {
    opened: () => count,
    store: {
      ...inner,
      transaction(run) {
        count += 1;
        return inner.transaction(run);
      },
    },
  };
}

/** A store whose answers are kept back: each `let` keeps back the next one until it is resolved. */
function held(store: Store): {
  readonly slowed: Store;
  readonly let: () => PromiseWithResolvers<void>;
} {
  const gates: PromiseWithResolvers<void>[] = [];
  const transaction: Store["transaction"] = async (run) => {
    const admission = gates.shift();
    const result = await store.transaction(run);
    await admission?.promise;
    return result;
  };
  const letGo = () => {
    const admission = Promise.withResolvers<void>();
    gates.push(admission);
    return admission;
  };
  return { slowed: { ...store, transaction }, let: letGo };
}
