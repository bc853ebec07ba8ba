// What one subscription is told of heads and logs: shapes, take-backs before new logs, logs that
// wait for their block, and nothing of what came before.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Head, type Log, readHead, readLog } from "../../../src/core/stream/chain-event.ts";
import {
  dropHeld,
  stateAfter,
  takeHead,
  takeLog,
} from "../../../src/core/stream/delivery-state.ts";
import { blockText, type ChainBlock, fakeChain, headerText, logText } from "../../fakes/chain.ts";
import { seededRandom } from "../../fakes/runtime.ts";

function headOf(text: string): Head {
  const head = readHead(Buffer.from(text));
  assert.ok(head !== null);
  return head;
}

function logsOf(block: ChainBlock, removed = false): readonly Log[] {
  return block.logs.map((it) => {
    const log = readLog(Buffer.from(logText(block, it, removed)));
    assert.ok(log !== null);
    return log;
  });
}

const texts = (told: readonly Buffer[] | null): readonly string[] | null =>
  told?.map((it) => it.toString()) ?? null;
const textsOf = (block: ChainBlock, removed = false): readonly string[] =>
  block.logs.map((it) => logText(block, it, removed));

/** The next block that has logs. */
function mineLogs(chain: ReturnType<typeof fakeChain>): ChainBlock {
  const block = chain.mine();
  return block.logs.length >= 2 ? block : mineLogs(chain);
}

/** A chain and a subscription to logs that begins just before a block with logs. */
function logFixture() {
  const chain = fakeChain(seededRandom(5));
  const block = mineLogs(chain);
  const before = chain.byHash(block.parentHash);
  assert.ok(before !== undefined);
  return {
    chain,
    block,
    before,
    track: stateAfter("logs", headOf(headerText(before)), 64),
  };
}

test(
  "a head that was asked for is told in the shape of pushed ones, the latest of which is the " +
    "pattern",
  () => {
    const chain = fakeChain(seededRandom(1));
    const track = stateAfter("newHeads", headOf(blockText(chain.tip())), 64);
    const first = chain.mine();
    assert.deepEqual(texts(takeHead(track, headOf(blockText(first)), false)), [headerText(first)]);
    const second = chain.mine();
    const strange = `{"hash":"${second.hash}","number":"0x${second.number.toString(16)}","parentHash":"${second.parentHash}"}`;
    assert.deepEqual(texts(takeHead(track, headOf(strange), true)), [strange]);
    const third = chain.mine();
    assert.deepEqual(texts(takeHead(track, headOf(blockText(third)), false)), [
      `{"hash":"${third.hash}","number":"0x${third.number.toString(16)}","parentHash":"${third.parentHash}"}`,
    ]);
  },
);

test("logs that come before their block wait for it, and come after what is taken back", () => {
  const { chain, block, track } = logFixture();
  for (const log of logsOf(block)) assert.equal(takeLog(track, log), null);
  assert.deepEqual(texts(takeHead(track, headOf(headerText(block)), true)), textsOf(block));
  for (const log of logsOf(block)) assert.deepEqual(takeLog(track, log), []);
  let other = chain.reorg(1, 0);
  while (other.logs.length === 0) other = chain.reorg(1, 0);
  for (const log of logsOf(other)) assert.equal(takeLog(track, log), null);
  assert.deepEqual(texts(takeHead(track, headOf(headerText(other)), true)), [
    ...textsOf(block, true).toReversed(),
    ...textsOf(other),
  ]);
  assert.deepEqual(track.held, []);
});

test("logs that come after their block are told at once, and once", () => {
  const { block, track } = logFixture();
  assert.deepEqual(takeHead(track, headOf(headerText(block)), true), []);
  for (const [at, log] of logsOf(block).entries())
    assert.deepEqual(texts(takeLog(track, log)), [textsOf(block)[at]]);
  for (const log of logsOf(block)) assert.deepEqual(takeLog(track, log), []);
});

test("what the provider takes back itself is passed on once, and not taken back again", () => {
  const { chain, block, track } = logFixture();
  takeHead(track, headOf(headerText(block)), true);
  for (const log of logsOf(block)) takeLog(track, log);
  const removed = logsOf(block, true).toReversed();
  assert.deepEqual(
    removed.map((it) => texts(takeLog(track, it))),
    textsOf(block, true)
      .toReversed()
      .map((it) => [it]),
  );
  for (const log of removed) assert.deepEqual(takeLog(track, log), []);
  assert.deepEqual(takeHead(track, headOf(headerText(chain.reorg(1, 0))), true), []);
});

test("a log that waits and is taken back is never told", () => {
  const { block, track } = logFixture();
  for (const log of logsOf(block)) takeLog(track, log);
  for (const log of logsOf(block, true)) assert.deepEqual(takeLog(track, log), []);
  assert.deepEqual(takeHead(track, headOf(headerText(block)), true), []);
  const other = logFixture();
  for (const log of logsOf(other.block)) takeLog(other.track, log);
  dropHeld(other.track, other.block.hash);
  assert.deepEqual(
    [other.track.held, takeHead(other.track, headOf(headerText(other.block)), true)],
    [[], []],
  );
});

test("nothing is told of the block behind which a subscription began, nor of older ones", () => {
  const chain = fakeChain(seededRandom(7));
  const old = mineLogs(chain);
  const start = mineLogs(chain);
  const track = stateAfter("logs", headOf(headerText(start)), 64);
  for (const log of [...logsOf(start), ...logsOf(old), ...logsOf(start, true)])
    assert.deepEqual(takeLog(track, log), []);
  assert.deepEqual(track.held, []);
});

test("a subscription to heads is told of no logs", () => {
  const { before, block } = logFixture();
  const track = stateAfter("newHeads", headOf(headerText(before)), 64);
  for (const log of logsOf(block)) assert.deepEqual(takeLog(track, log), []);
});

test("a reorg whose logs are no longer held says so instead of keeping quiet", () => {
  const { chain, block, track } = logFixture();
  takeHead(track, headOf(headerText(block)), true);
  const [log] = logsOf(block);
  assert.ok(log !== undefined);
  const long = Buffer.from(
    `{"blockNumber":"0x${block.number.toString(16)}","blockHash":"${block.hash}","logIndex":"0x0","data":"${"0".repeat(3_000_000)}"}`,
  );
  for (const logIndex of [100, 101, 102])
    assert.equal(takeLog(track, { ...log, logIndex, raw: long })?.length, 1);
  const next = chain.mine();
  assert.deepEqual(takeHead(track, headOf(headerText(next)), true), []);
  const other = chain.at(chain.reorg(2, 0), block.number);
  assert.ok(other !== undefined);
  assert.equal(takeHead(track, headOf(headerText(other)), true), null);
});
