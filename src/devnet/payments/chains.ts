// The local payment chains: a Tempo node, and an EVM node for tests. Both end with this process,
// listen on 127.0.0.1 only, and hold worthless money. Knows nothing of rails or payers.
import type { Runtime } from "../../runtime.ts";
import { type AnvilNode, startAnvil } from "../anvil-process.ts";
import { placeStandIn } from "./local-contracts.ts";
import { startReserveProxy } from "./reserve-proxy.ts";

/** Settings of a payment chain. */
export interface PaymentChainOptions {
  readonly runtime: Runtime;
  /** Receives one line if the chain is lost later. */
  readonly onProgress: (line: string) => void;
}

/**
 * The running Tempo chain. `url` is the URL of the proxy in front of the node, `rpc` calls the node
 * directly, and `end` ends both.
 */
export interface TempoChain extends AnvilNode {
  /** True = its channel reserve is a stand-in for development instead of Tempo's precompile. */
  readonly standIn: boolean;
}

/** Chain id of the local Tempo chain; no public chain uses it. */
export const TEMPO_CHAIN_ID = 1337;
/** pathUSD, the TIP-20 token of the local Tempo chain, which every development account holds. */
export const TEMPO_TOKEN = "0x20c0000000000000000000000000000000000000";

/** T4 is the newest fork that the node supports. */
const TEMPO = ["--network", "tempo", "--hardfork", "T4", "--chain-id", `${TEMPO_CHAIN_ID}`];
/**
 * A block every second and at each transaction. Without regular blocks the chain's clock stands
 * still, but wallets sign with a validity of 25 seconds.
 */
const MINING = ["--block-time", "1", "--mixed-mining"];
/**
 * Blocks whose state a node keeps; without this limit it writes the state of each block to the home
 * directory.
 */
const HISTORY_BLOCKS = 64;

/** Starts the Tempo chain; if that fails, ends what was started and rejects. */
export async function startTempoChain({
  runtime,
  onProgress,
}: PaymentChainOptions): Promise<TempoChain> {
  const node = await startChain("tempo", TEMPO, { runtime, onProgress });
  try {
    const standIn = await placeStandIn(node.rpc, TEMPO_TOKEN);
    // The node refuses all Tempo transactions before its first block.
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

/** Starts an EVM chain of one node, for tests: `npm start` uses the existing local chain. */
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
