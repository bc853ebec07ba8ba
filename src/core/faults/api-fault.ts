// The error table of the management API: every refusal of the HTTP endpoints other than JSON-RPC,
// with status and advice. Knows no transport.

/** One row of the table. `retryable` errors carry `Retry-After`. */
export interface ApiFaultRow {
  readonly status: number;
  readonly retryable: boolean;
  /** When it arises. */
  readonly meaning: string;
  /** What the caller should do next, unless the refusal has more specific advice. */
  readonly nextAction: string;
}

/** Whether a request that was refused with this status may succeed when it is sent again. */
export function isRetryable(status: number): boolean {
  return status >= 500 || status === 429 || status === 408;
}

const row = (status: number, meaning: string, nextAction: string): ApiFaultRow => ({
  status,
  retryable: isRetryable(status),
  meaning,
  nextAction,
});

// Sources: the service specification's table "Management API errors"; and what HTTP itself needs.
const ROWS = {
  invalid_request: row(
    400,
    "The request is not valid HTTP with a JSON object in UTF-8.",
    "send one JSON object in UTF-8, each field once",
  ),
  unauthorized: row(
    401,
    "The credential is missing, unknown, expired or revoked.",
    "send the management token as Authorization: Bearer <token>",
  ),
  payment_invalid: row(
    402,
    "The payment is not right, and nothing was taken.",
    "repeat without payment for a fresh challenge, sign it, and send the same body with the " +
      "signature",
  ),
  payment_required: row(
    402,
    "The operation costs money, and the request carries no payment.",
    "sign one challenge and repeat with PAYMENT-SIGNATURE or Authorization: Payment",
  ),
  forbidden: row(
    403,
    "The credential is valid and does not allow this.",
    "use a token that allows it",
  ),
  custom_access_required: row(
    403,
    "The account has no Custom access.",
    "buy custom-access days or subscribe, then retry",
  ),
  not_found: row(
    404,
    "Nothing has this id or path, or it is outside of what the credential may see.",
    "check the id",
  ),
  method_not_allowed: row(
    405,
    "The path does not serve this method.",
    "use a method that the Allow header names",
  ),
  account_merged: row(
    409,
    "The account was merged into another one.",
    "create the profile from the account it was merged into",
  ),
  already_claimed: row(
    409,
    "The account has become part of another one.",
    "manage with a token from the owning account",
  ),
  already_subscribed: row(
    409,
    "The account has Custom access already, without buying days.",
    "use Custom profiles directly",
  ),
  beneficiary_conflict: row(
    409,
    "The money has arrived, and what it was for cannot be given.",
    "do not pay again; keep purchase ID and signed payment, report via feedback, retry the " +
      "same request",
  ),
  key_limit: row(
    409,
    "The account has as many keys as it may have.",
    "delete an unused key, then retry",
  ),
  key_revoked: row(409, "The key has been deleted.", "create a new key"),
  payment_conflict: row(
    409,
    "This payment was sent before, with another request.",
    "check the first payment at its status_url; never sign a second while one is pending",
  ),
  payment_failed: row(
    409,
    "The chain did not carry the payment out; nothing was taken.",
    "repeat without payment for a fresh challenge",
  ),
  profile_limit: row(
    409,
    "The account has as many profiles as it may have.",
    "delete an unused profile or subscribe to a larger plan",
  ),
  profile_suspended: row(
    409,
    "The Custom access of the account has ended.",
    "restore Custom access, or delete the profile and reapply",
  ),
  revision_conflict: row(
    409,
    "The profile has another revision than `If-Match` names.",
    "re-read the profile, then reapply",
  ),
  gone: row(
    410,
    "The route is retired.",
    "use the account API of /openapi.json; existing keys keep working",
  ),
  body_too_large: row(413, "The body is larger than this API reads.", "send a smaller body"),
  unsupported_media_type: row(
    415,
    "The body is compressed or encoded.",
    "send the body as plain JSON, without Content-Encoding",
  ),
  amount_out_of_range: row(
    422,
    "The amount or the days are outside of what one purchase may have.",
    "stay within the per-purchase or day range in /agent.json",
  ),
  invalid_config: row(
    422,
    "The document is not right; `details` names the path of each wrong field.",
    "correct each field path in details",
  ),
  invalid_field: row(
    422,
    "A field has a value that is not allowed; `details` names each.",
    "correct each field in details",
  ),
  provider_check_failed: row(
    422,
    "A provider did not answer as one of its chain does.",
    "fix or remove the provider URL",
  ),
  unknown_chain: row(
    422,
    "No chain of this service has this name or id; `details` names each.",
    "use a chain name or decimal ID from /agent.json",
  ),
  unknown_field: row(
    422,
    "A field does not exist; `details` names each.",
    "remove each field in details",
  ),
  rate_limited: row(429, "Too many of these requests in a short time.", "wait for Retry-After"),
  internal: row(
    500,
    "A fault of the service.",
    "retry; if it happens again, report the x-svc-request-id of the answer",
  ),
  payment_pending: row(
    503,
    "The payment is recorded and its chain has not settled it yet.",
    "do not pay again; it completes in the background; check status_url",
  ),
  unavailable: row(503, "The service cannot do this now.", "retry after Retry-After"),
} as const satisfies Record<string, ApiFaultRow>;

/** The `error.code` of a refusal. */
export type ApiFaultCode = keyof typeof ROWS;

/** The table, for documents. */
export const API_FAULTS: Readonly<Record<ApiFaultCode, ApiFaultRow>> = ROWS;

/** A refusal of the management API. */
export interface ApiFault<Code extends ApiFaultCode = ApiFaultCode> {
  readonly kind: "api_fault";
  readonly code: Code;
  readonly status: number;
  readonly message: string;
  readonly nextAction: string;
  /** Milliseconds to wait before a retry; null = waiting does not help. */
  readonly retryAfterMs: number | null;
  /** Paths of the invalid fields; empty = it is not about fields. */
  readonly details: readonly string[];
}

/** What a refusal adds to its row. */
export interface ApiFaultDetails {
  readonly nextAction?: string;
  readonly retryAfterMs?: number;
  readonly details?: readonly string[];
}

/** Builds a refusal from its row, with a message and details of its own. */
export function apiFault<Code extends ApiFaultCode>(
  code: Code,
  message: string,
  overrides: ApiFaultDetails = {},
): ApiFault<Code> {
  const entry: ApiFaultRow = ROWS[code];
  return {
    kind: "api_fault",
    code,
    status: entry.status,
    message,
    nextAction: overrides.nextAction ?? entry.nextAction,
    retryAfterMs: entry.retryable ? (overrides.retryAfterMs ?? DEFAULT_RETRY_MS) : null,
    details: overrides.details ?? [],
  };
}

/** The refusal of a caller whose limit has room again in this time; null = it has room now. */
export function limited(retryAfterMs: number, message: string): ApiFault<"rate_limited"> | null {
  return retryAfterMs > 0 ? apiFault("rate_limited", message, { retryAfterMs }) : null;
}

const DEFAULT_RETRY_MS = 1_000;
