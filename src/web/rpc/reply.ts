// The end of one request before it is written for its caller: its outcome, where that came from,
// and the evidence of it.
import type { Transport } from "../../core/provider/profile.ts";
import { type AnswerSource, providerOf } from "../../core/routing/answer-source.ts";
import { type Evidence, evidenceOf } from "../../core/routing/evidence.ts";
import type { Plan } from "../../core/routing/plan.ts";
import type { Outcome } from "../../upstream/engine/answer.ts";
import type { RoutedCall } from "../../upstream/engine/router.ts";
import type { Billing } from "../payment/call-payment.ts";
import type { Target } from "./target.ts";

/** The end of one request, before it is written for the caller. */
export interface Reply {
  /** The caller's id as JSON text; null = a notification, which gets no answer. */
  readonly id: string | null;
  readonly outcome: Outcome;
  /** Where the answer came from; what is charged follows from it. */
  readonly source: AnswerSource;
  /** Null when no provider was involved. */
  readonly route: RoutedCall | null;
  readonly target: Target;
  readonly requestId: string;
  /** How the caller is connected. */
  readonly transport: Transport;
  /** True when the evidence is wanted as a message of its own. */
  readonly notify: boolean;
  /** Waits to hear whether the reply was written as it is; null = nobody does. */
  readonly written: ((shown: boolean) => void) | null;
  /** Null for callers without a key, and for what is no valid request. */
  readonly billing: Billing | null;
  /**
   * Settles what the call cost at the end of the answer that it belongs to, once; null = it is
   * settled. Streamed answers and items of a batch have it.
   */
  readonly settle: DeliveryCallback | null;
}

/**
 * Settles what an answer cost: `delivered` = it was written to its end, or its caller left before
 * that.
 */
export type DeliveryCallback = (delivered: boolean) => void;

/** The evidence of a reply. */
export function evidenceOfReply(reply: Reply, now: number): Evidence {
  const { route, target } = reply;
  const selected = providerOf(reply.source);
  return evidenceOf({
    requestId: reply.requestId,
    strategy: target.strategy,
    chain: target.chain,
    transport: reply.transport,
    profile: target.profile,
    plan: route?.plan ?? EMPTY_PLAN,
    attempts: route?.traces.map(({ attempt }) => attempt) ?? [],
    breakerState:
      selected === null
        ? null
        : target.tracker.health(selected, route?.traces.at(-1)?.attempt.transport ?? "http")
            .breaker,
    source: reply.source,
    endToEndMs: route === null ? 0 : now - route.startedAtMs,
  });
}

const EMPTY_PLAN: Plan = { candidates: [], excluded: [] };
