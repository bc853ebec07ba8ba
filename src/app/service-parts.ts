// What a process knows about the service that it belongs to: other workers, their number, and the
// start time.
import type { Bus } from "../core/workers/bus.ts";
import {
  type OpenAddressLimit,
  openAddressLimit,
  sharedAddressLimits,
} from "../core/workers/shared-address-limits.ts";
import type { Runtime } from "../runtime.ts";
import type { OtherWorkers } from "../web/server/server.ts";

/** The service of this process, which runs alone or is one of several workers. */
export interface ServiceParts {
  readonly bus: Bus;
  /** Made up by the supervisor at its start. */
  readonly id: string;
  /** Null = no other process accepts connections. */
  readonly otherWorkers: OtherWorkers | null;
  /** Number of configured workers; 1 = this process is alone. */
  readonly workers: number;
  /** Wall clock. */
  readonly startedWallMs: number;
}

/** The bus to the other workers of a service; null = this process is the whole service. */
export function busOf(
  service: Pick<ServiceParts, "bus" | "workers"> | null | undefined,
): Bus | null {
  return (service?.workers ?? 1) === 1 ? null : (service?.bus ?? null);
}

/** How limits by address are opened: for this process, or for all workers. */
export function limitsOf({
  service,
  runtime,
}: {
  readonly service: ServiceParts | null;
  readonly runtime: Runtime;
}): OpenAddressLimit {
  const bus = busOf(service);
  return bus === null ? openAddressLimit : sharedAddressLimits(bus, runtime);
}
