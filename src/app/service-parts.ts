// What a process knows of the service that it is a part of: its workers, their number, and when the
// service started.
import type { Bus } from "../core/workers/bus.ts";
import type { OtherWorkers } from "../web/server/server.ts";

/** The service that a process serves for, alone or as one of several workers. */
export interface ServiceParts {
  readonly bus: Bus;
  /** Null = this process accepts alone. */
  readonly otherWorkers: OtherWorkers | null;
  /** Workers that the service is configured for; 1 = this process is alone. */
  readonly workers: number;
  /** Wall clock. */
  readonly startedWallMs: number;
}
