// Routes calls: the engine, put together. Each layer is told of in its own file.

import type { Abandoned } from "../../core/billing/charging.ts";
import type { Transport } from "../../core/provider/profile.ts";
import { policyOf } from "../../core/routing/policy.ts";
import type { Runtime } from "../../runtime.ts";
import type { TimerWheel } from "../timer-wheel.ts";
import type { Answer } from "./answer.ts";
import { coalesce } from "./coalesce.ts";
import { failover } from "./failover.ts";
import { CallRecord, type Trace } from "./record.ts";
import type { RouteRequest, Upstreams } from "./route-request.ts";
import { type CancelJob, NOTHING_SENT, stack } from "./stage.ts";
import { transactions } from "./transactions.ts";

/** Routes calls. */
export interface Router {
  route(request: RouteRequest, done: (answer: Answer, route: RoutedCall) => void): RoutedCall;
}

/** The router of the service, composed once. */
export interface RoutingEngine extends Router {
  /** Whether it can ask providers over a transport at all. */
  reaches(transport: Transport): boolean;
}

/** A routed call, under way or ended: what the evidence is made of. */
export interface RoutedCall
  extends Readonly<Pick<CallRecord, "request" | "startedAtMs" | "plan" | "source">> {
  readonly traces: readonly Trace[];
  /**
   * Ends it without an outcome, since its caller is gone, and tells what may have been carried out.
   */
  cancel(): Abandoned;
}

/** What the router works with. */
export interface RouterParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly upstreams: Upstreams;
  readonly limits: () => RouterLimits;
  /** Equal reads share one answer; left out = each is asked by itself. */
  readonly coalesce?: boolean;
}

/** Bounds of one routed call. */
export interface RouterLimits {
  readonly maxAttempts: number;
  /** Share of the remaining time that an attempt may use while others could follow. */
  readonly firstAttemptShare: number;
}

/** A router over these parts. */
export function createRouter(parts: RouterParts): RoutingEngine {
  const { runtime, limits } = parts;
  const firstAttemptShare = (): number => limits().firstAttemptShare;
  const engine = stack(
    failover({ ...parts, firstAttemptShare }),
    transactions(runtime),
    coalesce(parts),
  );
  return {
    route(request, done) {
      const { method, block } = request.call;
      const { maxAttempts } = limits();
      const coalesce = parts.coalesce === true && request.pin === null && request.avoid === null;
      const policy = policyOf(method, block, { maxAttempts, coalesce });
      const record = new RoutedRecord(request, runtime.now());
      const endsAtMs = record.startedAtMs + request.deadlineMs;
      record.stop = engine({ request, policy, record, endsAtMs }, (answer) => {
        record.source = answer.source;
        done(answer, record);
      });
      return record;
    },
    reaches: (transport) => parts.upstreams[transport] !== undefined,
  };
}

/** The record of a call, with the way to end it. */
class RoutedRecord extends CallRecord implements RoutedCall {
  stop: CancelJob | null = null;

  cancel(): Abandoned {
    return this.stop?.() ?? NOTHING_SENT;
  }
}
