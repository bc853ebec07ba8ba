// A seeded simulation of subscriptions: providers that follow one chain badly, subscribers that
// come and go, and what each of them was told checked against the chain itself. A failure names its
// seed and the simulated time; the same seed replays it. Knows no test and no soak.
import assert from "node:assert/strict";
import type { Provider } from "../../src/core/provider/profile.ts";
import { readHead } from "../../src/core/stream/chain-event.ts";
import { readSubscription, type Subscription } from "../../src/core/stream/subscription.ts";
import { Router } from "../../src/upstream/engine/router.ts";
import { Tracker } from "../../src/upstream/health/tracker.ts";
import type { Subscriber } from "../../src/upstream/stream/subscriber.ts";
import { Subscriptions } from "../../src/upstream/stream/subscriptions.ts";
import { TimerWheel } from "../../src/upstream/timer-wheel.ts";
import { type Audience, chainAudience } from "../fakes/audience.ts";
import {
  ADDRESSES,
  type ChainBlock,
  type FakeChain,
  fakeChain,
  headerText,
  TOPICS,
} from "../fakes/chain.ts";
import { fakeProvider, fakeSet, SELECTION } from "../fakes/providers.ts";
import { type SimulatedWorld, seededRandom, simulatedWorld } from "../fakes/runtime.ts";
import { type FakeNode, type FakeSockets, fakeSockets } from "../fakes/sockets.ts";

const ROUNDS = 6;
const ROUND_MS = 100_000;
const SETTLE_MS = 45_000;
const SLICE_MS = 10;
/** Until the heads of the first node are heard; those of others take longer. */
const HEARD_MS = 20;
const MAX_AUDIENCES = 25;
/**
 * With fewer than these nobody leaves of their own accord. How many are there at the end of a round
 * was chance alone (joining against leaving, and what cannot be polled is refused at once), so any
 * change of its course could leave too few to show anything, though all who were there had settled.
 */
const LEAST_AUDIENCES = 5;
/** Bounds of the set under test. */
const BOUNDS = { newHeadsTimeoutMs: 6_000, maxBackfillBlocks: 30, backfillTimeoutMs: 12_000 };

const STRICT = { logVerification: "strict", verificationBudget: 10_000 } as const;

interface Wish {
  readonly profile: string;
  readonly subscription: Subscription;
  readonly pin: Provider | null;
}

interface Place {
  readonly audience: Audience;
  readonly leave: () => void;
}

interface Sim {
  readonly seed: number;
  readonly runtime: SimulatedWorld;
  readonly timerWheel: TimerWheel;
  readonly random: () => number;
  readonly chain: FakeChain;
  readonly sockets: FakeSockets;
  readonly nodes: readonly FakeNode[];
  readonly tracker: Tracker;
  readonly subscriptions: Subscriptions;
  readonly wishes: readonly Wish[];
  /** When each node follows the chain next at the earliest. */
  readonly followMs: Map<FakeNode, number>;
  readonly delayMs: Map<FakeNode, number>;
  /** Providers leave logs out. */
  readonly lies: boolean;
  /** Nothing above the served tip is told, where one is in force. */
  readonly keepsTip: boolean;
  /** The highest tip of the slice of time in which it moved last, and when it did. */
  readonly reached: { number: number; atMs: number };
  places: Place[];
  /** The first complaint of an audience. */
  complaint: unknown;
  readonly tally: {
    events: number;
    ended: number;
    refused: number;
    settled: number;
    joined: number;
    /** Events that were told while a tip was in force. */
    atTip: number;
  };
}

/**
 * `polled`: no provider has a socket. `mixed`: one has, and where it fails the others are polled.
 */
export type Reach = "sockets" | "polled" | "mixed";
export const REACHES: readonly Reach[] = ["sockets", "polled", "mixed"];

/** What a simulation came to. */
export interface SimulationFigures {
  readonly events: number;
  readonly joined: number;
  readonly refused: number;
  readonly ended: number;
  /** Audiences that were told everything when all was well again. */
  readonly settled: number;
  /** Events that were told while a tip was in force. */
  readonly atTip: number;
  readonly failovers: number;
  readonly filledBlocks: number;
  /** Blocks whose logs were checked, by what the checks found. */
  readonly agreed: number;
  readonly missing: number;
}

/** What is simulated besides. */
export interface SimulationOptions {
  /** Providers leave logs out, and all logs are checked (`strict`). */
  readonly omitsLogs: boolean;
  /** The heads of all providers are heard, and nothing above the tip is told. */
  readonly keepsTip?: boolean;
}

/** Seeds that showed something once. */
export const NAMED_SEEDS: Readonly<Record<"plain" | "strict" | "tip", readonly number[]>> = {
  plain: [201, 1_014, 1_150],
  strict: [7, 1_002],
  tip: [11, 12],
};

/** The simulations of the named seeds. */
export function namedSimulations(): readonly (SimulationOptions & { readonly seed: number })[] {
  const { plain, strict, tip } = NAMED_SEEDS;
  return [
    ...plain.map((seed) => ({ seed, omitsLogs: false })),
    ...strict.map((seed) => ({ seed, omitsLogs: true })),
    ...tip.map((seed) => ({ seed, omitsLogs: seed % 2 === 1, keepsTip: true })),
  ];
}

/** Simulates ten minutes; throws where a subscriber is not told the chain, whole and in order. */
export async function simulateStreams(
  seed: number,
  reach: Reach,
  options: SimulationOptions,
): Promise<SimulationFigures> {
  const sim = build(seed, reach, options);
  for (let round = 0; round < ROUNDS; round++) {
    for (
      const endMs = sim.runtime.now() + ROUND_MS;
      sim.runtime.now() < endMs;
      await pass(sim, 20 + Math.floor(sim.random() * 400))
    )
      stir(sim);
    await settle(sim);
  }
  await empty(sim);
  const counts = sim.subscriptions.counts();
  const checks = sim.subscriptions.checks();
  assert.equal(sum(checks.map(({ overBudget }) => overBudget)), 0);
  return {
    ...sim.tally,
    failovers: sum(counts.flatMap(({ failovers }) => Object.values(failovers))),
    filledBlocks: sum(counts.map(({ filledBlocks }) => filledBlocks)),
    agreed: sum(checks.map(({ agreed }) => agreed)),
    missing: sum(checks.map(({ missing }) => missing)),
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function build(
  seed: number,
  reach: Reach,
  { omitsLogs: lies, keepsTip = false }: SimulationOptions,
): Sim {
  const random = seededRandom(seed);
  const runtime = simulatedWorld(seed + 1);
  const timerWheel = new TimerWheel(runtime);
  const providers = Array.from({ length: 3 + Math.floor(random() * 3) }, (_, index) => {
    const wsUrl =
      reach === "polled" || (reach === "mixed" && index > 0) ? null : `ws://p${index}.test/`;
    return fakeProvider(index, { priority: Math.floor(random() * 2), wsUrl });
  });
  const chain = fakeChain(random);
  const sockets = fakeSockets(runtime, chain, providers);
  const nodes = providers.map((it) => sockets.node(it));
  const about = { chainId: 1, chainName: "sim", name: "Sim", aliases: [], blockTimeMs: 1_000 };
  const tracker = new Tracker(
    fakeSet(providers, { chain: about, ...BOUNDS, ...(lies ? STRICT : {}) }),
    runtime,
    SELECTION,
  );
  const limits = () => ({ maxAttempts: 3, firstAttemptShare: 0.5 });
  const upstreams = reach === "sockets" ? { ws: sockets } : { ws: sockets, http: sockets };
  const router = new Router({ runtime, timerWheel, upstreams, limits, hedge: () => null });
  const consistency = () => (keepsTip ? "tip" : "off");
  const subscriptions = new Subscriptions({ runtime, timerWheel, router, sockets, consistency });
  const delayMs = new Map(nodes.map((it) => [it, random() * (random() < 0.3 ? 3_000 : 200)]));
  for (const node of nodes) misbehave(node, random, true);
  if (lies) for (const node of nodes) lie(node, nodes, random);
  const reached = { number: -1, atMs: -1 };
  tracker.blocks.view.attend(({ number }) => {
    const before = runtime.now() - reached.atMs <= SLICE_MS ? reached.number : -1;
    Object.assign(reached, { number: Math.max(before, number), atMs: runtime.now() });
  });
  const tally = { events: 0, ended: 0, refused: 0, settled: 0, joined: 0, atTip: 0 };
  return {
    seed,
    runtime,
    timerWheel,
    random,
    chain,
    sockets,
    nodes,
    tracker,
    subscriptions,
    wishes: wishesOf(providers),
    followMs: new Map(),
    delayMs,
    lies,
    keepsTip,
    reached,
    places: [],
    complaint: null,
    tally,
  };
}

function wishesOf(providers: readonly Provider[]): readonly Wish[] {
  const [one = "", two = ""] = ADDRESSES;
  const wishes: readonly (readonly [unknown[], number | null])[] = [
    [["newHeads"], null],
    [["newHeads"], 0],
    [["logs", {}], null],
    [["logs", { address: one }], null],
    [["logs", { address: [one, two], topics: [TOPICS.slice(0, 2)] }], null],
    [["logs", { topics: [null, TOPICS[1]] }], 1],
    [["newPendingTransactions"], null],
  ];
  return wishes.map(([params, pin], at) => ({
    profile: `profile-${at}`,
    subscription: subscriptionOf(params),
    pin: pin === null ? null : (providers[pin] ?? null),
  }));
}

function subscriptionOf(params: unknown): Subscription {
  const subscription = readSubscription(params);
  assert.ok(subscription.kind !== "invalid");
  return subscription;
}

/** One thing happens. */
function stir(sim: Sim): void {
  const { random, chain } = sim;
  const chance = random();
  if (chance < 0.25) {
    chain.mine();
    spread(sim);
  } else if (chance < 0.28) {
    chain.reorg(1 + Math.floor(random() * 6), Math.floor(random() * 3));
    spread(sim);
  } else if (chance < 0.31) breakOne(sim);
  else if (chance < 0.36) mendOne(sim);
  else if (chance < 0.38) misbehave(pick(sim.nodes, random), random, false);
  else if (chance < 0.39 && sim.lies) lie(pick(sim.nodes, random), sim.nodes, random);
  else if (chance < 0.39) misbehave(pick(sim.nodes, random), random, false);
  else if (chance < 0.46) chatter(sim);
  else if (chance < 0.52) join(sim);
  else if (chance < 0.56 && sim.places.length > LEAST_AUDIENCES) leave(sim);
}

/** Every node learns of the branch after its own delay, one branch after the other. */
function spread(sim: Sim): void {
  const { runtime, random, chain } = sim;
  const tip = chain.tip();
  for (const node of sim.nodes) {
    const atMs = Math.max(
      sim.followMs.get(node) ?? 0,
      runtime.now() + (sim.delayMs.get(node) ?? 0) * (0.5 + random()),
    );
    sim.followMs.set(node, atMs);
    runtime.after(atMs - runtime.now(), () => {
      if (sim.lies) show(sim, node, tip);
      if (sim.keepsTip) report(sim, node, tip);
      node.follow(tip);
    });
  }
}

function breakOne({ nodes, random }: Sim): void {
  const node = pick(nodes, random);
  const chance = random();
  if (chance < 0.6) node.die();
  else if (chance < 0.8) node.manners.stale = true;
  else if (chance < 0.9) node.manners.mute = true;
  else node.manners.refuses = new Set([random() < 0.5 ? "logs" : "newHeads"]);
  // A connection that breaks for a moment only.
  if (chance < 0.3) node.revive();
}

function mendOne({ nodes, random }: Sim): void {
  mend(pick(nodes, random));
}

function mend(node: FakeNode): void {
  node.revive();
  Object.assign(node.manners, { stale: false, mute: false, refuses: new Set() });
}

function misbehave({ manners }: FakeNode, random: () => number, first: boolean): void {
  const often = (share: number, value: number): number => (random() < share ? value : 0);
  manners.latencyMs = 5 + random() * (random() < 0.1 ? 3_000 : 100);
  manners.ackMs = 5 + random() * (random() < 0.2 ? 2_000 : 50);
  manners.pushMs = random() * 100;
  manners.logsAfterMs = random() * 900 - 400;
  manners.showMs = often(0.5, random() * 600);
  manners.skip = often(0.3, random() * 0.3);
  manners.repeat = often(0.4, random() * 0.5);
  if (first) manners.saysRemoved = random() < 0.5;
}

/**
 * All but the first node leave out logs that they push; one of the others has none of them to show
 * either, and the bloom may be anything.
 */
function lie(
  { manners, provider }: FakeNode,
  nodes: readonly FakeNode[],
  random: () => number,
): void {
  if (provider.index === 0) return;
  const often = (share: number, value: number): number => (random() < share ? value : 0);
  manners.omit = often(0.6, random() < 0.3 ? 1 : random());
  manners.disorder = often(0.3, random());
  manners.unknownMs = often(0.3, random() * 800);
  manners.hidesLogs = provider.index === nodes.length - 1 && random() < 0.6;
  const honest = nodes.length % 2 === 0;
  manners.blooms = honest
    ? "true"
    : pick(["true", "left out", "zero", "false", "full"] as const, random);
}

/** Every node's heads are listened to. */
function show({ subscriptions, tracker, chain }: Sim, node: FakeNode, tip: ChainBlock): void {
  for (const block of chain.walk(node.tip, tip).come) {
    const head = readHead(Buffer.from(headerText(block, node.manners.blooms)));
    if (head !== null) subscriptions.headSeen(tracker, node.provider, head);
  }
}

/** The tracker hears of the heads of a node a moment after it has them, in order. */
function report(
  { runtime, chain, tracker }: Sim,
  { tip: before, provider }: FakeNode,
  tip: ChainBlock,
): void {
  const { come } = chain.walk(before, tip);
  runtime.after(HEARD_MS * (1 + provider.index), () => {
    for (const block of come) tracker.recordHead(provider, block.number, block);
  });
}

/**
 * Nothing is told above a tip in force, be it one that a reorganisation takes back in the slice of
 * time in which its block is told. What follows a reorganisation may pass through it.
 */
function checkTip(sim: Sim, { subscription, pin }: Wish, results: readonly Buffer[]): void {
  const view = sim.tracker.blocks.view.current();
  if (!sim.keepsTip || view === null || pin !== null) return;
  if (!["newHeads", "logs"].includes(subscription.kind)) return;
  sim.tally.atTip += results.length;
  const last = JSON.parse(results.at(-1)?.toString() ?? "{}");
  const number = Number(last.number ?? last.blockNumber);
  const { reached } = sim;
  // What is told in a slice of time is heard at its end.
  const isNow = sim.runtime.now() - reached.atMs <= SLICE_MS;
  const highest = isNow ? reached.number : view.number;
  assert.ok(
    number <= Math.max(highest, view.number) || last.removed === true,
    `seed ${sim.seed}: ${subscription.params} was told ${number} above the tip ${view.number}`,
  );
}

/** What no node should say. */
function chatter(sim: Sim): void {
  const { random, chain } = sim;
  const node = pick(sim.nodes, random);
  const old =
    chain.at(node.pushed, node.pushed.number - 1 - Math.floor(random() * 8)) ?? node.pushed;
  const [log] = old.logs;
  const grandparent = chain.byHash(chain.byHash(old.parentHash)?.parentHash ?? "") ?? old;
  switch (Math.floor(random() * 6)) {
    case 0:
      return node.push("newHeads", headerText(old));
    case 1:
      return log === undefined ? undefined : node.pushLog(old, log, false);
    case 2:
      return node.push(
        random() < 0.5 ? "newHeads" : "logs",
        pick(
          ["{", "null", '{"number":"0x1"}', "[]", '"0x12"', "\xff", '{"hash":1,"number":{}}'],
          random,
        ),
      );
    case 3:
      return node.push(
        "newHeads",
        headerText({
          ...node.tip,
          number: chain.tip().number + 20,
          hash: `0x${"c".repeat(64)}`,
          parentHash: grandparent.hash,
        }),
      );
    default:
      for (const it of sim.nodes)
        if (random() < 0.7)
          it.push(
            "newPendingTransactions",
            `"0x${Math.floor(random() * 1e9).toString(16)}${sim.runtime.now()}"`,
          );
  }
}

function join(sim: Sim): void {
  if (sim.places.length >= MAX_AUDIENCES) return;
  const { tracker, subscriptions, tally, chain } = sim;
  const wish = pick(sim.wishes, sim.random);
  const { profile, subscription, pin } = wish;
  const fail = (what: string): never =>
    assert.fail(
      `seed ${sim.seed}, ${Math.round(sim.runtime.now() - 1_000_000)} ms, ` +
        `${subscription.params}: ${what}`,
    );
  const height = (): number =>
    subscriptions.reports().find((it) => it.profile === profile)?.height ?? 0;
  const audience = chainAudience({ chain, subscription, height, fail });
  const forget = (): void => {
    sim.places = sim.places.filter((it) => it.audience !== audience);
  };
  const subscriber: Subscriber = {
    started: () => caught(sim, () => audience.started()),
    refused() {
      audience.over();
      tally.refused++;
      queueMicrotask(forget);
    },
    events(results) {
      tally.events += results.length;
      caught(sim, () => audience.events(results));
      caught(sim, () => checkTip(sim, wish, results));
    },
    ended() {
      audience.over();
      tally.ended++;
      forget();
    },
  };
  tally.joined++;
  const strategy = pick(["priority", "load-balanced"] as const, sim.random);
  const left = subscriptions.open(
    { profile, tracker, subscription, strategy, pin, caller: null, deadlineMs: 20_000 },
    subscriber,
  );
  sim.places.push({ audience, leave: left });
}

/** Audiences complain in the middle of the service's work, which must not see it. */
function caught(sim: Sim, check: () => void): void {
  try {
    check();
  } catch (error) {
    sim.complaint ??= error;
  }
}

function leave(sim: Sim): void {
  if (sim.places.length === 0) return;
  const place = pick(sim.places, sim.random);
  sim.places = sim.places.filter((it) => it !== place);
  place.audience.over();
  place.leave();
}

/** Everything is well again, and nothing new happens. */
async function settle(sim: Sim): Promise<void> {
  for (const node of sim.nodes) {
    mend(node);
    Object.assign(node.manners, { latencyMs: 20, ackMs: 20, showMs: 0, skip: 0 });
  }
  spread(sim);
  await pass(sim, SETTLE_MS, 50);
  for (const { audience } of sim.places) {
    assert.ok(audience.isStarted(), `seed ${sim.seed}: somebody waits though all is well`);
    audience.settled();
    sim.tally.settled++;
  }
  for (const node of sim.nodes) misbehave(node, sim.random, false);
}

/** Nobody is left: a minute later nothing is, upstream or inside. */
async function empty(sim: Sim): Promise<void> {
  while (sim.places.length > 0) leave(sim);
  await pass(sim, 61_000, 50);
  assert.deepEqual(sim.subscriptions.reports(), [], `seed ${sim.seed}: streams are left`);
  await pass(sim, 30_000, 50);
  for (const node of sim.nodes) {
    assert.deepEqual(
      node.open(),
      [],
      `seed ${sim.seed}: subscriptions are left at ${node.provider.id}`,
    );
    assert.equal(node.pending(), 0, `seed ${sim.seed}: questions are left at ${node.provider.id}`);
  }
  assert.equal(sim.timerWheel.size, 0, `seed ${sim.seed}: alarms are left`);
  assert.equal(sim.runtime.pendingTimers(), 0, `seed ${sim.seed}: timers are left`);
}

/** Time passes in small slices, and promises settle between them. */
async function pass(sim: Sim, ms: number, sliceMs = SLICE_MS): Promise<void> {
  const { runtime } = sim;
  for (const endMs = runtime.now() + ms; runtime.now() < endMs; ) {
    runtime.advance(Math.min(sliceMs, endMs - runtime.now()));
    await new Promise(setImmediate);
    if (sim.complaint !== null) throw sim.complaint;
  }
}

function pick<T>(list: readonly T[], random: () => number): T {
  const it = list[Math.floor(random() * list.length)];
  assert.ok(it !== undefined);
  return it;
}
