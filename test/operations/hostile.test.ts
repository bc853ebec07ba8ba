// Bad input to the API on both engines: forged credentials, ids of others, broken and malicious
// bodies, everything at once, clocks that step.
import assert from "node:assert/strict";
import { request as httpRequest } from "node:http";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { audit } from "../../src/hosted/audit/audit.ts";
import { insertManagementToken } from "../../src/hosted/keys/management-token.ts";
import { newId, newSecret } from "../../src/secrets/secret.ts";
import type { Store } from "../../src/shared/store/store.ts";
import { failingStore, type ServedApi, serveApi } from "../fakes/hosted.ts";
import { eachStore } from "../fakes/stores.ts";

const ID_OF_NOBODY = newId("key", 1);

eachStore(({ engine, open }) => {
  describe(`hostile callers (${engine})`, () => {
    const endings: (() => Promise<void>)[] = [];
    const t = { after: (run: () => Promise<void>) => void endings.unshift(run) };
    let store: Store;
    let api: ServedApi;
    before(async () => {
      store = await open(t);
      api = await serveApi(t, store);
    });
    after(async () => {
      assert.deepEqual(await audit(store), []);
      for (const end of endings) await end();
    });

    const newAccount = async (body: object = {}) => {
      const { json } = await api.call("POST /api/v1/keys", { body });
      return { id: json.account_id, token: json.management_token, keyId: json.id, key: json.key };
    };
    const works = async (key: string): Promise<boolean> =>
      (await api.call("GET /api/v1/keys/current", { token: key })).status === 200;

    test("ids of another account are not found by any operation, and nothing changes", async () => {
      const [mine, theirs] = [await newAccount(), await newAccount({ name: "theirs" })];
      const tries = [
        `GET /api/v1/keys/${theirs.keyId}`,
        `PATCH /api/v1/keys/${theirs.keyId}`,
        `DELETE /api/v1/keys/${theirs.keyId}`,
      ];
      for (const what of [
        ...tries,
        `POST /api/v1/keys/${theirs.keyId}/rotate`,
        `GET /api/v1/accounts/${theirs.id}`,
      ]) {
        const body = /^(PATCH|POST)/.test(what) ? { body: {} } : {};
        const { outcome, json } = await api.call(what, { token: mine.token, ...body });
        assert.match(outcome, / not_found$/, what);
        const nobody = what.replace(/(key|acc)_\w+/, (_, mark) => newId(mark, 1));
        assert.deepEqual(
          (await api.call(nobody, { token: mine.token, ...body })).json,
          json,
          "theirs looks like one that does not exist",
        );
      }
      const { json } = await api.call(`GET /api/v1/keys/${theirs.keyId}`, { token: theirs.token });
      assert.deepEqual([json.name, json.revision, json.revoked_at], ["theirs", 1, null]);
      assert.ok(await works(theirs.key));
      const list = await api.call("GET /api/v1/keys", { token: mine.token });
      assert.deepEqual(
        list.json.keys.map((it: { id: string }) => it.id),
        [mine.keyId],
      );
    });

    test("names that look like SQL are names", async () => {
      const name = "'; drop table api_key; -- \" \\ %_ ☃ 😀";
      const { token, keyId } = await newAccount({ name });
      assert.equal((await api.call(`GET /api/v1/keys/${keyId}`, { token })).json.name, name);
      for (const id of [
        "' or '1'='1",
        "key_' or 1=1 --",
        "%",
        "..%2f",
        "__proto__",
        "current%00",
        "%ff",
        `${keyId}%00`,
        keyId.toUpperCase(),
      ]) {
        const { status } = await api.call(
          `GET /api/v1/keys/${encodeURI(id).replaceAll("%25", "%")}`,
          { token },
        );
        assert.equal(status, 422, id);
      }
      assert.equal(
        (await api.call(`GET /api/v1/keys?after=${encodeURIComponent("' or '1'='1")}`, { token }))
          .status,
        422,
      );
    });

    test("bodies that are no plain JSON object with known fields are refused before anything is done", async () => {
      const { token, keyId } = await newAccount();
      const what = `PATCH /api/v1/keys/${keyId}`;
      const deep = `{"name":${"[".repeat(5_000)}${"]".repeat(5_000)}}`;
      const malformed = [
        "{",
        "[]",
        "null",
        "7",
        '"text"',
        "{}{}",
        "\ufeff{}",
        "{'name':1}",
        '{"name":"a","name":"b"}',
        '{"name":"a","na\\u006de":"b"}',
        deep,
      ];
      for (const body of [...malformed, Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])])
        assert.match(
          (await api.call(what, { token, body })).outcome,
          /invalid_request$/,
          String(body).slice(0, 40),
        );
      for (const body of [
        '{"__proto__":{"name":"x"}}',
        '{"constructor":1}',
        '{"toString":"x","name":"b"}',
        '{"id":"key_1"}',
        '{"svc_ak_secret":1}',
      ])
        assert.match((await api.call(what, { token, body })).outcome, /unknown_field$/, body);
      const values = [
        { name: "" },
        { name: null },
        { name: "x".repeat(101) },
        { name: "a\u0000b" },
        { name: "line\nbreak" },
        { name: {} },
        { name: ["a"] },
      ];
      const profiles = [
        { allowed_profiles: [] },
        { allowed_profiles: "public" },
        { allowed_profiles: ["public", "nobody's"] },
        { default_profile: 1 },
      ];
      const views = [{ consistency: "on" }, { consistency: "TIP" }, { consistency: ["tip"] }];
      for (const body of [
        ...values,
        ...profiles,
        ...views,
        { default_profile: "premium", allowed_profiles: ["public"] },
      ]) {
        const { outcome, json } = await api.call(what, { token, body });
        assert.match(outcome, /invalid_field$/, JSON.stringify(body));
        assert.ok(
          json.error.details.length > 0 &&
            json.error.details.every((it: string) =>
              /^(name|default_profile|allowed_profiles|consistency)/.test(it),
            ),
        );
      }
      const key = await api.call(`GET /api/v1/keys/${keyId}`, { token });
      assert.deepEqual([key.json.name, key.json.revision], ["", 1]);
      assert.equal(Object.getOwnPropertyDescriptor(Object.prototype, "name"), undefined);
    });

    test("a refusal names every wrong field and what is allowed, and no value", async () => {
      const { token, keyId } = await newAccount();
      const body = { name: "svc_ak_SECRETSECRET".repeat(9), allowed_profiles: ["public", 7] };
      const { json, text } = await api.call(`PATCH /api/v1/keys/${keyId}`, { token, body });
      assert.deepEqual(json.error.details, ["name", "allowed_profiles[1]"]);
      assert.match(
        json.error.next_action,
        /name: text of 1 to 100 characters; allowed_profiles\[1\]: text of 1 to 63 characters/,
      );
      assert.ok(!text.includes("SECRET"));
      const unknown = await api.call(`PATCH /api/v1/keys/${keyId}`, {
        token,
        body: { balance_usd: "5", name: 1 },
      });
      assert.deepEqual(unknown.json.error.details, ["balance_usd"]);
    });

    test("bodies in other types and encodings are refused, an absent one counts as empty", async () => {
      const headers = { "content-type": "application/x-www-form-urlencoded" };
      assert.match(
        (await api.call("POST /api/v1/keys", { body: "name=x", headers })).outcome,
        /invalid_request$/,
      );
      assert.match(
        (await api.call("POST /api/v1/keys", { body: "{}", headers })).outcome,
        /201$/,
        "as curl declares it",
      );
      assert.match(
        (
          await api.call("POST /api/v1/keys", {
            body: "{}",
            headers: { "content-encoding": "gzip" },
          })
        ).outcome,
        /unsupported_media_type$/,
      );
      assert.match(
        (
          await api.call("POST /api/v1/keys", {
            body: "{}",
            headers: { "content-type": 'application/json; charset="UTF-8"' },
          })
        ).outcome,
        /201$/,
      );
      assert.match((await api.call("POST /api/v1/keys", { body: "" })).outcome, /201$/);
    });

    test("a body that is announced or turns out too large is refused without being kept", async () => {
      const announced = await api.call("POST /api/v1/agent/keys", { body: "x".repeat(3_000_000) });
      assert.match(announced.outcome, /body_too_large$/);
      assert.equal(await chunked(api.url, 200), 413);
    });

    test("methods that a path does not serve are told which it does", async () => {
      for (const [what, allow] of [
        ["PUT /api/v1/keys", "POST, GET, HEAD, OPTIONS"],
        ["DELETE /api/v1/keys/current", "GET, HEAD, OPTIONS"],
        ["GET /api/v1/agent/keys", "POST, OPTIONS"],
        [`PUT /api/v1/keys/${ID_OF_NOBODY}`, "GET, HEAD, PATCH, DELETE, OPTIONS"],
      ] as const) {
        const answer = await api.call(what);
        assert.deepEqual([answer.status, answer.headers.get("allow")], [405, allow], what);
      }
      assert.equal((await api.call("GET /api/v1/nothing")).status, 404);
      assert.equal((await api.call("GET /api/v1/keys/a/b/c")).status, 404);
      const head = await api.call("HEAD /api/v1/agent/pricing");
      assert.deepEqual([head.status, head.text], [200, ""]);
    });

    test(
      "credentials that are cut off, altered, of another kind or misplaced open nothing and are " +
        "not looked up",
      async () => {
        const { token, key } = await newAccount();
        const deaf = await serveApi(
          t,
          failingStore(() => new Error("looked up")),
        );
        const wrong = [
          token.slice(0, -1),
          `${token}x`,
          token.replace("_mt_", "_ak_"),
          key,
          ` ${key}`,
          token.toLowerCase(),
          "svc_mt_",
          "' or 1=1",
          "x".repeat(5_000),
        ];
        for (let at = 0; at < token.length; at++)
          wrong.push(token.slice(0, at) + (token[at] === "A" ? "B" : "A") + token.slice(at + 1));
        for (const it of wrong)
          assert.match(
            (await deaf.call("GET /api/v1/keys", { token: it })).outcome,
            /unauthorized$/,
          );
        for (const authorization of [
          "Basic dXNlcjpwYXNz",
          token,
          `Payment ${token}`,
          `Bearer ${token} ${token}`,
          "Bearer",
          "",
        ])
          assert.match(
            (await deaf.call("GET /api/v1/keys", { headers: { authorization } })).outcome,
            /unauthorized$/,
          );
        assert.match(
          (await deaf.call(`GET /api/v1/agent/keys/${key.slice(0, -2)}`)).outcome,
          /not_found$/,
        );
        assert.match(
          (
            await deaf.call("GET /api/v1/operator/usage", {
              token: "operator-token-for-tests-onlx",
            })
          ).outcome,
          /unauthorized$/,
        );
        assert.equal(deaf.log(), "");
        assert.match(
          (await api.call("GET /api/v1/keys/current", { headers: { "x-svc-api-key": key } }))
            .outcome,
          /200$/,
        );
        assert.match(
          (await api.call("GET /api/v1/keys", { headers: { authorization: `bearer   ${token}` } }))
            .outcome,
          /200$/,
        );
      },
    );

    test("unknown credentials of the right form are limited by address, and not for others", async () => {
      const from = "2001:db8:1:2::1";
      for (let i = 0; i < 3; i++)
        assert.match(
          (await api.call("GET /api/v1/keys", { token: newSecret("token"), from })).outcome,
          /unauthorized$/,
        );
      const limited = await api.call("GET /api/v1/keys", {
        token: newSecret("token"),
        from: "2001:db8:1:2:ffff::9",
      });
      assert.equal(limited.status, 429);
      assert.equal(limited.headers.get("retry-after"), "20");
      const { token: known } = await newAccount();
      const valid = await api.call("GET /api/v1/keys", { token: known, from });
      assert.equal(valid.status, 200, "a valid one is served at that address, too");
      assert.match(
        (await api.call("GET /api/v1/keys", { token: newSecret("token"), from: "2001:db8:1:3::1" }))
          .outcome,
        /unauthorized$/,
      );
      api.runtime.advance(20_000);
      assert.match(
        (await api.call("GET /api/v1/keys", { token: newSecret("token"), from })).outcome,
        /unauthorized$/,
      );
    });

    test("tokens that are revoked, expired or read-only do what is left to them", async () => {
      const { id, keyId } = await newAccount();
      const base = { accountId: id, name: "", profiles: null, readOnly: false, expiresAtMs: null };
      const tokenOf = async (agent: object) =>
        (await store.transaction((tx) => insertManagementToken(tx, { ...base, ...agent }, 1)))
          .token;
      const expiring = await tokenOf({ expiresAtMs: api.runtime.wallMs() + 1_000 });
      const reader = await tokenOf({ readOnly: true });
      const revoked = await store.transaction((tx) => insertManagementToken(tx, base, 1));
      await store.db
        .updateTable("agent")
        .set({ revoked_at: 5n })
        .where("id", "=", revoked.agent.id)
        .execute();
      assert.equal((await api.call("GET /api/v1/keys", { token: expiring })).status, 200);
      api.runtime.advance(1_000);
      for (const token of [expiring, revoked.token])
        assert.match((await api.call("GET /api/v1/keys", { token })).outcome, /unauthorized$/);
      assert.equal(
        (await api.call("GET /api/v1/agents/current", { token: reader })).json.restrictions
          .read_only,
        true,
      );
      assert.equal((await api.call(`DELETE /api/v1/keys/${keyId}`, { token: reader })).status, 403);
      assert.equal((await api.call("POST /api/v1/keys", { token: reader, body: {} })).status, 403);
    });

    test("a token restricted to profiles sees no other key, and makes none that reaches further", async () => {
      const { id, token: owner, keyId: wide } = await newAccount();
      const narrow = await api.call("POST /api/v1/keys", {
        token: owner,
        body: { allowed_profiles: ["public"] },
      });
      const agent = {
        accountId: id,
        name: "",
        profiles: ["public"],
        readOnly: false,
        expiresAtMs: null,
      };
      const { token } = await store.transaction((tx) => insertManagementToken(tx, agent, 1));
      const listed = await api.call("GET /api/v1/keys", { token });
      assert.deepEqual(
        listed.json.keys.map((it: { id: string }) => it.id),
        [narrow.json.id],
      );
      for (const what of [`GET /api/v1/keys/${wide}`, `DELETE /api/v1/keys/${wide}`])
        assert.equal((await api.call(what, { token })).status, 404);
      assert.equal(
        (await api.call(`POST /api/v1/keys/${wide}/rotate`, { token, body: {} })).status,
        404,
      );
      assert.match(
        (await api.call("POST /api/v1/keys", { token, body: { allowed_profiles: ["premium"] } }))
          .outcome,
        /invalid_field$/,
      );
      const made = await api.call("POST /api/v1/keys", { token, body: {} });
      const view = await api.call(`GET /api/v1/keys/${made.json.id}`, { token });
      assert.deepEqual([view.json.profile, view.json.allowed_profiles], ["public", ["public"]]);
      const widened = await api.call(`PATCH /api/v1/keys/${made.json.id}`, {
        token,
        body: { allowed_profiles: null },
      });
      assert.deepEqual(widened.json.allowed_profiles, ["public"]);
      assert.deepEqual((await api.call("GET /api/v1/accounts/current", { token })).json.profiles, [
        "public",
      ]);
    });

    test("a key tells the view of the chain that was set, also at its change", async () => {
      const { token, key } = await newAccount({ consistency: "caller" });
      const shown = await api.call("GET /api/v1/keys/current", { token: key });
      assert.equal(shown.json.consistency, "caller");
      const what = `PATCH /api/v1/keys/${shown.json.id}`;
      const named = await api.call(what, { token, body: { name: "b" } });
      assert.equal(named.json.consistency, "caller", "left out");
      const unset = await api.call(what, { token, body: { consistency: null } });
      assert.equal(unset.json.consistency, null);
      const list = await api.call("GET /api/v1/keys", { token });
      assert.equal(list.json.keys[0].consistency, null);
    });

    test("what is sent again changes nothing more, or is another key", async () => {
      const { token, keyId, key } = await newAccount();
      const patch = { token, body: { name: "b", default_profile: "public" } };
      const first = await api.call(`PATCH /api/v1/keys/${keyId}`, patch);
      assert.deepEqual((await api.call(`PATCH /api/v1/keys/${keyId}`, patch)).json, first.json);
      assert.equal(first.json.revision, 2);
      const again = await api.call("POST /api/v1/keys", { token, body: {} });
      assert.notEqual(again.json.key, key);
      assert.equal(again.json.management_token, undefined);
      for (let i = 0; i < 2; i++)
        assert.equal((await api.call(`DELETE /api/v1/keys/${keyId}`, { token })).status, 204);
      const gone = await api.call(`GET /api/v1/keys/${keyId}`, { token });
      assert.deepEqual([gone.json.revision, typeof gone.json.revoked_at], [3, "string"]);
      assert.equal(await works(key), false);
      assert.equal(
        api.changed.filter((it) => it === keyId).length,
        4,
        "a repetition is told too, unless it is refused: the first answer may have been lost",
      );
    });

    test("keys that are created at once do not exceed the limit of the account", async () => {
      const { token } = await newAccount();
      const all = await Promise.all(
        Array.from({ length: 12 }, () => api.call("POST /api/v1/keys", { token, body: {} })),
      );
      assert.deepEqual(all.map((it) => it.status).sort(), [
        ...Array(4).fill(201),
        ...Array(8).fill(409),
      ]);
      assert.equal((await api.call("GET /api/v1/accounts/current", { token })).json.keys, 5);
    });

    test(
      "rotations at once leave two secrets that work: the last, and the one before it for its " +
        "overlap",
      async () => {
        const { token, keyId, key } = await newAccount();
        const what = `POST /api/v1/keys/${keyId}/rotate`;
        const all = await Promise.all(
          Array.from({ length: 8 }, () => api.call(what, { token, body: { grace_seconds: 60 } })),
        );
        assert.deepEqual(new Set(all.map((it) => it.status)), new Set([200]));
        const secrets: string[] = [key, ...all.map((it) => it.json.key)];
        const live: string[] = [];
        for (const secret of secrets) if (await works(secret)) live.push(secret);
        assert.equal(live.length, 2);
        const { rows } = {
          rows: await store.db
            .selectFrom("key_secret")
            .selectAll()
            .where("key_id", "=", keyId)
            .execute(),
        };
        assert.ok(rows.length <= 3, "secrets that have ended are forgotten");
        const view = await api.call(`GET /api/v1/keys/${keyId}`, { token });
        assert.equal(
          view.json.previous_valid_until,
          new Date(api.runtime.wallMs() + 60_000).toISOString(),
        );
        api.runtime.advance(60_000);
        const left: string[] = [];
        for (const secret of live) if (await works(secret)) left.push(secret);
        assert.equal(left.length, 1);
        assert.ok(left[0]?.startsWith(view.json.key_prefix));
        assert.equal(
          (await api.call(`GET /api/v1/keys/${keyId}`, { token })).json.previous_valid_until,
          null,
        );
      },
    );

    test(
      "a key that is rotated, patched and deleted at once is deleted in the end, and no secret " +
        "of it works",
      async () => {
        const { token, keyId, key } = await newAccount();
        const others = ["one", "two", "three"].flatMap((name) => [
          api.call(`POST /api/v1/keys/${keyId}/rotate`, { token, body: { grace_seconds: 3_600 } }),
          api.call(`PATCH /api/v1/keys/${keyId}`, { token, body: { name } }),
        ]);
        const [gone, ...rest] = await Promise.all([
          api.call(`DELETE /api/v1/keys/${keyId}`, { token }),
          ...others,
        ]);
        assert.equal(gone?.status, 204);
        for (const it of rest) assert.match(it.outcome, / (200|key_revoked)$/);
        for (const secret of [key, ...rest.flatMap((it) => it.json.key ?? [])])
          assert.equal(await works(secret), false);
        const { json } = await api.call(`GET /api/v1/keys/${keyId}`, { token });
        assert.ok(json.revoked_at !== null && json.previous_valid_until === null);
        assert.equal(
          api.changed.filter((it) => it === keyId).length,
          json.revision - 1,
          "every change is told, and no refusal",
        );
      },
    );

    test(
      "a clock that steps back revives no secret that was ended, and one that steps ahead ends " +
        "overlaps",
      async () => {
        const { token, keyId, key } = await newAccount();
        const cut = await api.call(`POST /api/v1/keys/${keyId}/rotate`, {
          token,
          body: { grace_seconds: 0 },
        });
        assert.equal(await works(key), false);
        api.runtime.jump(-86_400_000);
        assert.equal(await works(key), false);
        const overlap = await api.call(`POST /api/v1/keys/${keyId}/rotate`, {
          token,
          body: { grace_seconds: 60 },
        });
        assert.ok((await works(cut.json.key)) && (await works(overlap.json.key)));
        api.runtime.jump(2 * 86_400_000);
        assert.deepEqual([await works(cut.json.key), await works(overlap.json.key)], [false, true]);
      },
    );

    test("no body of any shape makes the service fail, and what it takes it gives back", async () => {
      const { token, keyId } = await newAccount();
      const field = fc.oneof(
        fc.constantFrom("name", "default_profile", "allowed_profiles", "consistency"),
        fc.string({ unit: "binary", maxLength: 12 }),
      );
      const value = fc.oneof(
        fc.string({ unit: "binary", maxLength: 8 }),
        fc.constantFrom("public", "premium", ["public"], "tip", "caller", null),
        fc.jsonValue({ maxDepth: 2 }),
      );
      await fc.assert(
        fc.asyncProperty(fc.dictionary(field, value, { maxKeys: 3 }), async (body) => {
          const { status, json } = await api.call(`PATCH /api/v1/keys/${keyId}`, { token, body });
          assert.ok(status === 200 || status === 422, `${status}`);
          if (status === 200 && typeof body["name"] === "string")
            assert.equal(json.name, body["name"].toWellFormed());
          if (status === 200 && Object.hasOwn(body, "consistency"))
            assert.equal(json.consistency, body["consistency"]);
        }),
        { numRuns: 200 },
      );
    });

    test("no secret is kept in the clear", async () => {
      const { token, key } = await newAccount();
      const tables = [
        "account",
        "agent",
        "api_key",
        "key_secret",
        "ledger_tx",
        "ledger_entry",
      ] as const;
      const all = await Promise.all(
        tables.map((it) => store.db.selectFrom(it).selectAll().execute()),
      );
      const kept = JSON.stringify(all, (_, value) =>
        typeof value === "bigint" ? String(value) : value,
      );
      for (const secret of [token, key]) assert.ok(!kept.includes(secret.slice(13)));
    });
  });
});

/** Sends a body of unknown length until the answer comes; returns its status. */
function chunked(url: string, kilobytes: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "x-forwarded-for": "10.250.0.1" };
    const request = httpRequest(
      `${url}/api/v1/agent/keys`,
      { method: "POST", headers },
      (response) => {
        response.resume();
        response.on("end", () => resolve(response.statusCode ?? 0));
      },
    );
    request.on("error", reject);
    for (let i = 0; i < kilobytes; i++) request.write("x".repeat(1_024));
    request.end();
  });
}
