// The messages between the supervisor and a worker about the worker's life cycle. They are sent as
// they are, the configuration included, because both processes run the same build.
import type { WorkerId } from "../../core/workers/bus.ts";
import type { Packet } from "./packet.ts";

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

/** What a worker sends to the supervisor. */
export type WorkerMessage = Packet | Report;

/** What the supervisor sends to a worker. */
export type SupervisorMessage<C> = Packet | Command<C>;

/** The ports on which a service listens. */
export interface Ports {
  readonly port: number;
  /** Null = metrics have no listener of their own. */
  readonly metricsPort: number | null;
}
