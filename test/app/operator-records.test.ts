// The records of the console in a store of either engine.
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import {
  type OperatorAction,
  type OperatorCordon,
  OperatorRecords,
  RECORD_LIMITS,
} from "../../src/hosted/operator/stored-records.ts";
import { newId } from "../../src/secrets/secret.ts";
import { eachStore } from "../fakes/stores.ts";

const cordonOf = (provider: string, reason: string | null = null): OperatorCordon => ({
  profile: "public",
  chain: "ethereum",
  provider,
  reason,
  actor: "operator token",
  atMs: 5,
  untilMs: null,
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

  test("cordons that have ended make room for others", async (t) => {
    const records = await open(t);
    const ending = { ...cordonOf("x"), untilMs: 8 };
    assert.equal(await records.cordon(ending, cordonOf("y")), true);
    assert.equal(await records.cordon({ ...cordonOf("z"), atMs: 8 }), true);
    const providers = (await records.cordons()).map(({ provider }) => provider);
    assert.deepEqual(providers.sort(), ["y", "z"]);
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

eachStore(({ engine, open }) => {
  describe(`records in the store (${engine})`, () => {
    keepsRecords(async (t) => new OperatorRecords(await open(t)));
  });
});
