// A seeded simulation of two nodes that spend, flush, fail, die and come back while money comes in;
// the books are audited to the unit all the time. `SVC_SEED` repeats a run.
import assert from "node:assert/strict";
import { test } from "node:test";
import { audit } from "../../../src/hosted/audit/audit.ts";
import type { Credit, Wallet } from "../../../src/hosted/credit/credit.ts";
import type { Runtime } from "../../../src/runtime.ts";
import {
  type ChangePosition,
  currentPosition,
  readChanges,
} from "../../../src/shared/changes/change-log.ts";
import type { Store } from "../../../src/shared/store/store.ts";
import { openCredit } from "../../fakes/credit.ts";
import { type SimulatedWorld, seededRandom, simulatedWorld } from "../../fakes/runtime.ts";
import { chanceSeed } from "../../fakes/seed.ts";
import { eachStore } from "../../fakes/stores.ts";
import { accountOf, createPaid, credit as pay } from "../accounts/account-fixture.ts";
import { type Faults, faultyStore } from "./faulty-store.ts";

const CU = 5_000;
const COSTS = [CU, 3 * CU, 3 * CU, 15 * CU, 100 * CU] as const;
const SETTINGS = {
  flushIntervalMs: 250,
  nodeTimeoutMs: 1_500,
  minSliceN: 100 * CU,
  idleMs: 100,
} as const;
const STEPS = { sqlite: 1_000_000, postgres: 60_000 } as const;
const STEPS_PER_TICK = 200;
const TICK_MS = 10;
const MAX_HOLDS = 40;
const COMMON = ["served", "refused", "paid", "recall", "returned"];
const RARE = ["killed", "database gone", "statement fails", "answer lost", "unwritten at death"];

/** The longest that a transaction takes, in turns of the event loop: steps go on meanwhile. */
const MAX_DELAY = 4;
/** How many accounts are used at a time, and for how long: the others lie idle. */
const ACTIVE = 4;
const ACTIVE_MS = 1_700;
/** How often one of those is used after all. */
const STRAY = 0.002;
const RECALLED = 0.001;
const EXPECTED = /InjectedFault|taken for dead|epoch is over|not been reached/;

interface Hold {
  readonly wallet: Wallet;
  readonly amountN: number;
  /** A slow call ends no sooner than this. */
  readonly untilMs: number;
}

/** One start of a node, as the simulation sees it. */
interface Run {
  readonly id: string;
  readonly credit: Credit;
  readonly faults: Faults;
  readonly holds: Hold[];
  isAlive: boolean;
  /** Until when (simulated) its database is gone. */
  goneUntilMs: number;
  /** Charged since the last flush that was acknowledged, by account. */
  readonly unwritten: Map<string, number>;
}

interface Fixture {
  readonly store: Store;
  readonly runtime: SimulatedWorld;
  readonly random: () => number;
  readonly accountIds: readonly string[];
  readonly nodes: Run[];
  /** By account, nano-USD. */
  readonly paid: Map<string, number>;
  readonly served: Map<string, number>;
  /**
   * The most that may be lost: what nodes that died had served since they last heard that it was
   * written.
   */
  readonly mayBeLost: Map<string, number>;
  readonly seen: Map<string, number>;
  readonly unexpected: unknown[];
  /** How far the nodes have heard of each other. */
  heard: ChangePosition;
}

eachStore(({ engine, open }) => {
  test(
    `${STEPS[engine].toLocaleString("en")} random steps of two nodes that fail and die: money is ` +
      `conserved, nobody is overcharged (${engine})`,
    async (t) => {
      const seed = chanceSeed();
      t.diagnostic(`seed ${seed}`);
      const fixture = await begin(await open(t), seed);
      for (let step = 1; step <= STEPS[engine]; step++) {
        act(fixture);
        if (step % STEPS_PER_TICK === 0) await tick(fixture, engine === "postgres" ? 4 : 0);
        if (step % (STEPS[engine] / 20) === 0) await check(fixture);
      }
      for (const run of fixture.nodes) run.faults.isGone = false;
      for (const run of fixture.nodes) await close(fixture, run);
      await check(fixture);
      const { rows } = await leases(fixture.store);
      assert.deepEqual(rows, []);
      for (const id of fixture.accountIds) await checkAccount(fixture, id);
      t.diagnostic([...fixture.seen].map(([what, times]) => `${what} ${times}`).join(", "));
      // The shorter run need not meet the rarer ones.
      for (const what of engine === "sqlite" ? [...COMMON, ...RARE] : COMMON)
        assert.ok((fixture.seen.get(what) ?? 0) > 0, `never ${what}`);
    },
  );
});

async function begin(store: Store, seed: number): Promise<Fixture> {
  const accountIds = Array.from({ length: 8 }, (_, index) => `acc_${index}`);
  const empty = () => new Map(accountIds.map((id) => [id, 0]));
  const fixture: Fixture = {
    store,
    runtime: simulatedWorld(seed),
    random: seededRandom(seed),
    accountIds,
    nodes: [],
    paid: empty(),
    served: empty(),
    mayBeLost: empty(),
    seen: new Map(),
    unexpected: [],
    heard: await currentPosition(store),
  };
  for (const id of accountIds) {
    await createPaid(store, id, BigInt(1_000 * CU));
    add(fixture.paid, id, 1_000 * CU);
  }
  for (const id of ["a", "b"]) fixture.nodes.push(await start(fixture, id));
  return fixture;
}

async function start(fixture: Fixture, id: string): Promise<Run> {
  const { store, faults } = faultyStore(slow(fixture));
  const state = { isAlive: true };
  const runtime: Runtime = {
    ...fixture.runtime,
    after: (ms, run) => fixture.runtime.after(ms, () => state.isAlive && run()),
  };
  const credit = await openCredit({
    store,
    runtime,
    node: { id, region: "" },
    settings: SETTINGS,
    recalls: true,
    onError: (error) => lost(fixture, run, error),
  });
  const run: Run = Object.assign(state, {
    id,
    credit,
    faults,
    holds: [],
    goneUntilMs: 0,
    unwritten: new Map(),
  });
  return run;
}

/** The store with transactions that take their time. */
function slow({ store, random }: Fixture): Store {
  const delay = async () => {
    for (let turns = Math.floor(random() * MAX_DELAY); turns > 0; turns--)
      await new Promise(setImmediate);
  };
  const transaction: Store["transaction"] = async (run) => {
    await delay();
    const result = await store.transaction(run);
    await delay();
    return result;
  };
  return { ...store, transaction };
}

/** A node that was fenced lost what it had not written. */
function lost(fixture: Fixture, run: Run, error: unknown): void {
  if (!EXPECTED.test(nameOf(error))) fixture.unexpected.push(error);
  if (!String(error).includes("taken for dead")) return;
  see(fixture, "fenced");
  forfeit(fixture, run);
}

function forfeit(fixture: Fixture, run: Run): void {
  for (const [id, amountN] of run.unwritten) {
    add(fixture.mayBeLost, id, amountN);
    if (amountN > 0) see(fixture, "unwritten at death");
  }
  run.unwritten.clear();
}

/** One step in memory. */
function act(fixture: Fixture): void {
  const { random, nodes, accountIds, runtime } = fixture;
  const run = nodes[Math.floor(random() * nodes.length)];
  if (run === undefined) return;
  const { credit, holds } = run;
  // As if another node were dry, whether or not it is.
  if (random() < RECALLED && !run.faults.isGone)
    credit.recall([accountIds[Math.floor(random() * accountIds.length)] ?? ""]);
  if (random() < 0.5 && holds.length < MAX_HOLDS) {
    const first = Math.floor(runtime.now() / ACTIVE_MS);
    const range = random() < STRAY ? accountIds.length : ACTIVE;
    const wallet = credit.wallet(
      accountIds[(first + Math.floor(random() ** 2 * range)) % accountIds.length] ?? "",
    );
    const amountN = COSTS[Math.floor(random() * COSTS.length)] ?? CU;
    const untilMs = random() < 0.002 ? runtime.now() + 3_000 : 0;
    if (credit.hold(wallet, amountN)) holds.push({ wallet, amountN, untilMs });
    else see(fixture, "refused");
    return;
  }
  const index = Math.floor(random() * holds.length);
  const hold = holds[index];
  if (hold === undefined || hold.untilMs > runtime.now()) return;
  holds.splice(index, 1);
  const { wallet, amountN } = hold;
  const chance = random();
  if (chance < 0.15) {
    credit.release(wallet, amountN);
    return;
  }
  // A kept answer costs a part of what was held.
  const isCached = chance > 0.85;
  const chargeN = chargedN(amountN, { isFree: chance < 0.3, isCached });
  add(fixture.served, wallet.accountId, chargeN);
  add(run.unwritten, wallet.accountId, chargeN);
  credit.settle(wallet, {
    keyId: `key_${wallet.accountId}`,
    method: chance < 0.6 ? "eth_call" : "eth_getLogs",
    cu: 3,
    isCached,
    heldN: amountN,
    chargeN,
    freeCu: 0,
  });
  see(fixture, "served");
}

function chargedN(
  heldN: number,
  { isFree, isCached }: { readonly isFree: boolean; readonly isCached: boolean },
): number {
  if (isFree) return 0;
  return isCached ? Math.ceil(heldN / CU / 4) * CU : heldN;
}

/** Time passes, and the world does its worst. */
async function tick(fixture: Fixture, realMs: number): Promise<void> {
  const { random, runtime, nodes, accountIds } = fixture;
  runtime.advance(TICK_MS);
  const waited =
    realMs > 0 ? new Promise((resolve) => setTimeout(resolve, realMs)) : new Promise(setImmediate);
  await waited;
  await hear(fixture);
  const [index, run] = random() < 0.5 ? [0, nodes[0]] : [1, nodes[1]];
  if (run === undefined) return;
  if (run.faults.isGone && runtime.now() >= run.goneUntilMs) run.faults.isGone = false;
  const chance = random();
  if (chance < 0.25) {
    const id = accountIds[Math.floor(random() * accountIds.length)] ?? "";
    const amountN = CU * (1 + Math.floor(random() * 20_000));
    await pay(fixture.store, id, { idemKey: `p${see(fixture, "paid")}`, amountN: BigInt(amountN) });
    add(fixture.paid, id, amountN);
    for (const node of nodes) node.credit.refresh(id);
  } else if (chance < 0.35) {
    await flush(fixture, run);
  } else if (chance < 0.37) {
    run.faults.statements = Math.floor(random() * 12);
    see(fixture, "statement fails");
  } else if (chance < 0.39) {
    run.faults.answers = Math.floor(random() * 3);
    see(fixture, "answer lost");
  } else if (chance < 0.393) {
    run.faults.isGone = true;
    run.goneUntilMs = runtime.now() + random() * 4_000;
    see(fixture, "database gone");
  } else if (chance < 0.4) {
    kill(fixture, run);
    nodes[index] = await start(fixture, run.id);
  } else if (chance < 0.402 && !run.faults.isGone) {
    await close(fixture, run);
    see(fixture, "stopped");
    nodes[index] = await start(fixture, run.id);
  }
}

/** The nodes whose database is there hear what others call back, and what came back. */
async function hear(fixture: Fixture): Promise<void> {
  const { position, read } = await readChanges(fixture.store, fixture.heard);
  fixture.heard = position;
  for (const { topic, ref } of read.kind === "some" ? read.changes : []) {
    if (topic === "recall" || topic === "returned") see(fixture, topic);
    for (const { credit, faults } of fixture.nodes) {
      if (faults.isGone) continue;
      if (topic === "recall") credit.recall([ref]);
      else if (topic === "returned") credit.returned(ref);
    }
  }
}

async function flush(fixture: Fixture, run: Run): Promise<void> {
  const before = new Map(run.unwritten);
  try {
    await run.credit.flush();
  } catch (error) {
    if (!EXPECTED.test(nameOf(error))) fixture.unexpected.push(error);
    return;
  }
  // What was served before a flush that was acknowledged is never lost.
  for (const [id, amountN] of before) if (run.unwritten.has(id)) add(run.unwritten, id, -amountN);
}

function kill(fixture: Fixture, run: Run): void {
  run.isAlive = false;
  run.faults.isGone = true;
  forfeit(fixture, run);
  see(fixture, "killed");
}

async function close(fixture: Fixture, run: Run): Promise<void> {
  for (const { wallet, amountN } of run.holds.splice(0)) run.credit.release(wallet, amountN);
  try {
    run.faults.statements = null;
    run.faults.answers = null;
    await run.credit.close();
  } catch (error) {
    lost(fixture, run, "taken for dead");
    throw error;
  }
}

async function check({ store, unexpected }: Fixture): Promise<void> {
  assert.deepEqual(unexpected, []);
  assert.deepEqual(await audit(store), []);
}

async function checkAccount(fixture: Fixture, id: string): Promise<void> {
  const { balance_n } = await accountOf(fixture.store, id);
  const billedN = (fixture.paid.get(id) ?? 0) - Number(balance_n);
  const servedN = fixture.served.get(id) ?? 0;
  const lostN = servedN - billedN;
  assert.ok(lostN >= 0, `${id} was charged ${-lostN} nano-USD too much`);
  assert.ok(
    lostN <= (fixture.mayBeLost.get(id) ?? 0),
    `${id}: ${lostN} nano-USD are unbilled, at most ${fixture.mayBeLost.get(id)} may be`,
  );
}

function nameOf(error: unknown): string {
  return error instanceof Error ? `${error.constructor.name} ${error.message}` : String(error);
}

function leases(store: Store) {
  return store.db
    .selectFrom("credit_lease")
    .selectAll()
    .execute()
    .then((rows) => ({ rows }));
}

function add(map: Map<string, number>, id: string, amountN: number): void {
  map.set(id, (map.get(id) ?? 0) + amountN);
}

function see({ seen }: Fixture, what: string): number {
  add(seen, what, 1);
  return seen.get(what) ?? 0;
}
