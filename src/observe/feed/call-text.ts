// Calls as the JSON that readers of the live feed receive: the same as `callEventOf` tells, put
// together by hand, since there are up to 200 a second. First the members that differ from call to
// call; then the request and its end, two texts that most calls share and that are cached.

import { upstreamMsOf } from "../../core/provider/attempt.ts";
import type { Provider } from "../../core/provider/profile.ts";
import { providerOf } from "../../core/routing/answer-source.ts";
import { redactedMethod } from "../redacted-error.ts";
import {
  decisionId,
  failoversOf,
  isHedged,
  lastErrorOf,
  type RoutingDecision,
} from "./decision.ts";

/** Texts of a kind that are remembered: names of methods are what callers write. */
const MAX_TEXTS = 512;
const SECOND_MS = 1_000;

/** What was called. */
interface SubjectText extends Pick<RoutingDecision, "profile" | "chain" | "strategy"> {
  readonly text: string;
}

/** How a call ended that one provider answered at once. */
interface EndText extends Pick<RoutingDecision, "outcome"> {
  readonly isRecorded: boolean;
  readonly text: string;
}

/** Writes calls of one process. */
export class CallTexts {
  readonly #quoted = new Map<string, string>();
  readonly #methods = new Map<string, string>();
  /** The latest of each method. */
  readonly #subjects = new Map<string, SubjectText>();
  /** The latest of each provider. */
  readonly #ends = new Map<string, EndText>();
  /** The latest second, as its time is written. */
  #second = Number.NaN;
  #secondText = "";

  textOf(decision: RoutingDecision): string {
    const { attempts, keyId, answerBytes, totalMs } = decision;
    const upstreamMs = attempts.length === 0 ? null : upstreamMsOf(attempts);
    const addedMs = Math.max(0, totalMs - (upstreamMs ?? 0));
    return (
      `{"id":"${decisionId(decision)}","at":"${this.#timeOf(decision.wallMs)}"` +
      `,"request_id":${JSON.stringify(decision.requestId)}` +
      `,"key_id":${keyId === null ? "null" : this.#quote(keyId)}` +
      `,"request_bytes":${decision.requestBytes},"answer_bytes":${answerBytes ?? "null"}` +
      `,"total_ms":${hundredths(totalMs)}` +
      `,"upstream_ms":${upstreamMs === null ? "null" : hundredths(upstreamMs)}` +
      `,"added_ms":${hundredths(addedMs)}${this.#subjectOf(decision)}${this.#endOf(decision)}`
    );
  }

  #subjectOf({ origin, methodName, profile, chain, strategy }: RoutingDecision): string {
    const known = this.#subjects.get(methodName);
    const isSame =
      known !== undefined &&
      known.profile === profile &&
      known.chain === chain &&
      known.strategy === strategy;
    if (isSame) return known.text;
    const text =
      `,"worker":${this.#quote(origin.worker)},"profile":${this.#quote(profile)}` +
      `,"chain":${this.#quote(chain)},"method":${this.#methodOf(methodName)}` +
      `,"strategy":"${strategy}"`;
    remember(this.#subjects, methodName, { profile, chain, strategy, text });
    return text;
  }

  #endOf(decision: RoutingDecision): string {
    const provider = soleProviderOf(decision);
    if (provider === null) return this.#endText(decision);
    const { outcome, inputs } = decision;
    const isRecorded = inputs !== null;
    const known = this.#ends.get(provider.id);
    if (known !== undefined && known.outcome === outcome && known.isRecorded === isRecorded)
      return known.text;
    const text = this.#endText(decision);
    remember(this.#ends, provider.id, { outcome, isRecorded, text });
    return text;
  }

  #endText(decision: RoutingDecision): string {
    const { attempts, source, fault } = decision;
    const error = lastErrorOf(decision);
    const provider = providerOf(source);
    return (
      `,"outcome":"${decision.outcome}"` +
      `,"fault":${fault === null ? "null" : this.#quote(fault)},"source":"${source.kind}"` +
      `,"provider":${provider === null ? "null" : this.#quote(provider.id)}` +
      `,"attempts":${attempts.length},"failovers":${failoversOf(attempts)}` +
      `,"hedged":${isHedged(attempts)},"pinned":${decision.pinned},"panic":${decision.isPanic}` +
      `,"error":${error === null ? "null" : JSON.stringify(error)}` +
      `,"what_if":${decision.inputs !== null}}`
    );
  }

  #quote(text: string): string {
    return this.#remembered(this.#quoted, text, JSON.stringify);
  }

  #methodOf(name: string): string {
    return this.#remembered(this.#methods, name, (text) => JSON.stringify(redactedMethod(text)));
  }

  #remembered(texts: Map<string, string>, text: string, make: (text: string) => string): string {
    const known = texts.get(text);
    if (known !== undefined) return known;
    const made = make(text);
    remember(texts, text, made);
    return made;
  }

  /** As `toISOString` writes it. */
  #timeOf(wallMs: number): string {
    const ms = Math.floor(wallMs);
    const second = Math.floor(ms / SECOND_MS);
    if (second !== this.#second) {
      this.#second = second;
      this.#secondText = new Date(second * SECOND_MS).toISOString().slice(0, -"000Z".length);
    }
    return `${this.#secondText}${String(ms - second * SECOND_MS).padStart(3, "0")}Z`;
  }
}

function remember<T>(texts: Map<string, T>, key: string, text: T): void {
  if (texts.size >= MAX_TEXTS) texts.clear();
  texts.set(key, text);
}

/** The provider of a call of which nothing else is to be said; null = there is more. */
function soleProviderOf(decision: RoutingDecision): Provider | null {
  const { source, attempts, fault, pinned, isPanic } = decision;
  if (source.kind !== "provider" || fault !== null || pinned || isPanic) return null;
  const [only] = attempts;
  if (only === undefined || attempts.length > 1) return null;
  return only.verdict === null && only.hedgedAfterMs === undefined ? source.provider : null;
}

/** A number with two digits at most after its point; faster than the usual way for small ones. */
function hundredths(value: number): string {
  const whole = Math.round(value * 100);
  if (!Number.isSafeInteger(whole)) return "0";
  const rest = whole % 100;
  const text = String((whole - rest) / 100);
  if (rest === 0) return text;
  return rest < 10 ? `${text}.0${rest}` : `${text}.${rest}`;
}
