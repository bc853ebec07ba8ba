// The reload that every node was last asked for, on both engines of the store.
import assert from "node:assert/strict";
import { test } from "node:test";
import { lastAskedReload, requestReload } from "../../src/shared/changes/asked-reloads.ts";
import { currentPosition, readChanges } from "../../src/shared/changes/change-log.ts";
import { eachStore } from "../fakes/stores.ts";

const BY = { actor: "operator token", address: "192.0.2.1" };

eachStore(({ engine, open }) => {
  test(`the last reload is found, and told in the log of changes (${engine})`, async (t) => {
    const store = await open(t);
    assert.equal(await lastAskedReload(store), null);
    const from = await currentPosition(store);
    await requestReload(store, { ...BY, node: "n1" }, { ref: "first", wallMs: 1 });
    const first = await lastAskedReload(store);
    await requestReload(store, { ...BY, node: "n2" }, { ref: "second", wallMs: 1 });
    const second = await lastAskedReload(store);
    assert.ok(first !== null && second !== null);
    assert.notEqual(first.id, second.id, "the clock of a node does not matter");
    for (const [asked, node] of [
      [first, "n1"],
      [second, "n2"],
    ] as const) {
      const { id, ageMs, ...rest } = asked;
      assert.deepEqual(rest, { ...BY, node });
      assert.match(id, /^rld_/);
      assert.ok(ageMs >= 0 && ageMs < 600_000, `${ageMs}`);
    }
    const { read } = await readChanges(store, from);
    assert.deepEqual(read, {
      kind: "some",
      changes: ["first", "second"].map((ref) => ({ topic: "operator", ref })),
    });
  });
});
