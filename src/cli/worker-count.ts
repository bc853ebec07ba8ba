// Determines the number of worker processes from the configuration and this machine.
import { availableParallelism } from "node:os";
import { canSupervise } from "../cluster/workers/worker-process.ts";
import type { Config } from "../config/config.ts";
import { MAX_AUTO_WORKERS } from "../config/schema.ts";

/** Workers of a configuration. A process that is a worker of somebody else serves alone. */
export function workerCount(config: Config): number {
  const { workers } = config.server;
  if (!canSupervise()) return 1;
  if (workers !== "auto") return workers;
  return Math.min(MAX_AUTO_WORKERS, availableParallelism());
}

/** Why there is one worker where the configuration does not ask for exactly one. */
export function whyOne(): string {
  if (!canSupervise()) return "this process is a worker of another supervisor";
  return "this machine has one core";
}
