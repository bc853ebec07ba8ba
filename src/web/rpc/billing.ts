// What a caller is told beside the answer: how it was routed; with a key how it was served, what it cost, what is left. Header names and syntax only.
import type { Bucket } from "../../core/access.ts";
import type { Evidence } from "../../core/evidence.ts";
import { usdText } from "../../core/price.ts";
import type { Quota } from "../../core/quota.ts";
import type { Billing, Gate, Refusal } from "../../hosted/gate.ts";
import type { Headers } from "../respond.ts";

/** The sum over the calls of one request. */
export interface Bill {
  /** Of the last call that was given leave, or else of the last one. */
  last: Billing;
  cu: number;
  chargeN: number;
}

/** Adds a call to the bill of its request; null = it is the first. */
export function addTo(bill: Bill | null, it: Billing): Bill {
  const sum = bill ?? { last: it, cu: 0, chargeN: 0 };
  if ("grant" in it || !("grant" in sum.last)) sum.last = it;
  if ("grant" in it) {
    sum.cu += it.grant.cu;
    sum.chargeN += it.chargeN;
  }
  return sum;
}

/** Adds the headers of a request that came with a key. Sources: service specification, "Response headers"; draft-ietf-httpapi-ratelimit-headers-10. */
export function addBilling(headers: Headers, gate: Gate, { last, cu, chargeN }: Bill): void {
  if (!("grant" in last)) {
    if (last.bucket !== null) addQuota(headers, gate, last, last.bucket);
    return;
  }
  const { holder, service } = last.grant;
  headers.push("x-svc-access", service.access);
  if (service.fallback !== null) headers.push("x-svc-fallback", service.fallback);
  if (holder.payer.kind === "anonymous") headers.push("x-svc-cu", String(cu), "x-svc-usd", usdText(chargeN));
  const balanceN = gate.balanceN(last.grant);
  if (balanceN !== null) headers.push("x-svc-balance-usd", usdText(balanceN));
  addQuota(headers, gate, last.grant, service.bucket);
}

function addQuota(headers: Headers, gate: Gate, { holder }: Pick<Refusal, "holder">, bucket: Bucket): void {
  addQuotaOf(headers, gate.quota(holder, bucket));
}

/** Adds what a bucket still lets through. */
export function addQuotaOf(headers: Headers, { name, burst, windowS, remaining, resetS }: Quota): void {
  headers.push("RateLimit-Policy", `"${name}";q=${burst};w=${windowS}`, "RateLimit", `"${name}";r=${remaining};t=${resetS}`);
}

const LONGEST_META_HEADER_BYTES = 4_096;

/** Adds evidence as `x-svc-meta`: unpadded base64url; left out when it would be too long. */
export function addMeta(headers: Headers, meta: Evidence): void {
  const text = Buffer.from(JSON.stringify(meta)).toString("base64url");
  if (text.length <= LONGEST_META_HEADER_BYTES) headers.push("x-svc-meta", text);
}
