// A seeded simulation of calls over ranges of blocks: nodes with limits of their own that fail,
// lie, are on other forks or change theirs meanwhile. Whatever happens, an answer is complete and
// of one fork, or it is refused or broken off; nothing stays out. A failure names its seed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ChainView, type Density, hashOf, logsOf } from "../fakes/range-chain.ts";
import { type RangeFixture, rangeFixture } from "../fakes/range-nodes.ts";
import { seededRandom } from "../fakes/runtime.ts";
import { chanceSeeds } from "../fakes/seed.ts";

const HEAD = 20_000;
const TRUTH: ChainView = { head: HEAD, forks: [] };
const sparse: Density = (block) => (block % 7 === 0 ? 1 : 0);
const hex = (number: number): string => `0x${number.toString(16)}`;

function oracle(from: number, to: number, view: ChainView, density: Density): string {
  return `[${logsOf({ from, to }, view, density).join(",")}]`;
}

/** Lets time pass until nothing is left to do. */
function settle({ runtime }: RangeFixture): void {
  runtime.advance(101_000);
}

function assertIdle(it: RangeFixture): void {
  assert.equal(it.out(), 0, "nothing is out");
  assert.equal(it.runtime.pendingTimers(), 0, "no timer is left");
}

test("a range beyond every declared limit is answered whole, with the fewest calls", () => {
  const it = rangeFixture({
    seed: 1,
    nodes: 3,
    view: TRUTH,
    density: sparse,
    declared: 500,
    limits: { blocks: 500, results: null },
  });
  it.finalize(HEAD);
  const call = it.ask({ fromBlock: "0x0", toBlock: hex(9_999), address: `0x${"a".repeat(40)}` });
  settle(it);
  assert.equal(call.state(), "whole");
  assert.equal(call.text(), oracle(0, 9_999, TRUTH, sparse));
  const asked = it.nodes.flatMap((node) => node.asked);
  assert.equal(asked.length, 20);
  assert.ok(
    it.nodes.every((node) => node.asked.length > 0),
    "several providers took part",
  );
  const [answer] = call.answers;
  assert.ok(answer?.source.kind === "merged" && answer.source.providers.length === 3);
  assert.equal(call.route.traces.length, 20, "every attempt is evidence");
  assertIdle(it);
});

test("limits that nobody declared are found, kept, and not run into again", () => {
  const limits = { blocks: 1_000, results: null };
  const it = rangeFixture({ seed: 2, nodes: 3, view: TRUTH, density: sparse, limits });
  it.finalize(HEAD);
  const first = it.ask({ fromBlock: hex(1), toBlock: hex(10_000) });
  settle(it);
  assert.equal(first.text(), oracle(1, 10_000, TRUTH, sparse));
  const sent = () => it.nodes.reduce((sum, node) => sum + node.asked.length, 0);
  assert.ok(sent() <= 10 + it.nodes.length, `${sent()} calls`);
  const before = sent();
  const second = it.ask({ fromBlock: hex(1), toBlock: hex(10_000) });
  settle(it);
  assert.equal(second.text(), first.text());
  assert.equal(sent() - before, 10);
  assertIdle(it);
});

test("traces of a long range are asked for in parts once a provider names its limit", () => {
  const limits = { blocks: 1_000, results: null };
  const it = rangeFixture({ seed: 2, nodes: 2, view: TRUTH, density: sparse, limits });
  it.finalize(HEAD);
  const filter = { fromBlock: hex(1), toBlock: hex(4_000) };
  const call = it.ask(filter, { method: "trace_filter" });
  settle(it);
  assert.equal(call.text(), oracle(1, 4_000, TRUTH, sparse));
  assert.equal(call.answers[0]?.source.kind, "merged");
  const page = it.ask({ ...filter, after: 5, count: 10 }, { method: "trace_filter" });
  settle(it);
  assert.equal(page.state(), "refused", "a page of the whole range cannot be cut");
  assertIdle(it);
});

test("a part with too many results is cut until it is accepted, to one block if need be", () => {
  const dense: Density = (block) => (block >= 3_000 && block < 3_010 ? 80 : sparse(block));
  const it = rangeFixture({
    seed: 3,
    nodes: 2,
    view: TRUTH,
    density: dense,
    declared: 1_000,
    limits: { blocks: 1_001, results: 100 },
    split: { maxParts: 40 },
  });
  it.finalize(HEAD);
  const call = it.ask({ fromBlock: "0x0", toBlock: hex(4_999) });
  settle(it);
  assert.equal(call.text(), oracle(0, 4_999, TRUTH, dense));
  assertIdle(it);

  const tooDense: Density = (block) => (block === 3_000 ? 101 : sparse(block));
  const other = rangeFixture({
    seed: 3,
    nodes: 2,
    view: TRUTH,
    density: tooDense,
    declared: 1_000,
    limits: { blocks: 1_001, results: 100 },
  });
  other.finalize(HEAD);
  const refused = other.ask({ fromBlock: "0x0", toBlock: hex(4_999) }, { mayStream: false });
  settle(other);
  assert.equal(refused.state(), "refused");
  const outcome = refused.answers[0]?.outcome;
  assert.ok(outcome?.kind === "fault" && outcome.fault.code === "log_range_limit");
  assert.deepEqual(outcome.fault.details["provider_error"], {
    code: -32005,
    message: "query returned more than 100 results",
  });
  assertIdle(other);
});

test("beyond its bounds a call is asked as it is and refused with the range that is served", () => {
  const it = rangeFixture({
    seed: 4,
    nodes: 2,
    view: TRUTH,
    density: sparse,
    declared: 100,
    limits: { blocks: 101, results: null },
  });
  it.finalize(HEAD);
  const call = it.ask({ fromBlock: "0x0", toBlock: hex(2_000) }, { maxParts: 20 });
  settle(it);
  const outcome = call.answers[0]?.outcome;
  assert.ok(outcome?.kind === "fault" && outcome.fault.code === "log_range_limit");
  assert.equal(outcome.fault.details["max_blocks"], 2_000);
  assert.equal(it.counts.parts, 0);
  const served = it.ask({ fromBlock: hex(1), toBlock: hex(2_000) }, { maxParts: 20 });
  settle(it);
  assert.equal(served.text(), oracle(1, 2_000, TRUTH, sparse));
  assertIdle(it);
});

/** Calls to nodes since the start. */
function sentTo({ nodes }: RangeFixture): number {
  return nodes.reduce((sum, node) => sum + node.asked.length, 0);
}

test("a range with far too many results is refused by a few calls, the same one again by none", () => {
  const everywhere: Density = () => 60;
  for (const results of [100, 30]) {
    const limits = { blocks: null, results };
    const it = rangeFixture({ seed: 5, nodes: 3, view: TRUTH, density: everywhere, limits });
    it.finalize(HEAD);
    const filter = { fromBlock: "0x0", toBlock: hex(9_999), address: `0x${"a".repeat(40)}` };
    const told: unknown[] = [];
    const refuse = (): number => {
      const before = sentTo(it);
      const call = it.ask(filter, { maxParts: 20 });
      it.runtime.advance(5_000);
      const outcome = call.answers[0]?.outcome;
      assert.ok(outcome?.kind === "fault" && outcome.fault.code === "log_range_limit");
      told.push(outcome.fault.details["max_blocks"]);
      return sentTo(it) - before;
    };
    assert.ok(refuse() <= 2 * 20 + 8);
    for (let n = 0; n < 5; n++) assert.equal(refuse(), 0, "it is known for a minute");
    it.runtime.advance(60_000);
    assert.notEqual(refuse(), 0);
    assert.ok(told.every((blocks) => typeof blocks === "number" && blocks >= 1));
    settle(it);
    assertIdle(it);
  }
});

test("answers and refusals of one call are in proportion to its parts", () => {
  // One block in a hundred has as many results as are allowed, so that size after size is refused.
  const uneven: Density = (block) => (block % 97 === 0 ? 90 : 1);
  const limits = { blocks: null, results: 100 };
  const it = rangeFixture({ seed: 6, nodes: 2, view: TRUTH, density: uneven, limits });
  it.finalize(HEAD);
  for (const maxParts of [5, 20, 200]) {
    const before = sentTo(it);
    it.ask({ fromBlock: "0x0", toBlock: hex(3_000), topics: [maxParts] }, { maxParts });
    settle(it);
    assert.ok(sentTo(it) - before <= 2 * maxParts + 8, `${sentTo(it) - before} calls`);
    assertIdle(it);
  }
});

test("a limit of a few blocks that nobody tells is found by halving, down to one block", () => {
  for (const blocks of [40, 3, 1]) {
    const limits = { blocks, results: null, isSilent: true };
    const it = rangeFixture({ seed: 7, nodes: 2, view: TRUTH, density: sparse, limits });
    it.finalize(HEAD);
    const range = { fromBlock: hex(100), toBlock: hex(100 + 10 * blocks - 1) };
    const call = it.ask(range, { maxParts: 40 });
    settle(it);
    assert.equal(call.state(), "whole", `${blocks}`);
    assert.equal(call.text(), oracle(100, 100 + 10 * blocks - 1, TRUTH, sparse));
    assertIdle(it);
  }
  const limits = { blocks: 0, results: null, isSilent: true };
  const it = rangeFixture({ seed: 7, nodes: 2, view: TRUTH, density: sparse, limits });
  it.finalize(HEAD);
  for (const last of [100, 109]) {
    const call = it.ask({ fromBlock: hex(100), toBlock: hex(last) });
    settle(it);
    const outcome = call.answers[0]?.outcome;
    assert.ok(outcome?.kind === "fault");
    assert.deepEqual([outcome.fault.code, outcome.fault.retryable], ["log_range_limit", false]);
  }
  assertIdle(it);
});

test("the end of a range is that of its caller, whoever lags: those who have it tell it", () => {
  for (let seed = 1; seed <= 30; seed++) {
    const behind: ChainView = { head: HEAD - 5, forks: [] };
    const it = rangeFixture({ seed, nodes: 3, view: behind, density: () => 1, declared: 100 });
    const [first, ...others] = it.nodes;
    assert.ok(first);
    first.view = TRUTH;
    it.tracker.recordHead(first.provider, HEAD);
    it.finalize(HEAD - 3_000);
    const call = it.ask({ fromBlock: hex(HEAD - 400), toBlock: hex(HEAD) });
    settle(it);
    assert.equal(call.state(), "whole", `seed ${seed}`);
    assert.equal(
      call.text(),
      oracle(HEAD - 400, HEAD, TRUTH, () => 1),
      `seed ${seed}`,
    );
    assert.ok(others.length > 0);
    assertIdle(it);
  }
});

test("switched off, pinned, or in range, a call is asked whole", () => {
  const fixture = (split: boolean) =>
    rangeFixture({
      seed: 5,
      nodes: 2,
      view: TRUTH,
      density: sparse,
      declared: 100,
      limits: { blocks: 101, results: null },
      split: { split },
    });
  const off = fixture(false);
  const refused = off.ask({ fromBlock: "0x0", toBlock: hex(2_000) });
  settle(off);
  const outcome = refused.answers[0]?.outcome;
  assert.ok(outcome?.kind === "fault" && outcome.fault.code === "log_range_limit");
  assert.deepEqual(Object.keys(outcome.fault.details), ["provider_error"]);

  const on = fixture(true);
  const [node] = on.nodes;
  assert.ok(node !== undefined);
  const pinned = on.ask({ fromBlock: "0x0", toBlock: hex(2_000) }, { pin: node.provider });
  settle(on);
  assert.equal(pinned.state(), "refused");
  const inRange = on.ask({ fromBlock: "0x0", toBlock: hex(100) });
  settle(on);
  assert.equal(inRange.answers[0]?.source.kind, "provider");
  assert.equal(on.counts.parts, 0);
});

test("a short answer is whole, a long one streams, and a slow reader holds the parts back", () => {
  const busy: Density = () => 3;
  const options = {
    seed: 6,
    nodes: 3,
    view: TRUTH,
    density: busy,
    declared: 100,
    limits: { blocks: 101, results: null },
  };
  const it = rangeFixture(options);
  it.finalize(HEAD);
  const quiet = rangeFixture({ ...options, density: sparse });
  quiet.finalize(HEAD);
  const short = quiet.ask({ fromBlock: "0x0", toBlock: hex(200) });
  settle(quiet);
  assert.deepEqual([short.answers[0]?.outcome.kind, short.state()], ["result", "whole"]);
  let held = 0;
  let most = 0;
  const room = {
    take(bytes: number) {
      held += bytes;
      most = Math.max(most, held);
      return true;
    },
    giveBack(bytes: number) {
      held -= bytes;
    },
  };
  const long = it.ask({ fromBlock: "0x0", toBlock: hex(9_999) }, { pauses: true, room });
  settle(it);
  assert.equal(long.answers[0]?.outcome.kind, "stream");
  assert.equal(long.text(), oracle(0, 9_999, TRUTH, busy));
  assert.equal(held, 0, "all room was given back");
  assert.ok(most > 0 && most < 12_000_000, `${most} bytes were held`);
  const gathered = it.ask({ fromBlock: "0x0", toBlock: hex(9_999) }, { mayStream: false, room });
  settle(it);
  assert.equal(gathered.answers[0]?.outcome.kind, "result");
  assert.equal(gathered.text(), long.text());
  assert.equal(held, 0);
  assertIdle(it);

  const bounded = rangeFixture({ ...options, split: { maxBytes: 500_000 } });
  bounded.finalize(HEAD);
  const refused = bounded.ask(
    { fromBlock: "0x0", toBlock: hex(9_999) },
    { mayStream: false, room },
  );
  settle(bounded);
  const outcome = refused.answers[0]?.outcome;
  assert.ok(outcome?.kind === "fault" && outcome.fault.code === "log_range_limit");
  const full = { take: () => false, giveBack: () => {} };
  const noRoom = it.ask({ fromBlock: "0x0", toBlock: hex(9_999) }, { room: full });
  settle(it);
  const why = noRoom.answers[0]?.outcome;
  assert.ok(why?.kind === "fault" && why.fault.details["reason"] === "no_room");
  assert.equal(held, 0);
  assertIdle(it);
});

test("what fails after the first byte breaks the answer off; before it, it is refused", () => {
  const busy: Density = () => 3;
  const it = rangeFixture({
    seed: 7,
    nodes: 2,
    view: TRUTH,
    density: busy,
    declared: 100,
    limits: { blocks: 101, results: null },
  });
  it.finalize(HEAD);
  const call = it.ask({ fromBlock: "0x0", toBlock: hex(9_999) });
  while (call.answers.length === 0) it.runtime.advance(1);
  assert.equal(call.answers[0]?.outcome.kind, "stream");
  for (const node of it.nodes) node.isSilent = true;
  settle(it);
  assert.equal(call.state(), "broken");
  assert.equal(it.counts.cut, 1);
  assertIdle(it);

  const silent = it.ask({ fromBlock: "0x0", toBlock: hex(9_999) });
  it.runtime.advance(10_100);
  assert.equal(silent.state(), "refused", "silence ends by the deadline of the call");
  settle(it);
  assertIdle(it);
});

test("a caller who leaves ends all parts, before the first byte and after it", () => {
  const busy: Density = () => 3;
  const it = rangeFixture({
    seed: 8,
    nodes: 2,
    view: TRUTH,
    density: busy,
    declared: 100,
    limits: { blocks: 101, results: null },
  });
  it.finalize(HEAD);
  const early = it.ask({ fromBlock: "0x0", toBlock: hex(9_999) });
  assert.deepEqual(early.route.cancel(), { sent: true, countedAsTimeout: false });
  assert.equal(it.out(), 0);
  const late = it.ask({ fromBlock: "0x0", toBlock: hex(9_999) });
  while (late.stream() === null) it.runtime.advance(1);
  late.stream()?.cut();
  assert.equal(it.out(), 0);
  const before = late.text();
  settle(it);
  assertIdle(it);
  assert.equal(late.text(), before);
  assert.equal(early.answers.length, 0);
});

test("a part whose last block came after its logs were read is read again", () => {
  for (let catchesUpMs = 22; catchesUpMs <= 50; catchesUpMs += 2) {
    const behind: ChainView = { head: HEAD - 5, forks: [] };
    const it = rangeFixture({ seed: 8, nodes: 2, view: behind, density: () => 1, declared: 10 });
    it.finalize(HEAD - 3_000);
    const [first, second] = it.nodes;
    assert.ok(first && second);
    for (const node of it.nodes) node.latencyMs = () => 10;
    first.view = TRUTH;
    first.limits = { blocks: 1, results: null };
    it.tracker.recordHead(first.provider, HEAD);
    const call = it.ask({ fromBlock: hex(HEAD - 15), toBlock: hex(HEAD) });
    // The one that told the end refuses the parts; the other one has it after its logs were read.
    it.runtime.after(catchesUpMs, () => {
      second.view = TRUTH;
    });
    settle(it);
    assert.equal(call.state(), "whole");
    assert.equal(
      call.text(),
      oracle(HEAD - 15, HEAD, TRUTH, () => 1),
      `caught up after ${catchesUpMs} ms`,
    );
    assertIdle(it);
  }
});

test("a part whose logs are of a branch that its provider then left is read again", () => {
  for (let movesMs = 22; movesMs <= 50; movesMs += 2) {
    const it = rangeFixture({ seed: 8, nodes: 2, view: TRUTH, density: () => 1, declared: 10 });
    it.finalize(HEAD - 3_000);
    // There was no log in the last blocks of that branch, so that nothing names it.
    for (const node of it.nodes) {
      node.latencyMs = () => 10;
      node.lies = { head: HEAD - 4, forks: [] };
    }
    const call = it.ask({ fromBlock: hex(HEAD - 15), toBlock: hex(HEAD) });
    it.runtime.after(movesMs, () => {
      for (const node of it.nodes) node.lies = null;
    });
    settle(it);
    const told = oracle(HEAD - 15, HEAD, TRUTH, () => 1);
    // Later the left branch is what the provider has said twice.
    if (movesMs < 30) assert.equal(call.text(), told, `moved after ${movesMs} ms`);
    assertIdle(it);
  }
});

test("where heads are pushed, a young part costs its logs and a look at its last block", () => {
  const it = rangeFixture({ seed: 8, nodes: 2, view: TRUTH, density: () => 1, declared: 10 });
  it.finalize(HEAD - 3_000);
  for (const { provider } of it.nodes)
    for (let number = HEAD - 200; number <= HEAD; number++)
      it.tracker.recordHead(provider, number, {
        number,
        hash: hashOf(number, TRUTH),
        parentHash: hashOf(number - 1, TRUTH),
      });
  const call = it.ask({ fromBlock: hex(HEAD - 100), toBlock: hex(HEAD) });
  settle(it);
  assert.equal(
    call.text(),
    oracle(HEAD - 100, HEAD, TRUTH, () => 1),
  );
  assert.ok(sentTo(it) <= 1 + 2 * 11, `${sentTo(it)} calls for 11 parts`);
  assertIdle(it);
});

test("an end that is not final is pinned: `latest`, a number above the head, and no head at all", () => {
  const it = rangeFixture({
    seed: 9,
    nodes: 3,
    view: TRUTH,
    density: sparse,
    declared: 500,
    limits: { blocks: 501, results: null },
  });
  it.finalize(HEAD - 40);
  for (const toBlock of ["latest", hex(HEAD + 5_000), undefined]) {
    const call = it.ask({ fromBlock: hex(HEAD - 5_000), toBlock });
    settle(it);
    assert.equal(call.text(), oracle(HEAD - 5_000, HEAD, TRUTH, sparse));
  }
  for (const node of it.nodes) node.failShare = 1;
  const call = it.ask({ fromBlock: hex(HEAD - 5_000), toBlock: "latest" });
  settle(it);
  assert.equal(call.state(), "refused");
  assertIdle(it);
});

test("without finality, logs far below the end are told only as two providers have them", () => {
  const deep: ChainView = { head: HEAD, forks: [{ from: HEAD - 3_000, id: 1 }] };
  for (const [nodes, seed] of [
    [2, 21],
    [3, 22],
    [3, 23],
    [4, 24],
  ] as const) {
    const it = rangeFixture({
      seed,
      nodes,
      view: TRUTH,
      density: sparse,
      declared: 500,
      limits: { blocks: 501, results: null },
    });
    // Its headers are those of the chain: only what it says of the logs is of another one.
    const [liar] = it.nodes;
    assert.ok(liar !== undefined);
    liar.lies = deep;
    const call = it.ask({ fromBlock: hex(HEAD - 4_000), toBlock: "latest" });
    settle(it);
    // Of two, nobody can say which one is right.
    assert.equal(call.state(), nodes === 2 ? "refused" : "whole", `${nodes} nodes, seed ${seed}`);
    if (nodes > 2) {
      assert.equal(call.text(), oracle(HEAD - 4_000, HEAD, TRUTH, sparse));
      assert.ok(it.counts.foreign > 0);
    }
    assertIdle(it);
  }
});

test("without finality, a part that two providers give differently is told by neither", () => {
  const end = HEAD - 400;
  // Only blocks too deep to be linked differ, all in one part.
  const lies: ChainView = {
    head: HEAD,
    forks: [
      { from: HEAD - 800, id: 1 },
      { from: HEAD - 700, id: 0 },
    ],
  };
  for (let seed = 1; seed <= 12; seed++) {
    const it = rangeFixture({
      seed,
      nodes: 2,
      view: TRUTH,
      density: sparse,
      declared: 500,
      limits: { blocks: 501, results: null },
    });
    const [liar] = it.nodes;
    assert.ok(liar !== undefined);
    liar.lies = lies;
    const call = it.ask({ fromBlock: hex(HEAD - 1_000), toBlock: hex(end) });
    settle(it);
    assert.equal(call.state(), "refused", `seed ${seed}`);
    assertIdle(it);
  }
});

test("without finality, one provider alone is believed about logs far below the end if it stays with them", () => {
  const it = rangeFixture({
    seed: 25,
    nodes: 1,
    view: TRUTH,
    density: sparse,
    declared: 500,
    limits: { blocks: 501, results: null },
  });
  const call = it.ask({ fromBlock: hex(HEAD - 4_000), toBlock: "latest" });
  settle(it);
  assert.equal(call.text(), oracle(HEAD - 4_000, HEAD, TRUTH, sparse));
  assertIdle(it);
});

/** Nodes whose blocks below the linked headers are not final. */
function deepFixture(seed: number, nodes: number, density = sparse): RangeFixture {
  const limits = { blocks: 501, results: null };
  return rangeFixture({ seed, nodes, view: TRUTH, density, declared: 500, limits });
}

for (const [what, density] of [
  ["a list of logs", sparse],
  ["the lack of logs", () => 0],
] as const)
  test(`without finality, ${what} is not believed that a second provider fails to contradict for a moment`, () => {
    for (let seed = 1; seed <= 12; seed++) {
      const it = deepFixture(seed, 2, density);
      const [liar, other] = it.nodes;
      assert.ok(liar !== undefined && other !== undefined);
      liar.lies = { head: HEAD, forks: [{ from: HEAD - 3_000, id: 1 }] };
      other.failShare = 1;
      const call = it.ask({ fromBlock: hex(HEAD - 4_000), toBlock: "latest" });
      settle(it);
      const outcome = call.answers[0]?.outcome;
      assert.ok(outcome?.kind === "fault", `seed ${seed}: ${call.state()}`);
      assert.equal(outcome.fault.details["reason"], "unconfirmed", `seed ${seed}`);
      assertIdle(it);
    }
  });

test("without finality, a part is told once the second provider has come back", () => {
  let again = 0;
  for (let seed = 1; seed <= 12; seed++) {
    const it = deepFixture(seed, 2);
    const [, other] = it.nodes;
    assert.ok(other !== undefined);
    // Fewer failures than open its circuit.
    const logQueries = () => other.asked.filter(({ method }) => method === "eth_getLogs").length;
    Object.defineProperty(other, "failShare", {
      get: () => (other.asked.at(-1)?.method === "eth_getLogs" && logQueries() <= 3 ? 1 : 0),
    });
    const call = it.ask({ fromBlock: hex(HEAD - 1_500), toBlock: hex(HEAD - 600) });
    settle(it);
    assert.equal(call.text(), oracle(HEAD - 1_500, HEAD - 600, TRUTH, sparse), `seed ${seed}`);
    again += it.counts.again;
    assertIdle(it);
  }
  assert.ok(again > 0);
});

test("without finality, providers that cannot give a part leave one alone with it", () => {
  const it = deepFixture(26, 3);
  const [, shorter, shortest] = it.nodes;
  assert.ok(shorter !== undefined && shortest !== undefined);
  shorter.limits = { blocks: 100, results: null };
  shortest.limits = { blocks: 50, results: null };
  const call = it.ask({ fromBlock: hex(HEAD - 4_000), toBlock: hex(HEAD - 600) });
  settle(it);
  assert.equal(call.text(), oracle(HEAD - 4_000, HEAD - 600, TRUTH, sparse));
  assertIdle(it);
});

const FIXED_SEEDS = 40;

test("by chance, on known days: most calls are answered whole", () => {
  // A failure in one of them names its seed.
  const states = Array.from({ length: FIXED_SEEDS }, (_, at) => chanceDay(at + 1));
  const whole = states.filter((state) => state === "whole").length;
  assert.ok(whole >= 0.75 * FIXED_SEEDS, `${whole} of ${FIXED_SEEDS}`);
});

for (const seed of chanceSeeds(40)) {
  test(`by chance: complete and of one fork, or refused (seed ${seed})`, () => {
    chanceDay(seed);
  });
}

/** One call on a day on which everything may be wrong. Returns how it ended. */
function chanceDay(seed: number): string {
  const random = seededRandom(seed);
  const pick = (most: number): number => Math.floor(random() * most);
  const depth = 1 + pick(30);
  const fork: ChainView = { head: HEAD + pick(3), forks: [{ from: HEAD - depth, id: 1 }] };
  const density: Density = (block) => (block % 5 === 0 ? 2 : 0);
  const count = 2 + pick(3);
  const it = rangeFixture({
    seed,
    nodes: count,
    view: TRUTH,
    density,
    declared: random() < 0.5 ? 400 : null,
    limits: { blocks: 400, results: random() < 0.5 ? 100 : null },
  });
  if (random() < 0.9) it.finalize(HEAD - 64);
  for (const node of it.nodes.slice(1)) {
    const mood = random();
    if (mood < 0.2) node.view = fork;
    else if (mood < 0.4) node.lies = fork;
    else if (mood < 0.5) node.isSilent = true;
    else if (mood < 0.7) node.failShare = 0.3;
    else if (mood < 0.8) node.limits = { blocks: 50, results: null };
  }
  const from = HEAD - 500 - pick(4_000);
  const mayStream = random() < 0.5;
  const call = it.ask({ fromBlock: hex(from), toBlock: "latest" }, { mayStream });
  if (random() < 0.5)
    it.runtime.after(pick(600), () => {
      for (const node of it.nodes) node.view = fork;
    });
  const leaves = random() < 0.1;
  if (leaves) it.runtime.after(pick(400), () => void call.route.cancel());
  settle(it);
  const state = call.state();
  if (state === "whole") {
    const possible = [TRUTH, fork].map((view) => oracle(from, view.head, view, density));
    assert.ok(possible.includes(call.text()), `seed ${seed}: it is the whole of one fork`);
  } else if (!leaves) assert.notEqual(state, "out", `seed ${seed}`);
  assertIdle(it);
  return state;
}

test("one part is sent to three providers at a time, however many there are", () => {
  const declared = { declared: 500, limits: { blocks: 500, results: null } };
  const it = rangeFixture({ seed: 9, nodes: 8, view: TRUTH, density: sparse, ...declared });
  it.finalize(HEAD);
  for (const node of it.nodes) node.failShare = 1;
  it.ask({ fromBlock: "0x0", toBlock: hex(999), address: `0x${"a".repeat(40)}` });
  it.runtime.advance(90);
  const asked = it.nodes.flatMap((node) => node.asked);
  const first = asked.filter(({ params }) => JSON.stringify(params).includes('"0x0"'));
  assert.equal(first.length, 3, JSON.stringify(asked));
});
