// Stock clients over the service over real EVM nodes: what a dapp does works as if it spoke to one
// node, also while a node dies.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { FetchRequest, JsonRpcProvider } from "ethers";
import {
  BaseError,
  ContractFunctionRevertedError,
  createPublicClient,
  createWalletClient,
  type Hex,
  http,
  InsufficientFundsError,
  keccak256,
  parseAbi,
  parseEther,
  toHex,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { type Devnet, startDevnet } from "../../src/devnet/devnet.ts";
import { endProvider } from "../fakes/ethers-provider.ts";
import { ALICE, creationOf, localChain } from "../fakes/real-nodes.ts";
import { type Answer, PATIENT, type Service, startService } from "../fakes/service.ts";
import { healthOf, until } from "../fakes/service-fixture.ts";

const BOB = "0x00000000000000000000000000000000000b0b01";
const ABI = parseAbi(["function fail() view returns (uint256)"]);
// Without call data it emits a log whose topic is 0x2a; with any it reverts with Error("nope").
const RUNTIME =
  "36600c57602a60006000a1005b6308c379a060e01b60005260206004526004602452636e6f706560e01b60445260646000fd";
const BYTECODE = creationOf(RUNTIME);

function clientsOf(url: string, batch: boolean) {
  const chain = localChain(url);
  const transport = http(url, { batch, retryCount: 0 });
  return {
    reader: createPublicClient({ chain, transport, pollingInterval: 50 }),
    wallet: createWalletClient({ chain, transport, account: ALICE }),
  };
}

/**
 * A node may be a block behind another for some milliseconds, and viem gives up when a block it has
 * seen is not there on the next one.
 */
function receiptOf(reader: ReturnType<typeof clientsOf>["reader"], hash: Hex) {
  return until("the receipt", () => reader.waitForTransactionReceipt({ hash }).catch(() => null));
}

describe("over three real nodes", () => {
  let devnet: Devnet;
  let service: Service;
  let url: string;

  before(async () => {
    devnet = await startDevnet({ nodes: 3, onProgress: () => {} });
    const providers = devnet.providers.map(({ id, url }) => ({ id, url, archival: true }));
    const set = {
      selection: { max_lag_blocks: 1 },
      monitoring: { probe_interval_ms: 500 },
      providers,
    };
    const chains = { local: { chain_id: 31_337, block_time_ms: 12_000 } };
    service = await startService(
      JSON.stringify({
        server: { port: 0 },
        chains,
        profiles: { team: { chains: { local: set } } },
        deadlines: PATIENT,
      }),
    );
    url = `${service.url}/rpc/local`;
    for (const { id } of devnet.providers)
      await until(
        `a probe of ${id}`,
        async () => (await healthOf(service, id, "team", "local")).block_height !== null,
      );
  });
  after(() => Promise.all([service.close(), devnet.close()]));
  // A wallet would get a nonce that is used up from a node that is a block behind.
  beforeEach(() =>
    until(
      "one height at every node",
      async () => new Set(await onEvery("eth_blockNumber", [])).size === 1,
    ),
  );

  for (const batch of [false, true]) {
    it(`viem reads, deploys, sends, waits, finds logs and decodes a revert (batch: ${batch})`, async () => {
      const { reader, wallet } = clientsOf(url, batch);
      const [height, chainId, balance, gasPrice] = await Promise.all([
        reader.getBlockNumber(),
        reader.getChainId(),
        reader.getBalance({ address: ALICE.address }),
        reader.getGasPrice(),
      ]);
      assert.equal(chainId, 31_337);
      assert.ok(height >= 1n && balance > parseEther("9000") && gasPrice > 0n);
      const deployed = await receiptOf(
        reader,
        await wallet.deployContract({ abi: ABI, bytecode: BYTECODE }),
      );
      const address = deployed.contractAddress;
      assert.ok(deployed.status === "success" && address !== null && address !== undefined);
      const code = await until("the code on every node", async () =>
        (await onEvery("eth_getCode", [address, "latest"])).every((it) => it !== "0x"),
      );
      assert.ok(code);
      const emitted = await receiptOf(
        reader,
        await wallet.sendTransaction({ to: address, gas: 100_000n }),
      );
      assert.deepEqual([emitted.status, emitted.logs.length], ["success", 1]);
      const [log] = await until("the log", async () => {
        const logs = await reader
          .getLogs({ address, fromBlock: deployed.blockNumber, toBlock: emitted.blockNumber })
          .catch(() => []);
        return logs.length === 1 && logs;
      });
      assert.deepEqual(
        [log?.transactionHash, log?.topics],
        [emitted.transactionHash, [toHex(0x2a, { size: 32 })]],
      );
      assert.equal(
        await reader.estimateGas({ to: BOB, value: 1n, account: ALICE.address }),
        21_000n,
      );
      await assert.rejects(
        reader.readContract({ address, abi: ABI, functionName: "fail" }),
        (error: unknown) => {
          const reverted =
            error instanceof BaseError
              ? error.walk((it) => it instanceof ContractFunctionRevertedError)
              : null;
          return reverted instanceof ContractFunctionRevertedError && reverted.reason === "nope";
        },
      );
    });
  }

  async function onEvery(method: string, params: readonly unknown[]): Promise<readonly unknown[]> {
    const answers = devnet.providers.map(({ id }) =>
      service.post(`/rpc/provider/${id}/local`, { jsonrpc: "2.0", id: 1, method, params }),
    );
    return (await Promise.all(answers)).map(({ json }) => json.result);
  }

  it(
    "a transaction that was sent twice is a success twice, and one without funds is the node's " +
      "own error",
    async () => {
      const { reader, wallet } = clientsOf(url, false);
      const request = await wallet.prepareTransactionRequest({ to: BOB, value: 5n });
      const raw = await wallet.signTransaction(request);
      const first = await reader.sendRawTransaction({ serializedTransaction: raw });
      assert.equal(first, keccak256(raw));
      for (let n = 0; n < 3; n++)
        assert.equal(await reader.sendRawTransaction({ serializedTransaction: raw }), first);
      await receiptOf(reader, first);
      assert.equal(
        await reader.sendRawTransaction({ serializedTransaction: raw }),
        first,
        "also when it is mined and its nonce is used up",
      );
      const pauper = privateKeyToAccount(generatePrivateKey());
      const unpaid = await pauper.signTransaction({
        chainId: 31_337,
        nonce: 0,
        to: BOB,
        value: 1n,
        gas: 21_000n,
        maxFeePerGas: 3_000_000_000n,
        type: "eip1559",
      });
      await assert.rejects(
        reader.sendRawTransaction({ serializedTransaction: unpaid }),
        (error: unknown) => {
          return (
            error instanceof BaseError &&
            (error.walk((it) => it instanceof InsufficientFundsError) !== null ||
              /insufficient funds/i.test(error.message))
          );
        },
      );
    },
  );

  it("ethers works as it comes", async () => {
    const provider = new JsonRpcProvider(new FetchRequest(url), undefined, { staticNetwork: true });
    try {
      const [network, height, balance, block] = await Promise.all([
        provider.getNetwork(),
        provider.getBlockNumber(),
        provider.getBalance(ALICE.address),
        provider.getBlock(0),
      ]);
      assert.deepEqual([network.chainId, block?.number], [31_337n, 0]);
      assert.ok(height >= 1 && balance > 0n);
    } finally {
      endProvider(provider);
    }
  });

  it(
    "a node killed in the middle of two hundred parallel calls fails none of them, and its " +
      "circuit shows it",
    async () => {
      const { reader } = clientsOf(url, false);
      const [victim] = devnet.providers;
      assert.ok(victim);
      // Blocks were mined just now: a node that is thought to lag behind the victim may not take
      // over from it.
      const heightOf = async ({ id }: { readonly id: string }): Promise<number> =>
        (await healthOf(service, id, "team", "local")).block_height;
      await until("one height, at every node and in what is known of it", async () => {
        const heights = [
          ...(await onEvery("eth_blockNumber", [])).map(Number),
          ...(await Promise.all(devnet.providers.map(heightOf))),
        ];
        return new Set(heights).size === 1;
      });
      const calls = Array.from({ length: 200 }, async (_, n) => {
        if (n === 60) process.kill(victim.pid, "SIGKILL");
        await new Promise((resolve) => setTimeout(resolve, n % 40));
        return reader.getBalance({ address: ALICE.address });
      });
      const balances = await Promise.all(calls);
      assert.ok(balances.every((it) => it > 0n));
      // Others may be preferred by now, because its height is not known to grow: pinned calls reach
      // it all the same.
      const ask = (): Promise<Answer> =>
        service.post(`/rpc/provider/${victim.id}/local`, {
          jsonrpc: "2.0",
          id: 1,
          method: "eth_blockNumber",
        });
      for (let n = 0; n < 3; n++) assert.equal((await ask()).json.error.data.code, "unavailable");
      assert.equal(
        (await healthOf(service, victim.id, "team", "local")).circuit_breaker_state,
        "open",
      );
      for (const { id } of devnet.providers.slice(1))
        assert.equal(
          (await healthOf(service, id, "team", "local")).circuit_breaker_state,
          "closed",
        );
      const pinned = await ask();
      assert.deepEqual(
        [pinned.json.error.data.code, pinned.json.error.data.upstream_attempts],
        ["unavailable", 0],
      );
    },
  );
});
