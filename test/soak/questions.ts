// Steady calls over a socket while providers fail: answers that are known beforehand, and how often
// they were right. Knows no provider.
import { z } from "zod";
import type { Caller, Reply } from "./caller.ts";
import type { LiveChain } from "./chain.ts";
import { pick } from "./chance.ts";

/** The calls so far. */
export interface Questions {
  readonly asked: () => number;
  readonly refused: () => number;
  /** Wrong or lost, the first ones in words. */
  readonly wrong: readonly string[];
  /** Ends them; resolves when the last one is answered. */
  stop(): Promise<void>;
}

/**
 * How they are asked: by what chance, and whether they may be refused because every circuit is
 * open.
 */
export interface Manner {
  readonly random: () => number;
  readonly refusable: boolean;
}

const UNAVAILABLE = -32_002;

interface Question {
  readonly method: string;
  readonly params: readonly unknown[];
  readonly right: (result: unknown) => boolean;
}

const EVERY_MS = 25;
/**
 * Fewer than one socket may have in flight: while a provider is frozen calls wait, and no more are
 * added.
 */
const MOST_OPEN = 24;
const KEPT = 20;

/** Asks until stopped. What is asked for was on the chain before anything could replace it. */
export async function askSteadily(
  chain: LiveChain,
  caller: Caller,
  { random, refusable }: Manner,
): Promise<Questions> {
  const questions = await questionsFor(chain);
  const open = new Set<Promise<void>>();
  const wrong: string[] = [];
  let asked = 0;
  let refused = 0;
  const one = async ({ method, params, right }: Question): Promise<void> => {
    const startedAt = performance.now();
    const reply = await caller.call(method, params);
    asked++;
    if (refusable && reply.error?.code === UNAVAILABLE) refused++;
    else if (!right(reply.result) && wrong.length < KEPT)
      wrong.push(wordsFor(method, reply, performance.now() - startedAt));
  };
  const timer = setInterval(() => {
    if (open.size >= MOST_OPEN) return;
    const asking = one(pick(random, questions)).finally(() => open.delete(asking));
    open.add(asking);
  }, EVERY_MS);
  return {
    asked: () => asked,
    refused: () => refused,
    wrong,
    async stop() {
      clearInterval(timer);
      await Promise.all(open);
    },
  };
}

async function questionsFor(chain: LiveChain): Promise<readonly Question[]> {
  const early = z
    .object({ hash: z.string() })
    .parse(await chain.ask("eth_getBlockByNumber", "0x1", false));
  const code = await chain.ask("eth_getCode", chain.emitters[0], "latest");
  return [
    { method: "eth_chainId", params: [], right: (it) => it === "0x7a69" },
    { method: "eth_blockNumber", params: [], right: (it) => Number(it) >= 1 },
    {
      method: "eth_getBlockByNumber",
      params: ["0x1", false],
      right: (it) => z.object({ hash: z.string() }).safeParse(it).data?.hash === early.hash,
    },
    { method: "eth_getCode", params: [chain.emitters[0], "latest"], right: (it) => it === code },
    {
      method: "eth_getLogs",
      params: [{ fromBlock: "0x0", toBlock: "0x1" }],
      right: (it) => Array.isArray(it) && it.length === 0,
    },
    {
      method: "eth_call",
      params: [{ to: chain.emitters[1] }, "latest"],
      right: (it) => it === "0x",
    },
  ];
}

function wordsFor(method: string, reply: Reply, tookMs: number): string {
  return `${method} after ${tookMs.toFixed(0)} ms: ${JSON.stringify(reply).slice(0, 300)}`;
}
