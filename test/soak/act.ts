// One act of the soak: an audience, a living chain with reorgs, and provider after provider forced to fail while it serves; then the reckoning against the chain.
import { until } from "../fakes/stage.ts";
import { type Audience, seat } from "./audience.ts";
import type { LiveChain } from "./chain.ts";
import { between, pick } from "./chance.ts";
import { BREAKS, type Break } from "./gate.ts";
import { type Breaches, type Log, noBreaches } from "./ledger.ts";
import { askSteadily } from "./questions.ts";
import { type Post, type Site, startSite } from "./site.ts";

/** What an act is to be. */
export interface ActPlan {
  readonly failovers: number;
  readonly random: () => number;
  /** With `priority` every subscription is on one provider, and all are lost at once. */
  readonly strategy: "load-balanced" | "priority";
  readonly socketsOnly: boolean;
  /** Whether the service listens to the heads of every provider. */
  readonly socketHeads: boolean;
  readonly onRound: (figures: Figures) => void;
}

/** How a failover was forced. `cascade`: the replacement failed as well, at once; `blackout`: all failed together, for less than the bounds. */
export type Force = Break | "cascade" | "blackout";

/** What an act came to. */
export interface Figures {
  readonly failovers: Record<Force, number>;
  disturbances: number;
  lostNotifications: number;
  reorgs: number;
  blocks: number;
  heads: number;
  logs: number;
  takenBack: number;
  pending: number;
  calls: number;
  /** Calls refused because every circuit was open; only where sockets are the only way. */
  refused: number;
  /** Changes of providers as the service counts them: one for each subscription. */
  streamFailovers: number;
  filledBlocks: number;
  /** Longest time without heads around each failover. */
  readonly silencesMs: number[];
  readonly breaches: Breaches;
  /** Everything else that went wrong, in words. */
  readonly wrong: string[];
  rssStartBytes: number;
  rssEndBytes: number;
}

const BLOCK_EVERY_MS = 75;
const POSTS_PER_NODE = 4;
const NEW_HEADS_TIMEOUT_MS = 1_500;
const RECOVERY_MS = 25_000;
const SETTLE_MS = 20_000;
/** Failures that HTTP shares: few, since each opens a circuit for half a minute, and the steady calls are to find one that is closed. */
const HTTP_TOO_SHARE = 0.08;
const DEEPEST_REORG = 4;
const BLOCKS_BEFORE_REORGS = 12;

/** Plays an act; what was started for it has ended when it resolves. */
export async function play(chain: LiveChain, plan: ActPlan): Promise<Figures> {
  const figures = noFigures();
  const subscriptions = { new_heads_timeout_ms: NEW_HEADS_TIMEOUT_MS, max_backfill_blocks: 100, backfill_timeout_ms: 20_000 };
  const monitoring = { probe_interval_ms: 500, socket_heads: plan.socketHeads };
  const site = await startSite(chain, { postsPerNode: POSTS_PER_NODE, socketsOnly: plan.socketsOnly, profiles: { team: { subscriptions, monitoring } } });
  try {
    await until("a service that is ready", async () => (await fetch(`${site.service.url}/api/ready`)).ok);
    const pinned = chain.devnet.providers.slice(1).map(({ id }) => `${id}-${POSTS_PER_NODE}`);
    const audience = await seat({ site, profile: "team", strategy: plan.strategy, emitters: chain.emitters, breaches: figures.breaches, pinned });
    try {
      const expected = audience.logs.length;
      await until(
        "every subscription",
        async () => (await site.subscriptions()).streams.filter((it) => it.kind === "logs" && it.state === "live").length === expected,
      );
      await perform({ chain, site, audience, plan, figures, pinned });
    } finally {
      await audience.close();
    }
    return figures;
  } finally {
    await site.close();
  }
}

const SUDDEN: readonly Break[] = ["reset", "closed", "torn"];

/** An act under way. */
interface Scene {
  readonly chain: LiveChain;
  readonly site: Site;
  readonly audience: Audience;
  readonly plan: ActPlan;
  readonly figures: Figures;
  /** Providers that are never broken for long: somebody listens to them and to no other. */
  readonly pinned: readonly string[];
}

async function perform(scene: Scene): Promise<void> {
  const { chain, site, audience, plan, figures } = scene;
  const { random } = plan;
  const [asker] = audience.callers;
  if (asker === undefined) throw new Error("nobody asks");
  const startBlocks = (await chain.blocks()).length;
  figures.rssStartBytes = await site.service.residentBytes();
  chain.live({ everyMs: BLOCK_EVERY_MS, random });
  const questions = await askSteadily(chain, asker, { random, refusable: plan.socketsOnly });
  await headsAfter(audience, BLOCKS_BEFORE_REORGS);
  const reorgs = reorgNowAndThen(chain, random);
  try {
    for (let n = 0; n < plan.failovers; n++) {
      await failOver(scene);
      if (random() < 0.2) await disturb(scene);
      plan.onRound(figures);
    }
    for (const { gate } of site.posts) if (!gate.whole()) gate.mend();
  } finally {
    figures.reorgs += await reorgs.stop();
    await questions.stop();
  }
  await chain.rest();
  await reckon(scene, startBlocks);
  figures.calls += questions.asked();
  figures.refused += questions.refused();
  figures.wrong.push(...questions.wrong, ...audience.errors);
  figures.rssEndBytes = await site.service.residentBytes();
}

/** Forces the provider of some subscription to fail and waits until everything it served goes on elsewhere. */
async function failOver(scene: Scene): Promise<void> {
  const { audience, plan, figures } = scene;
  const force = pick(plan.random, plan.socketsOnly ? FORCES.filter((it) => it !== "blackout") : FORCES);
  const victim = await serving(scene);
  const silence = longestSilence(audience);
  if (force === "blackout") await blackOut(scene);
  else await breakOne(scene, victim, force);
  await allLive(scene);
  await headsAfter(audience, 2);
  figures.silencesMs.push(silence.stop());
  figures.failovers[force]++;
}

const FORCES: readonly Force[] = [...SUDDEN, ...SUDDEN, ...SUDDEN, "frozen", "cascade", "blackout"];

async function breakOne(scene: Scene, victim: Post, force: Exclude<Force, "blackout">): Promise<void> {
  const { plan } = scene;
  const { random } = plan;
  const lost = servedBy(victim);
  const how = force === "cascade" ? pick(random, BREAKS) : force;
  victim.gate.break(how, plan.socketsOnly || random() < HTTP_TOO_SHARE ? "everything" : "sockets");
  const heir = await successor(scene, lost, victim);
  if (force === "cascade") {
    heir.gate.break(pick(random, SUDDEN), "sockets");
    await successor(scene, lost, heir);
    mendLater(heir, between(random, 0, 1_200));
  }
  mendLater(victim, between(random, 0, 1_200));
}

/** Every socket fails for a while, which is less than the bounds allow. HTTP goes on: its circuits are no business of this test. */
async function blackOut({ site, plan }: Scene): Promise<void> {
  const outageMs = between(plan.random, 200, 1_000);
  for (const { gate } of site.posts) gate.break(pick(plan.random, SUDDEN), "sockets");
  await new Promise((resolve) => setTimeout(resolve, outageMs));
  for (const { gate } of site.posts) gate.mend();
  await until("a provider after a blackout", () => site.posts.some((it) => servedBy(it).length > 0), RECOVERY_MS);
}

/** Loses or delays notifications of a provider that serves; it stays in service. */
async function disturb(scene: Scene): Promise<void> {
  const { plan, audience, figures } = scene;
  const { gate } = await serving(scene);
  const before = gate.lost();
  gate.disturb(pick(plan.random, ["lossy", "late"]));
  await new Promise((resolve) => setTimeout(resolve, between(plan.random, 50, 400)));
  gate.disturb(null);
  await headsAfter(audience, 2);
  figures.disturbances++;
  figures.lostNotifications += gate.lost() - before;
}

/** Subscriptions to logs through a gate: each is that of one stream. Heads may be listened to by many, and who serves only pending transactions may stop without being missed for long. */
function servedBy({ gate }: Post): readonly string[] {
  return gate.subscribed().filter((it) => it.startsWith('["logs"'));
}

/** A whole provider that serves a subscription which is not pinned. */
function serving({ site, plan }: Scene): Promise<Post> {
  return until(
    "a provider that serves",
    () => {
      const found = site.posts.filter((it) => it.gate.whole() && servedBy(it).length > 0);
      return found.length > 0 && pick(plan.random, found);
    },
    RECOVERY_MS,
  );
}

/** Waits until all of `lost` is served through whole gates; resolves with the provider of one of them. */
function successor({ site }: Scene, lost: readonly string[], victim: Post): Promise<Post> {
  return until(
    `successors of ${victim.id} for ${lost.join(" ")}`,
    () => {
      const others = site.posts.filter((it) => it.gate.whole());
      const served = new Set(others.flatMap(servedBy));
      return lost.every((it) => served.has(it)) && (others.find((it) => servedBy(it).some((params) => lost.includes(params))) ?? null);
    },
    RECOVERY_MS,
  );
}

/** Resolves when the service says that no subscription is between providers. */
function allLive({ site, audience }: Scene): Promise<unknown> {
  return until(
    "subscriptions that are all live",
    async () => {
      const lost = audience.callers.find((it) => it.closedWith() !== null);
      if (lost !== undefined) throw new Error(`a socket was closed: ${lost.closedWith()}`);
      return (await site.subscriptions()).streams.every((it) => it.state === "live");
    },
    RECOVERY_MS,
  );
}

function mendLater({ gate }: Post, afterMs: number): void {
  setTimeout(() => gate.mend(), afterMs).unref();
}

/** Resolves when the first listener has been told of so many more heads. */
function headsAfter(audience: Audience, count: number): Promise<unknown> {
  const [ledger] = audience.heads;
  const from = ledger?.delivered ?? 0;
  return until("heads", () => (ledger?.delivered ?? 0) >= from + count, RECOVERY_MS);
}

/** Measures the longest time without a head from now on. */
function longestSilence(audience: Audience): { readonly stop: () => number } {
  let lastAt = performance.now();
  let longestMs = 0;
  const look = (): void => {
    longestMs = Math.max(longestMs, performance.now() - lastAt);
    lastAt = performance.now();
  };
  audience.onHead = look;
  return {
    stop() {
      look();
      audience.onHead = null;
      return longestMs;
    },
  };
}

function reorgNowAndThen(chain: LiveChain, random: () => number): { readonly stop: () => Promise<number> } {
  const before = chain.reorgs();
  let stopped = false;
  const run = async (): Promise<void> => {
    while (!stopped) {
      await chain.reorg(between(random, 1, DEEPEST_REORG), random() < 0.5);
      for (const until = performance.now() + between(random, 500, 1_500); !stopped && performance.now() < until; )
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const running = run();
  return {
    async stop() {
      stopped = true;
      await running;
      return chain.reorgs() - before;
    },
  };
}

/** Compares everything that was told with the chain as it is. */
async function reckon({ chain, site, audience, figures }: Scene, startBlocks: number): Promise<void> {
  let blocks = await chain.blocks();
  let logs = await logsFrom(chain, startBlocks);
  // The nodes make a block now and then without being asked to.
  const settled = async (): Promise<boolean> => {
    const { hash } = await chain.newest();
    if (hash !== blocks.at(-1)?.hash) [blocks, logs] = [await chain.blocks(), await logsFrom(chain, startBlocks)];
    return audience.heads.every((it) => it.tip === hash) && audience.logs.every((it) => it.agrees(logs));
  };
  await until("events of the last blocks", settled, SETTLE_MS).catch((error: unknown) => figures.wrong.push(String(error)));
  for (const ledger of audience.heads) ledger.settle(blocks);
  for (const ledger of audience.logs) ledger.settle(logs);
  figures.blocks += blocks.length - startBlocks;
  figures.heads += sum(audience.heads.map((it) => it.delivered));
  figures.logs += sum(audience.logs.map((it) => it.delivered));
  figures.takenBack += sum(audience.logs.map((it) => it.takenBack));
  const seen = await site.subscriptions();
  figures.streamFailovers += sum(Object.values(seen.failovers));
  figures.filledBlocks += seen.blocks_filled;
  figures.pending += audience.pendingTold();
}

/** Logs of earlier blocks were told to an earlier audience. */
async function logsFrom(chain: LiveChain, number: number): Promise<readonly Log[]> {
  return (await chain.logs()).filter((it) => Number(it.blockNumber) >= number);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function noFigures(): Figures {
  return {
    failovers: { reset: 0, closed: 0, torn: 0, frozen: 0, cascade: 0, blackout: 0 },
    disturbances: 0,
    lostNotifications: 0,
    reorgs: 0,
    blocks: 0,
    heads: 0,
    logs: 0,
    takenBack: 0,
    pending: 0,
    calls: 0,
    refused: 0,
    streamFailovers: 0,
    filledBlocks: 0,
    silencesMs: [],
    breaches: noBreaches(),
    wrong: [],
    rssStartBytes: 0,
    rssEndBytes: 0,
  };
}
