// Credits of days and months in simulated time: through crashes, several workers, turns of days and
// disks that fail, no more is ever spent than the limit, and close to all of it can be.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  creditsLeft,
  type QuotaLimits,
  type QuotaRecord,
  recordAt,
  returned,
  spent,
} from "../../../src/core/provider/budget/quota.ts";
import type { QuotaLease, QuotaSource } from "../../../src/upstream/budget/provider-quota.ts";
import { ProviderQuota } from "../../../src/upstream/budget/provider-quota.ts";
import { seededRandom, simulatedWorld } from "../../fakes/runtime.ts";
import { namedSeeds } from "../../fakes/seed.ts";

const KEY = "public ethereum vendor";
const DAY_MS = 86_400_000;

/** What was handed out, which outlives the processes that it was handed out to. */
function disk() {
  return { kept: new Map<string, QuotaRecord>(), writes: 0 };
}

type World = ReturnType<typeof simulatedWorld>;

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Hands out as the store does: what is handed out is written first, and counts as spent. */
function started(runtime: World, on: ReturnType<typeof disk>): { readonly ledger: QuotaSource } {
  const write = (key: string, record: QuotaRecord): void => {
    on.kept.set(key, record);
    on.writes += 1;
  };
  return {
    ledger: {
      async lease({ key, limits, credits }) {
        await turn();
        const record = recordAt(on.kept.get(key) ?? null, runtime.wallMs(), limits.resetsOn);
        const granted = Math.min(credits, creditsLeft(record, limits));
        const after = spent(record, granted);
        if (granted > 0) write(key, after);
        return { ...after, credits: granted };
      },
      giveBack(key, unspent) {
        const record = on.kept.get(key);
        if (record !== undefined) write(key, returned(record, unspent.credits, unspent));
      },
      close: async () => {},
    },
  };
}

/** What a process sees of the world: once it is dead its timers do nothing. */
function newProcess(world: World): { readonly runtime: World; die(): void } {
  let isDead = false;
  const after: World["after"] = (ms, run) =>
    world.after(ms, () => {
      if (!isDead) run();
    });
  return {
    runtime: { ...world, after },
    die() {
      isDead = true;
    },
  };
}

async function settle(runtime: World): Promise<void> {
  for (let n = 0; n < 4; n++) {
    await turn();
    runtime.advance(20);
  }
}

function spendAll(
  { quota, runtime }: { quota: ProviderQuota; runtime: World },
  calls: number,
  credits = 1,
): number {
  let spent = 0;
  for (let n = 0; n < calls; n++) {
    if (quota.shortageOf(credits, runtime.now()) !== null) break;
    quota.spend(credits);
    spent += credits;
  }
  return spent;
}

/** How much can be spent hangs on how many days chance brings: in these there are enough. */
const LONG = [1, 2, 3];
/** A lease was under way when its day ended, and came on top of the next day's limit. */
const OVER_MIDNIGHT = [2_001, 2_004];

for (const seed of namedSeeds(...LONG, ...OVER_MIDNIGHT))
  test(`never more than the limits, whatever crashes and however often (seed ${seed})`, async () => {
    const runtime = simulatedWorld(seed);
    const random = seededRandom(seed);
    const limits: QuotaLimits = { daily: 2_000, monthly: 7_000, resetsOn: 1 };
    const on = disk();
    const byDay = new Map<number, number>();
    let month = 0;
    let life = newProcess(runtime);
    let { ledger } = started(life.runtime, on);
    const worker = (): ProviderQuota =>
      new ProviderQuota(KEY, limits, { runtime: life.runtime, source: ledger });
    let workers = [worker(), worker()];
    for (let step = 0; step < 400; step++) {
      const quota = workers[Math.floor(random() * workers.length)] ?? assert.fail();
      const day = Math.floor(runtime.wallMs() / DAY_MS);
      const spent = spendAll(
        { quota, runtime },
        Math.floor(random() * 60),
        1 + Math.floor(random() * 3),
      );
      byDay.set(day, (byDay.get(day) ?? 0) + spent);
      month += spent;
      const chance = random();
      if (chance < 0.03) {
        // The process dies: what it holds and what was not written is gone.
        life.die();
        life = newProcess(runtime);
        ledger = started(life.runtime, on).ledger;
        workers = [worker(), worker()];
      } else if (chance < 0.06) {
        for (const one of workers) one.close();
        workers = [worker(), worker()];
      } else if (chance < 0.08) runtime.advance(random() * DAY_MS);
      await settle(runtime);
    }
    for (const [day, spent] of byDay) assert.ok(spent <= 2_000, `day ${day}: ${spent}`);
    assert.ok(runtime.wallMs() < Date.UTC(2026, 1, 1), "all of it in one month");
    assert.ok(month <= 7_000, `${month} in a month`);
    assert.ok(month >= 5_000 || !LONG.includes(seed), `${month}: crashes cost little`);
  });

test("a lease is over with its day, unless those who hand out still have that day", async () => {
  const runtime = simulatedWorld(6);
  const today = { dayMs: runtime.wallMs(), daySpent: 50, monthMs: runtime.wallMs() };
  const lease = { ...today, monthSpent: 50, credits: 50 };
  const answers: ((lease: QuotaLease) => void)[] = [];
  const returned: number[] = [];
  const source: QuotaSource = {
    lease: () => new Promise((resolve) => void answers.push(resolve)),
    giveBack: (_, { credits }) => void returned.push(credits),
    close: async () => {},
  };
  runtime.advance(DAY_MS - 500);
  const limits: QuotaLimits = { daily: 100, monthly: null, resetsOn: 1 };
  const quota = new ProviderQuota(KEY, limits, { runtime, source });
  runtime.advance(600);
  answers[0]?.(lease);
  await turn();
  assert.equal(quota.shortageOf(1, runtime.now()), "daily_limit", "its day ended on the way");
  assert.deepEqual([returned, answers.length], [[50], 2], "it goes back, and another is asked for");
  answers[1]?.(lease);
  await turn();
  assert.equal(quota.shortageOf(1, runtime.now()), null, "their clock is behind ours");
  runtime.advance(1_000);
  assert.equal(quota.shortageOf(1, runtime.now()), "daily_limit", "that holds for a second");
});

test("one process can spend all of it, and names what it lacks until the day turns", async () => {
  const runtime = simulatedWorld(5);
  const on = disk();
  const { ledger } = started(runtime, on);
  const limits: QuotaLimits = { daily: 100, monthly: 1_000, resetsOn: 1 };
  const quota = new ProviderQuota(KEY, limits, { runtime, source: ledger });
  await quota.pending;
  let spent = 0;
  for (let n = 0; n < 40; n++) {
    spent += spendAll({ quota, runtime }, 10);
    await settle(runtime);
  }
  assert.equal(spent, 100);
  assert.equal(quota.shortageOf(1, runtime.now()), "daily_limit");
  const { daily, monthly } = quota.report();
  assert.deepEqual([daily?.used, daily?.limit, monthly?.used], [100, 100, 100]);
  assert.equal(quota.waitMs(1, runtime.now()), daily?.resetsInMs);
  runtime.advance((daily?.resetsInMs ?? 0) + 1);
  quota.shortageOf(1, runtime.now());
  await settle(runtime);
  assert.equal(quota.shortageOf(1, runtime.now()), null);
  assert.equal(quota.report().daily?.used, 0);
  assert.equal(quota.report().monthly?.used, 100);
});

test("a clean end gives back what was not spent, and a start goes on from there", async () => {
  const runtime = simulatedWorld(6);
  const on = disk();
  const first = started(runtime, on);
  const limits: QuotaLimits = { daily: null, monthly: 10_000, resetsOn: 1 };
  const quota = new ProviderQuota(KEY, limits, { runtime, source: first.ledger });
  await quota.pending;
  assert.equal(spendAll({ quota, runtime }, 3, 5), 15);
  quota.close();
  const closed = first.ledger.close();
  await settle(runtime);
  await closed;
  assert.equal(on.kept.get(KEY)?.monthSpent, 15);
  const again = new ProviderQuota(KEY, limits, { runtime, source: started(runtime, on).ledger });
  await again.pending;
  assert.equal(again.report().monthly?.used, 15);
});

test("a steady rate costs a write every second or so, not one a call", async () => {
  const runtime = simulatedWorld(7);
  const on = disk();
  const { ledger } = started(runtime, on);
  const limits: QuotaLimits = { daily: 1_000_000, monthly: null, resetsOn: 1 };
  const quota = new ProviderQuota(KEY, limits, { runtime, source: ledger });
  await quota.pending;
  let refused = 0;
  for (let n = 0; n < 10_000; n++) {
    if (quota.shortageOf(40, runtime.now()) === null) quota.spend(40);
    else refused += 1;
    runtime.advance(1);
    if (n % 5 === 0) await turn();
  }
  assert.equal(refused, 0, "no call waits for a lease");
  assert.ok(on.writes <= 60, `${on.writes} writes in 10 s`);
});

test("nobody who hands out credits: nothing is spent, and it is asked again", async () => {
  const runtime = simulatedWorld(9);
  let asked = 0;
  let answers = false;
  const source: QuotaSource = {
    lease: async ({ credits }) => {
      asked += 1;
      const record = { dayMs: 0, daySpent: 0, monthMs: 0, monthSpent: 0 };
      return answers
        ? { ...record, dayMs: runtime.wallMs(), monthMs: runtime.wallMs(), credits }
        : null;
    },
    giveBack() {},
    close: async () => {},
  };
  const limits: QuotaLimits = { daily: 50, monthly: null, resetsOn: 1 };
  const quota = new ProviderQuota(KEY, limits, { runtime, source });
  for (let n = 0; n < 100; n++) {
    assert.equal(quota.shortageOf(1, runtime.now()), "daily_limit");
    await turn();
    runtime.advance(10);
  }
  assert.ok(asked <= 5, `${asked} requests in a second`);
  answers = true;
  runtime.advance(300);
  quota.shortageOf(1, runtime.now());
  await turn();
  assert.equal(quota.shortageOf(1, runtime.now()), null);
});

test("what a process does not use goes back after a while, and it can go on at once", async () => {
  const runtime = simulatedWorld(1);
  const { ledger } = started(runtime, disk());
  const limits: QuotaLimits = { daily: null, monthly: 20_000, resetsOn: 1 };
  const parts = { runtime, source: ledger };
  const [idle, busy] = [
    new ProviderQuota(KEY, limits, parts),
    new ProviderQuota(KEY, limits, parts),
  ];
  await settle(runtime);
  assert.equal(spendAll({ quota: idle, runtime }, 1), 1);
  for (let n = 0; n < 30; n++) {
    spendAll({ quota: busy, runtime }, 1);
    runtime.advance(1_000);
    await settle(runtime);
  }
  await settle(runtime);
  const { credits, monthSpent } = (await lastOf(ledger, runtime, limits)) ?? assert.fail();
  assert.equal(credits, 0);
  assert.ok(monthSpent <= 31 + 100 + 16, `${monthSpent} handed out`);
  assert.equal(spendAll({ quota: idle, runtime }, 10), 10, "it kept a few");
});

test("what is shown is what all have spent, also where nothing is spent", async () => {
  const runtime = simulatedWorld(1);
  const { ledger } = started(runtime, disk());
  const limits: QuotaLimits = { daily: 1_000, monthly: null, resetsOn: 1 };
  const parts = { runtime, source: ledger };
  const [reader, busy] = [
    new ProviderQuota(KEY, limits, parts),
    new ProviderQuota(KEY, limits, parts),
  ];
  await settle(runtime);
  for (let n = 0; n < 50; n++) {
    spendAll({ quota: busy, runtime }, 10);
    await settle(runtime);
  }
  runtime.advance(5_000);
  reader.report();
  await settle(runtime);
  const used = reader.report().daily?.used ?? 0;
  assert.ok(used >= 500 && used <= 600, `${used}`);
});

test("where those who hand out do not answer, or their day is not over, they are not asked for each call", async () => {
  const runtime = simulatedWorld(1);
  const limits: QuotaLimits = { daily: 1_000, monthly: null, resetsOn: 1 };
  let requests = 0;
  let isAway = false;
  const dayMs = Math.floor(runtime.wallMs() / DAY_MS) * DAY_MS;
  const source: QuotaSource = {
    async lease({ credits }) {
      requests += 1;
      // A day that is over here.
      const record = { dayMs: dayMs - DAY_MS, daySpent: 0, monthMs: 0, monthSpent: 0 };
      return isAway ? null : { ...record, credits };
    },
    giveBack() {},
    close: async () => {},
  };
  const quota = new ProviderQuota(KEY, limits, { runtime, source });
  await settle(runtime);
  requests = 0;
  let spent = 0;
  for (let n = 0; n < 100; n++) {
    spent += spendAll({ quota, runtime }, 1);
    runtime.advance(10);
    await turn();
  }
  assert.ok(spent > 90, `${spent} of 100`);
  assert.ok(requests <= 20, `${requests} in a second`);
  isAway = true;
  requests = 0;
  for (let n = 0; n < 1_000; n++) {
    spendAll({ quota, runtime }, 20);
    runtime.advance(1);
    await turn();
  }
  assert.ok(requests <= 2, `${requests} in a second`);
});

/** What the ledger has handed out. */
function lastOf(ledger: QuotaSource, runtime: World, limits: QuotaLimits) {
  const lease = ledger.lease({ key: KEY, limits, credits: 0 });
  runtime.advance(1);
  return lease;
}
