// Marks: what a subscriber was told, as text, and what it misses of what another one was told.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Block, Head } from "../../../src/core/stream/chain-event.ts";
import {
  type DeliveryState,
  stateAfter,
  takeHead,
  takeLog,
} from "../../../src/core/stream/delivery-state.ts";
import {
  eventsSince,
  markOf,
  markText,
  readMark,
  type StreamMark,
  stateAt,
  unsureIn,
} from "../../../src/core/stream/stream-mark.ts";

const NONE: ReadonlySet<string> = new Set();
const WINDOW = 128;

function hashOf(number: number, branch: string): string {
  return `0x${branch}${number.toString(16).padStart(63, "0")}`;
}

/** A block on branch `a`, or on another one that leaves it after `forkAt`. */
function block(number: number, branch = "a", forkAt = 0): Head {
  const parent = number - 1 > forkAt ? branch : "a";
  const parentHash = hashOf(number - 1, parent);
  return { number, hash: hashOf(number, branch), parentHash, raw: Buffer.from(`${number}`) };
}

function logOf({ number, hash }: Block, logIndex: number) {
  const raw = Buffer.from(
    JSON.stringify({
      blockNumber: `0x${number.toString(16)}`,
      blockHash: hash,
      logIndex,
      removed: false,
    }),
  );
  return { blockNumber: number, blockHash: hash, logIndex, removed: false, raw };
}

/** The state after blocks, each with one log. */
function following(start: Head, ...heads: readonly Head[]): DeliveryState {
  const state = stateAfter("logs", start, WINDOW);
  for (const head of heads) {
    takeHead(state, head, true);
    takeLog(state, logOf(head, 0));
  }
  return state;
}

function range(from: number, to: number): readonly Head[] {
  return Array.from({ length: to - from + 1 }, (_, at) => block(from + at));
}

function marked(state: DeliveryState, unsure = NONE): StreamMark {
  const mark = markOf(state, unsure);
  assert.ok(mark !== null);
  const read = readMark(markText(mark));
  assert.deepEqual(read, mark, "a mark survives as text");
  return mark;
}

function shown(state: DeliveryState, mark: StreamMark): readonly string[] {
  const difference = eventsSince(state, mark);
  assert.equal(difference.kind, "events");
  if (difference.kind !== "events") return [];
  return difference.events.map((raw) => {
    const { blockHash, removed } = JSON.parse(raw.toString());
    return `${removed ? "-" : "+"}${blockHash.slice(2, 3)}${Number(`0x${blockHash.slice(3)}`)}`;
  });
}

test("a state goes on where the mark of another one stands", () => {
  const state = following(block(10), ...range(11, 14));
  const mark = marked(state, new Set([hashOf(13, "a")]));
  const again = stateAt(mark, WINDOW);
  assert.deepEqual(again.recent, state.recent);
  assert.deepEqual(again.delivered, state.delivered);
  assert.equal(again.startHash, hashOf(10, "a"));
  assert.deepEqual(unsureIn(mark), [hashOf(13, "a"), hashOf(14, "a")]);
  assert.deepEqual(shown(again, mark), []);
});

test("what was delivered after a mark is told, what left the chain is taken back", () => {
  const mark = marked(following(block(10), ...range(11, 14)));
  const ahead = following(block(9), ...range(10, 16));
  assert.deepEqual(shown(ahead, mark), ["+a15", "+a16"]);
  const fork = [block(13, "b", 12), block(14, "b", 12), block(15, "b", 12)];
  const elsewhere = following(block(9), ...range(10, 12), ...fork);
  assert.deepEqual(shown(elsewhere, mark), ["-a14", "-a13", "+b13", "+b14", "+b15"]);
});

test("heads are told by number, hash and parent", () => {
  const state = stateAfter("newHeads", block(10), WINDOW);
  const mark = marked(state);
  takeHead(state, block(11), true);
  const difference = eventsSince(state, mark);
  assert.ok(difference.kind === "events");
  assert.deepEqual(
    difference.events.map((raw) => JSON.parse(raw.toString())),
    [{ number: "0xb", hash: hashOf(11, "a"), parentHash: hashOf(10, "a") }],
  );
});

test("a state that lacks what was told is behind; one that began later, or elsewhere, is apart", () => {
  const mark = marked(following(block(10), ...range(11, 14)));
  assert.equal(eventsSince(following(block(9), ...range(10, 13)), mark).kind, "behind");
  const lacking = following(block(9), ...range(10, 13));
  takeHead(lacking, block(14), true);
  assert.equal(eventsSince(lacking, mark).kind, "behind", "its log of block 14 is still to come");
  assert.equal(eventsSince(following(block(20), block(21)), mark).kind, "apart");
  // It knows no logs of the block that it began with, and of those before.
  assert.equal(eventsSince(following(block(13), ...range(14, 15)), mark).kind, "apart");
  const unsure = marked(following(block(10), ...range(11, 14)), new Set([hashOf(11, "a")]));
  assert.equal(eventsSince(following(block(11), ...range(12, 15)), unsure).kind, "apart");
});

test("logs of doubtful blocks that were not told are told", () => {
  const told = following(block(10), ...range(11, 14));
  const mark = marked(told, new Set([hashOf(14, "a")]));
  const more = following(block(9), ...range(10, 14));
  takeLog(more, logOf(block(14), 1));
  assert.deepEqual(shown(more, mark), ["+a14"]);
});

test("a mark is bounded: old blocks and long logs are left out, and then cannot be taken back", () => {
  const state = following(block(10), ...range(11, 200));
  const mark = marked(state);
  assert.equal(mark.blocks.length, 64);
  assert.equal(mark.rooted, false);
  assert.equal(mark.startHash, "");
  const last = block(201);
  takeHead(state, last, true);
  const long = logOf(last, 0);
  takeLog(state, { ...long, raw: Buffer.alloc(20_000, long.raw) });
  const short = marked(state);
  assert.ok(markText(short).length < 30_000);
  const fork = following(block(150), ...range(151, 200), block(201, "b", 200));
  assert.equal(eventsSince(fork, short).kind, "forgotten");
  const goneOn = stateAt(short, WINDOW);
  assert.equal(takeHead(goneOn, block(201, "b", 200), true), null, "nor by one who goes on");
});

test("what is no mark is refused", () => {
  const text = markText(marked(following(block(10), ...range(11, 14))));
  const change = (changes: Record<string, unknown>): string =>
    JSON.stringify({ ...JSON.parse(text), ...changes });
  for (const wrong of [
    "",
    "null",
    "[]",
    change({ from: -1 }),
    change({ hashes: "" }),
    change({ hashes: "AAAA" }),
    change({ rooted: 1 }),
    change({ unsureFrom: "1" }),
    change({ logs: {} }),
    change({ logs: [[99, []]] }),
    change({ logs: [[0, [[0, 5]]]] }),
  ])
    assert.equal(readMark(wrong), null, wrong);
});
