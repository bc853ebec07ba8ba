// One try at one provider, and what the classifier made of its answer. The vocabulary that routing, health and evidence share.
import type { Provider, Transport } from "./profile.ts";

/** What came back when it was not a clean result. */
export interface Failure {
  /**
   * `error`: a JSON-RPC error object. `body`: an HTTP answer whose body is not a usable JSON-RPC answer. `timeout`: no full answer in time.
   * `unsent`: it certainly never left this machine. `network`: the connection failed after the request may have left.
   * `no_room`: the answer came, and there was no memory to gather it in: the caller's or our own limit, nothing that the provider did.
   */
  readonly kind: "error" | "body" | "timeout" | "unsent" | "network" | "no_room";
  /** 0 = no HTTP answer. */
  readonly httpStatus: number;
  /** Raw `Retry-After` header value. */
  readonly retryAfter: string | null;
  /** JSON-RPC error code. */
  readonly code: number | null;
  /** JSON-RPC error message, or the beginning of a body, or the text of a network error. */
  readonly message: string;
  /** JSON-RPC error data. */
  readonly data: unknown;
  /** The one event that failed this request and perhaps others with it: the end of a connection they shared. */
  readonly incident?: object;
  /** It failed for want of a free connection here, which says nothing about the provider. */
  readonly crowded?: true;
}

/** A failure that carries nothing but its kind and a text. */
export function plainFailure(kind: Failure["kind"], message: string): Failure {
  return { kind, httpStatus: 0, retryAfter: null, code: null, message, data: null };
}

/** Whether a failure is something that the provider said. */
export function isAnswer(kind: Failure["kind"]): boolean {
  return kind === "error" || kind === "body" || kind === "no_room";
}

/**
 * What the routing does with a failure. `return`: it is the caller's answer. `next`: try the next provider. `next_once`: at most one other provider.
 * `stop`: the outcome is unknown, tell the caller. `known`: the transaction is already known, answer with its hash. `verify`: look the transaction up first.
 * `range`: too large for this provider; another may allow it, and when all refuse the answer is `log_range_limit`.
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
  /** The provider cannot do this; remembered for a while, never held against it. `maxBlockRange` null = the request's own range was too large. */
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
  /** JSON-RPC error code, or the HTTP status of a body that was none; null where neither was seen. */
  readonly code: number | null;
  /** The event that failed it, where it was not the only one. */
  readonly incident?: object;
}

/** Why a provider was not considered for a call. */
export type ExclusionReason =
  | "transport_missing"
  | "method_unsupported"
  | "category_unsupported"
  | "block_range_limit"
  | "archival_required"
  | "block_age_limit"
  | "tag_unsupported"
  | "lagging"
  | "wrong_chain"
  | "cordoned"
  | "circuit_open"
  | "trial_in_flight";

/** A provider left out of a plan, and why. */
export interface Exclusion {
  readonly provider: Provider;
  readonly reason: ExclusionReason;
}

/** Who may be asked, in order, and how. No provider occurs twice. */
export interface Plan {
  readonly candidates: readonly Channel[];
  readonly excluded: readonly Exclusion[];
  /** Every circuit of the set is open: the candidates are the least bad, and only a few calls at once may ask them. */
  readonly panic?: true;
}

/** The strategies that order providers. */
export type Strategy = "load-balanced" | "latency-weighted" | "fastest" | "priority";
