// What every stage of the engine keeps to, run against each layer and the whole stack: done once,
// or never after its cancel; a cancel stops everything below; the end comes by the deadline; the
// evidence is complete; no borrowed buffer is kept, and each goes back once.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readBlockRef } from "../../src/core/rpc/call.ts";
import { plainFailure } from "../../src/core/rpc/failure.ts";
import { methodOf } from "../../src/core/rpc/method.ts";
import { writeRequest } from "../../src/core/rpc/wire-request.ts";
import type { Answer } from "../../src/upstream/engine/answer.ts";
import { CachedAnswers } from "../../src/upstream/engine/cache/cached-answers.ts";
import { SplitCounts } from "../../src/upstream/engine/ranges/range-run.ts";
import { type RoutedCall, Router } from "../../src/upstream/engine/router.ts";
import { Tracker } from "../../src/upstream/health/tracker.ts";
import { TimerWheel } from "../../src/upstream/timer-wheel.ts";
import type { AnswerListener } from "../../src/upstream/transport.ts";
import { fakeProvider, fakeSet, SELECTION } from "../fakes/providers.ts";
import { seededRandom, simulatedWorld } from "../fakes/runtime.ts";
import { seedsTo } from "../fakes/seed.ts";

interface Sent {
  readonly listener: AnswerListener;
  cancelled: boolean;
  over: boolean;
}

interface Asked {
  readonly route: RoutedCall;
  readonly answers: Answer[];
}

const DEADLINE_MS = 1_000;
const RAW =
  "0x02f86a01808085028fa6ae0082520894000000000000000000000000000000000000000080c080a0aa01a0bb";

/** Hedges may be many here: the rules of the stage are tested, not the budget. */
const HEDGE = { maxExtra: 1, floorMs: 20, ceilingMs: 100 };

/** A stack under test: which calls pass which layers. */
interface StackUnderTest {
  readonly name: string;
  readonly method: string;
  readonly coalesce: boolean;
  readonly hedge: typeof HEDGE | null;
  readonly params: string;
  /** What a provider answers; absent = `"0x1"`. */
  readonly answer?: string;
  /** Answers are kept, and block 90 is final. */
  readonly cache?: true;
  /** Calls are answered at a view. */
  readonly view?: true;
}

const STACKS: readonly StackUnderTest[] = [
  { name: "failover", method: "eth_gasPrice", coalesce: false, hedge: null, params: "[]" },
  {
    name: "transactions",
    method: "eth_sendRawTransaction",
    coalesce: false,
    hedge: null,
    params: `["${RAW}"]`,
  },
  {
    name: "ownTransactions",
    method: "eth_sendRawTransaction",
    coalesce: false,
    hedge: null,
    params: `["${RAW}"]`,
    view: true,
  },
  { name: "coalesce", method: "eth_gasPrice", coalesce: true, hedge: null, params: "[]" },
  { name: "hedge", method: "eth_gasPrice", coalesce: false, hedge: HEDGE, params: "[]" },
  {
    name: "recheck",
    method: "eth_getTransactionReceipt",
    coalesce: false,
    hedge: HEDGE,
    params: '["0xaa"]',
    answer: "{}",
  },
  {
    name: "splitRange",
    method: "eth_getLogs",
    coalesce: false,
    hedge: null,
    params: '[{"fromBlock":"0x1","toBlock":"0x9"}]',
    answer: "[]",
  },
  {
    name: "cache",
    method: "eth_getBalance",
    coalesce: false,
    hedge: null,
    params: `["0x${"ab".repeat(20)}","0x50"]`,
    cache: true,
  },
];

/** The row of this name. */
const stackOf = (name: string): StackUnderTest =>
  STACKS.find((stack) => stack.name === name) ?? assert.fail(name);

const CACHE = {
  maxBytes: 1_048_576,
  accountMaxBytes: 0,
  byAccount: false,
  methods: new Map<string, number>(),
};

function bench({ method, coalesce, hedge, params, cache, view }: StackUnderTest) {
  const runtime = simulatedWorld(5);
  const providers = [fakeProvider(0, { priority: 0 }), fakeProvider(1, { priority: 1 })];
  const tracker = new Tracker(fakeSet(providers), runtime, SELECTION);
  if (cache === true) {
    for (const provider of providers) {
      tracker.recordHead(provider, 100);
      tracker.recordNamed(provider, "finalized", 90);
    }
  }
  const sent: Sent[] = [];
  const router = new Router({
    runtime,
    timerWheel: new TimerWheel(runtime),
    coalesce: () => coalesce,
    limits: () => ({ maxAttempts: 3, firstAttemptShare: 0.6 }),
    hedge: () => hedge,
    cache: cache === true ? new CachedAnswers(() => CACHE) : undefined,
    split: {
      splitLimits: () => ({ split: true, maxBlocks: 1_000, maxParts: 10, maxBytes: 100_000 }),
      counts: new SplitCounts(),
    },
    upstreams: {
      http: {
        send(_, listener) {
          const one: Sent = { listener, cancelled: false, over: false };
          sent.push(one);
          return {
            sent: true,
            cancel() {
              one.cancelled = true;
            },
          };
        },
      },
    },
  });
  const ask = (): Asked => {
    const row = methodOf(method);
    const bytes = Buffer.from(params);
    const block = readBlockRef(bytes, { start: 0, end: bytes.length }, row);
    const call = { methodName: method, method: row, block };
    const answers: Answer[] = [];
    const route = router.route(
      {
        call: { ...call, ...writeRequest(method, bytes) },
        tracker,
        strategy: "priority",
        pin: null,
        transport: "http",
        avoid: null,
        caller: { key: "test" },
        deadlineMs: DEADLINE_MS,
        mayStream: true,
        view: view === true ? null : undefined,
      },
      (answer) => void answers.push(answer),
    );
    return { route, answers };
  };
  const open = (): readonly Sent[] => sent.filter((one) => !one.cancelled && !one.over);
  /** Answers from borrowed memory. Returns how often that went back. */
  const answer = (one: Sent, json: string): { recycled: number; readonly body: Buffer } => {
    one.over = true;
    const lent = { recycled: 0, body: Buffer.from(json) };
    const back = (): void => void lent.recycled++;
    const lender = { headroomBytes: 0, reuse: back, recycle: back };
    one.listener.result(lent.body, { start: 0, end: lent.body.length, idAt: null }, lender);
    return lent;
  };
  return { runtime, sent, ask, open, answer };
}

for (const stack of STACKS) {
  test(`${stack.name}: an answer is told once, with its source and all attempts`, () => {
    const it = bench(stack);
    const { route, answers } = it.ask();
    const [first] = it.open();
    assert.ok(first !== undefined);
    const lent = it.answer(first, stack.answer ?? '"0x1"');
    it.answer(first, '"0x2"');
    first.listener.failed(plainFailure("network", "late"), null);
    it.runtime.advance(2 * DEADLINE_MS);
    assert.deepEqual(
      answers.map(({ outcome, source }) => [outcome.kind, source.kind]),
      [["result", "provider"]],
    );
    assert.equal(route.traces.length, 1);
    assert.equal(lent.recycled, 0, "the one who was told gives it back");
    assert.deepEqual(route.cancel(), { sent: false, countedAsTimeout: false });
  });

  test(`${stack.name}: a cancel stops everything below and nothing is told after it`, () => {
    const it = bench(stack);
    const { route, answers } = it.ask();
    assert.equal(route.cancel().sent, true);
    assert.deepEqual(it.open(), []);
    const [first] = it.sent;
    assert.ok(first !== undefined);
    assert.equal(it.answer(first, '"0x1"').recycled, 1, "nobody reads it: it goes back");
    it.runtime.advance(2 * DEADLINE_MS);
    assert.deepEqual(answers, []);
    assert.deepEqual(route.cancel(), { sent: false, countedAsTimeout: false });
    assert.equal(route.traces.length, it.sent.length);
  });

  test(`${stack.name}: silence ends by the deadline, and every attempt is evidence`, () => {
    const it = bench(stack);
    const { route, answers } = it.ask();
    it.runtime.advance(DEADLINE_MS + 50);
    assert.deepEqual(
      answers.map(({ outcome, source }) => [outcome.kind, source.kind]),
      [["fault", "none"]],
    );
    assert.deepEqual(it.open(), []);
    assert.equal(route.traces.length, it.sent.length);
  });
}

const SHARING = stackOf("coalesce");

test("coalesce: equal reads make one call, and those who joined have memory of their own", () => {
  const it = bench(SHARING);
  const asked = [it.ask(), it.ask(), it.ask()];
  assert.equal(it.sent.length, 1);
  const [first] = it.sent;
  assert.ok(first !== undefined);
  const lent = it.answer(first, '"0x1"');
  lent.body.fill(0);
  assert.deepEqual(
    asked.map(({ answers }) => answers.map(({ source }) => source.kind)),
    [["provider"], ["shared"], ["shared"]],
  );
  for (const { answers } of asked.slice(1)) {
    const outcome = answers[0]?.outcome;
    assert.ok(outcome?.kind === "result" && outcome.pool === undefined);
    assert.equal(outcome.body.toString("latin1", outcome.start, outcome.end), '"0x1"');
  }
});

test("coalesce: when the first one leaves, the next takes its call over", () => {
  const it = bench(SHARING);
  const [first, second, third] = [it.ask(), it.ask(), it.ask()];
  const nothing = { sent: false, countedAsTimeout: false };
  assert.deepEqual(first.route.cancel(), nothing, "its call goes on for others");
  assert.deepEqual(second.route.cancel(), nothing);
  const [only, ...more] = it.open();
  assert.ok(only !== undefined && it.sent.length === 1 && more.length === 0);
  it.answer(only, '"0x1"');
  assert.deepEqual(
    [first, second, third].map(({ answers }) => answers.map(({ source }) => source.kind)),
    [[], [], ["provider"]],
  );
  assert.equal(
    third.route.traces.length,
    1,
    "the attempt is evidence of the one that has the call",
  );
  assert.equal(first.route.traces.length, 0);

  const last = it.ask();
  assert.equal(last.route.cancel().sent, true, "the last to leave ends the call");
  assert.deepEqual(it.open(), []);
});

test("coalesce: one who joined goes on alone when the call fails, or takes too much of its time", () => {
  const failed = bench(SHARING);
  const asked = [failed.ask(), failed.ask(), failed.ask()];
  for (let attempt = 0; attempt < 2; attempt++) {
    const [out] = failed.open();
    assert.ok(out !== undefined);
    out.over = true;
    out.listener.failed(plainFailure("network", "reset"), null);
  }
  assert.deepEqual(
    asked.map(({ answers }) => answers.map(({ outcome }) => outcome.kind)),
    [["fault"], [], []],
    "the failure is that of the one that owned the call",
  );
  assert.equal(failed.open().length, 2, "each of the others asks by itself, once");
  for (const out of failed.open()) failed.answer(out, '"0x1"');
  assert.deepEqual(
    asked.slice(1).map(({ answers }) => answers.map(({ source }) => source.kind)),
    [["provider"], ["provider"]],
  );

  const slow = bench(SHARING);
  slow.ask();
  const waiter = slow.ask();
  slow.runtime.advance(DEADLINE_MS + 50);
  assert.equal(waiter.answers.length, 1, "it ends by its own deadline");
  assert.ok(waiter.route.traces.length > 0, "and has asked by itself");
});

test("coalesce: one who joined and left is told nothing, and a call that is too old is not joined", () => {
  const it = bench(SHARING);
  const leader = it.ask();
  const joined = it.ask();
  assert.deepEqual(joined.route.cancel(), { sent: false, countedAsTimeout: false });
  it.runtime.advance(100);
  const atLast = it.ask();
  assert.equal(it.sent.length, 1, "a call of 100 ms is joined");
  it.runtime.advance(1);
  const later = it.ask();
  const withLater = it.ask();
  assert.equal(it.sent.length, 2, "an older one is not; the new one is");
  const [first, second] = it.sent;
  assert.ok(first !== undefined && second !== undefined);
  it.answer(first, '"0x1"');
  const count = () =>
    [leader, joined, atLast, later, withLater].map(({ answers }) => answers.length);
  assert.deepEqual(count(), [1, 0, 1, 0, 0]);
  const stillJoins = it.ask();
  assert.equal(it.sent.length, 2, "the end of the old one leaves the new one alone");
  it.answer(second, '"0x2"');
  assert.deepEqual([...count(), stillJoins.answers.length], [1, 0, 1, 1, 1, 1]);
});

test("coalesce: a call has so many followers, and what is too long to keep is not shared", () => {
  const it = bench(SHARING);
  const asked = Array.from({ length: 1_003 }, () => it.ask());
  assert.equal(it.sent.length, 2, "a thousand follow the first; the next begins a call of its own");
  const [first, second] = it.sent;
  assert.ok(first !== undefined && second !== undefined);
  it.answer(first, '"0x1"');
  it.answer(second, '"0x1"');
  assert.ok(asked.every(({ answers }) => answers.length === 1));

  const long = bench(SHARING);
  const [owner, follower] = [long.ask(), long.ask()];
  const [sent] = long.sent;
  assert.ok(sent !== undefined);
  long.answer(sent, `"0x${"a".repeat(70_000)}"`);
  assert.deepEqual([owner.answers.length, follower.answers.length], [1, 0]);
  assert.equal(long.open().length, 1, "it asks by itself");
});

for (const seed of seedsTo(20)) {
  test(`coalesce: by chance, each is told once unless it left, and nothing stays out (seed ${seed})`, () => {
    const it = bench(SHARING);
    const random = seededRandom(seed);
    const pick = <T>(from: readonly T[]): T | undefined => from[Math.floor(random() * from.length)];
    const asked: Asked[] = [];
    const left = new Set<Asked>();
    for (let step = 0; step < 300; step++) {
      const chance = random();
      const out = pick(it.open());
      const leaver = pick(asked);
      if (chance < 0.5) asked.push(it.ask());
      else if (chance < 0.65 && leaver !== undefined && leaver.answers.length === 0) {
        leaver.route.cancel();
        left.add(leaver);
      } else if (chance < 0.75 && out !== undefined) it.answer(out, `"0x${step.toString(16)}"`);
      else if (chance < 0.85 && out !== undefined) {
        out.over = true;
        out.listener.failed(plainFailure("network", "reset"), null);
      } else it.runtime.advance(Math.floor(random() * 60));
    }
    it.runtime.advance(2 * DEADLINE_MS);
    assert.deepEqual(it.open(), [], "nothing is out");
    for (const one of asked) assert.equal(one.answers.length, left.has(one) ? 0 : 1);
    assert.equal(it.runtime.pendingTimers(), 0, "no timer is left");
    const sentBefore = it.sent.length;
    const fresh = it.ask();
    assert.equal(fresh.answers.length + it.sent.length - sentBefore, 1, "nothing is left to join");
  });
}

test("cache: what is kept is told once, at once, with its source, and in memory of its own", () => {
  const it = bench(stackOf("cache"));
  const asker = it.ask();
  const [first] = it.open();
  assert.ok(first !== undefined);
  it.answer(first, '"0x1"').body.fill(0);
  const { route, answers } = it.ask();
  assert.equal(it.sent.length, 1);
  assert.deepEqual(route.cancel(), { sent: false, countedAsTimeout: false });
  it.runtime.advance(2 * DEADLINE_MS);
  assert.deepEqual(
    [asker, { answers }].map((one) => one.answers.map(({ source }) => source.kind)),
    [["provider"], ["cache"]],
  );
  assert.equal(route.traces.length, 0, "nobody was asked");
  const outcome = answers[0]?.outcome;
  assert.ok(outcome?.kind === "result" && outcome.pool === undefined);
  assert.equal(outcome.body.toString("latin1", outcome.start, outcome.end), '"0x1"');
  assert.equal(it.runtime.pendingTimers(), 0, "no timer is left");
});

test("cache: a failure and an answer to one who left are not kept", () => {
  const it = bench(stackOf("cache"));
  const failed = it.ask();
  for (let attempt = 0; attempt < 2; attempt++) {
    const [out] = it.open();
    assert.ok(out !== undefined);
    out.over = true;
    out.listener.failed(plainFailure("network", "reset"), null);
  }
  assert.equal(failed.answers[0]?.outcome.kind, "fault");
  const left = it.ask();
  const [out] = it.open();
  assert.ok(out !== undefined);
  left.route.cancel();
  it.answer(out, '"0x1"');
  const sentBefore = it.sent.length;
  it.ask();
  assert.equal(it.sent.length, sentBefore + 1);
});

test("cache and coalesce: a hundred equal calls at once make one call, and later ones none", () => {
  const it = bench({ ...stackOf("cache"), coalesce: true });
  const asked = Array.from({ length: 100 }, () => it.ask());
  const [first] = it.sent;
  assert.ok(first !== undefined);
  it.answer(first, '"0x1"');
  asked.push(...Array.from({ length: 100 }, () => it.ask()));
  assert.equal(it.sent.length, 1);
  const sources = asked.map(({ answers }) => answers.map(({ source }) => source.kind).join());
  const counts = Object.groupBy(sources, (source) => source);
  assert.deepEqual(
    Object.entries(counts).map(([source, list]) => [source, list?.length]),
    [
      ["provider", 1],
      ["shared", 99],
      ["cache", 100],
    ],
  );
});

const HEDGING = stackOf("hedge");

test("hedge: the first to answer has answered, the other is cancelled, and its answer goes back", () => {
  for (const winner of [0, 1]) {
    const it = bench(HEDGING);
    const { route, answers } = it.ask();
    it.runtime.advance(130);
    assert.equal(it.open().length, 2, "where nothing is known, after the ceiling");
    const [first, second] = it.sent;
    assert.ok(first !== undefined && second !== undefined);
    const [won, lost] = winner === 0 ? [first, second] : [second, first];
    it.answer(won, '"0x1"');
    assert.equal(lost.cancelled, true);
    assert.equal(it.answer(lost, '"0x2"').recycled, 1);
    it.runtime.advance(2 * DEADLINE_MS);
    assert.equal(answers.length, 1);
    assert.deepEqual(
      route.traces.map(({ attempt }) => [
        attempt.verdict?.category ?? "ok",
        attempt.hedgedAfterMs !== undefined,
      ]),
      [
        ["overtaken", winner === 0],
        ["ok", winner === 1],
      ],
    );
    assert.equal(it.runtime.pendingTimers(), 0, "no timer is left");
  }
});

test("hedge: one that fails leaves the call where it was, and one beside it that fails too ends it", () => {
  const it = bench(HEDGING);
  const { answers } = it.ask();
  it.runtime.advance(130);
  const [first, second] = it.sent;
  assert.ok(first !== undefined && second !== undefined);
  second.over = true;
  second.listener.failed(plainFailure("network", "reset"), null);
  assert.deepEqual([answers.length, it.open().length], [0, 1]);
  it.answer(first, '"0x1"');
  assert.deepEqual(
    answers.map(({ outcome }) => outcome.kind),
    ["result"],
  );

  const failing = bench(HEDGING);
  const lost = failing.ask();
  failing.runtime.advance(130);
  for (const one of failing.sent) {
    one.over = true;
    one.listener.failed(plainFailure("network", "reset"), null);
  }
  assert.deepEqual(
    lost.answers.map(({ outcome }) => outcome.kind),
    ["fault"],
  );
});

test("hedge: a caller who leaves ends both attempts", () => {
  const it = bench(HEDGING);
  const { route, answers } = it.ask();
  it.runtime.advance(130);
  assert.equal(it.open().length, 2);
  assert.equal(route.cancel().sent, true);
  assert.deepEqual(it.open(), []);
  it.runtime.advance(2 * DEADLINE_MS);
  assert.deepEqual([answers.length, it.runtime.pendingTimers()], [0, 0]);
});

test("hedge: without a budget the call waits, and says so", () => {
  const it = bench({ ...HEDGING, hedge: { ...HEDGE, maxExtra: 0.5 } });
  const { route, answers } = it.ask();
  it.runtime.advance(400);
  assert.equal(it.open().length, 1, "half a credit is not enough");
  assert.equal(route.overBudget, true);
  const [first] = it.open();
  assert.ok(first !== undefined);
  it.answer(first, '"0x1"');
  assert.equal(answers.length, 1);
  const next = it.ask();
  it.runtime.advance(130);
  assert.deepEqual([it.open().length, next.route.overBudget], [2, false]);
  next.route.cancel();
});
