// The local chain: several anvil nodes that hold the same chain, or one as it comes. They give the
// service real providers without a network or an account. Knows nothing of routing: its nodes are
// configured like other providers.

import type { Config } from "../config/config.ts";
import { type Chain, DEVNET_CHAIN } from "../core/provider/chain.ts";
import { OWN_OPERATOR } from "../core/provider/operator.ts";
import type { Profile, Provider, ProviderSet } from "../core/provider/profile.ts";
import { type Runtime, realRuntime } from "../runtime.ts";
import { type AnvilNode, startAnvil } from "./anvil-process.ts";
import { replicate } from "./replicate.ts";

/** One local node as a provider. A user can kill its process and watch the failover. */
export type DevnetProvider = Pick<AnvilNode, "id" | "url" | "wsUrl" | "pid" | "rpc">;

/** A running local chain. */
export interface Devnet {
  readonly chain: Chain;
  readonly providers: readonly DevnetProvider[];
  /** Ends every node; resolves once all have exited. */
  readonly close: () => Promise<void>;
}

/** Settings of the local chain. */
export interface DevnetOptions {
  /**
   * Number of nodes, 1 to 8. One alone makes a block for each transaction and no other, as anvil
   * does by itself: those who set the time or the base fee of the next block get it.
   */
  readonly nodes: number;
  /**
   * By node, the one that makes the blocks first: time until it copies a block of another node.
   * Default: at once. A node two blocks behind does not wait.
   */
  readonly copyDelaysMs?: readonly number[];
  /** Shortest time between two blocks. Default: as good as none. */
  readonly blockSpacingMs?: number;
  /** Receives one line per event of the start. */
  readonly onProgress: (line: string) => void;
  /** Receives one line per node that is lost later. Default: as `onProgress`. */
  readonly onProblem?: (line: string) => void;
  readonly runtime?: Runtime;
}

const MAX_NODES = 8;
const BLOCK_SPACING_MS = 50;
/**
 * Blocks whose state a node keeps. Without this limit anvil writes some 300 kB per block to the
 * home directory.
 */
const HISTORY_BLOCKS = 64;

/**
 * Starts the nodes and brings them onto one chain. If one fails to start, ends the others and
 * rejects.
 */
export async function startDevnet({
  nodes: count,
  copyDelaysMs = [],
  blockSpacingMs = BLOCK_SPACING_MS,
  onProgress,
  onProblem = onProgress,
  runtime = realRuntime,
}: DevnetOptions): Promise<Devnet> {
  if (!Number.isInteger(count) || count < 1 || count > MAX_NODES)
    throw new RangeError(`a local chain has 1 to ${MAX_NODES} nodes, not ${count}`);
  onProgress(`starting ${count} local EVM ${count === 1 ? "node" : "nodes"} (anvil)`);
  const genesisSeconds = Math.floor(runtime.wallMs() / 1000);
  const args = [
    ...(count === 1 ? [] : ["--no-mining"]),
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
        onProblem(
          `${id} ended (${how}). It is not restarted` +
            (count === 1 ? "" : ": the other nodes serve the local chain"),
        );
      return startAnvil({ id, args, runtime, onCrash });
    }),
  );
  const nodes = started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  try {
    for (const result of started) if (result.status === "rejected") throw result.reason;
    const { blockTimeMs } = DEVNET_CHAIN;
    const settings = { runtime, blockTimeMs, blockSpacingMs, copyDelaysMs, onProblem };
    const stop = count === 1 ? null : await replicate(nodes, settings);
    for (const node of nodes) onProgress(`${node.id} is ready, process ${node.pid}`);
    return {
      chain: DEVNET_CHAIN,
      providers: nodes,
      close: async () => {
        await Promise.all([stop?.(), endAll(nodes)]);
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

/** The configuration with the local chain added. */
export function withDevnet(config: Config, devnet: Devnet): Config {
  const { chain } = devnet;
  const set: ProviderSet = {
    chain,
    maxLagBlocks: 2,
    archivalThreshold: 64,
    regionPreference: "prefer",
    probeIntervalMs: 2_000,
    socketHeads: true,
    newHeadsTimeoutMs: 42_000,
    maxBackfillBlocks: 100,
    backfillTimeoutMs: 30_000,
    logVerification: null,
    verificationBudget: 5,
    providers: devnet.providers.map(providerOf),
  };
  const pool = config.profiles.find((profile) => profile.slug === "public");
  const extended: Profile = {
    slug: "public",
    owner: null,
    managed: true,
    chains: new Map([...(pool?.chains ?? []), [chain.chainName, set]]),
  };
  return {
    ...config,
    chains: [chain, ...config.chains],
    profiles: [extended, ...config.profiles.filter((profile) => profile !== pool)],
  };
}

function providerOf({ id, url, wsUrl }: Devnet["providers"][number], index: number): Provider {
  return {
    index,
    id,
    url,
    wsUrl,
    operator: OWN_OPERATOR,
    name: id,
    alias: `p${index + 1}`,
    priority: index,
    weight: 1,
    backup: false,
    budget: null,
    batch: null,
    pipelining: false,
    price: null,
    archival: false,
    history: {},
    region: null,
    headers: {},
    unsupportedMethods: new Set(),
    unsupportedCategories: new Set(),
    maxBlockRange: null,
    maxBlockAge: null,
    blockAgeMethods: new Set(),
    errorRules: [],
    guarded: false,
  };
}
