// Reads the payment in the headers of a request, and makes the mark that binds a payment to its
// request. Checks nothing of a payment; knows no operation.
import { createHash, hash } from "node:crypto";
import type { PaymentHeaders, RequestMark } from "../../payments/payments.ts";

/** Headers by lower-case name, each with every value that was sent. */
export type HeaderValues = Readonly<Record<string, readonly string[] | undefined>>;

/** The payment of a request, or why it is unclear. */
export type GivenPayment =
  | { readonly kind: "payment"; readonly given: PaymentHeaders }
  | { readonly kind: "unclear"; readonly message: string; readonly nextAction: string };

/** Longest credential that is read. */
const MAX_CHARS = 16_384;
const PAYMENT = /^payment(?:[ \t]+(.*))?$/i;

/**
 * The payment of a request: in `Authorization` (alone or in a list), `Payment-Authorization` or
 * `PAYMENT-SIGNATURE`; null = there is none.
 */
export function paymentOf(headers: HeaderValues): GivenPayment | null {
  const found = new Map<string, PaymentHeaders>();
  for (const name of ["authorization", "payment-authorization", "payment-signature"]) {
    const parts = (headers[name] ?? []).flatMap(listed);
    for (const part of parts) {
      const scheme = PAYMENT.exec(part);
      if (scheme === null && name === "authorization") continue;
      const text = scheme === null ? part : (scheme[1] ?? "").trim();
      const isMpp = scheme !== null || name === "payment-authorization";
      // The same credential in two places is one.
      if (!found.has(text))
        found.set(text, {
          protocol: isMpp ? "mpp" : "x402",
          text: isMpp ? `Payment ${text}` : text,
        });
    }
  }
  const [given] = found.values();
  if (given === undefined) return null;
  if (found.size > 1) return unclear("the request carries several payments");
  if (given.text.length > MAX_CHARS)
    return unclear(`the payment is longer than ${MAX_CHARS} characters`);
  return { kind: "payment", given };
}

function unclear(message: string): GivenPayment {
  return { kind: "unclear", message, nextAction: "send one payment, in one header" };
}

/** An `Authorization` without the payments in it; undefined = nothing else is in it. */
export function withoutPayment(authorization: string | undefined): string | undefined {
  if (authorization === undefined || !/payment/i.test(authorization)) return authorization;
  const rest = listed(authorization).filter((part) => !PAYMENT.test(part));
  return rest.length === 0 ? undefined : rest.join(", ");
}

/** The parts of a request that a payment is bound to. */
export interface MarkedRequest {
  readonly method: string;
  /** As it was sent; its query counts for nothing. */
  readonly url: string;
  readonly body: Buffer;
  /** Digest of the API key that the payment is for; empty = the path says what it is for. */
  readonly credential: string;
  /** Base URL of the service for its callers. */
  readonly baseUrl: string;
}

/** What a payment for this request is bound to. */
export function requestMark(request: MarkedRequest): RequestMark {
  const { url, body, baseUrl } = request;
  return {
    fingerprint: fingerprintOf(request),
    digest: `sha-256=${hash("sha256", body, "base64")}`,
    resourceUrl: baseUrl + withoutKey(pathOf(url)),
  };
}

/** The same text for the same request, and another one for any other. */
export function fingerprintOf({
  method,
  url,
  body,
  credential,
}: Omit<MarkedRequest, "baseUrl">): string {
  return createHash("sha256")
    .update(`${method}\n${pathOf(url)}\n`)
    .update(credential, "latin1")
    .update("\n")
    .update(body)
    .digest("base64url");
}

function pathOf(url: string): string {
  const [path = ""] = url.split("?", 1);
  return path;
}

/** A path without secrets: anything in the place of a key is left out, also if it is no key. */
function withoutKey(path: string): string {
  return path
    .replace(/^(\/rpc\/k\/|\/api\/v1\/agent\/keys\/)[^/]*/, "$1redacted")
    .replace(/svc_[a-z]{2}_\w+/g, "redacted");
}

function listed(value: string): readonly string[] {
  return value
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}
