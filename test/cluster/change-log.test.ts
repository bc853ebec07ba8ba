// The log of changes on both engines: everything that was committed is read once, in whatever order
// transactions end, and what was rolled back is not.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import {
  type Change,
  type ChangePosition,
  currentPosition,
  readChanges,
  recordChange,
} from "../../src/shared/changes/change-log.ts";
import { removeOld } from "../../src/shared/nodes/retention.ts";
import type { Store } from "../../src/shared/store/store.ts";
import { seededRandom } from "../fakes/runtime.ts";
import { chanceSeed } from "../fakes/seed.ts";
import { eachStore } from "../fakes/stores.ts";

const WRITERS = 8;
const CHANGES = 40;

eachStore(({ engine, open }) => {
  test(`changes are read once, and only those that were committed (${engine})`, async (t) => {
    const store = await open(t);
    await write(store, { topic: "key", ref: "before" });
    const start = await currentPosition(store);
    await write(store, { topic: "key", ref: "key_1" });
    await assert.rejects(
      store.transaction(async (tx) => {
        await recordChange(tx, { topic: "key", ref: "undone" });
        throw new Error("undone");
      }),
    );
    await store.transaction((tx) =>
      recordChange(tx, { topic: "account", ref: "acc_1" }, { topic: "profile", ref: "acc_1/mine" }),
    );
    const first = await readChanges(store, start);
    assert.deepEqual(first.read, {
      kind: "some",
      changes: [
        { topic: "key", ref: "key_1" },
        { topic: "account", ref: "acc_1" },
        { topic: "profile", ref: "acc_1/mine" },
      ],
    });
    const second = await readChanges(store, first.position);
    assert.deepEqual(second.read, { kind: "some", changes: [] });
  });

  test(`many writers beside a reader: nothing is lost, nothing comes twice (${engine})`, async (t) => {
    const seed = chanceSeed();
    t.diagnostic(`seed ${seed}`);
    const random = seededRandom(seed);
    const store = await open(t);
    let position: ChangePosition = await currentPosition(store);
    const heard: string[] = [];
    let isOver = false;
    const reading = (async () => {
      for (let last = false; !last; ) {
        last = isOver;
        const answer = await readChanges(store, position);
        position = answer.position;
        assert.equal(answer.read.kind, "some");
        if (answer.read.kind === "some") heard.push(...answer.read.changes.map(({ ref }) => ref));
      }
    })();
    await Promise.all(
      Array.from({ length: WRITERS }, async (_, writer) => {
        for (let change = 0; change < CHANGES; change++) await slowly(store, `${writer}:${change}`);
      }),
    );
    isOver = true;
    await reading;
    assert.equal(heard.length, WRITERS * CHANGES);
    assert.equal(new Set(heard).size, WRITERS * CHANGES);

    /** The number is taken at once, and the transaction commits some statements later. */
    async function slowly(to: Store, ref: string): Promise<void> {
      await to.transaction(async (tx) => {
        await recordChange(tx, { topic: "key", ref });
        for (let pauses = Math.floor(random() * 4); pauses > 0; pauses--)
          await sql`select 1`.execute(tx);
      });
    }
  });

  test(`a reader that was away for too long is told that everything may have changed (${engine})`, async (t) => {
    const store = await open(t);
    const start = await currentPosition(store);
    await write(store, { topic: "key", ref: "key_1" });
    const longAgo = { ...start, databaseMs: start.databaseMs - 3_500_000 };
    assert.deepEqual((await readChanges(store, longAgo)).read, { kind: "all" });
    await sql`update change_log set at = at - 3700000`.execute(store.db);
    await write(store, { topic: "key", ref: "key_2" });
    await removeOld(store, "change_log");
    const left = await store.db.selectFrom("change_log").select("ref").execute();
    assert.deepEqual(left, [{ ref: "key_2" }]);
  });

  test(`more changes at a time than are told one by one are told as everything (${engine})`, async (t) => {
    const store = await open(t);
    const start = await currentPosition(store);
    for (let part = 0; part < 11; part++)
      await store.transaction((tx) =>
        recordChange(
          tx,
          ...Array.from(
            { length: 1_000 },
            (_, n) => ({ topic: "key", ref: `${part}:${n}` }) as const,
          ),
        ),
      );
    const { read, position } = await readChanges(store, start);
    assert.deepEqual(read, { kind: "all" });
    await write(store, { topic: "key", ref: "after" });
    assert.equal((await readChanges(store, start)).read.kind, "all");
    const after = await readChanges(store, position);
    assert.ok(after.read.kind === "all" || after.read.changes.at(-1)?.ref === "after");
  });

  test(`a change that commits after later ones were read is read then (${engine})`, {
    skip: engine === "sqlite" && "one transaction at a time",
  }, async (t) => {
    const store = await open(t);
    let position = await currentPosition(store);
    const late = Promise.withResolvers<void>();
    const written = Promise.withResolvers<void>();
    const slow = store.transaction(async (tx) => {
      await recordChange(tx, { topic: "key", ref: "slow" });
      written.resolve();
      await late.promise;
    });
    await written.promise;
    await write(store, { topic: "key", ref: "quick" });
    const first = await readChanges(store, position);
    assert.deepEqual(first.read, { kind: "some", changes: [{ topic: "key", ref: "quick" }] });
    position = first.position;
    late.resolve();
    await slow;
    const second = await readChanges(store, position);
    assert.deepEqual(second.read, { kind: "some", changes: [{ topic: "key", ref: "slow" }] });
  });

  test(`rows of another server, whose numbers are ahead, are read by nobody (${engine})`, {
    skip: engine === "sqlite" && "it has no numbers of transactions",
  }, async (t) => {
    const store = await open(t);
    const position = await currentPosition(store);
    await sql`insert into change_log (xid, topic, ref)
      values ('9000000000'::xid8, 'key', 'restored')`.execute(store.db);
    await write(store, { topic: "key", ref: "new" });
    const first = await readChanges(store, position);
    assert.deepEqual(first.read, { kind: "some", changes: [{ topic: "key", ref: "new" }] });
    const second = await readChanges(store, first.position);
    assert.deepEqual(second.read, { kind: "some", changes: [] });
  });

  test(`a server that knows less than before is no reason to miss something (${engine})`, {
    skip: engine === "sqlite" && "it has one file",
  }, async (t) => {
    const store = await open(t);
    const { databaseMs } = await currentPosition(store);
    const snapshot = "9000000000:9000000000:";
    assert.deepEqual((await readChanges(store, { snapshot, databaseMs })).read, { kind: "all" });
  });
});

function write(store: Store, change: Change): Promise<void> {
  return store.transaction((tx) => recordChange(tx, change));
}
