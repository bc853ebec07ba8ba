// Everybody who listens during a soak: bare sockets, viem and ethers as they come, and steady
// calls. Each subscription has a ledger. Knows no provider.
import { WebSocketProvider } from "ethers";
import { createPublicClient, type Hex, webSocket } from "viem";
import { z } from "zod";
import type { Caller } from "./caller.ts";
import { TOPICS } from "./chain.ts";
import { type Breaches, HeadLedger, type Log, LogLedger } from "./ledger.ts";
import type { Site } from "./site.ts";

/** The listeners of one act. */
export interface Audience {
  readonly heads: readonly HeadLedger[];
  readonly logs: readonly LogLedger[];
  readonly callers: readonly Caller[];
  /** Called with every head that the first listener is told. */
  onHead: (() => void) | null;
  /** What went wrong with the stock clients. */
  readonly errors: string[];
  readonly pendingTold: () => number;
  close(): Promise<void>;
}

/** Where the audience listens, and to whose logs. */
export interface Hall {
  readonly site: Site;
  readonly profile: string;
  readonly strategy: "load-balanced" | "priority";
  readonly emitters: readonly [Hex, Hex];
  readonly breaches: Breaches;
  /** Providers that have a listener of their own. */
  readonly pinned: readonly string[];
}

const RawHead = z.object({ number: z.string(), hash: z.string(), parentHash: z.string() });
const RawLog = z.object({
  address: z.string(),
  topics: z.array(z.string()),
  blockNumber: z.string(),
  blockHash: z.string(),
  logIndex: z.string(),
  removed: z.boolean().optional(),
});
/** Pending transactions that are watched for repeats: fewer than the service remembers. */
const REMEMBERED_PENDING = 4_000;

/** Seats everybody; resolves when every subscription is acknowledged. */
export async function seat(hall: Hall): Promise<Audience> {
  const errors: string[] = [];
  const heads: HeadLedger[] = [];
  const logs: LogLedger[] = [];
  const stops: (() => unknown)[] = [];
  const callers: Caller[] = [];
  let pending = 0;
  const open = async (path: string): Promise<Caller> => {
    const caller = await hall.site.open(path);
    callers.push(caller);
    stops.push(() => caller.close());
    return caller;
  };
  const audience: Audience = {
    heads,
    logs,
    callers,
    onHead: null,
    errors,
    pendingTold: () => pending,
    async close() {
      for (const stop of stops) await stop();
    },
  };
  const toHeads = (name: string): ((head: unknown) => void) => {
    const ledger = new HeadLedger(name, hall.breaches);
    heads.push(ledger);
    return (head) => ledger.hear(RawHead.parse(head));
  };
  const toLogs = (
    name: string,
    wanted: (log: Log) => boolean,
    takesBack = true,
  ): ((log: unknown) => void) => {
    const ledger = new LogLedger(name, hall.breaches, { wanted, takesBack });
    logs.push(ledger);
    return (log) => ledger.hear(RawLog.parse(log));
  };
  const path = pathOf(hall);
  const first = await open(path);
  const hearFirst = toHeads("heads");
  await first.subscribe(["newHeads"], (head) => {
    hearFirst(head);
    audience.onHead?.();
  });
  for (const { name, filter, wanted } of filtersOf(hall.emitters))
    await (await open(path)).subscribe(["logs", filter], toLogs(name, wanted));
  const second = await open(path);
  await second.subscribe(["newHeads"], toHeads("heads, second socket"));
  await second.subscribe(
    ["newPendingTransactions"],
    oncePending(hall.breaches, () => pending++),
  );
  for (const id of hall.pinned)
    await (await open(`/rpc/profile/${hall.profile}/provider/${id}/local`)).subscribe(
      ["newHeads"],
      toHeads(`heads pinned to ${id}`),
    );
  const stock = { errors, toLogs, stops };
  await seatViem(hall, stock);
  await seatEthers(hall, stock);
  return audience;
}

function pathOf({ profile, strategy }: Hall): string {
  return `/rpc/profile/${profile}/${strategy}/local`;
}

interface Filter {
  readonly name: string;
  readonly filter: Readonly<Record<string, unknown>>;
  readonly wanted: (log: Log) => boolean;
}

function filtersOf([a, b]: readonly [Hex, Hex]): readonly Filter[] {
  const [ping, pong] = TOPICS;
  return [
    { name: "all logs", filter: {}, wanted: () => true },
    { name: "logs by address", filter: { address: a }, wanted: (it) => it.address === a },
    { name: "logs by topic", filter: { topics: [ping] }, wanted: (it) => it.topics[0] === ping },
    // The one that ethers has as well: here it is seen what ethers keeps to itself.
    {
      name: "logs by address and topic",
      filter: { address: a, topics: [ping] },
      wanted: (it) => it.address === a && it.topics[0] === ping,
    },
    {
      name: "logs by lists",
      filter: { address: [a, b], topics: [[pong]] },
      wanted: (it) => it.topics[0] === pong,
    },
  ];
}

/** What a stock client is seated with. */
interface Stock {
  readonly errors: string[];
  readonly toLogs: (
    name: string,
    wanted: (log: Log) => boolean,
    takesBack?: boolean,
  ) => (log: unknown) => void;
  readonly stops: (() => unknown)[];
}

async function seatViem(hall: Hall, { errors, toLogs, stops }: Stock): Promise<void> {
  const [, b] = hall.emitters;
  const client = createPublicClient({
    transport: webSocket(hall.site.socketUrl(pathOf(hall)), {
      reconnect: false,
      keepAlive: false,
      retryCount: 0,
    }),
  });
  const hear = toLogs("viem's logs", (it) => it.address === b);
  const note = (error: Error): void => void errors.push(`viem: ${error.message.split("\n")[0]}`);
  client.watchBlocks({ onBlock: () => {}, onError: note });
  client.watchEvent({
    address: b,
    onError: note,
    onLogs: (logs) => {
      for (const it of logs)
        hear({
          ...it,
          blockNumber: `0x${it.blockNumber?.toString(16)}`,
          logIndex: `0x${it.logIndex?.toString(16)}`,
        });
    },
  });
  // Answered behind both subscriptions.
  await client.getChainId();
  const { socket } = await client.transport.getRpcClient();
  stops.push(() => socket.close());
}

async function seatEthers(hall: Hall, { errors, toLogs, stops }: Stock): Promise<void> {
  const [a] = hall.emitters;
  const [ping] = TOPICS;
  const provider = new WebSocketProvider(hall.site.socketUrl(pathOf(hall)), 31_337);
  const hear = toLogs("ethers' logs", (it) => it.address === a && it.topics[0] === ping, false);
  const note = (error: unknown): void => void errors.push(`ethers: ${String(error).slice(0, 200)}`);
  await provider.on("error", note);
  await provider.on("block", (number: number) => {
    if (!Number.isInteger(number)) note(`block ${number}`);
  });
  await provider.on({ address: a, topics: [ping] }, (it) =>
    hear({
      ...it,
      topics: [...it.topics],
      address: it.address.toLowerCase(),
      blockNumber: `0x${it.blockNumber.toString(16)}`,
      logIndex: `0x${it.index.toString(16)}`,
    }),
  );
  await provider.send("eth_gasPrice", []);
  stops.push(() => provider.destroy());
}

/** Hears transaction hashes and minds that none comes twice. */
function oncePending(breaches: Breaches, told: () => void): (hash: unknown) => void {
  const seen = new Set<unknown>();
  return (hash) => {
    told();
    if (seen.has(hash)) {
      breaches.duplicates++;
      breaches.words.push(`pending transaction ${String(hash)} came again`);
    }
    seen.add(hash);
    const oldest = seen.values().next();
    if (seen.size > REMEMBERED_PENDING && oldest.done !== true) seen.delete(oldest.value);
  };
}
