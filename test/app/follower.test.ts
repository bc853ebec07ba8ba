// A node follows what others change: keys at once, whatever profiles or the store take, and what
// could not be passed on comes again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { followerOf } from "../../src/app/cluster.ts";
import { ChangeFeed } from "../../src/shared/changes/change-feed.ts";
import {
  type Change,
  type ChangesRead,
  currentPosition,
  recordChange,
} from "../../src/shared/changes/change-log.ts";
import type { Store } from "../../src/shared/store/store.ts";
import { simulatedWorld } from "../fakes/runtime.ts";
import { eachStore } from "../fakes/stores.ts";

type Followed = Parameters<typeof followerOf>[0];

test("keys follow a change before this returns, and profiles begin to", () => {
  const told: string[] = [];
  const parts: Followed = {
    keyCache: {
      changed: async (ids) => void told.push(...ids),
      recheck: () => void told.push("every key"),
      setContact: () => {},
      watch: () => {},
    },
    credit: {
      returned: (id) => void told.push(`returned ${id}`),
      recall: (ids) => void told.push(...[...ids].map((id) => `recall ${id}`)),
    },
    loader: {
      changedElsewhere: (ids) => void told.push(...(ids ?? ["every profile"])),
      settled: async () => {},
    },
  };
  const follower = followerOf(parts);
  const some = (...changes: readonly Change[]): ChangesRead => ({ kind: "some", changes });
  follower.changed(
    some(
      { topic: "profile", ref: "acc_1/a" },
      { topic: "profile", ref: "acc_1/b" },
      { topic: "key", ref: "key_1" },
    ),
  );
  assert.deepEqual(told.splice(0), ["key_1", "acc_1/a", "acc_1/b"]);
  follower.changed(some({ topic: "key", ref: "key_2" }, { topic: "recall", ref: "acc_2" }));
  assert.deepEqual(told.splice(0), ["key_2", "recall acc_2"]);
  follower.changed(some({ topic: parseTopic("a later one"), ref: "x" }));
  assert.deepEqual(told, []);
  follower.changed({ kind: "all" });
  assert.deepEqual(told.splice(0), ["every key", "every profile"]);
});

eachStore(({ engine, open }) => {
  test(`changes count as heard after they were passed on, and come again where they were not (${engine})`, async (t) => {
    const store = await open(t);
    const runtime = simulatedWorld(1);
    const passed: string[] = [];
    const errors: unknown[] = [];
    const silentWhenPassed: number[] = [];
    let fails = true;
    const feed: ChangeFeed = new ChangeFeed({
      store,
      runtime,
      signal: { subscribe: () => () => {} },
      pollMs: 1_000_000,
      from: await currentPosition(store),
      apply(read) {
        silentWhenPassed.push(feed.silentMs());
        if (fails) throw new Error("not now");
        if (read.kind === "some") passed.push(...read.changes.map(({ ref }) => ref));
      },
      onError: (error) => void errors.push(error),
    });
    t.after(() => feed.close());
    await write(store, { topic: "key", ref: "key_1" });
    runtime.advance(700);
    await feed.read();
    assert.deepEqual([passed, errors.length, feed.silentMs()], [[], 1, 700]);
    fails = false;
    await feed.read();
    assert.deepEqual([passed, silentWhenPassed, feed.silentMs()], [["key_1"], [700, 700], 0]);
    await feed.read();
    assert.deepEqual(passed, ["key_1"], "nothing comes twice once it was passed on");
  });
});

function parseTopic(topic: string): Change["topic"] {
  return topic as Change["topic"];
}

function write(store: Store, change: Change): Promise<void> {
  return store.transaction((tx) => recordChange(tx, change));
}
