// Determines the number of worker processes from the configuration and this machine.
import { availableParallelism } from "node:os";
import { canSupervise } from "../cluster/workers/worker-process.ts";
import type { Config } from "../config/config.ts";
import { MAX_AUTO_WORKERS } from "../config/schema.ts";

/**
 * The number of workers. It is one for a process that is itself a worker of another program, and
 * for a hosted service, because only one process can open its store.
 */
export function workerCount({ server, hosted }: Config): number {
  if (!canSupervise() || hosted !== null) return 1;
  if (server.workers !== "auto") return server.workers;
  return Math.min(MAX_AUTO_WORKERS, availableParallelism());
}
