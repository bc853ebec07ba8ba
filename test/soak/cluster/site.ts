// What a schedule runs on: three nodes of two workers over one PostgreSQL server of their own, each
// by a link of its own, in front of providers that count.
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { manageAt } from "../../fakes/hosted-fixture.ts";
import { type Cluster, createDatabase, startCluster } from "../../fakes/postgres.ts";
import { seededRandom } from "../../fakes/runtime.ts";
import { PATIENT } from "../../fakes/service.ts";
import { createMovingChain, MOVING_CHAIN_ID, type MovingChain } from "./moving-chain.ts";
import { createNode, type NodeProcess } from "./node-process.ts";
import { MOVING_PATH, type Providers, startProviders } from "./provider.ts";

/** A site. */
export interface ClusterSite {
  readonly nodes: readonly NodeProcess[];
  readonly providers: Providers;
  /** The chain of the callers with filters. */
  readonly moving: MovingChain;
  readonly postgres: Cluster;
  /** The database by a way that nothing breaks but the end of the server. */
  readonly databaseUrl: string;
  readonly times: SiteTimes;
  close(): Promise<void>;
}

/** Times of a site, in place of the usual ones, so that a schedule is short. */
export interface SiteTimes {
  readonly flushMs: number;
  readonly nodeTimeoutMs: number;
}

/** How a site is built. */
export interface SitePlan {
  readonly nodes: number;
  readonly workers: number;
  readonly times: SiteTimes;
  /** Settings under `hosted` in place of those of every site. */
  readonly hosted?: Readonly<Record<string, unknown>>;
}

/** Three nodes of two workers. */
export const USUAL_SITE: SitePlan = {
  nodes: 3,
  workers: 2,
  times: { flushMs: 200, nodeTimeoutMs: 4_000 },
};

/** The operator's token of every site. */
export const OPERATOR = "operator-of-the-cluster-soak-0123456789";
/** Calls a second, for each account on profile `public`. */
export const PUBLIC_RATE = { per_second: 40, burst: 40 };

const DATABASE = "svc_soak";
const PROVIDERS = 2;

/** Starts everything; what was started has ended if it throws. */
export async function startSite(plan: SitePlan): Promise<ClusterSite> {
  const stops: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (let stop = stops.pop(); stop !== undefined; stop = stops.pop()) await stop();
  };
  try {
    const postgres = await startCluster({ durable: true });
    stops.push(() => postgres.stop());
    await createDatabase(postgres.urlOf("postgres"), DATABASE);
    const databaseUrl = postgres.urlOf(DATABASE);
    const moving = createMovingChain(seededRandom(MOVING_CHAIN_ID), PROVIDERS);
    const providers = await startProviders(PROVIDERS, moving);
    stops.push(() => providers.close());
    const nodes: NodeProcess[] = [];
    for (let n = 1; n <= plan.nodes; n++) {
      const id = `n${n}`;
      const config = (dataDir: string): string =>
        configOf({ ...plan, id, dataDir, urls: providers.urls, count: plan.nodes });
      const node = await createNode({ id, databaseUrl, config });
      stops.push(() => node.close());
      nodes.push(node);
    }
    for (const node of nodes) await node.start();
    return { nodes, providers, moving, postgres, databaseUrl, times: plan.times, close };
  } catch (error) {
    await close();
    throw error;
  }
}

interface NodeConfig extends Pick<SitePlan, "workers" | "times" | "hosted"> {
  readonly id: string;
  readonly dataDir: string;
  readonly urls: readonly string[];
  readonly count: number;
}

function configOf({ id, dataDir, urls, count, workers, times, hosted }: NodeConfig): string {
  const providersAt = (path: string) =>
    urls.map((url, index) => ({ id: `p${index + 1}`, url: url + path, priority: index + 1 }));
  const profile = {
    chains: {
      ethereum: { providers: providersAt("") },
      moving: { providers: providersAt(MOVING_PATH) },
    },
  };
  return JSON.stringify({
    server: { port: 0, workers },
    data_dir: dataDir,
    log_level: "info",
    cluster: { enabled: true, node_id: id, region: "soak", expected_nodes: count },
    chains: {
      ethereum: { chain_id: 1, name: "Ethereum", block_time_ms: 12_000 },
      moving: { chain_id: MOVING_CHAIN_ID, name: "Moving", block_time_ms: 600 },
    },
    profiles: { premium: profile, public: profile },
    deadlines: PATIENT,
    hosted: {
      enabled: true,
      operator_token: OPERATOR,
      keys_per_hour: 100_000,
      starting_grant_cu: 0,
      free_cu_per_month: 0,
      fallback_days: 0,
      allow_private_providers: true,
      flush_interval_ms: times.flushMs,
      node_timeout_ms: times.nodeTimeoutMs,
      buckets: { managed: { per_second: 10_000, burst: 10_000 }, public: PUBLIC_RATE },
      ...hosted,
    },
  });
}

/** Sends a management request; null = no answer came in time, or the connection was lost. */
export async function manage(
  node: NodeProcess,
  ...[token, method, path, body]: Parameters<ReturnType<typeof manageAt>>
): Promise<Awaited<ReturnType<ReturnType<typeof manageAt>>> | null> {
  const answer = manageAt(node.url)(token, method, path, body).catch(() => null);
  return Promise.race([answer, sleep(MANAGE_MS, null, { ref: false })]);
}

const MANAGE_MS = 6_000;

/** One reading of the database, past all links. */
export async function readDatabase<Row>(
  url: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: MANAGE_MS });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query(text, [...values])).rows.map((row: unknown) => parseRow<Row>(row));
  } finally {
    await client.end();
  }
}

function parseRow<Row>(row: unknown): Row {
  return row as Row;
}
