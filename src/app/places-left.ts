// Cleans up after workers that ended without closing their leases: the supervisor does this once
// all workers have ended. Their rows count as left, and what they had leased returns.

import type { Logger } from "pino";
import { errorText } from "../core/fields.ts";
import type { WorkerId } from "../core/workers/bus.ts";
import { closeEnded, creditOn } from "../hosted/credit/credit-store.ts";
import { type Runtime, within } from "../runtime.ts";
import { leaveEnded } from "../shared/nodes/node-rows.ts";
import type { Store } from "../shared/store/store.ts";
import { workerProcessId } from "./service-parts.ts";

/** A service whose workers have ended. */
export interface EndedService {
  readonly runtime: Pick<Runtime, "after" | "wallMs">;
  readonly log: Pick<Logger, "warn">;
  readonly id: string;
  readonly workers: readonly WorkerId[];
  /** The store as the supervisor has it open, or opens it. */
  readonly store: () => Promise<Store>;
}

/** As long as each step of the end of a worker. */
const LEAVE_MS = 5_000;

/**
 * Leaves the store for every worker that did not: one that was killed a moment ago had no successor
 * any more. What fails here is done by the next start, or by another node.
 */
export async function leaveForWorkers(service: EndedService): Promise<void> {
  const { runtime, log, id, workers } = service;
  const leave = async (): Promise<void> => {
    const store = await service.store();
    const processIds = workers.map((worker) => workerProcessId(id, worker));
    await leaveEnded(store, processIds);
    await closeEnded(creditOn(store), runtime.wallMs());
  };
  await within(runtime, LEAVE_MS, "returning credit", leave()).catch((error: unknown) =>
    log.warn(
      { problem: errorText(error) },
      "credit that a killed worker had leased may return later: at the next start, or by another node",
    ),
  );
}
