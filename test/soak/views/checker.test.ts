// The rules of the checker of views, each on a history of a few operations: what breaks it, and the
// nearest thing that does not.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ChainBlock } from "../../fakes/chain.ts";
import { seededRandom } from "../../fakes/runtime.ts";
import { createViewChain, type SentTransaction } from "./chain.ts";
import { checkHistory, RULES, type Rule } from "./checker.ts";
import type { Observation, Operation, SessionKind } from "./history.ts";
import { createOracle } from "./oracle.ts";

const PROVIDERS = 4;
const KEY_SETTLE_MS = 250;
const ACCOUNT = "0xaccount";
const HASH = "0xhash";

describe("a caller goes back", () => {
  test("where it sees an older block than before", () => {
    const world = startWorld();
    const [older, newer] = [world.chain.blocks.tip(), world.mineFor(0, 1, 2, 3)];
    assert.deepEqual(world.wrong([read(0, newer), read(10, older)]), ["went back"]);
    assert.deepEqual(world.wrong([read(0, older), read(10, newer)]), []);
  });

  test("not where the second read began before the first had ended", () => {
    const world = startWorld();
    const [older, newer] = [world.chain.blocks.tip(), world.mineFor(0, 1, 2, 3)];
    const slow = { ...read(0, newer), endMs: 20 };
    assert.deepEqual(world.wrong([slow, read(19, older)]), []);
    assert.deepEqual(world.wrong([slow, read(20, older)]), ["went back"]);
  });

  test("not where two providers replaced the block, down to the block that both branches have", () => {
    const world = startWorld();
    const common = world.mineFor(0, 1, 2, 3);
    const left = world.mineFor(0, 1, 2, 3);
    const history = (last: ChainBlock) => [read(world.nowMs, left), read(world.nowMs + 500, last)];
    const seen = world.nowMs;
    const branch = world.chain.reorg(1, 0);
    world.move(0, branch);
    assert.deepEqual(world.wrong(history(branch)), ["went back"], "one provider replaced it");
    world.move(1, branch);
    const since = [read(seen, left), read(world.nowMs, branch)];
    assert.deepEqual(world.wrong(since), []);
    assert.deepEqual(world.wrong([read(seen, left), read(world.nowMs, common)]), []);
    const below = world.chain.blocks.byHash(common.parentHash);
    assert.ok(below);
    assert.deepEqual(world.wrong([read(seen, left), read(world.nowMs, below)]), ["went back"]);
  });

  test("not where two providers replaced a block below it", () => {
    const world = startWorld();
    world.mineFor(0, 1, 2, 3);
    const left = world.mineFor(0, 1, 2, 3);
    const seen = world.nowMs;
    const branch = world.chain.reorg(2, 0);
    const lower = world.chain.blocks.byHash(branch.parentHash);
    assert.ok(lower);
    const since = () => [read(seen, left), read(world.nowMs, lower)];
    world.move(0, lower);
    assert.deepEqual(world.wrong(since()), ["went back"], "one provider replaced it");
    world.move(1, branch);
    assert.deepEqual(world.wrong(since()), []);
  });

  test("not where the only provider that had the block left it", () => {
    for (const leaver of [0, 1]) {
      const world = startWorld();
      const side = world.chain.fork(0, 1);
      world.move(0, side);
      const seen = world.nowMs;
      const main = world.mineFor(leaver);
      const wrong = world.wrong([read(seen, side), read(world.nowMs, main)]);
      assert.deepEqual(wrong, leaver === 0 ? [] : ["went back"]);
    }
  });

  test("where a number is lower, unless a reorganisation took it back", () => {
    const world = startWorld();
    const block = world.mineFor(0, 1, 2, 3);
    assert.deepEqual(world.wrong([height(0, block.number), height(10, block.number - 1)]), [
      "went back",
    ]);
    assert.deepEqual(world.wrong([read(0, block), height(10, block.number - 1)]), ["went back"]);
    assert.deepEqual(world.wrong([read(0, block), height(10, block.number)]), []);
    const seen = world.nowMs;
    const branch = world.chain.reorg(1, 0);
    world.move(0, branch);
    world.move(1, branch);
    const later = height(world.nowMs, block.number - 1);
    assert.deepEqual(world.wrong([height(seen, block.number), later]), []);
    assert.deepEqual(world.wrong([read(seen, block), later]), []);
  });

  test("where another caller of its key saw more 250 ms before", () => {
    const world = startWorld();
    const [older, newer] = [world.chain.blocks.tip(), world.mineFor(0, 1, 2, 3)];
    const by = (operation: Operation): Operation => ({ ...operation, kind: "key, all nodes" });
    const first = by(read(0, newer));
    const inTime = first.endMs + KEY_SETTLE_MS;
    assert.deepEqual(world.wrong([first, by(read(inTime - 1, older))]), []);
    assert.deepEqual(world.wrong([first, by(read(inTime, older))]), ["went back"]);
  });

  test("not where the other session saw more", () => {
    const world = startWorld();
    const [older, newer] = [world.chain.blocks.tip(), world.mineFor(0, 1, 2, 3)];
    const other = { ...read(10, older), session: "other" };
    assert.deepEqual(world.wrong([read(0, newer), other]), []);
  });

  test("where its own nonce is older than the block that it has seen", () => {
    const world = startWorld();
    world.pool.push({ hash: HASH, from: ACCOUNT, nonce: 0 });
    const holds = world.mineFor(0, 1, 2, 3);
    assert.deepEqual(world.wrong([read(0, holds), nonce(10, "latest", 0)]), ["went back"]);
    assert.deepEqual(world.wrong([read(0, holds), nonce(10, "latest", 1)]), []);
  });
});

describe("a batch", () => {
  test("has two blocks where its reads disagree", () => {
    const world = startWorld();
    const [older, newer] = [world.chain.blocks.tip(), world.mineFor(0, 1, 2, 3)];
    const batch = (...seen: readonly Observation[]) => operation(0, ...seen);
    assert.deepEqual(world.wrong([batch(at(newer), at(older))]), ["two blocks in a batch"]);
    assert.deepEqual(world.wrong([batch(at(newer), ofHeight(older.number))]), [
      "two blocks in a batch",
    ]);
    assert.deepEqual(world.wrong([batch(at(newer), at(newer), ofHeight(newer.number))]), []);
  });

  test("has two blocks of one height", () => {
    const world = startWorld();
    const [one, other] = [world.chain.fork(0, 1), world.mineFor(0, 1, 2, 3)];
    assert.deepEqual(world.wrong([operation(0, at(one), at(other))]), ["two blocks in a batch"]);
  });
});

describe("an own write", () => {
  test("is lost where its hash is not found once it was accepted", () => {
    const world = startWorld();
    const absent = { kind: "transaction", hash: HASH, isFound: false } as const;
    assert.deepEqual(world.wrong([sent(0, 0), operation(10, absent)]), ["own write lost by hash"]);
    assert.deepEqual(world.wrong([sent(10, 0), operation(0, absent)]), []);
    assert.deepEqual(world.wrong([sent(0, 0, false), operation(10, absent)]), []);
    assert.deepEqual(world.wrong([sent(0, 0), operation(10, { ...absent, isFound: true })]), []);
  });

  test("has its receipt once its block was seen", () => {
    const world = startWorld();
    const before = world.chain.blocks.tip();
    world.pool.push({ hash: HASH, from: ACCOUNT, nonce: 0 });
    const holds = world.mineFor(0, 1, 2, 3);
    const above = world.mineFor(0, 1, 2, 3);
    const none = operation(20, { kind: "receipt", hash: HASH, block: null });
    for (const block of [holds, above])
      assert.deepEqual(world.wrong([sent(0, 0), read(10, block), none]), ["own receipt lost"]);
    assert.deepEqual(world.wrong([sent(0, 0), read(10, before), none]), []);
  });

  test("may lose its receipt where its block was replaced", () => {
    const world = startWorld();
    world.pool.push({ hash: HASH, from: ACCOUNT, nonce: 0 });
    const holds = world.mineFor(0, 1, 2, 3);
    const seen = world.nowMs;
    world.pool.pop();
    const branch = world.chain.reorg(1, 0);
    world.move(0, branch);
    world.move(1, branch);
    const none = operation(world.nowMs, { kind: "receipt", hash: HASH, block: null });
    assert.deepEqual(world.wrong([sent(0, 0), read(seen, holds), none]), []);
  });

  test("shows that its block is there to the reads after its receipt", () => {
    const world = startWorld();
    const before = world.chain.blocks.tip();
    const holds = world.mineFor(0, 1, 2, 3);
    const receipt = operation(0, { kind: "receipt", hash: HASH, block: holds });
    assert.deepEqual(world.wrong([receipt, read(10, before)]), ["went back"]);
    assert.deepEqual(world.wrong([read(0, holds), { ...receipt, startMs: 10, endMs: 11 }]), []);
  });

  test("uses its nonce up", () => {
    const world = startWorld();
    assert.deepEqual(world.wrong([sent(0, 4), nonce(10, "pending", 4)]), ["nonce served twice"]);
    assert.deepEqual(world.wrong([sent(0, 4), nonce(10, "pending", 5)]), []);
    assert.deepEqual(world.wrong([sent(0, 4), nonce(10, "pending", 6)]), ["nonce with a gap"]);
    assert.deepEqual(
      world.wrong([sent(0, 4), sent(2, 5, false), nonce(10, "pending", 6)]),
      [],
      "what was not accepted may have arrived",
    );
  });
});

test("the text of an anomaly names both operations and what the providers did between them", () => {
  const world = startWorld();
  const [older, newer] = [world.chain.blocks.tip(), world.mineFor(0, 1, 2, 3)];
  const { examples } = world.verdict([read(0, newer), read(world.nowMs, older)]);
  assert.match(examples[0]?.text ?? "", /eth_call 101 .*; p\d → 101 .*; .*eth_call 100 /);
});

/** A chain with providers whose moves the test makes; time goes on with each of them. */
function startWorld() {
  const pool: SentTransaction[] = [];
  const chain = createViewChain(seededRandom(1), () => pool);
  const oracle = createOracle(chain, PROVIDERS);
  const world = {
    chain,
    pool,
    nowMs: 1_000,
    move(provider: number, tip: ChainBlock): void {
      world.nowMs += 1_000;
      oracle.note({ provider, tip, atMs: world.nowMs });
      world.nowMs += 1_000;
    },
    mineFor(...providers: readonly number[]): ChainBlock {
      const block = chain.mine();
      for (const provider of providers) world.move(provider, block);
      return block;
    },
    verdict: (history: readonly Operation[]) =>
      checkHistory(history, oracle, (kind) => ({
        settleMs: kind === "key, all nodes" ? KEY_SETTLE_MS : 0,
        slackMs: 0,
      })),
    wrong(history: readonly Operation[]): readonly Rule[] {
      const { counts } = world.verdict(history);
      return RULES.filter((rule) => [...counts.values()].some((own) => (own.get(rule) ?? 0) > 0));
    },
  };
  return world;
}

const KIND: SessionKind = "http";

function operation(startMs: number, ...seen: readonly Observation[]): Operation {
  const isBatch = seen.length > 1;
  return { kind: KIND, session: "one", node: 0, startMs, endMs: startMs + 1, isBatch, seen };
}

function at(block: ChainBlock): Observation {
  return { kind: "block", method: "eth_call", block };
}

function ofHeight(number: number): Observation {
  return { kind: "height", method: "eth_blockNumber", number };
}

function read(startMs: number, block: ChainBlock): Operation {
  return operation(startMs, at(block));
}

function height(startMs: number, number: number): Operation {
  return operation(startMs, ofHeight(number));
}

function nonce(startMs: number, tag: "latest" | "pending", value: number): Operation {
  return operation(startMs, { kind: "nonce", account: ACCOUNT, tag, value });
}

function sent(startMs: number, at: number, isAccepted = true): Operation {
  return operation(startMs, { kind: "sent", hash: HASH, account: ACCOUNT, nonce: at, isAccepted });
}
