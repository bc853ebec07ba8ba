// History of a service of several workers, in the supervisor: gathered from the workers, which it
// outlives, and its hours written to the database.
import type { Logger } from "pino";
import type { Config } from "../../config/config.ts";
import type { Bus } from "../../core/workers/bus.ts";
import { ServiceHistory } from "../../observe/history/service-history.ts";
import type { Runtime } from "../../runtime.ts";
import { openStore, type Store } from "../../shared/store/store.ts";
import { serveHistory } from "./history-service.ts";
import { startHourWriter } from "./hour-history.ts";

/** What it works with. */
export interface SupervisedHistoryParts {
  readonly config: Config;
  readonly runtime: Pick<Runtime, "after" | "wallMs">;
  readonly log: Pick<Logger, "warn">;
  readonly supervisor: {
    readonly bus: Bus;
    /** Unique for each start of the service. */
    readonly serviceId: string;
  };
  /** The embedded store, which the supervisor has open; null = a server is used. */
  readonly file: Store | null;
}

/** Begins to gather; the returned function writes what is left once all workers have ended. */
export function openSupervisedHistory(parts: SupervisedHistoryParts): () => Promise<void> {
  const { config, runtime, supervisor, file, log } = parts;
  const { bus, serviceId } = supervisor;
  const hasStore = file?.inMemory !== true;
  const history = new ServiceHistory({
    wallMs: runtime.wallMs,
    writer: hasStore ? serviceId : null,
  });
  serveHistory(bus, runtime, history);
  if (!hasStore) return () => Promise.resolve();
  const { open, close } = file === null ? openedOnce(config) : alwaysOpen(file);
  const end = startHourWriter({ history, runtime, log, store: open });
  return async () => {
    await end();
    await close();
  };
}

interface HourStore {
  open(): Promise<Store>;
  close(): Promise<void>;
}

/** The embedded file, which is closed elsewhere. */
function alwaysOpen(file: Store): HourStore {
  return { open: () => Promise.resolve(file), close: () => Promise.resolve() };
}

/** A server that is connected to when it is first needed. */
function openedOnce({ storageUrl: url, dataDir }: Config): HourStore {
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
