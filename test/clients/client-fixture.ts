// What the client programs run against: the real service as a process of its own over three real
// nodes, a contract that emits, and one who calls it.
import { createPublicClient, createWalletClient, http } from "viem";
import { startDevnet } from "../../src/devnet/devnet.ts";
import { type Ender, startProcess } from "../fakes/process.ts";
import { ALICE, localChain, PING_BYTECODE, sameHeight, sendMined } from "../fakes/real-nodes.ts";
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
  const chain = localChain(url);
  const reader = createPublicClient({ chain, transport: http(url), cacheTime: 0 });
  const wallet = createWalletClient({ chain, transport: http(url), account: ALICE });
  let nonce = 0;
  const at = { reader, wallet };
  const { contractAddress } = await sendMined(at, { data: PING_BYTECODE, nonce: nonce++ });
  const emitter = contractAddress ?? "0x";

  return {
    url: service.url,
    emitter,
    height: async () => Number(await reader.getBlockNumber()),
    async emit(times) {
      const transactions: string[] = [];
      for (let n = 0; n < times; n++) {
        const { transactionHash } = await sendMined(at, { to: emitter, nonce: nonce++ });
        transactions.push(transactionHash);
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
      await sameHeight(devnet, service);
      const [first] = devnet.providers;
      if (first !== undefined) process.kill(first.pid, "SIGKILL");
    },
  };
}
