// Who may hand over what: exposed keys, restricted tokens, agents whose account was claimed, and
// everything at once, over HTTP on both engines.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { claimByLink } from "../../src/hosted/accounts/claim-links.ts";
import { audit } from "../../src/hosted/audit/audit.ts";
import { insertManagementToken } from "../../src/hosted/keys/management-token.ts";
import type { Store } from "../../src/shared/store/store.ts";
import { type ServedApi, serveApi } from "../fakes/hosted.ts";
import { eachStore } from "../fakes/stores.ts";

eachStore(({ engine, open }) => {
  describe(`claims over HTTP (${engine})`, () => {
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
    const anonymousKey = async (): Promise<string> =>
      (await api.call("POST /api/v1/agent/keys", { body: { name: "agent's" } })).json.key;
    const agentOf = async (accountId: string, restriction: object): Promise<string> => {
      const agent = {
        accountId,
        name: "",
        profiles: null,
        readOnly: false,
        expiresAtMs: null,
        ...restriction,
      };
      return (
        await store.transaction((tx) => insertManagementToken(tx, agent, api.runtime.wallMs()))
      ).token;
    };
    const follow = async (url: string) => {
      const parts = {
        store,
        changes: { key: () => undefined, account: () => undefined },
        maxKeys: 9,
        nowMs: api.runtime.wallMs(),
      };
      return claimByLink(parts, url.split("/claim/")[1] ?? "", null);
    };

    test("a claim answers as the specification shows it, moves the balance once, and is felt at once", async () => {
      const [account, key] = [await newAccount(), await anonymousKey()];
      const what = `POST /api/v1/agent/keys/${key}/claim`;
      const { json } = await api.call(what, { headers: { "x-svc-api-key": account.key } });
      assert.deepEqual(json, {
        account_id: account.id,
        key_prefix: key.slice(0, 12),
        claimed: true,
      });
      assert.equal(api.changed.at(-1), account.id);
      assert.equal(
        (await api.call("GET /api/v1/accounts/current", { token: account.token })).json.balance_cu,
        5_000,
      );
      assert.match(
        (await api.call(what, { token: account.key })).outcome,
        / not_found$/,
        "already claimed",
      );
      const { keys } = (await api.call("GET /api/v1/keys", { token: account.token })).json;
      const mine = keys.find((it: { key_prefix: string }) => it.key_prefix === key.slice(0, 12));
      assert.deepEqual([mine.type, mine.total_funded_cu, mine.name], ["account", 5_000, "agent's"]);
      assert.equal(
        (await api.call(`DELETE /api/v1/keys/${mine.id}`, { token: account.token })).status,
        204,
      );
      assert.match(
        (await api.call(what, { token: account.key })).outcome,
        / not_found$/,
        "deleted",
      );
    });

    test("an anonymous key is no dashboard key, and a management token neither", async () => {
      const [account, key, other] = [
        await newAccount(),
        await anonymousKey(),
        await anonymousKey(),
      ];
      for (const token of [other, key, account.token])
        assert.match(
          (await api.call(`POST /api/v1/agent/keys/${key}/claim`, { token })).outcome,
          / unauthorized$/,
        );
      assert.match(
        (await api.call(`POST /api/v1/agent/keys/${key}/claim`)).outcome,
        / unauthorized$/,
      );
      assert.equal((await api.call(`GET /api/v1/agent/keys/${key}`)).json.type, "anonymous");
    });

    test("an exposed key hands over no account: neither its own link nor one of the account", async () => {
      const account = await newAccount();
      assert.match(
        (await api.call("POST /api/v1/accounts/current/claim-link", { token: account.key }))
          .outcome,
        / forbidden$/,
      );
      assert.match(
        (await api.call(`POST /api/v1/agent/keys/${account.key}/claim-link`)).outcome,
        / already_claimed$/,
      );
      assert.match(
        (await api.call("GET /api/v1/accounts/current", { token: account.key })).outcome,
        / unauthorized$/,
        "nor does it read the account",
      );
      const thief = await newAccount();
      assert.match(
        (await api.call(`POST /api/v1/agent/keys/${account.key}/claim`, { token: thief.key }))
          .outcome,
        / not_found$/,
      );
      assert.equal(
        (await api.call(`GET /api/v1/keys/${account.keyId}`, { token: account.token })).json
          .account_id,
        account.id,
      );
    });

    test("a token that is restricted hands over nothing and revokes nobody", async () => {
      const account = await newAccount();
      const some = await agentOf(account.id, { profiles: ["public"] });
      assert.match(
        (await api.call("POST /api/v1/accounts/current/claim-link", { token: some })).outcome,
        / forbidden$/,
      );
      const lent = await agentOf(account.id, { expiresAtMs: api.runtime.wallMs() + 86_400_000 });
      assert.match(
        (await api.call("POST /api/v1/accounts/current/claim-link", { token: lent })).outcome,
        / forbidden$/,
        "one that ends was lent",
      );
      const { json } = await api.call("POST /api/v1/connections", { body: { name: "x" } });
      assert.match(
        (await api.call(`DELETE /api/v1/connections/${json.id}`, { token: some })).outcome,
        / forbidden$/,
      );
      assert.match(
        (await api.call(`DELETE /api/v1/connections/${json.id}`, { token: account.token })).outcome,
        / not_found$/,
        "nobody has approved it",
      );
      assert.match(
        (await api.call(`GET /api/v1/connections/${json.id}`, { token: account.token })).outcome,
        / unauthorized$/,
      );
    });

    test("the key of a scoped key cannot reach further than that", async () => {
      const [scoped, key] = [
        await newAccount({ allowed_profiles: ["public"] }),
        await anonymousKey(),
      ];
      await api.call(`POST /api/v1/agent/keys/${key}/claim`, { token: scoped.key });
      const { json } = await api.call("GET /api/v1/keys/current", { token: key });
      assert.deepEqual(
        [json.account_id, json.allowed_profiles, json.profile],
        [scoped.id, ["public"], "public"],
      );
    });

    test("the agent of a claimed account keeps no power: no keys, no new ones, no second link", async () => {
      const account = await newAccount();
      const { json } = await api.call("POST /api/v1/accounts/current/claim-link", {
        token: account.token,
      });
      assert.match(json.claim_url, /^http:\/\/127\.0\.0\.1:\d+\/claim\/svc_cl_\w+$/);
      const done = await follow(json.claim_url);
      assert.ok(typeof done === "object" && done.token !== null);
      for (const what of ["POST /api/v1/accounts/current/claim-link", "POST /api/v1/keys"])
        assert.match(
          (await api.call(what, { token: account.token, body: {} })).outcome,
          / already_claimed$/,
        );
      assert.deepEqual(
        (await api.call("GET /api/v1/keys", { token: account.token })).json.keys,
        [],
      );
      assert.match(
        (await api.call(`DELETE /api/v1/keys/${account.keyId}`, { token: account.token })).outcome,
        / not_found$/,
      );
      assert.equal(
        (await api.call(`GET /api/v1/keys/${account.keyId}`, { token: done.token })).status,
        200,
      );
      assert.equal(
        (await api.call("GET /api/v1/keys/current", { token: account.key })).json.account_id,
        done.accountId,
      );
    });

    test("ten claims and links of one key at once: one account has it, and the balance is there once", async () => {
      const key = await anonymousKey();
      const people = await Promise.all(Array.from({ length: 5 }, () => newAccount()));
      const links = people.map(() => api.call(`POST /api/v1/agent/keys/${key}/claim-link`));
      const claims = await Promise.all(
        people.map(({ key: own }) =>
          api.call(`POST /api/v1/agent/keys/${key}/claim`, { token: own }),
        ),
      );
      for (const it of await Promise.all(links))
        assert.match(it.outcome, / (200|already_claimed|not_found)$/);
      assert.deepEqual(claims.map((it) => it.status).sort(), [200, 404, 404, 404, 404]);
      const balances = await Promise.all(
        people.map(({ token }) => api.call("GET /api/v1/accounts/current", { token })),
      );
      assert.equal(
        balances.reduce((sum, { json }) => sum + json.balance_cu, 0),
        5_000,
      );
      for (const it of await Promise.all(links))
        if (it.status === 200)
          assert.equal(typeof (await follow(it.json.claim_url)), "string", "refused");
    });

    test("no secret of a link or connection is kept in the clear", async () => {
      const key = await anonymousKey();
      const link = (await api.call(`POST /api/v1/agent/keys/${key}/claim-link`)).json;
      const { json } = await api.call("POST /api/v1/connections", { body: { name: "x" } });
      const rows = [
        await store.db.selectFrom("claim_link").selectAll().execute(),
        await store.db.selectFrom("connection").selectAll().execute(),
      ];
      const kept = JSON.stringify(rows, (_, it) => (typeof it === "bigint" ? String(it) : it));
      for (const secret of [link.claim_url, json.token, json.approval_url])
        assert.ok(!kept.includes(String(secret).slice(-20)));
      assert.ok(!api.log().includes("svc_c"));
    });
  });
});
