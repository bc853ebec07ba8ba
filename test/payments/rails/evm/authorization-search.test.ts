// The search for who used an authorization, over a scripted chain: found wherever it can be,
// within bounded questions, and never guessed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { pad, toEventSelector, toHex } from "viem";
import type { NodeError, NodeResult } from "../../../../src/payments/rails/chain.ts";
import { searchUse } from "../../../../src/payments/rails/evm/authorization-search.ts";
import {
  type EvmBlock,
  type EvmLog,
  EvmNode,
  type EvmReceipt,
  type LogQuery,
} from "../../../../src/payments/rails/evm/node.ts";
import { simulatedWorld } from "../../../fakes/runtime.ts";

const BLOCK_S = 2n;
const START_S = 1_700_000_000n;
const FROM = "0x00000000000000000000000000000000000000b1";
const TO = "0x00000000000000000000000000000000000000c3";
const TOKEN = "0x00000000000000000000000000000000000000aa";
const NONCE = toHex(1n, { size: 32 });

interface Script {
  readonly head: bigint;
  /** Block of the use; null = the node has no log of it. */
  readonly usedAt: bigint | null;
  /** Blocks that the node takes at once. */
  readonly widest: bigint;
  /** Blocks below it are not kept. */
  readonly oldest?: bigint;
  /** Added to the world's time by every question. */
  readonly questionMs?: number;
}

function search({ head, usedAt, widest, oldest = 0n, questionMs = 0 }: Script, readAt: bigint) {
  const runtime = simulatedWorld(1);
  const asked: LogQuery[] = [];
  let questions = 0;
  const question = (): void => {
    questions += 1;
    runtime.advance(questionMs);
  };
  const place = { txHash: "0x77", block: usedAt ?? 0n, blockHash: "0x88", address: TOKEN };
  const logs: readonly EvmLog[] = [
    {
      ...place,
      topics: [toEventSelector("AuthorizationUsed(address,bytes32)"), pad(FROM), NONCE],
      data: "0x",
      logIndex: 3,
    },
    {
      ...place,
      topics: [toEventSelector("Transfer(address,address,uint256)"), pad(FROM), pad(TO)],
      data: toHex(5n, { size: 32 }),
      logIndex: 4,
    },
  ];
  const block = (number: bigint) => ({
    number,
    hash: `0x${number}`,
    timeS: START_S + number * BLOCK_S,
    baseFeeWei: 1n,
  });
  class ScriptedNode extends EvmNode {
    override async block(at: bigint | "latest"): Promise<EvmBlock | null> {
      question();
      return at === "latest" || at < oldest ? null : block(at);
    }

    override async logs(query: LogQuery): Promise<NodeResult<readonly EvmLog[]> | NodeError> {
      question();
      asked.push(query);
      if (query.toBlock - query.fromBlock >= widest)
        return { kind: "node_error", code: -32005, message: "range", data: null, reverted: false };
      const isIn = usedAt !== null && usedAt >= query.fromBlock && usedAt <= query.toBlock;
      return { kind: "result", value: isIn ? logs.slice(0, 1) : [] };
    }

    override async receipt(): Promise<EvmReceipt> {
      question();
      return { ...place, succeeded: true, logs };
    }
  }
  const node = new ScriptedNode({ rpcUrl: "http://127.0.0.1:1", chainId: 1, runtime });
  const material = {
    token: TOKEN,
    authorization: {
      from: FROM,
      to: TO,
      value: 5n,
      validAfter: 0n,
      validBefore: 0n,
      nonce: NONCE,
      signature: "0x",
    },
    readAtMs: Number(START_S + readAt * BLOCK_S) * 1000,
  } as const;
  const found = searchUse({ node, runtime, material, head: block(head) });
  return { found, asked, questions: () => questions };
}

test("what is in the newest blocks is found at the first question", async () => {
  const { found, asked } = search(
    { head: 1_000_000n, usedAt: 999_900n, widest: 10_000n },
    999_890n,
  );
  assert.deepEqual(await found, {
    kind: "paid",
    txHash: "0x77",
    block: 999_900n,
    blockHash: "0x88",
    logIndex: 4,
  });
  assert.equal(asked.length, 1);
});

test("what was used while the service was away is found from the time when it was read on", async () => {
  const { found, questions } = search(
    { head: 1_000_000n, usedAt: 850_010n, widest: 10_000n },
    850_000n,
  );
  assert.equal((await found)?.block, 850_010n);
  assert.ok(questions() < 40, `${questions()} questions`);
});

test("what was used before it was read is found too, as far back as an offer lasts", async () => {
  assert.equal(
    (await search({ head: 1_000_000n, usedAt: 849_000n, widest: 10_000n }, 850_000n).found)?.block,
    849_000n,
  );
});

test("a node that takes few blocks at once, and has not all, is asked in smaller ranges", async () => {
  for (const widest of [2_000n, 100n, 20n]) {
    const { found, asked } = search(
      { head: 1_000_000n, usedAt: 998_500n, widest, oldest: 990_000n },
      998_490n + 1_800n,
    );
    assert.equal((await found)?.block, 998_500n, `ranges of ${widest}`);
    assert.ok(asked.length <= 65);
  }
});

test("a chain shorter than the search is searched whole", async () => {
  assert.equal((await search({ head: 3n, usedAt: 0n, widest: 10_000n }, 1n).found)?.block, 0n);
});

test("finding nothing is an answer only where everything was searched", async () => {
  assert.equal(
    await search({ head: 1_000_000n, usedAt: null, widest: 5_000n }, 990_000n).found,
    null,
  );
  assert.equal(
    await search({ head: 1_000_000n, usedAt: 500_000n, widest: 5_000n }, 990_000n).found,
    null,
    "used long before any offer of today",
  );
  const { found, questions } = search({ head: 100_000_000n, usedAt: null, widest: 500n }, 0n);
  await assert.rejects(found, { name: "ChainFailure" });
  assert.ok(questions() < 200, `${questions()} questions`);
});

test("a node that answers slowly ends the search, and one that takes no range at all too", async () => {
  const slow = search({ head: 100_000_000n, usedAt: null, widest: 5_000n, questionMs: 4_000 }, 0n);
  await assert.rejects(slow.found, { name: "ChainFailure" });
  assert.ok(
    slow.questions() <= 5,
    `${slow.questions()} questions, the search for the first block among them`,
  );
  await assert.rejects(search({ head: 1_000n, usedAt: 500n, widest: 0n }, 500n).found, {
    name: "ChainFailure",
  });
});
