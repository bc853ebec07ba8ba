// Many log filters on one chain: what their checks and failovers ask of providers is bounded by the
// blocks, not by the filters, and no subscriber misses a log.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProviderSet } from "../../src/core/provider/profile.ts";
import { ADDRESSES, TOPICS } from "../fakes/chain.ts";
import { createStreamFixture, type Ear, type StreamFixture } from "./stream-fixture.ts";

const STRICT: Partial<ProviderSet> = { logVerification: "strict", verificationBudget: 5 };
const FILTERS = 43;

/** A filter that wants some logs, unlike that of every other number. */
function filterOf(n: number): readonly unknown[] {
  const address = `0x${String(n).padStart(40, "0")}`;
  const topic = `0x${String(n).padStart(64, "0")}`;
  return n % 2 === 0
    ? ["logs", { address: [ADDRESSES[n % ADDRESSES.length], address] }]
    : ["logs", { topics: [[TOPICS[n % TOPICS.length], topic]] }];
}

/** Opens filters whose sources are spread over providers that push one after the other. */
async function openMany(at: StreamFixture): Promise<readonly Ear[]> {
  at.nodes[1].manners.pushMs = 150;
  at.nodes[2].manners.pushMs = 300;
  const ears = Array.from({ length: FILTERS }, (_, n) =>
    at.open(filterOf(n), { strategy: "load-balanced" }),
  );
  await at.pass(3_000);
  return ears;
}

async function mine(at: StreamFixture, blocks: number, blockMs = 1_000): Promise<void> {
  for (let n = 0; n < blocks; n++) {
    at.mine();
    await at.pass(blockMs);
  }
}

function questions(at: StreamFixture): number {
  const isOne = (method: string): boolean => method === "eth_getLogs";
  return at.nodes.reduce((sum, { requests }) => sum + requests.filter(isOne).length, 0);
}

function settled(ears: readonly Ear[]): void {
  for (const { audience, state } of ears) {
    assert.equal(state, "started");
    audience.settled();
  }
}

test(
  "43 filters at a block a second are checked within the usual budget, and nobody misses " +
    "what one provider leaves out",
  async () => {
    const at = createStreamFixture(STRICT);
    const ears = await openMany(at);
    at.nodes[0].manners.omit = 0.3;
    const before = at.subscriptions.checks()[0]?.calls ?? 0;
    await mine(at, 90);
    const [checks] = at.subscriptions.checks();
    assert.ok(checks !== undefined && checks.missing > 0);
    assert.equal(checks.overBudget, 0, JSON.stringify(checks));
    assert.ok(checks.calls - before <= 3 * 90, `${checks.calls - before} calls for 90 blocks`);
    await at.pass(5_000);
    settled(ears);
  },
);

test("under strict the budget grows with the blocks that need it, up to the pace of the chain", async () => {
  for (const verificationBudget of [0.1, 1]) {
    const at = createStreamFixture({ ...STRICT, verificationBudget });
    const ears = await openMany(at);
    await mine(at, 20);
    const early = at.subscriptions.checks()[0]?.overBudget ?? 0;
    at.nodes[0].manners.omit = 0.3;
    await mine(at, 60);
    const [checks] = at.subscriptions.checks();
    assert.equal(checks?.overBudget, early, JSON.stringify(checks));
    await at.pass(5_000);
    settled(ears);
  }
});

test("a block costs the provider of many streams one question for logs, however many filters", async () => {
  const at = createStreamFixture({ logVerification: "off" });
  const ears = await openMany(at);
  let before = questions(at);
  for (let n = 0; n < 10; n++) {
    const source = at.nodes[n % 2];
    source?.die();
    await mine(at, 2, 500);
    source?.revive();
    await mine(at, 8);
    // The blocks without a source, those before them that may lack logs, and those of the first
    // two seconds, each at up to two new sources.
    const asked = questions(at) - before;
    before = questions(at);
    if (n > 0) assert.ok(asked <= 2 * 10, `${asked} questions for one failover of all streams`);
  }
  settled(ears);
});

test("a provider that refuses all logs of a block is asked for those of each filter", async () => {
  const at = createStreamFixture({ logVerification: "off" });
  const ears = await openMany(at);
  for (const node of at.nodes) node.manners.limitsLogs = true;
  for (let n = 0; n < 4; n++) {
    const source = at.nodes[n % 2];
    source?.die();
    await mine(at, 2, 500);
    source?.revive();
    await mine(at, 8);
  }
  assert.equal(at.subscriptions.counts()[0]?.ended, 0);
  settled(ears);
});

test("filters that are polled cost one question for logs a block", async () => {
  const at = createStreamFixture({ logVerification: "off" }, true);
  for (const node of at.nodes) node.manners.refuses = new Set(["logs"]);
  const ears = await openMany(at);
  await mine(at, 5);
  const before = questions(at);
  await mine(at, 20);
  // Streams may have different sources.
  assert.ok(questions(at) - before <= 3 * 20, `${questions(at) - before} questions for 20 blocks`);
  await at.pass(3_000);
  settled(ears);
});
