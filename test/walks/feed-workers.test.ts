// The live feed of a service of several workers, real processes behind real sockets: calls at every
// worker reach a reader at any of them once, filters hold everywhere, and decisions are found
// wherever they were made.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startProcess } from "../fakes/process.ts";
import { configText } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";
import { openCaller, type WorkerCaller } from "../fakes/worker-load.ts";
import { type EventReader, watchEvents } from "./feed-reader.ts";

const TOKEN = "operator-of-the-feed-over-workers-0123456789";
const AS_OPERATOR = { authorization: `Bearer ${TOKEN}` };
const WORKERS = 2;
const CALLS_EACH = 3;
const PAUSE_MS = 200;

test("calls at every worker reach each reader once, and open to their decisions", async (t) => {
  const upstream = await scriptedUpstream();
  t.after(() => upstream.close());
  const server = { port: 0, workers: WORKERS, operator_token: TOKEN };
  const text = configText([{ id: "a", url: upstream.url }], { server }, {}, "public");
  const { url } = await startProcess(t, text);
  const port = Number(new URL(url).port);
  const events = `${url}/api/v1/operator/events`;
  // Each on a connection of its own, so at any worker.
  const readers = await Promise.all(
    Array.from({ length: 4 }, () => watchEvents(events, AS_OPERATOR)),
  );
  const filtered = await watchEvents(`${events}?method=eth_gasPrice`, AS_OPERATOR);
  t.after(() => {
    for (const reader of [...readers, filtered]) reader.leave();
  });
  for (const reader of [...readers, filtered]) await reader.next("hello");
  const callers: WorkerCaller[] = [];
  const seen = new Set<string | null>();
  await until("callers at every worker", async () => {
    const caller = openCaller(t, port);
    await caller.call();
    callers.push(caller);
    seen.add(caller.worker);
    return seen.size === WORKERS && callers.length >= 4;
  });
  // A worker hears a little later that somebody watches elsewhere. Few calls: all are shown.
  const workersSeen = ({ events: heard }: EventReader): number =>
    new Set(heard.flatMap(({ type, data }) => (type === "call" ? [data.worker] : []))).size;
  await until("calls of every worker at every reader", async () => {
    await Promise.all(callers.map((caller) => caller.call()));
    await sleep(PAUSE_MS);
    return readers.every((reader) => workersSeen(reader) === WORKERS);
  });
  const ids = (reader: EventReader): readonly string[] =>
    reader.events.filter(({ type }) => type === "call").map(({ data }) => data.request_id);
  const before = readers.map((reader) => reader.events.length);
  for (let n = 0; n < CALLS_EACH; n++) await Promise.all(callers.map((caller) => caller.call()));
  const rare = await fetch(`${url}/rpc/1`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] }),
  });
  const rareId = rare.headers.get("x-svc-request-id") ?? "";
  assert.equal(rare.status, 200);
  for (const [at, reader] of readers.entries()) {
    await reader.next("call", ({ request_id }) => request_id === rareId);
    await until("the rest", () => {
      const late = reader.events.slice(before[at]).filter(({ type }) => type === "call");
      return late.length >= CALLS_EACH * callers.length + 1;
    });
    assert.equal(new Set(ids(reader)).size, ids(reader).length, "each once");
  }
  await filtered.next("call");
  assert.deepEqual(ids(filtered), [rareId]);
  const calls = readers[0]?.events.filter(({ type }) => type === "call") ?? [];
  for (const worker of seen) {
    const id = calls.find(({ data }) => data.worker === worker)?.data.id;
    const decision = await fetch(`${url}/api/v1/operator/decisions/${id}`, {
      headers: AS_OPERATOR,
    });
    assert.equal(decision.status, 200, `of worker ${worker}`);
    assert.match(await decision.text(), new RegExp(`"worker":"${worker}"`));
  }
});
