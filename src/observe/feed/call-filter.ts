// Which calls a reader of the live feed wants to see. Cheap enough to be asked of every call at its
// end, before any of them are left out.
import type { RouteRequest } from "../../upstream/engine/call-context.ts";

/** How a call ended; `cancelled` = its caller left. */
export type CallOutcome = "result" | "error" | "fault" | "cancelled";

/** Which calls a reader wants to see; null = any. */
export interface CallFilter {
  readonly profile: string | null;
  readonly chain: string | null;
  readonly method: string | null;
  readonly provider: string | null;
  readonly key: string | null;
  readonly outcome: CallOutcome | null;
  /** Only calls with a failed attempt, or more than one. */
  readonly failovers: boolean;
  readonly minMs: number | null;
}

/** What a filter looks at in a call that has ended. */
export interface FilteredCall {
  readonly profile: string;
  readonly chain: string;
  readonly methodName: string;
  readonly keyId: string | null;
  readonly outcome: CallOutcome;
  /** Id of the provider that answered; null = none did, or several. */
  readonly provider: string | null;
  /** Id of the provider that failed last; null = none failed. */
  readonly failedProvider: string | null;
  readonly attempts: number;
  readonly totalMs: number;
}

/** Every call. */
export const ANY_CALL: CallFilter = {
  profile: null,
  chain: null,
  method: null,
  provider: null,
  key: null,
  outcome: null,
  failovers: false,
  minMs: null,
};

/** Equal for equal filters. */
export function filterKey(filter: CallFilter): string {
  const { profile, chain, method, provider, key, outcome, failovers, minMs } = filter;
  return JSON.stringify([profile, chain, method, provider, key, outcome, failovers, minMs]);
}

/** Whether a call is one that a reader wants to see. */
export function matches(filter: CallFilter, call: FilteredCall): boolean {
  return (
    (filter.profile === null || filter.profile === call.profile) &&
    (filter.chain === null || filter.chain === call.chain) &&
    (filter.method === null || filter.method === call.methodName) &&
    (filter.key === null || filter.key === call.keyId) &&
    (filter.outcome === null || filter.outcome === call.outcome) &&
    (!filter.failovers || call.attempts > 1) &&
    (filter.minMs === null || call.totalMs >= filter.minMs) &&
    (filter.provider === null ||
      filter.provider === call.provider ||
      filter.provider === call.failedProvider)
  );
}

/** Whether a call that begins now may turn out to be one. */
export function mayMatch(
  { chain, method, key }: CallFilter,
  { call, caller, tracker }: Pick<RouteRequest, "call" | "caller" | "tracker">,
): boolean {
  return (
    (method === null || method === call.methodName) &&
    (chain === null || chain === tracker.set.chain.chainName) &&
    (key === null || key === caller.keyId)
  );
}

/** Whether more of a call than how it began decides whether it matches. */
export function dependsOnEnd({ provider, outcome, failovers, minMs }: CallFilter): boolean {
  return provider !== null || outcome !== null || failovers || minMs !== null;
}
