// Limits of providers as a node of a cluster opens them: nothing may be sent before it has joined,
// and what it spent while it was alone is counted with what all spend.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import pino from "pino";
import { openProviderLimits } from "../../src/app/provider-limits.ts";
import { moveKeptQuotas } from "../../src/app/quota-service.ts";
import { dayOf, monthOf } from "../../src/core/provider/quota.ts";
import { realRuntime } from "../../src/runtime.ts";
import { QUOTA_FILE, writeQuotas } from "../../src/store/quota-file.ts";
import { WHOLE_SHARES } from "../../src/upstream/worker-shares.ts";
import { configOf, configText } from "../fakes/service.ts";
import { eachStore } from "../fakes/stores.ts";

const LIMITS = { daily: null, monthly: 100, resetsOn: 1 };
const KEY = "team/ethereum vendor";

test("what a node spent is not forgotten where it cannot be added", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "svc-limits-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const record = { dayMs: 0, daySpent: 7, monthMs: 0, monthSpent: 70 };
  await writeQuotas(dataDir, new Map([[KEY, record]]));
  const away = () => Promise.reject(new Error("the database is away"));
  await assert.rejects(moveKeptQuotas(dataDir, away), /away/);
  const added: unknown[] = [];
  const add = async (...kept: readonly unknown[]): Promise<void> => void added.push(kept);
  await moveKeptQuotas(dataDir, add);
  await moveKeptQuotas(dataDir, add);
  assert.deepEqual(added, [[KEY, record]], "at the next start, once");
});

eachStore(({ engine, open }) => {
  test(`a node that served alone brings what it has spent (${engine})`, async (t) => {
    const store = await open(t);
    const dataDir = mkdtempSync(join(tmpdir(), "svc-limits-"));
    t.after(async () => rmSync(dataDir, { recursive: true, force: true }));
    const nowMs = realRuntime.wallMs();
    const month = { monthMs: monthOf(nowMs, 1).startMs, monthSpent: 70 };
    const day = { dayMs: dayOf(nowMs).startMs, daySpent: 7 };
    await writeQuotas(dataDir, new Map([[KEY, { ...day, ...month }]]));
    const config = configOf(configText([{ id: "vendor", url: "http://127.0.0.1:1" }]));
    const node = async (id: string) => {
      const limits = await openProviderLimits({
        config: { dataDir, cluster: { ...config.cluster, enabled: true } },
        runtime: realRuntime,
        log: pino({ level: "silent" }),
        workerShares: WHOLE_SHARES,
        bus: null,
      });
      const share = limits.shares.of(`rps ${KEY}`, 10, { used: () => 0, wanted: () => 0 });
      assert.equal(share.limit, 0, "nothing may be sent yet");
      const hints = { tell() {}, subscribe: () => () => {} };
      await limits.join({ store, id, nodeTimeoutMs: 60_000, hints });
      return { ...limits, share };
    };
    const first = await node("n1");
    assert.equal(first.share.limit, 10);
    assert.ok(!existsSync(join(dataDir, QUOTA_FILE)));
    const request = { key: KEY, limits: LIMITS, credits: 50 };
    const lease = (await first.quotas.lease(request)) ?? assert.fail();
    assert.deepEqual([lease.credits, lease.monthSpent], [30, 100]);
    first.quotas.giveBack(KEY, { ...lease, credits: 20 });
    await first.close();
    const second = await node("n2");
    assert.equal(second.share.limit, 10, "the first has left");
    assert.equal((await second.quotas.lease(request))?.credits, 20);
    await second.close();
  });
});
