// One act of the soak: an audience, a living chain with reorgs, and provider after provider forced
// to fail while it serves; then the reckoning against the chain.
import { until } from "../fakes/service-fixture.ts";
import type { ActFixture, ActPlan } from "./act-fixture.ts";
import { seat } from "./audience.ts";
import type { LiveChain } from "./chain.ts";
import { between } from "./chance.ts";
import { type Figures, noFigures } from "./figures.ts";
import { disturb, failOver, headsAfter } from "./force.ts";
import type { Log } from "./ledger.ts";
import { askSteadily } from "./questions.ts";
import { startSite } from "./site.ts";

const BLOCK_EVERY_MS = 75;
const POSTS_PER_NODE = 4;
const NEW_HEADS_TIMEOUT_MS = 1_500;
const SETTLE_MS = 20_000;
const DEEPEST_REORG = 4;
const BLOCKS_BEFORE_REORGS = 12;

/** Plays an act; what was started for it has ended when it resolves. */
export async function play(chain: LiveChain, plan: ActPlan): Promise<Figures> {
  const figures = noFigures();
  const subscriptions = {
    new_heads_timeout_ms: NEW_HEADS_TIMEOUT_MS,
    max_backfill_blocks: 100,
    backfill_timeout_ms: 20_000,
  };
  const monitoring = { probe_interval_ms: 500, socket_heads: plan.socketHeads };
  const site = await startSite(chain, {
    postsPerNode: POSTS_PER_NODE,
    socketsOnly: plan.socketsOnly,
    profiles: { team: { subscriptions, monitoring } },
  });
  try {
    await until(
      "a service that is ready",
      async () => (await fetch(`${site.service.url}/api/ready`)).ok,
    );
    const pinned = chain.devnet.providers.slice(1).map(({ id }) => `${id}-${POSTS_PER_NODE}`);
    const audience = await seat({
      site,
      profile: "team",
      strategy: plan.strategy,
      emitters: chain.emitters,
      breaches: figures.breaches,
      pinned,
    });
    try {
      const expected = audience.logs.length;
      const listening = async (): Promise<number> => {
        const { streams } = await site.subscriptions();
        return streams.reduce(
          (sum, it) => sum + (it.kind === "logs" && it.state === "live" ? it.subscribers : 0),
          0,
        );
      };
      await until("every subscription", async () => (await listening()) === expected);
      await perform({ chain, site, audience, plan, figures, pinned });
    } finally {
      await audience.close();
    }
    return figures;
  } finally {
    await site.close();
  }
}

async function perform(fixture: ActFixture): Promise<void> {
  const { chain, site, audience, plan, figures } = fixture;
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
      await failOver(fixture);
      if (random() < 0.2) await disturb(fixture);
      if (n === Math.floor(plan.failovers / 2))
        figures.rssMiddleBytes = await site.service.residentBytes();
      plan.onRound(figures);
    }
    for (const { admission } of site.posts) if (!admission.whole()) admission.mend();
  } catch (cause) {
    const streams = (await site.subscriptions()).streams
      .map((it) => `${it.kind} ${it.state} ${it.block_height}`)
      .join(", ");
    throw new Error(`${String(cause)}; nodes: ${await chain.standing()}; streams: ${streams}`, {
      cause,
    });
  } finally {
    figures.reorgs += await reorgs.stop();
    await questions.stop();
  }
  await chain.rest();
  await reckon(fixture, startBlocks);
  figures.calls += questions.asked();
  figures.refused += questions.refused();
  figures.wrong.push(...questions.wrong, ...audience.errors);
  figures.rssEndBytes = await site.service.residentBytes();
}
function reorgNowAndThen(
  chain: LiveChain,
  random: () => number,
): { readonly stop: () => Promise<number> } {
  const before = chain.reorgs();
  let stopped = false;
  const run = async (): Promise<void> => {
    while (!stopped) {
      await chain.reorg(between(random, 1, DEEPEST_REORG), random() < 0.5);
      for (
        const until = performance.now() + between(random, 500, 1_500);
        !stopped && performance.now() < until;
      )
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
async function reckon(
  { chain, site, audience, figures }: ActFixture,
  startBlocks: number,
): Promise<void> {
  let blocks = await chain.blocks();
  let logs = await logsFrom(chain, startBlocks);
  // The nodes make a block now and then without being asked to.
  const settled = async (): Promise<boolean> => {
    const { hash } = await chain.newest();
    if (hash !== blocks.at(-1)?.hash)
      [blocks, logs] = [await chain.blocks(), await logsFrom(chain, startBlocks)];
    return (
      audience.heads.every((it) => it.tip === hash) && audience.logs.every((it) => it.agrees(logs))
    );
  };
  await until("events of the last blocks", settled, SETTLE_MS).catch((error: unknown) =>
    figures.wrong.push(String(error)),
  );
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
