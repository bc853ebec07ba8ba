// The error catalog against the published tables: numeric code, HTTP status, whether to retry, and
// advice for every refusal.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type FaultCode, fault, faultError } from "../../../src/core/faults/rpc-fault.ts";

type Row = readonly [rpcCode: number, status: number, retryable: boolean];

/**
 * What the specification says of each code; those it does not name follow JSON-RPC 2.0 and HTTP.
 */
const SPECIFIED: Readonly<Record<FaultCode, Row>> = {
  parse_error: [-32700, 400, false],
  invalid_request: [-32600, 400, false],
  body_too_large: [-32600, 413, false],
  method_not_allowed: [-32600, 405, false],
  unsupported_media_type: [-32600, 415, false],
  request_loop: [-32000, 400, false],
  upgrade_required: [-32600, 426, false],
  request_timeout: [-32600, 408, true],
  not_found: [-32600, 404, false],
  gone: [-32000, 410, false],
  method_blocked: [-32601, 200, false],
  websocket_only: [-32601, 200, false],
  unknown_chain: [-32602, 400, false],
  unknown_profile: [-32602, 404, false],
  invalid_field: [-32602, 400, false],
  unauthorized: [-32001, 401, false],
  key_revoked: [-32001, 401, false],
  forbidden: [-32001, 403, false],
  unavailable: [-32002, 503, true],
  behind: [-32002, 200, true],
  not_prepared: [-32002, 503, true],
  profile_config_unavailable: [-32002, 503, true],
  balance_exhausted: [-32040, 402, false],
  payment_required: [-32000, 402, false],
  payment_invalid: [-32000, 402, false],
  payment_conflict: [-32000, 409, false],
  payment_failed: [-32000, 409, false],
  beneficiary_conflict: [-32000, 409, false],
  payment_pending: [-32000, 503, true],
  rate_limit_exceeded: [-32005, 429, true],
  log_range_limit: [-32005, 200, false],
  subscription_not_found: [-32000, 200, false],
  filter_not_found: [-32000, 200, false],
  filter_unsupported: [-32601, 200, false],
  outcome_unknown: [-32000, 200, false],
  internal: [-32000, 500, true],
};

const codes = Object.keys(SPECIFIED) as readonly FaultCode[];

test("every code has the numeric code, the status and the retry rule of the specification", () => {
  for (const code of codes) {
    const { rpcCode, status, retryable } = fault(code, "why");
    assert.deepEqual([rpcCode, status, retryable], SPECIFIED[code], code);
  }
});

test("every error says in data what happened, what to do next and whether repeating helps", () => {
  for (const code of codes) {
    const error: unknown = JSON.parse(faultError(fault(code, "the message")));
    const [rpcCode, , retryable] = SPECIFIED[code];
    const { nextAction } = fault(code, "");
    assert.ok(nextAction.length > 5, code);
    assert.deepEqual(error, {
      code: rpcCode,
      message: "the message",
      data: {
        code,
        next_action: nextAction,
        retryable,
        ...(retryable ? { retry_after_ms: 1_000 } : {}),
      },
    });
  }
});

test("whatever may be repeated says after how long, and nothing else does", () => {
  for (const code of codes)
    assert.equal(fault(code, "").retryAfterMs !== null, fault(code, "").retryable, code);
  assert.equal(fault("unavailable", "", { retryAfterMs: 2_500 }).retryAfterMs, 2_500);
  assert.equal(
    fault("unavailable", "", { retryable: false, retryAfterMs: 2_500 }).retryAfterMs,
    null,
  );
  assert.equal(fault("invalid_field", "", { retryAfterMs: 2_500 }).retryAfterMs, null);
});

test("an occasion may change status, advice and details, and never the numeric code", () => {
  const it = fault("unavailable", "nobody", {
    status: 200,
    nextAction: "wait",
    details: { reason: "circuit_open", upstream_attempts: 0 },
  });
  assert.deepEqual([it.rpcCode, it.status, it.nextAction], [-32002, 200, "wait"]);
  const { data } = JSON.parse(faultError(it)) as { readonly data: unknown };
  assert.deepEqual(data, {
    code: "unavailable",
    next_action: "wait",
    retryable: true,
    retry_after_ms: 1_000,
    reason: "circuit_open",
    upstream_attempts: 0,
  });
});

test("a message with quotes and control characters stays one valid JSON value", () => {
  const { message } = JSON.parse(faultError(fault("invalid_field", 'a "b"\n\u0000\ud800'))) as {
    readonly message: string;
  };
  assert.equal(message, 'a "b"\n\u0000\ud800');
});
