// Payments over real chains, as one process after the other runs them on the same store. Time is simulated: it moves only while nobody waits for a chain,
// and the chains' clocks follow it. Whatever leaves a process can be lost, spoiled or delayed, and can be its end.
import assert from "node:assert/strict";
import type { KyselyPlugin } from "kysely";
import { paymentsWith } from "../../../src/config/payments.ts";
import type { RailSettings } from "../../../src/core/payment.ts";
import { openPayments } from "../../../src/hosted/payments/open.ts";
import type { Payments } from "../../../src/hosted/payments/payments.ts";
import type { Store } from "../../../src/hosted/store.ts";
import type { World } from "../../../src/world.ts";
import { type ChainFault, type ChainProxy, startChainProxy } from "../../fakes/chain-proxy.ts";
import { type PaymentChain, type PaymentChains, startPaymentChains } from "../../fakes/payment-chains.ts";
import { type SimulatedWorld, simulatedWorld } from "../../fakes/world.ts";

/** Whose challenges they are. */
export const REALM = "svc.test";

/** Blocks that have to follow a payment on the EVM chain. */
export const DEPTH = 2;

/** What happens at a question to a chain; `die …` = the process ends before the question leaves it, or when the node has answered. */
export type QuestionFate = ChainFault | "die before" | "die after";

/** What happens at a write to the store; `fail` = it takes no effect, `lose` = its answer is lost; the process lives on or dies. */
export type WriteFate = "fine" | "fail" | "lose" | "die before" | "die after";

/** Decides about what leaves a process, by its number (the first one is 1) and its name. */
export interface Fates {
  readonly question?: (number: number, name: string) => QuestionFate;
  readonly write?: (number: number, name: string) => WriteFate;
}

/** How a process runs. */
export interface LifeOptions {
  readonly rails: readonly ("tempo" | "evm")[];
  readonly fates?: Fates;
  readonly node?: string;
  readonly waitMs?: number;
  /** Blocks that have to follow; without it none on Tempo, and `DEPTH` on the EVM chain. */
  readonly confirmations?: number;
}

/** One process. */
export interface Life {
  readonly payments: Payments;
  /** Rejects when it is dead: whoever waits for an answer gets none. */
  readonly end: Promise<never>;
  /** Accounts that were told to have changed. */
  readonly changed: readonly string[];
  /** Questions and writes so far. */
  readonly questions: () => number;
  readonly writes: () => number;
  isDead(): boolean;
  /** Nothing that it does takes effect any more. */
  kill(): void;
}

/** What outlives processes. */
export interface MatrixStage {
  readonly store: Store;
  readonly world: SimulatedWorld;
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
  /** Lets time go by until something has happened. */
  run<T>(work: Promise<T>): Promise<T>;
  pass(ms: number): Promise<void>;
  /** Base units that the recipient has got on both chains since the stage began. */
  received(): Promise<bigint>;
  /** Ends every process, and the chains. */
  close(): Promise<void>;
}

/** The deadline of a question to a chain: as long as a timer of this length runs, somebody waits for a chain. */
const QUESTION_MS = 5_000;
/** No other timer may be as long. */
const WAIT_MS = 4_000;
const BLOCK_MS = 1_000;
const FIRST_BLOCKS = 5;
const STEP_MS = 100;
const MAX_STEPS = 400_000;
const SECRET = "a secret of 32 bytes, for tests only";

class Dead extends Error {}

interface Mind {
  isDead: boolean;
  questions: number;
  writes: number;
  /** Questions that somebody waits for. */
  pending: number;
}

/** Starts both chains; blocks come with the stage's time alone. */
export async function startMatrixStage(store: Store): Promise<MatrixStage> {
  const chains = await startPaymentChains();
  const all = [chains.tempo, chains.evm];
  for (const { rpc } of all) {
    await rpc("evm_setIntervalMining", 0);
    await rpc("evm_setAutomine", false);
    // A reorganization takes away neither the token nor what its holders had.
    for (let blocks = 0; blocks < FIRST_BLOCKS; blocks += 1) await rpc("evm_mine");
  }
  const world = simulatedWorld(1);
  const heads = await Promise.all(all.map(timeOf));
  world.jump((Math.max(...heads) + 1) * 1_000 - world.wallMs());
  const received = async () => sum(await Promise.all(all.map((it) => it.balanceOf(chains.recipient.address))));
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
    lastS = Math.max(lastS + 1, Math.floor(world.wallMs() / 1_000));
    await away(Promise.all(all.map((it) => it.rpc("evm_mine", { timestamp: lastS }))));
  };
  const mine = (): void => {
    if (stage.areBlocksMade) void block();
    world.after(BLOCK_MS, mine);
  };
  world.after(BLOCK_MS, mine);

  const stage: MatrixStage = {
    store,
    world,
    chains,
    areBlocksMade: true,
    log: () => log,
    start: (options) => startLife({ store, world, chains, lives, write }, options),
    block,
    ask: (chain, method, ...params) => away(chain.rpc(method, ...params)),
    run: (work) => run(world, isBusy, work),
    pass: (ms) => run(world, isBusy, new Promise((resolve) => void world.after(ms, resolve))),
    received: async () => (await away(received())) - had,
    async close() {
      for (const kill of lives.values()) kill();
      await chains.close();
    },
  };
  return stage;
}

async function run<T>(world: SimulatedWorld, isBusy: () => boolean, work: Promise<T>): Promise<T> {
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  work.then(end, end);
  for (let steps = 0; ; steps++) {
    assert.ok(steps < MAX_STEPS, "it does not end");
    await turn();
    await turn();
    if (isOver) return work;
    if (isBusy()) await new Promise((resolve) => setTimeout(resolve, 1));
    else world.advance(STEP_MS);
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

interface LifeParts extends Pick<MatrixStage, "store" | "world" | "chains"> {
  /** Whether the processes that live wait for something that is not time, and what ends them. */
  readonly lives: Map<() => boolean, () => void>;
  readonly write: (line: string) => void;
}

async function startLife({ store, world, chains, lives, write }: LifeParts, options: LifeOptions): Promise<Life> {
  const mind: Mind = { isDead: false, questions: 0, writes: 0, pending: 0 };
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => {});
  const proxies = new Map<"tempo" | "evm", ChainProxy>();
  for (const rail of options.rails) proxies.set(rail, await startChainProxy(chains[rail].rpcUrl));
  const all = [...proxies.values()];
  const isBusy = (): boolean => mind.pending !== all.reduce((held, it) => held + it.held(), 0) || all.some((it) => it.orphans() > 0);
  const kill = (): void => {
    if (mind.isDead) return;
    mind.isDead = true;
    lives.delete(isBusy);
    for (const proxy of all) void proxy.close();
    ended.reject(new Dead("the process has ended"));
  };
  lives.set(isBusy, kill);
  for (const proxy of all) fated(proxy, { mind, kill, decide: options.fates?.question ?? (() => "pass") });
  const rails = options.rails.map((rail) => railAt(chains, rail, { rpcUrl: proxies.get(rail)?.url ?? "", confirmations: options.confirmations }));
  const changed: string[] = [];
  const told = (fields: unknown, message?: unknown): void => write(`${JSON.stringify(fields)} ${String(message)}\n`);
  try {
    const payments = await openPayments({
      store: mortal(store, { mind, kill, decide: options.fates?.write ?? (() => "fine") }),
      world: mortalTime(world, mind),
      log: { error: told, warn: told, info: told },
      changes: { key: (id) => void changed.push(id), account: (id) => void changed.push(id) },
      node: options.node ?? "main",
      settings: { ...paymentsWith(rails), waitMs: options.waitMs ?? WAIT_MS },
      realm: REALM,
      secret: SECRET,
      previousSecret: null,
    });
    return { payments, end: ended.promise, changed, questions: () => mind.questions, writes: () => mind.writes, isDead: () => mind.isDead, kill };
  } catch (error) {
    kill();
    throw error;
  }
}

function railAt(
  { rails }: PaymentChains,
  rail: "tempo" | "evm",
  { rpcUrl, confirmations }: { readonly rpcUrl: string; readonly confirmations: number | undefined },
): RailSettings {
  return rail === "tempo" ? { ...rails.tempo, rpcUrl, confirmations: confirmations ?? 0 } : { ...rails.evm, rpcUrl, confirmations: confirmations ?? DEPTH };
}

interface Fated<F> {
  readonly mind: Mind;
  readonly kill: () => void;
  readonly decide: (number: number, name: string) => F;
}

function fated(proxy: ChainProxy, { mind, kill, decide }: Fated<QuestionFate>): void {
  const last = new Set<string>();
  proxy.fault = (name, count) => {
    // Questions are known by their deadline: without it time would not wait for their answers.
    assert.ok(mind.pending > 0 || mind.isDead, `a question to a chain has no deadline of ${QUESTION_MS} ms`);
    if (mind.isDead) return "drop";
    const fate = decide(++mind.questions, name);
    if (fate === "die before") {
      kill();
      return "drop";
    }
    if (fate !== "die after") return fate;
    last.add(`${name} ${count}`);
    return "lose";
  };
  proxy.answered = (name, count) => {
    if (last.has(`${name} ${count}`)) kill();
  };
}

function mortalTime(world: World, mind: Mind): World {
  return {
    ...world,
    after(ms, run) {
      let isQuestion = ms === QUESTION_MS;
      if (isQuestion) mind.pending += 1;
      const over = (): void => {
        if (isQuestion) mind.pending -= 1;
        isQuestion = false;
      };
      const cancel = world.after(ms, () => {
        over();
        if (!mind.isDead) run();
      });
      return () => {
        over();
        cancel();
      };
    },
  };
}

const WRITES = new Set(["InsertQueryNode", "UpdateQueryNode", "DeleteQueryNode"]);

/** A store that a dead process cannot reach. What is written by one statement or in one transaction is one write; a transaction that has begun goes on. */
function mortal(store: Store, { mind, kill, decide }: Fated<WriteFate>): Store {
  const before = (name: string): WriteFate => {
    if (mind.isDead) throw new Dead("the process has ended");
    const fate = decide(++mind.writes, name);
    if (fate === "die before") kill();
    if (fate === "die before" || fate === "fail") throw new Dead(fate);
    return fate;
  };
  const after = (fate: WriteFate | undefined): void => {
    if (fate === "die after") kill();
    if (fate === "die after" || fate === "lose") throw new Dead(fate);
    if (mind.isDead) throw new Dead("the process has ended");
  };
  const fates = new WeakMap<object, WriteFate>();
  const plugin: KyselyPlugin = {
    transformQuery({ node, queryId }) {
      if (mind.isDead) throw new Dead("the process has ended");
      if (WRITES.has(node.kind)) fates.set(queryId, before(node.kind));
      return node;
    },
    async transformResult({ result, queryId }) {
      after(fates.get(queryId));
      return result;
    },
  };
  return {
    ...store,
    db: store.db.withPlugin(plugin),
    async transaction(run) {
      const fate = before("transaction");
      const result = await store.transaction(run);
      after(fate);
      return result;
    },
  };
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
