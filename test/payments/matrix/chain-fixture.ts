// Payments over real chains, as one process after the other runs them on the same store. Time is
// simulated: it moves only while nobody waits for a chain, and the chains' clocks follow it.
import assert from "node:assert/strict";
import type { Store } from "../../../src/shared/store/store.ts";
import {
  type PaymentChain,
  type PaymentChains,
  startPaymentChains,
} from "../../fakes/payment-chains.ts";
import { type SimulatedWorld, simulatedWorld } from "../../fakes/runtime.ts";
import { type Life, type LifeOptions, startLife } from "./process-fixture.ts";

/** What outlives processes. */
export interface MatrixFixture {
  readonly store: Store;
  readonly runtime: SimulatedWorld;
  readonly chains: PaymentChains;
  /** False = no blocks are made. */
  areBlocksMade: boolean;
  /** Everything that was logged. */
  readonly log: () => string;
  start(options: LifeOptions): Promise<Life>;
  /** Makes a block on both chains, whatever the time is. */
  block(): Promise<void>;
  /** Asks a node on the test's own behalf; time stands still meanwhile. */
  ask(chain: PaymentChain, method: string, ...params: readonly unknown[]): Promise<unknown>;
  /**
   * Lets time go by until something has happened, and then waits, while time stands still, until
   * nobody waits for a chain: what a test does to a chain next falls between two steps of the
   * processes, never into one.
   */
  run<T>(work: Promise<T>): Promise<T>;
  pass(ms: number): Promise<void>;
  /** Base units that the recipient has got on both chains since the fixture began. */
  received(): Promise<bigint>;
  /** Ends every process, and the chains where they are the fixture's own. */
  close(): Promise<void>;
}

const BLOCK_MS = 1_000;
const FIRST_BLOCKS = 5;
const STEP_MS = 50;
const MAX_STEPS = 400_000;

/** Starts both chains, which make no block by themselves. */
export async function startMatrixChains(): Promise<PaymentChains> {
  const chains = await startPaymentChains();
  for (const { rpc } of [chains.tempo, chains.evm]) {
    await rpc("evm_setIntervalMining", 0);
    await rpc("evm_setAutomine", false);
  }
  return chains;
}

/** Remembers both chains as they are; the function that it returns makes them so again. */
export async function rememberChains({ tempo, evm }: PaymentChains): Promise<() => Promise<void>> {
  const all = [tempo, evm];
  const ids = await Promise.all(all.map(({ rpc }) => rpc("evm_snapshot")));
  return async () => {
    for (const [at, { rpc }] of all.entries()) {
      await rpc("anvil_dropAllTransactions");
      assert.equal(await rpc("evm_revert", ids[at]), true);
    }
  };
}

/** Payments over chains of its own, or over running ones; blocks come with its time alone. */
export async function startMatrixFixture(
  store: Store,
  running?: PaymentChains,
): Promise<MatrixFixture> {
  const chains = running ?? (await startMatrixChains());
  const all = [chains.tempo, chains.evm];
  // A reorganization takes away neither the token nor what its holders had.
  for (const { rpc } of all)
    for (let blocks = 0; blocks < FIRST_BLOCKS; blocks += 1) await rpc("evm_mine");
  const runtime = simulatedWorld(1);
  const heads = await Promise.all(all.map(timeOf));
  runtime.jump((Math.max(...heads) + 1) * 1_000 - runtime.wallMs());
  const received = async () =>
    sum(await Promise.all(all.map((it) => it.balanceOf(chains.recipient.address))));
  const had = await received();
  const lives = new Map<() => boolean, () => void>();
  let outside = 0;
  let log = "";
  const write = (line: string): void => {
    log += line;
  };
  const isBusy = (): boolean => outside > 0 || Array.from(lives.keys()).some((it) => it());

  async function away<T>(work: Promise<T>): Promise<T> {
    outside += 1;
    return work.finally(() => {
      outside -= 1;
    });
  }
  let lastS = Math.max(...heads);
  const block = async (): Promise<void> => {
    lastS = Math.max(lastS + 1, Math.floor(runtime.wallMs() / 1_000));
    await away(Promise.all(all.map((it) => it.rpc("evm_mine", { timestamp: lastS }))));
  };
  const mine = (): void => {
    if (fixture.areBlocksMade) void block();
    runtime.after(BLOCK_MS, mine);
  };
  runtime.after(BLOCK_MS, mine);

  const fixture: MatrixFixture = {
    store,
    runtime,
    chains,
    areBlocksMade: true,
    log: () => log,
    start: (options) => startLife({ store, runtime, chains, lives, write }, options),
    block,
    ask: (chain, method, ...params) => away(chain.rpc(method, ...params)),
    run: (work) => run(runtime, isBusy, work),
    pass: (ms) => run(runtime, isBusy, new Promise((resolve) => void runtime.after(ms, resolve))),
    received: async () => (await away(received())) - had,
    async close() {
      for (const kill of lives.values()) kill();
      if (running === undefined) await chains.close();
    },
  };
  return fixture;
}

async function run<T>(
  runtime: SimulatedWorld,
  isBusy: () => boolean,
  work: Promise<T>,
): Promise<T> {
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  work.then(end, end);
  for (let steps = 0; ; steps++) {
    assert.ok(steps < MAX_STEPS, "it does not end");
    await turn();
    await turn();
    if (isOver && !isBusy()) return work;
    if (isBusy()) await new Promise((resolve) => setTimeout(resolve, 1));
    else runtime.advance(STEP_MS);
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

async function timeOf({ rpc }: PaymentChain): Promise<number> {
  const { timestamp } = parseBlock(await rpc("eth_getBlockByNumber", "latest", false));
  return Number(timestamp);
}

function parseBlock(value: unknown): { readonly timestamp: string } {
  return value as { readonly timestamp: string };
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((all, it) => all + it, 0n);
}
