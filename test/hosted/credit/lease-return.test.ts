// The return of idle leases beside batches that are being written, calls that end late, and the end
// of an epoch: on both engines a charge always finds its lease, and no lease counts twice.
import assert from "node:assert/strict";
import { test } from "node:test";
import { audit } from "../../../src/hosted/audit/audit.ts";
import type { Credit, Wallet } from "../../../src/hosted/credit/credit.ts";
import { ROUND_MS } from "../../../src/hosted/credit/refill-batcher.ts";
import type { Store } from "../../../src/shared/store/store.ts";
import { openCredit } from "../../fakes/credit.ts";
import { type SimulatedWorld, simulatedWorld } from "../../fakes/runtime.ts";
import { eachStore } from "../../fakes/stores.ts";
import { balanceOf, createPaid } from "../accounts/account-fixture.ts";

const CU = 5_000;
const PRICE = 3 * CU;
const PAID = 1_000_000_000n;
const FLUSH_MS = 1_000;
const IDLE_MS = 5_000;
/** Of real time, for what a store has to finish. */
const MOST_MS = 60_000;
const ONE_CALL = {
  keyId: "key_1",
  method: "eth_call",
  cu: 3,
  heldN: PRICE,
  chargeN: PRICE,
  freeCu: 0,
} as const;

eachStore(({ engine, open }) => {
  for (const cause of ["a call that took long", "eviction"] as const) {
    test(`a lease stays while a charge on it is being written: ${cause} (${engine})`, async (t) => {
      const store = gated(await open(t));
      await createPaid(store, "acc_a", PAID);
      const { credit, runtime, errors } = await node(store);
      const wallet = credit.wallet("acc_a");
      await refill(credit, runtime, wallet);
      assert.equal(credit.hold(wallet, PRICE), true);
      if (cause !== "eviction") runtime.jump(2 * IDLE_MS);
      const ofTurn = store.gate();
      runtime.advance(FLUSH_MS);
      await until(() => ofTurn.isReached);
      // The call ends while the turn writes, and a reader of the account has its charge written.
      credit.settle(wallet, ONE_CALL);
      if (cause === "eviction") credit.evict("acc_a");
      const ofReader = store.gate();
      const written = credit.flush();
      ofTurn.open();
      await until(() => ofReader.isReached);
      await store.finished();
      ofReader.open();
      await written;
      assert.equal(credit.unwrittenN(), 0);
      if (cause === "eviction") credit.evict("acc_a");
      await until(() => {
        runtime.advance(FLUSH_MS);
        return credit.size === 0;
      });
      assert.equal(await balanceOf(store, "acc_a"), PAID - BigInt(PRICE));
      await credit.close();
      assert.deepEqual(errors, []);
      assert.deepEqual(await audit(store), []);
    });
  }

  test(`a lease of a new epoch outlives the return of the old one (${engine})`, async (t) => {
    const store = gated(await open(t));
    await createPaid(store, "acc_a", PAID);
    const { credit, runtime } = await node(store);
    const wallet = credit.wallet("acc_a");
    await refill(credit, runtime, wallet);
    runtime.jump(2 * IDLE_MS);
    await credit.flush();
    const ofTurn = store.gate();
    const ofReturn = store.gate();
    runtime.advance(FLUSH_MS);
    await until(() => ofTurn.isReached);
    ofTurn.open();
    await until(() => ofReturn.isReached);
    await store.db.updateTable("node").set({ state: "dead" }).execute();
    await credit.flush();
    await refill(credit, runtime, wallet);
    assert.equal(credit.hold(wallet, PRICE), true);
    ofReturn.open();
    await store.finished();
    await refill(credit, runtime, wallet);
    const leases = await store.db.selectFrom("credit_lease").selectAll().execute();
    const grantedN = leases.reduce((sum, lease) => sum + Number(lease.granted_n), 0);
    assert.equal(wallet.availableN + PRICE, grantedN);
    credit.settle(wallet, ONE_CALL);
    await credit.close();
    assert.equal(await balanceOf(store, "acc_a"), PAID - BigInt(PRICE));
    assert.deepEqual(await audit(store), []);
  });

  test(`a batch whose lease is gone ends the epoch once, not for ever (${engine})`, async (t) => {
    const store = gated(await open(t));
    await createPaid(store, "acc_a", PAID);
    await createPaid(store, "acc_b", PAID);
    const { credit, runtime, errors } = await node(store);
    for (const id of ["acc_a", "acc_b"]) {
      await refill(credit, runtime, credit.wallet(id));
      assert.equal(credit.hold(credit.wallet(id), PRICE), true);
      credit.settle(credit.wallet(id), ONE_CALL);
    }
    const gone = await store.db
      .deleteFrom("credit_lease")
      .where("account_id", "=", "acc_a")
      .returning("granted_n")
      .executeTakeFirstOrThrow();
    await store.db
      .updateTable("account")
      .set((eb) => ({ balance_n: eb("balance_n", "+", gone.granted_n) }))
      .where("id", "=", "acc_a")
      .execute();
    await credit.flush();
    const texts = errors.map(String);
    assert.equal(texts.length, 2, texts.join("\n"));
    assert.match(texts[0] ?? "", /does not have leases/);
    assert.match(texts[1] ?? "", new RegExp(`${2 * PRICE} nano-USD`));
    for (const id of ["acc_a", "acc_b"]) {
      await refill(credit, runtime, credit.wallet(id));
      assert.equal(credit.hold(credit.wallet(id), PRICE), true);
      credit.settle(credit.wallet(id), ONE_CALL);
    }
    await credit.close();
    for (const id of ["acc_a", "acc_b"])
      assert.equal(await balanceOf(store, id), PAID - BigInt(PRICE));
    assert.equal(errors.length, 2);
    assert.deepEqual(await audit(store), []);
  });
});

interface Node {
  readonly credit: Credit;
  readonly runtime: SimulatedWorld;
  readonly errors: readonly unknown[];
}

async function node(store: Store): Promise<Node> {
  const runtime = simulatedWorld(1);
  const errors: unknown[] = [];
  const credit = await openCredit({
    store,
    runtime,
    node: { id: "node", region: "" },
    settings: {
      flushIntervalMs: FLUSH_MS,
      nodeTimeoutMs: 300_000,
      minSliceN: 100 * CU,
      idleMs: IDLE_MS,
    },
    onError: (error) => errors.push(error),
  });
  return { credit, runtime, errors };
}

/** Lets an account ask, and waits for the answer. */
async function refill(credit: Credit, runtime: SimulatedWorld, wallet: Wallet): Promise<void> {
  let isDone = false;
  if (credit.hold(wallet, PRICE)) credit.release(wallet, PRICE);
  credit.refilled(wallet, () => {
    isDone = true;
  });
  runtime.advance(ROUND_MS);
  await until(() => isDone);
}

interface Gate {
  readonly isReached: boolean;
  readonly open: () => void;
}

interface GatedStore extends Store {
  /** Keeps back the next transaction before it begins, until the gate is opened. */
  gate(): Gate;
  /** Every transaction that is not kept back has ended, and so has what followed at once. */
  finished(): Promise<void>;
}

function gated(store: Store): GatedStore {
  const gates: (() => Promise<void>)[] = [];
  const running = new Set<Promise<unknown>>();
  return {
    ...store,
    async transaction(run) {
      await gates.shift()?.();
      const result = store.transaction(run);
      running.add(result);
      return result.finally(() => running.delete(result));
    },
    gate() {
      const opened = Promise.withResolvers<void>();
      let isReached = false;
      gates.push(() => {
        isReached = true;
        return opened.promise;
      });
      return {
        get isReached() {
          return isReached;
        },
        open: () => opened.resolve(),
      };
    },
    async finished() {
      for (let times = 0; times < 10; times++) {
        await new Promise(setImmediate);
        await Promise.allSettled(running);
      }
    },
  };
}

async function until(isDone: () => boolean): Promise<void> {
  for (const deadline = performance.now() + MOST_MS; !isDone(); ) {
    await new Promise(setImmediate);
    if (performance.now() > deadline) throw new Error("it did not come to this");
  }
}
