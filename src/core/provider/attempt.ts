// One attempt at one provider, and the classifier's verdict on its failure. Types shared by
// routing, health and evidence.
import type { Provider, Transport } from "./profile.ts";

/**
 * What routing does after a failure. `return`: pass it to the caller. `next`: try the next
 * provider. `next_once`: try at most one other provider. `stop`: the outcome is unknown, say so.
 * `known`: the transaction is already known, answer with its hash. `verify`: look the transaction
 * up first. `range`: the block range is too large for this provider but may suit another; when all
 * refuse, the answer is `log_range_limit`.
 */
export type Step = "return" | "next" | "next_once" | "stop" | "known" | "verify" | "range";

/** What a failure changes in the health of its provider. */
export type Effect =
  /** Changes nothing: releases a trial permit and never counts. */
  | { readonly kind: "ignored" }
  /** Counts toward the breaker. */
  | { readonly kind: "failure"; readonly cause: "server" | "network" | "timeout" | "auth" }
  /** Rate-limited for `ms`; with a scope, only for the method that was called. */
  | { readonly kind: "cooldown"; readonly ms: number; readonly scope?: "method" }
  /**
   * The provider refuses the service, or is of another chain. Said by a probe, it is excluded until
   * one succeeds; said to a call, it is probed at once, and asked after others for this method.
   */
  | { readonly kind: "cordon"; readonly reason: "auth" | "quota" | "wrong_chain" }
  /** Asked after others for the method that was called, for a short while. */
  | { readonly kind: "avoid" }
  /**
   * The provider cannot do this: remembered for a while, never counted as a failure.
   * `maxBlockRange` null = the limit is below the range of the request. `brief`: of this method
   * alone, and for a short while.
   */
  | {
      readonly kind: "learn";
      readonly what: "method" | "subscription" | "tag";
      readonly brief?: true;
    }
  | {
      readonly kind: "learn";
      readonly what: "pruned";
      /** The oldest block that it has, as its error names it; absent = it names none. */
      readonly oldest?: number;
      readonly brief?: true;
    }
  | {
      readonly kind: "learn";
      readonly what: "range";
      readonly maxBlockRange: number | null;
      readonly brief?: true;
    }
  /** The provider is behind. */
  | { readonly kind: "lag" };

/** The classifier's judgement of one failure. */
export interface Verdict {
  /** Row of the classification table, for example `rate_limit` or `revert`. */
  readonly category: string;
  readonly step: Step;
  readonly effect: Effect;
}

/** A provider over one transport; each channel has its own circuit, rate limits and latency. */
export interface Channel {
  readonly provider: Provider;
  readonly transport: Transport;
}

/** One finished attempt at one provider. */
export interface Attempt extends Channel {
  readonly latencyMs: number;
  /** Null = it returned a result. */
  readonly verdict: Verdict | null;
  /** JSON-RPC error code, or the HTTP status of an answer that is not JSON-RPC; null = neither. */
  readonly code: number | null;
  /**
   * The event that failed this attempt and possibly others, such as the end of a shared connection.
   */
  readonly incident?: object;
  /** Only of one that shared its request: with how many calls in all. */
  readonly batched?: number;
  /** When it was begun (monotonic ms); absent = not known. */
  readonly startedAtMs?: number;
  /** Only of a trial that went on: its call was answered by another provider before it ended. */
  readonly overtaken?: true;
  /** Only of a hedge: how long (ms) the attempt had taken beside which this one was begun. */
  readonly hedgedAfterMs?: number;
}

/**
 * What the outcome of a request counts for at the providers that it asks.
 *
 * `all`: as that of a caller's call. `answers`: failures do not count, and providers with an open
 * circuit are asked last instead of being excluded: the retries of many streams after one lost
 * connection would otherwise open every circuit for longer than a stream may wait. Their user
 * limits how often it asks. `limits`: one provider is asked that is chosen already, its circuit is
 * respected, and only successes, rate limits and refusals of the service count. `nothing`: one
 * provider is asked that is chosen already, even if its circuit is open.
 */
export type Counting = "all" | "answers" | "limits" | "nothing";

/** An attempt as it is recorded; null = it is not. */
export function counted(attempt: Attempt, counts: Counting): Attempt | null {
  const { verdict } = attempt;
  if (counts === "nothing") return null;
  if (counts === "all" || verdict === null) return attempt;
  const { kind } = verdict.effect;
  if (counts === "answers") return kind === "failure" ? null : attempt;
  if (kind === "cooldown" || kind === "cordon") return attempt;
  return { ...attempt, verdict: { ...verdict, effect: { kind: "ignored" } } };
}

/** For how long providers were asked: a hedge is asked beside another, not after it. */
export function upstreamMsOf(attempts: readonly Attempt[]): number {
  let inTurnMs = 0;
  let besideMs = 0;
  for (const { latencyMs, hedgedAfterMs } of attempts) {
    if (hedgedAfterMs === undefined) inTurnMs += latencyMs;
    else besideMs = Math.max(besideMs, hedgedAfterMs + latencyMs);
  }
  return Math.max(inTurnMs, besideMs);
}
