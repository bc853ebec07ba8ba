// A block time that no configuration declares is learned from heads, and what depends on it
// follows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { pino } from "pino";
import { ServedChains } from "../../src/app/served-chains.ts";
import { verificationOf } from "../../src/core/stream/log-verification.ts";
import { ProfileRegistry } from "../../src/upstream/registry/profile-registry.ts";
import { SELECTION } from "../fakes/providers.ts";
import { simulatedWorld } from "../fakes/runtime.ts";
import { configOf, configText } from "../fakes/service.ts";

const POLL_MS = 12_000;

function fixture(chain: Readonly<Record<string, unknown>>) {
  const providers = ["a", "b", "c"].map((id) => ({ id, url: `http://${id}.test/` }));
  const config = configOf(configText(providers, { chains: { ethereum: chain } }));
  const world = simulatedWorld(3);
  const registry = new ProfileRegistry(config.chains, config.profiles, world, SELECTION);
  const log = pino({ level: "silent" });
  const served = new ServedChains({ runtime: world, log, registry, config: () => config });
  const tracker = () => {
    const found = registry.profile("team")?.trackers.get("ethereum");
    assert.ok(found);
    return found;
  };
  let height = 1_000;
  /** Blocks pass, of which every provider is asked every twelve seconds. */
  const pass = (forMs: number, blockTimeMs: number): void => {
    for (let ms = 0; ms < forMs; ms += POLL_MS) {
      height += POLL_MS / blockTimeMs;
      const result = { kind: "ok", chainId: 1_000_001, height: Math.floor(height) } as const;
      for (const provider of tracker().set.providers)
        tracker().recordProbe({ provider, transport: "http", latencyMs: 1, result });
      world.advance(POLL_MS);
    }
  };
  return { world, registry, served, tracker, pass, config };
}

test("a fast chain is found to be fast within a minute, and keeps the health of its providers", () => {
  const { tracker, pass, registry, config, served } = fixture({ chain_id: 1_000_001 });
  assert.equal(tracker().set.chain.blockTimeMs, 12_000);
  assert.equal(verificationOf(tracker().set), "strict");
  const [before] = tracker().set.providers;
  assert.ok(before);
  pass(60_000, 250);
  const { chain } = tracker().set;
  assert.ok(Math.abs(chain.blockTimeMs - 250) < 50, `${chain.blockTimeMs} ms`);
  assert.deepEqual(registry.chains, [chain]);
  assert.equal(verificationOf(tracker().set), "sampled");
  assert.notEqual(tracker().health(before, "http").height, null);
  const { revision } = registry;
  pass(600_000, 260);
  assert.equal(registry.revision, revision, "a pace that is nearly the same changes nothing");
  served.configured([]);
  assert.deepEqual(tracker().set.chain, registry.chains[0]);
  assert.notEqual(config.chains[0]?.blockTimeMs, chain.blockTimeMs);
  assert.deepEqual(registry.chains, [chain], "a reload keeps what was learned");
});

test("a declared block time stays, whatever heads tell", () => {
  const { tracker, pass } = fixture({ chain_id: 1_000_001, block_time_ms: 12_000 });
  pass(600_000, 250);
  assert.equal(tracker().set.chain.blockTimeMs, 12_000);
});
