// ethers in the rounds: over HTTP or a WebSocket, with its own settings.
import { JsonRpcProvider, type TransactionResponse, Wallet, WebSocketProvider } from "ethers";
import { endProvider } from "../fakes/ethers-provider.ts";
import type { RoundsTask } from "./protocol.ts";
import type { RoundsClient } from "./rounds.ts";

/**
 * The local chain makes blocks at once: ethers would look for them every four seconds, and it would
 * believe for 250 ms, which is more than a block takes here, that there is no receipt.
 */
const OPTIONS = { pollingInterval: 200, cacheTimeout: -1 };

/** An ethers client for a task. */
export function ethersRounds({ wire, url, key }: RoundsTask): RoundsClient {
  const socket = wire === "ws" ? new WebSocketProvider(url, undefined, OPTIONS) : null;
  const provider = socket ?? new JsonRpcProvider(url, undefined, OPTIONS);
  const wallet = new Wallet(key, provider);
  const sent = new Map<string, TransactionResponse>();
  return {
    nonce: (tag) => provider.getTransactionCount(wallet.address, tag),
    async send(transaction) {
      const response = await wallet.sendTransaction(transaction);
      sent.clear();
      sent.set(response.hash, response);
      return response.hash;
    },
    isKnown: async (hash) => (await provider.getTransaction(hash)) !== null,
    async receipt(hash, timeoutMs) {
      const receipt = await sent.get(hash)?.wait(1, timeoutMs);
      if (receipt === null || receipt === undefined) throw new Error("no receipt");
      const { blockNumber, blockHash, contractAddress } = receipt;
      return { succeeded: receipt.status === 1, blockNumber, blockHash, contractAddress };
    },
    height: () => provider.getBlockNumber(),
    block: async (at) => (await provider.getBlock(at))?.hash ?? null,
    async call(to) {
      const data = await provider.call({ to });
      return data === "0x" ? null : BigInt(data);
    },
    code: (of) => provider.getCode(of),
    logs: async (address, fromBlock, toBlock) =>
      (await provider.getLogs({ address, fromBlock, toBlock })).length,
    estimate: async (to, data) =>
      Number(await provider.estimateGas({ from: wallet.address, to, data })),
    heads:
      socket === null
        ? null
        : (onHead) => socket.on("block", (number: number) => onHead({ number, hash: null })),
    close: () => endProvider(provider),
  };
}
