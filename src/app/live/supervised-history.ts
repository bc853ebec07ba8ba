// History of a service, in its supervisor or in the process that serves alone: gathered from the
// workers, which it outlives, and its hours written to the database.
import type { Logger } from "pino";
import type { Bus } from "../../core/workers/bus.ts";
import { ServiceHistory } from "../../observe/history/service-history.ts";
import type { Runtime } from "../../runtime.ts";
import type { Store } from "../../shared/store/store.ts";
import { serveHistory } from "./history-service.ts";
import { startHourWriter } from "./hour-history.ts";

/** What it works with. */
export interface SupervisedHistoryParts {
  readonly runtime: Pick<Runtime, "after" | "wallMs">;
  readonly log: Pick<Logger, "warn">;
  readonly bus: Bus;
  /** Unique for each start of the service. */
  readonly serviceId: string;
  /** Opens the store in which hours are written; null = nowhere. */
  readonly store: (() => Promise<Store>) | null;
}

/** Begins to gather; the returned function writes what is left once all workers have ended. */
export function openSupervisedHistory(parts: SupervisedHistoryParts): () => Promise<void> {
  const { runtime, bus, serviceId, store, log } = parts;
  const writer = store === null ? null : serviceId;
  const history = new ServiceHistory({ wallMs: runtime.wallMs, writer });
  serveHistory(bus, runtime, history);
  if (store === null) return () => Promise.resolve();
  return startHourWriter({ history, runtime, log, store });
}
