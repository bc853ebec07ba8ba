// The words for how calls ended and why, and their colours: the same on every page. Pure.
import type { CallEvent } from "../api/use-feed.ts";
import type { Tone } from "../format/tone.ts";

/** How a call ended, by the names of the API. */
export type Outcome = CallEvent["outcome"];

/** The outcomes in words: only what a provider or the service caused is red. */
export const OUTCOMES: Readonly<Record<Outcome, { readonly tone: Tone; readonly word: string }>> = {
  answered: { tone: "good", word: "Answered" },
  failed: { tone: "bad", word: "Failed" },
  refused: { tone: "warn", word: "Refused" },
  caller_error: { tone: "idle", word: "Caller's own error" },
  cancelled: { tone: "idle", word: "Cancelled" },
};

/** Those of calls that were not answered, the worst first. */
export const NOT_ANSWERED = ["failed", "refused", "caller_error", "cancelled"] as const;

/** Reasons that are not called as the API names them, with their outcomes. */
const REASONS: Readonly<Record<string, string>> = {
  "failed.unavailable": "no provider could answer",
  "failed.provider_error": "error of a provider",
  "failed.cut": "broken off",
  "failed.internal": "defect of the service",
  "refused.balance": "balance exhausted",
  "refused.access": "key missing or not allowed",
  "refused.size": "too large",
  "refused.target": "unknown chain, profile or path",
  "refused.method": "method not served",
  "refused.request": "not a valid request",
  "caller_error.transaction": "transaction not accepted",
  "caller_error.params": "wrong parameters",
  "caller_error.unsupported": "no provider serves it",
};

/** Why calls ended so, in words; `name` = `outcome.reason`. */
export function reasonText(name: string): string {
  const [, reason = ""] = name.split(".");
  return REASONS[name] ?? reason.replaceAll("_", " ");
}

/** How a call ended in words. */
export function endText({ outcome, reason, notification }: EndedCall): string {
  const { word } = OUTCOMES[outcome];
  const text = reason === null ? word : `${word}: ${reasonText(`${outcome}.${reason}`)}`;
  return notification ? `${text} (notification)` : text;
}

type EndedCall = Pick<CallEvent, "outcome" | "reason" | "notification">;

/** Groups of errors of attempts that do not count against their provider. */
const NEUTRAL: ReadonlySet<string> = new Set(["rejected", "too_large", "unsupported", "cut"]);

/** Whether errors of such a group count against the provider that gave them. */
export function isFailure(group: string): boolean {
  return !NEUTRAL.has(group);
}
