// What the supervisor and a worker tell each other about the worker's life, and its check on
// arrival. The configuration travels as it is: both processes run the same program.
import type { WorkerId } from "../../core/workers/bus.ts";
import { isRecord } from "./packet.ts";

/** From the supervisor to a worker. */
export type Command<C> =
  | { readonly kind: "start"; readonly start: WorkerStart<C> }
  | { readonly kind: "reload"; readonly id: number; readonly config: C }
  | { readonly kind: "drain" }
  /** A connection that another worker accepted; it comes with the message. */
  | { readonly kind: "connection" };

/** What a worker begins with. */
export interface WorkerStart<C> {
  /** Its place among the workers. */
  readonly id: string;
  /** Workers of the service, also those that do not live. */
  readonly count: number;
  readonly config: C;
  readonly version: string;
  /** When the service started, wall clock. */
  readonly startedWallMs: number;
}

/** From a worker to the supervisor. */
export type Report =
  | { readonly kind: "ready"; readonly ports: Ports }
  /** It cannot start; the text is for the operator. */
  | { readonly kind: "failed"; readonly problem: string }
  /** `problem`: why the configuration was not taken; null = it was. */
  | { readonly kind: "reloaded"; readonly id: number; readonly problem: string | null }
  /** A connection for another worker; it comes with the message. */
  | { readonly kind: "connection"; readonly to: WorkerId };

/** Where a service listens. */
export interface Ports {
  readonly port: number;
  /** Null = metrics have no address of their own. */
  readonly metricsPort: number | null;
}

/** Reads a command; null = it is none. The configuration is taken as the supervisor checked it. */
export function parseCommand<C>(value: unknown): Command<C> | null {
  if (!isRecord(value)) return null;
  const { kind } = value;
  const isKnown =
    kind === "drain" ||
    kind === "connection" ||
    (kind === "start" && isRecord(value["start"])) ||
    (kind === "reload" && isRecord(value["config"]) && typeof value["id"] === "number");
  return isKnown ? (value as unknown as Command<C>) : null;
}

/** Reads a report; null = it is none. */
export function parseReport(value: unknown): Report | null {
  if (!isRecord(value)) return null;
  const { kind, problem, id, to } = value;
  if (kind === "ready") {
    const ports = portsOf(value["ports"]);
    return ports === null ? null : { kind, ports };
  }
  if (kind === "failed") return typeof problem === "string" ? { kind, problem } : null;
  if (kind === "connection") return typeof to === "string" ? { kind, to } : null;
  if (kind !== "reloaded" || typeof id !== "number") return null;
  return problem === null || typeof problem === "string" ? { kind, id, problem } : null;
}

function portsOf(value: unknown): Ports | null {
  if (!isRecord(value)) return null;
  const { port, metricsPort } = value;
  if (typeof port !== "number") return null;
  return metricsPort === null || typeof metricsPort === "number" ? { port, metricsPort } : null;
}
