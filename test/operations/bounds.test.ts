// How many requests the API reads and serves at once, and that every place becomes free again.
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import type { AuditFindings } from "../../src/hosted/audit/audit.ts";
import { openStore } from "../../src/shared/store/store.ts";
import { OPERATOR_TOKEN, serveApi } from "../fakes/hosted.ts";
import { newPlace } from "../fakes/stores.ts";

test("a body that stops arriving holds a place until its caller is gone", async (t) => {
  const { place, remove } = await newPlace("sqlite");
  t.after(remove);
  const store = await openStore(place);
  t.after(() => store.close());
  const api = await serveApi(t, store, {
    limits: { maxReading: 2, maxUnderWay: 1, missesPerMinute: 3, writesPerMinute: 10_000 },
  });
  const sockets = [await halfRequest(api.url), await halfRequest(api.url)];
  const refused = await until(
    async () => (await api.call("POST /api/v1/agent/keys", { body: {} })).status,
    503,
  );
  assert.equal(refused, 503);
  assert.equal(
    (await api.call("GET /api/v1/agent/pricing")).status,
    200,
    "what has no body is served meanwhile",
  );
  for (const socket of sockets) socket.destroy();
  assert.equal(
    await until(async () => (await api.call("POST /api/v1/agent/keys", { body: {} })).status, 201),
    201,
  );
});

test("requests beyond the bound are refused, not queued, and the others are all answered", async (t) => {
  const { place, remove } = await newPlace("sqlite");
  t.after(remove);
  const store = await openStore(place);
  t.after(() => store.close());
  const held: (() => void)[] = [];
  const audit = () =>
    new Promise<AuditFindings>((resolve) =>
      held.push(() => resolve({ books: [], money: [], unread: [] })),
    );
  const api = await serveApi(t, store, {
    audit,
    limits: { maxReading: 9, maxUnderWay: 3, missesPerMinute: 3, writesPerMinute: 10_000 },
  });
  const statuses: number[] = [];
  const asked = Array.from({ length: 10 }, async () =>
    statuses.push((await api.call("GET /api/v1/operator/audit", { token: OPERATOR_TOKEN })).status),
  );
  assert.equal(await until(async () => statuses.length, 7), 7);
  assert.deepEqual(new Set(statuses), new Set([503]));
  for (const release of held) release();
  await Promise.all(asked);
  assert.equal(statuses.filter((it) => it === 200).length, 3);
  assert.equal(held.length, 1, "three who ask at once share one audit");
  assert.equal((await api.call("GET /api/v1/agent/chains")).status, 200);
});

/** A request whose body never comes whole. */
function halfRequest(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(
        "POST /api/v1/agent/keys HTTP/1.1\r\nHost: a\r\nContent-Type: " +
          'application/json\r\nContent-Length: 20\r\n\r\n{"name":',
        () => resolve(socket),
      );
    });
    socket.on("error", reject);
  });
}

/** Asks until the answer is the expected one, for a minute at most. */
async function until<T>(ask: () => Promise<T>, expected: T): Promise<T> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    const answer = await ask();
    if (answer === expected || performance.now() > deadline) return answer;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test("an audit that outlasts its request goes on, and the next request gets it", async (t) => {
  const { place, remove } = await newPlace("sqlite");
  t.after(remove);
  const store = await openStore(place);
  t.after(() => store.close());
  const held: (() => void)[] = [];
  const found: AuditFindings = {
    books: [],
    money: [],
    unread: [{ chainId: 7, reason: "it is gone" }],
  };
  const api = await serveApi(t, store, {
    audit: () => new Promise<AuditFindings>((resolve) => held.push(() => resolve(found))),
  });
  const ask = () => api.call("GET /api/v1/operator/audit", { token: OPERATOR_TOKEN });
  const first = ask();
  await until(async () => held.length, 1);
  api.runtime.advance(20_000);
  const late = await first;
  assert.deepEqual(
    [late.outcome, late.headers.get("retry-after")],
    ["getOperatorAudit unavailable", "5"],
  );
  held[0]?.();
  await new Promise(setImmediate);
  const { json } = await ask();
  assert.deepEqual(
    [json.ok, json.unread_chains, held.length],
    [false, [{ chain_id: 7, reason: "it is gone" }], 1],
  );
  api.runtime.advance(60_000);
  const fresh = ask();
  await until(async () => held.length, 2);
  held[1]?.();
  assert.equal((await fresh).status, 200, "later it is done anew");
});
