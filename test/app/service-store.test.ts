// The store of every service: a plain router needs neither a server nor a disk, and what earlier
// versions kept in files is taken over once.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { takeOverFiles } from "../../src/app/store/kept-files.ts";
import { openServiceStore } from "../../src/app/store/service-store.ts";
import { dayOf, monthOf } from "../../src/core/provider/budget/quota.ts";
import { OperatorRecords } from "../../src/hosted/operator/stored-records.ts";
import { leaseCredits } from "../../src/shared/leases/stored-quotas.ts";
import { openStore } from "../../src/shared/store/store.ts";
import { ALONE, configOf, configText } from "../fakes/service.ts";
import { eachStore } from "../fakes/stores.ts";

const KEY = "team/ethereum vendor";
const LIMITS = { daily: null, monthly: 100, resetsOn: 1 };
const KEPT_CORDON = {
  profile: "public",
  chain: "ethereum",
  provider: "x",
  reason: null,
  actor: "operator token",
  atMs: 5,
};
const CORDON = { ...KEPT_CORDON, untilMs: null };
const ACTION = {
  id: "act_1",
  atMs: 1,
  actor: "operator token",
  address: "127.0.0.1",
  action: "cordonProvider",
  target: null,
  detail: null,
  outcome: "done",
  node: null,
};

function directory(t: TestContext): string {
  const dataDir = mkdtempSync(join(tmpdir(), "svc-store-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  return dataDir;
}

/** Writes the two files as svc 0.1.0 did. */
function writeFiles(dataDir: string): void {
  const nowMs = Date.now();
  const month = { monthMs: monthOf(nowMs, 1).startMs, monthSpent: 70 };
  const providers = { [KEY]: { dayMs: dayOf(nowMs).startMs, daySpent: 7, ...month } };
  writeFileSync(join(dataDir, "provider-quotas.json"), JSON.stringify({ version: 1, providers }));
  const records = { cordons: [KEPT_CORDON], actions: [ACTION] };
  writeFileSync(join(dataDir, "operator.json"), JSON.stringify(records));
}

function counted() {
  const lines: object[] = [];
  const add = (line: object): void => void lines.push(line);
  return { lines, log: { warn: add, error: add } };
}

eachStore(({ engine, open }) => {
  test(`files of an earlier version are taken over once (${engine})`, async (t) => {
    const store = await open(t);
    const dataDir = directory(t);
    writeFiles(dataDir);
    const { lines, log } = counted();
    const take = () => takeOverFiles(store, { dataDir, log });
    await Promise.all([take(), take()]);
    await take();
    const records = new OperatorRecords(store);
    assert.deepEqual(await records.cordons(), [CORDON]);
    assert.deepEqual((await records.actions({ limit: 9, after: null })).actions, [ACTION]);
    const lease = await leaseCredits(store, { key: KEY, limits: LIMITS, credits: 50 });
    assert.deepEqual([lease.credits, lease.monthSpent], [30, 100], "70 of 100 were spent before");
    assert.deepEqual(lines, []);
    assert.deepEqual(readdirSync(dataDir).sort(), [
      "operator.json.moved",
      "provider-quotas.json.moved",
    ]);
  });
});

for (const moment of ["inside", "committed"])
  test(`a process killed in the take-over (${moment}) loses nothing and doubles nothing`, async (t) => {
    const dataDir = directory(t);
    writeFiles(dataDir);
    const child = join(import.meta.dirname, "../fakes/take-over-child.ts");
    for (const transaction of [1, 2, 0]) {
      const args = [child, dataDir, moment, String(transaction)];
      const { signal, stderr } = spawnSync(process.execPath, args);
      assert.equal(signal, transaction === 0 ? null : "SIGKILL", String(stderr));
    }
    const store = await openStore({ url: "", dataDir });
    t.after(() => store.close());
    const records = new OperatorRecords(store);
    assert.deepEqual(await records.cordons(), [CORDON]);
    assert.deepEqual((await records.actions({ limit: 9, after: null })).actions, [ACTION]);
    const credits = await store.db.selectFrom("provider_quota").select("month_spent").execute();
    assert.deepEqual(credits, [{ month_spent: 70n }]);
  });

test("files of a router of 192b98aa are taken over", async (t) => {
  const dataDir = directory(t);
  const files = join(import.meta.dirname, "../data/192b98aa");
  for (const file of ["operator.json", "provider-quotas.json"])
    copyFileSync(join(files, file), join(dataDir, file));
  const store = await openStore({ url: "", dataDir });
  t.after(() => store.close());
  const { lines, log } = counted();
  await takeOverFiles(store, { dataDir, log });
  assert.deepEqual(lines, []);
  const [cordon] = await new OperatorRecords(store).cordons();
  assert.deepEqual([cordon?.provider, cordon?.reason], ["own", "maintenance"]);
  const credits = await store.db.selectFrom("provider_quota").selectAll().execute();
  assert.deepEqual(
    credits.map(({ scope, day_spent, month_spent }) => [scope, day_spent, month_spent]),
    [["team ethereum vendor", 12n, 12n]],
  );
});

test("a file that cannot be taken over is there for the next start, and is told of", async (t) => {
  const dataDir = directory(t);
  const store = await openStore({ url: "", dataDir });
  t.after(() => store.close());
  for (const text of ["{", '{"cordons":[{}],"actions":[]}']) {
    writeFileSync(join(dataDir, "operator.json"), text);
    const { lines, log } = counted();
    await takeOverFiles(store, { dataDir, log });
    assert.equal(lines.length, 1);
    assert.equal(readFileSync(join(dataDir, "operator.json"), "utf8"), text);
    assert.deepEqual(await new OperatorRecords(store).cordons(), []);
  }
});

test("a second router in one data_dir keeps its store in memory, and takes no file", async (t) => {
  const dataDir = directory(t);
  const text = configText([{ id: "vendor", url: "http://127.0.0.1:1" }], { data_dir: dataDir });
  const { lines, log } = counted();
  const parts = { config: configOf(text), log, service: ALONE };
  const first = await openServiceStore(parts);
  await new OperatorRecords(first).cordon(CORDON);
  writeFiles(dataDir);
  assert.deepEqual(lines, []);
  const second = await openServiceStore(parts);
  assert.equal(lines.length, 1);
  assert.deepEqual(await new OperatorRecords(second).cordons(), []);
  assert.ok(existsSync(join(dataDir, "operator.json")));
  await second.close();
  await first.close();
  const third = await openServiceStore(parts);
  assert.deepEqual(await new OperatorRecords(third).cordons(), [CORDON], "it outlives the process");
  await third.close();
});

test("a router starts where data_dir cannot be written", async (t) => {
  const file = join(directory(t), "file");
  writeFileSync(file, "no directory");
  const text = configText([{ id: "vendor", url: "http://127.0.0.1:1" }], {
    data_dir: join(file, "data"),
  });
  const { lines, log } = counted();
  const store = await openServiceStore({ config: configOf(text), log, service: ALONE });
  t.after(() => store.close());
  assert.equal(lines.length, 1);
  assert.equal(await new OperatorRecords(store).cordon(CORDON), true);
});
