// Kept answers behind the real router, tracker and rules, in simulated time: what is asked again
// and what is not, through heads, reorganisations and found-out providers.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProviderSet } from "../../../src/core/provider/profile.ts";
import type { CacheSettings } from "../../../src/core/routing/cache-terms.ts";
import { readBlockRef } from "../../../src/core/rpc/call.ts";
import { type Failure, plainFailure } from "../../../src/core/rpc/failure.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";
import { CachedAnswers } from "../../../src/upstream/engine/cache/cached-answers.ts";
import { Router } from "../../../src/upstream/engine/router.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const SETTINGS: CacheSettings = {
  maxBytes: 1_048_576,
  accountMaxBytes: 0,
  byAccount: false,
  methods: new Map(),
};
/** Where the branch `b` begins. */
const FORK = 99;
const CHAIN = fakeSet([]).chain;
const BLOCK_TIME_MS = CHAIN.blockTimeMs;
const ADDRESS = `"0x${"ab".repeat(20)}"`;
const hashOf = (name: string): string => `0x${Buffer.from(name).toString("hex").padStart(64, "0")}`;

interface Options {
  readonly settings?: Partial<CacheSettings>;
  readonly set?: Partial<ProviderSet>;
  readonly profileId?: string;
  /** Of another fixture; absent = answers of its own. */
  readonly cached?: CachedAnswers;
}

/** Two providers that push their heads, at block 100 with block 90 final. */
function createFixture(options: Options = {}) {
  const { settings = {}, set = {}, profileId = "team" } = options;
  const runtime = simulatedWorld(7);
  runtime.advance(1_000);
  const providers = [fakeProvider(0, { priority: 0 }), fakeProvider(1, { priority: 1 })] as const;
  const cached = options.cached ?? new CachedAnswers(() => ({ ...SETTINGS, ...settings }));
  const tracker = new Tracker({ ...fakeSet(providers), ...set }, runtime, {
    ...SELECTION,
    profileId,
  });
  let said = '"0x1"';
  let failure: Failure | null = null;
  let during: (() => void) | null = null;
  const sent: string[] = [];
  const router = new Router({
    runtime,
    timerWheel: new TimerWheel(runtime),
    limits: () => ({ maxAttempts: 3, firstAttemptShare: 0.6 }),
    hedge: () => null,
    cache: cached,
    upstreams: {
      http: {
        send({ body, provider }, listener) {
          sent.push(provider.id);
          assert.ok(body.length > 0);
          during?.();
          if (failure !== null) listener.failed(failure, Buffer.from('{"code":3,"data":"0x08"}'));
          else {
            const answer = Buffer.from(said);
            listener.result(answer, { start: 0, end: answer.length, idAt: null });
            answer.fill(0x20);
          }
          return { sent: true, cancel() {} };
        },
      },
    },
  });
  const push = (number: number, branch = "a", on: readonly number[] = [0, 1]): void => {
    const head = {
      number,
      hash: hashOf(`${branch}${number}`),
      parentHash: hashOf(`${branch === "a" || number === FORK ? "a" : branch}${number - 1}`),
    };
    for (const index of on) tracker.recordHead(providers[index] ?? assert.fail(), number, head);
    runtime.advance(1);
  };
  for (let number = 80; number <= 100; number++) push(number);
  for (const provider of providers) tracker.recordNamed(provider, "finalized", 90);
  const route = (method: string, params: string, ask: object = {}) => {
    const written = writeRequest(method, Buffer.from(params));
    const call = {
      methodName: method,
      method: methodOf(method),
      block: readBlockRef(written.body, written.params, methodOf(method)),
      ...written,
    };
    const told: { readonly text: string; readonly source: string }[] = [];
    const routed = router.route(
      {
        call,
        tracker,
        strategy: "priority",
        pin: null,
        transport: "http",
        avoid: null,
        caller: { key: "caller" },
        deadlineMs: 1_000,
        mayStream: true,
        ...ask,
      },
      ({ outcome, source }) => {
        const text =
          outcome.kind === "result"
            ? outcome.body.toString("latin1", outcome.start, outcome.end)
            : outcome.kind;
        told.push({ text, source: source.kind });
      },
    );
    assert.equal(told.length, 1);
    return { ...(told[0] ?? assert.fail()), use: routed.cacheUse };
  };
  /** The text of the answer, and how the call met the cache. */
  const ask = (method: string, params: string, more: object = {}): string => {
    const { text, source, use } = route(method, params, more);
    const what = use?.result === "hit" ? use.class : (use?.result ?? "none");
    assert.equal(source === "cache", use?.result === "hit");
    return `${text} ${what}`;
  };
  return {
    runtime,
    providers,
    tracker,
    cached,
    sent,
    push,
    ask,
    say(json: string): void {
      said = json;
    },
    fail(next: Failure | null): void {
      failure = next;
    },
    whileAsked(run: (() => void) | null): void {
      during = run;
    },
  };
}

const balance = (block: string): string => `[${ADDRESS},${block}]`;

test("state of a finalized block is asked for once, and its bytes stay as they were", () => {
  const it = createFixture();
  assert.equal(it.ask("eth_getBalance", balance('"0x50"')), '"0x1" miss');
  it.say('"0x2"');
  it.runtime.advance(600_000);
  assert.equal(it.ask("eth_getBalance", balance('"0x50"')), '"0x1" immutable');
  assert.equal(it.ask("eth_getBalance", balance('"0x51"')), '"0x2" miss', "another block");
  assert.equal(it.ask("eth_getCode", balance('"0x50"')), '"0x2" miss', "another method");
  assert.equal(it.sent.length, 3);
});

test("state of a younger block is kept as long as the block has its hash", () => {
  const it = createFixture();
  it.runtime.advance(BLOCK_TIME_MS);
  for (const block of ['"0x5f"', '"0x62"', '"0x63"'])
    assert.equal(it.ask("eth_getBalance", balance(block)), '"0x1" miss');
  it.push(101);
  assert.equal(it.ask("eth_getBalance", balance('"0x62"')), '"0x1" block');
  // Blocks from 99 on are abandoned.
  it.push(99, "b", [0]);
  it.say('"0x2"');
  assert.equal(it.ask("eth_getBalance", balance('"0x63"')), '"0x2" miss');
  assert.equal(it.ask("eth_getBalance", balance('"0x63"')), '"0x2" miss', "providers differ");
  assert.equal(it.ask("eth_getBalance", balance('"0x5f"')), '"0x1" block', "before the fork");
  it.push(99, "b", [1]);
  it.push(100, "b");
  assert.equal(it.ask("eth_getBalance", balance('"0x63"')), '"0x2" miss');
  assert.equal(it.ask("eth_getBalance", balance('"0x63"')), '"0x2" miss', "agreed just now");
  it.runtime.advance(BLOCK_TIME_MS);
  assert.equal(it.ask("eth_getBalance", balance('"0x63"')), '"0x2" miss');
  assert.equal(it.ask("eth_getBalance", balance('"0x63"')), '"0x2" block', "on the new branch");
  assert.equal(it.cached.report().abandoned, 1);
});

test("an answer that names no block is kept of the newest block as that, and of young ones once they have stood", () => {
  const it = createFixture();
  const at = (block: string) => it.ask("eth_getBalance", balance(block));
  assert.deepEqual([at('"0x64"'), at('"0x64"')], ['"0x1" miss', '"0x1" head']);
  assert.deepEqual([at('"0x63"'), at('"0x63"')], ['"0x1" miss', '"0x1" miss']);
  // A block says itself which one it is.
  it.say(`{"number":"0x63","hash":"${hashOf("a99")}"}`);
  assert.match(it.ask("eth_getBlockByNumber", '["0x63",false]'), /miss/);
  assert.match(it.ask("eth_getBlockByNumber", '["0x63",false]'), /block/);
});

test("what names no block is asked for anew once its block is final, unless it was deep below its provider's head", () => {
  for (const [finalityDepth, expected] of [
    [2, '"0x1" immutable'],
    [5, '"0x1" miss'],
  ] as const) {
    const it = createFixture({ set: { chain: { ...CHAIN, finalityDepth } } });
    it.runtime.advance(BLOCK_TIME_MS);
    it.ask("eth_getBalance", balance('"0x60"'));
    assert.equal(it.ask("eth_getBalance", balance('"0x60"')), '"0x1" block');
    it.push(101);
    for (const provider of it.providers) it.tracker.recordNamed(provider, "finalized", 97);
    assert.equal(it.ask("eth_getBalance", balance('"0x60"')), expected);
    assert.equal(it.ask("eth_getBalance", balance('"0x60"')), '"0x1" immutable');
  }
});

test("a branch that comes back does not bring back what was kept of it", () => {
  const it = createFixture();
  it.ask("eth_getBalance", balance('"0x63"'));
  it.push(99, "b");
  it.push(99, "a");
  it.say('"0x2"');
  assert.equal(it.ask("eth_getBalance", balance('"0x63"')), '"0x2" miss');
});

test("an answer during which the branch changed is not kept", () => {
  const it = createFixture();
  it.whileAsked(() => it.push(99, "b"));
  it.ask("eth_getBalance", balance('"0x63"'));
  it.whileAsked(null);
  assert.match(it.ask("eth_getBalance", balance('"0x63"')), /miss/);
});

test("what is of the newest block is kept until the next one, and two seconds at most", () => {
  const it = createFixture();
  assert.equal(it.ask("eth_blockNumber", "[]"), '"0x1" miss');
  assert.equal(it.ask("eth_getBalance", `[${ADDRESS}]`), '"0x1" miss');
  it.say('"0x2"');
  assert.equal(it.ask("eth_blockNumber", "[]"), '"0x1" head');
  it.push(101);
  assert.equal(it.ask("eth_blockNumber", "[]"), '"0x2" miss');
  assert.equal(it.ask("eth_blockNumber", "[]"), '"0x2" head');
  it.runtime.advance(2_001);
  assert.equal(it.ask("eth_blockNumber", "[]"), '"0x2" miss');
  it.push(102, "a", [1]);
  it.ask("eth_gasPrice", "[]");
  assert.equal(it.ask("eth_gasPrice", "[]"), '"0x2" head', "one that is ahead alone is not served");
});

test("a provider that was behind when it was asked tells nothing of the newest block", () => {
  const it = createFixture();
  it.push(101, "a", [1]);
  it.whileAsked(() => it.push(101, "a", [0]));
  it.ask("eth_blockNumber", "[]");
  it.whileAsked(null);
  assert.match(it.ask("eth_blockNumber", "[]"), /miss/);
});

test("heads that are only polled are no heads to keep by", () => {
  const it = createFixture();
  for (const provider of it.providers) it.tracker.listen(provider, false);
  it.ask("eth_blockNumber", "[]");
  assert.match(it.ask("eth_blockNumber", "[]"), /miss/);
  assert.match(it.ask("eth_getBalance", balance('"0x62"')), /miss/);
  assert.match(it.ask("eth_getBalance", balance('"0x62"')), /miss/);
  it.ask("eth_getBalance", balance('"0x50"'));
  assert.match(it.ask("eth_getBalance", balance('"0x50"')), /immutable/);
});

test("a receipt is kept by the block in it, and one that is not there yet never", () => {
  const it = createFixture();
  const params = `["${hashOf("tx")}"]`;
  const receipt = (number: number, branch: string): string =>
    `{"blockHash":"${hashOf(`${branch}${number}`)}","blockNumber":"0x${number.toString(16)}"}`;
  it.say("null");
  it.ask("eth_getTransactionReceipt", params);
  it.say(receipt(105, "a"));
  assert.match(it.ask("eth_getTransactionReceipt", params), /miss/);
  it.say(receipt(99, "b"));
  assert.match(it.ask("eth_getTransactionReceipt", params), /miss/, "above the served tip before");
  it.say(receipt(99, "a"));
  assert.match(it.ask("eth_getTransactionReceipt", params), /miss/, "of another branch before");
  assert.match(it.ask("eth_getTransactionReceipt", params), /block$/);
  for (const provider of it.providers) it.tracker.recordNamed(provider, "finalized", 99);
  assert.match(it.ask("eth_getTransactionReceipt", params), /immutable$/);
});

test("what is empty is kept a minute at most, and a missing block not at all", () => {
  const it = createFixture();
  for (const [method, params, empty] of [
    ["eth_getCode", balance('"0x50"'), '"0x"'],
    ["eth_getLogs", '[{"fromBlock":"0x10","toBlock":"0x50"}]', "[]"],
  ] as const) {
    it.say(empty);
    it.ask(method, params);
    assert.match(it.ask(method, params), /immutable/);
    it.runtime.advance(60_001);
    assert.match(it.ask(method, params), /miss/);
    it.push(101);
  }
  it.say("null");
  for (const block of ["0x63", "0x50"]) {
    it.ask("eth_getBlockByNumber", `["${block}",false]`);
    assert.match(it.ask("eth_getBlockByNumber", `["${block}",false]`), /miss/);
  }
});

test("an answer to another question is never kept, also where all providers give it", () => {
  const it = createFixture();
  const params = `["${hashOf("tx")}"]`;
  const place = `"blockNumber":"0x50","blockHash":"${hashOf("a80")}"`;
  it.say(`{"transactionHash":"${hashOf("other")}",${place}}`);
  for (const _ of [1, 2]) assert.match(it.ask("eth_getTransactionReceipt", params), /miss/);
  assert.equal(it.sent.length, 4);
  it.say(`{"transactionHash":"${hashOf("tx")}",${place}}`);
  assert.match(it.ask("eth_getTransactionReceipt", params), /miss/);
  assert.match(it.ask("eth_getTransactionReceipt", params), /immutable/);
});

test("a lie in the middle of a list is not kept", () => {
  const it = createFixture();
  const params = '[{"fromBlock":"0x10","toBlock":"0x50"}]';
  const logs = (...blocks: readonly string[]): string =>
    `[${blocks.map((number) => `{"blockNumber":"${number}"}`).join()}]`;
  it.say(logs("0x10", "0x51", "0x50"));
  for (const _ of [1, 2]) assert.match(it.ask("eth_getLogs", params), /miss/);
  assert.equal(it.sent.length, 4, "each time the other provider was asked as well");
  it.say(logs("0x10", "0x49", "0x50"));
  it.ask("eth_getLogs", params);
  assert.match(it.ask("eth_getLogs", params), /immutable/);
});

test("never kept: pending however it is written, overrides, hashes that must be canonical", () => {
  const it = createFixture();
  const call = '{"to":"0x1"}';
  for (const [method, params] of [
    ["eth_getBalance", balance('"pending"')],
    ["eth_getBalance", balance('"pend\\u0069ng"')],
    ["eth_getBalance", balance('"\\u0030x50"')],
    ["eth_getBalance", balance('{"blockNumber":"pending"}')],
    ["eth_call", `[${call},"0x50",{}]`],
    ["eth_call", `[${call},"0x50",{},{}]`],
    ["eth_call", `[${call},{"blockHash":"${hashOf("a80")}","requireCanonical":true}]`],
    ["eth_call", `[${call},{"blockHash":null}]`],
    ["eth_estimateGas", `[${call}]`],
    ["eth_getLogs", '[{"fromBlock":"0x10","toBlock":"pending"}]'],
    ["eth_getLogs", '[{"fromBlock":"0x50","toBlock":"0x10"}]'],
    ["eth_getLogs", '[{"blockHash":null}]'],
    ["eth_getLogs", '[{"toblock":"0x10"}]'],
    ["eth_getBalance", balance('"0xffffff"')],
    ["eth_getTransactionByHash", '["0x12"]'],
  ] as const) {
    it.say(method === "eth_getLogs" ? "[{}]" : '"0x1"');
    if (method === "eth_getTransactionByHash") it.say("{}");
    it.ask(method, params);
    const before = it.sent.length;
    assert.doesNotMatch(it.ask(method, params), /immutable|block|head|tag|hash/, params);
    assert.equal(it.sent.length, before + 1, params);
  }
});

test("a revert with its data is kept at a fixed block, and no other error is", () => {
  const it = createFixture();
  const revert = { ...plainFailure("error", "execution reverted"), code: 3 };
  it.fail({ ...revert, data: "0x08c379a0" });
  it.ask("eth_call", `[{"to":"0x1"},"0x50"]`);
  assert.equal(it.ask("eth_call", `[{"to":"0x1"},"0x50"]`), "error immutable");
  it.ask("eth_call", `[{"to":"0x1"},"latest"]`);
  assert.equal(it.ask("eth_call", `[{"to":"0x1"},"latest"]`), "error miss");
  it.fail({ ...revert, data: null });
  it.ask("eth_call", `[{"to":"0x2"},"0x50"]`);
  assert.equal(it.ask("eth_call", `[{"to":"0x2"},"0x50"]`), "error miss");
  it.fail({ ...plainFailure("error", "out of gas"), code: -32_000, data: "0x08" });
  it.ask("eth_call", `[{"to":"0x3"},"0x50"]`);
  assert.match(it.ask("eth_call", `[{"to":"0x3"},"0x50"]`), /error miss/);
});

test("pins, directives and the service's own calls go by the cache", () => {
  const it = createFixture();
  const old = balance('"0x50"');
  it.ask("eth_getBalance", old);
  assert.match(it.ask("eth_getBalance", old, { pin: it.providers[0] }), /bypass/);
  assert.match(it.ask("eth_getBalance", old, { fresh: true }), /bypass/);
  assert.equal(it.sent.length, 3);
  assert.match(it.ask("eth_getBalance", old), /immutable/);
});

test("what a provider said goes when it is found on another chain, or by an operator's word", () => {
  const it = createFixture();
  const old = balance('"0x50"');
  it.ask("eth_getBalance", old);
  const wrong = { kind: "ok", chainId: 666, height: 100 } as const;
  const [first] = it.providers;
  it.tracker.recordProbe({ provider: first, transport: "http", latencyMs: 1, result: wrong });
  assert.match(it.ask("eth_getBalance", old), /miss/);
  assert.match(it.ask("eth_getBalance", old), /immutable/);
  const any = { profile: null, chain: null, provider: null, method: null };
  void it.cached.purge({ ...any, profile: "other" });
  void it.cached.purge({ ...any, profile: "team", provider: first.id });
  assert.match(it.ask("eth_getBalance", old), /immutable/, "it was another one's");
  void it.cached.purge({ ...any, method: "eth_getCode" });
  assert.match(it.ask("eth_getBalance", old), /immutable/, "it is of another method");
  void it.cached.purge({ ...any, method: "eth_getBalance" });
  assert.match(it.ask("eth_getBalance", old), /miss/);
  void it.cached.purge({ ...any, profile: "team", chain: "test" });
  assert.match(it.ask("eth_getBalance", old), /miss/);
});

test("settings: methods, accounts, profiles, and Custom profiles only with memory of their own", () => {
  const ttl = createFixture({
    settings: {
      methods: new Map([
        ["eth_getCode", 0],
        ["eth_getBalance", 500],
      ]),
    },
  });
  assert.match(ttl.ask("eth_getCode", balance('"0x50"')), /none/);
  ttl.ask("eth_getBalance", balance('"0x50"'));
  ttl.runtime.advance(501);
  assert.match(ttl.ask("eth_getBalance", balance('"0x50"')), /miss/);
  const accounts = createFixture({ settings: { byAccount: true } });
  accounts.ask("eth_getBalance", balance('"0x50"'));
  const other = { caller: { key: "other" } };
  assert.match(accounts.ask("eth_getBalance", balance('"0x50"'), other), /miss/);
  assert.match(accounts.ask("eth_getBalance", balance('"0x50"'), other), /immutable/);
  const off = createFixture({ set: { cache: { isOn: false, shareWith: [] } } });
  assert.match(off.ask("eth_getBalance", balance('"0x50"')), /none/);
  const custom = createFixture({ profileId: "acc_1/mine" });
  assert.match(custom.ask("eth_getBalance", balance('"0x50"')), /none/);
  const bounded = createFixture({
    profileId: "acc_1/mine",
    settings: { accountMaxBytes: 100_000 },
  });
  bounded.ask("eth_getBalance", balance('"0x50"'));
  assert.match(bounded.ask("eth_getBalance", balance('"0x50"')), /immutable/);
});

test("what is final is given to profiles that share it, and to no other", () => {
  const team = createFixture();
  const quick = createFixture({
    cached: team.cached,
    profileId: "quick",
    set: { cache: { isOn: true, shareWith: ["team"] } },
  });
  const old = balance('"0x50"');
  team.ask("eth_getBalance", old);
  team.ask("eth_getBalance", balance('"latest"'));
  team.ask("eth_getBalance", balance('"0x5f"'));
  assert.match(quick.ask("eth_getBalance", old), /immutable/);
  assert.match(quick.ask("eth_getBalance", balance('"latest"')), /miss/);
  assert.match(quick.ask("eth_getBalance", balance('"0x5f"')), /miss/, "block 95 is not final");
  quick.ask("eth_getBalance", balance('"0x51"'));
  assert.match(team.ask("eth_getBalance", balance('"0x51"')), /miss/, "sharing has a direction");
});

test("a shared answer of an abandoned block is not given to those who never knew that block", () => {
  const team = createFixture();
  const quick = createFixture({
    cached: team.cached,
    profileId: "quick",
    set: { cache: { isOn: true, shareWith: ["team"] } },
  });
  team.say('"abandoned"');
  const young = balance('"0x64"');
  team.ask("eth_getBalance", young);
  for (const number of [99, 100, 101]) team.push(number, "b");
  quick.push(101);
  for (const provider of quick.providers) quick.tracker.recordNamed(provider, "finalized", 100);
  assert.equal(quick.ask("eth_getBalance", young), '"0x1" miss');
});

test("memory is bounded, and what is asked for again stays longest", () => {
  const it = createFixture({ settings: { maxBytes: 32_768 } });
  const wanted = balance('"0x1"');
  it.ask("eth_getBalance", wanted);
  for (let n = 2; n <= 80; n++) {
    for (let index = 0; index < 5; index++)
      it.ask("eth_getStorageAt", `[${ADDRESS},"0x${index}","0x${n.toString(16)}"]`);
    assert.match(it.ask("eth_getBalance", wanted), /immutable/);
    assert.ok(it.cached.report().bytes <= 32_768);
  }
  const { entries, evicted } = it.cached.report();
  assert.ok(entries > 50 && evicted > 100, `${entries} kept, ${evicted} removed`);
});
