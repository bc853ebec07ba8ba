// What the processes of nodes tell of themselves, in the store: the last report of each, and none
// of a process that has told nothing for half a minute.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { readReports, writeReport } from "../../src/shared/nodes/node-reports.ts";
import { removeOld } from "../../src/shared/nodes/retention.ts";
import { eachStore } from "../fakes/stores.ts";

eachStore(({ engine, open }) => {
  test(`a report replaces the one before, is read while it is fresh, and goes (${engine})`, async (t) => {
    const store = await open(t);
    const age = (nodeId: string, ms: number) =>
      sql`update node_report set at = at - ${BigInt(ms)} where node_id = ${nodeId}`.execute(
        store.db,
      );
    const names = async (): Promise<readonly string[]> =>
      (await readReports(store)).reports.map(({ nodeId, report }) => `${nodeId} ${report}`).sort();
    await writeReport(store, "n1/1", "1");
    await writeReport(store, "n1/1", "2");
    await writeReport(store, "n2/1", "3");
    assert.deepEqual(await names(), ["n1/1 2", "n2/1 3"]);
    await age("n2/1", 600_000);
    assert.deepEqual(await names(), ["n1/1 2"], "how a silent process is, is not known");
    assert.equal(await removeOld(store, "node_report"), false);
    await writeReport(store, "n2/1", "4");
    assert.deepEqual(await names(), ["n1/1 2", "n2/1 4"]);
    await age("n1/1", 7_200_000);
    await removeOld(store, "node_report");
    const rows = await store.db.selectFrom("node_report").select("node_id").execute();
    assert.deepEqual(rows, [{ node_id: "n2/1" }]);
  });
});
