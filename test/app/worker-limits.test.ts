// The bounds of one of several workers: together never more than the service's, and one caller may
// still send the largest body.
import assert from "node:assert/strict";
import { test } from "node:test";
import { workerConfig } from "../../src/app/workers/worker-limits.ts";
import { configOf, configText } from "../fakes/service.ts";

const PROVIDERS = [{ id: "a", url: "http://127.0.0.1:9" }];

test("one process keeps its configuration", () => {
  const config = configOf(configText(PROVIDERS));
  assert.equal(workerConfig(config, 1), config);
});

test("bounds of memory and connections are divided, bounds of single requests are not", () => {
  const config = configOf(configText(PROVIDERS));
  for (const workers of [2, 3, 4, 8, 64]) {
    const { limits } = workerConfig(config, workers);
    for (const name of ["maxInFlightBytes", "maxFilterBytes", "maxConnections"] as const) {
      const rest = config.limits[name] - limits[name] * workers;
      assert.ok(rest >= 0 && rest < workers, `${name} of ${workers}: ${limits[name]}`);
    }
    assert.ok(limits.maxCallerBytes <= limits.maxInFlightBytes);
    const { maxInFlightBytes, maxFilterBytes, maxConnections, maxCallerBytes } = config.limits;
    const same = { maxInFlightBytes, maxFilterBytes, maxConnections, maxCallerBytes };
    assert.deepEqual({ ...limits, ...same }, config.limits);
  }
  assert.equal(workerConfig(config, 2).limits.maxCallerBytes, 32_000_000);
  assert.equal(workerConfig(config, 8).limits.maxCallerBytes, 16_000_000);
  const tiny = configOf(configText(PROVIDERS, { limits: { max_connections: 3 } }));
  assert.equal(workerConfig(tiny, 8).limits.maxConnections, 1);
});
