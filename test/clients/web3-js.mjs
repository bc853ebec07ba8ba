// web3.js as it comes, over HTTP and a WebSocket: calls, batches, a transaction and subscriptions.
// It is installed where the second argument says.
import { createRequire } from "node:module";
import {
  attempt,
  attemptAtOnce,
  expect,
  judge,
  task,
  tell,
  tellRounds,
  watching,
} from "./protocol.ts";

const { Web3 } = createRequire(process.argv[3])("web3");
const { http: httpUrl, ws: wsUrl, watchWs, emitter, key, failover } = task();
const BATCH = 100;

function web3Of(url) {
  const web3 = new Web3(url);
  const account = web3.eth.accounts.wallet.add(key).get(0);
  return { web3, account, send: (method, params) => web3.requestManager.send({ method, params }) };
}

async function calls(wire) {
  const { web3, account, send } = web3Of(wire === "http" ? httpUrl : wsUrl);
  await attempt("basics", wire, async () => {
    const [id, height, balance, code] = [
      await web3.eth.getChainId(),
      await web3.eth.getBlockNumber(),
      await web3.eth.getBalance(account.address),
      await web3.eth.getCode(emitter),
    ];
    const block = await web3.eth.getBlock(height);
    expect(
      id === 31_337n && balance > 0n && code !== "0x" && block.number === height,
      "wrong answers",
    );
  });
  await attempt("accounts", wire, async () =>
    expect((await web3.eth.getAccounts()).length === 0, "not []"),
  );
  await attempt("transaction", wire, async () => {
    const receipt = await web3.eth.sendTransaction({
      from: account.address,
      to: account.address,
      value: 1n,
    });
    expect(receipt.status === 1n, "the transaction failed");
  });
  await attempt("batch", wire, async () => {
    const batch = new web3.BatchRequest();
    for (let n = 1; n <= BATCH; n++) {
      const params = [`0x${n.toString(16).padStart(40, "0")}`, "latest"];
      batch.add({ jsonrpc: "2.0", id: n, method: "eth_getBalance", params });
    }
    const answers = await batch.execute();
    expect(
      answers.length === BATCH && answers.every((it) => it.result === "0x0"),
      "calls are missing",
    );
    return `${BATCH} calls in one batch`;
  });
  await attemptAtOnce(wire, (address) => web3.eth.getBalance(address));
  await attempt("filters", wire, async () => {
    const [blocks, logs] = [
      await send("eth_newBlockFilter", []),
      await send("eth_newFilter", [{ address: emitter }]),
    ];
    const pending = await send("eth_newPendingTransactionFilter", []);
    const { transactionHash, blockHash } = await web3.eth.sendTransaction({
      from: account.address,
      to: emitter,
      gas: 200_000n,
    });
    const seen = { blocks: [], logs: [], pending: [] };
    while (
      !seen.blocks.includes(blockHash) ||
      !seen.logs.includes(transactionHash) ||
      !seen.pending.includes(transactionHash)
    ) {
      seen.blocks.push(...(await send("eth_getFilterChanges", [blocks])));
      seen.logs.push(
        ...(await send("eth_getFilterChanges", [logs])).map((it) => it.transactionHash),
      );
      seen.pending.push(...(await send("eth_getFilterChanges", [pending])));
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(
      seen.logs.filter((it) => it === transactionHash).length === 1,
      "the log came more than once",
    );
    for (const filter of [blocks, logs, pending])
      expect(await send("eth_uninstallFilter", [filter]), "not uninstalled");
  });
}

async function watchers() {
  const { web3 } = web3Of(watchWs);
  const subscribe = (feature, of, ...args) =>
    watching(feature, "ws", async (it) => {
      const subscription = await web3.eth.subscribe(...args);
      subscription.on("data", (data) => it.seen.push(of(data)));
      subscription.on("error", (error) => it.errors.push(error.message));
    });
  return [
    await subscribe("blocks", (it) => Number(it.number), "newBlockHeaders"),
    await subscribe("logs", (it) => it.transactionHash, "logs", { address: emitter }),
    await subscribe("pending", (it) => it, "newPendingTransactions"),
  ];
}

/** A web3.js client for the rounds, with its own settings. */
function roundsOf({ wire, url, key: own }) {
  const web3 = new Web3(url);
  const { address: from } = web3.eth.accounts.wallet.add(own).get(0);
  const sent = new Map();
  const isMissing = (error) => /not found/i.test(error.message);
  const orNull = (asked) =>
    asked.catch((error) => {
      if (isMissing(error)) return null;
      throw error;
    });
  return {
    nonce: async (tag) => Number(await web3.eth.getTransactionCount(from, tag)),
    send({ nonce, to, data }) {
      const asked = web3.eth.sendTransaction({ from, nonce, data, ...(to === null ? {} : { to }) });
      return new Promise((resolve, reject) => {
        asked.once("transactionHash", (hash) => {
          sent.clear();
          sent.set(hash, asked);
          resolve(hash);
        });
        asked.catch(reject);
      });
    },
    isKnown: async (hash) => (await orNull(web3.eth.getTransaction(hash))) !== null,
    async receipt(hash, timeoutMs) {
      const late = new Promise((_, reject) =>
        setTimeout(() => reject(new Error("no receipt")), timeoutMs).unref(),
      );
      const receipt = await Promise.race([sent.get(hash), late]);
      return {
        succeeded: receipt.status === 1n,
        blockNumber: Number(receipt.blockNumber),
        blockHash: receipt.blockHash,
        contractAddress: receipt.contractAddress ?? null,
      };
    },
    height: async () => Number(await web3.eth.getBlockNumber()),
    block: async (at) => (await orNull(web3.eth.getBlock(at)))?.hash ?? null,
    async call(to) {
      const data = await web3.eth.call({ to });
      return data === "0x" ? null : BigInt(data);
    },
    code: (of) => web3.eth.getCode(of),
    logs: async (address, fromBlock, toBlock) =>
      (await web3.eth.getPastLogs({ address, fromBlock, toBlock })).length,
    estimate: async (to, data) => Number(await web3.eth.estimateGas({ from, to, data })),
    heads:
      wire === "http"
        ? null
        : async (onHead) =>
            (await web3.eth.subscribe("newBlockHeaders")).on("data", ({ number, hash }) =>
              onHead({ number: Number(number), hash }),
            ),
    close: () => (wire === "http" ? undefined : web3.provider.disconnect()),
  };
}

await tellRounds(task(), roundsOf);
if (!failover) {
  await calls("http");
  await calls("ws");
}
for (const feature of ["blocks", "logs", "pending"])
  tell({ feature, wire: "http", status: "not run", note: "web3.js watches over a WebSocket only" });
await judge(await watchers());
