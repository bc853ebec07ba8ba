// A seeded simulation of filters that several nodes share: callers poll any of them, nodes die and
// start again, answers are lost, and providers follow a chain that changes its mind, each at its
// pace. What a caller was told is checked against the chain. A failure names its seed.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { FilterRecord } from "../../src/core/stream/filter-record.ts";
import { readSubscription } from "../../src/core/stream/subscription.ts";
import { NO_SHARED_HOLDINGS } from "../../src/core/workers/shared-holdings.ts";
import { createLocalBus } from "../../src/shared/processes/bus-endpoint.ts";
import { Router } from "../../src/upstream/engine/router.ts";
import { FilterClaims } from "../../src/upstream/filter/filter-claims.ts";
import { type Filter, type FilterRequest, Filters } from "../../src/upstream/filter/filters.ts";
import { Tracker } from "../../src/upstream/health/tracker.ts";
import { MemoryBudget } from "../../src/upstream/memory-budget.ts";
import { Subscriptions } from "../../src/upstream/stream/subscriptions.ts";
import { TimerWheel } from "../../src/upstream/timer-wheel.ts";
import { type Audience, chainAudience } from "../fakes/audience.ts";
import {
  ADDRESSES,
  type ChainBlock,
  type FakeChain,
  fakeChain,
  headerText,
} from "../fakes/chain.ts";
import { type FakeRecordLink, type FakeRecords, fakeRecords } from "../fakes/filter-records.ts";
import { fakeProvider, fakeSet, SELECTION } from "../fakes/providers.ts";
import { type SimulatedWorld, seededRandom, simulatedWorld } from "../fakes/runtime.ts";
import { namedSeeds } from "../fakes/seed.ts";
import { type FakeNode, type FakeSockets, fakeSockets } from "../fakes/sockets.ts";

const NODES = 3;
const PROVIDERS = 3;
const CALLERS = 8;
const RUN_MS = 120_000;
const SLICE_MS = 10;
const SETTLE_MS = 20_000;
/** Until the first node hears the heads of the first provider; others take longer. */
const HEARD_MS = 40;
const BOUNDS = { newHeadsTimeoutMs: 6_000, maxBackfillBlocks: 60, backfillTimeoutMs: 12_000 };
const LIMITS = {
  maxFilters: 1_000,
  maxCallerFilters: 1_000,
  maxFilterBytes: 100_000_000,
  maxInFlightBytes: 400_000_000,
  maxCallerBytes: 400_000_000,
};

/** A node of the service. */
interface ServiceNode {
  readonly link: FakeRecordLink;
  readonly tracker: Tracker;
  readonly subscriptions: Subscriptions;
  readonly filters: Filters;
  readonly shared: FilterClaims;
}

interface Caller {
  readonly id: string;
  readonly owner: string;
  readonly kind: "blocks" | "logs";
  readonly audience: Audience;
  isPolling: boolean;
  polls: number;
}

interface Sim {
  readonly seed: number;
  /** Every node hears the heads of all providers, at its own pace, and tells none above its tip. */
  readonly keepsTip: boolean;
  readonly world: SimulatedWorld;
  readonly random: () => number;
  readonly chain: FakeChain;
  readonly sockets: FakeSockets;
  readonly providers: readonly FakeNode[];
  readonly records: FakeRecords;
  readonly nodes: ServiceNode[];
  readonly callers: Caller[];
  readonly followMs: Map<FakeNode, number>;
  readonly tally: { polls: number; told: number; lost: number; deaths: number; drains: number };
  complaint: unknown;
}

for (const [seed, keepsTip] of namedSeeds(1, 2, 128).flatMap((each) =>
  [false, true].map((keeps) => [each, keeps] as const),
))
  test(`every block and log is told once over all nodes (${keepsTip ? "at the tip, " : ""}seed ${seed})`, async (t) => {
    const sim = build(seed, keepsTip);
    await createCallers(sim);
    for (const endMs = sim.world.now() + RUN_MS; sim.world.now() < endMs; ) {
      await stir(sim);
      await pass(sim, 10 + Math.floor(sim.random() * 150));
    }
    await settle(sim);
    const { polls, told, lost, deaths, drains } = sim.tally;
    const statements = Object.fromEntries(sim.records.counts);
    t.diagnostic(JSON.stringify({ polls, told, lost, deaths, drains, statements }));
    assert.ok(told > 500 && lost > 10 && deaths > 0 && drains > 0);
  });

function build(seed: number, keepsTip: boolean): Sim {
  const random = seededRandom(seed);
  const world = simulatedWorld(seed + 1);
  const chain = fakeChain(random);
  const listed = Array.from({ length: PROVIDERS }, (_, index) =>
    fakeProvider(index, { wsUrl: `ws://p${index}.test/` }),
  );
  const sockets = fakeSockets(world, chain, listed);
  const providers = listed.map((provider) => sockets.node(provider));
  for (const { manners } of providers)
    Object.assign(manners, {
      latencyMs: 5 + random() * 60,
      ackMs: 5 + random() * 50,
      pushMs: random() * 100,
      logsAfterMs: random() * 300 - 100,
      saysRemoved: random() < 0.5,
    });
  const sim: Sim = {
    seed,
    keepsTip,
    world,
    random,
    chain,
    sockets,
    providers,
    records: fakeRecords(world, () => random() * 20),
    nodes: [],
    callers: [],
    followMs: new Map(),
    tally: { polls: 0, told: 0, lost: 0, deaths: 0, drains: 0 },
    complaint: null,
  };
  for (let at = 0; at < NODES; at++) sim.nodes.push(startNode(sim, at));
  return sim;
}

let lives = 0;

/** Each node prefers another provider. */
function startNode({ world, sockets, records, keepsTip }: Sim, at: number): ServiceNode {
  const timerWheel = new TimerWheel(world);
  const providers = Array.from({ length: PROVIDERS }, (_, index) =>
    fakeProvider(index, {
      wsUrl: `ws://p${index}.test/`,
      priority: (index + at) % PROVIDERS,
    }),
  );
  const about = { chainId: 1, chainName: "sim", name: "Sim", aliases: [], blockTimeMs: 1_000 };
  const tracker = new Tracker(fakeSet(providers, { chain: about, ...BOUNDS }), world, SELECTION);
  const limits = () => ({ maxAttempts: 3, firstAttemptShare: 0.5 });
  const upstreams = { ws: sockets };
  const router = new Router({ runtime: world, timerWheel, upstreams, limits, hedge: () => null });
  const subscriptions = new Subscriptions({
    runtime: world,
    timerWheel,
    router,
    sockets,
    consistency: () => (keepsTip ? "tip" : "off"),
  });
  const filters = new Filters({
    budget: MemoryBudget.unbounded(),
    runtime: world,
    timerWheel,
    subscriptions,
    limits: () => LIMITS,
    secret: randomBytes,
    callers: NO_SHARED_HOLDINGS,
  });
  const link = records.of(`n${at} ${++lives}`);
  const shared = new FilterClaims({
    runtime: world,
    filters,
    records: link.records,
    timerWheel,
    bus: createLocalBus(world, (error) => assert.fail(String(error))),
    workerOf: () => null,
    onError: (error) => assert.fail(String(error)),
  });
  return { link, tracker, subscriptions, filters, shared };
}

async function createCallers(sim: Sim): Promise<void> {
  for (let n = 0; n < CALLERS; n++) {
    const node = pick(sim.nodes, sim.random);
    const method = n % 2 === 0 ? "eth_newBlockFilter" : "eth_newFilter";
    const criteria = n % 4 === 1 ? {} : { address: ADDRESSES[0] };
    const params = JSON.stringify(n % 2 === 0 ? [] : [criteria]);
    const request = requestOf(node, { method, params, owner: `caller ${n}` });
    const filter = await new Promise<Filter>((resolve) => {
      node.filters.open(request, (opened) => {
        assert.ok(opened.kind === "opened");
        resolve(opened.filter);
      });
      void pass(sim, 2_000);
    });
    const audience = audienceOf(sim, node, request);
    audience.started();
    const created = node.shared.created(filter);
    await pass(sim, 100);
    await created;
    const kind = n % 2 === 0 ? "blocks" : "logs";
    sim.callers.push({
      id: filter.id,
      owner: request.owner,
      kind,
      audience,
      isPolling: false,
      polls: 0,
    });
  }
}

function audienceOf(sim: Sim, node: ServiceNode, { subscription }: FilterRequest): Audience {
  const fail = (what: string): never =>
    assert.fail(
      `seed ${sim.seed}, ${sim.world.now() - 1_000_000} ms, ${subscription.params}: ${what}`,
    );
  const height = (): number =>
    Math.max(...node.subscriptions.reports().map((one) => one.height ?? 0));
  return chainAudience({ chain: sim.chain, subscription, height, fail });
}

function requestOf(
  { tracker }: ServiceNode,
  { method, params, owner }: Pick<FilterRecord, "method" | "params" | "owner">,
): FilterRequest {
  const [criteria] = JSON.parse(params);
  const isLogs = method === "eth_newFilter";
  const subscription = readSubscription(isLogs ? ["logs", criteria] : ["newHeads"]);
  assert.ok(subscription.kind !== "invalid");
  return {
    profile: "team",
    tracker,
    subscription,
    strategy: "priority",
    pin: null,
    deadlineMs: 10_000,
    caller: { id: owner, maxLogFilters: 1_000 },
    kind: isLogs ? "logs" : "blocks",
    owner,
    method,
    params,
    named: "team",
  };
}

/** One thing happens. */
async function stir(sim: Sim): Promise<void> {
  const { random, chain } = sim;
  const chance = random();
  if (chance < 0.1) {
    chain.mine();
    spread(sim);
  } else if (chance < 0.115) {
    chain.reorg(1 + Math.floor(random() * 5), Math.floor(random() * 3));
    spread(sim);
  } else if (chance < 0.125) await replaceNode(sim);
  else poll(sim, pick(sim.callers, random), pick(sim.nodes, random));
}

/** Every provider learns of the branch after its own delay, one branch after the other. */
function spread(sim: Sim): void {
  const { world, random, chain, providers, followMs } = sim;
  const tip = chain.tip();
  for (const provider of providers) {
    const slowMs = provider.provider.index === 0 ? 1_500 : 200;
    const atMs = Math.max(followMs.get(provider) ?? 0, world.now() + slowMs * random());
    followMs.set(provider, atMs);
    world.after(atMs - world.now(), () => {
      if (sim.keepsTip) report(sim, provider, tip);
      provider.follow(tip);
    });
  }
}

/** Every node hears of the heads of a provider after its own delay, in order. */
function report({ world, chain, nodes }: Sim, from: FakeNode, tip: ChainBlock): void {
  const { come } = chain.walk(from.tip, tip);
  for (const at of nodes.keys())
    world.after(HEARD_MS * (1 + at + from.provider.index), () => {
      for (const block of come) nodes[at]?.tracker.recordHead(from.provider, block.number, block);
    });
}

/** A node dies, or drains, when no answer is on its way; another one starts in its place. */
async function replaceNode(sim: Sim): Promise<void> {
  const isBusy = (): boolean =>
    sim.callers.some(({ isPolling }) => isPolling) ||
    [...sim.records.rows.values()].some(({ isAnswering }) => isAnswering);
  for (let slices = 0; isBusy() && slices < 1_000; slices++) await pass(sim, SLICE_MS);
  const at = Math.floor(sim.random() * NODES);
  const node = sim.nodes[at];
  assert.ok(node !== undefined && !isBusy());
  if (sim.random() < 0.5) {
    sim.tally.drains++;
    const closed = node.shared.close();
    await pass(sim, 200);
    await closed;
  } else sim.tally.deaths++;
  node.link.state = "dead";
  node.subscriptions.close();
  sim.nodes[at] = startNode(sim, at);
}

function poll(sim: Sim, caller: Caller, node: ServiceNode): void {
  if (caller.isPolling) return;
  caller.isPolling = true;
  sim.tally.polls++;
  const revival = {
    request: (record: FilterRecord) => requestOf(node, record),
    opened() {},
  };
  void node.shared.poll(caller, revival).then((answer) => {
    caller.isPolling = false;
    caught(sim, () => {
      assert.equal(answer.kind, "found", `seed ${sim.seed}: ${caller.kind} ${answer.kind}`);
      if (answer.kind !== "found") return;
      const isWritten = sim.random() < 0.95;
      if (isWritten) hear(sim, caller, JSON.parse(answer.value.json.toString()));
      else sim.tally.lost++;
      // The caller has its answer before the node knows.
      sim.world.after(sim.random() * 30, () => answer.value.settle(isWritten));
    });
  });
}

function hear(sim: Sim, { kind, audience }: Caller, changes: readonly unknown[]): void {
  sim.tally.told += changes.length;
  const texts = changes.map((change) => {
    if (kind === "logs") return Buffer.from(JSON.stringify(change));
    const block = sim.chain.byHash(String(change));
    assert.ok(block !== undefined, `no block ${String(change)}`);
    return Buffer.from(headerText(block));
  });
  if (texts.length > 0) audience.events(texts);
}

/** Everybody polls until all is told. */
async function settle(sim: Sim): Promise<void> {
  spread(sim);
  for (const endMs = sim.world.now() + SETTLE_MS; sim.world.now() < endMs; ) {
    for (const caller of sim.callers) poll(sim, caller, pick(sim.nodes, sim.random));
    await pass(sim, 300);
  }
  for (const { audience } of sim.callers) audience.settled();
}

function caught(sim: Sim, check: () => void): void {
  try {
    check();
  } catch (error) {
    sim.complaint ??= error;
  }
}

/** Time passes in small slices, and promises settle between them. */
async function pass(sim: Sim, ms: number): Promise<void> {
  for (const endMs = sim.world.now() + ms; sim.world.now() < endMs; ) {
    sim.world.advance(Math.min(SLICE_MS, endMs - sim.world.now()));
    await new Promise(setImmediate);
    if (sim.complaint !== null) throw sim.complaint;
  }
}

function pick<T>(list: readonly T[], random: () => number): T {
  const found = list[Math.floor(random() * list.length)];
  assert.ok(found !== undefined);
  return found;
}
