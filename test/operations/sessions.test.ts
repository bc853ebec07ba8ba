// Sessions in the console, on both engines: opened by a token, ended with it at once, rotated,
// bounded, and of use to pages of this service only.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openAddressLimit } from "../../src/core/workers/shared-address-limits.ts";
import { insertManagementToken } from "../../src/hosted/keys/management-token.ts";
import { OperatorRecords, RECORD_LIMITS } from "../../src/hosted/operator/stored-records.ts";
import { hashOf, newSecret } from "../../src/secrets/secret.ts";
import { openStore } from "../../src/shared/store/store.ts";
import { ConsoleSessions } from "../../src/web/api/console-sessions.ts";
import { type ApiAnswered, OPERATOR_TOKEN, type ServedApi, serveApi } from "../fakes/hosted.ts";
import { simulatedWorld } from "../fakes/runtime.ts";
import { eachStore, newPlace } from "../fakes/stores.ts";

const SAME_ORIGIN = { "sec-fetch-site": "same-origin", "content-type": "application/json" };
const HOURS_12 = 12 * 3_600_000;

const signIn = (api: ServedApi, token: string, cookie?: string): Promise<ApiAnswered> =>
  api.call("POST /api/v1/console/session", {
    body: { token },
    headers: { ...SAME_ORIGIN, ...(cookie === undefined ? {} : { cookie }) },
  });

/** The cookie that an answer sets, as a browser sends it. */
const cookieOf = ({ headers }: ApiAnswered): string =>
  (headers.get("set-cookie") ?? "").split(";")[0] ?? "";

const roleOf = async (api: ServedApi, cookie: string): Promise<unknown> =>
  (await api.call("GET /api/v1/console/session", { headers: { cookie } })).json.role;

eachStore(({ engine, open }) => {
  describe(`sessions (${engine})`, () => {
    test("the operator signs in, reads, changes, and signs out", async (t) => {
      const api = await serveApi(t, await open(t));
      const signedIn = await signIn(api, OPERATOR_TOKEN);
      assert.equal(signedIn.status, 201);
      assert.equal(signedIn.json.role, "operator");
      assert.match(
        signedIn.headers.get("set-cookie") ?? "",
        /^svc-session=svc_cs_\w+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
      );
      const cookie = cookieOf(signedIn);
      const usage = "GET /api/v1/operator/usage";
      assert.equal((await api.call(usage, { headers: { cookie } })).status, 200);
      assert.equal((await api.call("GET /api/v1/keys", { headers: { cookie } })).status, 401);
      assert.equal(
        (await api.call(usage, { headers: { cookie }, token: newSecret("token") })).status,
        401,
        "a token beside the cookie counts alone",
      );
      const { json: made } = await api.call("POST /api/v1/keys", { body: {} });
      const credit = `POST /api/v1/operator/accounts/${made.account_id}/credit`;
      const body = { usd: "1", reference: "r" };
      const refused = await api.call(credit, { body, headers: { cookie } });
      assert.equal(refused.outcome, "creditAccount forbidden");
      const text = { ...SAME_ORIGIN, cookie, "content-type": "text/plain" };
      assert.equal((await api.call(credit, { body, headers: text })).status, 403);
      const done = await api.call(credit, { body, headers: { ...SAME_ORIGIN, cookie } });
      assert.equal(done.status, 200);
      const out = await api.call("DELETE /api/v1/console/session", {
        headers: { ...SAME_ORIGIN, cookie },
      });
      assert.match(out.headers.get("set-cookie") ?? "", /^svc-session=; .*Max-Age=0$/);
      assert.equal(await roleOf(api, cookie), "none");
      assert.equal((await api.call(usage, { headers: { cookie } })).status, 401);
    });

    test("an account's session ends with its token, in mid-use", async (t) => {
      const store = await open(t);
      const api = await serveApi(t, store);
      const { json: made } = await api.call("POST /api/v1/keys", { body: {} });
      const agent = {
        accountId: made.account_id,
        name: "page",
        profiles: null,
        readOnly: false,
        expiresAtMs: api.runtime.wallMs() + 60_000,
      };
      const { token } = await store.transaction((tx) => insertManagementToken(tx, agent, 1));
      const [lasting, short] = [await signIn(api, made.management_token), await signIn(api, token)];
      assert.equal(lasting.json.role, "account");
      assert.equal(lasting.json.account_id, made.account_id);
      const headers = { cookie: cookieOf(lasting) };
      assert.equal((await api.call("GET /api/v1/keys", { headers })).json.keys.length, 1);
      assert.equal((await api.call("GET /api/v1/operator/usage", { headers })).status, 401);
      api.runtime.advance(60_000);
      assert.equal(await roleOf(api, cookieOf(short)), "none", "its token has expired");
      await store.db
        .updateTable("agent")
        .set({ revoked_at: 1n })
        .where("account_id", "=", made.account_id)
        .execute();
      const ended = await api.call("GET /api/v1/keys", { headers });
      assert.equal(ended.outcome, "listKeys unauthorized");
      const asked = await api.call("GET /api/v1/console/session", { headers });
      assert.equal(asked.json.ended, true);
      assert.match(asked.headers.get("set-cookie") ?? "", /Max-Age=0$/);
      assert.equal((await signIn(api, made.key)).status, 401, "a key opens no session");
    });

    test("a session lasts twelve hours, and ends when the operator token changes", async (t) => {
      const store = await open(t);
      const api = await serveApi(t, store);
      const cookie = cookieOf(await signIn(api, OPERATOR_TOKEN));
      api.runtime.advance(HOURS_12 - 1);
      assert.equal(await roleOf(api, cookie), "operator");
      api.runtime.advance(1);
      assert.equal(await roleOf(api, cookie), "none");
      const again = cookieOf(await signIn(api, OPERATOR_TOKEN));
      const rotated = new ConsoleSessions({
        runtime: api.runtime,
        records: new OperatorRecords(store),
        store,
        operatorToken: "another-operator-token-0123456789",
        signInLink: null,
        tries: openAddressLimit("", { perSecond: 1, burst: 10 }),
      });
      const id = again.split("=")[1] ?? "";
      assert.equal(await rotated.callerOf(id), null);
      assert.equal(await roleOf(api, again), "operator");
    });

    test("guesses of the operator token are limited by address; operators there are not shut out", async (t) => {
      const api = await serveApi(t, await open(t));
      const read = async (token: string, from: string) =>
        (await api.call("GET /api/v1/operator/usage", { token, from })).json;
      const [office, elsewhere] = ["203.0.113.7", "198.51.100.9"];
      const [wrong, limited] = [/^this needs the operator token/, /^too many wrong/];
      const refused = async (token: string, from: string, why: RegExp) =>
        assert.match((await read(token, from)).error.message, why);
      const served = async (from: string) =>
        assert.equal((await read(OPERATOR_TOKEN, from)).error, undefined);
      await served(office);
      for (const from of [office, elsewhere])
        for (let n = 0; n < 10; n++) await refused(`a-guess-of-mine-${n}`, from, wrong);
      await refused("one-guess-more", elsewhere, limited);
      // Nobody learns that this one was right.
      await refused(OPERATOR_TOKEN, elsewhere, limited);
      for (const from of [office, "198.51.100.10"]) await served(from);
      api.runtime.advance(60_000);
      await served(elsewhere);
    });

    test("signing in again replaces the session; one token has a bounded number", async (t) => {
      const store = await open(t);
      const api = await serveApi(t, store);
      const first = cookieOf(await signIn(api, OPERATOR_TOKEN));
      const second = cookieOf(await signIn(api, OPERATOR_TOKEN, first));
      assert.notEqual(second, first);
      assert.equal(await roleOf(api, first), "none");
      for (let i = 0; i < RECORD_LIMITS.sessionsPerToken; i++) {
        api.runtime.advance(1);
        await signIn(api, OPERATOR_TOKEN);
      }
      assert.equal(await roleOf(api, second), "none", "the oldest has made room");
      const rows = await store.db.selectFrom("console_session").selectAll().execute();
      assert.equal(rows.length, RECORD_LIMITS.sessionsPerToken);
      for (const { id_hash } of rows) assert.match(id_hash, /^[\w-]{43}$/);
      assert.ok(!rows.some(({ id_hash }) => second.includes(id_hash)), "ids are stored hashed");
    });

    test("a sign-in link opens one session, for an hour", async (t) => {
      const store = await open(t);
      const runtime = simulatedWorld(1);
      const secret = newSecret("sign_in");
      const sessions = new ConsoleSessions({
        runtime,
        records: new OperatorRecords(store),
        store: null,
        operatorToken: null,
        signInLink: { secretHash: hashOf(secret), expiresAtMs: runtime.wallMs() + 3_600_000 },
        tries: openAddressLimit("", { perSecond: 1, burst: 10 }),
      });
      const from = { address: "127.0.0.1", replaced: null };
      const wrong = await sessions.signIn(newSecret("sign_in"), from);
      assert.equal(wrong.kind, "api_fault");
      const opened = await Promise.all([
        sessions.signIn(secret, from),
        sessions.signIn(secret, from),
      ]);
      assert.deepEqual(opened.map(({ kind }) => kind).sort(), ["api_fault", "opened"]);
      const id = opened.find((one) => one.kind === "opened")?.id ?? "";
      assert.equal((await sessions.callerOf(id))?.kind, "operator");
      runtime.advance(3_600_000);
      assert.equal((await sessions.signIn(secret, from)).kind, "api_fault");
    });
  });
});

test("who may use a cookie: by scheme, host and origin", async (t) => {
  const { place, remove } = await newPlace("sqlite");
  t.after(remove);
  const store = await openStore(place);
  t.after(() => store.close());
  const secure = await serveApi(t, store, { publicUrl: "https://gateway.example" });
  const body = { token: OPERATOR_TOKEN };
  const what = "POST /api/v1/console/session";
  const own = await secure.call(what, { body, headers: { origin: "https://gateway.example" } });
  assert.match(own.headers.get("set-cookie") ?? "", /^__Host-svc=svc_cs_\w+; .*; Secure$/);
  const foreign: readonly Readonly<Record<string, string>>[] = [
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: "http://gateway.example" },
    { "sec-fetch-site": "same-site", origin: "https://gateway.example" },
    { "sec-fetch-site": "none" },
    {},
  ];
  for (const headers of foreign)
    assert.equal((await secure.call(what, { body, headers })).status, 403, JSON.stringify(headers));
  const plain = await serveApi(t, store, { publicUrl: "http://gateway.example" });
  const refused = await plain.call(what, { body, headers: SAME_ORIGIN });
  assert.match(refused.json.error.message, /plain http/);
});
