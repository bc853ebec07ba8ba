// A real chain that lives: local nodes, two contracts that emit logs, transactions at a steady
// pace, and reorgs. Also tells, once it rests, what became canonical. Knows nothing of the service.
import { type Hex, keccak256, toHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { type Devnet, startDevnet } from "../../src/devnet/devnet.ts";
import { until } from "../fakes/service-fixture.ts";
import type { Block, Log } from "./ledger.ts";

/** The topics that the contracts emit, one of them at a time. */
export const TOPICS: readonly [Hex, Hex] = [keccak256(toHex("Ping()")), keccak256(toHex("Pong()"))];

/** A chain under way. */
export interface LiveChain {
  readonly devnet: Devnet;
  /** The two contracts. */
  readonly emitters: readonly [Hex, Hex];
  readonly reorgs: () => number;
  /** Lets transactions come until `rest`; `random` decides about their kind. */
  live(pace: Pace): void;
  /** Replaces the newest blocks by as many and one more, with or without a log among them. */
  reorg(depth: number, withLog: boolean): Promise<void>;
  /** Ends the transactions; resolves when all nodes agree on the last block. */
  rest(): Promise<void>;
  newest(): Promise<Block>;
  /** Where each node is and what waits in its pool, for telling what went wrong. */
  standing(): Promise<string>;
  /** The whole chain, once it rests. */
  blocks(): Promise<readonly Block[]>;
  logs(): Promise<readonly Log[]>;
  /** Asks the node that makes the blocks. */
  ask(method: string, ...params: readonly unknown[]): Promise<unknown>;
  close(): Promise<void>;
}

/** How fast transactions come, and by what chance. */
export interface Pace {
  readonly everyMs: number;
  readonly random: () => number;
}

const SENDERS = 8;
/** The tenth of anvil's own test accounts: it sends only what reorgs bring. */
const REORG_SENDER = privateKeyToAccount(
  "0x2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
);
/** Emits one log whose topic is the call data. */
const RUNTIME = "60003560006000a100";
const INIT: Hex = `0x60${(RUNTIME.length / 2).toString(16).padStart(2, "0")}80600b6000396000f3${RUNTIME}`;
const GAS = 100_000n;
const BLOCKS_AT_ONCE = 200;
const SETTLE_MS = 20_000;

const RawBlock = z.object({ number: z.string(), hash: z.string(), parentHash: z.string() });
const RawLog = z.object({
  address: z.string(),
  topics: z.array(z.string()),
  blockNumber: z.string(),
  blockHash: z.string(),
  logIndex: z.string(),
});

/** Starts three nodes on one chain with the contracts on it. */
export async function startChain(
  onProgress: (line: string) => void = () => {},
): Promise<LiveChain> {
  const devnet = await startDevnet({ nodes: 3, onProgress });
  try {
    const ask = askerOf(devnet.providers[0]?.url ?? "");
    const accounts = z.array(z.string()).parse(await ask("eth_accounts"));
    const emitters = [await deploy(ask, accounts[0]), await deploy(ask, accounts[1])] as const;
    return chainOf({ devnet, ask, emitters, senders: accounts.slice(0, SENDERS) });
  } catch (error) {
    await devnet.close();
    throw error;
  }
}

type Ask = LiveChain["ask"];

interface Parts {
  readonly devnet: Devnet;
  readonly ask: Ask;
  readonly emitters: readonly [Hex, Hex];
  readonly senders: readonly string[];
}

function chainOf({ devnet, ask, emitters, senders }: Parts): LiveChain {
  let living: Promise<void> | null = null;
  let resting = false;
  /** Nothing is sent while this is under way. */
  let reorging: Promise<void> | null = null;
  let reorgs = 0;
  const height = async (): Promise<number> => Number(await ask("eth_blockNumber"));
  const live = async ({ everyMs, random }: Pace): Promise<void> => {
    while (!resting) {
      await reorging?.catch(() => {});
      const from = senders[Math.floor(random() * senders.length)];
      const to = emitters[random() < 0.5 ? 0 : 1];
      // Counted from the chain: a reorg may have lost a transaction, and those behind it wait for
      // its nonce. Where it is taken, another one goes.
      const nonce = await ask("eth_getTransactionCount", from, "latest");
      await ask("eth_sendTransaction", {
        from,
        to,
        nonce,
        gas: toHex(GAS),
        data: TOPICS[random() < 0.5 ? 0 : 1],
      }).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, everyMs * (0.5 + random())));
    }
  };
  // Not while a block is being made: a reorg in that moment leaves a hole in anvil's chain.
  const reorg = async (depth: number, withLog: boolean): Promise<void> => {
    await until("nodes that agree before a reorg", () => agreed(devnet), SETTLE_MS);
    await ask(
      "anvil_reorg",
      depth,
      withLog ? [[await replacingLog(ask, emitters[0], (await height()) - depth), 0]] : [],
    );
  };
  const rest = async (): Promise<void> => {
    resting = true;
    await living;
    living = null;
    resting = false;
    // The nodes learn of a reorg when the next block is made.
    await ask("eth_sendTransaction", { from: senders[0], to: senders[0] });
    await until("nodes that agree and have nothing to do", () => agreed(devnet), SETTLE_MS);
  };
  return {
    devnet,
    emitters,
    ask,
    reorgs: () => reorgs,
    live(pace) {
      living ??= live(pace);
    },
    async reorg(depth, withLog) {
      reorging = reorg(depth, withLog);
      await reorging;
      reorging = null;
      reorgs++;
    },
    rest,
    newest: async () => RawBlock.parse(await ask("eth_getBlockByNumber", "latest", false)),
    blocks: async () => blocksUpTo(ask, await height()),
    standing: () => standingOf(devnet),
    logs: async () =>
      z.array(RawLog).parse(await ask("eth_getLogs", { fromBlock: "0x0", toBlock: "latest" })),
    async close() {
      resting = true;
      await living?.catch(() => {});
      await devnet.close();
    },
  };
}

function askerOf(url: string): Ask {
  return async (method, ...params) => {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
    const { result, error } = z
      .object({
        result: z.unknown().optional(),
        error: z.object({ message: z.string() }).optional(),
      })
      .parse(await response.json());
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  };
}

async function deploy(ask: Ask, from: string | undefined): Promise<Hex> {
  const hash = await ask("eth_sendTransaction", { from, data: INIT });
  const Receipt = z.object({ contractAddress: z.string() }).nullable();
  const { contractAddress } = await until("a contract", async () =>
    Receipt.parse(await ask("eth_getTransactionReceipt", hash)),
  );
  return `0x${contractAddress.slice(2)}`;
}

/** A transaction for a block that replaces one: signed for the state before it. */
async function replacingLog(ask: Ask, to: Hex, forkNumber: number): Promise<string> {
  const nonce = Number(
    await ask("eth_getTransactionCount", REORG_SENDER.address, toHex(forkNumber)),
  );
  const fees = { gas: GAS, maxFeePerGas: 10_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n };
  return REORG_SENDER.signTransaction({
    chainId: 31_337,
    nonce,
    to,
    data: TOPICS[1],
    type: "eip1559",
    ...fees,
  });
}

async function standingOf({ providers }: Devnet): Promise<string> {
  const each = providers.map(async ({ id, url }) => {
    const ask = askerOf(url);
    const { number, hash } = RawBlock.parse(await ask("eth_getBlockByNumber", "latest", false));
    return (
      `${id} at ${Number(number)} ${hash.slice(0, 10)} with pool ` +
      `${JSON.stringify(await ask("txpool_status"))}`
    );
  });
  return (await Promise.all(each.map((it) => it.catch(String)))).join(", ");
}

/** Whether every living node has the same newest block and no transaction waits. */
async function agreed({ providers }: Devnet): Promise<boolean> {
  const seen = await Promise.all(
    providers.map(async ({ url }) => {
      const ask = askerOf(url);
      const { hash } = RawBlock.parse(await ask("eth_getBlockByNumber", "latest", false));
      const { pending } = z.object({ pending: z.string() }).parse(await ask("txpool_status"));
      return `${hash} ${Number(pending)}`;
    }),
  );
  return new Set(seen).size === 1 && seen.every((it) => it.endsWith(" 0"));
}

async function blocksUpTo(ask: Ask, height: number): Promise<readonly Block[]> {
  const blocks: Block[] = [];
  for (let from = 0; from <= height; from += BLOCKS_AT_ONCE) {
    const numbers = Array.from(
      { length: Math.min(BLOCKS_AT_ONCE, height + 1 - from) },
      (_, n) => from + n,
    );
    const raw = await Promise.all(
      numbers.map((number) => ask("eth_getBlockByNumber", toHex(number), false)),
    );
    blocks.push(...raw.map((it) => RawBlock.parse(it)));
  }
  return blocks;
}
