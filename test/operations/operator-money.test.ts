// What the operator reads of money, on both engines: accounts by spend with search and pages, keys,
// and revenue, over books that a test writes itself.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { parseUsd } from "../../src/core/billing/price.ts";
import { audit } from "../../src/hosted/audit/audit.ts";
import { recordAudit } from "../../src/hosted/audit/audit-results.ts";
import { writeHistoryHour } from "../../src/hosted/operator/stored-history.ts";
import { CALL_ROW, hourCounts } from "../../src/observe/history/history-row.ts";
import type { Store } from "../../src/shared/store/store.ts";
import { OPERATOR_TOKEN, type ServedApi, serveApi } from "../fakes/hosted.ts";
import { eachStore } from "../fakes/stores.ts";

const HOUR_MS = 3_600_000;
const read = async (api: ServedApi, path: string) => {
  const answer = await api.call(`GET /api/v1/operator/${path}`, { token: OPERATOR_TOKEN });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
};

/** What all accounts have, and what stands in the books that credit comes from. */
async function sumsOf(store: Store) {
  const accounts = await store.db.selectFrom("account").select("balance_n").execute();
  const entries = await store.db
    .selectFrom("ledger_entry")
    .select("amount_n")
    .where("book", "in", ["payments", "grants"])
    .execute();
  return {
    balancesN: accounts.reduce((sum, row) => sum + row.balance_n, 0n),
    booksN: entries.reduce((sum, row) => sum + row.amount_n, 0n),
  };
}

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

    test("a range of days takes the place of the last ones, and both its ends are in it", async (t) => {
      const store = await open(t);
      const api = await serveApi(t, store);
      await spenders(api, store, 2);
      const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
      const today = dayOf(api.runtime.wallMs());
      const before = dayOf(api.runtime.wallMs() - 30 * HOUR_MS);
      const both = `from=${before}&to=${today}`;
      const { days, totals } = await read(api, `revenue?${both}`);
      assert.deepEqual([days[0].day, days.at(-1).day], [before, today]);
      assert.deepEqual([totals.calls, totals.charged_usd], [4, "2"]);
      assert.equal((await read(api, `revenue?from=${today}`)).totals.calls, 2);
      assert.equal((await read(api, `usage?${both}`)).totals.calls, 4);
      assert.equal((await read(api, `usage?from=${before}&to=${before}`)).totals.calls, 2);
      const [first] = (await read(api, `accounts?${both}`)).accounts;
      assert.deepEqual([first.spent_usd, first.recent.hour.usd], ["2", "1"]);
      const { keys } = await read(api, `accounts/${first.id}/keys?${both}`);
      assert.equal(keys[0].spent_usd, "2");
      for (const query of ["to=2026-11-01", `from=${today}&to=${before}`, "from=2020-01-01"]) {
        const answer = await api.call(`GET /api/v1/operator/revenue?${query}`, {
          token: OPERATOR_TOKEN,
        });
        assert.equal(answer.outcome, "getRevenue invalid_field", query);
      }
    });

    test("calls by chain are added up over hours and nodes, the most first", async (t) => {
      const store = await open(t);
      const api = await serveApi(t, store);
      const hour = Math.floor(api.runtime.wallMs() / HOUR_MS);
      const row = (chain: string, calls: number, provider = "") => {
        const counts = hourCounts(CALL_ROW, [calls, ...Array(CALL_ROW.width - 1).fill(0)]);
        return { profile: "public", chain, provider, class: "", alias: "", counts };
      };
      for (const writer of ["n1", "n2"]) {
        await writeHistoryHour(store, { hour, writer }, [row("base", 2), row("base", 9, "p")]);
        await writeHistoryHour(store, { hour: hour - 2, writer }, [row("ethereum", 3)]);
      }
      const calls = async (query: string) => (await read(api, `chain-calls?${query}`)).chains;
      assert.deepEqual(await calls("hours=2"), [{ profile: "public", chain: "base", calls: 4 }]);
      assert.deepEqual(
        (await calls("hours=3")).map((one: { chain: string; calls: number }) => one.calls),
        [6, 4],
      );
      assert.deepEqual(await calls("from=2020-01-01&to=2020-12-30"), []);
    });

    test("credit of the operator is conserved, whatever is repeated or refused", async (t) => {
      const store = await open(t);
      const api = await serveApi(t, store);
      const accounts = await spenders(api, store, 2);
      const kind = fc.constantFrom("payment", "grant");
      const usd = fc.constantFrom("0.000000001", "1", "999999.999999999");
      const act = fc.record({ at: fc.nat(1), kind, usd, reference: fc.nat(6) });
      let round = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(act, { maxLength: 12 }), async (acts) => {
          round++;
          const known = new Map<string, string>();
          const before = await sumsOf(store);
          let addedN = 0n;
          for (const { at, reference, ...credit } of acts) {
            const name = `r${round}-${reference}`;
            const answer = await api.call(
              `POST /api/v1/operator/accounts/${accounts[at]?.id}/credit`,
              { token: OPERATOR_TOKEN, body: { ...credit, reference: name, reason: "a test" } },
            );
            const told = JSON.stringify([at, credit]);
            if ((known.get(name) ?? told) !== told) {
              assert.equal(answer.outcome, "creditAccount invalid_field");
              continue;
            }
            assert.equal(answer.json.credited, !known.has(name));
            if (!known.has(name)) addedN += parseUsd(credit.usd) ?? 0n;
            known.set(name, told);
          }
          const after = await sumsOf(store);
          assert.equal(after.balancesN - before.balancesN, addedN);
          assert.equal(before.booksN - after.booksN, addedN, "it left the operator's books");
        }),
        { numRuns: 12 },
      );
      assert.deepEqual(
        (await audit(store)).filter(({ check }) => check !== "usage"),
        [],
      );
    });

    test("who credited an account, when and why is in the list of actions", async (t) => {
      const store = await open(t);
      const api = await serveApi(t, store);
      const [account] = await spenders(api, store, 1);
      const path = `POST /api/v1/operator/accounts/${account?.id}`;
      const body = { usd: "5", reference: "gift-1", kind: "grant", reason: "an outage" };
      const days = { days: 3, reference: "gift-2", reason: "a trial" };
      await api.call(`${path}/custom-access`, { token: OPERATOR_TOKEN, body: days });
      for (let times = 0; times < 2; times++) {
        api.runtime.advance(1_000);
        await api.call(`${path}/credit`, { token: OPERATOR_TOKEN, body });
      }
      const { actions } = await read(api, "actions");
      const [again, credited, granted] = actions;
      assert.deepEqual(
        [credited.action, credited.target, credited.actor, credited.outcome],
        ["creditAccount", account?.id, "operator token", "done"],
      );
      assert.equal(credited.detail, "usd: 5, reference: gift-1, kind: grant, reason: an outage");
      assert.match(again.detail, /credited before: nothing was added$/);
      assert.match(granted.detail, /^days: 3, .*reason: a trial$/);
      const { totals } = await read(api, "revenue?days=1");
      assert.deepEqual([totals.paid_in_usd, totals.granted_usd], ["0", "5"]);
    });
  });
});
