// Reads the payment credential in the headers of a request, and computes the mark that binds a
// payment to its request. Validates no payment; knows no operation.
import { createHash, hash } from "node:crypto";
import type { PaymentHeaders, RequestMark } from "../../payments/payments.ts";

/** Headers by lower-case name, each with all values that were sent. */
export type HeaderValues = Readonly<Record<string, readonly string[] | undefined>>;

/** The payment credential of a request, or why it is ambiguous. */
export type GivenPayment =
  | { readonly kind: "payment"; readonly given: PaymentHeaders }
  | { readonly kind: "unclear"; readonly message: string; readonly nextAction: string };

/** Longest credential that is accepted. */
const MAX_CHARS = 16_384;
const PAYMENT = /^payment(?:[ \t]+(.*))?$/i;

/**
 * The payment credential in `Authorization` (alone or in a list), `Payment-Authorization` or
 * `PAYMENT-SIGNATURE`; null = none.
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
      // The same credential in two headers counts once.
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

/** An `Authorization` value without its payment credentials; undefined = nothing else is left. */
export function withoutPayment(authorization: string | undefined): string | undefined {
  if (authorization === undefined || !/payment/i.test(authorization)) return authorization;
  const rest = listed(authorization).filter((part) => !PAYMENT.test(part));
  return rest.length === 0 ? undefined : rest.join(", ");
}

/** The parts of a request that a payment is bound to. */
export interface MarkedRequest {
  readonly method: string;
  /** The URL as sent; its query is ignored. */
  readonly url: string;
  readonly body: Buffer;
  /** Digest of the API key that the payment is for; empty = the path names the beneficiary. */
  readonly credential: string;
  /** Base URL of the service as its callers use it. */
  readonly baseUrl: string;
}

/** The mark that binds a payment to this request. */
export function requestMark(request: MarkedRequest): RequestMark {
  const { url, body, baseUrl } = request;
  return {
    fingerprint: fingerprintOf(request),
    digest: `sha-256=${hash("sha256", body, "base64")}`,
    resourceUrl: baseUrl + withoutKey(pathOf(url)),
  };
}

/** A hash that is equal for equal requests and different for all others. */
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

/** The path without secrets: the segment of a key is removed even if it holds no valid key. */
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
