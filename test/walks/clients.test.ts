// Stock clients with their own settings (batching, network detection, chain checks) over the
// service over a real EVM node: they notice nothing of it.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  Contract,
  isCallException,
  isError,
  type JsonRpcApiProviderOptions,
  JsonRpcProvider,
  toBeHex,
  Wallet,
} from "ethers";
import {
  BaseError,
  ChainMismatchError,
  ContractFunctionRevertedError,
  createPublicClient,
  createWalletClient,
  defineChain,
  encodeErrorResult,
  HttpRequestError,
  http,
  MethodNotFoundRpcError,
  parseAbi,
  RpcRequestError,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { type Devnet, startDevnet } from "../../src/devnet/devnet.ts";
import { endProvider } from "../fakes/ethers-provider.ts";
import { creationOf } from "../fakes/real-nodes.ts";
import { PATIENT, type Service, startService } from "../fakes/service.ts";

const KEY = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
const BOB = "0x00000000000000000000000000000000000b0b01";
const ABI = ["error Denied(uint256 code)", "function fail() view returns (uint256)"] as const;
const DENIED = encodeErrorResult({ abi: parseAbi(ABI), errorName: "Denied", args: [42n] });
// Without call data it emits a log whose topic is 0x2a; with any it reverts with Denied(42).
const RUNTIME = `36600c57602a60006000a1005b63${DENIED.slice(2, 10)}60e01b600052602a60045260246000fd`;
const BYTECODE = creationOf(RUNTIME);
const LOCAL = {
  id: 31_337,
  name: "Local",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
};

describe("over a real node", () => {
  let devnet: Devnet;
  let service: Service;
  let url: string;

  before(async () => {
    devnet = await startDevnet({ nodes: 1, onProgress: () => {} });
    const providers = devnet.providers.map(({ id, url }) => ({ id, url, archival: true }));
    const chains = { local: { chain_id: 31_337, block_time_ms: 12_000 } };
    // A node that the machine holds up for a while is waited for.
    service = await startService(
      JSON.stringify({
        server: { port: 0 },
        chains,
        profiles: { team: { chains: { local: { providers } } } },
        deadlines: PATIENT,
      }),
    );
    url = `${service.url}/rpc/local`;
  });
  after(() => Promise.all([service.close(), devnet.close()]));

  const ETHERS: readonly (readonly [name: string, options: JsonRpcApiProviderOptions])[] = [
    ["batching as it does by default", {}],
    ["with a fixed network", { staticNetwork: true }],
    ["without batching", { batchMaxCount: 1 }],
  ];
  for (const [name, options] of ETHERS)
    it(`ethers reads, deploys, sends, waits, finds logs and decodes a custom error (${name})`, async (t) => {
      const provider = new JsonRpcProvider(url, undefined, {
        ...options,
        pollingInterval: 50,
        cacheTimeout: -1,
      });
      t.after(() => endProvider(provider));
      const wallet = new Wallet(KEY, provider);
      const [network, height, balance] = await Promise.all([
        provider.getNetwork(),
        provider.getBlockNumber(),
        provider.getBalance(wallet.address),
      ]);
      assert.deepEqual([network.chainId, height >= 0, balance > 10n ** 18n], [31_337n, true, true]);
      const deployed = await (await wallet.sendTransaction({ data: BYTECODE })).wait();
      const address = deployed?.contractAddress;
      assert.ok(deployed?.status === 1 && typeof address === "string");
      const emitted = await (
        await wallet.sendTransaction({ to: address, gasLimit: 100_000n })
      ).wait();
      assert.equal(emitted?.status, 1);
      const logs = await provider.getLogs({
        address,
        fromBlock: deployed.blockNumber,
        toBlock: "latest",
      });
      assert.deepEqual(
        logs.map((it) => [it.transactionHash, it.topics]),
        [[emitted.hash, [toBeHex(0x2a, 32)]]],
      );
      await assert.rejects(
        new Contract(address, ABI, provider).getFunction("fail").staticCall(),
        (error: unknown) => {
          return (
            isCallException(error) &&
            error.revert?.name === "Denied" &&
            error.revert.args[0] === 42n
          );
        },
      );
      await assert.rejects(
        provider.send("personal_listAccounts", []),
        (error: unknown) =>
          isError(error, "UNSUPPORTED_OPERATION") || /not served/.test(String(error)),
      );
      const many = await Promise.all(
        Array.from({ length: 30 }, (_, n) =>
          provider.getBalance(`0x${(n + 1).toString(16).padStart(40, "0")}`),
        ),
      );
      assert.equal(many.length, 30);
    });

  const chain = () => defineChain({ ...LOCAL, rpcUrls: { default: { http: [url] } } });

  it("viem decodes a custom error", async () => {
    const reader = createPublicClient({
      chain: chain(),
      transport: http(url, { retryCount: 0 }),
      pollingInterval: 50,
    });
    const wallet = createWalletClient({
      chain: chain(),
      transport: http(url, { retryCount: 0 }),
      account: privateKeyToAccount(KEY),
    });
    const { contractAddress } = await reader.waitForTransactionReceipt({
      hash: await wallet.deployContract({ abi: parseAbi(ABI), bytecode: BYTECODE }),
    });
    assert.ok(contractAddress !== null && contractAddress !== undefined);
    await assert.rejects(
      reader.readContract({ address: contractAddress, abi: parseAbi(ABI), functionName: "fail" }),
      (error: unknown) => {
        const reverted =
          error instanceof BaseError
            ? error.walk((it) => it instanceof ContractFunctionRevertedError)
            : null;
        return (
          reverted instanceof ContractFunctionRevertedError &&
          reverted.data?.errorName === "Denied" &&
          reverted.data.args?.[0] === 42n
        );
      },
    );
  });

  it("viem's own check of the chain id finds a wrong one before anything is sent", async () => {
    const elsewhere = defineChain({ ...LOCAL, id: 1, rpcUrls: { default: { http: [url] } } });
    const wallet = createWalletClient({
      chain: elsewhere,
      transport: http(url, { retryCount: 0 }),
      account: BOB,
    });
    await assert.rejects(wallet.sendTransaction({ to: BOB, value: 1n }), (error: unknown) => {
      return (
        error instanceof BaseError && error.walk((it) => it instanceof ChainMismatchError) !== null
      );
    });
  });

  it("viem batches more calls than one batch may hold, in several batches", async () => {
    const reader = createPublicClient({
      chain: chain(),
      transport: http(url, { retryCount: 0, batch: { batchSize: 50 } }),
    });
    const balances = await Promise.all(
      Array.from({ length: 120 }, (_, n) =>
        reader.getBalance({ address: `0x${(n + 1).toString(16).padStart(40, "0")}` }),
      ),
    );
    assert.equal(balances.length, 120);
  });

  it("viem understands our refusals as what they are", async () => {
    const at = (path: string) =>
      createWalletClient({ transport: http(service.url + path, { retryCount: 0 }) });
    assert.deepEqual(
      await at("/rpc/local").getAddresses(),
      [],
      "as wallets without an account expect it",
    );
    await assert.rejects(
      at("/rpc/local").signMessage({ account: BOB, message: "x" }),
      (error: unknown) => {
        return (
          error instanceof BaseError &&
          error.walk((it) => it instanceof MethodNotFoundRpcError) !== null
        );
      },
    );
    await assert.rejects(at("/rpc/nochain").getChainId(), (error: unknown) => {
      const refused =
        error instanceof BaseError
          ? error.walk((it) => it instanceof HttpRequestError || it instanceof RpcRequestError)
          : null;
      return refused !== null && /unknown_chain|no chain has this name/.test(String(refused));
    });
  });
});
