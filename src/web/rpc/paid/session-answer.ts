// Builds the answers to requests paid with a voucher: status, body, and headers with the price, the
// deposit and the receipt. Charges nothing.
import { nanoOf } from "../../../core/billing/payment.ts";
import { usdText } from "../../../core/billing/price.ts";
import type { Fault } from "../../../core/faults/rpc-fault.ts";
import type {
  CallBill,
  Managed,
  RecordedAnswer,
  SessionRefusal,
} from "../../../payments/session/sessions.ts";
import { renderFault } from "../../http/render-fault.ts";
import type { Headers } from "../../http/respond.ts";
import { addRateLimitStatus } from "../answers/answer-headers.ts";

/** A whole answer. */
export interface SessionAnswer {
  readonly status: number;
  /** Null = the request was served. */
  readonly fault: Fault | null;
  readonly headers: Headers;
  /** Null = every call was a notification. */
  readonly body: Buffer | null;
}

const NO_CONTENT = 204;
const PAYMENT_REQUIRED = 402;
/** From this status on, the request was not served. */
const REFUSED = 300;

/** The answer to charged calls. */
export function chargedAnswer(answer: SessionAnswer, bill: CallBill): SessionAnswer {
  return { ...answer, headers: [...answer.headers, ...headersOf(bill, answer.status)] };
}

/** The answer to calls that cost nothing. */
export function freeAnswer(answer: SessionAnswer, cu: number): SessionAnswer {
  return { ...answer, headers: [...answer.headers, "x-svc-cu", String(cu), "x-svc-usd", "0"] };
}

/** The recorded answer to a request that was already charged. */
export function recordedAnswer({ status, body: text, bill }: RecordedAnswer): SessionAnswer {
  const body = status === NO_CONTENT ? null : Buffer.from(text);
  return { status, fault: null, headers: headersOf(bill, status), body };
}

/** The answer to a credential that came without a call. */
export function managedAnswer({ headers }: Managed): SessionAnswer {
  const all = [...headers, "Cache-Control", "private"];
  return { status: NO_CONTENT, fault: null, headers: all, body: null };
}

/** The answer to a refused request. `id` is the id of the call as JSON text. */
export function refusedAnswer(
  { fault: why, headers }: Pick<SessionRefusal, "fault" | "headers">,
  id: string,
): SessionAnswer {
  const noStore = why.status === PAYMENT_REQUIRED ? ["Cache-Control", "no-store"] : [];
  const body = renderFault(why, id);
  return { status: why.status, fault: why, headers: [...headers, ...noStore], body };
}

function headersOf(
  { cu, chargedUnits, leftUnits, rateLimitStatus, headers: receipt }: CallBill,
  status: number,
): Headers {
  const headers = ["x-svc-access", "premium", "x-svc-cu", String(cu)];
  headers.push("x-svc-usd", usdText(nanoOf(chargedUnits)));
  headers.push("x-svc-balance-usd", usdText(nanoOf(leftUnits)));
  addRateLimitStatus(headers, rateLimitStatus);
  // A client would take a receipt as proof that its call was served.
  if (status < REFUSED) headers.push(...receipt);
  headers.push("Cache-Control", "private");
  return headers;
}
