// Limits of providers as a node of a cluster opens them: nothing may be sent before it has joined,
// and what it did not spend is there for others.
import assert from "node:assert/strict";
import { test } from "node:test";
import pino from "pino";
import { openProviderLimits } from "../../src/app/store/provider-limits.ts";
import { StoredQuotas } from "../../src/app/store/stored-quotas.ts";
import { realRuntime } from "../../src/runtime.ts";
import { IN_MEMORY } from "../../src/shared/store/sqlite.ts";
import { openStore, type Store } from "../../src/shared/store/store.ts";
import { ALONE, configOf, configText } from "../fakes/service.ts";
import { eachStore } from "../fakes/stores.ts";

const LIMITS = { daily: null, monthly: 100, resetsOn: 1 };
const KEY = "team/ethereum vendor";

eachStore(({ engine, open }) => {
  test(`a node has nothing to send before it joins, and gives credits back (${engine})`, async (t) => {
    const store = await open(t);
    const config = configOf(configText([{ id: "vendor", url: "http://127.0.0.1:1" }]));
    const node = async (id: string) => {
      const limits = openProviderLimits({
        config: { cluster: { ...config.cluster, enabled: true } },
        runtime: realRuntime,
        log: pino({ level: "silent" }),
        service: ALONE,
      });
      const share = limits.shares.of(`rps ${KEY}`, 10, { used: () => 0, wanted: () => 0 });
      assert.equal(share.limit, 0, "nothing may be sent yet");
      await limits.join(store, { node: { id, region: "" }, nodeTimeoutMs: 60_000 });
      return { ...limits, share };
    };
    const first = await node("n1");
    assert.equal(first.share.limit, 10);
    const request = { key: KEY, limits: LIMITS, credits: 50 };
    assert.equal((await first.quotas.lease(request))?.credits, 50);
    const lease = (await first.quotas.lease({ ...request, credits: 80 })) ?? assert.fail();
    assert.deepEqual([lease.credits, lease.monthSpent], [50, 100]);
    first.quotas.giveBack(KEY, { ...lease, credits: 20 });
    await first.close();
    const second = await node("n2");
    assert.equal(second.share.limit, 10, "the first has left");
    assert.equal((await second.quotas.lease(request))?.credits, 20);
    await second.close();
  });
});

test("while an embedded store cannot be written, limits hold in memory", async (t) => {
  const store = await openStore({ url: "", dataDir: IN_MEMORY });
  t.after(() => store.close());
  let isFull = false;
  const errors: unknown[] = [];
  const transaction: Store["transaction"] = (run) =>
    isFull ? Promise.reject(new Error("database or disk is full")) : store.transaction(run);
  const place = Promise.resolve({ engine: "sqlite" as const, transaction });
  const onError = (error: unknown): void => void errors.push(error);
  const quotas = new StoredQuotas(place, { runtime: realRuntime, processes: 2, onError });
  const request = { key: KEY, limits: LIMITS, credits: 20 };
  assert.equal((await quotas.lease(request))?.credits, 20);
  isFull = true;
  const granted: number[] = [];
  for (let n = 0; n < 4; n++) granted.push((await quotas.lease(request))?.credits ?? -1);
  assert.deepEqual(granted, [20, 20, 20, 10], "half of what is left is the other process's");
  assert.equal(errors.length, 1);
  isFull = false;
  assert.equal((await quotas.lease({ ...request, credits: 100 }))?.credits, 80);
});

test("a server that does not answer hands out nothing", async () => {
  const away = () => Promise.reject(new Error("connection refused"));
  const place = Promise.resolve({ engine: "postgres" as const, transaction: away });
  const quotas = new StoredQuotas(place, { runtime: realRuntime, processes: 1, onError: () => {} });
  assert.equal(await quotas.lease({ key: KEY, limits: LIMITS, credits: 20 }), null);
  await quotas.close();
});
