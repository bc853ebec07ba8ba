// What the rounds run against: the real service as it comes, with keys, over nodes of which some
// copy blocks later than others. Measures how far they are behind each other meanwhile.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPublicClient, createWalletClient, http, parseEther } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { stringify } from "yaml";
import { type Devnet, startDevnet } from "../../src/devnet/devnet.ts";
import { manageAt } from "../fakes/hosted-fixture.ts";
import { rpcOf } from "../fakes/node-rpc.ts";
import { type Ender, startProcess } from "../fakes/process.ts";
import { ALICE, FEES, localChain, sameHeight } from "../fakes/real-nodes.ts";
import { until } from "../fakes/service-fixture.ts";
import { COUNTER_BYTECODE } from "./counter.ts";
import { ROUNDS, type RoundsTask, type Wire } from "./protocol.ts";

/** While several clients send, the second node is about one block behind, the third about two. */
export const LAGGING = { blockSpacingMs: 150, copyDelaysMs: [0, 120, 250] } as const;

/** A running service over nodes that lag. */
export interface RoundsFixture {
  /** Every way of one client: over each wire, without a key and with one; accounts of their own. */
  readonly tasks: (count: number) => Promise<readonly RoundsTask[]>;
  /** Says how far nodes were behind the best since the start. */
  readonly lags: () => string;
}

/** How many nodes there are: one alone is what every answer is compared with. */
export interface RoundsSettings {
  readonly nodes: number;
  readonly onProgress: (line: string) => void;
}

const SAMPLE_MS = 100;
const FUNDS = parseEther("10");
const MAX_SHOWN_LAG = 3;

/** Starts it; ended by `after`. */
export async function startRoundsFixture(
  ender: Ender,
  { nodes, onProgress }: RoundsSettings,
): Promise<RoundsFixture> {
  const devnet = await startDevnet({ nodes, ...LAGGING, onProgress });
  ender.after(() => devnet.close());
  const folder = await mkdtemp(join(tmpdir(), "svc-rounds-"));
  ender.after(() => rm(folder, { recursive: true, force: true }));
  const service = await startProcess(ender, configOf(devnet, folder));
  const sampler = sampleLags(devnet);
  ender.after(() => sampler.stop());
  const fund = createBank(devnet);
  const wires: readonly Wire[] = ["http", "ws"];

  return {
    lags: sampler.told,
    async tasks(count) {
      const tasks: RoundsTask[] = [];
      for (const feature of ROUNDS)
        for (const wire of wires) {
          const key = generatePrivateKey();
          await fund(privateKeyToAddress(key));
          const owner = feature === "rounds" ? "" : `k/${await newKey(service.url)}/`;
          const base = wire === "http" ? service.url : `${service.url.replace("http", "ws")}/ws`;
          const url = `${base}/rpc/${owner}local`;
          tasks.push({ feature, wire, url, key, count, bytecode: COUNTER_BYTECODE });
        }
      await sameHeight(devnet, service);
      return tasks;
    },
  };
}

/** YAML and no JSON, so that tests' own settings of routing are not put in: it runs as it comes. */
function configOf({ providers }: Devnet, folder: string): string {
  const set = {
    selection: { max_lag_blocks: 2, archival_threshold: 64 },
    monitoring: { probe_interval_ms: 2_000 },
    providers: providers.map(({ id, url, wsUrl }, n) => ({ id, url, ws_url: wsUrl, priority: n })),
  };
  const rate = { per_second: 100_000, burst: 200_000 };
  return stringify({
    server: { port: 0, workers: 1 },
    data_dir: folder,
    chains: { local: { chain_id: 31_337, block_time_ms: 12_000 } },
    profiles: { public: { chains: { local: set } } },
    hosted: {
      enabled: true,
      keyless: true,
      keys_per_hour: 1_000,
      starting_grant_cu: 1_000_000_000,
      buckets: { managed: rate, reduced: rate, public: rate },
    },
  });
}

async function newKey(url: string): Promise<string> {
  const { json } = await manageAt(url)("", "POST", "/api/v1/agent/keys");
  return json.key;
}

/** Gives accounts their money, at the node that makes the blocks. */
function createBank({ providers: [maker] }: Devnet): (to: `0x${string}`) => Promise<void> {
  const url = maker?.url ?? "";
  const chain = localChain(url);
  const reader = createPublicClient({ chain, transport: http(url) });
  const wallet = createWalletClient({ chain, transport: http(url), account: ALICE });
  let nonce = 0;
  return async (to) => {
    const hash = await wallet.sendTransaction({ to, value: FUNDS, nonce: nonce++, ...FEES });
    await until("the money", () => reader.getTransactionReceipt({ hash }).catch(() => null));
  };
}

/** Asks the nodes themselves for their heights, ten times a second. */
function sampleLags({ providers }: Devnet) {
  const counts = Array.from({ length: MAX_SHOWN_LAG + 1 }, () => 0);
  const nodes = providers.map(({ url }) => rpcOf(url));
  let isStopped = false;
  const running = (async () => {
    while (!isStopped) {
      const heights = await Promise.all(nodes.map((ask) => ask("eth_blockNumber").then(Number)));
      const best = Math.max(...heights);
      for (const height of heights.slice(1)) {
        const lag = Math.min(MAX_SHOWN_LAG, best - height);
        counts[lag] = (counts[lag] ?? 0) + 1;
      }
      await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS));
    }
  })().catch(() => {});
  return {
    stop: async () => {
      isStopped = true;
      await running;
    },
    told: () => {
      const all = counts.reduce((sum, it) => sum + it, 0);
      const shares = counts.map((it, lag) => {
        const blocks = lag === MAX_SHOWN_LAG ? `${lag} or more` : `${lag}`;
        return `${blocks} blocks ${Math.round((100 * it) / Math.max(1, all))} %`;
      });
      return `nodes were behind the best by ${shares.join(", ")}`;
    },
  };
}
