// viem as it comes, over HTTP and a WebSocket: calls, batches, a transaction, watchers and filters.
import {
  createPublicClient,
  createWalletClient,
  defineChain,
  type Hex,
  http,
  isAddress,
  webSocket,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import {
  attempt,
  attemptAtOnce,
  expect,
  judge,
  task,
  tellRounds,
  type Watched,
  type Wire,
  watching,
} from "./protocol.ts";
import { viemRounds } from "./viem-rounds.ts";

const { http: httpUrl, ws: wsUrl, watchHttp, watchWs, emitter, key, failover } = task();
const nativeCurrency = { name: "Ether", symbol: "ETH", decimals: 18 };
const chain = defineChain({
  id: 31_337,
  name: "Local",
  nativeCurrency,
  rpcUrls: { default: { http: [httpUrl], webSocket: [wsUrl] } },
});
const account = privateKeyToAccount(parseHex(key));
const address = parseHex(emitter);
const BATCH = 1_000;

function clientsOf(wire: Wire, url = wire === "http" ? httpUrl : wsUrl) {
  const transport = wire === "http" ? http(url) : webSocket(url);
  return {
    reader: createPublicClient({ chain, transport, pollingInterval: 200, cacheTime: 0 }),
    wallet: createWalletClient({ chain, transport, account }),
  };
}

async function calls(wire: Wire): Promise<void> {
  const { reader, wallet } = clientsOf(wire);
  await attempt("basics", wire, async () => {
    const [id, height, balance, code] = await Promise.all([
      reader.getChainId(),
      reader.getBlockNumber(),
      reader.getBalance({ address: account.address }),
      reader.getCode({ address }),
    ]);
    const block = await reader.getBlock({ blockNumber: height });
    expect(
      id === 31_337 && balance > 0n && code !== undefined && block.number === height,
      "wrong answers",
    );
    return undefined;
  });
  await attempt("accounts", wire, async () => {
    expect((await wallet.getAddresses()).length === 1, "viem tells its own account");
    expect(
      (
        await createWalletClient({
          chain,
          transport: wire === "http" ? http(httpUrl) : webSocket(wsUrl),
        }).getAddresses()
      ).length === 0,
      "not []",
    );
    return undefined;
  });
  await attempt("transaction", wire, async () => {
    const hash = await wallet.sendTransaction({ to: account.address, value: 1n });
    const receipt = await reader.waitForTransactionReceipt({ hash, timeout: 30_000 });
    expect(receipt.status === "success", "the transaction failed");
    return undefined;
  });
  await attemptAtOnce(wire, (address) => reader.getBalance({ address }));
  await attempt("filters", wire, async () => {
    const [blocks, logs, pending] = [
      await reader.createBlockFilter(),
      await reader.createEventFilter({ address }),
      await reader.createPendingTransactionFilter(),
    ];
    const hash = await wallet.sendTransaction({ to: address, gas: 200_000n });
    const { blockHash } = await reader.waitForTransactionReceipt({ hash, timeout: 30_000 });
    const seen = { blocks: [] as Hex[], logs: [] as Hex[], pending: [] as Hex[] };
    while (
      !seen.blocks.includes(blockHash) ||
      !seen.logs.includes(hash) ||
      !seen.pending.includes(hash)
    ) {
      seen.blocks.push(...(await reader.getFilterChanges({ filter: blocks })));
      seen.logs.push(
        ...(await reader.getFilterChanges({ filter: logs })).flatMap(
          (it) => it.transactionHash ?? [],
        ),
      );
      seen.pending.push(...(await reader.getFilterChanges({ filter: pending })));
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(seen.logs.filter((it) => it === hash).length === 1, "the log came more than once");
    expect(
      (await reader.getFilterLogs({ filter: logs })).every(
        (it) => it.address === address.toLowerCase(),
      ),
      "wrong logs",
    );
    for (const filter of [blocks, logs, pending])
      expect(await reader.uninstallFilter({ filter }), "not uninstalled");
    expect(!(await reader.uninstallFilter({ filter: blocks })), "uninstalled twice");
    return undefined;
  });
}

async function batch(): Promise<void> {
  let sent = 0;
  const onFetchRequest = (): void => void sent++;
  const reader = createPublicClient({
    chain,
    transport: http(httpUrl, {
      batch: { batchSize: BATCH, wait: 50 },
      retryCount: 0,
      onFetchRequest,
    }),
  });
  await attempt("batch", "http", async () => {
    const balances = await Promise.all(
      Array.from({ length: BATCH }, (_, n) => reader.getBalance({ address: addressOf(n + 1) })),
    );
    expect(
      balances.length === BATCH && sent === 1,
      `${sent} requests for ${balances.length} calls`,
    );
    return `${BATCH} calls in one batch`;
  });
}

function watchers(wire: Wire): Promise<readonly Watched[]> {
  const { reader } = clientsOf(wire, wire === "http" ? watchHttp : watchWs);
  const onErrorOf = (it: Watched) => (error: Error) =>
    void it.errors.push(error.message.split("\n", 1)[0] ?? "");
  return Promise.all([
    watching("blocks", wire, async (it) => {
      // Begins with the newest block.
      reader.watchBlocks({
        emitMissed: true,
        emitOnBegin: true,
        onBlock: (block) => void it.seen.push(Number(block.number)),
        onError: onErrorOf(it),
      });
      while (wire === "http" && it.seen.length === 0)
        await new Promise((resolve) => setTimeout(resolve, 50));
    }),
    watching("logs", wire, (it) =>
      reader.watchEvent({
        address,
        onLogs: (logs) => void it.seen.push(...logs.flatMap((log) => log.transactionHash ?? [])),
        onError: onErrorOf(it),
      }),
    ),
    watching("pending", wire, (it) =>
      reader.watchPendingTransactions({
        onTransactions: (hashes) => void it.seen.push(...hashes),
        onError: onErrorOf(it),
      }),
    ),
  ]);
}

function addressOf(n: number): Hex {
  return `0x${n.toString(16).padStart(40, "0")}`;
}

function parseHex(text: string): Hex {
  if (!isAddress(text) && !/^0x[0-9a-f]{64}$/.test(text))
    throw new Error("neither an address nor a key");
  return text as Hex;
}

await tellRounds(task(), viemRounds);
if (!failover) {
  await calls("http");
  await batch();
  await calls("ws");
}
const watched = [...(await watchers("http")), ...(await watchers("ws"))];
// Filters and subscriptions are asked for without waiting: they are there a moment later.
await new Promise((resolve) => setTimeout(resolve, 1_500));
await judge(watched);
