// The service in front of scripted nodes that follow one simulated chain and can be reached by
// HTTP, by their own socket, or both; taken down when the test ends. Knows nothing of what the test
// is about.
import type { TestContext } from "node:test";
import type { WebSocket } from "ws";
import { type Runtime, realRuntime } from "../../src/runtime.ts";
import { type Client, call, open } from "../web/socket/socket-fixture.ts";
import {
  blockText,
  type ChainBlock,
  type ChainFilter,
  type FakeChain,
  fakeChain,
  headerText,
  logText,
  wanted,
} from "./chain.ts";
import { seededRandom } from "./runtime.ts";
import { configText, type Service, startService } from "./service.ts";
import { type FixtureSettings, until } from "./service-fixture.ts";
import { type SocketScript, type SocketUpstream, socketUpstream } from "./socket-upstream.ts";
import { type Script, type ScriptedUpstream, scriptedUpstream } from "./upstream.ts";

/** How a node is reached. */
export type Reach = "ws" | "http" | "both";

/**
 * A node: `a`, `b`, `c`, … in this order of priority. What it does not know of the chain it answers
 * with its own name: `"0xa"`.
 */
export interface SocketNode {
  readonly id: string;
  readonly ws: SocketUpstream;
  readonly http: ScriptedUpstream;
  /**
   * What it says when it is well, over its socket and over HTTP; to be called by scripts for
   * whatever they leave alone.
   */
  readonly sane: SocketScript;
  readonly saneHttp: Script;
  /** Learns of the chain's tip, and pushes what is new. */
  follow(): void;
  /** True = it pushes heads and no logs. */
  leavesLogsOut: boolean;
}

/** A service, its nodes and their chain. */
export interface SocketFixture {
  readonly service: Service;
  readonly chain: FakeChain;
  readonly nodes: readonly SocketNode[];
  /** One more block on these nodes; without any on all. */
  mine(...ids: readonly string[]): ChainBlock;
  /** The configuration with these nodes only. */
  text(ids: readonly string[], settings?: FixtureSettings): string;
  /** Opens a caller's socket at priority order; it is cut when the test ends. */
  open(path?: string, options?: WebSocket.ClientOptions): Promise<Client>;
  /** Sends one call over HTTP at priority order, with the evidence in a header. */
  call(method: string, params?: readonly unknown[]): ReturnType<Service["post"]>;
  /**
   * Resolves once these nodes' sockets have their heads listened to by the service, or are open
   * where it does not listen.
   */
  listening(count?: number): Promise<void>;
}

/** Starts nodes alone, which follow one chain. */
export async function startNodes(
  reaches: readonly Reach[],
): Promise<Pick<SocketFixture, "chain" | "nodes" | "mine">> {
  const chain = fakeChain(seededRandom(5));
  const nodes = await Promise.all(
    reaches.map((_, n) => startNode(String.fromCharCode(97 + n), chain)),
  );
  return {
    chain,
    nodes,
    mine(...ids) {
      chain.mine();
      for (const node of nodes) if (ids.length === 0 || ids.includes(node.id)) node.follow();
      return chain.tip();
    },
  };
}

/** Starts nodes and service. */
export async function socketFixture(
  t: TestContext,
  reaches: readonly Reach[],
  settings: FixtureSettings = {},
  runtime: Runtime = realRuntime,
): Promise<SocketFixture> {
  const { chain, nodes, mine } = await startNodes(reaches);
  const text = (
    ids: readonly string[],
    { extra, set, providers, slug }: FixtureSettings = settings,
  ): string => {
    const listed = nodes.map(({ id, ws, http }, n) => {
      const reach = reaches[n];
      return {
        id,
        ...(reach === "ws" ? {} : { url: http.url }),
        ...(reach === "http" ? {} : { ws_url: ws.url }),
        priority: n + 1,
        ...providers?.[n],
      };
    });
    return configText(
      listed.filter((it) => ids.includes(it.id)),
      extra,
      set,
      slug,
    );
  };
  const all = nodes.map(({ id }) => id);
  const service = await startService(text(all), runtime);
  t.after(async () => {
    await Promise.all([
      service.close(),
      ...nodes.flatMap(({ ws, http }) => [ws.close(), http.close()]),
    ]);
  });
  const { monitoring } = settings.set ?? {};
  const listens = !(
    typeof monitoring === "object" &&
    monitoring !== null &&
    "socket_heads" in monitoring &&
    monitoring.socket_heads === false
  );
  let id = 100;
  return {
    service,
    chain,
    nodes,
    text,
    mine,
    open: (path = "/ws/rpc/priority/1", options = {}) => open(t, service.port, path, options),
    call: (method, params = []) =>
      service.post("/rpc/priority/1?include_meta=headers", call(++id, method, params)),
    async listening(count = 1) {
      const reached = nodes.filter((_, n) => reaches[n] !== "http");
      await until("the sockets", () =>
        reached.every(
          ({ ws }) => ws.peers().length > 0 && (!listens || ws.subscriptions("newHeads") >= count),
        ),
      );
    },
  };
}

/** Subscribes on a socket on which nothing else is under way; returns the id. */
export async function subscribe(client: Client, ...params: readonly unknown[]): Promise<string> {
  client.send(call("sub", "eth_subscribe", params));
  const { result, error } = await client.next();
  if (typeof result !== "string") throw new Error(`not subscribed: ${JSON.stringify(error)}`);
  return result;
}

/**
 * The results of the next notifications of one subscription, on a socket to which nothing else
 * comes.
 */
// biome-ignore lint/suspicious/noExplicitAny: tests look into events of any shape
export async function told(client: Client, subscription: string, count: number): Promise<any[]> {
  const results = [];
  for (let n = 0; n < count; n++) {
    const { method, params } = await client.next();
    if (method !== "eth_subscription" || params.subscription !== subscription)
      throw new Error(`no event of ${subscription}: ${JSON.stringify(params)}`);
    results.push(params.result);
  }
  return results;
}

/** The health of one provider on one transport, as `/api/metrics` shows it. */
// biome-ignore-start lint/suspicious/noExplicitAny: tests look into documents of any shape
export async function transportOf(
  service: Service,
  provider: string,
  transport: "http" | "ws",
): Promise<any> {
  // biome-ignore-end lint/suspicious/noExplicitAny: tests look into documents of any shape
  const { json } = await service.get("/api/metrics/1");
  const of = json.profiles[0].providers.find((it: { id: string }) => it.id === provider);
  return of.transports.find((it: { transport: string }) => it.transport === transport);
}

/** Sockets, subscriptions and their counts of the first profile, as `/api/metrics` shows them. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into documents of any shape
export async function subscriptionsOf(service: Service): Promise<any> {
  const { json } = await service.get("/api/metrics/1");
  return json.profiles[0].subscriptions;
}

/** Starts one node of a chain. */
export async function startNode(id: string, chain: FakeChain): Promise<SocketNode> {
  let tip = chain.tip();
  const own = `"0x${id}"`;
  const sane: SocketScript = ({ method, params }, reply) => {
    const answer = known(method, Array.isArray(params) ? params : [], (it) =>
      it !== undefined && it.number <= tip.number ? it : undefined,
    );
    if (answer !== null) reply.result(answer);
    else if (USUAL.has(method)) reply.usual();
    else reply.result(own);
  };
  function known(
    method: string,
    [first]: readonly unknown[],
    shown: (block: ChainBlock | undefined) => ChainBlock | undefined,
  ): string | null {
    switch (method) {
      case "eth_getBlockByNumber":
        return textOf(first === "latest" ? tip : chain.at(tip, Number(first)));
      case "eth_getBlockByHash":
        return textOf(shown(chain.byHash(String(first))));
      case "eth_getLogs": {
        const { blockHash = "", ...filter }: ChainFilter & { readonly blockHash?: string } =
          Object(first);
        const block = shown(chain.byHash(blockHash));
        return block === undefined
          ? "null"
          : `[${wanted(block, filter).map((log) => logText(block, log))}]`;
      }
      default:
        return null;
    }
  }
  const saneHttp: Script = ({ method, params }, reply) =>
    reply.result(
      known(method, Array.isArray(params) ? params : [], (it) =>
        it !== undefined && it.number <= tip.number ? it : undefined,
      ) ?? own,
    );
  const [ws, http] = await Promise.all([socketUpstream(sane), scriptedUpstream(saneHttp)]);
  const node: SocketNode = {
    id,
    ws,
    http,
    sane,
    saneHttp,
    leavesLogsOut: false,
    follow() {
      const { left, come } = chain.walk(tip, chain.tip());
      tip = chain.tip();
      ws.says({ height: tip.number });
      http.probesSay({ chainId: 1, height: tip.number });
      const tellLogs = (block: ChainBlock, removed: boolean): void => {
        if (node.leavesLogsOut) return;
        for (const log of block.logs)
          ws.notify("logs", logText(block, log, removed), ([, filter]) =>
            wanted(block, Object(filter)).includes(log),
          );
      };
      for (const block of left) tellLogs(block, true);
      for (const block of come) {
        ws.notify("newHeads", headerText(block));
        tellLogs(block, false);
      }
    },
  };
  return node;
}

const USUAL: ReadonlySet<string> = new Set([
  "eth_chainId",
  "eth_blockNumber",
  "eth_subscribe",
  "eth_unsubscribe",
]);

function textOf(block: ChainBlock | undefined): string {
  return block === undefined ? "null" : blockText(block);
}
