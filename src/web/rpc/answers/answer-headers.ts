// Builds the headers of an HTTP answer: ids, price, legacy headers, payment offers of a refusal and
// the receipt of a payment. Writes nothing.
import type { Fault } from "../../../core/faults/rpc-fault.ts";
import type { Admission } from "../../../hosted/admission/admission.ts";
import { type Headers, headersOf, retryAfter } from "../../http/respond.ts";
import type { RequestInfo } from "../authenticate.ts";
import type { Target } from "../target.ts";
import { addBilling, type Bill } from "./billing-headers.ts";
import { addLegacyBilling, isLegacy, type LegacyForms } from "./legacy-forms.ts";

/** What the headers are built from. */
export interface AnswerHeaderParts {
  readonly admission: Admission | null;
  readonly legacyForms: LegacyForms;
}

/** The request being answered. */
export interface AnsweredRequest extends RequestInfo {
  readonly requestId: string;
}

/** The values shown in headers; null = the header is left out. */
export interface AnswerFacts {
  /** Null = the target of the request is not known. */
  readonly target: Target | null;
  readonly fault: Fault | null;
  readonly bill: Bill | null;
  /** Payment offers as header names and values in turn. */
  readonly offers: readonly string[] | null;
}

export function answerHeaders(
  { admission, legacyForms }: AnswerHeaderParts,
  request: AnsweredRequest,
  { target, fault: why, bill, offers }: AnswerFacts,
): Headers {
  const headers = headersOf(request.requestId, request.header("x-request-id"));
  if (bill !== null && admission !== null) addBilling(headers, admission, bill);
  if (why !== null && why.retryAfterMs !== null)
    headers.push("Retry-After", retryAfter(why.retryAfterMs));
  if (offers !== null) headers.push(...offers, "Cache-Control", "no-store");
  if (isLegacy(target, request)) {
    legacyForms.announce(headers);
    addLegacyBilling(headers, admission, { target: target, bill });
  }
  return headers;
}
