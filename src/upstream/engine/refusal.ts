// Judges a failed attempt, and decides what of it a caller may be shown. Where no provider gave a
// result, picks the answer: a provider's own error if one may be shown, else a refusal of ours.

import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { Verdict } from "../../core/provider/attempt.ts";
import type { Chain } from "../../core/provider/chain.ts";
import { type Provider, secretsOf } from "../../core/provider/profile.ts";
import { classifyCall } from "../../core/provider-errors/classify-call.ts";
import { bestError, type FailedAttempt } from "../../core/routing/failover.ts";
import type { Plan } from "../../core/routing/plan.ts";
import type { Call } from "../../core/rpc/call.ts";
import type { Failure } from "../../core/rpc/failure.ts";
import { type Answer, faultAnswer, providerAnswer, refusedAnswer } from "./answer.ts";
import type { CallContext } from "./call-context.ts";

/** What follows from a failure of a call at a provider. */
export function verdictOf(
  failure: Failure,
  call: Call,
  { errorRules: rules }: Provider,
  wallMs: number,
): Verdict {
  if (failure.crowded === true) return CROWDED;
  if (failure.kind === "no_room") return NO_ROOM;
  return classifyCall(failure, call, { rules, wallMs });
}

/**
 * Raw JSON of what a caller may be shown of an error; null = nothing. `raw` is the `error` member
 * that the provider sent under the id of the request.
 */
export function shownOf(
  failure: Failure,
  raw: Buffer | null,
  provider: Provider,
  verdict: Verdict,
): Buffer | null {
  const shown = raw ?? (failure.kind === "error" ? unreadRequestError(failure) : null);
  return shown !== null && mayShow(provider, verdict, shown) ? shown : null;
}

/** Its caller has left. */
export const CANCELLED: Verdict = ignored("cancelled", "return");
/** Another provider has answered first. */
export const OVERTAKEN: Verdict = ignored("overtaken", "next");
/** No connection was free. */
export const CROWDED: Verdict = ignored("no_connection", "next");
/** The circuit of the provider opened before it was sent. */
export const LEFT: Verdict = ignored("circuit_open", "next");
/** It answered another question. A quirk of its chain looks alike, so it is not blamed. */
export const INTEGRITY: Verdict = ignored("integrity", "next");
/** Its answer was empty, and may be so since it has dropped what was asked for. */
export const UNCONFIRMED: Verdict = ignored("unconfirmed", "next");
/** Its answer could not be gathered. */
const NO_ROOM: Verdict = ignored("no_room", "return");

function ignored(category: string, step: Verdict["step"]): Verdict {
  return { category, step, effect: { kind: "ignored" } };
}

/**
 * The last failure ends the call. An answer that could not be gathered has been given all the same:
 * what it did is done.
 */
export function returned(context: CallContext, isLate: boolean): Answer {
  const { request, failed } = context;
  const last = failed.at(-1);
  if (last?.failure.kind !== "no_room") return failureOf(last) ?? exhausted(context, isLate);
  return faultAnswer(request.call.method.replaySafe ? noRoom() : outcomeUnknown(failed, null));
}

/** Everybody who could be asked has failed, or nobody could be asked. */
export function exhausted(context: CallContext, isLate: boolean): Answer {
  const { failed } = context;
  const best = bestError(failed);
  switch (best.kind) {
    case "error":
      return failureOf(best.best) ?? faultAnswer(allFailed(context, isLate));
    case "range":
      return refusedAnswer(rangeRefused(best.worst.failure));
    case "none":
      return faultAnswer(
        failed.length === 0 ? noProviderEligible(context) : allFailed(context, isLate),
      );
  }
}

/** A provider's error is the answer, if it may be shown. */
function failureOf(last: FailedAttempt | undefined): Answer | null {
  if (last === undefined || last.raw === null) return null;
  const { raw, attempt, verdict } = last;
  return providerAnswer({ kind: "error", raw, category: verdict.category }, attempt.provider);
}

/** How long until somebody may be asked; null = waiting cannot help. */
function waitMsOf({ request }: CallContext): number | null {
  const { tracker, call, strategy, transport, pin } = request;
  return tracker.waitMs(call, { strategy, transport, pin });
}

/** No provider could be tried at all. */
function noProviderEligible(context: CallContext): Fault {
  const reasons = countReasons(context);
  const isPinned = context.request.pin !== null;
  const who = isPinned ? "the pinned provider cannot" : "no provider can";
  const message = `${who} take this call now (${reasons})`;
  const waitMs = waitMsOf(context);
  if (waitMs === null)
    return nobodyAsked(message, reasons, { retryable: false, nextAction: HOPELESS });
  const nextAction = isPinned ? `${RETRY}, or send it without the pin` : RETRY;
  return nobodyAsked(message, reasons, { nextAction, ...retryAfter(waitMs) });
}

/** Every circuit is open, and as many calls ask all the same as may. */
export function panicIsFull({ candidates }: Plan): Fault {
  const reason = counted(new Map([["circuit_open", candidates.length]]));
  const message =
    "every provider of this chain is failing, and enough calls are trying them already " +
    `(${reason})`;
  return nobodyAsked(message, reason, { nextAction: RETRY, retryAfterMs: LEAST_RETRY_MS });
}

function nobodyAsked(message: string, reason: string, advice: Parameters<typeof fault>[2]): Fault {
  return fault("unavailable", message, {
    ...advice,
    status: 200,
    details: { reason, upstream_attempts: 0 },
  });
}

const RETRY = "retry after retry_after_ms";

/** Every attempt failed, and none with an error that can be shown. */
function allFailed(context: CallContext, isLate: boolean): Fault {
  const { failed } = context;
  if (failed.every(leadsBack)) return LOOP;
  const categories = [...new Set(failed.map((attempt) => attempt.verdict.category))].join(", ");
  const details = {
    reason: isLate ? "deadline_exceeded" : "all_providers_failed",
    upstream_attempts: failed.length,
  };
  const message = isLate
    ? "no provider answered in time"
    : `every provider that was tried failed (${categories})`;
  const wait = retryAfter(waitMsOf(context) ?? 0);
  return fault("unavailable", message, { status: 200, details, ...wait });
}

/** The provider is another service like this one, which has recognised the request. */
function leadsBack({ attempt, failure: { data } }: FailedAttempt): boolean {
  const code = typeof data === "object" && data !== null && "code" in data ? data.code : null;
  return attempt.provider.guarded && code === "request_loop";
}

const LOOPS = "the provider leads back to a service that has sent the request";
const LOOP = fault("request_loop", LOOPS, { status: 200 });

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
  const { code, message } = failure;
  return fault("log_range_limit", TOO_LARGE_FOR_ALL, {
    details: { provider_error: { code, message } },
  });
}

const TOO_LARGE_FOR_ALL =
  "the block range or result of this call is too large for every provider that was asked";

/**
 * What may be shown of an error without the id of its request, in our own words: that a provider
 * could not read it. Null = nothing.
 */
function unreadRequestError({ code }: Failure): Buffer | null {
  const message = code === null ? undefined : UNREAD.get(code);
  return message === undefined ? null : Buffer.from(JSON.stringify({ code, message }));
}

const UNREAD: ReadonlyMap<number, string> = new Map([
  [-32_700, "Parse error"],
  [-32_600, "Invalid Request"],
]);

/**
 * False for errors about our own credentials, and for any that repeat a secret of the provider's
 * address.
 */
function mayShow(provider: Provider, verdict: Verdict, raw: Buffer): boolean {
  if (verdict.effect.kind === "cordon" && verdict.effect.reason !== "wrong_chain") return false;
  return !repeatsSecret(provider, raw.toString());
}

/** Whether a text contains a secret of the provider's address or headers, however it is escaped. */
export function repeatsSecret(provider: Provider, text: string): boolean {
  const plain = undisguised(text);
  return secretsOf(provider).some((secret) => plain.includes(undisguised(secret)));
}

/** For example `circuit_open ×2, lagging`. */
function countReasons({ plan, trialsTaken }: CallContext): string {
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
