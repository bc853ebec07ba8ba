// Callers read their own writes: hash, receipt and next nonce of an accepted transaction are those
// of the best that any provider, or the service, knows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak256 } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { readBlockRef } from "../../../src/core/rpc/call.ts";
import { plainFailure } from "../../../src/core/rpc/failure.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";
import type { Answer } from "../../../src/upstream/engine/answer.ts";
import {
  type AcceptedMessage,
  type AcceptedTransaction,
  AcceptedTransactions,
} from "../../../src/upstream/engine/exchange/accepted-transactions.ts";
import { ViewReasks } from "../../../src/upstream/engine/layers/consistency.ts";
import { Router } from "../../../src/upstream/engine/router.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const ALICE = privateKeyToAccount(`0x${"11".repeat(32)}`);
const SENDER = ALICE.address.toLowerCase();
const SEND = "eth_sendRawTransaction";
const BY_HASH = "eth_getTransactionByHash";
const RECEIPT = "eth_getTransactionReceipt";
const COUNT = "eth_getTransactionCount";

/** What a provider answers: by method, the raw JSON of its result; absent = it fails. */
type Says = Record<string, string | undefined>;

const signed = (nonce: number, chainId = 1): Promise<`0x${string}`> =>
  ALICE.signTransaction({
    type: "eip1559",
    chainId,
    nonce,
    to: ALICE.address,
    gas: 21_000n,
    maxFeePerGas: 10n,
    maxPriorityFeePerGas: 1n,
  });

interface Asking {
  readonly caller?: string;
  readonly keyId?: string;
  readonly isOff?: boolean;
  readonly avoid?: readonly string[];
  readonly mayRoam?: boolean;
}

/** Providers by falling priority, all at block 100; the service behind them knows the curve. */
async function bench(count: number, shared?: AcceptedTransactions) {
  const runtime = simulatedWorld(7);
  const providers = Array.from({ length: count }, (_, n) =>
    fakeProvider(n, { priority: n, wsUrl: null }),
  );
  const tracker = new Tracker(fakeSet(providers), runtime, SELECTION);
  const see = (n: number, height: number): void => {
    const provider = providers[n] ?? assert.fail();
    const result = { kind: "ok", chainId: 1, height } as const;
    tracker.recordProbe({ provider, transport: "http", latencyMs: 1, result });
  };
  const seeAll = (height: number): void => {
    for (const n of providers.keys()) see(n, height);
  };
  seeAll(100);
  const accepted = shared ?? new AcceptedTransactions(runtime);
  await accepted.senders.load();
  const says: Says[] = providers.map(() => ({}));
  const asked: string[] = [];
  const reasks = new ViewReasks();
  const router = new Router({
    runtime,
    timerWheel: new TimerWheel(runtime),
    limits: () => ({ maxAttempts: 12, firstAttemptShare: 0.6 }),
    hedge: () => null,
    coalesce: () => true,
    accepted,
    reasks,
    upstreams: {
      http: {
        send({ provider, body }, listener) {
          const method = /"method":"(\w+)"/.exec(body.toString())?.[1] ?? "";
          const tag = /"(latest|pending|0x64|0x65)"\]/.exec(body.toString())?.[1];
          asked.push(`${provider.id} ${method}${tag === undefined ? "" : ` ${tag}`}`);
          const own = says[provider.index] ?? {};
          const text = own[`${method} ${tag}`] ?? own[method];
          let isCancelled = false;
          runtime.after(5, () => {
            if (isCancelled) return;
            if (text === undefined) return listener.failed(plainFailure("network", "reset"), null);
            if (text.startsWith("!")) {
              const about = { code: 4, message: "timeout", data: text.slice(1) };
              const failure = { ...plainFailure("error", "timeout"), ...about };
              return listener.failed(failure, Buffer.from(JSON.stringify(about)));
            }
            const answer = Buffer.from(text);
            listener.result(answer, { start: 0, end: answer.length, idAt: null });
          });
          return {
            sent: true,
            cancel() {
              isCancelled = true;
            },
          };
        },
      },
    },
  });
  const ask = (method: string, params: readonly unknown[], how: Asking = {}): string => {
    const bytes = Buffer.from(JSON.stringify(params));
    const row = methodOf(method);
    const block = readBlockRef(bytes, { start: 0, end: bytes.length }, row);
    const { caller = "alice", keyId = null, isOff = false } = how;
    const answers: Answer[] = [];
    router.route(
      {
        call: { methodName: method, method: row, block, ...writeRequest(method, bytes) },
        tracker,
        strategy: "priority",
        pin: null,
        transport: "http",
        avoid: how.avoid === undefined ? null : new Set(how.avoid),
        caller: { key: caller, keyId },
        deadlineMs: 10_000,
        mayStream: true,
        view: isOff ? undefined : tracker.blocks.view.current(),
        mayRoam: how.mayRoam,
      },
      (answer) => void answers.push(answer),
    );
    runtime.advance(500);
    seeAll(tracker.blocks.servedTip() ?? 100);
    const [answer, ...more] = answers;
    assert.equal(more.length, 0);
    if (answer?.outcome.kind !== "result") return answer?.outcome.kind ?? "nothing";
    const { body, start, end } = answer.outcome;
    return body.toString("latin1", start, end);
  };
  const take = (): readonly string[] => asked.splice(0);
  return { runtime, tracker, says, ask, take, see, seeAll, accepted, reasks };
}

/** A bench whose first provider has accepted a transaction of nonce 5. */
async function accepting(count = 3) {
  const it = await bench(count);
  const raw = await signed(5);
  const hash = keccak256(raw);
  const [first, ...others] = it.says;
  assert.ok(first !== undefined);
  Object.assign(first, { [SEND]: `"${hash}"`, [BY_HASH]: `{"hash":"${hash}"}`, [RECEIPT]: "null" });
  for (const other of others) Object.assign(other, { [BY_HASH]: "null", [RECEIPT]: "null" });
  for (const any of it.says)
    Object.assign(any, { [`${COUNT} pending`]: '"0x5"', [COUNT]: '"0x5"' });
  assert.equal(it.ask(SEND, [raw]), `"${hash}"`);
  it.take();
  return { ...it, raw, hash };
}

test("who accepted a transaction is asked for it first, also when it stands behind others", async () => {
  const it = await bench(3);
  const raw = await signed(5);
  const hash = keccak256(raw);
  it.says[2] = { [SEND]: `"${hash}"`, [BY_HASH]: `{"hash":"${hash}"}` };
  it.says[1] = { [BY_HASH]: "null" };
  it.says[0] = { [BY_HASH]: "null" };
  assert.equal(it.ask(SEND, [raw], { avoid: ["p0", "p1"] }), `"${hash}"`);
  it.take();
  assert.equal(it.ask(BY_HASH, [hash]), `{"hash":"${hash}"}`);
  assert.deepEqual(it.take(), [`p2 ${BY_HASH}`]);
  // Without a view the order is that of the strategy, and nothing is added.
  assert.equal(it.ask(BY_HASH, [hash], { isOff: true }), "null");
  assert.deepEqual(it.take(), [`p0 ${BY_HASH}`]);
});

test("after null each of the others is asked once a block; who found it is asked first then", async () => {
  const it = await accepting(4);
  Object.assign(it.says[0] ?? {}, { [BY_HASH]: undefined });
  Object.assign(it.says[3] ?? {}, { [BY_HASH]: `{"hash":"${it.hash}"}` });
  assert.equal(it.ask(BY_HASH, [it.hash], { caller: "bob" }), `{"hash":"${it.hash}"}`);
  assert.deepEqual(it.take().slice(0, 2), [`p0 ${BY_HASH}`, `p1 ${BY_HASH}`]);
  assert.equal(it.reasks.own, 2, "p0 failed, and p1 was asked in its place");
  Object.assign(it.says[0] ?? {}, { [BY_HASH]: "null" });
  assert.equal(it.ask(BY_HASH, [it.hash], { caller: "bob" }), `{"hash":"${it.hash}"}`);
  Object.assign(it.says[3] ?? {}, { [BY_HASH]: "null" });
  it.take();
  assert.equal(it.ask(BY_HASH, [it.hash], { caller: "bob" }), "null");
  assert.equal(it.take().length, 4);
  assert.equal(it.ask(BY_HASH, [it.hash], { caller: "bob" }), "null");
  assert.equal(it.take().length, 1, "in vain: not again before the next block");
  it.seeAll(101);
  assert.equal(it.ask(BY_HASH, [it.hash], { caller: "bob" }), "null");
  assert.equal(it.take().length, 4);
});

test("a transaction that nobody finds is pending for its sender's key alone", async () => {
  const it = await accepting();
  Object.assign(it.says[0] ?? {}, { [BY_HASH]: "null" });
  const told = JSON.parse(it.ask(BY_HASH, [it.hash]));
  assert.deepEqual(
    [told.hash, told.from, told.nonce, told.blockNumber],
    [it.hash, SENDER, "0x5", null],
  );
  assert.deepEqual(it.take().at(-1), "p0 eth_getTransactionCount 0x64", "at the tip");
  assert.deepEqual(JSON.parse(it.ask(BY_HASH, [it.hash])), told);
  assert.equal(it.take().length, 1, "nobody else is asked again for the same block");
  assert.equal(it.ask(BY_HASH, [it.hash], { caller: "bob" }), "null");
  assert.equal(it.ask(BY_HASH, [it.hash], { keyId: "k2" }), "null", "another key");
  assert.equal(it.ask(RECEIPT, [it.hash]), "null");
  it.runtime.advance(600_000);
  it.seeAll(100);
  assert.equal(it.ask(BY_HASH, [it.hash]), "null", "for ten minutes");
});

test("it is pending no more when its nonce was used by another transaction", async () => {
  const it = await accepting();
  Object.assign(it.says[0] ?? {}, { [BY_HASH]: "null" });
  for (const any of it.says) any[`${COUNT} 0x65`] = '"0x6"';
  assert.notEqual(it.ask(BY_HASH, [it.hash]), "null");
  it.seeAll(101);
  assert.equal(it.ask(BY_HASH, [it.hash]), "null");
});

test("a receipt is asked of all who have the tip before it is null", async () => {
  const it = await accepting();
  it.seeAll(101);
  const receipt = `{"transactionHash":"${it.hash}","blockNumber":"0x65"}`;
  Object.assign(it.says[2] ?? {}, { [RECEIPT]: receipt });
  assert.equal(it.ask(RECEIPT, [it.hash]), receipt);
  it.take();
  Object.assign(it.says[2] ?? {}, { [RECEIPT]: "null" });
  assert.equal(it.ask(RECEIPT, [it.hash]), "null");
  assert.equal(it.take().length, 3);
});

test("the next nonce goes on with our own run, and has no gap", async () => {
  const it = await accepting();
  const nonce = (how?: Asking) => it.ask(COUNT, [SENDER, "pending"], how);
  assert.equal(nonce(), '"0x6"');
  assert.equal(nonce({ caller: "bob" }), '"0x6"');
  assert.equal(nonce({ isOff: true }), '"0x5"');
  for (const n of [7, 8]) {
    const raw = await signed(n);
    Object.assign(it.says[0] ?? {}, { [SEND]: `"${keccak256(raw)}"` });
    it.ask(SEND, [raw]);
  }
  it.take();
  assert.equal(nonce(), '"0x6"', "6 is missing");
  assert.equal(it.take().length, 2, "another provider was asked for it");
  for (const [n, any] of it.says.entries()) any[`${COUNT} pending`] = n === 0 ? '"0x5"' : '"0x7"';
  assert.equal(nonce(), '"0x9"', "a provider knows the missing one");
  for (const any of it.says) any[`${COUNT} pending`] = '"0xb"';
  assert.equal(nonce(), '"0xb"', "never lower than what a provider says");
  for (const any of it.says) any[`${COUNT} pending`] = '"0x3"';
  assert.equal(nonce(), '"0x3"', "no run begins there");
});

test("private transactions count for their own key alone", async () => {
  const it = await bench(2);
  const raw = await signed(5);
  const hash = keccak256(raw);
  for (const any of it.says)
    Object.assign(any, {
      eth_sendPrivateTransaction: `"${hash}"`,
      [BY_HASH]: "null",
      [COUNT]: '"0x5"',
    });
  assert.equal(it.ask("eth_sendPrivateTransaction", [{ tx: raw }]), `"${hash}"`);
  const nonce = (how?: Asking) => it.ask(COUNT, [SENDER, "pending"], how);
  assert.deepEqual([nonce(), nonce({ caller: "bob" })], ['"0x6"', '"0x5"']);
  it.take();
  assert.equal(it.ask(BY_HASH, [hash], { caller: "bob" }), "null");
  assert.equal(it.take().length, 1, "nor is it noticed by how many are asked");
  assert.equal(JSON.parse(it.ask(BY_HASH, [hash])).hash, hash);
});

test("an answer that names another hash is no acceptance, and one whose error says so is", async () => {
  const it = await bench(2);
  it.says[0] = { [SEND]: `"0x${"00".repeat(32)}"` };
  it.ask(SEND, [await signed(6)]);
  assert.equal(it.accepted.count, 0);
  const raw = await signed(5);
  it.says[0] = { eth_sendRawTransactionSync: `!${keccak256(raw)}` };
  it.ask("eth_sendRawTransactionSync", [raw]);
  assert.equal(it.accepted.count, 1);
});

test("a transaction takes the place of one with the same nonce", async () => {
  const it = await accepting();
  const raw = await signed(5, 2);
  Object.assign(it.says[0] ?? {}, { [SEND]: `"${keccak256(raw)}"`, [BY_HASH]: "null" });
  it.ask(SEND, [raw]);
  assert.equal(it.ask(BY_HASH, [it.hash]), "null");
  assert.notEqual(it.ask(BY_HASH, [keccak256(raw)]), "null");
  assert.equal(it.ask(COUNT, [SENDER, "pending"]), '"0x6"');
});

test("what another process accepted is known here", async () => {
  const here = await bench(2);
  const there = new AcceptedTransactions(here.runtime);
  const told: AcceptedMessage[] = [];
  here.accepted.onAccepted((message) => told.push(message));
  const raw = await signed(5);
  const hash = keccak256(raw);
  here.says[0] = { [SEND]: `"${hash}"` };
  here.ask(SEND, [raw]);
  const [message, ...more] = told;
  assert.ok(message !== undefined && more.length === 0);
  assert.deepEqual([message.sender, message.nonce, message.hash], [SENDER, 5, hash]);
  there.hear(message, 12_000);
  const other = await bench(2, there);
  for (const any of other.says) Object.assign(any, { [BY_HASH]: "null", [COUNT]: '"0x5"' });
  assert.equal(other.ask(COUNT, [SENDER, "pending"]), '"0x6"');
  assert.equal(JSON.parse(other.ask(BY_HASH, [hash])).hash, hash);
  there.hear({ ...message, hash: `0x${"00".repeat(32)}` }, 12_000);
  assert.notEqual(there.get(other.tracker, hash), null, "not believed: another hash");
});

test("who goes from process to process is not told null while the hint is on its way", async () => {
  const there = await accepting(1);
  const here = await bench(1);
  here.says[0] = { eth_getTransactionByHash: "null" };
  const messages: AcceptedMessage[] = [];
  const leave = there.accepted.onAccepted((message) => messages.push(message));
  here.accepted.onAccepted(() => {});
  assert.equal(there.ask("eth_sendRawTransaction", [there.raw]), `"${there.hash}"`);
  leave();
  const [message = assert.fail()] = messages;
  here.runtime.after(60, () => here.accepted.hear(message, 12_000));
  const found = here.ask("eth_getTransactionByHash", [there.hash], { mayRoam: true });
  assert.match(found, /"blockNumber":null/);
  assert.equal(
    here.ask("eth_getTransactionByHash", [`0x${"9".repeat(64)}`], { mayRoam: true }),
    "null",
  );
});

test("a write goes first to a provider that has the tip", async () => {
  const it = await bench(3);
  const raw = await signed(5);
  for (const any of it.says) any[SEND] = `"${keccak256(raw)}"`;
  for (const n of [1, 2]) it.see(n, 101);
  it.ask(SEND, [raw]);
  assert.deepEqual(it.take(), [`p1 ${SEND}`]);
  it.ask(SEND, [await signed(6)], { isOff: true });
  assert.deepEqual(it.take(), [`p0 ${SEND}`]);
});

test("the memory is bounded, in all and for one caller, and forgets", async () => {
  const it = await bench(1);
  const raw = Buffer.alloc(100_000, 1);
  const accept = (n: number, key: string): AcceptedTransaction => {
    const about = { caller: { key, keyId: `${key} ${n}` }, providers: ["p0"], isPrivate: false };
    const hash = `0x${n.toString(16).padStart(64, "0")}`;
    return it.accepted.accept(it.tracker, { ...about, raw, hash });
  };
  const other = accept(0, "other");
  for (let n = 1; n <= 200; n++) accept(n, "greedy");
  const get = (hash: string) => it.accepted.get(it.tracker, hash);
  assert.equal(it.accepted.bytes < 10_000_000, true, "an eighth of what all may have");
  assert.equal(get(other.hash), other, "others lose nothing by it");
  assert.notEqual(get(`0x${(200).toString(16).padStart(64, "0")}`), null);
  for (let n = 1_000; n < 2_000; n++) accept(n, `caller ${n}`);
  assert.equal(it.accepted.bytes <= 67_108_864, true);
  assert.equal(get(other.hash), null, "the oldest goes first");
  it.runtime.advance(128 * 12_000);
  accept(3_000, "late");
  assert.deepEqual([it.accepted.count, it.accepted.bytes], [1, raw.length + 1_024]);
});
