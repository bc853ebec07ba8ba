// One view of the chain: callers are answered at the served tip by every provider, what one lacks
// is asked of another, and no call is lost that was answered without a view.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readBlockRef, type View } from "../../../src/core/rpc/call.ts";
import type { Failure } from "../../../src/core/rpc/failure.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import type { SeenBlock } from "../../../src/core/rpc/seen.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";
import type { Outcome } from "../../../src/upstream/engine/answer.ts";
import { CachedAnswers } from "../../../src/upstream/engine/cache/cached-answers.ts";
import { ViewReasks } from "../../../src/upstream/engine/layers/consistency.ts";
import { type RoutedCall, Router } from "../../../src/upstream/engine/router.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const ADDRESS = `0x${"1".repeat(40)}`;
const TX = `0x${"7".repeat(64)}`;
const BLOCK_MS = 1_000;

const hashOf = (number: number): string => `0x${number.toString(16).padStart(64, "0")}`;
const hex = (number: number): string => `0x${number.toString(16)}`;

/** A provider that answers truthfully from its own head, unless it is told otherwise. */
interface Node {
  head: number;
  /** It knows no block by its number or hash. */
  refusesNumbers: boolean;
  /** It takes tags alone, and calls anything else wrong parameters. */
  takesTags: boolean;
  /** Where the transaction was mined, as it knows it; null = it is in the pool. */
  mined: number | null;
  isDown: boolean;
  /** What it answers to everything; null = the truth. */
  lie: string | null;
}

interface Asked {
  readonly provider: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

const SENDS_AND_WAITS = ["eth_sendRawTransactionSync", "realtime_sendRawTransaction"];

/** Providers in this order with these heads, which all of them have pushed. */
function fixture(heads: readonly number[], { caches = false } = {}) {
  const runtime = simulatedWorld(3);
  const chain = { chainId: 1, chainName: "test", name: "Test", aliases: [], blockTimeMs: BLOCK_MS };
  const providers = heads.map((_, n) => fakeProvider(n, { priority: n, wsUrl: null }));
  const tracker = new Tracker(fakeSet(providers, { chain }), runtime, SELECTION);
  const nodes: Node[] = heads.map(() => ({
    head: Math.min(...heads),
    refusesNumbers: false,
    takesTags: false,
    mined: null,
    isDown: false,
    lie: null,
  }));
  const asked: Asked[] = [];
  const reasks = new ViewReasks();
  const push = (n: number, head: number): void => {
    const known = nodes[n]?.head ?? assert.fail();
    for (let number = Math.min(known, head); number <= head; number++)
      tracker.recordHead(providers[n] ?? assert.fail(), number, {
        number,
        hash: hashOf(number),
        parentHash: hashOf(number - 1),
      });
    (nodes[n] ?? assert.fail()).head = head;
  };
  for (const node of nodes.keys()) push(node, Math.min(...heads));
  for (const [n, head] of heads.entries()) push(n, head);
  const failure = (message: string, code = -32_000): Failure =>
    ({ kind: "error", code, message, httpStatus: 200 }) as unknown as Failure;
  const router = new Router({
    runtime,
    timerWheel: new TimerWheel(runtime),
    limits: () => ({ maxAttempts: 3, firstAttemptShare: 0.6 }),
    hedge: () => null,
    reasks,
    ...(caches ? { cache: new CachedAnswers(() => CACHE) } : {}),
    upstreams: {
      http: {
        send({ provider: { index }, body }, listener) {
          const { method, params } = JSON.parse(body.toString());
          asked.push({ provider: index, method, params });
          runtime.after(5, () => {
            const node = nodes[index] ?? assert.fail();
            const answer = node.isDown ? failure("internal error") : answerOf(node, method, params);
            if (typeof answer !== "string")
              return listener.failed(answer, Buffer.from(JSON.stringify(answer)));
            const text = Buffer.from(answer);
            listener.result(text, { start: 0, end: text.length, idAt: null });
          });
          return { sent: true, cancel() {} };
        },
      },
    },
  });

  function answerOf(node: Node, method: string, params: readonly unknown[]): string | Failure {
    const { head, mined, lie } = node;
    if (lie !== null) return lie;
    if (SENDS_AND_WAITS.includes(method))
      return `{"blockHash":"${hashOf(mined ?? 0)}","blockNumber":"${hex(mined ?? 0)}"}`;
    if (method === "eth_getTransactionReceipt" || method === "eth_getTransactionByHash") {
      const isMined = mined !== null && mined <= head;
      const place = isMined
        ? `"blockHash":"${hashOf(mined)}","blockNumber":"${hex(mined)}"`
        : `"blockHash":null,"blockNumber":null`;
      if (!isMined && method === "eth_getTransactionReceipt") return "null";
      return `{"hash":"${TX}",${place},"transactionIndex":"0x0"}`;
    }
    if (method === "eth_blockNumber") return `"${hex(head)}"`;
    const at = params[method.startsWith("eth_getBlock") ? 0 : 1];
    if (node.takesTags && at !== "latest") return failure("invalid params", -32_602);
    const number = numberOf(at, head);
    const isKnown = at === "latest" || (number <= head && !node.refusesNumbers);
    if (method.startsWith("eth_getBlock"))
      return isKnown ? `{"number":"${hex(number)}","hash":"${hashOf(number)}"}` : "null";
    return isKnown ? `"${hex(number)}"` : failure("header not found");
  }

  const ask = (
    method: string,
    params: string,
    { view: asked = "current", mark = null }: Viewed = {},
  ) => {
    let ended: Outcome | null = null;
    const current = asked === "current" ? tracker.blocks.view.current() : asked;
    const view = current === "none" ? undefined : current;
    const row = methodOf(method);
    const written = writeRequest(method, Buffer.from(params));
    const block = readBlockRef(written.body, written.params, row);
    const call = { methodName: method, method: row, block, ...written };
    const who = { caller: { key: "c" }, pin: null, avoid: null, transport: null } as const;
    const route: RoutedCall = router.route(
      {
        call,
        tracker,
        strategy: "priority",
        deadlineMs: 5_000,
        mayStream: false,
        view,
        mark,
        ...who,
      },
      ({ outcome }) => {
        ended = outcome;
      },
    );
    const told = (): string => {
      const outcome: Outcome | null = ended;
      if (outcome === null) return "nothing";
      if (outcome.kind === "result")
        return outcome.body.toString("utf8", outcome.start, outcome.end);
      return outcome.kind === "fault" ? outcome.fault.code : outcome.kind;
    };
    return { route, told };
  };
  const answer = (method: string, params: string, viewed: Viewed = {}): string => {
    const { told } = ask(method, params, viewed);
    runtime.advance(900);
    return told();
  };
  return { runtime, tracker, nodes, asked, push, ask, answer, reasks, providers };
}

interface Viewed {
  readonly view?: View | "current" | "none";
  readonly mark?: SeenBlock | null;
}

const CACHE = { maxBytes: 1_048_576, accountMaxBytes: 0, byAccount: false, methods: new Map() };

function numberOf(at: unknown, head: number): number {
  if (typeof at === "object" && at !== null && "blockHash" in at) return Number(at.blockHash);
  return at === "latest" ? head : Number(at);
}

const BALANCE = `["${ADDRESS}","latest"]`;

test("the height is told from the view, and no provider is asked for it", () => {
  const { answer, asked, ask, tracker } = fixture([9, 12, 11]);
  assert.equal(answer("eth_blockNumber", "[]"), '"0xb"', "two have block 11");
  assert.deepEqual(asked, []);
  assert.equal(ask("eth_blockNumber", "[]").route.source.kind, "heads");
  const pinnedLike = answer("eth_blockNumber", "[]", { view: "none" });
  assert.equal(pinnedLike, '"0x9"', "who wants no view is answered by the first provider");
  assert.equal(tracker.blocks.view.current()?.number, 11);
});

test("latest is the same block for all, asked of those who have it", () => {
  const { answer, asked, ask, runtime } = fixture([9, 12, 11]);
  assert.equal(answer("eth_getBalance", BALANCE), '"0xb"');
  assert.equal(answer("eth_call", `[{"to":"${ADDRESS}"}]`), '"0xb"', "also where it is left out");
  assert.match(answer("eth_getBlockByNumber", '["latest",false]'), /"number":"0xb"/);
  assert.deepEqual([...new Set(asked.map(({ provider }) => provider))], [1], "0 lacks the block");
  assert.equal(asked.length, 3, "one call each");
  const { route } = ask("eth_getBalance", BALANCE);
  runtime.advance(10);
  assert.deepEqual(route.at, { number: 11, hash: hashOf(11) });
});

test("state is asked for by the hash of the block where a provider is known to take one", () => {
  const { answer, asked, tracker, providers } = fixture([11, 11]);
  tracker.recordHashReads(providers[0] ?? assert.fail(), true);
  assert.equal(answer("eth_getBalance", BALANCE), '"0xb"');
  assert.deepEqual(asked.at(-1)?.params, [ADDRESS, { blockHash: hashOf(11) }]);
  answer("eth_getBlockByNumber", '["latest",false]');
  assert.deepEqual(asked.at(-1), {
    provider: 0,
    method: "eth_getBlockByHash",
    params: [hashOf(11), false],
  });
});

test("who turns out to lack the block is passed over, and not asked for that block again", () => {
  const { answer, asked, nodes, reasks } = fixture([11, 11]);
  // Its socket is ahead of what its other machines have.
  (nodes[0] ?? assert.fail()).head = 10;
  assert.match(answer("eth_getBlockByNumber", '["latest",false]'), /"number":"0xb"/);
  assert.equal(reasks.missing, 1);
  assert.equal(answer("eth_getBalance", BALANCE), '"0xb"');
  assert.deepEqual(
    asked.map(({ provider }) => provider),
    [0, 1, 1],
  );
});

test("a provider that refuses the number of its own head is asked by tag, and loses no call", () => {
  const { answer, asked, nodes, push, reasks } = fixture([11]);
  (nodes[0] ?? assert.fail()).refusesNumbers = true;
  assert.equal(answer("eth_getBalance", BALANCE), '"0xb"');
  push(0, 12);
  assert.equal(answer("eth_getBalance", BALANCE), '"0xc"');
  assert.equal(reasks.stale, 2);
  push(0, 13);
  const before = asked.length;
  assert.equal(answer("eth_getBalance", BALANCE), '"0xd"');
  assert.equal(asked.length - before, 1, "it has been learned");
  assert.equal(asked.at(-1)?.params[1], "latest");
});

test("a provider that takes tags alone loses no call, and is asked by tag once that is known", () => {
  const { answer, asked, nodes, push } = fixture([11]);
  (nodes[0] ?? assert.fail()).takesTags = true;
  for (const head of [11, 12]) {
    push(0, head);
    assert.equal(answer("eth_getBalance", BALANCE), `"${hex(head)}"`);
  }
  push(0, 13);
  const before = asked.length;
  assert.equal(answer("eth_getBalance", BALANCE), '"0xd"');
  assert.equal(asked.length - before, 1);
  assert.equal(
    answer("eth_getBalance", `["${ADDRESS}","0xzz"]`),
    "error",
    "a wrong call stays wrong",
  );
});

test("who is asked by tag is held against all of the question but the block", () => {
  const { answer, nodes, push, providers, tracker } = fixture([11, 11]);
  const [first, second] = nodes;
  assert.ok(first !== undefined && second !== undefined);
  for (const head of [12, 13]) {
    for (const n of nodes.keys()) push(n, head);
    tracker.lacksBlock(providers[0] ?? assert.fail(), head);
  }
  for (const n of nodes.keys()) push(n, 14);
  const logsOf = (address: string, block: number): string =>
    `[{"address":"${address}","blockNumber":"${hex(block)}","logIndex":"0x0"}]`;
  const filter = `[{"address":"${ADDRESS}","fromBlock":"0x1","toBlock":"latest"}]`;
  second.lie = logsOf(ADDRESS, 14);
  first.lie = logsOf(ADDRESS, 15);
  assert.equal(answer("eth_getLogs", filter), first.lie, "it may have a newer block");
  first.lie = logsOf(`0x${"2".repeat(40)}`, 14);
  assert.equal(answer("eth_getLogs", filter), second.lie);
});

test("a single provider that lies about its head answers all calls, at what it has", () => {
  const { answer, nodes, push, reasks } = fixture([11]);
  push(0, 5_000);
  (nodes[0] ?? assert.fail()).head = 11;
  assert.equal(answer("eth_getBalance", BALANCE), '"0xb"');
  assert.ok(reasks.stale > 0);
});

test("where all who have the block fail, the others answer as they did without a view", () => {
  const { answer, nodes, ask, runtime } = fixture([11, 11, 10]);
  for (const n of [0, 1]) (nodes[n] ?? assert.fail()).isDown = true;
  assert.equal(answer("eth_getBalance", BALANCE), '"0xa"');
  const { route } = ask("eth_getBalance", BALANCE);
  runtime.advance(900);
  assert.ok(route.isStale && route.at === null, "the evidence says so");
});

test("where the only one who has the block fails, those that are too far behind answer", () => {
  const { answer, nodes, ask, asked, push, runtime } = fixture([30, 11, 11]);
  runtime.advance(4_000);
  push(0, 31);
  assert.equal(answer("eth_getBalance", BALANCE), '"0x1f"');
  (nodes[0] ?? assert.fail()).isDown = true;
  asked.length = 0;
  assert.equal(answer("eth_getBalance", BALANCE), '"0xb"');
  assert.deepEqual(
    asked.map(({ provider }) => provider),
    [0, 1],
  );
  for (const node of nodes) node.isDown = true;
  const { told, route } = ask("eth_getBalance", BALANCE);
  runtime.advance(900);
  assert.deepEqual([told(), route.isStale], ["error", true]);
});

test("a caller with a mark is not told an older block: it waits, then it is told to come back", () => {
  const { ask, tracker, runtime, push } = fixture([11, 11]);
  const view = tracker.blocks.view.current() ?? assert.fail();
  const mark = { number: 12, hash: hashOf(12) };
  const ahead = { view: { ...view, ...mark }, mark };
  const late = ask("eth_getBalance", BALANCE, ahead);
  runtime.advance(200);
  assert.equal(late.told(), "nothing");
  push(1, 12);
  runtime.advance(150);
  assert.equal(late.told(), '"0xc"');
  const later = { number: 13, hash: hashOf(13) };
  const never = ask("eth_getBalance", BALANCE, { view: { ...view, ...later }, mark: later });
  runtime.advance(600);
  assert.equal(never.told(), "behind");
});

test("a receipt above the tip is told once the tip is there, the transaction is pending until then", () => {
  const { answer, nodes, push, runtime } = fixture([12, 11]);
  for (const node of nodes) node.mined = 12;
  assert.equal(answer("eth_getTransactionReceipt", `["${TX}"]`), "null");
  assert.match(answer("eth_getTransactionByHash", `["${TX}"]`), /"blockNumber":null/);
  push(1, 12);
  assert.match(answer("eth_getTransactionReceipt", `["${TX}"]`), /"blockNumber":"0xc"/);
  runtime.advance(1);
});

test("a receipt whose block does not become the tip within a block time raises it", () => {
  const { answer, ask, nodes, runtime, tracker } = fixture([12, 11]);
  for (const node of nodes) node.mined = 12;
  const first = ask("eth_getTransactionReceipt", `["${TX}"]`);
  runtime.advance(10);
  assert.equal(first.told(), "null");
  runtime.advance(BLOCK_MS);
  assert.match(answer("eth_getTransactionReceipt", `["${TX}"]`), /"blockNumber":"0xc"/);
  assert.equal(tracker.blocks.view.tip?.number, 12);
  assert.equal(answer("eth_blockNumber", "[]"), '"0xc"');
});

for (const method of SENDS_AND_WAITS)
  test(`the receipt that ${method} brings raises the tip at once`, () => {
    const { answer, nodes, tracker } = fixture([12, 11]);
    for (const node of nodes) node.mined = 12;
    assert.match(answer(method, '["0x02"]'), /"blockNumber":"0xc"/);
    assert.equal(tracker.blocks.view.tip?.number, 12);
  });

test("kept answers belong to a block: a tag and its number share them, the next block has its own", () => {
  const { answer, asked, push } = fixture([11, 11], { caches: true });
  const older = `["${ADDRESS}","0xb"]`;
  for (const params of [BALANCE, older]) assert.equal(answer("eth_getBalance", params), '"0xb"');
  assert.equal(asked.length, 1);
  for (const n of [0, 1]) push(n, 12);
  assert.equal(answer("eth_getBalance", BALANCE), '"0xc"');
  for (const _ of [1, 2]) assert.equal(answer("eth_getBalance", older), '"0xb"');
  assert.equal(asked.length, 3, "what was the newest block's is asked for anew, and kept then");
});
