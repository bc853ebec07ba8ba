// How a routed call ended, and where that came from.
import type { Fault } from "../../core/faults/rpc-fault.ts";
import type { Provider } from "../../core/provider/profile.ts";
import { type AnswerSource, NO_SOURCE, REFUSED_SOURCE } from "../../core/routing/answer-source.ts";
import { isNullResult } from "../../core/rpc/result-block.ts";
import type { AnswerStream, BorrowedBuffer, ResultSpan } from "../transport.ts";

/**
 * The result value lies in `body` at `start`..`end`. `body` is a whole upstream answer with an id
 * of ours at `idAt`; null = it is the value alone. With a `pool`, which only a request with
 * `mayStream` meets, `body` goes back to it when nobody reads it any more.
 */
export interface Result extends ResultSpan {
  readonly kind: "result";
  readonly body: Buffer;
  readonly pool?: BorrowedBuffer | undefined;
}

/** How a routed call ended. */
export type Outcome =
  | Result
  | { readonly kind: "stream"; readonly stream: AnswerStream }
  /** A provider's own error, unchanged, and the category by which it was judged. */
  | { readonly kind: "error"; readonly raw: Buffer; readonly category: string }
  | { readonly kind: "fault"; readonly fault: Fault };

/** How a routed call ended, and where its result or error came from. */
export interface Answer {
  readonly outcome: Outcome;
  readonly source: AnswerSource;
}

/** A refusal of our own. */
export function faultAnswer(fault: Fault): Answer {
  return { outcome: { kind: "fault", fault }, source: NO_SOURCE };
}

/** Our refusal of a call whose range was refused by providers. */
export function refusedAnswer(fault: Fault): Answer {
  return { outcome: { kind: "fault", fault }, source: REFUSED_SOURCE };
}

/** What a provider answered to this very call. */
export function providerAnswer(outcome: Outcome, provider: Provider): Answer {
  return { outcome, source: { kind: "provider", provider } };
}

/** Where an outcome that was passed on with its route came from. */
export function sourceOf(
  { kind }: Outcome,
  route: { readonly source: AnswerSource } | null,
): AnswerSource {
  return kind === "fault" || route === null ? NO_SOURCE : route.source;
}

/** A result that is all of these bytes. */
export function wholeResult(body: Buffer): Outcome {
  return { kind: "result", body, start: 0, end: body.length, idAt: null };
}

/** A result that was written here, of what a provider told. */
export function resultOf(json: string): Outcome {
  return wholeResult(Buffer.from(json));
}

/** Whether the result is `null`. */
export function isNull(outcome: Outcome): boolean {
  return outcome.kind === "result" && isNullResult(outcome.body, outcome);
}

/** Gives borrowed memory back of an answer that nobody is told. */
export function recycle(outcome: Outcome): void {
  if (outcome.kind === "result") outcome.pool?.recycle(outcome.body);
}
