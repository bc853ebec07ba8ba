// The local payment chains: a Tempo node of its own, and an EVM node for tests. Both end with this
// process, listen on 127.0.0.1 only, and hold worthless money. Knows nothing of rails and of who
// pays.
import type { Runtime } from "../../runtime.ts";
import { type AnvilNode, startAnvil } from "../anvil-process.ts";
import { placeStandIn } from "./channel-reserve.ts";
import { startReserveProxy } from "./reserve-proxy.ts";

/** Settings of a payment chain. */
export interface PaymentChainOptions {
  readonly runtime: Runtime;
  /** Hears when the chain is lost later, in one line. */
  readonly onProgress: (line: string) => void;
}

/**
 * The running Tempo chain. `url` is that of its front, `rpc` asks the node itself, and `end` ends
 * everything that belongs to it.
 */
export interface TempoChain extends AnvilNode {
  /** True = its channel reserve is the stand-in for development, not Tempo's. */
  readonly standIn: boolean;
}

/** Number of the local Tempo chain; no public chain has it. */
export const TEMPO_CHAIN_ID = 1337;
/** pathUSD, the TIP-20 token of the local Tempo chain that every development account holds. */
export const TEMPO_TOKEN = "0x20c0000000000000000000000000000000000000";

/** The newest fork that the node knows. */
const TEMPO = ["--network", "tempo", "--hardfork", "T4", "--chain-id", `${TEMPO_CHAIN_ID}`];
/**
 * A block a second, and one at once for each transaction: without blocks the chain's clock stands
 * still, and wallets sign for the next 25 seconds.
 */
const MINING = ["--block-time", "1", "--mixed-mining"];
/** Blocks of state that a node keeps; without the bound it writes each to the home directory. */
const HISTORY_BLOCKS = 64;

/** Starts the Tempo chain; rejects, leaving nothing behind, when it does not start. */
export async function startTempoChain({
  runtime,
  onProgress,
}: PaymentChainOptions): Promise<TempoChain> {
  const node = await startChain("tempo", TEMPO, { runtime, onProgress });
  try {
    const standIn = await placeStandIn(node.rpc, TEMPO_TOKEN);
    // Before its first block it refuses every Tempo transaction.
    await node.rpc("evm_mine");
    if (!standIn) return { ...node, standIn };
    const front = await startReserveProxy(node.url, node.rpc);
    const end = async (): Promise<void> => {
      await Promise.all([front.close(), node.end()]);
    };
    return { ...node, url: front.url, standIn, end };
  } catch (error) {
    await node.end();
    throw error;
  }
}

/**
 * Starts an EVM chain of one node, for tests: `npm start` uses the local chain that is there
 * anyway.
 */
export async function startEvmChain(
  chainId: number,
  options: PaymentChainOptions,
): Promise<AnvilNode> {
  return startChain("evm-payments", ["--chain-id", `${chainId}`], options);
}

function startChain(
  id: string,
  args: readonly string[],
  { runtime, onProgress }: PaymentChainOptions,
): Promise<AnvilNode> {
  const onCrash = (how: string): void =>
    onProgress(
      `${id}, a local payment chain, ended (${how}): payments by it fail until svc is started again`,
    );
  return startAnvil({
    id,
    args: [...args, ...MINING, "--prune-history", `${HISTORY_BLOCKS}`],
    runtime,
    onCrash,
  });
}
