// What a process knows about the service that it belongs to: other workers, their number, and the
// start time. A process alone is a service of one worker.
import type { Bus, WorkerId } from "../core/workers/bus.ts";
import {
  type OpenAddressLimit,
  sharedAddressLimits,
} from "../core/workers/shared-address-limits.ts";
import type { Runtime } from "../runtime.ts";
import { newProcessId } from "../shared/nodes/node-rows.ts";
import { createLocalBus } from "../shared/processes/bus-endpoint.ts";
import type { OtherWorkers } from "../web/server/server.ts";

/** The service of this process, which runs alone or is one of several workers. */
export interface ServiceParts {
  /** To the other workers. A process alone answers itself, also in place of the supervisor. */
  readonly bus: Bus;
  /** Made up at the start of the service. */
  readonly id: string;
  /** Null = no other process accepts connections. */
  readonly otherWorkers: OtherWorkers | null;
  /** Number of configured workers; 1 = this process is alone. */
  readonly workers: number;
  /** Wall clock. */
  readonly startedWallMs: number;
}

/** The service of a process that is alone. */
export function serviceAlone(runtime: Runtime, onError: (error: unknown) => void): ServiceParts {
  return {
    bus: createLocalBus(runtime, onError),
    id: newProcessId(runtime),
    otherWorkers: null,
    workers: 1,
    startedWallMs: runtime.wallMs(),
  };
}

/** The worker of its service that a process is; null = it is alone. */
export function workerOf({ bus, workers }: Pick<ServiceParts, "bus" | "workers">): WorkerId | null {
  return workers === 1 ? null : bus.self;
}

/**
 * What this process is known by in its row of the store. A successor of a worker has the same id:
 * the supervisor starts it after the predecessor has ended, so it need not wait to see whether that
 * one lives.
 */
export function processIdOf(service: Pick<ServiceParts, "id" | "bus" | "workers">): string {
  const worker = workerOf(service);
  return worker === null ? service.id : workerProcessId(service.id, worker);
}

/** The same of a worker by its place. */
export function workerProcessId(serviceId: string, worker: WorkerId): string {
  return `${serviceId}/${worker}`;
}

/** How limits by address are opened, for all workers. */
export function limitsOf({
  service,
  runtime,
}: {
  readonly service: ServiceParts;
  readonly runtime: Runtime;
}): OpenAddressLimit {
  return sharedAddressLimits(service.bus, runtime);
}
