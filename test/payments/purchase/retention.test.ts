// What is sealed in purchases, on both engines: after a change of the secret purchases that are
// under way go on, and results are shown again; without the secret nothing is lost and nothing is
// told wrongly. And the tasks that go on by themselves.
import assert from "node:assert/strict";
import { test } from "node:test";
import { SEALED_PURCHASES } from "../../../src/payments/purchase/record.ts";
import { startWorker } from "../../../src/payments/tasks.ts";
import { Sealer } from "../../../src/secrets/sealer.ts";
import { reseal } from "../../../src/shared/nodes/resealing.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { eachStore } from "../../fakes/stores.ts";
import {
  bring,
  insist,
  offersFor,
  paymentFixture,
  SECRET,
  sign,
  type Wish,
  wordOf,
} from "../payment-fixture.ts";

const UNITS = 1_000_000n;
const WISH: Wish = { purpose: { kind: "create_key", name: "" }, units: UNITS, request: "buy" };
const NEW_SECRET = "another secret of 32 bytes, for tests";

eachStore(({ engine, open }) => {
  test(
    "a new secret: what was sealed with the one before is opened, and sealed anew once " +
      `(${engine})`,
    async (t) => {
      const fixture = paymentFixture(await open(t));
      const life = await fixture.start({ waitMs: 60 });
      fixture.chain.fund("0xa", UNITS);
      fixture.chain.fund("0xb", UNITS);
      const given = sign(fixture, await fixture.run(offersFor(life, WISH)), {
        how: "mpp",
        from: "0xa",
        units: UNITS,
      });
      const first = await insist(fixture, life, { given, wish: WISH });
      assert.ok(first.kind === "paid" && first.fulfilment.kind === "create_key");
      fixture.chain.perBlock = 0;
      const open2 = sign(fixture, await fixture.run(offersFor(life, WISH)), {
        how: "mpp",
        from: "0xb",
        units: UNITS,
        validMs: 900_000,
      });
      assert.equal(wordOf(await fixture.run(bring(life, open2, WISH))), "payment_pending");
      life.kill();
      const sealer = new Sealer(NEW_SECRET, SECRET);
      assert.equal(await reseal(fixture.store, sealer, SEALED_PURCHASES), 5, "with submissions");
      assert.equal(await reseal(fixture.store, sealer, SEALED_PURCHASES), 0);
      const later = await fixture.start({ secret: NEW_SECRET, waitMs: 60 });
      const again = await fixture.run(bring(later, given, WISH));
      assert.deepEqual(again.kind === "paid" && again.fulfilment, first.fulfilment);
      fixture.chain.forgetPool();
      fixture.chain.perBlock = 100;
      assert.equal(
        wordOf(await insist(fixture, later, { given: open2, wish: WISH })),
        "paid",
        "its transaction was opened and sent again",
      );
      const rows = await fixture.store.db
        .selectFrom("purchase")
        .select(["material", "fulfilment"])
        .execute();
      for (const { material, fulfilment } of rows)
        assert.ok(
          sealer.isCurrent(material) && (fulfilment === null || sealer.isCurrent(fulfilment)),
        );
    },
  );

  test(`a secret that is gone: purchases wait for it, and nobody is asked to pay again (${engine})`, async (t) => {
    const fixture = paymentFixture(await open(t));
    const life = await fixture.start({ waitMs: 60 });
    fixture.chain.fund("0xa", UNITS);
    const given = sign(fixture, await fixture.run(offersFor(life, WISH)), {
      how: "mpp",
      from: "0xa",
      units: UNITS,
      validMs: 900_000,
    });
    assert.equal(wordOf(await fixture.run(bring(life, given, WISH))), "payment_pending");
    life.kill();
    await fixture.pass(10_000);
    await fixture.store.db
      .updateTable("purchase")
      .set({ material: new Sealer("a third secret, which nobody has", null).seal("{}", "x") })
      .execute();
    const lost = await fixture.start({ waitMs: 60 });
    await fixture.pass(5_000);
    assert.equal(wordOf(await fixture.run(bring(lost, given, WISH))), "payment_pending");
    assert.match(lost.log(), /SVC_SECRET_PREVIOUS/);
  });
});

test(
  "tasks go on after failures, wait for themselves and not for each other, and end with the " +
    "worker",
  async () => {
    const runtime = simulatedWorld(1);
    const done: string[] = [];
    const errors: unknown[] = [];
    let release = (): void => {};
    const slow = {
      everyMs: 100,
      run() {
        done.push("slow");
        return new Promise<void>((resolve) => {
          release = resolve;
        });
      },
    };
    const failing = {
      everyMs: 100,
      async run() {
        done.push("failing");
        throw new Error("once more");
      },
    };
    const worker = startWorker(runtime, [slow, failing], (error) => errors.push(error));
    const turn = () => new Promise(setImmediate);
    for (let passed = 0; passed < 5; passed++) {
      await turn();
      runtime.advance(100);
    }
    await turn();
    assert.deepEqual(
      [done.filter((it) => it === "slow").length, done.filter((it) => it === "failing").length],
      [1, 6],
    );
    assert.equal(errors.length, 6);
    let isClosed = false;
    const closing = worker.close().then(() => {
      isClosed = true;
    });
    await turn();
    assert.equal(isClosed, false, "what is under way ends first");
    release();
    await closing;
    runtime.advance(10_000);
    await turn();
    assert.equal(done.length, 7);
    assert.equal(runtime.pendingTimers(), 0);
  },
);
