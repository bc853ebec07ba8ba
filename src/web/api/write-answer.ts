// Writes the answers of the management API: bodies as JSON, refusals in its envelope, none of it to
// be stored.
import type { ServerResponse } from "node:http";
import type { ApiFault } from "../../core/faults/api-fault.ts";
import { PROBLEMS, problemDetails } from "../../payments/protocol-problems.ts";
import { type Headers, retryAfter, write } from "../http/respond.ts";
import { type PaymentRefusal, purchaseUrl } from "../payment/purchase-paywall.ts";

/** Writes an answer; null = no body. */
export function writeAnswer(
  response: ServerResponse,
  headers: Headers,
  status: number,
  body: unknown,
): void {
  headers.push("Cache-Control", "no-store");
  writeBody(response, headers, status, body);
}

/** An answer to a request that was paid for. */
export interface PaidAnswer {
  readonly status: number;
  readonly body: unknown;
  /** Names and values in turn. */
  readonly receipt: readonly string[];
}

/** Writes an answer with its receipt. */
export function writePaid(
  response: ServerResponse,
  headers: Headers,
  { status, body, receipt }: PaidAnswer,
): void {
  headers.push(...receipt, "Cache-Control", "private, no-store");
  writeBody(response, headers, status, body);
}

/** Writes a refusal; `baseUrl` leads to what explains its code. */
export function writeApiFault(
  response: ServerResponse,
  headers: Headers,
  why: ApiFault,
  baseUrl: string,
): void {
  addFault(headers, why);
  writeAnswer(response, headers, why.status, { error: errorOf(why, baseUrl) });
}

/** Writes why nothing was bought: the same envelope, with MPP's problem details beside it. */
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
  // MPP has no type for what is the matter with a purchase that was recorded.
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

/** A refusal as the management API tells it. */
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
