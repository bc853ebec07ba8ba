// How long a wallet lasts without the store, and how long its calls wait for a store that is
// silent: pure arithmetic and simulated time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { grantOf } from "../../../src/hosted/credit/lease.ts";
import { RefillBatcher, WAIT_MS } from "../../../src/hosted/credit/refill-batcher.ts";
import { leaseRequestOf, receive, Wallet } from "../../../src/hosted/credit/wallet.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

const SLICE = 500_000;
const LEASED_MS = 15_000;
const STEP_MS = 10;

/** A wallet that is spent at a steady rate, refilled from a balance as it asks. */
class Spending {
  readonly wallet = new Wallet("acc_a", { nowMs: 0, isKept: true });
  balanceN: number;
  nowMs = 0;
  refills = 0;
  readonly #perStepN: number;

  constructor(balanceN: number, perSecondN: number) {
    this.balanceN = balanceN;
    this.#perStepN = (perSecondN * STEP_MS) / 1_000;
  }

  /** Spends for a time; false = it ran dry before. */
  spend(ms: number, isSilent = false): boolean {
    const { wallet } = this;
    for (const endMs = this.nowMs + ms; this.nowMs < endMs; this.nowMs += STEP_MS) {
      if (wallet.availableN < this.#perStepN) wallet.shortN += this.#perStepN;
      if (!isSilent && (wallet.shortN > 0 || wallet.availableN < wallet.lowWaterN)) this.#refill();
      if (wallet.availableN < this.#perStepN) return false;
      wallet.availableN -= this.#perStepN;
    }
    return true;
  }

  #refill(): void {
    const { wallet, nowMs } = this;
    this.refills++;
    const terms = { leasedMs: LEASED_MS, minSliceN: SLICE };
    const request = leaseRequestOf(wallet, nowMs, terms);
    const grantN = grantOf(this.balanceN, request, SLICE);
    this.balanceN -= grantN;
    const none = { isDry: false, usedCu: 0, exhaustedAtMs: null };
    const answer = { grantedN: wallet.grantedN + grantN, leftN: this.balanceN, ...none };
    receive(wallet, answer, { nowMs, month: 0 });
  }
}

test("a lease lasts towards half the node timeout at any rate, whenever the store falls silent", () => {
  for (const perSecondN of [1_000_000, 50_000_000, 5_000_000_000])
    for (const loadMs of [10_000, 11_230, 12_340, 13_450, 14_560]) {
      const it = new Spending(1e15, perSecondN);
      assert.ok(it.spend(loadMs));
      assert.ok(it.wallet.availableN <= 1.01 * perSecondN * (LEASED_MS / 1_000) + SLICE);
      assert.ok(it.refills <= 10 + loadMs / 1_000, `${it.refills} refills in ${loadMs} ms`);
      assert.ok(it.spend(10_000, true), `${perSecondN} a second, silent after ${loadMs} ms`);
    }
});

test("a balance that lasts for less is spent to the end, and no more than it", () => {
  const it = new Spending(100_000_000, 10_000_000);
  assert.ok(it.spend(9_900));
  assert.equal(it.spend(1_000), false);
  assert.ok(it.balanceN === 0 && it.wallet.availableN < 100_000);
});

test("calls wait once for a store that is silent; then they are told at once, until it answers", async () => {
  const world = simulatedWorld(1);
  let answer: { resolve(): void; reject(error: Error): void } | null = null;
  const batcher = new RefillBatcher({
    runtime: world,
    run: () =>
      new Promise((resolve, reject) => {
        answer = { resolve, reject };
      }),
    failed: () => {},
    onError: assert.ifError,
  });
  const waits: number[] = [];
  let wallets = 0;
  const call = (): void => {
    const at = world.now();
    const nowMs = at;
    const wallet = new Wallet(`acc_${++wallets}`, { nowMs, isKept: true });
    batcher.wait(wallet, () => waits.push(world.now() - at));
  };
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 10) {
      world.advance(10);
      await Promise.resolve();
      await Promise.resolve();
      await Promise.resolve();
    }
  };
  const end = async (how: "resolve" | "reject"): Promise<void> => {
    assert.ok(answer !== null);
    if (how === "resolve") answer.resolve();
    else answer.reject(new Error("statement timeout"));
    await pass(20);
  };
  call();
  await pass(500);
  call();
  await pass(WAIT_MS - 500);
  assert.deepEqual(waits.splice(0), [WAIT_MS, WAIT_MS - 500], "both ended at one moment");
  call();
  await pass(20);
  assert.ok(Number(waits.splice(0)[0]) <= 10);
  await pass(3_000);
  await end("reject");
  // The next round is out, and silent as well.
  await pass(500);
  call();
  await pass(20);
  assert.ok(Number(waits.splice(0)[0]) <= 10, "nobody waits again");
  // It fails sooner than a call would wait, as all do once the node may not spend: no answer yet.
  await end("reject");
  call();
  await pass(20);
  assert.ok(Number(waits.splice(0)[0]) <= 10, "nobody waits for the next round either");
  await pass(300);
  await end("resolve");
  await end("resolve");
  await pass(100);
  call();
  await pass(50);
  assert.equal(waits.length, 0, "it answers: the call waits for the next round");
  await end("resolve");
  assert.equal(waits.length, 1);
});
