// Headers that describe how an answer was routed and, for callers with a key, how it was served,
// what it cost and what is left. Defines header names and syntax only.
import type { RateLimit } from "../../../core/billing/access.ts";
import { usdText } from "../../../core/billing/price.ts";
import type { RateLimitStatus } from "../../../core/billing/rate-limit.ts";
import type { Evidence } from "../../../core/routing/evidence.ts";
import type { Admission, Refusal } from "../../../hosted/admission/admission.ts";
import type { Headers } from "../../http/respond.ts";
import type { Billing } from "../../payment/call-payment.ts";

/** The summed charges of one request. */
export interface Bill {
  /** The charge of the last admitted call; if none was admitted, the last refusal. */
  last: Billing;
  cu: number;
  chargeN: number;
  /** A call was charged more than the plain price of its method. */
  isAbovePlain: boolean;
}

/** Adds the charge of a call to the bill of its request; `bill` null = the first call. */
export function addTo(bill: Bill | null, billing: Billing): Bill {
  const sum = bill ?? { last: billing, cu: 0, chargeN: 0, isAbovePlain: false };
  if ("grant" in billing || !("grant" in sum.last)) sum.last = billing;
  if ("grant" in billing) {
    sum.cu += billing.cu;
    sum.chargeN += billing.chargeN;
    sum.isAbovePlain ||= billing.isAbovePlain;
  }
  return sum;
}

/**
 * Adds the headers for a request with a key. Specified in the service specification, "Response
 * headers", and draft-ietf-httpapi-ratelimit-headers-10.
 */
export function addBilling(
  headers: Headers,
  admission: Admission,
  { last, cu, chargeN, isAbovePlain }: Bill,
): void {
  if (!("grant" in last)) {
    if (last.limit !== null) addRateLimit(headers, admission, last, last.limit.rateLimit);
    return;
  }
  const { keyContext, service } = last.grant;
  headers.push("x-svc-access", service.access);
  if (service.fallback !== null) headers.push("x-svc-fallback", service.fallback);
  const isAnonymous = keyContext.account.kind === "anonymous";
  if (isAnonymous || isAbovePlain) headers.push("x-svc-cu", String(cu));
  if (isAnonymous) headers.push("x-svc-usd", usdText(chargeN));
  const balanceN = admission.balanceN(last.grant);
  if (balanceN !== null) headers.push("x-svc-balance-usd", usdText(balanceN));
  addRateLimit(headers, admission, last.grant, service.rateLimit);
}

function addRateLimit(
  headers: Headers,
  admission: Admission,
  { keyContext }: Pick<Refusal, "keyContext">,
  rateLimit: RateLimit,
): void {
  addRateLimitStatus(headers, admission.rateLimitStatus(keyContext, rateLimit));
}

/** Adds the `RateLimit` headers: the tokens that are left. */
export function addRateLimitStatus(
  headers: Headers,
  { name, burst, windowS, remaining, resetS }: RateLimitStatus,
): void {
  headers.push(
    "RateLimit-Policy",
    `"${name}";q=${burst};w=${windowS}`,
    "RateLimit",
    `"${name}";r=${remaining};t=${resetS}`,
  );
}

const LONGEST_META_HEADER_BYTES = 4_096;

/**
 * Adds evidence as `x-svc-meta`: unpadded base64url; left out when it would be too long. The node
 * has a header of its own.
 */
export function addMeta(headers: Headers, meta: Evidence): void {
  addNode(headers, meta);
  const text = Buffer.from(JSON.stringify(meta)).toString("base64url");
  if (text.length <= LONGEST_META_HEADER_BYTES) headers.push("x-svc-meta", text);
}

/** Adds the node that served a call whose caller asked for evidence. */
export function addNode(headers: Headers, { node }: Evidence): void {
  if (node !== undefined) headers.push("x-svc-node", node.id);
}
