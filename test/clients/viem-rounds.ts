// viem in the rounds: over HTTP or a WebSocket, with its own settings.
import {
  BlockNotFoundError,
  createPublicClient,
  createWalletClient,
  defineChain,
  type Hex,
  http,
  isHex,
  TransactionNotFoundError,
  webSocket,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { RoundsTask } from "./protocol.ts";
import type { RoundsClient } from "./rounds.ts";

/** The local chain makes blocks at once; viem would look for them every four seconds. */
const POLLING_MS = 200;
/**
 * A poll that is under way when the client is closed opens its socket once more. Kept alive or
 * connected again, that socket would keep the process of a test for ever.
 */
const SOCKET_OPTIONS = { keepAlive: false, reconnect: false };

/** A viem client for a task. */
export function viemRounds({ wire, url, key }: RoundsTask): RoundsClient {
  const chain = defineChain({
    id: 31_337,
    name: "Local",
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [url] } },
  });
  const account = privateKeyToAccount(hexOf(key));
  const socket = wire === "ws" ? webSocket(url, SOCKET_OPTIONS) : null;
  const settings = { chain, transport: socket ?? http(url), pollingInterval: POLLING_MS };
  const reader = createPublicClient(settings);
  const wallet = createWalletClient({ ...settings, account });
  const { address } = account;
  return {
    nonce: (blockTag) => reader.getTransactionCount({ address, blockTag }),
    send: ({ nonce, to, data }) =>
      wallet.sendTransaction({ nonce, to: to === null ? null : hexOf(to), data: hexOf(data) }),
    isKnown: (hash) => found(reader.getTransaction({ hash: hexOf(hash) })),
    async receipt(hash, timeout) {
      const receipt = await reader.waitForTransactionReceipt({ hash: hexOf(hash), timeout });
      return {
        succeeded: receipt.status === "success",
        blockNumber: Number(receipt.blockNumber),
        blockHash: receipt.blockHash,
        contractAddress: receipt.contractAddress ?? null,
      };
    },
    // viem would keep the number for as long as it waits between two polls.
    height: async () => Number(await reader.request({ method: "eth_blockNumber" })),
    async block(at) {
      const asked =
        typeof at === "number"
          ? reader.getBlock({ blockNumber: BigInt(at) })
          : reader.getBlock({ blockHash: hexOf(at) });
      return (await orNull(asked))?.hash ?? null;
    },
    async call(to) {
      const { data } = await reader.call({ to: hexOf(to) });
      return data === undefined ? null : BigInt(data);
    },
    code: async (of) => (await reader.getCode({ address: hexOf(of) })) ?? "0x",
    async logs(of, from, to) {
      const fromBlock = BigInt(from);
      const toBlock = to === "latest" ? to : BigInt(to);
      return (await reader.getLogs({ address: hexOf(of), fromBlock, toBlock })).length;
    },
    estimate: async (to, data) =>
      Number(await reader.estimateGas({ account, to: hexOf(to), data: hexOf(data) })),
    heads: socket === null ? null : (onHead) => watchHeads(onHead),
    close: async () =>
      socket === null ? undefined : (await socketOf(settings).transport.getRpcClient()).close(),
  };

  function socketOf({ transport: _, ...rest }: typeof settings) {
    return createPublicClient({ ...rest, transport: socket ?? webSocket(url, SOCKET_OPTIONS) });
  }

  function watchHeads(onHead: Parameters<NonNullable<RoundsClient["heads"]>>[0]) {
    return socketOf(settings).transport.subscribe({
      params: ["newHeads"],
      onData: ({ result }) => onHead({ number: Number(result.number), hash: result.hash }),
    });
  }
}

async function found(asked: Promise<unknown>): Promise<boolean> {
  return (await orNull(asked)) !== null;
}

async function orNull<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof BlockNotFoundError || error instanceof TransactionNotFoundError)
      return null;
    throw error;
  }
}

function hexOf(text: string): Hex {
  if (!isHex(text)) throw new Error(`no hexadecimal text: ${text}`);
  return text;
}
