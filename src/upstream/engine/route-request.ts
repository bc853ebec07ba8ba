// The input of the engine: a call, and how it is to be routed.
import type { Counting } from "../../core/provider/attempt.ts";
import type { Provider, Transport } from "../../core/provider/profile.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import type { SeenBlock } from "../../core/routing/seen.ts";
import type { Strategy } from "../../core/routing/strategy.ts";
import type { Call } from "../../core/rpc/call.ts";
import type { View } from "../../core/rpc/view.ts";
import type { Tracker } from "../health/tracker.ts";
import type { Room, Upstream } from "../transport.ts";
import type { OwnTransactions } from "./exchange/accepted-transactions.ts";

/** Overrides of how requests are sent, by transport. */
export type Upstreams = Readonly<Partial<Record<Transport, Pick<Upstream, "send" | "isFree">>>>;

/** A call with its routing parameters. */
export interface RouteRequest {
  readonly call: Call;
  readonly tracker: Tracker;
  readonly strategy: Strategy;
  readonly pin: Provider | null;
  /** Null = the better transport of each provider. */
  readonly transport: Transport | null;
  /**
   * The caller, whose influence on the health of a provider is bounded. `SERVICE_CALLER` = the
   * service itself, for a stream.
   */
  readonly caller: CallerIdentity;
  /** What its outcome counts for at the providers that are asked; omitted = everything. */
  readonly counts?: Counting | undefined;
  /** Providers that must not be asked, even if the plan lists them. */
  readonly avoid: ReadonlySet<string> | null;
  readonly deadlineMs: number;
  /** True = a provider is asked for this very call: no kept or shared answer will do. */
  readonly fresh?: boolean | undefined;
  /**
   * The view at which it is answered; null = none is in force, so tags go out as written. Omitted =
   * its caller wants no view.
   */
  readonly view?: View | null | undefined;
  /** The newest block that its caller has seen, which must not be undercut; omitted = none. */
  readonly mark?: SeenBlock | null | undefined;
  /** What is known of the transactions that it hands in or asks for; set by the router. */
  readonly own?: OwnTransactions | null | undefined;
  /** Providers that are asked first where they are as well as others; set by the router. */
  readonly prefer?: ReadonlySet<string> | null | undefined;
  /** Its caller may go from one process of the service to another; omitted = it need not. */
  readonly mayRoam?: boolean | undefined;
  /** False = the caller needs the answer in one piece. */
  readonly mayStream: boolean;
  /**
   * Memory budget in which a gathered answer counts until it is delivered; omitted = the budget of
   * the service.
   */
  readonly room?: Room | undefined;
  /**
   * Most parts that are planned for a range that no provider accepts whole; omitted = as the
   * router allows.
   */
  readonly maxParts?: number | undefined;
  /** How attempts are sent, if not as ordinary requests; omitted = as the router sends them. */
  readonly upstreams?: Upstreams | undefined;
}
