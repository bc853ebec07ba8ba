// How many processes serve: what the configuration says, on this machine.
import { availableParallelism } from "node:os";
import { canSupervise } from "../cluster/workers/worker-process.ts";
import type { Config } from "../config/config.ts";
import { MAX_AUTO_WORKERS } from "../config/schema.ts";

/**
 * Workers of a configuration; a process that is a worker of somebody else serves alone, and so does
 * a hosted service, whose store is open to one process.
 */
export function workerCount({ server, hosted }: Config): number {
  if (!canSupervise() || hosted !== null) return 1;
  if (server.workers !== "auto") return server.workers;
  return Math.min(MAX_AUTO_WORKERS, availableParallelism());
}
