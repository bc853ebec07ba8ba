// The rows of filters on both engines: who keeps one, what is written into it, and when it goes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { removeOld } from "../../src/shared/nodes/retention.ts";
import { storedFilters } from "../../src/shared/nodes/stored-filters.ts";
import { eachStore } from "../fakes/stores.ts";

function origin(id: string) {
  return {
    id,
    owner: "key k1 ethereum",
    method: "eth_newBlockFilter",
    params: "[]",
    profile: "public",
    named: "premium",
    chain: "ethereum",
    strategy: "priority",
    pin: null,
  };
}

eachStore(({ engine, open }) => {
  test(`a row belongs to the process that took it last (${engine})`, async (t) => {
    const store = await open(t);
    const [one, other] = [storedFilters(store, "n1/1"), storedFilters(store, "n2/1")];
    assert.equal(await one.read("0x10"), null);
    await one.add(origin("0x10"), "mark");
    const { idleMs, ...row } = (await other.read("0x10")) ?? assert.fail("it is there");
    const expected = { ...origin("0x10"), node: "n1/1", claim: 1, isAnswering: false };
    assert.deepEqual(row, { ...expected, mark: "mark" });
    assert.ok(idleMs >= 0 && idleMs < 60_000);
    const taken = await Promise.all([other.take(row), other.take(row)]);
    assert.deepEqual(taken.toSorted(), [false, true], "one of two takes it");
    const [late] = [{ id: "0x10", claim: 1, isAnswering: true, mark: "late", idleMs: 0 }];
    assert.deepEqual(await one.write([late]), new Set());
    assert.deepEqual(await one.kept([{ id: "0x10", claim: 1 }]), new Set());
    const now = { id: "0x10", claim: 2, isAnswering: true, mark: null, idleMs: 0 };
    assert.deepEqual(await other.write([now]), new Set(["0x10"]));
    const read = await one.read("0x10");
    assert.deepEqual(
      [read?.node, read?.claim, read?.isAnswering, read?.mark],
      ["n2/1", 2, true, "mark"],
    );
    await one.removeKept({ id: "0x10", claim: 1 }, 0);
    await other.removeKept({ id: "0x10", claim: 2 }, 290_000);
    assert.deepEqual(await other.kept([{ id: "0x10", claim: 2 }]), new Set(["0x10"]));
    await other.removeKept({ id: "0x10", claim: 2 }, 0);
    assert.equal(await one.read("0x10"), null);
  });

  test(`a row may be added twice, unless another process has taken it (${engine})`, async (t) => {
    const store = await open(t);
    const [one, other] = [storedFilters(store, "n1"), storedFilters(store, "n2")];
    await one.add(origin("0x10"), "first");
    await one.add(origin("0x10"), "second");
    assert.equal((await one.read("0x10"))?.mark, "second");
    assert.equal(await other.take({ id: "0x10", claim: 1 }), true);
    await one.add(origin("0x10"), "late");
    const row = await one.read("0x10");
    assert.deepEqual([row?.node, row?.claim, row?.mark], ["n2", 2, "second"]);
  });

  test(`many rows are written at once, and a poll is never dated back (${engine})`, async (t) => {
    const store = await open(t);
    const records = storedFilters(store, "n1");
    const ids = Array.from({ length: 50 }, (_, at) => `0x${100 + at}`);
    for (const id of ids) await records.add(origin(id), null);
    const updates = ids.map((id, at) => ({
      id,
      claim: 1,
      isAnswering: at % 2 === 0,
      mark: at % 3 === 0 ? `mark ${at}` : null,
      idleMs: 200_000,
    }));
    assert.deepEqual(await records.write(updates), new Set(ids));
    const rows = await Promise.all(ids.map((id) => records.read(id)));
    assert.deepEqual(
      rows.map((row) => [row?.isAnswering, row?.mark]),
      updates.map(({ isAnswering, mark }) => [isAnswering, mark]),
    );
    assert.ok(rows.every((row) => (row?.idleMs ?? 200_000) < 100_000));
    assert.deepEqual(await records.write([]), new Set());
  });

  test(`only the owner removes a row; those that nobody polls are swept (${engine})`, async (t) => {
    const store = await open(t);
    const records = storedFilters(store, "n1");
    await records.add(origin("0x10"), null);
    await records.add(origin("0x11"), null);
    await records.add(origin("0x12"), null);
    assert.equal(await records.remove("0x10", "key k2 ethereum"), null);
    assert.equal(await records.remove("0x10", "key k1 ethereum"), "n1");
    assert.equal(await records.remove("0x10", "key k1 ethereum"), null);
    await store.db.updateTable("filter").set({ polled_at: 0n }).where("id", "=", "0x11").execute();
    assert.equal(await records.remove("0x11", "key k1 ethereum"), null, "it has expired");
    assert.equal(await removeOld(store, "filter"), false);
    assert.equal(await records.read("0x11"), null);
    await store.db.updateTable("filter").set({ polled_at: 0n }).execute();
    await records.touch("0x12");
    await removeOld(store, "filter");
    assert.notEqual(await records.read("0x12"), null);
  });
});
