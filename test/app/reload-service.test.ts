// Reloading the configuration of a service from one of its workers.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createServiceReload,
  reloadOver,
  serveReload,
} from "../../src/app/operators/reload-service.ts";
import { testBus } from "../cluster/bus-fixture.ts";

test("a worker has the supervisor reload, and is told why it did not", async () => {
  const { hub, worker } = testBus(["1", "2"]);
  const problems: (string | null)[] = [null, "the chains differ"];
  let reloads = 0;
  const reload = async () => ({ problem: problems[reloads++] ?? null, revision: "0123456789ab" });
  serveReload(hub, reload);
  const revision = "0123456789ab";
  assert.deepEqual(await reloadOver(worker("1").bus)(null), { problem: null, revision });
  assert.deepEqual(await reloadOver(worker("2").bus)(null), {
    problem: "the chains differ",
    revision,
  });
  assert.equal(reloads, 2);
});

test("a supervisor that does not answer is told as such", async () => {
  const { worker, world } = testBus(["1"]);
  const reloading = reloadOver(worker("1").bus)(null);
  world.advance(30_000);
  const { problem, revision } = (await reloading) ?? {};
  assert.match(problem ?? "", /did not answer/);
  assert.equal(revision, null);
});

test("what another node was asked for is done once, and not what was asked for before the start", async () => {
  const { hub, worker, world } = testBus(["1", "2"]);
  let reloads = 0;
  const outcome = { problem: null, revision: "0123456789ab" };
  const reload = async () => {
    reloads++;
    return outcome;
  };
  serveReload(hub, createServiceReload(world, world.now(), reload));
  const [one, two] = [reloadOver(worker("1").bus), reloadOver(worker("2").bus)];
  world.advance(1_000);
  assert.equal(await one({ id: "a", ageMs: 5_000 }), null, "the file was read after that");
  const both = await Promise.all([two({ id: "b", ageMs: 400 }), one({ id: "b", ageMs: 900 })]);
  assert.deepEqual([both, reloads], [[outcome, null], 1]);
  world.advance(3_600_000);
  assert.deepEqual(await one({ id: "c", ageMs: 3_000_000 }), outcome, "however late it is heard");
  assert.equal(await two({ id: "c", ageMs: 3_000_001 }), null);
  assert.deepEqual(await one(null), outcome);
  assert.equal(reloads, 3);
});
