// Feedback on both engines: nothing secret reaches the store, ten an hour, the newest kept and read
// first. And what answers where the earlier API was.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { addFeedback, readFeedback } from "../../src/hosted/feedback.ts";
import { insertManagementToken } from "../../src/hosted/keys/management-token.ts";
import { RETIRED } from "../../src/web/api/routes.ts";
import { OPERATIONS } from "../../src/web/contract/contract.ts";
import { OPERATOR_TOKEN, serveApi } from "../fakes/hosted.ts";
import { eachStore } from "../fakes/stores.ts";

const WHAT = "POST /api/v1/feedback";
const READ = "GET /api/v1/operator/feedback";

eachStore(({ engine, open }) => {
  describe(`feedback (${engine})`, () => {
    test("secrets are taken out before a report is stored, and the rest arrives at the operator", async (t) => {
      const api = await serveApi(t, await open(t));
      const { json: made } = await api.call("POST /api/v1/keys", { body: {} });
      const message =
        `My key ${made.key} at https://eth.example/v2/a1B2c3D4e5F6g7H8i9J0 fails ☃\u0000 since ` +
        "block 21234567";
      const about = { category: "rpc", request_id: "req-mi9a1z3k7f2b-1z-3", operation: "rpcKeyed" };
      const sent = await api.call(WHAT, {
        body: { message, ...about },
        token: made.management_token,
      });
      assert.equal(sent.status, 202);
      const { json } = await api.call(READ, { token: OPERATOR_TOKEN });
      const kept =
        "My key [redacted] at https://eth.example/v2/[redacted] fails ☃ since block 21234567";
      assert.deepEqual(json, {
        feedback: [
          {
            id: sent.json.id,
            created_at: json.feedback[0].created_at,
            account_id: made.account_id,
            ...about,
            message: kept,
          },
        ],
        next: null,
      });
      const rows = await api.store.db.selectFrom("feedback").selectAll().execute();
      assert.ok(
        !JSON.stringify(rows, (_, it) => (typeof it === "bigint" ? String(it) : it)).includes(
          made.key.slice(7),
        ),
      );
      api.runtime.advance(1);
      const anonymous = await api.call(WHAT, { body: { message: "x" } });
      const next = await api.call(READ, { token: OPERATOR_TOKEN });
      assert.deepEqual(
        [
          next.json.feedback[0].id,
          next.json.feedback[0].account_id,
          next.json.feedback[0].category,
        ],
        [anonymous.json.id, null, null],
      );
    });

    test("ten an hour: for a credential wherever it comes from, for an address without one", async (t) => {
      const api = await serveApi(t, await open(t));
      const { json: made } = await api.call("POST /api/v1/keys", { body: {} });
      const body = { message: "again" };
      for (const sent of [
        { token: made.management_token },
        { token: made.key },
        { from: "203.0.113.20" },
      ]) {
        for (let i = 0; i < 10; i++)
          assert.equal((await api.call(WHAT, { body, ...sent })).status, 202);
        const limited = await api.call(WHAT, { body, ...sent });
        assert.equal(limited.outcome, "submitFeedback rate_limited");
        assert.equal(Number(limited.headers.get("retry-after")), 360);
      }
      assert.equal(
        (await api.call(WHAT, { body, from: "203.0.113.20", token: made.key })).status,
        429,
      );
      assert.equal(
        (await api.call(WHAT, { body, from: "203.0.113.21" })).status,
        202,
        "others are not limited",
      );
      api.runtime.advance(360_000);
      assert.equal((await api.call(WHAT, { body, from: "203.0.113.20" })).status, 202);
      assert.equal((await api.call(WHAT, { body, from: "203.0.113.20" })).status, 429);
    });

    test("a message has 1 to 4,000 characters as people count them; what it is about has to exist", async (t) => {
      const api = await serveApi(t, await open(t));
      for (const message of ["x", "😀".repeat(4_000), "x".repeat(4_000)])
        assert.equal((await api.call(WHAT, { body: { message } })).status, 202);
      const wrong = [
        { message: "" },
        { message: "😀".repeat(4_001) },
        { message: "x".repeat(4_001) },
        { message: 7 },
        {},
        { message: "x", category: "praise" },
        { message: "x", request_id: "svc_ak_secret" },
        { message: "x", request_id: "req-" },
        { message: "x", operation: "noSuchOperation" },
        { message: "x", operation: "a".repeat(60) },
      ];
      for (const body of wrong)
        assert.equal(
          (await api.call(WHAT, { body })).outcome,
          "submitFeedback invalid_field",
          JSON.stringify(body).slice(0, 60),
        );
      const told = await api.call(WHAT, { body: { message: "" } });
      assert.match(
        told.json.error.next_action,
        /message: text of 1 to 4000 characters \(required\)/,
      );
      const { json } = await api.call(READ, { token: OPERATOR_TOKEN });
      assert.equal(json.feedback.length, 3, "what is refused is not stored");
    });

    test("the newest are kept and read first, by pages", async (t) => {
      const store = await open(t);
      for (let i = 0; i < 8; i++) {
        const it = {
          message: `report ${i}`,
          category: null,
          requestId: null,
          operation: null,
          accountId: null,
        };
        await addFeedback(store, it, 1_000 + i, 5);
      }
      const first = await readFeedback(store, { limit: 3, after: undefined });
      assert.deepEqual(
        first.reports.map((it) => it.message),
        ["report 7", "report 6", "report 5"],
      );
      const rest = await readFeedback(store, { limit: 3, after: first.next ?? "" });
      assert.deepEqual(
        rest.reports.map((it) => it.message),
        ["report 4", "report 3"],
      );
      assert.equal(rest.next, null);
      const api = await serveApi(t, store);
      const page = await api.call(`${READ}?limit=4`, { token: OPERATOR_TOKEN });
      const last = await api.call(`${READ}?limit=4&after=${page.json.next}`, {
        token: OPERATOR_TOKEN,
      });
      assert.deepEqual(
        [page.json.feedback.length, last.json.feedback.length, last.json.next],
        [4, 1, null],
      );
    });
  });

  describe(`the earlier management API (${engine})`, () => {
    test(
      "every retired route answers 410 to every method and names what took its place, no " +
        "matter who asks",
      async (t) => {
        const api = await serveApi(t, await open(t));
        const { json: made } = await api.call("POST /api/v1/keys", { body: {} });
        const paths = OPERATIONS.map((it) => it.path.replace(/\{\w+\}/g, "{}"));
        for (const [pattern, instead] of RETIRED) {
          const path = pattern.replace(/\{\w+\}/g, made.id).replace(/\*$/, "one/two");
          for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
            const { outcome, json } = await api.call(
              `${method} ${path}?x=1`,
              method === "GET" ? {} : { token: made.management_token, body: "{not json" },
            );
            assert.equal(outcome, "none gone", `${method} ${path}`);
            assert.ok(json.error.next_action.includes(`use ${instead}`), json.error.next_action);
          }
          // Purchases and payments have no rows yet.
          const named = /\/api\/v1\/[^\s,;]+/.exec(instead)?.[0] ?? "";
          const later =
            /credit|custom-access|purchases|connections|profiles|configuration-schema|claim-link|^$/;
          if (!later.test(named))
            assert.ok(paths.includes(named.replace(/\{\w+\}/g, "{}")), `${named} is no operation`);
        }
        for (const path of [
          "/api/v1/me/",
          "/api/v1/management",
          "/api/v1/management/",
          "/api/v1/account/management-credentials",
        ])
          assert.equal((await api.call(`GET ${path}`)).outcome, "none gone", path);
        for (const path of [
          "/api/v1/mee",
          "/api/v1/me/x",
          "/api/v1/managements",
          "/api/v1/account",
        ])
          assert.equal((await api.call(`GET ${path}`)).outcome, "none not_found", path);
      },
    );

    test(
      "management tokens of then are agents now: they have the same shape, and no row of theirs " +
        "differs",
      async (t) => {
        const api = await serveApi(t, await open(t));
        const { json: made } = await api.call("POST /api/v1/keys", { body: {} });
        const agent = {
          accountId: made.account_id,
          name: "from before",
          profiles: null,
          readOnly: false,
          expiresAtMs: null,
        };
        const { token } = await api.store.transaction((tx) => insertManagementToken(tx, agent, 1));
        assert.match(token, /^svc_mt_/);
        const { status, json } = await api.call("GET /api/v1/agents/current", { token });
        assert.deepEqual([status, json.account_id], [200, made.account_id]);
        assert.equal(
          (await api.call("POST /api/v1/keys", { token, body: {} })).json.account_id,
          made.account_id,
        );
      },
    );
  });
});
