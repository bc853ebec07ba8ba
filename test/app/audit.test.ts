// What the store keeps of audits, on both engines: the last result of each part, who ran it and
// where, and what is wrong in words, within bounds.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { auditBooks, auditForOperator, auditMoney } from "../../src/app/audit.ts";
import { lastAudit, parseProblems } from "../../src/hosted/audit/audit-results.ts";
import { realRuntime } from "../../src/runtime.ts";
import { openStore, type Store } from "../../src/shared/store/store.ts";
import { simulatedWorld } from "../fakes/runtime.ts";
import { configOf, configText, startService } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";
import { eachStore } from "../fakes/stores.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";
import { createPaid } from "../hosted/accounts/account-fixture.ts";

const runtime = simulatedWorld(1);
const OPERATOR = "operator-of-the-audit-tests-0123456789";
const throwing = (error: unknown): void => {
  throw error;
};

function booksOn(store: Store, node: string | null = null) {
  return auditBooks({ store, runtime, run: { runner: "service", node }, onError: throwing });
}

/** What is wrong with the books from now on: accounts have a unit more than the ledger says. */
async function spoil(store: Store): Promise<void> {
  await sql`update account set balance_n = balance_n + 1`.execute(store.db);
}

eachStore(({ engine, open, place }) => {
  test(`the last audit stands until the next one, with who ran it and what is wrong (${engine})`, async (t) => {
    const store = await open(t);
    assert.deepEqual(await lastAudit(store), { books: null, chains: null });
    await createPaid(store, "acc_a", 5_000n);
    const balanced = await booksOn(store, "node-1");
    assert.deepEqual(balanced, {
      part: "books",
      state: "balanced",
      problem_count: 0n,
      problems: "[]",
      runner: "service",
      node: "node-1",
      checked_at: BigInt(Math.floor(runtime.wallMs())),
    });
    assert.deepEqual(await lastAudit(store), { books: balanced, chains: null });
    await spoil(store);
    const spoiled = await booksOn(store);
    assert.deepEqual([spoiled.state, spoiled.node], ["unbalanced", null]);
    assert.deepEqual(parseProblems(spoiled), [
      "balance acc_a: is 0.000005001 USD, should be 0.000005 USD",
    ]);
    assert.deepEqual((await lastAudit(store)).books, spoiled);
    const found = await auditForOperator({
      ...{ store, runtime, rails: [], onError: throwing },
      run: { runner: "operator", node: null },
    });
    assert.equal(found.books.length, 1);
    const last = await lastAudit(store);
    assert.deepEqual([last.books?.runner, last.chains], ["operator", null]);
  });

  test(`a hundred problems are kept in words, each of bounded length, and the number of all (${engine})`, async (t) => {
    const store = await open(t);
    // Events without entries.
    const events = Array.from({ length: 120 }, (_, n) => ({
      ...{ id: `${"x".repeat(400)}${n}`, idem_key: `k${n}`, created_at: 1n },
      kind: "grant" as const,
    }));
    await store.db.insertInto("ledger_tx").values(events).execute();
    const result = await booksOn(store);
    const problems = parseProblems(result);
    assert.deepEqual([result.problem_count, problems.length], [120n, 100]);
    for (const problem of problems) assert.equal(problem.length, 300);
    assert.deepEqual((await lastAudit(store)).books, result);
  });

  test(`an audit whose result cannot be written has its result all the same (${engine})`, async (t) => {
    const store = await open(t);
    await sql`drop table audit_result`.execute(store.db);
    const errors: unknown[] = [];
    const parts = { store, runtime, onError: (error: unknown) => void errors.push(error) };
    const run = { runner: "service", node: null } as const;
    assert.equal((await auditBooks({ ...parts, run })).state, "balanced");
    assert.equal(errors.length, 1);
  });

  test(`the command keeps its result where it may write (${engine})`, async (t) => {
    const at = await place(t);
    const store = await openStore(at);
    t.after(() => store.close());
    const books = await booksOn(store);
    const config = configOf(
      configText([{ id: "a", url: "http://a.test" }], {
        data_dir: at.dataDir,
        storage: { url: at.url },
      }),
    );
    const parts = { config, runtime, localRails: [], sinceMs: null, onProgress: () => {} };
    const report = await auditMoney(parts);
    assert.equal(report.clean, true);
    const last = await lastAudit(store);
    if (engine === "sqlite") {
      assert.match(report.notKept ?? "", /reading only/);
      assert.deepEqual(last.books, books);
    } else {
      assert.equal(report.notKept, null);
      assert.equal(last.books?.runner, "command");
    }
  });
});

test("the service adds its books up by itself, and the operator reads what it found", async (t) => {
  const upstream = await scriptedUpstream();
  t.after(() => upstream.close());
  const HOUR_MS = 3_600_000;
  // The hour until the first audit is over at once.
  const hasty = {
    ...realRuntime,
    after: (ms: number, run: () => void) => realRuntime.after(ms === HOUR_MS ? 200 : ms, run),
  };
  const profile = { chains: { ethereum: { providers: [{ id: "a", url: upstream.url }] } } };
  const service = await startService(
    configText([{ id: "a", url: upstream.url }], {
      profiles: { premium: profile, public: profile },
      hosted: { enabled: true, operator_token: OPERATOR },
    }),
    hasty,
  );
  t.after(() => service.close());
  const last = async () => {
    const headers = { authorization: `Bearer ${OPERATOR}` };
    const response = await fetch(`${service.url}/api/v1/operator/audit/last`, { headers });
    return JSON.parse(await response.text());
  };
  await until("the books are added up", async () => (await last()).state === "balanced");
  const { books, chains } = await last();
  assert.deepEqual(
    [books.state, books.run_by, books.node, books.problems, chains],
    ["balanced", "service", null, [], null],
  );
});
