// What live answers are judged on: nodes of a simulated chain as servers, and the service as a
// process before them.
import { startProcess } from "../../fakes/process.ts";
import { CHAIN_ID, type NodeRequest } from "../../sim/cache-nodes.ts";
import type { FaultyWorld } from "../../sim/faulty-worlds.ts";
import { type NodeBlock, NodeNetwork } from "../../sim/node-network.ts";
import type { SimulatedNode } from "../../sim/simulated-node.ts";
import { type ServedProvider, serveProvider } from "../views/provider-server.ts";

/** How a site is. */
export interface LivePlan {
  readonly world: FaultyWorld;
  readonly random: () => number;
  readonly workers: 1 | 2;
  /** The server that kept answers are shared on; null = none. */
  readonly redisUrl: string | null;
  /** The rule without which the service runs, by its place; null = it has all. */
  readonly without: number | null;
}

/** A site. */
export interface LiveSite {
  readonly url: string;
  readonly network: NodeNetwork;
  close(): Promise<void>;
}

/** The name of the chain in paths. */
export const LIVE_CHAIN = "nodes";
export const LIVE_BLOCK_MS = 1_000;
/** For how long it is remembered what chains nodes had. */
const REMEMBERED_MS = 60_000;

const NODES = 5;
const NODE_DELAY_MS = 300;
const PUSH_DELAY_MS = 20;
const PROBE_MS = 1_000;
const FINALITY = 8;
const SECRET = "the secret of those who judge live answers";
const PRELOAD = new URL("./preload.ts", import.meta.url).pathname;

/** Starts everything; what was started has ended if it throws. */
export async function startLiveSite(plan: LivePlan): Promise<LiveSite> {
  const stops: (() => Promise<unknown>)[] = [];
  const owner = { after: (stop: () => Promise<void>) => void stops.push(stop) };
  const close = async (): Promise<void> => {
    for (let stop = stops.pop(); stop !== undefined; stop = stops.pop()) await stop();
  };
  try {
    const timers = new Set<NodeJS.Timeout>();
    owner.after(async () => timers.forEach(clearTimeout));
    const { world, random } = plan;
    const push = (node: SimulatedNode, block: NodeBlock): void =>
      servers[node.index]?.push([headerOf(block)], 0);
    const network = new NodeNetwork({
      nodes: NODES,
      faults: world.faults ?? [],
      finality: world.finality ?? FINALITY,
      random,
      clock: {
        now: () => performance.now(),
        after: (ms, run) => timers.add(setTimeout(run, Math.max(0, ms))),
      },
      nodeDelayMs: NODE_DELAY_MS,
      pushDelayMs: PUSH_DELAY_MS,
      keptMs: REMEMBERED_MS,
      pushed: push,
    });
    const servers = await Promise.all(
      network.nodes.map((node) => serveProvider(providerOf(node, random))),
    );
    for (const server of servers) stops.push(() => server.stop());
    const providers = network.nodes.map((node, at) => providerConfig(node, servers[at]?.port ?? 0));
    const { url } = await startProcess(owner, configOf(plan, providers), environmentOf(plan));
    return { url, network, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function environmentOf({ without }: LivePlan): Readonly<Record<string, string>> {
  if (without === null) return { SVC_SECRET: SECRET };
  return {
    SVC_SECRET: SECRET,
    NODE_OPTIONS: `--import=${PRELOAD}`,
    WITHOUT_RULE: String(without),
  };
}

function providerConfig({ index, fault }: SimulatedNode, port: number): Record<string, unknown> {
  const { isPolled = false, refuses = [], maxBlockRange } = fault;
  return {
    id: `p${index}`,
    url: `http://127.0.0.1:${port}`,
    ...(isPolled ? {} : { ws_url: `ws://127.0.0.1:${port}` }),
    archival: true,
    capabilities: {
      unsupported_methods: refuses,
      ...(maxBlockRange === undefined ? {} : { limits: { max_block_range: maxBlockRange } }),
    },
  };
}

function configOf(
  { world, workers, redisUrl }: LivePlan,
  providers: readonly Record<string, unknown>[],
): string {
  const { maxLagBlocks } = world.set ?? {};
  const set = {
    providers,
    monitoring: { probe_interval_ms: PROBE_MS },
    ...(maxLagBlocks === undefined ? {} : { selection: { max_lag_blocks: maxLagBlocks } }),
  };
  return JSON.stringify({
    server: { port: 0, workers },
    chains: {
      [LIVE_CHAIN]: { chain_id: CHAIN_ID, name: "Nodes", block_time_ms: LIVE_BLOCK_MS },
    },
    profiles: { public: { chains: { [LIVE_CHAIN]: set } } },
    cache: redisUrl === null ? {} : { redis_url: redisUrl },
    coalesce: "on",
    hedge: {},
    consistency: "tip",
  });
}

function providerOf(node: SimulatedNode, random: () => number): ServedProvider {
  const counts = new Map<string, number>();
  return {
    counts,
    answer(request) {
      const { method } = request;
      counts.set(method, (counts.get(method) ?? 0) + 1);
      return membersOf(node, request, random);
    },
  };
}

/** Only what callers ask for is lied about or left out: nodes are well otherwise. */
function membersOf(
  node: SimulatedNode,
  request: NodeRequest,
  random: () => number,
): string | Promise<string> {
  const reply = OWN.has(request.method)
    ? ({ kind: "json", json: node.answer(request) } as const)
    : node.reply(request, random);
  if (reply.kind === "silence") return new Promise(() => {});
  return reply.json === null
    ? '"error":{"code":-32000,"message":"unknown block"}'
    : `"result":${reply.json}`;
}

const OWN: ReadonlySet<string> = new Set(["eth_chainId", "eth_blockNumber"]);

function headerOf({ number, hash, parentHash }: NodeBlock): string {
  return JSON.stringify({ number: `0x${number.toString(16)}`, hash, parentHash });
}
