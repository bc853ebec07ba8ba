// Determines the number of worker processes from the configuration and this machine.
import { availableParallelism } from "node:os";
import { canSupervise } from "../cluster/workers/worker-process.ts";
import type { Config } from "../config/config.ts";
import { MAX_AUTO_WORKERS } from "../config/schema.ts";

/**
 * Workers of a configuration. A process that is a worker of somebody else serves alone, and so does
 * a service of pay per call, whose channels are in the memory of one process.
 */
export function workerCount({ server, hosted }: Config): number {
  const hasSessions = hosted?.payments.rails.some(({ kind }) => kind === "session") === true;
  if (!canSupervise() || hasSessions) return 1;
  if (server.workers !== "auto") return server.workers;
  return Math.min(MAX_AUTO_WORKERS, availableParallelism());
}
