// Jobs that one node does for all: exactly one does each, and another takes over from a dead one
// within the node timeout.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ownerAmong } from "../../src/core/workers/rendezvous.ts";
import { realRuntime } from "../../src/runtime.ts";
import {
  claimsOf,
  createJobClaims,
  repeatJob,
  type SingleJob,
} from "../../src/shared/nodes/job-claims.ts";
import { openStore, type Store } from "../../src/shared/store/store.ts";
import { until } from "../fakes/service-fixture.ts";
import { eachStore } from "../fakes/stores.ts";

/** So long that no machine is slow enough for it: a test that wants it over says so. */
const LONG_MS = 600_000;

/** Lets claims end earlier, as if so much more of the database's time had gone by. */
async function age(store: Store, byMs: number): Promise<void> {
  await store.db
    .updateTable("job")
    .set((eb) => ({ claimed_until: eb("claimed_until", "-", BigInt(byMs)) }))
    .execute();
}

eachStore(({ engine, open, place }) => {
  test(`of many nodes that try at one time one does a job (${engine})`, async (t) => {
    const store = await open(t);
    let runs = 0;
    const nodes = ["a", "b", "c", "d"].map((nodeId) =>
      createJobClaims({ store, runtime: realRuntime, nodeId, nodeTimeoutMs: LONG_MS }),
    );
    const job = { name: "audit", everyMs: LONG_MS, run: async () => void runs++ };
    const done = await Promise.all(nodes.map((node) => node.runIfDue(job)));
    assert.deepEqual([runs, done.filter(Boolean).length], [1, 1]);
    assert.deepEqual(await Promise.all(nodes.map((node) => node.runIfDue(job))), [
      false,
      false,
      false,
      false,
    ]);
    const other = { ...job, name: "sweep" };
    assert.equal(await nodes[3]?.runIfDue(other), true);
    assert.equal(runs, 2);
  });

  test(`a job that fails is let go of and is due again in its time (${engine})`, async (t) => {
    const store = await open(t);
    const node = createJobClaims({
      store,
      runtime: realRuntime,
      nodeId: "a",
      nodeTimeoutMs: LONG_MS,
    });
    const fails = async (): Promise<void> => {
      throw new Error("not today");
    };
    await assert.rejects(node.runIfDue({ name: "audit", everyMs: 0, run: fails }), /not today/);
    let runs = 0;
    const run = async () => void runs++;
    await until("it is due", () => node.runIfDue({ name: "audit", everyMs: 0, run }));
    assert.equal(runs, 1);
  });

  test(`a node that dies within a job is followed by another (${engine})`, {
    skip: engine === "sqlite" && "one process at a time",
  }, async (t) => {
    const at = await place(t);
    const dying = await openStore(at);
    const living = await openStore(at);
    t.after(() => living.close());
    const started = Promise.withResolvers<void>();
    const dead = createJobClaims({
      store: dying,
      // It never renews what it claimed: as if it were killed.
      runtime: { ...realRuntime, after: () => () => undefined },
      nodeId: "dead",
      nodeTimeoutMs: LONG_MS,
    });
    void dead.runIfDue({
      name: "audit",
      everyMs: LONG_MS,
      run: () => {
        started.resolve();
        return new Promise(() => undefined);
      },
    });
    await started.promise;
    await dying.close();
    const claims = createJobClaims({
      store: living,
      runtime: realRuntime,
      nodeId: "living",
      nodeTimeoutMs: LONG_MS,
    });
    let runs = 0;
    const job = { name: "audit", everyMs: LONG_MS, run: async () => void runs++ };
    await age(living, LONG_MS / 2);
    assert.equal(await claims.runIfDue(job), false);
    await age(living, LONG_MS / 2);
    const end = repeatJob(
      { runtime: realRuntime, everyMs: 10, claims, onError: assert.ifError },
      job,
    );
    await until("the other one does it", () => runs === 1);
    await end();
  });

  test(`of two nodes with two workers each one worker does a job, and a worker of any node follows it (${engine})`, async (t) => {
    const store = await open(t);
    const mute = { ...realRuntime, after: () => () => undefined };
    const workers = ["n1/1", "n1/2", "n2/1", "n2/2"].map((nodeId) => ({
      nodeId,
      // The first one claims and then renews nothing, as if it were killed within the job.
      claims: createJobClaims({
        store,
        runtime: nodeId === "n1/1" ? mute : realRuntime,
        nodeId,
        nodeTimeoutMs: LONG_MS,
      }),
    }));
    const ran: string[] = [];
    const jobOf = (nodeId: string): SingleJob => ({
      name: "reseal_profiles",
      everyMs: LONG_MS,
      run: async () => {
        ran.push(nodeId);
        if (nodeId === "n1/1") await new Promise(() => undefined);
      },
    });
    const [first, ...others] = workers;
    assert.ok(first !== undefined);
    void first.claims.runIfDue(jobOf(first.nodeId));
    await until("it has begun", () => ran.length === 1);
    const looks = () =>
      Promise.all(others.map(({ claims, nodeId }) => claims.runIfDue(jobOf(nodeId))));
    assert.deepEqual(await looks(), [false, false, false]);
    await age(store, LONG_MS);
    assert.equal((await looks()).filter(Boolean).length, 1);
    assert.equal(ran.length, 2, ran.join());
    assert.deepEqual(await looks(), [false, false, false], "it is not due again");
  });

  test(`times that were written before the clock was set back keep nobody from a job (${engine})`, async (t) => {
    const store = await open(t);
    const claims = createJobClaims({
      store,
      runtime: realRuntime,
      nodeId: "a",
      nodeTimeoutMs: LONG_MS,
    });
    let runs = 0;
    const job = { name: "audit", everyMs: LONG_MS, run: async () => void runs++ };
    await claims.runIfDue(job);
    const HOUR_MS = 3_600_000n;
    const later = (column: "due_at" | "claimed_until", byMs: bigint) =>
      store.db
        .updateTable("job")
        .set((eb) => ({ [column]: eb("due_at", "+", byMs) }))
        .execute();
    await later("claimed_until", -(BigInt(LONG_MS) / 2n));
    await store.db.updateTable("job").set({ due_at: 0n }).execute();
    assert.equal(await claims.runIfDue(job), false, "a claim that holds");
    await store.db.updateTable("job").set({ claimed_until: 0n }).execute();
    assert.equal(await claims.runIfDue(job), true);
    assert.equal(await claims.runIfDue(job), false, "not due");
    await later("due_at", HOUR_MS);
    assert.equal(await claims.runIfDue(job), true, "due an hour too late");
    await later("claimed_until", HOUR_MS);
    await store.db.updateTable("job").set({ due_at: 0n }).execute();
    assert.equal(await claims.runIfDue(job), true, "claimed for an hour too long");
    assert.equal(runs, 4);
  });

  test(`a long job keeps its claim (${engine})`, async (t) => {
    const store = await open(t);
    const parts = { store, runtime: realRuntime, nodeTimeoutMs: 400 };
    const first = createJobClaims({ ...parts, nodeId: "a" });
    const second = createJobClaims({ ...parts, nodeId: "b" });
    const over = Promise.withResolvers<void>();
    const job = { name: "audit", everyMs: LONG_MS, run: () => over.promise };
    const running = first.runIfDue(job);
    await until("it is claimed", async () => {
      const row = await store.db.selectFrom("job").selectAll().executeTakeFirst();
      return row?.node_id === "a" && row.claimed_until > 0n;
    });
    let claimedUntil = 0n;
    for (let renewals = 0; renewals < 3; ) {
      const row = await store.db.selectFrom("job").selectAll().executeTakeFirstOrThrow();
      if (row.claimed_until !== claimedUntil) renewals++;
      claimedUntil = row.claimed_until;
      await sleep(20);
    }
    over.resolve();
    assert.equal(await running, true);
    assert.equal(await second.runIfDue(job), false);
  });
});

test("before any worker serves, a job of the start is done by the first worker alone", async () => {
  const done: string[] = [];
  for (const self of ["1", "2", "3"]) {
    const claims = claimsOf({ self, ownerOf: () => self });
    await claims.runIfDue({ name: "reseal", everyMs: 0, run: async () => void done.push(self) });
  }
  assert.deepEqual(done, ["1"]);
});

test("of the workers of one machine exactly one does each job, whichever of them live", async () => {
  for (const living of [["1"], ["1", "2"], ["2", "3", "7"]]) {
    const ran: string[] = [];
    for (const self of living) {
      const claims = claimsOf({ self, ownerOf: (key) => ownerAmong(living, key) ?? self });
      for (const name of ["audit", "sweep", "reseal_channels"])
        await claims.runIfDue({ name, everyMs: LONG_MS, run: async () => void ran.push(name) });
    }
    assert.deepEqual(ran.toSorted(), ["audit", "reseal_channels", "sweep"], living.join());
  }
});
