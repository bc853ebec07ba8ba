// What a caller is told when there is no answer to pass on, and whether a provider's own error may be passed on. Words and numbers only: nothing is decided here.
import type { ExclusionReason, Failure, Plan, Verdict } from "../core/attempt.ts";
import type { FailedAttempt } from "../core/failover.ts";
import { type Fault, fault } from "../core/fault.ts";
import { type Provider, secretsOf } from "../core/profile.ts";

/** A call that nobody could be asked for. `waitMs` null = waiting has no known end. */
export interface Unasked {
  readonly plan: Plan;
  /** A half-open provider was passed over because its trial was taken. */
  readonly trialsTaken: boolean;
  readonly pinned: boolean;
  readonly waitMs: number | null;
}

/** No provider could be tried at all. */
export function nobodyToAsk({ plan, trialsTaken, pinned, waitMs }: Unasked): Fault {
  const reasons = countReasons(plan, trialsTaken);
  const details = { reason: reasons, upstream_attempts: 0 };
  const message = pinned ? `the pinned provider cannot take this call now (${reasons})` : `no provider can take this call now (${reasons})`;
  const nextAction = pinned ? "retry after retry_after_ms, or send it without the pin" : "retry after retry_after_ms";
  return fault("unavailable", message, { status: 200, nextAction, details, ...(waitMs === null ? {} : { retryAfterMs: Math.ceil(waitMs) }) });
}

/** Every attempt failed, and none with an error that can be shown. */
export function allFailed(failed: readonly FailedAttempt[], late: boolean): Fault {
  const categories = [...new Set(failed.map((it) => it.verdict.category))].join(", ");
  const details = { reason: late ? "deadline_exceeded" : "all_providers_failed", upstream_attempts: failed.length };
  return fault("unavailable", late ? "no provider answered in time" : `every provider that was tried failed (${categories})`, { status: 200, details });
}

/** It was sent, must not be sent again, and nobody knows what became of it. `hash` null = it is not a transaction. */
export function outcomeUnknown(failed: readonly FailedAttempt[], hash: string | null): Fault {
  const reason = failed.at(-1)?.verdict.category ?? "unknown";
  return fault("outcome_unknown", `the provider did not answer properly (${reason}) and the request may have been executed`, {
    details: { upstream_attempts: failed.length, reason, ...(hash === null ? {} : { transaction_hash: hash }) },
  });
}

/** Every provider found the block range too large; `failure` is what one of them said. */
export function rangeRefused(failure: Failure): Fault {
  return fault("log_range_limit", "the block range or result of this eth_getLogs call is too large for every provider", {
    details: { provider_error: { code: failure.code, message: failure.message } },
  });
}

/** What may be shown of an error without the id of its request, in our own words: that a provider could not read it. Null = nothing. */
export function unreadRequestError({ code }: Failure): Buffer | null {
  if (code === PARSE_ERROR) return Buffer.from(`{"code":${PARSE_ERROR},"message":"Parse error"}`);
  return code === INVALID_REQUEST ? Buffer.from(`{"code":${INVALID_REQUEST},"message":"Invalid Request"}`) : null;
}

const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;

/** False for errors about our own credentials, and for any that repeat a secret of the provider's address. */
export function mayShow(provider: Provider, verdict: Verdict, raw: Buffer): boolean {
  if (verdict.effect.kind === "cordon" && verdict.effect.reason !== "wrong_chain") return false;
  return !repeatsSecret(provider, raw.toString());
}

/** Whether a text contains a secret of the provider's address or headers, however it is escaped. */
export function repeatsSecret(provider: Provider, text: string): boolean {
  const plain = undisguised(text);
  return secretsOf(provider).some((secret) => plain.includes(undisguised(secret)));
}

/** For example `circuit_open ×2, lagging`. */
function countReasons(plan: Plan, trialsTaken: boolean): string {
  const counts = new Map<ExclusionReason, number>();
  for (const { reason } of plan.excluded) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  if (trialsTaken) counts.set("trial_in_flight", 1);
  const text = [...counts].map(([reason, n]) => (n === 1 ? reason : `${reason} ×${n}`)).join(", ");
  return text === "" ? "no_providers" : text;
}

/** Without the escapes of JSON and URLs, and in lower case. */
function undisguised(text: string): string {
  if (!/[\\%]/.test(text)) return text.toLowerCase();
  const unescaped = text.replaceAll("\\/", "/").replace(/(?:\\u00|%)([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  return unescaped.toLowerCase();
}
