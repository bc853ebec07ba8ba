// Reloading the configuration of a service from one of its workers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { reloadOver, serveReload } from "../../src/app/reload-service.ts";
import { testBus } from "../cluster/bus-fixture.ts";

test("a worker has the supervisor reload, and is told why it did not", async () => {
  const { hub, worker } = testBus(["1", "2"]);
  const problems: (string | null)[] = [null, "the chains differ"];
  let reloads = 0;
  serveReload(hub, async () => ({
    problem: problems[reloads++] ?? null,
    revision: "0123456789ab",
  }));
  const revision = "0123456789ab";
  assert.deepEqual(await reloadOver(worker("1").bus), { problem: null, revision });
  assert.deepEqual(await reloadOver(worker("2").bus), { problem: "the chains differ", revision });
  assert.equal(reloads, 2);
});

test("a supervisor that does not answer is told as such", async () => {
  const { worker, world } = testBus(["1"]);
  const reloading = reloadOver(worker("1").bus);
  world.advance(30_000);
  const { problem, revision } = await reloading;
  assert.match(problem ?? "", /did not answer/);
  assert.equal(revision, null);
});
