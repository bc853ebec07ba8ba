// A call at its end as the account whose key made it is shown it: what an event may hold, without
// what only the operator may know of providers and workers.
import { providerOf } from "../../core/routing/answer-source.ts";
import { callEventOf, type RoutingDecision } from "./decision.ts";

/** A call of an account. Of providers it has the alias alone, and none of their words. */
export function ownCallOf(decision: RoutingDecision) {
  const event = callEventOf(decision);
  const { error } = event;
  return {
    at: event.at,
    request_id: event.request_id,
    profile: event.profile,
    chain: event.chain,
    method: event.method,
    strategy: event.strategy,
    key_id: event.key_id,
    request_bytes: event.request_bytes,
    answer_bytes: event.answer_bytes,
    total_ms: event.total_ms,
    upstream_ms: event.upstream_ms,
    added_ms: event.added_ms,
    notification: event.notification,
    outcome: event.outcome,
    reason: event.reason,
    cause: event.cause,
    source: event.source,
    provider: providerOf(decision.source)?.alias ?? null,
    attempts: event.attempts,
    failovers: event.failovers,
    pinned: event.pinned,
    error: error === null ? null : { category: error.category, code: error.code },
  };
}
