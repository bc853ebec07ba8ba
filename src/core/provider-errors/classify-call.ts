// What an error that answered a caller's call may change in the health of its provider. The caller
// may have chosen the words that come back (a tracer, a script, the name of a method, the reason of
// a revert), so they choose where the call goes next, and teach little else.
import type { Effect, Verdict } from "../provider/attempt.ts";
import { BRIEF_MS } from "../provider/capability.ts";
import type { Call } from "../rpc/call.ts";
import type { Failure } from "../rpc/failure.ts";
import { isKnownByName } from "../rpc/method.ts";
import { type ClassifyContext, classify, groupsOf } from "./classify.ts";

/** The call that failed. */
export type FailedRequest = Pick<Call, "body" | "params" | "method" | "methodName" | "block">;

/** The category of the failure of a call, and its consequences. */
export function classifyCall(
  failure: Failure,
  call: FailedRequest,
  { rules, wallMs }: Pick<ClassifyContext, "rules" | "wallMs">,
): Verdict {
  const { method, methodName, block } = call;
  const context = { rules, wallMs, methodName, block };
  const verdict = classify(failure, method, context);
  const hasWords = failure.kind === "error" || failure.kind === "body";
  if (!hasWords || verdict.effect.kind === "ignored" || !mayRepeat(call)) return verdict;
  // What codes, the HTTP status and headers say by themselves is the provider's own.
  const wordless = classify({ ...failure, message: "", data: null }, method, context).effect;
  return { ...verdict, effect: narrowed(verdict.effect, wordless) };
}

/** What is left of an effect that the caller's words may have had. */
function narrowed(effect: Effect, wordless: Effect): Effect {
  switch (effect.kind) {
    // A filter in front of a provider refuses (403) what a caller writes.
    case "failure":
      if (wordless.kind !== "failure") return AVOID;
      return wordless.cause === "auth" ? { kind: "cordon", reason: "auth" } : wordless;
    case "cooldown":
      if (wordless.kind === "cooldown") return wordless;
      return { kind: "cooldown", ms: Math.min(effect.ms, BRIEF_MS), scope: "method" };
    case "learn":
      return wordless.kind === "learn" && wordless.what === effect.what
        ? effect
        : { ...effect, brief: true };
    case "lag":
      return wordless.kind === "lag" ? effect : AVOID;
    // It only makes the service ask.
    case "cordon":
    case "avoid":
    case "ignored":
      return effect;
  }
}

const AVOID: Effect = { kind: "avoid" };

/** Longer parameters are not searched. */
const MAX_SEARCHED_BYTES = 65_536;
/** Values and names of which no sentence can be made. */
const PLAIN =
  /"(?:0x[0-9a-fA-F]*|latest|earliest|pending|safe|finalized|address|topics|fromBlock|toBlock|blockHash|blockNumber|requireCanonical)"|\b(?:true|false|null)\b/g;
const NO_WORDS = /^[\s\d"[\]{},:.+-]*$/;

/** Whether an error may repeat words of the caller, or of a contract that the caller chose. */
function mayRepeat({ body, params, method, methodName }: FailedRequest): boolean {
  const groups = groupsOf(method, methodName);
  if (isKnownByName(method) || !groups.has("listed") || groups.has("traces")) return true;
  if (params === undefined) return false;
  if (params.end - params.start > MAX_SEARCHED_BYTES) return true;
  const text = body.toString("latin1", params.start, params.end);
  return !NO_WORDS.test(text.replace(PLAIN, ""));
}
