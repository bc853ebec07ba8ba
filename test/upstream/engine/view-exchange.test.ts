// The view of the chain that the processes of a service share: tips and accepted transactions reach
// every worker and every node, once and within bounds, and what cannot be is not believed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak256 } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { Bus } from "../../../src/core/workers/bus.ts";
import { createLocalBus } from "../../../src/shared/processes/bus-endpoint.ts";
import { AcceptedTransactions } from "../../../src/upstream/engine/exchange/accepted-transactions.ts";
import {
  hintOf,
  hintText,
  ViewExchange,
  type ViewHint,
} from "../../../src/upstream/engine/exchange/view-exchange.ts";
import { Tracker } from "../../../src/upstream/health/tracker.ts";
import { testBus } from "../../cluster/bus-fixture.ts";
import { fakeProvider, fakeSet, SELECTION } from "../../fakes/providers.ts";
import type { SimulatedWorld } from "../../fakes/runtime.ts";

const ALICE = privateKeyToAccount(`0x${"11".repeat(32)}`);
const SENDER = ALICE.address.toLowerCase();
const SET = "public test";

/** The bus of a process that is alone. */
const busOf = (world: SimulatedWorld): Bus =>
  createLocalBus(world, (error) => assert.fail(`${error}`));

/** A process with one set; it tells other nodes by texts. */
async function processOf(world: SimulatedWorld, bus: Bus) {
  const providers = [fakeProvider(0), fakeProvider(1)];
  const settings = { ...SELECTION, profileId: "public" };
  const tracker = new Tracker(fakeSet(providers), world, settings);
  const accepted = new AcceptedTransactions(world);
  await accepted.senders.load();
  const trackersByKey = () => new Map([[SET, tracker]]);
  const exchange = new ViewExchange({ runtime: world, accepted, trackersByKey, bus });
  exchange.watch();
  const texts: string[] = [];
  const receivers: ((text: string) => void)[] = [];
  exchange.join({
    tell: (text) => void texts.push(text),
    subscribe(receive) {
      receivers.push(receive);
      return () => {};
    },
  });
  const see = (height: number): void => {
    for (const provider of providers) {
      const result = { kind: "ok", chainId: 1, height } as const;
      tracker.recordProbe({ provider, transport: "http", latencyMs: 1, result });
    }
  };
  const hear = (text: string): void => {
    for (const receive of receivers) receive(text);
  };
  /** A provider accepts a transaction of a caller. */
  const accept = async (nonce: number): Promise<string> => {
    const raw = await ALICE.signTransaction({ nonce, gas: 21_000n, gasPrice: 1n, chainId: 1 });
    const signed = { raw: Buffer.from(raw.slice(2), "hex"), hash: keccak256(raw) };
    const about = { caller: { key: "a", keyId: "k" }, providers: ["p0"], isPrivate: false };
    accepted.settle(accepted.accept(tracker, { ...signed, ...about }));
    return signed.hash;
  };
  texts.length = 0;
  const nonce = (): number => {
    const pending = accepted.pendingOf(tracker, SENDER, { key: "account", keyId: "k" });
    let next = 0;
    while (pending.has(next)) next += 1;
    return next;
  };
  const tip = (): number | null => tracker.blocks.view.tip?.number ?? null;
  return { tracker, accepted, exchange, texts, see, hear, accept, nonce, tip };
}

async function workers(count: number) {
  const ids = Array.from({ length: count }, (_, at) => String(at + 1));
  const bus = testBus(ids);
  const processes = await Promise.all(ids.map((id) => processOf(bus.world, bus.worker(id).bus)));
  const [first, second, ...others] = processes;
  assert.ok(first !== undefined && second !== undefined);
  return { world: bus.world, first, second, others };
}

test("what one worker accepted, every worker and other node knows", async () => {
  const { first, second, world } = await workers(2);
  const elsewhere = await processOf(world, busOf(world));
  const hash = await first.accept(0);
  assert.deepEqual([second.nonce(), second.texts.length], [1, 0]);
  const [text, ...more] = first.texts;
  assert.ok(text !== undefined && more.length === 0);
  elsewhere.hear(text);
  assert.equal(elsewhere.nonce(), 1);
  const transaction = elsewhere.accepted.get(elsewhere.tracker, hash) ?? assert.fail();
  assert.deepEqual([...transaction.providers], ["p0"]);
  assert.equal(JSON.parse(elsewhere.accepted.pendingText(transaction) ?? "null").from, SENDER);
  assert.deepEqual(elsewhere.texts, [], "what was heard is not told again");
});

test("a tip reaches the other workers, and other nodes by one of them", async () => {
  const { first, second, world } = await workers(2);
  const elsewhere = await processOf(world, busOf(world));
  for (const each of [first, second, elsewhere]) each.see(100);
  world.advance(200);
  for (const each of [first, second, elsewhere]) each.texts.length = 0;
  second.see(101);
  assert.equal(first.tip(), 101);
  assert.equal(second.texts.length, 0, "the first worker speaks for the node");
  assert.equal(first.texts.length, 1);
  for (const text of first.texts) elsewhere.hear(text);
  assert.equal(elsewhere.tip(), 101);
  assert.deepEqual(elsewhere.texts, []);
});

test("tips that follow each other closely are told as one, the newest", async () => {
  const { first, second, world } = await workers(2);
  for (const each of [first, second]) each.see(100);
  world.advance(200);
  first.texts.length = 0;
  for (const height of [101, 102, 103]) first.see(height);
  assert.equal(first.texts.length, 1);
  assert.equal(second.tip(), 101);
  world.advance(50);
  assert.equal(second.tip(), 103);
  assert.equal(first.texts.length, 2);
});

test("tips too far ahead, of another chain or an unknown set are not believed", async () => {
  const { first, world } = await workers(2);
  first.see(100);
  world.advance(200);
  const tip = { kind: "tip", set: SET, chainId: 1, hash: null } as const;
  for (const hint of [
    { ...tip, number: 106 },
    { ...tip, number: 101, chainId: 2 },
    { ...tip, number: 101, set: "other test" },
    { ...tip, number: 99 },
  ])
    first.hear(hintText(hint));
  assert.equal(first.tip(), 100);
  first.hear(hintText({ ...tip, number: 105 }));
  assert.equal(first.tip(), 105);
  for (const text of ["", "null", "[]", "{", '{"kind":"tip"}', '{"kind":"other","set":"a"}'])
    first.hear(text);
});

test("a worker and a node that begin are told of what was accepted, with its age", async () => {
  const bus = testBus(["1", "2", "3"]);
  const processes = [];
  for (const id of ["1", "2"]) processes.push(await processOf(bus.world, bus.worker(id).bus));
  const [first, second] = processes;
  assert.ok(first !== undefined && second !== undefined);
  const hash = await second.accept(0);
  bus.world.advance(300_000);
  const later = await processOf(bus.world, bus.worker("3").bus);
  assert.equal(later.nonce(), 1);
  const node = await processOf(bus.world, busOf(bus.world));
  for (const each of [first, second, later]) each.texts.length = 0;
  bus.world.advance(1_000);
  for (const each of [first, second, later]) each.hear(hintText({ kind: "hello" }));
  assert.deepEqual(
    [first, second, later].map(({ texts }) => texts.length),
    [1, 0, 0],
  );
  for (const text of first.texts) node.hear(text);
  assert.equal(node.nonce(), 1);
  bus.world.advance(299_000);
  assert.equal(node.nonce(), 0, "ten minutes from when it was accepted");
  assert.notEqual(node.accepted.get(node.tracker, hash), null);
});

test("hints come back as they were told; what is malformed does not", () => {
  const place = { set: SET, chainId: 1 };
  const transaction: ViewHint = {
    kind: "transaction",
    ...place,
    ...{ hash: `0x${"ab".repeat(32)}`, raw: Buffer.of(2, 255), sender: SENDER, nonce: 7 },
    ...{ providers: ["p0"], caller: "key é", account: "account 1", isPrivate: true, ageMs: 5 },
  };
  const hints: readonly ViewHint[] = [
    { kind: "tip", ...place, number: 1, hash: null },
    transaction,
    { ...transaction, raw: null, sender: null, nonce: null },
  ];
  for (const hint of hints) assert.deepEqual(hintOf(hintText(hint)), hint);
  const bad = [
    { ...transaction, hash: "0x1" },
    { ...transaction, raw: Buffer.alloc(131_073) },
    { ...transaction, providers: Array.from({ length: 17 }, () => "p") },
    { ...transaction, nonce: -1 },
  ];
  for (const hint of bad) assert.equal(hintOf(hintText(hint)), null);
});
