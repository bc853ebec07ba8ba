// Stock clients with filters over HTTP and real EVM nodes: viem's and ethers' watchers poll filters
// of the service as they would poll those of a node, and miss nothing and see nothing twice when
// the node behind them is killed, whether it has a socket or is polled itself.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { JsonRpcProvider } from "ethers";
import {
  createPublicClient,
  createWalletClient,
  defineChain,
  type Hex,
  http,
  parseAbi,
  type TransactionReceipt,
  toEventSelector,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { type Devnet, startDevnet } from "../../src/devnet/devnet.ts";
import { PATIENT, type Service, startService } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";

const ALICE = privateKeyToAccount(
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
);
const ABI = parseAbi(["event Ping(uint256 value)"]);
// Whatever it is called with, it emits Ping(42) and returns nothing.
const RUNTIME = `602a6000527f${toEventSelector("Ping(uint256)").slice(2)}60206000a100`;
const BYTECODE: Hex = `0x60${(RUNTIME.length / 2).toString(16)}80600b6000396000f3${RUNTIME}`;
const FEES = { gas: 200_000n, maxFeePerGas: 5_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n };
const NEWEST = { jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] };

for (const reach of ["sockets", "http"] as const)
  describe(`filters over three real nodes reached by ${reach}`, () => {
    let devnet: Devnet;
    let service: Service;
    let nonce = 0;
    let emitter: Hex = "0x";

    function clients() {
      const url = `${service.url}/rpc/priority/local`;
      const nativeCurrency = { name: "Ether", symbol: "ETH", decimals: 18 };
      const chain = defineChain({
        id: 31_337,
        name: "Local",
        nativeCurrency,
        rpcUrls: { default: { http: [url] } },
      });
      const reader = createPublicClient({
        chain,
        transport: http(url),
        cacheTime: 0,
        pollingInterval: 50,
      });
      return {
        reader,
        wallet: createWalletClient({ chain, transport: http(url), account: ALICE }),
      };
    }

    before(async () => {
      devnet = await startDevnet({ nodes: 3, onProgress: () => {} });
      const providers = devnet.providers.map(({ id, url, wsUrl }, n) => ({
        id,
        url,
        ...(reach === "sockets" ? { ws_url: wsUrl } : {}),
        archival: true,
        priority: n + 1,
      }));
      const set = {
        selection: { max_lag_blocks: 1 },
        monitoring: { probe_interval_ms: 500 },
        providers,
      };
      const chains = { local: { chain_id: 31_337, block_time_ms: 1_000 } };
      service = await startService(
        JSON.stringify({
          server: { port: 0 },
          chains,
          profiles: { team: { chains: { local: set } } },
          deadlines: PATIENT,
        }),
      );
      const { reader, wallet } = clients();
      const hash = await wallet.deployContract({
        abi: ABI,
        bytecode: BYTECODE,
        nonce: nonce++,
        ...FEES,
      });
      const { contractAddress } = await until("the receipt", () =>
        reader.getTransactionReceipt({ hash }).catch(() => null),
      );
      emitter = contractAddress ?? "0x";
    });
    after(() => Promise.all([service.close(), devnet.close()]));

    async function emit({
      reader,
      wallet,
    }: ReturnType<typeof clients>): Promise<TransactionReceipt> {
      const hash = await wallet.sendTransaction({ to: emitter, nonce: nonce++, ...FEES });
      return until("the receipt", () => reader.getTransactionReceipt({ hash }).catch(() => null));
    }

    /** A filter begins behind the newest block of the node it is made at. */
    async function together(): Promise<void> {
      await until("nodes on one block", async () => {
        const heights = await Promise.all(
          devnet.providers.map(({ id }) => service.post(`/rpc/provider/${id}/local`, NEWEST)),
        );
        return new Set(heights.map(({ text }) => text)).size === 1;
      });
    }

    async function filtersOpen(): Promise<number> {
      const { text } = await service.get("/metrics");
      return [...text.matchAll(/^svc_filters\{[^}]*\} (\d+)$/gm)].reduce(
        (sum, [, count]) => sum + Number(count),
        0,
      );
    }

    it("viem and ethers watch blocks and logs by filters while the node behind them is killed", async (t) => {
      const at = clients();
      const { reader } = at;
      const provider = new JsonRpcProvider(`${service.url}/rpc/priority/local`, 31_337, {
        pollingInterval: 50,
        cacheTimeout: -1,
      });
      t.after(() => provider.destroy());
      const onError = (error: Error): never => assert.fail(error);
      const seen = {
        numbers: [] as bigint[],
        events: [] as Hex[],
        pings: [] as string[],
        ethers: [] as string[],
        blocks: [] as number[],
        hashes: [] as Hex[],
        logs: [] as Hex[],
      };
      await together();
      const unwatch = [
        reader.watchBlockNumber({
          onBlockNumber: (number) => void seen.numbers.push(number),
          onError,
        }),
        reader.watchEvent({
          address: emitter,
          onLogs: (logs) => void seen.events.push(...logs.map((log) => log.transactionHash)),
          onError,
        }),
        reader.watchContractEvent({
          address: emitter,
          abi: ABI,
          eventName: "Ping",
          onLogs: (logs) =>
            void seen.pings.push(...logs.map((log) => `${log.args.value} ${log.transactionHash}`)),
          onError,
        }),
      ];
      t.after(() => {
        for (const stop of unwatch) stop();
      });
      await provider.on("block", (number: number) => void seen.blocks.push(number));
      await provider.on(
        { address: emitter },
        (log: { transactionHash: string }) => void seen.ethers.push(log.transactionHash),
      );
      const blocks = await reader.createBlockFilter();
      const logs = await reader.createEventFilter({ address: emitter });
      await until("the filters", async () => (await filtersOpen()) >= 5);
      const from = await reader.getBlockNumber();
      const receipts = [await emit(at), await emit(at)];
      await together();
      process.kill(devnet.providers[0]?.pid ?? assert.fail("a node"), "SIGKILL");
      for (let n = 0; n < 4; n++) receipts.push(await emit(at));
      const sent = receipts.map((receipt) => receipt.transactionHash);
      const to = receipts.at(-1)?.blockNumber ?? 0n;
      await until("all of it", async () => {
        seen.hashes.push(...(await reader.getFilterChanges({ filter: blocks })));
        seen.logs.push(
          ...(await reader.getFilterChanges({ filter: logs })).map(
            (log) => log.transactionHash ?? "0x",
          ),
        );
        return (
          [seen.events, seen.pings, seen.ethers, seen.logs, seen.hashes].every(
            (list) => list.length >= sent.length,
          ) && seen.blocks.includes(Number(to))
        );
      });
      assert.deepEqual([seen.events, seen.ethers, seen.logs], [sent, sent, sent]);
      assert.deepEqual(
        seen.pings,
        sent.map((hash) => `42 ${hash}`),
      );
      const chain = await Promise.all(
        Array.from({ length: Number(to - from) }, (_, n) =>
          reader.getBlock({ blockNumber: from + 1n + BigInt(n) }),
        ),
      );
      assert.deepEqual(
        seen.hashes.slice(0, chain.length),
        chain.map((block) => block.hash),
      );
      assert.equal(await reader.uninstallFilter({ filter: blocks }), true);
      assert.equal(await reader.uninstallFilter({ filter: blocks }), false);
    });

    it(
      "a filter with fromBlock finds its history with getFilterLogs, and what is pending where " +
        "nodes tell of it",
      async () => {
        const at = clients();
        const { reader } = at;
        const history = await reader.createEventFilter({ address: emitter, fromBlock: 0n });
        const past = await reader.getFilterLogs({ filter: history });
        assert.ok(past.length >= 6);
        assert.deepEqual(
          await reader.getFilterChanges({ filter: history }),
          [],
          "changes start at its creation",
        );
        if (reach === "http")
          return void (await assert.rejects(
            reader.createPendingTransactionFilter(),
            /pending transactions/,
          ));
        const pending = await reader.createPendingTransactionFilter();
        const { transactionHash } = await emit(at);
        assert.deepEqual(
          await until(
            "it",
            async () =>
              (await reader.getFilterChanges({ filter: pending })).filter(
                (hash) => hash === transactionHash,
              )[0] ?? null,
          ),
          transactionHash,
        );
      },
    );
  });
