// What a caller is told when there is no answer to pass on, and whether a provider's own error may
// be passed on. Words and numbers only: nothing is decided here.

import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { Verdict } from "../../core/provider/attempt.ts";
import type { Chain } from "../../core/provider/chain.ts";
import { type Provider, secretsOf } from "../../core/provider/profile.ts";
import type { FailedAttempt } from "../../core/routing/failover.ts";
import type { Plan } from "../../core/routing/plan.ts";
import type { Failure } from "../../core/rpc/failure.ts";

/** A call that nobody could be asked for. `waitMs` null = waiting cannot help. */
export interface Unasked {
  readonly plan: Plan;
  /** A half-open provider was passed over because its trial was taken. */
  readonly trialsTaken: boolean;
  readonly pinned: boolean;
  readonly waitMs: number | null;
}

/** No provider could be tried at all. */
export function noProviderEligible({ plan, trialsTaken, pinned, waitMs }: Unasked): Fault {
  const reasons = countReasons(plan, trialsTaken);
  const details = { reason: reasons, upstream_attempts: 0 };
  const message = pinned
    ? `the pinned provider cannot take this call now (${reasons})`
    : `no provider can take this call now (${reasons})`;
  if (waitMs === null)
    return fault("unavailable", message, {
      status: 200,
      retryable: false,
      nextAction: HOPELESS,
      details,
    });
  const nextAction = pinned
    ? "retry after retry_after_ms, or send it without the pin"
    : "retry after retry_after_ms";
  return fault("unavailable", message, { status: 200, nextAction, details, ...retryAfter(waitMs) });
}

/** Every circuit is open, and as many calls ask all the same as may. */
export function panicIsFull({ candidates }: Plan): Fault {
  const reason = counted(new Map([["circuit_open", candidates.length]]));
  const details = { reason, upstream_attempts: 0 };
  const message =
    "every provider of this chain is failing, and enough calls are trying them already " +
    `(${reason})`;
  return fault("unavailable", message, {
    status: 200,
    nextAction: "retry after retry_after_ms",
    details,
    retryAfterMs: LEAST_RETRY_MS,
  });
}

/**
 * Every attempt failed, and none with an error that can be shown. `waitMs`: until somebody may be
 * asked again; null = waiting cannot help.
 */
export function allFailed(
  failed: readonly FailedAttempt[],
  { late, waitMs }: { readonly late: boolean; readonly waitMs: number | null },
): Fault {
  if (failed.every(leadsBack)) return LOOP;
  const categories = [...new Set(failed.map((attempt) => attempt.verdict.category))].join(", ");
  const details = {
    reason: late ? "deadline_exceeded" : "all_providers_failed",
    upstream_attempts: failed.length,
  };
  const message = late
    ? "no provider answered in time"
    : `every provider that was tried failed (${categories})`;
  return fault("unavailable", message, { status: 200, details, ...retryAfter(waitMs ?? 0) });
}

/** The provider is another service like this one, which has recognised the request. */
function leadsBack({ attempt, failure: { data } }: FailedAttempt): boolean {
  const code = typeof data === "object" && data !== null && "code" in data ? data.code : null;
  return attempt.provider.guarded && code === "request_loop";
}

const LOOP = fault(
  "request_loop",
  "the provider leads back to a service that has sent the request",
  {
    status: 200,
  },
);

/** Where somebody may be asked at once, a moment's pause is the catalog's. */
function retryAfter(waitMs: number): { readonly retryAfterMs?: number } {
  return waitMs > 0 ? { retryAfterMs: Math.max(LEAST_RETRY_MS, Math.ceil(waitMs)) } : {};
}

const LEAST_RETRY_MS = 250;
const HOPELESS =
  "do not retry: no provider here can serve this call; use another profile, or ask for " +
  "something else";

/** The answer would have to be gathered in memory, and there is no room for it. */
export function noRoom(): Fault {
  return fault(
    "unavailable",
    "there is no room in memory for this answer beside the others that are gathered for this " +
      "caller or for all",
    {
      status: 200,
      nextAction:
        "send fewer or smaller calls at once; alone in an HTTP request its answer is passed on " +
        "while it arrives, and needs no room",
      details: { reason: "no_room" },
    },
  );
}

/**
 * The call was sent, must not be sent again, and its outcome is unknown. `hash` null = it is not a
 * transaction.
 */
export function outcomeUnknown(failed: readonly FailedAttempt[], hash: string | null): Fault {
  const reason = failed.at(-1)?.verdict.category ?? "unknown";
  return fault(
    "outcome_unknown",
    `the provider did not answer properly (${reason}) and the request may have been executed`,
    {
      details: {
        upstream_attempts: failed.length,
        reason,
        ...(hash === null ? {} : { transaction_hash: hash }),
      },
    },
  );
}

/** Every provider found the block range too large; `failure` is what one of them said. */
export function rangeRefused(failure: Failure): Fault {
  return fault(
    "log_range_limit",
    "the block range or result of this call is too large for every provider that was asked",
    {
      details: { provider_error: { code: failure.code, message: failure.message } },
    },
  );
}

/**
 * What may be shown of an error without the id of its request, in our own words: that a provider
 * could not read it. Null = nothing.
 */
export function unreadRequestError({ code }: Failure): Buffer | null {
  if (code === PARSE_ERROR) return Buffer.from(`{"code":${PARSE_ERROR},"message":"Parse error"}`);
  return code === INVALID_REQUEST
    ? Buffer.from(`{"code":${INVALID_REQUEST},"message":"Invalid Request"}`)
    : null;
}

const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;

/**
 * False for errors about our own credentials, and for any that repeat a secret of the provider's
 * address.
 */
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
  const counts = new Map<string, number>();
  for (const { reason } of plan.excluded) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  if (trialsTaken) counts.set("trial_in_flight", 1);
  return counts.size === 0 ? "no_providers" : counted(counts);
}

function counted(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([reason, n]) => (n === 1 ? reason : `${reason} ×${n}`)).join(", ");
}

/** Without the escapes of JSON and URLs, and in lower case. */
function undisguised(text: string): string {
  if (!/[\\%]/.test(text)) return text.toLowerCase();
  const unescaped = text
    .replaceAll("\\/", "/")
    .replace(/(?:\\u00|%)([0-9a-f]{2})/gi, (_, hex) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
  return unescaped.toLowerCase();
}

/** No provider has the newest block that the caller has seen. */
export function behindMark({ blockTimeMs }: Chain): Fault {
  return fault("behind", "no provider of this node has the newest block that the caller has seen", {
    nextAction: "send the same call again after the wait",
    retryAfterMs: Math.min(MOST_BEHIND_MS, Math.max(LEAST_BEHIND_MS, blockTimeMs)),
  });
}

const LEAST_BEHIND_MS = 250;
const MOST_BEHIND_MS = 12_000;
