// Memory: what is remembered of an event or answer does not keep the text that it was read from.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { readSubscription } from "../../../src/core/stream/subscription.ts";
import { readLogs } from "../../../src/upstream/stream/backfill.ts";
import {
  BlockCheck,
  type BlockCheckRequest,
  type BlockCheckResult,
} from "../../../src/upstream/stream/checks/block-check.ts";
import { BlockLogs } from "../../../src/upstream/stream/checks/block-logs.ts";
import { BestEffortContinuity } from "../../../src/upstream/stream/continuity.ts";
import { fakeProvider } from "../../fakes/providers.ts";

const WORD = `0x${"ab".repeat(32)}`;
const FOREIGN = `0x${"cd".repeat(32)}`;
const FILL = "3".repeat(39);
const ADDRESS = `0x${"11".repeat(20)}`;

test("of 400 pending transactions of 120 KB each only the hash is remembered", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const usedBytes = (): number => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  let told = 0;
  const continuity = new BestEffortContinuity("newPendingTransactions", {
    expect() {},
    emit(results) {
      told += results.length;
    },
    unconfirmed: () => assert.fail(),
    failed: () => assert.fail(),
  });
  const input = "00".repeat(60_000);
  const push = (n: number): void =>
    continuity.hear(
      Buffer.from(`{"input":"${input}","hash":"0x${n.toString(16).padStart(64, "0")}"}`),
      false,
    );
  const before = usedBytes();
  for (let n = 0; n < 400; n++) push(n);
  const kept = usedBytes() - before;
  assert.ok(kept < 4_194_304, `${kept} bytes are kept`);
  for (let n = 0; n < 400; n++) push(n);
  assert.equal(told, 400, "each is told once");
});

test("a source that is asked alone confirms nothing, unless nobody else could ever be asked", async () => {
  const block = { number: 1, hash: WORD, parentHash: FOREIGN };
  const { id } = fakeProvider(0);
  for (const filters of [1, 5])
    for (const hasOthers of [true, false]) {
      const check = new BlockCheck(block, {
        candidates: () => [{ provider: fakeProvider(0), transport: "http" }],
        hasOthers: () => hasOthers,
        queryLogs: async () => [],
        queryAll: async () => [],
        kept: () => null,
        isAffordable: () => true,
        isRoomy: () => true,
      });
      const results = resultsOf(check, filters, { source: id, second: "needed" });
      for (const result of await Promise.all(results)) {
        assert.ok(result.kind === "logs");
        assert.deepEqual([result.firm, result.independent], [!hasOthers, false]);
      }
    }
});

test("the logs that a check found do not keep the whole answer", async () => {
  const block = { number: 1, hash: WORD, parentHash: FOREIGN };
  const logs = Array.from({ length: 500 }, (_, n) => ({
    address: n === 7 ? ADDRESS : `0x${"22".repeat(20)}`,
    topics: [],
    data: `0x${"00".repeat(500)}`,
    blockNumber: "0x1",
    blockHash: WORD,
    logIndex: `0x${n.toString(16)}`,
  }));
  const answer = Buffer.from(JSON.stringify(logs));
  const blockLogs = new BlockLogs();
  const ask = async () => readLogs(answer, block);
  for (const filters of [1, 5]) {
    const check = new BlockCheck(block, {
      candidates: () => [{ provider: fakeProvider(0), transport: "http" }],
      hasOthers: () => true,
      queryLogs: ask,
      queryAll: () => blockLogs.fetch("all", ask),
      kept: () => blockLogs.kept("all"),
      isAffordable: () => true,
      isRoomy: () => true,
    });
    const results = resultsOf(check, filters, { source: "other", second: "no" });
    for (const result of await Promise.all(results)) {
      assert.ok(result.kind === "logs");
      assert.deepEqual(
        result.logs.map(({ logIndex }) => logIndex),
        [7],
      );
      assert.notEqual(result.logs[0]?.raw.buffer, answer.buffer);
    }
  }
});

/** What a check finds for so many different filters. */
function resultsOf(
  check: BlockCheck,
  filters: number,
  how: Omit<BlockCheckRequest, "subscription">,
): readonly Promise<BlockCheckResult>[] {
  const results = Array.from({ length: filters }, (_, n) => {
    const subscription = readSubscription(["logs", { address: [ADDRESS, `0x${n}${FILL}`] }]);
    assert.ok(subscription.kind !== "invalid");
    return new Promise<BlockCheckResult>((resolve) =>
      check.join({ subscription, ...how }, resolve),
    );
  });
  check.run();
  return results;
}
