// A provider that does not have a transaction, receipt or block may be behind: one with a higher
// head is asked before the caller is told, once for each call and head, within the budget.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type BlockRef, NO_BLOCK } from "../../../src/core/rpc/call.ts";
import { plainFailure } from "../../../src/core/rpc/failure.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";
import type { Answer } from "../../../src/upstream/engine/answer.ts";
import { Router } from "../../../src/upstream/engine/router.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const RECEIPT = "eth_getTransactionReceipt";

interface Asked {
  readonly provider: string;
  cancelled: boolean;
}

/** Two providers in this order; each answers with its text, or fails without one, or is silent. */
function bench(heads: readonly number[], says: (string | null | "silent")[]) {
  const runtime = simulatedWorld(7);
  const providers = heads.map((_, n) => fakeProvider(n, { priority: n, wsUrl: null }));
  const tracker = new Tracker(fakeSet(providers), runtime, SELECTION);
  const see = (n: number, height: number): void => {
    const provider = providers[n] ?? assert.fail();
    const result = { kind: "ok", chainId: 1, height } as const;
    tracker.recordProbe({ provider, transport: "http", latencyMs: 1, result });
  };
  for (const [n, height] of heads.entries()) see(n, height);
  const asked: Asked[] = [];
  let recycled = 0;
  let avoid: ReadonlySet<string> | null = null;
  let sentInAll = 0;
  const router = new Router({
    runtime,
    timerWheel: new TimerWheel(runtime),
    limits: () => ({ maxAttempts: 3, firstAttemptShare: 0.6 }),
    hedge: () => ({ maxExtra: 0.5, floorMs: 20, ceilingMs: 1_000 }),
    upstreams: {
      http: {
        send({ provider }, listener) {
          const one: Asked = { provider: provider.id, cancelled: false };
          asked.push(one);
          sentInAll++;
          const text = says[provider.index];
          runtime.after(5, () => {
            if (one.cancelled || text === "silent") return;
            if (text === null || text === undefined)
              return listener.failed(plainFailure("network", "reset"), null);
            const body = Buffer.from(text);
            const back = (): void => void recycled++;
            const lender = { headroomBytes: 0, reuse: back, recycle: back };
            listener.result(body, { start: 0, end: body.length, idAt: null }, lender);
          });
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
  const ask = (params: string, method = RECEIPT, block: BlockRef = NO_BLOCK, key = "test") => {
    const answers: string[] = [];
    const told = ({ outcome }: Answer): void => {
      if (outcome.kind !== "result") return void answers.push(outcome.kind);
      answers.push(outcome.body.toString("latin1", outcome.start, outcome.end));
      outcome.pool?.recycle(outcome.body);
    };
    const call = { methodName: method, method: methodOf(method), block };
    const route = router.route(
      {
        call: { ...call, ...writeRequest(method, Buffer.from(params)) },
        tracker,
        strategy: "priority",
        pin: null,
        transport: "http",
        avoid,
        caller: { key },
        deadlineMs: 5_000,
        mayStream: true,
      },
      told,
    );
    return { route, answers };
  };
  /** Saves so many rechecks, then forgets what was asked. */
  const save = (calls: number): void => {
    tracker.rechecks.credits = calls;
    asked.length = 0;
  };
  const push = (n: number, height: number): void =>
    tracker.recordHead(providers[n] ?? assert.fail(), height);
  const avoiding = (ids: readonly string[], run: () => void): void => {
    avoid = ids.length === 0 ? null : new Set(ids);
    run();
    avoid = null;
  };
  const avoidFirst = (run: () => void): void => avoiding(["p0"], run);
  return {
    runtime,
    asked,
    ask,
    avoiding,
    avoidFirst,
    see,
    push,
    save,
    recycled: () => recycled,
    sentInAll: () => sentInAll,
  };
}

test("null is asked again of a provider that is ahead, and its answer counts", () => {
  const it = bench([100, 101], ["null", '{"status":"0x1"}']);
  it.save(1);
  const { route, answers } = it.ask('["0xaa"]');
  it.runtime.advance(50);
  assert.deepEqual(answers, ['{"status":"0x1"}']);
  assert.deepEqual(
    route.traces.map(({ attempt }) => attempt.provider.id),
    ["p0", "p1"],
  );
  assert.equal(route.source.kind === "provider" && route.source.provider.id, "p1");
  assert.equal(route.rechecked, "found");
  assert.equal(it.recycled(), 2, "both answers went back");
  it.runtime.advance(500);
  assert.equal(it.runtime.pendingTimers(), 0);
});

test("nobody is asked again where nobody in good health is ahead, or the head is unknown", () => {
  for (const heads of [
    [100, 100],
    [101, 100],
  ]) {
    const it = bench(heads, ["null", '"0x1"']);
    it.save(5);
    const { answers } = it.ask('["0xaa"]');
    it.runtime.advance(50);
    assert.deepEqual([answers, it.asked.length], [["null"], 1]);
  }
  const stale = bench([100, 101], ["null", '"0x1"']);
  stale.runtime.advance(31_000);
  stale.see(0, 100);
  stale.save(5);
  const { answers } = stale.ask('["0xaa"]');
  stale.runtime.advance(50);
  assert.deepEqual([answers, stale.asked.length], [["null"], 1]);
});

test("in vain once for each call and head, and only within the budget", () => {
  const it = bench([100, 101], ["null", "null"]);
  it.save(0);
  const poor = it.ask('["0xaa"]');
  it.runtime.advance(50);
  assert.deepEqual([poor.answers, it.asked.length], [["null"], 1]);
  assert.equal(poor.route.overBudget, true);
  it.save(10);
  for (let n = 0; n < 5; n++) {
    assert.deepEqual(it.ask('["0xaa"]').answers, []);
    it.runtime.advance(50);
  }
  assert.equal(it.asked.length, 6, "once at this head");
  const other = it.ask('["0xbb"]');
  it.runtime.advance(50);
  assert.deepEqual([other.answers, it.asked.length], [["null"], 8]);
  it.see(1, 102);
  it.ask('["0xaa"]');
  it.runtime.advance(50);
  assert.equal(it.asked.length, 10, "again at the next head");
});

test("a recheck that finds something takes nothing: the next one is asked again as well", () => {
  const it = bench([100, 101], ["null", '"0x1"']);
  it.save(1);
  for (let n = 0; n < 8; n++) {
    const { answers } = it.ask('["0xaa"]');
    it.runtime.advance(50);
    assert.deepEqual(answers, ['"0x1"']);
  }
});

test("one caller has ten rechecks a second, and others theirs", () => {
  const it = bench([100, 101], ["null", "null"]);
  it.save(100);
  const foundFor = (key: string): number => {
    const before = it.asked.length;
    for (let n = 0; n < 20; n++) it.ask(`["0x${key}${n}"]`, RECEIPT, NO_BLOCK, key);
    it.runtime.advance(50);
    return it.asked.length - before - 20;
  };
  it.runtime.advance(1_000 - (it.runtime.now() % 1_000));
  assert.equal(foundFor("aa"), 10);
  assert.equal(foundFor("aa"), 0);
  assert.equal(foundFor("bb"), 10);
  it.runtime.advance(1_000);
  assert.equal(foundFor("aa"), 10);
});

test("an answer that names a block tells how far its provider is", () => {
  const it = bench([100, 100], ["null", '{"blockNumber":"0x66"}']);
  it.save(5);
  it.ask('["0xaa"]');
  it.runtime.advance(50);
  assert.equal(it.asked.length, 1, "nobody is known to be ahead");
  it.avoidFirst(() => it.ask('["0xbb"]'));
  it.runtime.advance(50);
  const { answers } = it.ask('["0xaa"]');
  it.runtime.advance(50);
  assert.deepEqual(answers, ['{"blockNumber":"0x66"}']);
});

test("a transaction of a block by its hash is asked again as well", () => {
  const it = bench([100, 101], ["null", '{"hash":"0xaa"}']);
  it.save(5);
  const method = "eth_getTransactionByBlockHashAndIndex";
  const { answers } = it.ask(`["0x${"a".repeat(64)}","0x0"]`, method);
  it.runtime.advance(50);
  assert.deepEqual(answers, ['{"hash":"0xaa"}']);
});

test("a block is asked again only of one whose head has its number", () => {
  const block = (number: number): BlockRef => ({ kind: "number", number });
  const it = bench([100, 101], ["null", '{"number":"0x65"}']);
  it.save(10);
  const known = it.ask('["0x65",false]', "eth_getBlockByNumber", block(101));
  it.runtime.advance(50);
  assert.deepEqual(known.answers, ['{"number":"0x65"}']);
  const future = it.ask('["0x70",false]', "eth_getBlockByNumber", block(112));
  it.runtime.advance(50);
  assert.deepEqual(future.answers, ["null"]);
});

test("a block that somebody is known to have is asked of that one first: no credit is needed", () => {
  const it = bench([100, 101], ["null", '{"number":"0x65"}']);
  it.save(0);
  const block: BlockRef = { kind: "number", number: 101 };
  const { answers } = it.ask('["0x65",false]', "eth_getBlockByNumber", block);
  it.runtime.advance(50);
  assert.deepEqual(answers, ['{"number":"0x65"}']);
  assert.deepEqual(
    it.asked.map(({ provider }) => provider),
    ["p1"],
  );
});

test("where the second one fails or is silent, null is told; a caller who leaves ends it", () => {
  for (const [says, withinMs] of [
    [null, 50],
    ["silent", 1_100],
  ] as const) {
    const it = bench([100, 101], ["null", says]);
    it.save(1);
    const { answers, route } = it.ask('["0xaa"]');
    it.runtime.advance(withinMs);
    assert.deepEqual(answers, ["null"]);
    assert.equal(route.rechecked, "missing");
  }
  const left = bench([100, 101], ["null", "silent"]);
  left.save(1);
  const { answers, route } = left.ask('["0xaa"]');
  left.runtime.advance(20);
  assert.equal(left.asked.length, 2);
  assert.deepEqual(route.cancel(), { sent: true, countedAsTimeout: false });
  assert.equal(left.asked[1]?.cancelled, true);
  left.runtime.advance(5_000);
  assert.deepEqual(answers, []);
});

test("whoever has the highest head is asked first, and where that one fails, one below", () => {
  for (const [says, walk] of [
    [["null", "null", '{"status":"0x1"}'], "p0 p2"],
    [["null", '{"status":"0x1"}', null], "p0 p2 p1"],
  ] as const) {
    const it = bench([100, 101, 102], [...says]);
    it.save(1);
    const { answers } = it.ask('["0xaa"]');
    it.runtime.advance(50);
    assert.deepEqual(answers, ['{"status":"0x1"}']);
    assert.equal(it.asked.map(({ provider }) => provider).join(" "), walk);
  }
});

test("where the second one is silent, a third one is asked beside it", () => {
  const says: (string | "silent")[] = ['{"status":"0x1"}', '{"status":"0x1"}', '{"status":"0x1"}'];
  const it = bench([100, 101, 101], says);
  for (const avoided of [[], ["p0"], ["p0", "p1"]])
    for (let n = 0; n < 30; n++) it.avoiding(avoided, () => it.ask(`["0x${n}"]`));
  it.runtime.advance(50);
  says.splice(0, 3, "null", "silent", '{"status":"0x1"}');
  it.save(1);
  const { answers } = it.ask('["0xaa"]');
  it.runtime.advance(100);
  assert.deepEqual(answers, ['{"status":"0x1"}']);
});

test("a recheck that was not answered does not count as one in vain", () => {
  const says: (string | null)[] = ["null", null];
  const it = bench([100, 101], says);
  it.save(2);
  const first = it.ask('["0xaa"]');
  it.runtime.advance(50);
  assert.deepEqual(first.answers, ["null"]);
  says[1] = '{"status":"0x1"}';
  const second = it.ask('["0xaa"]');
  it.runtime.advance(50);
  assert.deepEqual(second.answers, ['{"status":"0x1"}']);
});

test("a block that does not exist yet is null at once, where all providers push their heads", () => {
  const it = bench([100, 100], ["null", "null"]);
  const ask = (number: number): readonly string[] => {
    const hex = `["0x${number.toString(16)}",false]`;
    const { route, answers } = it.ask(hex, "eth_getBlockByNumber", { kind: "number", number });
    it.save(0);
    if (answers.length > 0) assert.equal(route.source.kind, "shared");
    it.runtime.advance(50);
    return answers;
  };
  const sentFor = (number: number): number => {
    const before = it.sentInAll();
    assert.deepEqual(ask(number), ["null"]);
    return it.sentInAll() - before;
  };
  assert.equal(sentFor(500), 1, "heads are only polled");
  it.push(0, 100);
  assert.equal(sentFor(500), 1, "one of them is only polled");
  it.push(1, 100);
  assert.equal(sentFor(500), 0);
  assert.equal(sentFor(102), 1, "it may be on its way");
  it.runtime.advance(60_000);
  assert.equal(sentFor(500), 1, "nothing was pushed for a while");
});

test("a preconfirmed receipt that was told is not told away by a provider that has it not yet", () => {
  const told = '{"status":"0x1","blockNumber":"0x65"}';
  const says: (string | null | "silent")[] = [told, "null"];
  const it = bench([100, 100], says);
  it.save(0);
  const first = it.ask('["0xaa"]');
  it.runtime.advance(50);
  assert.deepEqual(first.answers, [told]);

  /** The first provider fails, the second has nothing, and the first is there again. */
  const afterFailure = (params: string) => {
    says[0] = null;
    const asked = it.ask(params);
    it.runtime.advance(7);
    says[0] = told;
    it.runtime.advance(50);
    return asked;
  };
  const again = afterFailure('["0xaa"]');
  assert.deepEqual(again.answers, [told]);
  assert.equal(again.route.rechecked, "found");
  assert.deepEqual(afterFailure('["0xbb"]').answers, ["null"], "of this one nobody told");

  it.runtime.advance(61_000);
  assert.deepEqual(afterFailure('["0xaa"]').answers, ["null"], "after a few blocks null is null");
});

test("who told of a receipt is asked again, unless its block is well below the tip", () => {
  for (const [block, told] of [
    [93, '{"blockNumber":"0x5d"}'],
    [91, "null"],
  ] as const) {
    const receipt = `{"blockNumber":"0x${block.toString(16)}"}`;
    const says: (string | null | "silent")[] = [receipt, "null"];
    const it = bench([100, 100], says);
    it.save(0);
    it.ask('["0xaa"]');
    it.runtime.advance(50);
    says[0] = null;
    const asked = it.ask('["0xaa"]');
    it.runtime.advance(7);
    says[0] = receipt;
    it.runtime.advance(50);
    assert.deepEqual(asked.answers, [told]);
  }
});
