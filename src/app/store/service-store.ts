// The store that every service has: PostgreSQL where accounts or a cluster use it, else SQLite in
// `data_dir`. One process has an embedded file open; the workers of a service send it statements.
import type { Logger } from "pino";
import type { Config } from "../../config/config.ts";
import { errorText } from "../../core/fields.ts";
import type { Runtime } from "../../runtime.ts";
import { callsOver } from "../../shared/processes/remote-calls.ts";
import { IN_MEMORY } from "../../shared/store/sqlite.ts";
import { openStore, type ServedFile, type Store, serveFile } from "../../shared/store/store.ts";
import type { ServiceParts } from "../service-parts.ts";
import { STATEMENTS } from "../workers/supervisor-objects.ts";
import { takeOverFiles } from "./kept-files.ts";

/** What a process opens the store of its service with. */
export interface ServiceStoreParts {
  readonly config: Config;
  readonly log: Pick<Logger, "warn" | "error">;
  readonly service: Pick<ServiceParts, "bus" | "workers">;
}

/** As in the settings of `hosted`, for a router without it. */
export const ROUTER_NODE_TIMEOUT_MS = 30_000;

/** A server that is busy needs some time, however short the node timeout is. */
const LEAST_URGENT_MS = 2_000;
/** Time in which signs of life have to be written, as a part of the node timeout. */
const URGENT_SHARE = 1 / 4;

/** Opens the store of this process; throws an error for the operator if it cannot be opened. */
export async function openServiceStore(parts: ServiceStoreParts): Promise<Store> {
  const { config, service } = parts;
  const { bus, workers: processes } = service;
  if (usesEmbedded(config) && processes > 1)
    return openStore({ url: "", dataDir: IN_MEMORY, send: callsOver(bus, STATEMENTS).run });
  if (isPlain(config)) {
    const open = (dataDir: string) => openStore({ url: "", dataDir });
    return orInMemory(parts, open, (store) => store);
  }
  const { storageUrl: url, dataDir, hosted } = config;
  const nodeTimeoutMs = hosted?.nodeTimeoutMs ?? ROUTER_NODE_TIMEOUT_MS;
  const urgentMs = Math.max(LEAST_URGENT_MS, Math.ceil(nodeTimeoutMs * URGENT_SHARE));
  const store = await openStore({ url, dataDir, urgentMs, processes });
  await takeOverFiles(store, { dataDir, log: parts.log });
  return store;
}

/** Opens the embedded file for the workers of a service; null = the service uses a server. */
export async function serveServiceFile(
  parts: Pick<ServiceStoreParts, "config" | "log"> & {
    readonly runtime: Pick<Runtime, "after" | "now">;
  },
): Promise<ServedFile | null> {
  const { config, log, runtime } = parts;
  const { dataDir } = config;
  if (!usesEmbedded(config)) return null;
  const serve = (place: string) => serveFile(place, runtime);
  if (isPlain(config)) return orInMemory(parts, serve, ({ store }) => store);
  const file = await serve(dataDir);
  await takeOverFiles(file.store, { dataDir, log });
  return file;
}

/** The store as a supervisor uses it. */
export interface SupervisedStore {
  /** A server is connected to when it is first needed. */
  open(): Promise<Store>;
  close(): Promise<void>;
}

/** The store beside the workers: the file that is open here, or a server. */
export function supervisedStore(
  { storageUrl: url, dataDir }: Config,
  file: ServedFile | null,
): SupervisedStore {
  if (file !== null) return { open: async () => file.store, close: file.close };
  let opened: Store | null = null;
  return {
    async open() {
      opened ??= await openStore({ url, dataDir, processes: Number.MAX_SAFE_INTEGER });
      return opened;
    },
    async close() {
      await opened?.close().catch(() => undefined);
    },
  };
}

/** A router without accounts and without other nodes: it needs no server, and no disk. */
function isPlain({ hosted, cluster }: Config): boolean {
  return hosted === null && !cluster.enabled;
}

function usesEmbedded(config: Config): boolean {
  return config.storageUrl === "" || isPlain(config);
}

/** Opens a store in `data_dir`, or in memory where that is read-only or in use. */
async function orInMemory<T>(
  { config: { dataDir }, log }: Pick<ServiceStoreParts, "config" | "log">,
  open: (dataDir: string) => Promise<T>,
  storeOf: (opened: T) => Store,
): Promise<T> {
  try {
    const opened = await open(dataDir);
    await takeOverFiles(storeOf(opened), { dataDir, log });
    return opened;
  } catch (error) {
    log.warn(
      { problem: errorText(error) },
      "data_dir cannot be used: what is kept there (cordons, filters, history, credits of " +
        "providers) is kept in memory and ends with this service",
    );
    return open(IN_MEMORY);
  }
}
