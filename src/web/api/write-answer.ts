// Writes the answers of the management API: JSON bodies, refusals in their envelope, and
// `Cache-Control: no-store` on all of them.
import type { ServerResponse } from "node:http";
import type { ApiFault } from "../../core/faults/api-fault.ts";
import { PROBLEMS, problemDetails } from "../../payments/protocol-problems.ts";
import { beginEvents, type Headers, retryAfter, write } from "../http/respond.ts";
import { type PaymentRefusal, purchaseUrl } from "../payment/purchase-paywall.ts";

/** Writes an answer; `body` null = no body. */
export function writeAnswer(
  response: ServerResponse,
  headers: Headers,
  status: number,
  body: unknown,
): void {
  headers.push("Cache-Control", "no-store");
  writeBody(response, headers, status, body);
}

/** Begins an event stream, which `write` continues; a HEAD request gets its head alone. */
export function writeStream(
  response: ServerResponse,
  headers: Headers,
  write: (response: ServerResponse, isStillAllowed: () => Promise<boolean>) => void,
): void {
  headers.push("Cache-Control", "no-store", "X-Accel-Buffering", "no");
  if (!beginEvents(response, headers)) return;
  if (response.req.method === "HEAD") response.end();
  else write(response, NEVER_CHECKED);
}

/** The one who serves the operation checks the credential. */
const NEVER_CHECKED = (): Promise<boolean> => Promise.resolve(true);

/** The answer to a paid request. */
export interface PaidAnswer {
  readonly status: number;
  readonly body: unknown;
  /** Header names and values in turn. */
  readonly receipt: readonly string[];
}

/** Writes the answer to a paid request with its receipt. */
export function writePaid(
  response: ServerResponse,
  headers: Headers,
  { status, body, receipt }: PaidAnswer,
): void {
  headers.push(...receipt, "Cache-Control", "private, no-store");
  writeBody(response, headers, status, body);
}

/** Writes a refusal; its code links to its explanation under `baseUrl`. */
export function writeApiFault(
  response: ServerResponse,
  headers: Headers,
  why: ApiFault,
  baseUrl: string,
): void {
  addFault(headers, why);
  writeAnswer(response, headers, why.status, { error: errorOf(why, baseUrl) });
}

/** Writes the refusal of a payment: the usual envelope plus MPP problem details. */
export function writePaymentRefusal(
  response: ServerResponse,
  headers: Headers,
  refusal: PaymentRefusal,
  baseUrl: string,
): void {
  const { fault, purchaseId, problem } = refusal;
  addFault(headers, fault);
  headers.push(...refusal.headers);
  const purchase =
    purchaseId === null
      ? {}
      : { purchase_id: purchaseId, status_url: purchaseUrl(baseUrl, purchaseId) };
  // MPP defines no problem type for purchases that are recorded already.
  const details = Object.hasOwn(PROBLEMS, problem)
    ? { ...problemDetails(problem), status: fault.status, detail: fault.message }
    : {};
  writeAnswer(response, headers, fault.status, {
    ...details,
    error: { ...errorOf(fault, baseUrl), ...purchase },
  });
}

function writeBody(
  response: ServerResponse,
  headers: Headers,
  status: number,
  body: unknown,
): void {
  write(response, status, headers, body === null ? null : [Buffer.from(JSON.stringify(body))]);
}

function addFault(headers: Headers, why: ApiFault): void {
  if (why.retryAfterMs !== null) headers.push("Retry-After", retryAfter(why.retryAfterMs));
  if (why.code === "unauthorized") headers.push("WWW-Authenticate", 'Bearer realm="svc"');
}

/** A refusal as the error object of the management API. */
function errorOf({ code, message, nextAction, details }: ApiFault, baseUrl: string): object {
  const optionalDetails = details.length === 0 ? {} : { details };
  return {
    code,
    message,
    next_action: nextAction,
    docs_url: `${baseUrl}/docs/errors#${code}`,
    ...optionalDetails,
  };
}
