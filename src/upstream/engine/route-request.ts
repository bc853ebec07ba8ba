// What the engine is asked for: a call, and how its caller wants it routed.
import type { Provider, Transport } from "../../core/provider/profile.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import type { Strategy } from "../../core/routing/strategy.ts";
import type { Call } from "../../core/rpc/call.ts";
import type { RoutingState } from "../health/tracker.ts";
import type { Room, Upstream } from "../transport.ts";

/** Ways of sending, by transport. */
export type Upstreams = Readonly<Partial<Record<Transport, Pick<Upstream, "send" | "isFree">>>>;

/** What a request is routed with. */
export interface RouteRequest {
  readonly call: Call;
  readonly tracker: RoutingState;
  readonly strategy: Strategy;
  readonly pin: Provider | null;
  /** Null = the better one of a provider's two. */
  readonly transport: Transport | null;
  /**
   * Whose call it is: of one caller only so much counts against a provider. `SERVICE_CALLER` = the
   * service's own, for a stream.
   */
  readonly caller: CallerIdentity;
  /** Providers that must not be asked, even if the plan lists them. */
  readonly avoid: ReadonlySet<string> | null;
  readonly deadlineMs: number;
  /** False where the caller needs the answer in one piece. */
  readonly mayStream: boolean;
  /**
   * Where an answer that is gathered is counted until it is told; left out = with the service's
   * own.
   */
  readonly room?: Room | undefined;
  /** How its attempts are sent, where that is not as requests; left out = as the router sends. */
  readonly upstreams?: Upstreams | undefined;
}
