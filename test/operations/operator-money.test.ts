// What the operator reads of money, on both engines: accounts by spend with search and pages, keys,
// and revenue, over books that a test writes itself.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { recordAudit } from "../../src/hosted/audit/audit-results.ts";
import type { Store } from "../../src/shared/store/store.ts";
import { OPERATOR_TOKEN, type ServedApi, serveApi } from "../fakes/hosted.ts";
import { eachStore } from "../fakes/stores.ts";

const HOUR_MS = 3_600_000;
const read = async (api: ServedApi, path: string) => {
  const answer = await api.call(`GET /api/v1/operator/${path}`, { token: OPERATOR_TOKEN });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
};

/** Accounts with a key each; the n-th has spent n USD in this hour. */
async function spenders(api: ServedApi, store: Store, count: number) {
  const accounts: { readonly id: string; readonly keyId: string; readonly prefix: string }[] = [];
  const hour = BigInt(Math.floor(api.runtime.wallMs() / HOUR_MS));
  for (let n = 0; n < count; n++) {
    const body = { name: `Key_%${n}` };
    const { json } = await api.call("POST /api/v1/keys", { body });
    accounts.push({ id: json.account_id, keyId: json.id, prefix: json.key_prefix });
    const used = { calls: 1n, cu: BigInt(n), charge_n: BigInt(n) * 1_000_000_000n };
    const cached = (calls: bigint) => ({ cached_calls: calls, cached_cu: calls * BigInt(n) });
    const of = { account_id: json.account_id, key_id: json.id, method: "eth_call" };
    await store.db
      .insertInto("usage_hour")
      .values([
        { ...of, hour, ...used, ...cached(0n) },
        { ...of, hour: hour - 30n, ...used, ...cached(1n) },
      ])
      .execute();
  }
  return accounts;
}

eachStore(({ engine, open }) => {
  describe(`money for the operator (${engine})`, () => {
    test("accounts come by spend, page by page, each once", async (t) => {
      const store = await open(t);
      const api = await serveApi(t, store);
      const accounts = await spenders(api, store, 5);
      const seen: string[] = [];
      let after = "";
      do {
        const page = await read(api, `accounts?limit=2${after}`);
        assert.ok(page.accounts.length <= 2);
        seen.push(...page.accounts.map((one: { id: string }) => one.id));
        after = page.next === null ? "" : `&after=${page.next}`;
      } while (after !== "");
      assert.deepEqual(seen, accounts.map(({ id }) => id).toReversed());
      const [first] = (await read(api, "accounts")).accounts;
      assert.deepEqual([first.spent_usd, first.calls, first.cu, first.keys], ["4", 1, 4, 1]);
      const [longer] = (await read(api, "accounts?hours=48")).accounts;
      assert.deepEqual([longer.spent_usd, longer.calls], ["8", 2]);
      assert.deepEqual(
        [first.cached_calls, first.cached_cu, longer.cached_calls, longer.cached_cu],
        [0, 0, 1, 4],
      );
    });

    test("a search finds accounts by id, key id, key name and prefix, and knows no wildcard", async (t) => {
      const store = await open(t);
      const api = await serveApi(t, store);
      const accounts = await spenders(api, store, 3);
      const found = async (search: string): Promise<string[]> =>
        (await read(api, `accounts?search=${encodeURIComponent(search)}`)).accounts.map(
          (one: { id: string }) => one.id,
        );
      const second = accounts[1];
      assert.ok(second !== undefined);
      assert.deepEqual(await found(second.id), [second.id]);
      assert.deepEqual(await found(second.keyId), [second.id]);
      assert.deepEqual(await found("key_%1"), [second.id]);
      assert.deepEqual(await found(second.prefix), [second.id]);
      assert.equal((await found("acc_")).length, 3);
      assert.deepEqual(await found("%"), []);
      assert.deepEqual(await found("'; drop table account; --"), []);
      const { keys } = await read(api, `accounts/${second.id}/keys`);
      assert.deepEqual(
        keys.map((one: Record<string, unknown>) => [one["id"], one["name"], one["spent_usd"]]),
        [[second.keyId, "Key_%1", "1"]],
      );
    });

    test("the last audit is told as never, balanced, or unbalanced with what is wrong", async (t) => {
      const store = await open(t);
      const api = await serveApi(t, store);
      assert.deepEqual(await read(api, "audit/last"), {
        state: "never",
        books: null,
        chains: null,
      });
      const run = { runner: "service", node: "n1", checked_at: 1_000n } as const;
      const books = {
        ...run,
        part: "books",
        state: "balanced",
        problem_count: 0n,
        problems: "[]",
      } as const;
      await recordAudit(store, [books]);
      const told = {
        ...{ state: "balanced", checked_at: "1970-01-01T00:00:01.000Z", run_by: "service" },
        ...{ node: "n1", problem_count: 0, problems: [] },
      };
      const balanced = { state: "balanced", books: told, chains: null };
      assert.deepEqual(await read(api, "audit/last"), balanced);
      const problems = ["transaction 0x1 on chain 1: moved 1 USD, recorded 2 USD"];
      const chains = {
        ...books,
        part: "chains",
        state: "unbalanced",
        problem_count: 9n,
        problems: JSON.stringify(problems),
      } as const;
      await recordAudit(store, [chains]);
      assert.deepEqual(await read(api, "audit/last"), {
        state: "unbalanced",
        books: told,
        chains: { ...told, state: "unbalanced", problem_count: 9, problems },
      });
      await recordAudit(store, [{ ...chains, state: "unread" }]);
      assert.equal((await read(api, "audit/last")).state, "balanced");
    });

    test("revenue by day adds up usage, payments and grants, and shows empty days", async (t) => {
      const store = await open(t);
      const api = await serveApi(t, store);
      const [account] = await spenders(api, store, 2);
      await api.call(`POST /api/v1/operator/accounts/${account?.id}/credit`, {
        token: OPERATOR_TOKEN,
        body: { usd: "7", reference: "invoice" },
      });
      await api.call("POST /api/v1/agent/keys", { body: {} });
      const { days, totals } = await read(api, "revenue?days=4");
      assert.equal(days.length, 4);
      assert.deepEqual([days[0].calls, days[0].charged_usd, days[0].paid_in_usd], [0, "0", "0"]);
      assert.deepEqual([totals.calls, totals.charged_usd, totals.paid_in_usd], [4, "2", "7"]);
      assert.equal(days[3].paid_in_usd, "7");
      assert.deepEqual([totals.cached_calls, totals.cached_cu], [2, 1]);
      assert.equal(totals.granted_usd, "0.025", "the grant of the anonymous key");
    });
  });
});
