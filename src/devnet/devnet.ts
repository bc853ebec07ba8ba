// The local chain: several anvil nodes that hold one chain, so that the service has real providers
// without a network or an account. Knows nothing of routing: what it returns is configured like any
// other provider.
import { type Chain, DEVNET_CHAIN } from "../core/provider/chain.ts";
import { type Runtime, realRuntime } from "../runtime.ts";
import { type AnvilNode, startAnvil } from "./anvil-process.ts";
import { replicate } from "./replicate.ts";

/** One local node as a provider. */
export interface DevnetProvider {
  readonly id: string;
  readonly url: string;
  readonly wsUrl: string;
  /** The operating system's id of the node, so that one can be killed to watch the failover. */
  readonly pid: number;
}

/** A running local chain. */
export interface Devnet {
  readonly chain: Chain;
  readonly providers: readonly DevnetProvider[];
  /** Ends every node; resolves when all are gone. */
  readonly close: () => Promise<void>;
}

/** Settings of the local chain. */
export interface DevnetOptions {
  /** How many nodes, 1 to 8. */
  readonly nodes: number;
  /** Hears what happens, one line each: while starting, and when a node is lost later. */
  readonly onProgress: (line: string) => void;
  readonly runtime?: Runtime;
}

const MAX_NODES = 8;
/**
 * Blocks of state that a node keeps. Anvil's cost for each is high: without the bound it writes
 * some 300 kB a block to the home directory.
 */
const HISTORY_BLOCKS = 64;

/**
 * Starts the nodes and brings them onto one chain; rejects, leaving none behind, when one does not
 * start.
 */
export async function startDevnet({
  nodes: count,
  onProgress,
  runtime = realRuntime,
}: DevnetOptions): Promise<Devnet> {
  if (!Number.isInteger(count) || count < 1 || count > MAX_NODES)
    throw new RangeError(`a local chain has 1 to ${MAX_NODES} nodes, not ${count}`);
  onProgress(`starting ${count} local EVM nodes (anvil)`);
  const genesisSeconds = Math.floor(runtime.wallMs() / 1000);
  const args = [
    "--no-mining",
    "--chain-id",
    `${DEVNET_CHAIN.chainId}`,
    "--timestamp",
    `${genesisSeconds}`,
    "--prune-history",
    `${HISTORY_BLOCKS}`,
  ];
  const started = await Promise.allSettled(
    Array.from({ length: count }, (_, at) => {
      const id = `anvil-${at + 1}`;
      const onCrash = (how: string): void =>
        onProgress(
          `${id} ended (${how}). It is not restarted: the other nodes serve the local chain`,
        );
      return startAnvil({ id, args, runtime, onCrash });
    }),
  );
  const nodes = started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  try {
    for (const result of started) if (result.status === "rejected") throw result.reason;
    const replication = await replicate(nodes, {
      runtime,
      blockTimeMs: DEVNET_CHAIN.blockTimeMs,
      onProgress,
    });
    for (const node of nodes) onProgress(`${node.id} is ready, process ${node.pid}`);
    return {
      chain: DEVNET_CHAIN,
      providers: nodes.map(({ id, url, wsUrl, pid }) => ({ id, url, wsUrl, pid })),
      close: async () => {
        await Promise.all([replication.stop(), endAll(nodes)]);
      },
    };
  } catch (error) {
    await endAll(nodes);
    throw error;
  }
}

async function endAll(nodes: readonly AnvilNode[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.end()));
}
