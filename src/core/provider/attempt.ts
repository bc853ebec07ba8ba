// One try at one provider, and what the classifier made of its answer. The vocabulary that routing,
// health and evidence share.
import type { Provider, Transport } from "./profile.ts";

/**
 * What the routing does with a failure. `return`: it is the caller's answer. `next`: try the next
 * provider. `next_once`: at most one other provider. `stop`: the outcome is unknown, tell the
 * caller. `known`: the transaction is already known, answer with its hash. `verify`: look the
 * transaction up first. `range`: too large for this provider; another may allow it, and when all
 * refuse the answer is `log_range_limit`.
 */
export type Step = "return" | "next" | "next_once" | "stop" | "known" | "verify" | "range";

/** What a failure says about the provider's health. */
export type Effect =
  /** Says nothing: gives a trial permit back and never counts. */
  | { readonly kind: "ignored" }
  /** Counts toward the breaker. */
  | { readonly kind: "failure"; readonly cause: "server" | "network" | "timeout" | "auth" }
  /** Rate-limited for this long; with a scope, only for the method that was called. */
  | { readonly kind: "cooldown"; readonly ms: number; readonly scope?: "method" }
  /** Excluded until a probe succeeds: dead credentials, wrong chain. */
  | { readonly kind: "cordon"; readonly reason: "auth" | "quota" | "wrong_chain" }
  /**
   * The provider cannot do this; remembered for a while, never held against it. `maxBlockRange`
   * null = the request's own range was too large.
   */
  | { readonly kind: "learn"; readonly what: "method" | "subscription" | "tag" | "pruned" }
  | { readonly kind: "learn"; readonly what: "range"; readonly maxBlockRange: number | null }
  /** The provider is behind. */
  | { readonly kind: "lag" };

/** The classifier's judgement of one failure. */
export interface Verdict {
  /** Row of the classification table, for example `rate_limit` or `revert`. */
  readonly category: string;
  readonly step: Step;
  readonly effect: Effect;
}

/** One way of reaching a provider; each has a health of its own. */
export interface Channel {
  readonly provider: Provider;
  readonly transport: Transport;
}

/** One finished try at one provider. */
export interface Attempt extends Channel {
  readonly latencyMs: number;
  /** Null = a clean result. */
  readonly verdict: Verdict | null;
  /**
   * JSON-RPC error code, or the HTTP status of a body that was none; null where neither was seen.
   */
  readonly code: number | null;
  /** The event that failed it, where it was not the only one. */
  readonly incident?: object;
}
