// Stock clients with filters over HTTP and real EVM nodes: viem's and ethers' watchers poll filters
// of the service as they would poll those of a node, and miss nothing and see nothing twice when
// the node behind them is killed, whether it has a socket or is polled itself.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { JsonRpcProvider } from "ethers";
import {
  createPublicClient,
  createWalletClient,
  type Hex,
  http,
  type TransactionReceipt,
} from "viem";
import type { Devnet } from "../../src/devnet/devnet.ts";
import { endProvider } from "../fakes/ethers-provider.ts";
import {
  ALICE,
  localChain,
  PING_ABI,
  PING_BYTECODE,
  type RealNodes,
  sendMined,
  startRealNodes,
} from "../fakes/real-nodes.ts";
import type { Service } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";

for (const reach of ["sockets", "http"] as const)
  describe(`filters over three real nodes reached by ${reach}`, () => {
    let nodes: RealNodes;
    let devnet: Devnet;
    let service: Service;
    let nonce = 0;
    let emitter: Hex = "0x";

    function clients() {
      const url = `${service.url}/rpc/priority/local`;
      const chain = localChain(url);
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
      nodes = await startRealNodes({ sockets: reach === "sockets", blockTimeMs: 1_000 });
      ({ devnet, service } = nodes);
      const { contractAddress } = await sendMined(clients(), {
        data: PING_BYTECODE,
        nonce: nonce++,
      });
      emitter = contractAddress ?? "0x";
    });
    after(() => nodes.close());

    function emit(at: ReturnType<typeof clients>): Promise<TransactionReceipt> {
      return sendMined(at, { to: emitter, nonce: nonce++ });
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
      t.after(() => endProvider(provider));
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
      const told = (): string =>
        Object.entries(seen)
          .map(([what, list]) => `${what} ${list.length} (${list.slice(-2).join(" ")})`)
          .join(", ");
      await nodes.noBlockDue();
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
          abi: PING_ABI,
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
      await nodes.noBlockDue();
      process.kill(devnet.providers[0]?.pid ?? assert.fail("a node"), "SIGKILL");
      for (let n = 0; n < 4; n++) receipts.push(await emit(at));
      const sent = receipts.map((receipt) => receipt.transactionHash);
      const to = receipts.at(-1)?.blockNumber ?? 0n;
      const lastHash = receipts.at(-1)?.blockHash ?? "0x";
      await until("all of it", async () => {
        seen.hashes.push(...(await reader.getFilterChanges({ filter: blocks })));
        seen.logs.push(
          ...(await reader.getFilterChanges({ filter: logs })).map(
            (log) => log.transactionHash ?? "0x",
          ),
        );
        return (
          [seen.events, seen.pings, seen.ethers, seen.logs].every(
            (list) => list.length >= sent.length,
          ) &&
          seen.hashes.includes(lastHash) &&
          seen.blocks.includes(Number(to))
        );
      }).catch((error: Error) => assert.fail(`${error.message}: ${told()}`));
      assert.deepEqual([seen.events, seen.ethers, seen.logs], [sent, sent, sent]);
      assert.deepEqual(
        seen.pings,
        sent.map((hash) => `42 ${hash}`),
      );
      // A block that the clock made between the filter's creation and `from` is told as well.
      const first = await reader.getBlock({ blockHash: seen.hashes[0] ?? "0x" });
      assert.ok(first.number <= from + 1n, `${first.number} after ${from}`);
      const chain = await Promise.all(
        Array.from({ length: Number(to - first.number) + 1 }, (_, n) =>
          reader.getBlock({ blockNumber: first.number + BigInt(n) }),
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
