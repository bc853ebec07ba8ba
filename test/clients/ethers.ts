// ethers as it comes, over HTTP and a WebSocket: calls, its batches of a hundred, a transaction,
// events and filters.
import { JsonRpcProvider, type Log, Wallet, WebSocketProvider } from "ethers";
import { ethersRounds } from "./ethers-rounds.ts";
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

const { http: httpUrl, ws: wsUrl, watchHttp, watchWs, emitter, key, failover } = task();
const BATCH = 100;
/** More than one socket has in flight: the others wait there. */
const ON_SOCKET = 1_000;

/** As it comes, but for its cache: for 250 ms it would use the nonce of the transaction before. */
function providerOf(wire: Wire, url: string): JsonRpcProvider | WebSocketProvider {
  const options = { pollingInterval: 200, cacheTimeout: -1 };
  return wire === "http"
    ? new JsonRpcProvider(url, undefined, options)
    : new WebSocketProvider(url, undefined, options);
}

async function calls(wire: Wire): Promise<void> {
  const provider = providerOf(wire, wire === "http" ? httpUrl : wsUrl);
  const wallet = new Wallet(key, provider);
  await attempt("basics", wire, async () => {
    const [network, height, balance, code] = await Promise.all([
      provider.getNetwork(),
      provider.getBlockNumber(),
      provider.getBalance(wallet.address),
      provider.getCode(emitter),
    ]);
    const block = await provider.getBlock(height);
    expect(
      network.chainId === 31_337n && balance > 0n && code !== "0x" && block?.number === height,
      "wrong answers",
    );
    return undefined;
  });
  await attempt("accounts", wire, async () => {
    expect((await provider.listAccounts()).length === 0, "not []");
    return undefined;
  });
  await attempt("transaction", wire, async () => {
    const sent = await wallet.sendTransaction({ to: wallet.address, value: 1n });
    expect((await sent.wait(1, 30_000))?.status === 1, "the transaction failed");
    return undefined;
  });
  await attempt("batch", wire, async () => {
    const count = wire === "http" ? BATCH : ON_SOCKET;
    const addresses = Array.from(
      { length: count },
      (_, n) => `0x${(n + 1).toString(16).padStart(40, "0")}`,
    );
    const balances = await Promise.all(addresses.map((it) => provider.getBalance(it)));
    expect(balances.length === count, "calls are missing");
    return wire === "http"
      ? `${BATCH} calls in its default batch`
      : `${ON_SOCKET} calls at once: it does not batch on a socket`;
  });
  const single =
    wire === "http" ? new JsonRpcProvider(httpUrl, undefined, { batchMaxCount: 1 }) : provider;
  await attemptAtOnce(wire, (address) => single.getBalance(address));
  await attempt("filters", wire, async () => {
    const [blocks, logs, pending] = [
      await provider.send("eth_newBlockFilter", []),
      await provider.send("eth_newFilter", [{ address: emitter }]),
      await provider.send("eth_newPendingTransactionFilter", []),
    ];
    const sent = await wallet.sendTransaction({ to: emitter, gasLimit: 200_000n });
    const receipt = await sent.wait(1, 30_000);
    const seen = { blocks: [] as string[], logs: [] as string[], pending: [] as string[] };
    while (
      !seen.blocks.includes(receipt?.blockHash ?? "") ||
      !seen.logs.includes(sent.hash) ||
      !seen.pending.includes(sent.hash)
    ) {
      seen.blocks.push(...(await provider.send("eth_getFilterChanges", [blocks])));
      seen.logs.push(
        ...(await provider.send("eth_getFilterChanges", [logs])).map(
          (it: Log) => it.transactionHash,
        ),
      );
      seen.pending.push(...(await provider.send("eth_getFilterChanges", [pending])));
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(seen.logs.filter((it) => it === sent.hash).length === 1, "the log came more than once");
    for (const filter of [blocks, logs, pending])
      expect((await provider.send("eth_uninstallFilter", [filter])) === true, "not uninstalled");
    return undefined;
  });
}

function watchers(wire: Wire): Promise<readonly Watched[]> {
  const provider = providerOf(wire, wire === "http" ? watchHttp : watchWs);
  return Promise.all([
    watching("blocks", wire, (it) =>
      provider.on("block", (number: number) => void it.seen.push(number)),
    ),
    watching("logs", wire, (it) =>
      provider.on({ address: emitter }, (log: Log) => void it.seen.push(log.transactionHash)),
    ),
    watching("pending", wire, (it) =>
      provider.on("pending", (hash: string) => void it.seen.push(hash)),
    ),
  ]);
}

await tellRounds(task(), ethersRounds);
if (!failover) {
  await calls("http");
  await calls("ws");
}
const watched = [...(await watchers("http")), ...(await watchers("ws"))];
await new Promise((resolve) => setTimeout(resolve, 1_500));
await judge(watched);
