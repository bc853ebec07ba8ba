// Hints between nodes: over a real PostgreSQL they reach every other process, however long they
// are, and over a silent database nothing waits.
import assert from "node:assert/strict";
import { test } from "node:test";
import { realRuntime } from "../../src/runtime.ts";
import { openListener } from "../../src/shared/nodes/listener.ts";
import { NodeHints } from "../../src/shared/nodes/node-hints.ts";
import { openStore } from "../../src/shared/store/store.ts";
import { databaseProxy } from "../fakes/database-proxy.ts";
import { newDatabase, postgresAvailability } from "../fakes/postgres.ts";
import { until } from "../fakes/service-fixture.ts";

const postgres = postgresAvailability();
const skip = postgres.kind === "no" && postgres.reason;

test("hints reach other nodes whole and in order, and no node hears its own", {
  skip,
}, async (t) => {
  const { url, drop } = await newDatabase();
  t.after(drop);
  const errors: unknown[] = [];
  const node = async (self: string) => {
    const store = await openStore({ url, dataDir: "" });
    t.after(() => store.close());
    const signal = await openListener({ url, store, runtime: realRuntime });
    t.after(() => signal.close());
    const onError = (error: unknown): void => void errors.push(error);
    const hints = new NodeHints({ store, runtime: realRuntime, signal, self, onError });
    t.after(() => hints.close());
    const heard: string[] = [];
    hints.subscribe((hint) => void heard.push(hint));
    return { hints, heard };
  };
  const [first, second] = [await node("first"), await node("second")];
  const long = JSON.stringify({ text: "é".repeat(30_000) });
  first.hints.tell('{"n":1}');
  first.hints.tell(long);
  second.hints.tell('{"n":2}');
  first.hints.tell('{"n":3}');
  first.hints.tell("x".repeat(300_000));
  await until("hints", () => second.heard.length === 3 && first.heard.length === 1);
  assert.deepEqual(
    second.heard.map((text) => JSON.parse(text)),
    [{ n: 1 }, JSON.parse(long), { n: 3 }],
  );
  assert.deepEqual(first.heard, ['{"n":2}']);
  assert.deepEqual(errors, []);
});

test("where the database is silent hints are lost, and come again with it", { skip }, async (t) => {
  const { url, drop } = await newDatabase();
  t.after(drop);
  const proxy = await databaseProxy(url);
  t.after(() => proxy.close());
  const store = await openStore({ url: proxy.url, dataDir: "" });
  t.after(() => store.close());
  const direct = await openStore({ url, dataDir: "" });
  t.after(() => direct.close());
  const signal = await openListener({ url, store: direct, runtime: realRuntime });
  t.after(() => signal.close());
  const heard: string[] = [];
  signal.onHint((payload) => void heard.push(payload));
  const silent = { onHint: () => () => {} };
  const errors: unknown[] = [];
  const parts = { store, runtime: realRuntime, signal: silent, self: "cut" };
  const hints = new NodeHints({ ...parts, onError: (error) => void errors.push(error) });
  t.after(() => hints.close());
  hints.tell("1");
  await until("the first", () => heard.length === 1);
  proxy.cut();
  hints.tell("2");
  await until("its failure", () => errors.length === 1);
  hints.tell("3");
  proxy.mend();
  await until("a later one", () => {
    hints.tell("4");
    return heard.some((payload) => payload.endsWith(" 4"));
  });
  assert.equal(errors.length, 1, "said once");
});
