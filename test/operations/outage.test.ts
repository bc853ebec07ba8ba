// The API while its store cannot work: the database is gone and comes back, the disk is full.
// Refusals say so, nothing is half done.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { audit } from "../../src/hosted/audit/audit.ts";
import { openStore } from "../../src/shared/store/store.ts";
import { serveApi } from "../fakes/hosted.ts";
import { postgresAvailability, startCluster } from "../fakes/postgres.ts";
import { newPlace } from "../fakes/stores.ts";

const postgres = postgresAvailability();
const skip = postgres.kind === "yes" ? false : postgres.reason;

test("a database that is gone is told as unavailable without its address, and works again when it " +
  "is back", {
  skip,
}, async (t) => {
  const cluster = await startCluster({ durable: true });
  t.after(() => cluster.stop());
  const url = cluster.urlOf("postgres");
  const store = await openStore({ url, dataDir: "" });
  t.after(() => store.close());
  const api = await serveApi(t, store);
  const { json } = await api.call("POST /api/v1/keys", { body: {} });
  const token: string = json.management_token;
  await cluster.crash();
  for (const [what, sent] of [
    ["GET /api/v1/keys", { token }],
    ["POST /api/v1/agent/keys", {}],
    [`POST /api/v1/keys/${json.id}/rotate`, { token, body: {} }],
    ["GET /api/v1/keys/current", { token: json.key }],
  ] as const) {
    const answer = await api.call(what, sent);
    assert.match(answer.outcome, / unavailable$/, what);
    assert.equal(answer.headers.get("retry-after"), "2");
    assert.ok(
      !answer.text.includes("127.0.0.1") || answer.json.error.docs_url.includes("127.0.0.1"),
    );
  }
  assert.equal(
    (await api.call("GET /api/v1/agent/pricing")).status,
    200,
    "what needs no store is answered",
  );
  assert.equal(api.log().split("\n").length, 2, "an outage is logged once, not once a request");
  assert.ok(!api.log().includes(url));
  await cluster.restart();
  const back = await api.call("GET /api/v1/keys", { token });
  assert.equal(back.json.keys?.length, 1, back.text);
  assert.equal((await api.call("POST /api/v1/agent/keys")).status, 201);
  assert.deepEqual(await audit(store), []);
});

test("a full disk refuses new keys whole, and old ones go on", async (t) => {
  const { place, remove } = await newPlace("sqlite");
  t.after(remove);
  const store = await openStore(place);
  t.after(() => store.close());
  const api = await serveApi(t, store);
  const { json } = await api.call("POST /api/v1/keys", { body: {} });
  const { rows } = await sql<{ readonly page_count: bigint }>`pragma page_count`.execute(store.db);
  await sql`pragma max_page_count = ${sql.lit(Number(rows[0]?.page_count ?? 0n) + 2)}`.execute(
    store.db,
  );
  let made = 0;
  let outcome = "";
  for (; made < 2_000; made++) {
    ({ outcome } = await api.call("POST /api/v1/agent/keys", { body: { name: "x".repeat(100) } }));
    if (!outcome.endsWith("201")) break;
  }
  assert.match(outcome, /unavailable$/);
  const counts = await Promise.all(
    (["account", "api_key", "key_secret"] as const).map((it) =>
      store.db.selectFrom(it).select("created_at").execute(),
    ),
  );
  assert.deepEqual(
    counts.map((it) => it.length),
    [made + 1, made + 1, made + 1],
  );
  assert.deepEqual(await audit(store), []);
  assert.equal((await api.call("GET /api/v1/keys/current", { token: json.key })).status, 200);
});
