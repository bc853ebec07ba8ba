// The records of the console, wherever they are: in a store of either engine, in a file, or with
// the supervisor, for a worker. All of them answer alike, and what has to last does.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { openFileRecords, recordsOver, serveRecords } from "../../src/app/operator-records.ts";
import {
  type OperatorAction,
  type OperatorCordon,
  type OperatorRecords,
  RECORD_LIMITS,
} from "../../src/hosted/operator/records.ts";
import { createStoredRecords } from "../../src/hosted/operator/stored-records.ts";
import { newId } from "../../src/secrets/secret.ts";
import { testBus } from "../cluster/bus-fixture.ts";
import { eachStore } from "../fakes/stores.ts";

const cordonOf = (provider: string, reason: string | null = null): OperatorCordon => ({
  profile: "public",
  chain: "ethereum",
  provider,
  reason,
  actor: "operator token",
  atMs: 5,
});
const actionAt = (atMs: number): OperatorAction => ({
  id: newId("act", atMs),
  atMs,
  actor: "operator token",
  address: "127.0.0.1",
  action: "cordonProvider",
  target: null,
  detail: null,
  outcome: "done",
  node: null,
});
const sessionOf = (idHash: string, atMs: number) => ({
  idHash,
  role: "operator" as const,
  tokenRef: "t",
  createdAtMs: atMs,
  expiresAtMs: atMs + 1_000,
});

function keepsRecords(open: (t: TestContext) => Promise<OperatorRecords>): void {
  test("sessions are found until they end, expire or make room", async (t) => {
    const records = await open(t);
    assert.equal(await records.addSession(sessionOf("a", 0)), true);
    assert.equal(await records.addSession(sessionOf("a", 1)), false, "one id, one session");
    assert.deepEqual(await records.session("a", 999), sessionOf("a", 0));
    assert.equal(await records.session("a", 1_000), null);
    for (let i = 1; i <= RECORD_LIMITS.sessionsPerToken; i++)
      await records.addSession(sessionOf(`b${i}`, i));
    assert.equal(await records.session("a", 999), null);
    assert.notEqual(await records.session("b1", 999), null);
    await records.endSession("b1");
    await records.endSession("b1");
    assert.equal(await records.session("b1", 999), null);
  });

  test("a cordon is replaced and taken away", async (t) => {
    const records = await open(t);
    assert.equal(await records.cordon(cordonOf("x")), true);
    assert.equal(await records.cordon(cordonOf("y")), true);
    assert.equal(await records.cordon(cordonOf("x", "slow")), true);
    const cordons = [...(await records.cordons())];
    cordons.sort((left, right) => left.provider.localeCompare(right.provider));
    assert.deepEqual(cordons, [cordonOf("x", "slow"), cordonOf("y")]);
    assert.equal(await records.uncordon(cordonOf("x")), true);
    assert.equal(await records.uncordon(cordonOf("x")), false);
    assert.deepEqual(await records.cordons(), [cordonOf("y")]);
  });

  test("actions are read by pages, the newest first", async (t) => {
    const records = await open(t);
    const actions = [1, 2, 3, 4, 5].map(actionAt);
    for (const action of actions) await records.addAction(action);
    const first = await records.actions({ limit: 2, after: null });
    assert.deepEqual(first.actions, [actions[4], actions[3]]);
    const second = await records.actions({ limit: 3, after: first.next });
    assert.deepEqual(second, { actions: [actions[2], actions[1], actions[0]], next: null });
  });
}

const directory = (t: TestContext): string => {
  const dataDir = mkdtempSync(join(tmpdir(), "svc-records-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  return dataDir;
};
const log = { error: () => {} };

eachStore(({ engine, open }) => {
  describe(`records in the store (${engine})`, () => {
    keepsRecords(async (t) => createStoredRecords(await open(t)));
  });
});

describe("records in a file", () => {
  keepsRecords((t) => openFileRecords({ log, dataDir: directory(t) }));

  test("cordons and actions outlive the process, sessions do not", async (t) => {
    const dataDir = directory(t);
    const before = await openFileRecords({ log, dataDir });
    await Promise.all([
      before.addSession(sessionOf("a", 0)),
      before.cordon(cordonOf("x")),
      before.addAction(actionAt(1)),
      before.addAction(actionAt(2)),
    ]);
    const after = await openFileRecords({ log, dataDir });
    assert.deepEqual(await after.cordons(), [cordonOf("x")]);
    assert.equal((await after.actions({ limit: 9, after: null })).actions.length, 2);
    assert.equal(await after.session("a", 1), null);
  });

  test("a file that makes no sense is put aside", async (t) => {
    const dataDir = directory(t);
    for (const text of ["{", '{"cordons":[{}],"actions":[]}']) {
      writeFileSync(join(dataDir, "operator.json"), text);
      const records = await openFileRecords({ log, dataDir });
      assert.deepEqual(await records.cordons(), []);
      assert.equal(readFileSync(join(dataDir, "operator.json.unreadable"), "utf8"), text);
    }
  });
});

describe("records of the supervisor, for a worker", () => {
  keepsRecords(async (t) => {
    const { hub, worker } = testBus(["1", "2"]);
    serveRecords(hub, await openFileRecords({ log, dataDir: directory(t) }));
    return recordsOver(worker("2").bus);
  });

  test("without the supervisor a call fails as a store does", async () => {
    const { worker, world } = testBus(["1"]);
    const reading = recordsOver(worker("1").bus).session("a", 0);
    world.advance(2_000);
    await assert.rejects(reading, /timed out/);
  });
});
