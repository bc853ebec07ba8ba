// What the client programs run against: the real service as a process of its own over three real
// nodes, a contract that emits, and one who calls it.
import {
  createPublicClient,
  createWalletClient,
  defineChain,
  type Hex,
  http,
  parseAbi,
  toEventSelector,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { startDevnet } from "../../src/devnet/devnet.ts";
import { type Ender, startProcess } from "../fakes/process.ts";
import { until } from "../fakes/service-fixture.ts";
import type { Expected } from "./protocol.ts";

/** A running service and its nodes. */
export interface ClientFixture {
  /** Base URL of the service. */
  readonly url: string;
  readonly emitter: string;
  /** Blocks so far. */
  readonly height: () => Promise<number>;
  /** Calls the contract so many times, each in a block of its own; returns the transactions. */
  readonly emit: (times: number) => Promise<readonly string[]>;
  /** What watchers had to see since a height. */
  readonly since: (height: number, transactions: readonly string[]) => Promise<Expected>;
  /** Kills the node that serves first, once all nodes have the same newest block. */
  readonly killFirst: () => Promise<void>;
}

const ALICE = privateKeyToAccount(
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
);
const ABI = parseAbi(["event Ping(uint256 value)"]);
// Whatever it is called with, it emits Ping(42) and returns nothing.
const RUNTIME = `602a6000527f${toEventSelector("Ping(uint256)").slice(2)}60206000a100`;
const BYTECODE: Hex = `0x60${(RUNTIME.length / 2).toString(16)}80600b6000396000f3${RUNTIME}`;
const FEES = { gas: 200_000n, maxFeePerGas: 5_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n };
const NODES = 3;

/** Starts it; ended by `after`. */
export async function startFixture(
  ender: Ender,
  onProgress: (line: string) => void,
): Promise<ClientFixture> {
  const devnet = await startDevnet({ nodes: NODES, onProgress });
  ender.after(() => devnet.close());
  const providers = devnet.providers.map(({ id, url, wsUrl }, n) => ({
    id,
    url,
    ws_url: wsUrl,
    archival: true,
    priority: n + 1,
  }));
  const set = {
    selection: { max_lag_blocks: 2 },
    monitoring: { probe_interval_ms: 1_000 },
    providers,
  };
  const chains = { local: { chain_id: 31_337, block_time_ms: 12_000 } };
  const service = await startProcess(
    ender,
    JSON.stringify({ server: { port: 0 }, chains, profiles: { team: { chains: { local: set } } } }),
  );
  const url = `${service.url}/rpc/priority/local`;
  const nativeCurrency = { name: "Ether", symbol: "ETH", decimals: 18 };
  const chain = defineChain({
    id: 31_337,
    name: "Local",
    nativeCurrency,
    rpcUrls: { default: { http: [url] } },
  });
  const reader = createPublicClient({ chain, transport: http(url), cacheTime: 0 });
  const wallet = createWalletClient({ chain, transport: http(url), account: ALICE });
  let nonce = 0;
  const mined = (hash: Hex) =>
    until("the receipt", () => reader.getTransactionReceipt({ hash }).catch(() => null));
  const { contractAddress } = await mined(
    await wallet.deployContract({ abi: ABI, bytecode: BYTECODE, nonce: nonce++, ...FEES }),
  );
  const emitter = contractAddress ?? "0x";

  async function together(): Promise<void> {
    const body = { jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] };
    await until("nodes on one block", async () => {
      const heights = await Promise.all(
        devnet.providers.map(({ id }) => service.post(`/rpc/provider/${id}/local`, body)),
      );
      return new Set(heights.map(({ text }) => text)).size === 1;
    });
  }

  return {
    url: service.url,
    emitter,
    height: async () => Number(await reader.getBlockNumber()),
    async emit(times) {
      const transactions: string[] = [];
      for (let n = 0; n < times; n++) {
        const hash = await wallet.sendTransaction({ to: emitter, nonce: nonce++, ...FEES });
        await mined(hash);
        transactions.push(hash);
      }
      return transactions;
    },
    async since(height, transactions) {
      const to = Number(await reader.getBlockNumber());
      const numbers = Array.from({ length: to - height }, (_, n) => height + 1 + n);
      const blocks = await Promise.all(
        numbers.map((it) =>
          until("the block", () => reader.getBlock({ blockNumber: BigInt(it) }).catch(() => null)),
        ),
      );
      return {
        blocks: blocks.map((it) => ({ number: Number(it.number), hash: it.hash })),
        transactions,
      };
    },
    async killFirst() {
      await together();
      const [first] = devnet.providers;
      if (first !== undefined) process.kill(first.pid, "SIGKILL");
    },
  };
}
