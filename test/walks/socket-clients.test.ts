// Stock clients on the service's sockets over real EVM nodes: viem and ethers read, send and watch
// as they come, and miss nothing when a node is killed.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { WebSocketProvider } from "ethers";
import {
  createPublicClient,
  createWalletClient,
  type Hex,
  parseAbi,
  parseEther,
  type TransactionReceipt,
  webSocket,
} from "viem";
import type { Devnet } from "../../src/devnet/devnet.ts";
import type { Ender } from "../fakes/process.ts";
import {
  ALICE,
  FEES,
  localChain,
  PING_ABI,
  PING_BYTECODE,
  PING_CODE,
  type RealNodes,
  sendMined,
  startRealNodes,
} from "../fakes/real-nodes.ts";
import type { Service } from "../fakes/service.ts";
import { until } from "../fakes/service-fixture.ts";

const ABI = [...PING_ABI, ...parseAbi(["function any() view returns (uint256)"])] as const;

interface Stream {
  readonly kind: string;
  readonly state: string;
  readonly provider: string;
  readonly pinned: boolean;
  readonly subscribers: number;
  readonly failovers: number;
}

describe("over three real nodes", () => {
  let nodes: RealNodes;
  let devnet: Devnet;
  let service: Service;
  let nonce = 0;
  let emitter: Hex = "0x";

  const urlOf = (path: string): string => `${service.url.replace("http", "ws")}/ws/rpc${path}`;

  function viemAt(path: string, t: Ender) {
    const url = urlOf(path);
    const chain = localChain(`${service.url}/rpc${path}`);
    const transport = webSocket(url, { retryCount: 0, reconnect: false });
    const reader = createPublicClient({ chain, transport, cacheTime: 0, pollingInterval: 50 });
    t.after(async () => (await reader.transport.getRpcClient()).close());
    return { reader, wallet: createWalletClient({ chain, transport, account: ALICE }) };
  }

  function ethersAt(path: string, t: Ender): WebSocketProvider {
    const provider = new WebSocketProvider(urlOf(path), 31_337);
    t.after(() => provider.destroy());
    return provider;
  }

  async function streams(): Promise<readonly Stream[]> {
    return (await service.get("/api/metrics/31337")).json.profiles[0].subscriptions.streams;
  }

  /** Waits until the service has this many subscriptions of callers, all real. */
  function subscribed(count: number): Promise<unknown> {
    return until("the subscriptions", async () => {
      const all = await streams();
      return (
        all.every((it) => it.state === "live") &&
        all.reduce((sum, it) => sum + it.subscribers, 0) === count
      );
    });
  }

  before(async () => {
    nodes = await startRealNodes({ sockets: true });
    ({ devnet, service } = nodes);
    // Closed while the service is there: viem would connect again to close afterwards.
    const endings: (() => unknown)[] = [];
    const at = viemAt("/priority/local", { after: (end) => void endings.push(end) });
    const { contractAddress } = await sendMined(at, { data: PING_BYTECODE, nonce: nonce++ });
    for (const end of endings) await end();
    emitter = contractAddress ?? "0x";
  });
  after(() => nodes.close());

  function emit(
    at: Pick<ReturnType<typeof viemAt>, "reader" | "wallet">,
  ): Promise<TransactionReceipt> {
    return sendMined(at, { to: emitter, nonce: nonce++ });
  }

  it("viem reads, calls, sends and waits", async (t) => {
    const { reader, wallet } = viemAt("/priority/local", t);
    const [chainId, height, balance] = await Promise.all([
      reader.getChainId(),
      reader.getBlockNumber(),
      reader.getBalance({ address: ALICE.address }),
    ]);
    assert.ok(chainId === 31_337 && height >= 1n && balance > parseEther("9000"));
    assert.deepEqual(await reader.call({ to: emitter }), { data: undefined });
    const many = await Promise.all(
      Array.from({ length: 30 }, () => reader.getCode({ address: emitter })),
    );
    assert.deepEqual(new Set(many), new Set([PING_CODE]));
    const { status, logs } = await emit({ reader, wallet });
    assert.deepEqual([status, logs.length], ["success", 1]);
  });

  it(
    "a caller that asks for the block of a head at once gets it, at the default strategy as well, " +
      "though other nodes are a moment behind",
    async (t) => {
      const { reader, wallet } = viemAt("/local", t);
      const seen: (bigint | null)[] = [];
      await nodes.noBlockDue();
      const unwatch = reader.watchBlocks({
        onBlock: (it) => void seen.push(it?.number ?? null),
        onError: (error) => assert.fail(error),
      });
      await subscribed(1);
      for (let n = 1; n <= 8; n++) {
        await wallet.sendTransaction({ to: emitter, nonce: nonce++, ...FEES });
        await until(`block ${n}`, () => seen.length >= n);
      }
      unwatch();
      const first = seen[0] ?? assert.fail("a head without its block");
      assert.deepEqual(
        seen.slice(0, 8),
        seen.slice(0, 8).map((_, n) => first + BigInt(n)),
      );
    },
  );

  it("viem watches blocks, block numbers, events, contract events and pending transactions", async (t) => {
    const { reader, wallet } = viemAt("/provider/anvil-1/local", t);
    const seen = {
      blocks: [] as bigint[],
      numbers: [] as bigint[],
      events: [] as unknown[],
      pings: [] as unknown[],
      pending: [] as unknown[],
    };
    const onError = (error: Error): never => assert.fail(error);
    await nodes.noBlockDue();
    const unwatch = [
      reader.watchBlocks({ onBlock: (it) => it && void seen.blocks.push(it.number), onError }),
      reader.watchBlockNumber({ onBlockNumber: (it) => void seen.numbers.push(it), onError }),
      reader.watchEvent({
        address: emitter,
        onLogs: (logs) => void seen.events.push(...logs.map((it) => it.transactionHash)),
        onError,
      }),
      reader.watchContractEvent({
        address: emitter,
        abi: ABI,
        eventName: "Ping",
        onLogs: (logs) =>
          void seen.pings.push(...logs.map((it) => `${it.args.value} ${it.transactionHash}`)),
        onError,
      }),
      reader.watchPendingTransactions({
        onTransactions: (hashes) => void seen.pending.push(...hashes),
        onError,
      }),
    ];
    await subscribed(5);
    const from = await reader.getBlockNumber();
    const sent: Hex[] = [];
    for (let n = 0; n < 5; n++) sent.push((await emit({ reader, wallet })).transactionHash);
    const to = await reader.getBlockNumber();
    const expected = Array.from({ length: Number(to - from) }, (_, n) => from + 1n + BigInt(n));
    await until(
      "all of it",
      () =>
        seen.blocks.at(-1) === to &&
        seen.numbers.at(-1) === to &&
        seen.events.length >= 5 &&
        seen.pings.length >= 5,
    );
    assert.deepEqual([seen.blocks, seen.numbers], [expected, expected]);
    assert.deepEqual(
      [seen.events, seen.pings, seen.pending],
      [sent, sent.map((it) => `42 ${it}`), sent],
    );
    for (const stop of unwatch) stop();
    await subscribed(0);
  });

  it("ethers watches blocks, filtered logs and pending transactions, and sends", async (t) => {
    const provider = ethersAt("/provider/anvil-1/local", t);
    const { reader, wallet } = viemAt("/provider/anvil-1/local", t);
    const seen = { blocks: [] as number[], logs: [] as string[], pending: [] as string[] };
    await provider.on("block", (number: number) => void seen.blocks.push(number));
    await provider.on(
      { address: emitter },
      (log: { transactionHash: string }) => void seen.logs.push(log.transactionHash),
    );
    await provider.on("pending", (hash: string) => void seen.pending.push(hash));
    await subscribed(3);
    const from = Number(await reader.getBlockNumber());
    assert.deepEqual(
      [await provider.send("net_version", []), await provider.getBlockNumber()],
      ["31337", from],
    );
    const sent: string[] = [];
    for (let n = 0; n < 3; n++) sent.push((await emit({ reader, wallet })).transactionHash);
    const to = Number(await reader.getBlockNumber());
    await until(
      "all of it",
      () => seen.blocks.includes(to) && seen.logs.length >= 3 && seen.pending.length >= 3,
    );
    assert.deepEqual(
      seen.blocks.filter((it) => it > from),
      Array.from({ length: to - from }, (_, n) => from + 1 + n),
    );
    assert.deepEqual([seen.logs, seen.pending], [sent, sent]);
  });

  it(
    "the node that serves them is killed while both watch: blocks and events go on without a " +
      "gap, and no call fails",
    async (t) => {
      // In order of priority, so that what viem asks on hearing of a head is asked of the node that
      // told it: another may be a moment behind.
      const { reader, wallet } = viemAt("/priority/local", t);
      const provider = ethersAt("/priority/local", t);
      const seen = {
        viem: [] as (readonly [bigint, Hex])[],
        ethers: [] as number[],
        events: [] as Hex[],
        logs: [] as string[],
      };
      const onError = (error: Error): never => assert.fail(error);
      await nodes.noBlockDue();
      const unwatch = [
        reader.watchBlocks({
          // Viem has no block where its reader was closed meanwhile.
          onBlock: (it) => it && void seen.viem.push([it.number, it.hash]),
          onError,
        }),
        reader.watchEvent({
          address: emitter,
          onLogs: (logs) => void seen.events.push(...logs.map((it) => it.transactionHash)),
          onError,
        }),
      ];
      await provider.on("block", (number: number) => void seen.ethers.push(number));
      await provider.on(
        { address: emitter },
        (log: { transactionHash: string }) => void seen.logs.push(log.transactionHash),
      );
      await subscribed(4);
      const receipts = [await emit({ reader, wallet }), await emit({ reader, wallet })];
      const heads = async (): Promise<Stream> =>
        (await streams()).find((it) => it.kind === "newHeads" && !it.pinned) ?? assert.fail();
      const { provider: serving } = await heads();
      await nodes.noBlockDue();
      const victim = devnet.providers.find((it) => it.id === serving) ?? assert.fail();
      const reads = Array.from({ length: 15 }, () => reader.getBalance({ address: ALICE.address }));
      process.kill(victim.pid, "SIGKILL");
      reads.push(
        ...Array.from({ length: 15 }, () => reader.getBalance({ address: ALICE.address })),
      );
      assert.ok((await Promise.all(reads)).every((it) => it > 0n));
      for (let n = 0; n < 5; n++) receipts.push(await emit({ reader, wallet }));
      const sent = receipts.map((it) => it.transactionHash);
      await until("every event", () => seen.events.length >= 7 && seen.logs.length >= 7);
      assert.deepEqual([seen.events, seen.logs], [sent, sent]);
      const last = receipts.at(-1)?.blockNumber ?? 0n;
      await until(
        "every block",
        () => (seen.viem.at(-1)?.[0] ?? 0n) >= last && (seen.ethers.at(-1) ?? 0) >= Number(last),
      );
      const [first = 0n] = seen.viem.map(([number]) => number);
      for (const [n, [number, hash]] of seen.viem.entries()) {
        assert.equal(number, first + BigInt(n));
        const block = await until("the block", () =>
          reader.getBlock({ blockNumber: number }).catch(() => null),
        );
        assert.equal(hash, block.hash);
      }
      for (const [n, number] of seen.ethers.entries())
        assert.equal(number, (seen.ethers[0] ?? 0) + n);
      const { failovers, provider: replacement } = await heads();
      assert.deepEqual([failovers, replacement === serving], [1, false]);
      for (const stop of unwatch) stop();
    },
  );
});
