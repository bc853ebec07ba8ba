// This node's part in a cluster: its name, and what follows here from changes made at other nodes.
import { hostname } from "node:os";
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import { errorText } from "../core/fields.ts";
import type { Bus, WorkerId } from "../core/workers/bus.ts";
import type { Credit } from "../hosted/credit/credit.ts";
import type { KeyCache } from "../hosted/keys/key-cache.ts";
import type { ProfileLoader } from "../hosted/profiles/profile-loader.ts";
import { type Runtime, within } from "../runtime.ts";
import type { ChangesRead } from "../shared/changes/change-log.ts";
import { type ChangeFollower, type Changes, openChanges } from "../shared/changes/changes.ts";
import { type Cluster, openCluster } from "../shared/nodes/cluster.ts";
import { openHeartbeat } from "../shared/nodes/heartbeat.ts";
import { type NodeIdentity, serviceNodeOf } from "../shared/nodes/identity.ts";
import { claimsOf, type JobClaims } from "../shared/nodes/job-claims.ts";
import { startRetention } from "../shared/nodes/retention.ts";
import { type Store, urgently } from "../shared/store/store.ts";
import { processIdOf, type ServiceParts, workerOf } from "./service-parts.ts";
import {
  openServiceStore,
  ROUTER_NODE_TIMEOUT_MS,
  type ServiceStoreParts,
} from "./store/service-store.ts";

/** The parts of joining. */
interface JoinParts {
  readonly config: Config;
  readonly runtime: Runtime;
  readonly log: Logger;
  readonly store: Store;
  readonly service: Pick<ServiceParts, "id" | "bus" | "workers">;
  readonly onError: (error: unknown) => void;
}

/** As in the settings of `hosted`, for a router without it. */
const HEARTBEAT_MS = 1_000;
/** For a sweep that is under way at the end. */
const CLOSE_MS = 5_000;

/** Joins the others; null = this service is one node. */
async function joinCluster(parts: JoinParts): Promise<Cluster | null> {
  const { config, log } = parts;
  if (!config.cluster.enabled) return null;
  const { cluster, hosted } = config;
  const node = { id: clusterNodeId(parts), region: cluster.region };
  const joined = await openCluster({
    ...parts,
    node,
    processId: processIdOf(parts.service),
    settings: {
      expectedNodes: cluster.expectedNodes,
      heartbeatMs: hosted?.flushIntervalMs ?? HEARTBEAT_MS,
      nodeTimeoutMs: hosted?.nodeTimeoutMs ?? ROUTER_NODE_TIMEOUT_MS,
      listenUrl: cluster.listenUrl === "" ? config.storageUrl : cluster.listenUrl,
    },
  });
  const { total, responding } = joined.membership.health();
  log.info({ alias: joined.shown.id, responding, total }, "joined the cluster");
  return joined;
}

/** Whether a process that keeps a filter is another living worker of this node. */
export function workerOn(node: NodeIdentity, bus: Bus): (keeper: string) => WorkerId | null {
  return (keeper) => {
    if (serviceNodeOf(keeper) !== node.id) return null;
    const worker = keeper.slice(node.id.length + 1);
    const isAlive = bus.workers().includes(worker) || bus.silent().includes(worker);
    return worker !== bus.self && isAlive ? worker : null;
  };
}

/** This process as one of its service: its store, and what is shared over it. */
export interface ServiceNode {
  readonly store: Store;
  /** Null = this service is one node. */
  readonly cluster: Cluster | null;
  /** What this process and others change in the store. */
  readonly changes: Changes;
  /** Which process does what one does for all. */
  readonly claims: JobClaims;
  readonly onError: (error: unknown) => void;
}

/** Opens the store and joins the others; changes are followed from now on. */
export async function openServiceNode(
  parts: Omit<JoinParts, "store" | "onError"> & ServiceStoreParts,
): Promise<ServiceNode> {
  const { config, runtime, log, service } = parts;
  const onError = (error: unknown): void =>
    log.warn({ problem: errorText(error) }, "the store does not answer as it should");
  const nodeTimeoutMs = config.hosted?.nodeTimeoutMs ?? ROUTER_NODE_TIMEOUT_MS;
  const store = await openServiceStore(parts);
  let cluster: Cluster | null = null;
  try {
    cluster = await joinCluster({ ...parts, store, onError });
    const { bus, workers } = service;
    const signal = cluster?.signal ?? null;
    const followed = { runtime, log, bus, workers, signal, nodeTimeoutMs, onError };
    return {
      store,
      cluster,
      changes: await openChanges({ ...followed, store: urgently(store) }),
      claims: cluster?.claims ?? claimsOf(bus),
      onError,
    };
  } catch (error) {
    await cluster?.close();
    await store.close();
    throw error;
  }
}

/** Has a router without accounts live among others; the result leaves and closes the store. */
export async function openRouterNode(
  { store, cluster, changes, claims, onError }: ServiceNode,
  runtime: Runtime,
): Promise<() => Promise<void>> {
  const beating = { everyMs: HEARTBEAT_MS, runtime, onError };
  const leave = cluster && (await openHeartbeat({ ...cluster, ...beating }));
  const endRetention = startRetention({ store, runtime, claims, onError });
  return async () => {
    await within(runtime, CLOSE_MS, "retention", endRetention()).catch(onError);
    changes.close();
    await cluster?.close().catch(onError);
    await leave?.().catch(onError);
    await store.close().catch(onError);
  };
}

/** What keeps keys, credit and profiles in memory. */
export interface Followers {
  readonly keyCache: Pick<KeyCache, "changed" | "recheck" | "setContact" | "watch">;
  readonly credit: Pick<Credit, "returned" | "recall">;
  readonly loader: Pick<ProfileLoader, "changedElsewhere" | "settled">;
}

/** Has keys, credit and profiles in memory follow what other processes change. */
export function followerOf({ keyCache, credit, loader }: Followers): ChangeFollower {
  return {
    changed(read: ChangesRead) {
      if (read.kind === "all") {
        keyCache.recheck();
        return loader.changedElsewhere(null);
      }
      const refs = (...topics: readonly string[]): ReadonlySet<string> =>
        new Set(read.changes.flatMap(({ topic, ref }) => (topics.includes(topic) ? [ref] : [])));
      // Keys first: a revoked right ends with this call.
      const ids = refs("key", "account");
      if (ids.size > 0) void keyCache.changed(ids);
      for (const accountId of refs("returned")) credit.returned(accountId);
      credit.recall(refs("recall"));
      loader.changedElsewhere(refs("profile"));
    },
    settled: () => loader.settled(),
    watch: (now) => keyCache.watch(now),
    contact(contact) {
      keyCache.setContact(contact);
      if (contact === "silent") keyCache.recheck();
    },
  };
}

const CHANCE = 36 ** 6;
const HOSTNAME_CHARACTERS = 100;

/** The configuration with a name of the node in it, so that all its workers have the same. */
export function named(config: Config, runtime: Runtime): Config {
  if (!config.cluster.enabled || config.cluster.nodeId !== "") return config;
  const host = hostname().replace(/[\s/]/g, "-").slice(0, HOSTNAME_CHARACTERS);
  const nodeId = `${host}-${Math.floor(runtime.random() * CHANCE).toString(36)}`;
  return { ...config, cluster: { ...config.cluster, nodeId } };
}

function clusterNodeId({ config, runtime, service }: Omit<JoinParts, "store" | "onError">): string {
  const worker = workerOf(service);
  const { nodeId } = named(config, runtime).cluster;
  return worker === null ? nodeId : `${nodeId}/${worker}`;
}
