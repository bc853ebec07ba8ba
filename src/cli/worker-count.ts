// Determines the number of worker processes from the configuration and this machine.
import { availableParallelism } from "node:os";
import { canSupervise } from "../cluster/workers/worker-process.ts";
import type { Config } from "../config/config.ts";
import { MAX_AUTO_WORKERS } from "../config/schema.ts";

/**
 * Workers of a configuration. A process that is a worker of somebody else serves alone, and so does
 * a service of pay per call, whose channels are in the memory of one process.
 */
export function workerCount(config: Config): number {
  const { workers } = config.server;
  if (!canSupervise() || hasSessions(config)) return 1;
  if (workers !== "auto") return workers;
  return Math.min(MAX_AUTO_WORKERS, availableParallelism());
}

/** Why there is one worker where the configuration does not ask for exactly one. */
export function whyOne(config: Config): string {
  if (hasSessions(config)) return "pay per call needs one process";
  if (!canSupervise()) return "this process is a worker of another supervisor";
  return "this machine has one core";
}

function hasSessions({ hosted }: Config): boolean {
  return hosted?.payments.rails.some(({ kind }) => kind === "session") === true;
}
