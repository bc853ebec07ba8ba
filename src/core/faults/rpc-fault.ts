// The error catalog of JSON-RPC: every refusal that the service originates, with its codes, status
// and advice. Knows no transport: `web` renders refusals.

import { API_FAULTS, type ApiFaultCode, isRetryable } from "./api-fault.ts";

/** One row of the catalog. `retryable` errors carry `Retry-After`. */
export interface FaultRow {
  /** JSON-RPC error code. */
  readonly rpcCode: number;
  /** HTTP status when it answers a whole request; 200 for errors that arise while routing. */
  readonly status: number;
  readonly retryable: boolean;
  readonly nextAction: string;
}

const row = (rpcCode: number, status: number, nextAction: string): FaultRow => ({
  rpcCode,
  status,
  retryable: isRetryable(status),
  nextAction,
});

/** A payment at a call is refused as one at the management API. */
const paymentRow = (code: ApiFaultCode): FaultRow =>
  row(-32000, API_FAULTS[code].status, API_FAULTS[code].nextAction);

const EXAMPLE = '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}';

// Sources: the service specification's tables "JSON-RPC errors" and "Headers", its management table
// for payments, and JSON-RPC 2.0 for parse errors.
const ROWS = {
  parse_error: row(-32700, 400, "send one valid JSON document in UTF-8"),
  invalid_request: row(-32600, 400, `send ${EXAMPLE}`),
  body_too_large: row(-32600, 413, "send a smaller body, or fewer items in a batch"),
  method_not_allowed: row(-32600, 405, `send a POST with the body ${EXAMPLE}`),
  unsupported_media_type: row(-32600, 415, "send the body as plain JSON, without content encoding"),
  request_loop: row(
    -32000,
    400,
    "remove the provider that leads back here from the Custom profile",
  ),
  upgrade_required: row(
    -32600,
    426,
    "open this URL as a WebSocket (ws:// or wss://), or POST to the same path without /ws",
  ),
  request_timeout: row(-32600, 408, "send the whole request without pausing"),
  not_found: row(-32600, 404, "use /rpc/{chain}; GET /api/chains lists the chains"),
  gone: row(-32000, 410, "use a current form of the request, as /docs/api lists them"),
  method_blocked: row(
    -32601,
    200,
    "sign in the wallet and send the result with eth_sendRawTransaction",
  ),
  websocket_only: row(-32601, 200, "open a WebSocket at data.websocket_url"),
  unknown_chain: row(-32602, 400, "choose a chain from /api/chains"),
  unknown_profile: row(-32602, 404, "use a known profile slug"),
  invalid_field: row(
    -32602,
    400,
    "use the profile path form /rpc/profile/{slug}/{strategy}/{chain} or /rpc/{chain}",
  ),
  unauthorized: row(-32001, 401, "supply an enabled RPC key"),
  key_revoked: row(-32001, 401, "use the current key"),
  forbidden: row(-32001, 403, "use an allowed profile"),
  unavailable: row(-32002, 503, "retry shortly"),
  behind: { ...row(-32002, 200, "send the same call again after retry_after_ms"), retryable: true },
  not_prepared: row(-32002, 503, "retry shortly"),
  profile_config_unavailable: row(
    -32002,
    503,
    "retry shortly; if it stays so, send the profile again with PUT /api/v1/profiles/{slug}",
  ),
  // Not -32003: viem tells that as "Transaction creation failed", whatever the message says.
  balance_exhausted: row(-32040, 402, "credit the account or restore its allowance"),
  payment_required: row(
    -32000,
    402,
    "sign one challenge of WWW-Authenticate and repeat with Authorization: Payment",
  ),
  payment_invalid: paymentRow("payment_invalid"),
  payment_conflict: paymentRow("payment_conflict"),
  payment_failed: paymentRow("payment_failed"),
  beneficiary_conflict: paymentRow("beneficiary_conflict"),
  payment_pending: paymentRow("payment_pending"),
  rate_limit_exceeded: row(-32005, 429, "retry after the indicated delay"),
  log_range_limit: row(
    -32005,
    200,
    "split the block range, into parts of data.max_blocks where that is given, and retry",
  ),
  subscription_not_found: row(
    -32000,
    200,
    "use an id that eth_subscribe returned on this connection",
  ),
  filter_not_found: row(
    -32000,
    200,
    "create a new filter: one ends after five minutes without a poll, and when too much of it " +
      "is unread",
  ),
  filter_unsupported: row(
    -32601,
    200,
    "watch blocks or logs, or choose a chain or profile with subscriptions to pending transactions",
  ),
  outcome_unknown: row(
    -32000,
    200,
    "it may have been executed: look for its effect (for a transaction, by hash) before " +
      "sending it again",
  ),
  internal: row(-32000, 500, "retry; if it happens again, report the request id"),
} as const satisfies Record<string, FaultRow>;

/** The `data.code` of a service error. */
export type FaultCode = keyof typeof ROWS;

/** The catalog, for documents. */
export const FAULTS: Readonly<Record<FaultCode, FaultRow>> = ROWS;

/** A refusal the service originates. */
export interface Fault {
  readonly kind: "fault";
  readonly code: FaultCode;
  readonly rpcCode: number;
  readonly status: number;
  readonly retryable: boolean;
  readonly nextAction: string;
  readonly message: string;
  /** Milliseconds to wait before a retry; null = waiting does not help, or the time is unknown. */
  readonly retryAfterMs: number | null;
  /** Further members of `error.data`. */
  readonly details: Readonly<Record<string, unknown>>;
}

/** Builds a fault from its row, with a message and details of its own. */
export function fault(
  code: FaultCode,
  message: string,
  overrides: {
    readonly status?: number;
    readonly retryable?: boolean;
    readonly retryAfterMs?: number;
    readonly nextAction?: string;
    readonly details?: Readonly<Record<string, unknown>>;
  } = {},
): Fault {
  const entry = ROWS[code];
  const retryable = overrides.retryable ?? entry.retryable;
  return {
    kind: "fault",
    code,
    rpcCode: entry.rpcCode,
    status: overrides.status ?? entry.status,
    retryable,
    nextAction: overrides.nextAction ?? entry.nextAction,
    message,
    retryAfterMs: retryable ? (overrides.retryAfterMs ?? DEFAULT_RETRY_MS) : null,
    details: overrides.details ?? {},
  };
}

/** The JSON of a fault's `error` member. */
export function faultError(refusal: Fault): string {
  const data = {
    code: refusal.code,
    next_action: refusal.nextAction,
    retryable: refusal.retryable,
    ...(refusal.retryAfterMs === null ? {} : { retry_after_ms: refusal.retryAfterMs }),
    ...refusal.details,
  };
  return JSON.stringify({ code: refusal.rpcCode, message: refusal.message, data });
}

const DEFAULT_RETRY_MS = 1_000;
