// Nodes that keep every promise of one view because they know the providers from inside: they show
// that the checker finds nothing where nothing is wrong.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocketServer } from "ws";
import type { ChainBlock } from "../../fakes/chain.ts";
import type { SentTransaction } from "./chain.ts";
import type { WireCall } from "./client.ts";
import { type Network, startNetwork } from "./network.ts";
import type { SimulatedProvider } from "./provider.ts";
import type { SitePlan, ViewSite } from "./site.ts";

/** Starts a site of such nodes, which are one in truth. */
export async function startReferenceSite(plan: SitePlan): Promise<ViewSite> {
  const network = await startNetwork(plan);
  const node = createReferenceNode(network);
  const servers = await Promise.all(Array.from({ length: plan.nodes }, () => serve(node)));
  return {
    network,
    nodes: servers.map(({ url }) => ({ url })),
    createKey: servers[0]?.createKey ?? (async () => ""),
    counters: async () => new Map(),
    async close() {
      await Promise.all(servers.map(({ close }) => close()));
      await network.close();
    },
  };
}

/** Starts one such node in front of providers that run. */
export function startReferenceNode(network: Network): Promise<RunningNode> {
  return serve(createReferenceNode(network));
}

/** A node that can be called. */
export interface RunningNode {
  readonly url: string;
  createKey(): Promise<string>;
  close(): Promise<void>;
}

/** Answers a request at one tip, as JSON members. */
interface ReferenceNode {
  answer(calls: readonly WireCall[]): Promise<readonly string[]>;
}

/** Providers that must hold a block before it is served. */
const QUORUM = 2;

function createReferenceNode(network: Network): ReferenceNode {
  const { chain, oracle, servers } = network;
  const providers = servers.map(({ provider }) => provider);
  const accepted = new Map<string, SentTransaction>();
  let tip = chain.blocks.tip();

  /** The highest block that two providers hold; kept until two hold another one instead. */
  function served(): ChainBlock {
    const agreed = highestAgreed();
    const others = providers.filter((it) => {
      const held = chain.blocks.at(it.tip(), tip.number);
      return held !== undefined && held !== tip;
    });
    if (oracle.standsOn(agreed, tip) || others.length >= QUORUM) tip = agreed;
    return tip;
  }

  function highestAgreed(): ChainBlock {
    const [first = tip] = providers
      .flatMap((one, at) => providers.slice(at + 1).map((other) => [one.tip(), other.tip()]))
      .map(([one = tip, other = tip]) => lastCommon(one, other))
      .sort((a, b) => b.number - a.number);
    return first;
  }

  function lastCommon(one: ChainBlock, other: ChainBlock): ChainBlock {
    const [lowest] = chain.blocks.walk(one, other).left.slice(-1);
    return lowest === undefined ? one : (chain.blocks.byHash(lowest.parentHash) ?? one);
  }

  async function answerAt(at: ChainBlock, { method, params }: WireCall): Promise<string> {
    const holder = providers.find((it) => oracle.standsOn(it.tip(), at));
    if (holder === undefined) return NO_HOLDER;
    const [first, second, third] = params;
    const block = { blockHash: at.hash };
    switch (method) {
      case "eth_blockNumber":
        return `"result":"0x${at.number.toString(16)}"`;
      case "eth_getBlockByNumber":
        return holder.answer({ method: "eth_getBlockByHash", params: [at.hash, second] });
      case "eth_getStorageAt":
        return holder.answer({ method, params: [first, second, block] });
      case "eth_getTransactionCount":
        return second === "pending"
          ? highestNonce(String(first))
          : holder.answer({ method, params: [first, block] });
      case "eth_getTransactionByHash":
        return found({ method, params }) ?? pendingText(accepted, String(first));
      case "eth_getTransactionReceipt":
        return receipt(at, holder, { method, params });
      case "eth_sendRawTransaction":
        return send({ method, params });
      default:
        return holder.answer({ method, params: [first, third ?? block] });
    }
  }

  function found(call: WireCall): string | undefined {
    return providers
      .map((it) => it.answer(call))
      .find((it): it is string => typeof it === "string" && it !== NULL);
  }

  function receipt(
    at: ChainBlock,
    holder: SimulatedProvider,
    call: WireCall,
  ): string | Promise<string> {
    const isThere = chain.inclusionOf(at, String(call.params[0])) !== undefined;
    return isThere ? holder.answer(call) : NULL;
  }

  /** What the providers say, and the run of accepted transactions from there on. */
  async function highestNonce(account: string): Promise<string> {
    const call = { method: "eth_getTransactionCount", params: [account, "pending"] };
    const told = await Promise.all(providers.map((it) => it.answer(call)));
    const own = [...accepted.values()].filter(({ from }) => from === account.toLowerCase());
    const nonces = new Set(own.map(({ nonce }) => nonce));
    let next = Math.max(...told.map((it) => Number(/0x[0-9a-f]+/.exec(it)?.[0])));
    while (nonces.has(next)) next++;
    return `"result":"0x${next.toString(16)}"`;
  }

  async function send(call: WireCall): Promise<string> {
    const [first] = providers;
    const answer = (await first?.answer(call)) ?? NO_HOLDER;
    const hash = /"result":"(0x[0-9a-f]{64})"/.exec(answer)?.[1] ?? "";
    const sent = first?.pool.get(hash);
    if (sent !== undefined) accepted.set(hash, sent);
    return answer;
  }

  return {
    answer(calls) {
      const at = served();
      return Promise.all(calls.map((call) => answerAt(at, call)));
    },
  };
}

const NULL = '"result":null';
const NO_HOLDER = '"error":{"code":-32002,"message":"no provider has the block"}';

function pendingText(accepted: ReadonlyMap<string, SentTransaction>, hash: string): string {
  return accepted.has(hash) ? `"result":{"hash":"${hash}"}` : NULL;
}

async function serve(node: ReferenceNode): Promise<RunningNode> {
  const frames = new WebSocketServer({ noServer: true });
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on("end", async () => response.end(await answerText(node, body)));
  }).on("upgrade", (request, wire, head) =>
    frames.handleUpgrade(request, wire, head, (socket) =>
      socket.on("message", async (data) => socket.send(await answerText(node, String(data)))),
    ),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${addressOf(server).port}`,
    createKey: async () => "reference",
    async close() {
      for (const socket of frames.clients) socket.terminate();
      server.closeAllConnections();
      server.close();
    },
  };
}

interface Request extends WireCall {
  readonly id: number;
}

async function answerText(node: ReferenceNode, body: string): Promise<string> {
  const requests = requestsIn(body);
  const members = await node.answer(requests);
  const answers = requests.map(({ id }, at) => `{"jsonrpc":"2.0","id":${id},${members[at]}}`);
  return body.startsWith("[") ? `[${answers.join(",")}]` : answers.join("");
}

function requestsIn(body: string): readonly Request[] {
  const parsed = JSON.parse(body);
  return body.startsWith("[") ? parsed : [parsed];
}

function addressOf(server: Server): AddressInfo {
  return server.address() as AddressInfo;
}
