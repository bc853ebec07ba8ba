// The failsafe policies of eRPC: what of a network's retries, timeouts and hedges svc can be told.
// Both spellings are read: one policy, or a list of policies by method.
import type { Fields } from "../../core/fields.ts";
import type { ImportedValue } from "./imported-value.ts";

/** The policies of a network or upstream. */
function policiesOf(scope: ImportedValue): readonly ImportedValue[] {
  const failsafe = scope.child("failsafe");
  return failsafe.isRecord ? [failsafe] : failsafe.items();
}

/** The policies that hold for all calls. The others are noted. */
function commonPolicies(scope: ImportedValue): readonly ImportedValue[] {
  return policiesOf(scope).filter((policy) => {
    const method = policy.text("matchMethod") ?? "*";
    const isCommon = method === "*" && !policy.has("matchFinality");
    if (!isCommon) policy.drop("svc has policies for all methods alike", "retry", "hedge");
    if (!isCommon && !isOfTraces(policy))
      policy.drop("svc has deadlines by class of method: `deadlines`", "timeout");
    policy.drop("svc has no policies by finality", "matchFinality");
    policy.drop(
      "answers are not compared with each other, but checked against the call",
      "consensus",
    );
    policy.drop("svc has a circuit breaker of its own for every provider", "circuitBreaker");
    return isCommon;
  });
}

/** Attempts of one call. */
export function attemptsOf(scope: ImportedValue): number | null {
  const counts = commonPolicies(scope).map((policy) => {
    const retry = policy.child("retry");
    if (!retry.isRecord) return null;
    retry.drop(
      "svc asks the next provider at once",
      ...["delay", "backoffMaxDelay", "backoffFactor", "jitter", "blockUnavailableDelay"],
    );
    retry.drop(
      "svc asks again for what is missing by itself, within a budget",
      ...["emptyResultConfidence", "emptyResultAccept", "emptyResultIgnore"],
      ...["emptyResultMaxAttempts", "emptyResultDelay"],
    );
    return retry.count("maxAttempts");
  });
  return counts.find((count) => count !== null) ?? null;
}

/** The time of one call, all attempts together. */
export function timeoutMsOf(scope: ImportedValue): number | null {
  return firstTimeout(commonPolicies(scope));
}

/** The time of one call that traces transactions or blocks. */
export function traceTimeoutMsOf(scope: ImportedValue): number | null {
  return firstTimeout(policiesOf(scope).filter(isOfTraces));
}

/** Whether a policy is for methods of `debug_*` and `trace_*` alone. */
function isOfTraces(policy: ImportedValue): boolean {
  const parts = (policy.text("matchMethod") ?? "").split("|");
  return parts.every((part) => /^(?:arb)?(?:debug|trace)_/.test(part.trim()));
}

function firstTimeout(policies: readonly ImportedValue[]): number | null {
  const times = policies.map((policy) => {
    const timeout = policy.child("timeout");
    const duration = timeout.child("duration");
    timeout.drop("svc gives a fixed time", "quantile", "minDuration");
    if (duration.isRecord) {
      duration.drop("svc gives a fixed time", "quantile", "min");
      return duration.durationMs("max") ?? duration.durationMs("base");
    }
    return timeout.durationMs("duration") ?? timeout.durationMs("maxDuration");
  });
  return times.find((ms) => ms !== null) ?? null;
}

const MAX_HEDGE_MS = 60_000;

/** When a second provider is asked as well. */
export function hedgeOf(scope: ImportedValue): Fields | null {
  for (const policy of commonPolicies(scope)) {
    const hedge = policy.child("hedge");
    if (!hedge.isRecord) continue;
    const delay = hedge.child("delay");
    const form = delay.isRecord ? delay : hedge;
    form.drop("svc takes the 95th percentile of the provider", "quantile");
    hedge.drop(
      "svc asks one further provider, of at most 5 % of calls (hedge.max_extra)",
      "maxCount",
    );
    const fixed = delay.isRecord ? delay.durationMs("base") : hedge.durationMs("delay");
    const least = form.durationMs(delay.isRecord ? "min" : "minDelay") ?? fixed;
    const longest = form.durationMs(delay.isRecord ? "max" : "maxDelay") ?? fixed;
    if (least === null && longest === null) continue;
    const floor = Math.min(least ?? longest ?? 1, MAX_HEDGE_MS);
    return {
      floor_ms: floor,
      ceiling_ms: Math.max(floor, Math.min(longest ?? floor, MAX_HEDGE_MS)),
    };
  }
  return null;
}

/** Policies of one upstream, which svc has for whole calls alone. */
export function dropFailsafe(upstream: ImportedValue): void {
  upstream.drop("svc bounds whole calls: `deadlines`, `limits.max_attempts`, `hedge`", "failsafe");
}
