// Limits of providers that several nodes share, with the real budgets and the real division, in
// simulated time over a book at some distance: together they never send more than the limit in any
// second, and what they send goes where the demand is.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { divided, type HeldPart, nextShare } from "../../src/core/workers/division.ts";
import type { OtherShare, ShareBook, ShareEntry } from "../../src/core/workers/share-book.ts";
import type { ProviderBudget } from "../../src/upstream/budget/provider-budget.ts";
import { ProviderBudgets } from "../../src/upstream/budget/provider-budget.ts";
import { LeasedShares } from "../../src/upstream/shares.ts";
import { fakeProvider } from "../fakes/providers.ts";
import { type SimulatedWorld, seededRandom, simulatedWorld } from "../fakes/runtime.ts";
import { namedSeeds, seedsTo } from "../fakes/seed.ts";

const STEP_MS = 5;
const SILENT_MS = 6_000;
const NO_QUOTAS = { lease: async () => null, giveBack() {}, close: async () => {} };

type Row = ShareEntry & { readonly process: string; readonly atMs: number };

/** A book in memory, as slow as a database, which can be away and lose what is in it. */
function bookIn(world: SimulatedWorld, random: () => number) {
  const rows = new Map<string, Row>();
  const state = { isAway: false, isRaising: false };
  const answer = async (): Promise<void> => {
    await new Promise<void>((resolve) => void world.after(1 + random() * 15, resolve));
    if (state.isAway) throw new Error("away");
  };
  const read = (process: string, scopes: readonly string[]): readonly OtherShare[] =>
    [...rows.values()]
      .filter((row) => row.process !== process && scopes.includes(row.scope))
      .map((row) => ({ ...row, writtenAt: row.atMs, ageMs: world.now() - row.atMs }));
  const put = (process: string, entries: readonly ShareEntry[]): void => {
    for (const entry of entries)
      rows.set(`${entry.scope} ${process}`, { ...entry, process, atMs: world.now() });
  };
  /** The book as one process has it; `isDead` = the process was killed. */
  const as = (process: string, { isDead }: { readonly isDead: () => boolean }): ShareBook => ({
    process,
    async write(entries) {
      await answer();
      if (isDead()) return [];
      put(process, entries);
      const others = read(
        process,
        entries.map(({ scope }) => scope),
      );
      await answer();
      return others;
    },
    async raise(scopes, decide) {
      await answer();
      if (state.isRaising || isDead()) return null;
      state.isRaising = true;
      try {
        const others = read(process, scopes);
        await answer();
        const entries = decide(others);
        await answer();
        if (isDead()) return null;
        put(process, entries);
        return entries;
      } finally {
        state.isRaising = false;
      }
    },
    async remove(silent) {
      for (const { scope, process: other, writtenAt } of silent)
        if (rows.get(`${scope} ${other}`)?.atMs === writtenAt) rows.delete(`${scope} ${other}`);
    },
  });
  return { rows, state, as };
}

interface Process {
  readonly budget: ProviderBudget;
  readonly shares: LeasedShares;
  readonly budgets: ProviderBudgets;
  sent: number;
  offered: number;
  isDead: boolean;
}

/** Nodes of a service, the provider that they share, and what it was sent. */
function cluster(seed: number, limits: { readonly rps: number; readonly concurrency?: number }) {
  const world = simulatedWorld(seed);
  const random = seededRandom(seed);
  const book = bookIn(world, random);
  const processes = new Map<string, Process>();
  const sentAt: number[] = [];
  const inFlight = { now: 0, most: 0 };
  const errors: unknown[] = [];
  const add = (name: string): Process => {
    const shares = new LeasedShares({ runtime: world, onError: (error) => errors.push(error) });
    const budgets = new ProviderBudgets({ runtime: world, shares, quotas: NO_QUOTAS });
    const provider = fakeProvider(0, {
      budget: {
        rps: limits.rps,
        concurrency: limits.concurrency ?? null,
        daily: null,
        monthly: null,
        resetsOn: 1,
        credits: new Map(),
      },
    });
    const budget = budgets.open("set", provider) ?? assert.fail();
    const process = { budget, shares, budgets, sent: 0, offered: 0, isDead: false };
    shares.join(book.as(name, { isDead: () => process.isDead }), SILENT_MS);
    processes.set(name, process);
    return process;
  };
  const kill = (name: string): void => {
    const process = processes.get(name);
    processes.delete(name);
    if (process !== undefined) process.isDead = true;
  };
  const leave = async (name: string): Promise<void> => {
    const process = processes.get(name);
    processes.delete(name);
    process?.budgets.close();
    await Promise.all([process?.shares.close(), play(300, {})]);
  };
  const call = (process: Process): void => {
    process.offered += 1;
    if (process.budget.take("eth_call") !== null) return;
    process.sent += 1;
    sentAt.push(world.now());
    inFlight.now += 1;
    inFlight.most = Math.max(inFlight.most, inFlight.now);
    world.after(100 * random(), () => {
      inFlight.now -= 1;
      process.budget.release();
    });
  };
  /** Plays calls, so many a second at each node. */
  const play = async (ms: number, rates: Readonly<Record<string, number>>): Promise<void> => {
    for (let played = 0; played < ms; played += STEP_MS) {
      for (const [name, rate] of Object.entries(rates)) {
        const process = processes.get(name);
        const calls = (rate * STEP_MS) / 1_000;
        for (let n = Math.floor(calls) + (random() < calls % 1 ? 1 : 0); n > 0; n--)
          if (process !== undefined) call(process);
      }
      world.advance(STEP_MS);
      await turn();
    }
  };
  return { world, random, book, processes, sentAt, inFlight, errors, add, kill, leave, play };
}

/** Most requests in any second. */
function mostInASecond(sentAt: readonly number[]): number {
  let most = 0;
  let first = 0;
  for (const [last, atMs] of sentAt.entries()) {
    while (atMs - (sentAt[first] ?? atMs) >= 1_000) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

const RPS = 50;
const CONCURRENCY = 12;

for (const seed of namedSeeds(1, 2, 3))
  test(`six processes never send more than the limits, whatever goes wrong (seed ${seed})`, async () => {
    const service = cluster(seed, { rps: RPS, concurrency: CONCURRENCY });
    const { random, book, processes, sentAt, inFlight, add, kill, leave, play } = service;
    const names = ["n1/1", "n1/2", "n2/1", "n2/2", "n3/1", "n3/2"];
    for (const name of names) add(name);
    for (let act = 0; act < 14; act++) {
      const busiest = names[Math.floor(random() * names.length)] ?? "";
      const rates = Object.fromEntries(names.map((name) => [name, random() < 0.5 ? 5 : 0]));
      const what = ["kill", "away", "lost", "leave", "calm"][Math.floor(random() * 5)];
      const victim = names[Math.floor(random() * names.length)] ?? "";
      if (what === "away" || what === "lost") book.state.isAway = true;
      if (what === "kill") kill(victim);
      await play(3_000, { ...rates, [busiest]: 200 });
      if (what === "lost") book.rows.clear();
      book.state.isAway = false;
      if (what === "leave") await leave(victim);
      await play(4_000, { ...rates, [busiest]: 200 });
      for (const name of names) if (!processes.has(name)) add(name);
    }
    assert.ok(mostInASecond(sentAt) <= RPS, `${mostInASecond(sentAt)} in a second`);
    assert.ok(inFlight.most <= CONCURRENCY, `${inFlight.most} at once`);
    const seconds = ((sentAt.at(-1) ?? 0) - (sentAt[0] ?? 0)) / 1_000;
    assert.ok(sentAt.length >= 0.3 * RPS * seconds, `${sentAt.length} in ${seconds} s`);
  });

for (const seed of namedSeeds(1, 2, 3))
  test(`what is sent goes where the demand is, and little is lost on the way (seed ${seed})`, async () => {
    const { processes, sentAt, errors, add, play } = cluster(seed, { rps: RPS });
    for (const name of ["a", "b", "c"]) add(name);
    const measured = async (ms: number, rates: Readonly<Record<string, number>>) => {
      await play(4_000, rates);
      for (const process of processes.values()) Object.assign(process, { sent: 0, offered: 0 });
      await play(ms, rates);
      return Object.fromEntries(
        [...processes].map(([name, { sent, offered }]) => [name, { sent, offered }]),
      );
    };
    for (const rates of [
      { a: 180, b: 12, c: 6 },
      { a: 6, b: 12, c: 180 },
    ]) {
      const played = await measured(8_000, rates);
      const text = JSON.stringify(played);
      for (const { sent, offered } of Object.values(played))
        assert.ok(offered > 1_000 || sent >= 0.7 * offered, text);
      const all = Object.values(played).reduce((sum, { sent }) => sum + sent, 0);
      assert.ok(all >= 0.7 * RPS * 8, text);
    }
    assert.ok(mostInASecond(sentAt) <= RPS, `${mostInASecond(sentAt)} in a second`);
    assert.deepEqual(errors, []);
  });

test("without the book a process goes on with what it has, and takes no more at once afterwards", async () => {
  const { book, processes, sentAt, errors, add, play } = cluster(1, { rps: RPS });
  for (const name of ["a", "b"]) add(name);
  await play(5_000, { a: 100, b: 100 });
  book.state.isAway = true;
  const before = processes.get("a")?.sent ?? 0;
  // Longer than after which a silent process would be counted out.
  await play(2 * SILENT_MS, { a: 100 });
  const during = (processes.get("a")?.sent ?? 0) - before;
  assert.ok(during >= 0.9 * 12 * 25 && during <= 13 * 25, `${during}`);
  book.rows.clear();
  book.state.isAway = false;
  await play(6_000, { a: 100, b: 100 });
  assert.equal(errors.length, 2, "each process tells of it once");
  assert.ok(mostInASecond(sentAt) <= RPS, `${mostInASecond(sentAt)} in a second`);
});

test("what a killed process had is free when it has been silent, and at once after a clean end", async () => {
  const { book, add, kill, leave, play } = cluster(2, { rps: RPS });
  for (const name of ["a", "b"]) add(name);
  await play(5_000, { a: 100, b: 100 });
  const shareOf = (name: string): number => book.rows.get(`rps set p0 ${name}`)?.share ?? 0;
  assert.deepEqual([shareOf("a"), shareOf("b")], [25, 25]);
  kill("b");
  await play(SILENT_MS - 1_000, { a: 100 });
  assert.equal(shareOf("a"), 25, "it may still be sending");
  await play(3_000, { a: 100 });
  assert.equal(shareOf("a"), RPS);
  add("c");
  await play(5_000, { a: 100, c: 100 });
  assert.deepEqual([shareOf("a"), shareOf("c")], [25, 25]);
  await leave("c");
  await play(2_500, { a: 100 });
  assert.equal(shareOf("a"), RPS);
});

test("a start has a share before it serves, and a bound that is changed is shared anew", async () => {
  const { world, processes, book, add, play } = cluster(3, { rps: RPS });
  const first = add("a");
  let isReady = false;
  void first.shares.ready().then(() => {
    isReady = true;
  });
  assert.equal(first.budget.take("eth_call"), "rps_limit", "nothing before it has joined");
  await play(200, {});
  assert.ok(isReady);
  assert.equal(first.budget.take("eth_call"), null);
  const second = add("b");
  await play(2_000, { a: 20 });
  const limits = { rps: 10, concurrency: null, daily: null, monthly: null, resetsOn: 1 };
  for (const { budget } of [first, second]) budget.change({ ...limits, credits: new Map() });
  await play(3_000, { a: 100, b: 100 });
  const startMs = world.now();
  for (const process of processes.values()) process.sent = 0;
  await play(5_000, { a: 100, b: 100 });
  const seconds = (world.now() - startMs) / 1_000;
  const sent = first.sent + second.sent;
  assert.ok(sent <= 10 * (seconds + 1) && sent >= 0.8 * 10 * seconds, `${sent}`);
  assert.equal([...book.rows.values()].length, 2);
});

test("shares by chance: what all have or use never exceeds the bound (seeds 1 to 200)", () => {
  for (const seed of seedsTo(200)) {
    const random = seededRandom(seed);
    const total = 1 + Math.floor(random() * 60);
    const count = 1 + Math.floor(random() * 8);
    const parts: HeldPart[] = Array.from({ length: count }, () => ({
      share: 0,
      used: 0,
      wanted: 0,
    }));
    for (let step = 0; step < 200; step++) {
      const at = Math.floor(random() * count);
      const part = parts[at] ?? assert.fail();
      const share = nextShare(total, parts, part);
      assert.ok(Number.isInteger(share) && share >= 0, `seed ${seed}: ${share}`);
      const wanted = random() < 0.3 ? Math.floor(random() * 100) : part.wanted;
      // What is in use of a share that was lowered ends by and by.
      const used = Math.max(
        Math.min(part.used, Math.floor(part.used * random())),
        Math.floor(random() * (share + 1)),
      );
      parts[at] = { share, used: Math.min(Math.max(part.used, share), used), wanted };
      const held = parts.reduce((sum, each) => sum + Math.max(each.share, each.used), 0);
      assert.ok(held <= total, `seed ${seed}: ${held} of ${total}`);
    }
  }
});

/** A process of the property below; one that is silent decides nothing, and may go on sending. */
type DrawnPart = HeldPart & { readonly isSilent: boolean };
/** Each process decides so often until everybody has what is due. */
const SETTLED_ROUNDS = 3;

const held = (parts: readonly HeldPart[]): number =>
  parts.reduce((sum, { share, used }) => sum + Math.max(share, used), 0);

/** Something that happens to one process, by chance. All see the processes in one order. */
function chanceOf(random: () => number, total: number, parts: DrawnPart[]): DrawnPart[] {
  const at = Math.floor(random() * parts.length);
  const part = parts[at];
  const chance = random();
  if (part === undefined || (chance < 0.1 && parts.length < 8)) {
    const wanted = Math.floor(random() * 100);
    return [...parts, { share: 0, used: 0, wanted, isSilent: false }];
  }
  // What it sent is over when it is forgotten.
  if (part.isSilent || part.wanted === null) return chance < 0.3 ? parts.toSpliced(at, 1) : parts;
  if (chance < 0.15) return parts.with(at, { ...part, isSilent: true });
  if (chance < 0.2) return parts.with(at, { ...part, share: 0, wanted: null });
  if (chance < 0.5) return parts.with(at, { ...part, wanted: Math.floor(random() * 100) });
  const share = nextShare(total, parts, part);
  const left = Math.floor(part.used * random());
  const used = Math.max(left, Math.floor(random() * (share + 1)));
  return parts.with(at, { ...part, share, used: Math.min(Math.max(part.used, share), used) });
}

test("whoever joins, leaves, falls silent and asks: the bound holds, and all who ask soon have a share (seeds 1 to 200)", () => {
  for (const seed of seedsTo(200)) {
    const random = seededRandom(seed);
    const total = 8 + Math.floor(random() * 200);
    let parts: DrawnPart[] = [];
    for (let step = 0; step < 400; step++) {
      parts = chanceOf(random, total, parts);
      assert.ok(held(parts) <= total, `seed ${seed}: ${held(parts)} of ${total}`);
    }
    // The silent and those that left are forgotten; the others decide in turn.
    parts = parts.filter(({ isSilent, wanted }) => !isSilent && wanted !== null);
    for (let turn = 0; turn < SETTLED_ROUNDS * parts.length; turn++) {
      const at = turn % parts.length;
      const part = parts[at] ?? assert.fail();
      const share = nextShare(total, parts, part);
      parts = parts.with(at, { ...part, share, used: Math.min(part.used, share) });
      assert.ok(held(parts) <= total, `seed ${seed}: ${held(parts)} of ${total}`);
    }
    const due = divided(
      total,
      parts.map(({ wanted }) => wanted ?? 0),
    );
    for (const [at, { share, wanted }] of parts.entries())
      assert.ok(
        share >= 1 && share * 2 >= Math.min(wanted ?? 0, due[at] ?? 0),
        `seed ${seed}: ${share} for ${wanted}, due are ${due[at]} of ${total}`,
      );
  }
});

test("a share that is being given back is not used again, also where that may have failed", async () => {
  for (const fails of [false, true]) {
    const world = simulatedWorld(1);
    const shares = new LeasedShares({ runtime: world, onError() {} });
    const written: ShareEntry[][] = [];
    let answer: (() => void) | null = null;
    const book: ShareBook = {
      process: "n1",
      write(entries) {
        written.push([...entries]);
        const isWaiting = answer === null && entries.some(({ wanted }) => wanted === null);
        if (!isWaiting) return Promise.resolve([]);
        return new Promise((resolve, reject) => {
          answer = () => (fails ? reject(new Error("away")) : resolve([]));
        });
      },
      raise: async (_, decide) => decide([]),
      remove: async () => {},
    };
    shares.join(book, SILENT_MS);
    const use = { used: () => 0, wanted: () => 10 };
    const first = shares.of("rps a", 10, use);
    const other = shares.of("rps b", 10, use);
    const pass = async (ms: number): Promise<void> => {
      for (let at = 0; at < ms; at += STEP_MS) {
        world.advance(STEP_MS);
        for (let turns = 0; turns < 4; turns++) await turn();
      }
    };
    await pass(600);
    assert.deepEqual([first.limit, other.limit], [10, 10]);
    first.close();
    await pass(50);
    assert.ok(answer !== null, "the share is being given back");
    const again = shares.of("rps a", 10, use);
    assert.equal(again.limit, 0, "others may have it by now");
    const giveBack = written.length;
    (answer as () => void)();
    await pass(5_000);
    assert.equal(again.limit, 10, "it is raised again");
    assert.equal(written[giveBack]?.find(({ scope }) => scope === "rps a")?.share, 0);
    await shares.close();
  }
});
