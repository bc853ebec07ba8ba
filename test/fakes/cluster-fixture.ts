// Several nodes of one hosted service in this process, over one real PostgreSQL database, each by a
// way to it that the test can break.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { realRuntime } from "../../src/runtime.ts";
import { type DatabaseProxy, databaseProxy } from "./database-proxy.ts";
import { manageAt } from "./hosted-fixture.ts";
import { newDatabase, waitLongFor } from "./postgres.ts";
import { type Answer, PATIENT, type Service, startService } from "./service.ts";
import { type ScriptedUpstream, scriptedUpstream } from "./upstream.ts";

/** One node. */
export interface ClusterNode {
  readonly service: Service;
  readonly proxy: DatabaseProxy;
  /** Sends a request to the API with a token, which may be empty. */
  readonly manage: ReturnType<typeof manageAt>;
  /** Sends a call with a key in the path. */
  call(key: string, method?: string, path?: string): Promise<Answer>;
}

/** Nodes, and what they share. */
export interface ClusterFixture {
  readonly url: string;
  readonly upstream: ScriptedUpstream;
  readonly nodes: readonly ClusterNode[];
  /** Starts another node. */
  add(settings?: NodeSettings): Promise<ClusterNode>;
}

/** What is merged into a node's configuration. */
export interface NodeSettings {
  readonly hosted?: Record<string, unknown>;
  readonly cluster?: Record<string, unknown>;
  /** What the provider may be sent. */
  readonly limits?: Record<string, unknown>;
  /** Its secret, and the one before. */
  readonly secrets?: { readonly secret: string; readonly previousSecret: string | null };
  /** How far its clock is ahead. */
  readonly aheadMs?: number;
}

/** The operator's token of the fixture. */
export const CLUSTER_OPERATOR = "operator-of-the-cluster-fixture-0123456789";

/** Starts so many nodes. */
export async function clusterFixture(
  t: TestContext,
  count: number,
  settings: NodeSettings = {},
): Promise<ClusterFixture> {
  const { url, drop } = await newDatabase();
  t.after(drop);
  const upstream = await scriptedUpstream();
  t.after(() => upstream.close());
  const nodes: ClusterNode[] = [];
  let started = 0;
  const add = async (own: NodeSettings = {}): Promise<ClusterNode> => {
    const id = `n${++started}`;
    const proxy = await databaseProxy(url);
    t.after(() => proxy.close());
    const dataDir = mkdtempSync(join(tmpdir(), "svc-cluster-"));
    waitLongFor(proxy.url);
    const text = nodeText({ id, url: proxy.url, dataDir, upstream }, settings, own);
    const { aheadMs = 0 } = own;
    const runtime = { ...realRuntime, wallMs: () => realRuntime.wallMs() + aheadMs };
    const service = await startService(text, runtime, (config) => ({
      ...config,
      ...{ secret: SECRET, ...settings.secrets, ...own.secrets },
    }));
    t.after(async () => {
      proxy.mend();
      await service.close();
      rmSync(dataDir, { recursive: true, force: true });
    });
    let requestId = 0;
    const node: ClusterNode = {
      service,
      proxy,
      manage: manageAt(service.url),
      call: (key, method = "eth_gasPrice", path = "ethereum") =>
        service.post(`/rpc/k/${key}/${path}`, {
          jsonrpc: "2.0",
          id: ++requestId,
          method,
          params: [],
        }),
    };
    nodes.push(node);
    return node;
  };
  for (let at = 0; at < count; at++) await add();
  return { url, upstream, nodes, add };
}

interface NodePlace {
  readonly id: string;
  readonly url: string;
  readonly dataDir: string;
  readonly upstream: ScriptedUpstream;
}

/** Profiles are sealed by it, and every node opens them. */
const SECRET = "the secret that all nodes of the cluster fixture share";

function nodeText(
  { id, url, dataDir, upstream }: NodePlace,
  shared: NodeSettings,
  own: NodeSettings,
): string {
  const limits = shared.limits === undefined ? {} : { limits: shared.limits };
  const open = { id: "open", url: upstream.url, ...limits };
  const profile = { chains: { ethereum: { providers: [open] } } };
  return JSON.stringify({
    server: { port: 0 },
    data_dir: dataDir,
    storage: { url },
    log_level: "debug",
    cluster: {
      enabled: true,
      node_id: id,
      region: "eu",
      ...shared.cluster,
      ...own.cluster,
    },
    chains: { ethereum: { chain_id: 1, name: "Ethereum", block_time_ms: 12_000 } },
    profiles: { premium: profile, public: profile },
    hosted: {
      enabled: true,
      operator_token: CLUSTER_OPERATOR,
      keys_per_hour: 1_000,
      flush_interval_ms: 200,
      ...shared.hosted,
      ...own.hosted,
    },
    deadlines: PATIENT,
  });
}
