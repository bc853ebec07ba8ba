// Reloading the configuration of a service from one of its workers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { reloadOver, serveReload } from "../../src/app/reload-service.ts";
import { testBus } from "../cluster/bus-fixture.ts";

test("a worker has the supervisor reload, and is told why it did not", async () => {
  const { hub, worker } = testBus(["1", "2"]);
  const problems: (string | null)[] = [null, "the chains differ"];
  let reloads = 0;
  serveReload(hub, async () => problems[reloads++] ?? null);
  assert.equal(await reloadOver(worker("1").bus), null);
  assert.equal(await reloadOver(worker("2").bus), "the chains differ");
  assert.equal(reloads, 2);
});

test("a supervisor that does not answer is told as such", async () => {
  const { worker, world } = testBus(["1"]);
  const reloading = reloadOver(worker("1").bus);
  world.advance(30_000);
  assert.match((await reloading) ?? "", /did not answer/);
});
