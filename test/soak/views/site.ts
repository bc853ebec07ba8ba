// What the checker of views runs on: simulated providers, and nodes of one service as processes.
// Several nodes share one PostgreSQL server of their own.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { manageAt } from "../../fakes/hosted-fixture.ts";
import { createDatabase, startCluster } from "../../fakes/postgres.ts";
import { type ServiceProcess, startProcess } from "../../fakes/process.ts";
import { PATIENT } from "../../fakes/service.ts";
import { type Network, type NetworkPlan, startNetwork } from "./network.ts";
import { VIEW_CHAIN_ID } from "./provider.ts";

/** What callers are promised. */
export type Consistency = "tip" | "caller" | "off";

/** A site. */
export interface ViewSite {
  readonly network: Network;
  readonly nodes: readonly { readonly url: string }[];
  /** A new key, which every node knows. */
  createKey(): Promise<string>;
  /** The sums of counters over all nodes, by metric and label. */
  counters(): Promise<ReadonlyMap<string, number>>;
  close(): Promise<void>;
}

/** How a site is built. */
export interface SitePlan extends NetworkPlan {
  readonly nodes: number;
  readonly consistency: Consistency;
  /** What the configuration calls the block time: a little above the longest of the chain. */
  readonly blockTimeMs: number;
  /** Further settings, at the top of the configuration. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** The name of the chain in paths. */
export const CHAIN = "views";

const DATABASE = "svc_views";
const SECRET = "the secret that all nodes of the checker share";
const OPERATOR = "operator-of-the-checker-of-views-0123456789";
const GRANT_CU = 1_000_000_000;
const KEYS_PER_HOUR = 100_000;
const NO_LIMIT = { per_second: 100_000, burst: 100_000 };

/** Starts everything; what was started has ended if it throws. */
export async function startViewSite(plan: SitePlan): Promise<ViewSite> {
  const stops: (() => Promise<unknown>)[] = [];
  const owner = { after: (stop: () => Promise<void>) => void stops.push(stop) };
  const close = async (): Promise<void> => {
    for (let stop = stops.pop(); stop !== undefined; stop = stops.pop()) await stop();
  };
  try {
    const directory = mkdtempSync(join(tmpdir(), "svc-views-"));
    owner.after(async () => rmSync(directory, { recursive: true, force: true }));
    const network = await startNetwork(plan);
    stops.push(() => network.close());
    const storage = plan.nodes === 1 ? null : await startStorage(owner);
    const nodes: ServiceProcess[] = [];
    for (let at = 1; at <= plan.nodes; at++) {
      const id = `n${at}`;
      const text = configOf({ ...plan, id, dataDir: join(directory, id), storage, network });
      nodes.push(await startProcess(owner, text, { SVC_SECRET: SECRET }));
    }
    return {
      network,
      nodes,
      createKey: () => createKeyAt(nodes[0]?.url ?? ""),
      counters: () => countersOf(nodes),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startStorage(owner: {
  after(stop: () => Promise<void>): void;
}): Promise<{ readonly url: string }> {
  const postgres = await startCluster({ durable: false });
  owner.after(() => postgres.stop());
  await createDatabase(postgres.urlOf("postgres"), DATABASE);
  return { url: postgres.urlOf(DATABASE) };
}

/** Makes a key at a node. */
export async function createKeyAt(url: string): Promise<string> {
  const { status, json, text } = await manageAt(url)("", "POST", "/api/v1/agent/keys");
  if (status !== 201) throw new Error(`no key could be made: ${text}`);
  return json.key;
}

/** How a node is configured. */
export interface NodePlan
  extends Pick<SitePlan, "nodes" | "consistency" | "blockTimeMs" | "settings"> {
  readonly id: string;
  readonly dataDir: string;
  readonly storage: { readonly url: string } | null;
  readonly network: Network;
}

/** The configuration of a node in front of the providers of a network. */
export function configOf(plan: NodePlan): string {
  const { id, dataDir, storage, network, blockTimeMs, settings } = plan;
  const providers = network.servers.map(({ port }, at) => ({
    id: `p${at + 1}`,
    url: `http://127.0.0.1:${port}`,
    ws_url: `ws://127.0.0.1:${port}`,
  }));
  const profile = { chains: { [CHAIN]: { providers } } };
  return JSON.stringify({
    server: { port: 0 },
    data_dir: dataDir,
    ...(storage === null ? {} : { storage, cluster: clusterOf(id, plan.nodes) }),
    chains: { [CHAIN]: { chain_id: VIEW_CHAIN_ID, name: "Views", block_time_ms: blockTimeMs } },
    profiles: { premium: profile, public: profile },
    deadlines: PATIENT,
    cache: {},
    coalesce: "on",
    hedge: "off",
    hosted: {
      enabled: true,
      keyless: true,
      operator_token: OPERATOR,
      keys_per_hour: KEYS_PER_HOUR,
      starting_grant_cu: GRANT_CU,
      buckets: { managed: NO_LIMIT, public: NO_LIMIT, reduced: NO_LIMIT },
    },
    consistency: plan.consistency,
    ...settings,
  });
}

function clusterOf(id: string, nodes: number): Record<string, unknown> {
  return { enabled: true, node_id: id, region: "views", expected_nodes: nodes };
}

async function countersOf(nodes: ViewSite["nodes"]): Promise<ReadonlyMap<string, number>> {
  const sums = new Map<string, number>();
  for (const { url } of nodes) {
    const text = await (await fetch(`${url}/metrics`)).text();
    for (const [, name = "", labels = "", value = "0"] of text.matchAll(SERIES)) {
      const [, label = ""] = /(?:source|result)="([^"]*)"/.exec(labels) ?? [];
      const key = label === "" ? name : `${name} ${label}`;
      sums.set(key, (sums.get(key) ?? 0) + Number(value));
    }
  }
  return sums;
}

const SERIES = /^(svc_\w+_total)(?:\{([^}]*)\})? (\S+)$/gm;
