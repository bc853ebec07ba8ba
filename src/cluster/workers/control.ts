// The messages between the supervisor and a worker about the worker's life cycle, and their
// validation. The configuration is sent unchanged, because both processes run the same program.

import { isRecord } from "../../core/fields.ts";
import type { WorkerId } from "../../core/workers/bus.ts";

/** From the supervisor to a worker. */
export type Command<C> =
  | { readonly kind: "start"; readonly start: WorkerStart<C> }
  | { readonly kind: "reload"; readonly id: number; readonly config: C }
  | { readonly kind: "drain" }
  /** Asks for a sign of life, answered at once. */
  | { readonly kind: "ping" }
  /** Asks whether the worker takes a connection now, answered at once. */
  | { readonly kind: "offer"; readonly offer: number }
  /** A connection that another worker accepted; attached to the message. */
  | { readonly kind: "connection" };

/** The start parameters of a worker. */
export interface WorkerStart<C> {
  /** Its position among the workers. */
  readonly id: string;
  /** Number of configured workers, including those not running. */
  readonly count: number;
  readonly config: C;
  readonly version: string;
  /** Made up by the supervisor at its start. */
  readonly serviceId: string;
  /** Wall-clock time of the service's start. */
  readonly startedWallMs: number;
}

/** From a worker to the supervisor. */
export type Report =
  | { readonly kind: "ready"; readonly ports: Ports }
  /** The start failed; the text is for the operator. */
  | { readonly kind: "failed"; readonly problem: string }
  /** `problem`: why the configuration was rejected; null = applied. */
  | { readonly kind: "reloaded"; readonly id: number; readonly problem: string | null }
  | { readonly kind: "pong" }
  /** The connection of an offer may be sent. */
  | { readonly kind: "accepted"; readonly offer: number }
  /** A connection for another worker; attached to the message. */
  | { readonly kind: "connection"; readonly to: WorkerId };

/** The ports on which a service listens. */
export interface Ports {
  readonly port: number;
  /** Null = metrics have no listener of their own. */
  readonly metricsPort: number | null;
}

/** Parses a command; null = invalid. The configuration was validated by the supervisor. */
export function parseCommand<C>(value: unknown): Command<C> | null {
  if (!isRecord(value)) return null;
  const { kind } = value;
  const isKnown =
    kind === "drain" ||
    kind === "connection" ||
    kind === "ping" ||
    (kind === "offer" && typeof value["offer"] === "number") ||
    (kind === "start" && isRecord(value["start"])) ||
    (kind === "reload" && isRecord(value["config"]) && typeof value["id"] === "number");
  return isKnown ? (value as unknown as Command<C>) : null;
}

/** Parses a report; null = invalid. */
export function parseReport(value: unknown): Report | null {
  if (!isRecord(value)) return null;
  const { kind, problem, id, to, offer } = value;
  if (kind === "pong") return { kind };
  if (kind === "accepted") return typeof offer === "number" ? { kind, offer } : null;
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
