// How the rounds judge a client's answers: nothing of one node is wrong, and each kind of answer
// that is behind is counted as what it is.
import assert from "node:assert/strict";
import { test } from "node:test";
import { noteOf, type RoundsClient, type RoundsResult, runRounds } from "./rounds.ts";

const COUNT = 4;

/** A client of one node that mines at once, but for the answers that a test replaces. */
function clientOf(replaced: (node: RoundsClient) => Partial<RoundsClient>): RoundsClient {
  let blocks = 0;
  let onHead: Parameters<NonNullable<RoundsClient["heads"]>>[0] = () => {};
  const node: RoundsClient = {
    nonce: async () => blocks,
    async send({ nonce }) {
      if (nonce !== blocks) throw new Error("nonce too low");
      blocks++;
      onHead({ number: blocks, hash: `0x${blocks}` });
      return `0xa${blocks}`;
    },
    isKnown: async () => true,
    receipt: async () => ({
      succeeded: true,
      blockNumber: blocks,
      blockHash: `0x${blocks}`,
      contractAddress: "0xc",
    }),
    height: async () => blocks,
    block: async (at) => (typeof at === "number" ? `0x${at}` : at),
    call: async () => BigInt(blocks - 1),
    code: async () => "0x60",
    logs: async () => Math.min(1, blocks - 1),
    estimate: async () => 30_000,
    heads: async (listener) => {
      onHead = listener;
    },
    close: () => {},
  };
  return { ...node, ...replaced(node) };
}

function run(replaced: (node: RoundsClient) => Partial<RoundsClient>): Promise<RoundsResult> {
  return runRounds(clientOf(replaced), {
    feature: "rounds",
    wire: "ws",
    url: "",
    key: "",
    count: COUNT,
    bytecode: "0x",
  });
}

test("of what one node says nothing is wrong", async () => {
  const result = await run(() => ({}));
  assert.deepEqual(result, { rounds: COUNT, wrong: {}, firstError: null });
  assert.equal(noteOf(result), "4 rounds");
});

test("each answer that is behind is counted as what it is", async () => {
  // The deployment is read after like a round, with no log to find.
  const each = COUNT + 1;
  const rows: readonly (readonly [
    kind: string,
    count: number,
    replaced: (node: RoundsClient) => Partial<RoundsClient>,
  ])[] = [
    ["transaction not found", each, () => ({ isKnown: async () => false })],
    ["count", each, (node) => ({ call: async (to) => ((await node.call(to)) ?? 0n) - 1n })],
    ["no code", each, () => ({ code: async () => "0x" })],
    [
      "logs of block",
      COUNT,
      (node) => ({ logs: async (a, b, c) => (c === "latest" ? node.logs(a, b, c) : 0) }),
    ],
    [
      "logs to latest",
      COUNT,
      (node) => ({ logs: async (a, b, c) => (c === "latest" ? 0 : node.logs(a, b, c)) }),
    ],
    ["estimate", each, () => ({ estimate: async () => 21_100 })],
    [
      "transaction reverted",
      each,
      (node) => ({
        call: async () => 0n,
        logs: async () => 0,
        receipt: async (a, b) => ({ ...(await node.receipt(a, b)), succeeded: false }),
      }),
    ],
  ];
  for (const [kind, count, replaced] of rows)
    assert.deepEqual((await run(replaced)).wrong, { [kind]: count }, kind);
});

test("what is read by tag, by number and by head is told apart", async () => {
  const { wrong: nonces } = await run((node) => ({
    nonce: async (tag) => (await node.nonce(tag)) - (tag === "latest" ? 1 : 0),
  }));
  assert.deepEqual(nonces, { "latest nonce": 2 * (COUNT + 1) });
  const { wrong: blocks } = await run(() => ({ block: async () => null }));
  assert.deepEqual(Object.keys(blocks).sort(), ["block by hash", "block by number", "head: block"]);
  const { wrong: heights } = await run((node) => ({
    height: async () => (await node.height()) - 1,
  }));
  assert.deepEqual(Object.keys(heights).sort(), ["block number", "head: block number"]);
});

test("a nonce that is used up, a receipt that does not come: the rounds go on", async () => {
  let reads = 0;
  const stale = await run((node) => ({
    nonce: async (tag) => (await node.nonce(tag)) - (tag === "pending" && ++reads === 5 ? 1 : 0),
  }));
  assert.deepEqual(stale.wrong, { "pending nonce": 1, "nonce error": 1 });
  assert.equal(stale.firstError, "nonce too low");
  const silent = await run((node) => ({
    receipt: async (hash, timeoutMs) => {
      if (hash === "0xa3") throw new Error("timed out");
      return node.receipt(hash, timeoutMs);
    },
  }));
  assert.deepEqual([silent.rounds, silent.wrong], [COUNT, { "no receipt": 1 }]);
  assert.equal(noteOf(silent), "4 rounds: no receipt 1 (timed out)");
});
