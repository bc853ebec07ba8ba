// Determines the number of worker processes from the configuration and this machine.
import { availableParallelism, totalmem } from "node:os";
import { canSupervise } from "../cluster/workers/worker-process.ts";
import type { Config } from "../config/config.ts";
import { MAX_AUTO_WORKERS } from "../config/schema.ts";
import { cpuLimit } from "./cpu-limit.ts";

/** What this process may use, its workers included. */
export interface MachineLimits {
  readonly cores: number;
  /** CPUs that its container allows, possibly a fraction; null = no limit is known. */
  readonly cpus: number | null;
  readonly memoryBytes: number;
}

/** Memory that a worker should have. */
const WORKER_BYTES = 500_000_000;

/** Workers of a configuration. A process that is a worker of somebody else serves alone. */
export function workerCount(config: Config): number {
  const { workers } = config.server;
  if (!canSupervise()) return 1;
  return workers === "auto" ? workersFor(machineLimits()) : workers;
}

/** The cores, CPUs and memory that this process may use. */
export function machineLimits(): MachineLimits {
  // Node tells a number without meaning where there is no limit, and 0 where it knows none.
  const limit = process.constrainedMemory();
  const total = totalmem();
  const memoryBytes = limit > 0 ? Math.min(limit, total) : total;
  return { cores: availableParallelism(), cpus: cpuLimit(), memoryBytes };
}

/** One worker for each whole core that there is memory for. */
export function workersFor({ cores, cpus, memoryBytes }: MachineLimits): number {
  const most = Math.min(MAX_AUTO_WORKERS, cores, cpus ?? cores, memoryBytes / WORKER_BYTES);
  return Math.max(1, Math.floor(most));
}

/** Why there is one worker where the configuration does not ask for exactly one. */
export function whyOne(): string {
  if (!canSupervise()) return "this process is a worker of another supervisor";
  return "this process may use one core, or has memory for one worker";
}
