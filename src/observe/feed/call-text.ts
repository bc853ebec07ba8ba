// Calls as the JSON that readers of the live feed receive: the same as `callEventOf` tells, put
// together by hand, since there are up to 200 a second. Remembers the texts that most calls share.
import { providerOf } from "../../core/routing/answer-source.ts";
import { upstreamMsOf } from "../../core/routing/evidence.ts";
import { redactedMethod } from "../redacted-error.ts";
import {
  decisionId,
  failoversOf,
  isHedged,
  lastErrorOf,
  type RoutingDecision,
} from "./decision.ts";

/** Texts that are remembered: names of methods are what callers write. */
const MAX_QUOTED = 512;
const SECOND_MS = 1_000;

/** Writes calls. */
export class CallTexts {
  readonly #quoted = new Map<string, string>();
  readonly #methods = new Map<string, string>();
  /** The latest second, as its time is written. */
  #second = Number.NaN;
  #secondText = "";

  textOf(decision: RoutingDecision): string {
    const { origin, attempts, source, fault, keyId, answerBytes, totalMs } = decision;
    const upstreamMs = attempts.length === 0 ? null : upstreamMsOf(attempts);
    const addedMs = Math.max(0, totalMs - (upstreamMs ?? 0));
    const error = lastErrorOf(decision);
    const provider = providerOf(source);
    return (
      `{"id":"${decisionId(decision)}","at":"${this.#timeOf(decision.wallMs)}"` +
      `,"worker":${this.#quote(origin.worker)},"request_id":${JSON.stringify(decision.requestId)}` +
      `,"profile":${this.#quote(decision.profile)},"chain":${this.#quote(decision.chain)}` +
      `,"method":${this.#methodOf(decision.methodName)},"strategy":"${decision.strategy}"` +
      `,"key_id":${keyId === null ? "null" : this.#quote(keyId)}` +
      `,"request_bytes":${decision.requestBytes},"answer_bytes":${answerBytes ?? "null"}` +
      `,"total_ms":${hundredths(totalMs)}` +
      `,"upstream_ms":${upstreamMs === null ? "null" : hundredths(upstreamMs)}` +
      `,"added_ms":${hundredths(addedMs)},"outcome":"${decision.outcome}"` +
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
    if (texts.size >= MAX_QUOTED) texts.clear();
    texts.set(text, made);
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

/** A number with two digits at most after its point; faster than the usual way for small ones. */
function hundredths(value: number): string {
  const whole = Math.round(value * 100);
  if (!Number.isSafeInteger(whole)) return "0";
  const rest = whole % 100;
  const text = String((whole - rest) / 100);
  if (rest === 0) return text;
  return rest < 10 ? `${text}.0${rest}` : `${text}.${rest}`;
}
