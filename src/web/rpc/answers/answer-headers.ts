// Headers of an HTTP answer: how a call was routed and served, what it cost and what is left, and
// what legacy forms add. Counts the use of each legacy form. Writes nothing.

import { usdText } from "../../../core/billing/price.ts";
import type { RateLimitStatus } from "../../../core/billing/rate-limit.ts";
import {
  LEGACY_FORM_NAMES,
  type LegacyFormName,
  legacyFormGone,
} from "../../../core/faults/legacy-form.ts";
import type { Fault } from "../../../core/faults/rpc-fault.ts";
import type { Admission } from "../../../hosted/admission/admission.ts";
import type { LegacyFormUsage } from "../../../hosted/legacy-form-usage.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Headers } from "../../http/respond.ts";
import type { Billing } from "../../payment/call-payment.ts";
import type { RequestInfo } from "../authenticate.ts";
import { legacyFormsOf, type Target } from "../target.ts";
import type { Evidence } from "./evidence.ts";

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
    const { limit } = last;
    if (limit !== null)
      addRateLimitStatus(headers, admission.rateLimitStatus(last.keyContext, limit.rateLimit));
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
  addRateLimitStatus(headers, admission.rateLimitStatus(keyContext, service.rateLimit));
}

/** Adds the `RateLimit` headers: the tokens that are left. */
export function addRateLimitStatus(
  headers: Headers,
  { name, burst, windowS, remaining, resetS }: RateLimitStatus,
): void {
  headers.push("RateLimit-Policy", `"${name}";q=${burst};w=${windowS}`);
  headers.push("RateLimit", `"${name}";r=${remaining};t=${resetS}`);
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

/** Deprecation date of all forms: 2026-01-01. RFC 9745. */
const DEPRECATION = "@1767225600";
const LINK = '</docs/api#older-forms>; rel="deprecation"; type="text/markdown"';
const DAY_MS = 86_400_000;
const SERVED_DAYS = 31;
const EXPOSED =
  "Deprecation, Sunset, Link, x-svc-rate-limit-limit, x-svc-rate-limit-remaining, " +
  "x-svc-rate-limit-reset";

/** Counts and announces legacy forms. */
export class LegacyForms {
  readonly #runtime: Pick<Runtime, "wallMs">;
  readonly #record: LegacyFormUsage | null;
  readonly #counts = new Map<LegacyFormName, number>(LEGACY_FORM_NAMES.map((name) => [name, 0]));

  /**
   * Creates the counters. `record` null = every form is served, and its use is counted in memory
   * only.
   */
  constructor(runtime: Pick<Runtime, "wallMs">, record: LegacyFormUsage | null) {
    this.#runtime = runtime;
    this.#record = record;
  }

  /**
   * Counts a request in these forms. Returns its refusal if one of them was switched off, else
   * null.
   */
  used(forms: readonly LegacyFormName[]): Fault | null {
    const off = forms.find((name) => this.#record?.off.has(name));
    if (off !== undefined) return legacyFormGone(off);
    for (const name of forms) {
      this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
      this.#record?.saw(name);
    }
    return null;
  }

  /** Number of requests served, by form. */
  counts(): ReadonlyMap<LegacyFormName, number> {
    return this.#counts;
  }

  /** Adds the headers that every answer to a legacy form carries. */
  announce(headers: Headers): void {
    // A form is switched off no sooner than 30 days after its last request, which is this one.
    // RFC 8594.
    const sunset = new Date(
      (Math.floor(this.#runtime.wallMs() / DAY_MS) + SERVED_DAYS) * DAY_MS,
    ).toUTCString();
    headers.push("Deprecation", DEPRECATION, "Sunset", sunset, "Link", LINK);
    headers.push("Access-Control-Expose-Headers", EXPOSED);
  }
}

/** Whether a request uses a legacy form; examined only if the request has no target (null). */
export function isLegacy(target: Target | null, request: Pick<RequestInfo, "directives">): boolean {
  if (target !== null) return target.legacyForms !== null;
  const { legacyForms, url } = request.directives;
  return legacyForms !== undefined || legacyFormsOf(url).length > 0;
}

const CENT_N = 10_000_000;
const LOW_SHARE = 0.1;

/**
 * Adds the headers of version 2. `bill` null = a caller without a key, or a refusal before
 * admission.
 */
export function addLegacyBilling(
  headers: Headers,
  admission: Admission | null,
  target: Target | null,
  bill: Bill | null,
): void {
  const last = bill?.last ?? null;
  const grant = last !== null && "grant" in last ? last.grant : null;
  const profile = grant?.service.profile ?? target?.profile.slug;
  const isDowngraded = grant !== null && grant.service.fallback !== null;
  if (profile !== undefined)
    headers.push("x-svc-profile", profile, "x-svc-downgraded", String(isDowngraded));
  if (last === null || admission === null) return;
  const [keyContext, rateLimit] =
    "grant" in last
      ? [last.grant.keyContext, last.grant.service.rateLimit]
      : [last.keyContext, last.limit?.rateLimit ?? null];
  if (
    grant !== null &&
    isLow(admission.balanceN(grant), grant.keyContext.account.paid?.fundedN ?? 0)
  )
    headers.push("x-svc-balance-warning", "low");
  if (rateLimit === null) return;
  const { burst, remaining, resetS } = admission.rateLimitStatus(keyContext, rateLimit);
  headers.push("x-svc-rate-limit-limit", String(burst));
  headers.push("x-svc-rate-limit-remaining", String(remaining));
  headers.push("x-svc-rate-limit-reset", String(resetS));
}

/**
 * Whether the balance is below a cent, or below a tenth of everything credited to an account that
 * paid.
 */
function isLow(balanceN: number | null, fundedN: number): boolean {
  return balanceN !== null && balanceN < Math.max(CENT_N, fundedN * LOW_SHARE);
}
