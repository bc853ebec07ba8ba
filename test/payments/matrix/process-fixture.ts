// One process of payments over real chains: its questions to them and its writes to the store are
// numbered, and can be lost, spoiled, delayed, or the last thing that it does. A dead process
// changes nothing any more.

import assert from "node:assert/strict";
import type { KyselyPlugin } from "kysely";
import { BENEFICIARIES } from "../../../src/app/beneficiaries.ts";
import { paymentsOf, payments as paymentsShape } from "../../../src/config/hosted.ts";
import type { Payments } from "../../../src/payments/payments.ts";
import type { RailSettings } from "../../../src/payments/rails/rails.ts";
import { openPayments } from "../../../src/payments/start.ts";
import type { Runtime } from "../../../src/runtime.ts";
import type { Store } from "../../../src/shared/store/store.ts";
import { type ChainFault, type ChainProxy, startChainProxy } from "../../fakes/chain-proxy.ts";
import { ALONE } from "../../fakes/jobs.ts";
import type { PaymentChains } from "../../fakes/payment-chains.ts";

/** Blocks that have to follow a payment on the EVM chain. */
export const DEPTH = 2;

/**
 * What happens at a question to a chain; `die …` = the process ends before the question leaves it,
 * or when the node has answered.
 */
export type QuestionFate = ChainFault | "die before" | "die after";

/**
 * What happens at a write to the store; `fail` = it takes no effect, `lose` = its answer is lost;
 * the process lives on or dies.
 */
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
  /** Rejects when it is dead: one who waits for an answer gets none. */
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

/** What outlives it. */
export interface LifeParts {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly chains: PaymentChains;
  /**
   * Of the processes that live: whether they wait for something that is not time, and what ends
   * them.
   */
  readonly lives: Map<() => boolean, () => void>;
  /** Writes to the log. */
  readonly write: (line: string) => void;
}

/**
 * The deadline of a question to a chain: as long as a timer of this length runs, somebody waits for
 * a chain.
 */
const QUESTION_MS = 5_000;
/** No other timer may be as long. */
const WAIT_MS = 4_000;
const REALM = "svc.test";
const SECRET = "a secret of 32 bytes, for tests only";

class Dead extends Error {}

interface Mind {
  isDead: boolean;
  questions: number;
  writes: number;
  /** Questions that somebody waits for. */
  pending: number;
}

/** Starts a process; rejects when it dies meanwhile. */
export async function startLife(
  { store, runtime, chains, lives, write }: LifeParts,
  options: LifeOptions,
): Promise<Life> {
  const mind: Mind = { isDead: false, questions: 0, writes: 0, pending: 0 };
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => {});
  const proxies = new Map<"tempo" | "evm", ChainProxy>();
  for (const rail of options.rails) proxies.set(rail, await startChainProxy(chains[rail].rpcUrl));
  const all = [...proxies.values()];
  const isBusy = (): boolean =>
    mind.pending !== all.reduce((held, it) => held + it.held(), 0) ||
    all.some((it) => it.orphans() > 0);
  const kill = (): void => {
    if (mind.isDead) return;
    mind.isDead = true;
    lives.delete(isBusy);
    for (const proxy of all) void proxy.close();
    ended.reject(new Dead("the process has ended"));
  };
  lives.set(isBusy, kill);
  for (const proxy of all)
    fated(proxy, { mind, kill, decide: options.fates?.question ?? (() => "pass") });
  const rails = options.rails.map((rail) =>
    railAt(chains, rail, {
      rpcUrl: proxies.get(rail)?.url ?? "",
      confirmations: options.confirmations,
    }),
  );
  const changed: string[] = [];
  const told = (fields: unknown, message?: unknown): void =>
    write(`${JSON.stringify(fields)} ${String(message)}\n`);
  try {
    const payments = await openPayments({
      store: mortal(store, { mind, kill, decide: options.fates?.write ?? (() => "fine") }),
      runtime: mortalTime(runtime, mind),
      log: { error: told, warn: told, info: told },
      beneficiaries: BENEFICIARIES,
      changes: { key: (id) => void changed.push(id), account: (id) => void changed.push(id) },
      node: options.node ?? "main",
      claims: ALONE,
      settings: {
        ...paymentsOf(paymentsShape.parse({})),
        rails,
        waitMs: options.waitMs ?? WAIT_MS,
      },
      realm: REALM,
      secret: SECRET,
      previousSecret: null,
    });
    return {
      payments,
      end: ended.promise,
      changed,
      questions: () => mind.questions,
      writes: () => mind.writes,
      isDead: () => mind.isDead,
      kill,
    };
  } catch (error) {
    kill();
    throw error;
  }
}

function railAt(
  { rails }: PaymentChains,
  rail: "tempo" | "evm",
  {
    rpcUrl,
    confirmations,
  }: { readonly rpcUrl: string; readonly confirmations: number | undefined },
): RailSettings {
  return rail === "tempo"
    ? { ...rails.tempo, rpcUrl, confirmations: confirmations ?? 0 }
    : { ...rails.evm, rpcUrl, confirmations: confirmations ?? DEPTH };
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
    assert.ok(
      mind.pending > 0 || mind.isDead,
      `a question to a chain has no deadline of ${QUESTION_MS} ms`,
    );
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

function mortalTime(runtime: Runtime, mind: Mind): Runtime {
  return {
    ...runtime,
    after(ms, run) {
      let isQuestion = ms === QUESTION_MS;
      if (isQuestion) mind.pending += 1;
      const over = (): void => {
        if (isQuestion) mind.pending -= 1;
        isQuestion = false;
      };
      const cancel = runtime.after(ms, () => {
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

/**
 * A store that a dead process cannot reach. What is written by one statement or in one transaction
 * is one write; a transaction that has begun goes on.
 */
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
