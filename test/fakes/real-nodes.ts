// The service over real local EVM nodes, and a contract on them that emits an event: what walks of
// stock clients talk to. Knows no client's way to the service.
import { defineChain, type Hex, parseAbi, type TransactionReceipt, toEventSelector } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { type Devnet, startDevnet } from "../../src/devnet/devnet.ts";
import { PATIENT, type Service, startService } from "./service.ts";
import { until } from "./service-fixture.ts";

/** A wallet that has money on every local node. */
export const ALICE = privateKeyToAccount(
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
);

/** The event of the contract that emits. */
export const PING_ABI = parseAbi(["event Ping(uint256 value)"]);
const PING_RUNTIME = `602a6000527f${toEventSelector("Ping(uint256)").slice(2)}60206000a100`;
/** Called with anything it emits Ping(42) and returns nothing. */
export const PING_CODE: Hex = `0x${PING_RUNTIME}`;
/** Creates it. */
export const PING_BYTECODE = creationOf(PING_RUNTIME);
/** Gas and fees that need no estimate. */
export const FEES = {
  gas: 200_000n,
  maxFeePerGas: 5_000_000_000n,
  maxPriorityFeePerGas: 1_000_000_000n,
};

/** The bytecode that creates a contract with this code; at most 255 bytes. */
export function creationOf(runtimeCode: string): Hex {
  return `0x60${(runtimeCode.length / 2).toString(16)}80600b6000396000f3${runtimeCode}`;
}

/** The chain of the local nodes as viem wants it, at this URL. */
export function localChain(url: string) {
  return defineChain({
    id: 31_337,
    name: "Local",
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [url], webSocket: [url.replace("http", "ws")] } },
  });
}

/** A service and the nodes behind it, as chain `local` of profile `team`. */
export interface RealNodes {
  readonly devnet: Devnet;
  readonly service: Service;
  /**
   * Waits until every node has the same newest block, which has no transactions, and the service
   * knows that they have. The next block is seconds away then: a node that is killed takes none
   * with it that the service has told and no other node has.
   */
  noBlockDue(): Promise<void>;
  close(): Promise<void>;
}

/** What the service says of a node. */
interface KnownNode {
  readonly transports: readonly { readonly block_height: number | null }[];
}

/** How the nodes are configured. */
export interface RealNodesOptions {
  /** Their sockets are configured, too. */
  readonly sockets: boolean;
  readonly blockTimeMs?: number;
}

const NEWEST = { jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] };
const NEWEST_BLOCK = {
  jsonrpc: "2.0",
  id: 1,
  method: "eth_getBlockByNumber",
  params: ["latest", false],
};

/** Starts three nodes and the service before them, the first one with the highest priority. */
export async function startRealNodes({
  sockets,
  blockTimeMs = 12_000,
}: RealNodesOptions): Promise<RealNodes> {
  const devnet = await startDevnet({ nodes: 3, onProgress: () => {} });
  const providers = devnet.providers.map(({ id, url, wsUrl }, index) => ({
    id,
    url,
    ...(sockets ? { ws_url: wsUrl } : {}),
    archival: true,
    priority: index + 1,
  }));
  const set = {
    selection: { max_lag_blocks: 1 },
    monitoring: { probe_interval_ms: 500 },
    providers,
  };
  const service = await startService(
    JSON.stringify({
      server: { port: 0 },
      chains: { local: { chain_id: 31_337, block_time_ms: blockTimeMs } },
      profiles: { team: { chains: { local: set } } },
      deadlines: PATIENT,
    }),
  );
  return {
    devnet,
    service,
    async noBlockDue() {
      const leader = devnet.providers[0]?.id;
      await until("a block without transactions", async () => {
        const { json } = await service.post(`/rpc/provider/${leader}/local`, NEWEST_BLOCK);
        return json.result.transactions.length === 0;
      });
      await sameHeight(devnet, service);
      // A node that it takes for one that lags is not asked while another one is up to date.
      await until("the service to know it", async () => {
        const { json } = await service.get("/api/metrics/local");
        const heights = json.profiles.flatMap(({ providers }: { providers: KnownNode[] }) =>
          providers.map(({ transports }) =>
            Math.max(...transports.map((transport) => transport.block_height ?? 0)),
          ),
        );
        return heights[0] > 0 && new Set(heights).size === 1;
      });
    },
    async close() {
      await Promise.all([service.close(), devnet.close()]);
    },
  };
}

/** Waits until every node has the same newest block. */
export async function sameHeight(
  { providers }: Pick<Devnet, "providers">,
  service: { post(path: string, body: unknown): Promise<{ readonly text: string }> },
): Promise<void> {
  await until("nodes on one block", async () => {
    const heights = await Promise.all(
      providers.map(({ id }) => service.post(`/rpc/provider/${id}/local`, NEWEST)),
    );
    return new Set(heights.map(({ text }) => text)).size === 1;
  });
}

/** What of viem's clients it takes to have a transaction mined. */
export interface Clients {
  readonly reader: {
    getTransactionReceipt(args: { readonly hash: Hex }): Promise<TransactionReceipt>;
  };
  readonly wallet: {
    sendTransaction(
      args: typeof FEES & { readonly to?: Hex; readonly data?: Hex; readonly nonce: number },
    ): Promise<Hex>;
  };
}

/**
 * Sends a transaction and waits until it is mined: the next node that is asked may be a moment
 * behind.
 */
export async function sendMined(
  { reader, wallet }: Clients,
  transaction: { readonly to?: Hex; readonly data?: Hex; readonly nonce: number },
): Promise<TransactionReceipt> {
  const hash = await wallet.sendTransaction({ ...transaction, ...FEES });
  return until("the receipt", () => reader.getTransactionReceipt({ hash }).catch(() => null));
}
