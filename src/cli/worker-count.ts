// Determines the number of worker processes from the configuration and this machine.
import { availableParallelism } from "node:os";
import { canSupervise } from "../cluster/workers/worker-process.ts";
import type { Config } from "../config/config.ts";
import { MAX_AUTO_WORKERS } from "../config/schema.ts";
import { cpuLimit } from "./cpu-limit.ts";

/** Workers of a configuration. A process that is a worker of somebody else serves alone. */
export function workerCount(config: Config): number {
  const { workers } = config.server;
  if (!canSupervise()) return 1;
  return workers === "auto" ? workersFor(availableParallelism(), cpuLimit()) : workers;
}

/** One worker for each whole core that the process may use. */
export function workersFor(cores: number, limit: number | null): number {
  return Math.max(1, Math.min(MAX_AUTO_WORKERS, cores, Math.floor(limit ?? cores)));
}

/** Why there is one worker where the configuration does not ask for exactly one. */
export function whyOne(): string {
  if (!canSupervise()) return "this process is a worker of another supervisor";
  return "this process may use one core";
}
