// The one judgement of how a call ended: every refusal of the service and every category of errors
// has its place, and all ends are numbered once.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ANSWERED,
  brokenEnd,
  CALL_ENDS,
  CALL_OUTCOMES,
  CALL_REASONS,
  CANCELLED,
  type CallEnd,
  CUT,
  callEndOf,
  hidesFailures,
  interruptedEnd,
  isProviderFailure,
} from "../../src/core/call-end.ts";
import { FAULTS, type FaultCode } from "../../src/core/faults/rpc-fault.ts";
import { ERROR_CATEGORIES, errorGroupOf } from "../../src/core/provider-errors/category.ts";

const CODES = Object.keys(FAULTS) as readonly FaultCode[];

const ofFault = (code: FaultCode): CallEnd => callEndOf({ kind: "fault", fault: { code } });
const ofError = (category: string): CallEnd => callEndOf({ kind: "error", category });
const nameOf = ({ outcome, reason }: CallEnd): string => [outcome, reason].join(".");

/** Every code of the catalog, by where it belongs; a code that is missing here is not decided. */
const PLACES: Readonly<Record<string, readonly FaultCode[]>> = {
  "refused.request": [
    "parse_error",
    "invalid_request",
    "method_not_allowed",
    "unsupported_media_type",
    "upgrade_required",
    "request_timeout",
    "request_loop",
    "gone",
  ],
  "refused.size": ["body_too_large", "log_range_limit"],
  "refused.target": ["not_found", "unknown_chain", "unknown_profile", "invalid_field"],
  "refused.method": ["method_blocked", "websocket_only", "filter_unsupported"],
  "refused.access": ["unauthorized", "key_revoked", "forbidden"],
  "refused.balance": ["balance_exhausted"],
  "refused.payment": [
    "payment_required",
    "payment_invalid",
    "payment_conflict",
    "payment_failed",
    "payment_pending",
    "beneficiary_conflict",
  ],
  "refused.rate_limit": ["rate_limit_exceeded"],
  "caller_error.params": ["subscription_not_found", "filter_not_found"],
  "failed.unavailable": ["unavailable", "behind", "not_prepared", "profile_config_unavailable"],
  "failed.outcome_unknown": ["outcome_unknown"],
  "failed.internal": ["internal"],
};

test("every refusal of the service has its place", () => {
  const placed = Object.entries(PLACES).flatMap(([name, codes]) =>
    codes.map((code) => [code, name] as const),
  );
  assert.deepEqual(
    placed.map(([code]) => code).sort(),
    [...CODES].sort(),
    "each code of the catalog stands in the table of this test once",
  );
  for (const [code, name] of placed)
    assert.deepEqual([nameOf(ofFault(code)), ofFault(code).cause], [name, code]);
});

test("our own errors of the JSON-RPC range, and every status of 4xx, are refused, never failed", () => {
  for (const code of CODES) {
    const { rpcCode, status } = FAULTS[code];
    const { outcome } = ofFault(code);
    if (rpcCode <= -32_600) assert.equal(outcome, "refused", code);
    if (status >= 400 && status < 500) assert.equal(outcome, "refused", code);
    if (outcome === "failed") assert.ok(rpcCode === -32_002 || rpcCode === -32_000, code);
  }
});

test("every category of a provider's error is the caller's own or a failure, as its group says", () => {
  const callers = new Set(["rejected", "too_large", "unsupported"]);
  for (const category of ERROR_CATEGORIES) {
    const group = errorGroupOf(category);
    const end = ofError(category);
    assert.equal(end.cause, category);
    assert.equal(end.outcome, callers.has(group) ? "caller_error" : "failed", category);
    assert.equal(
      isProviderFailure(category),
      end.outcome === "failed" && group !== "cut",
      category,
    );
  }
  const named = (category: string) => nameOf(ofError(category));
  assert.deepEqual(
    ["revert", "invalid_params", "nonce_low", "tx_rejected", "block_range"].map(named),
    [
      "caller_error.revert",
      "caller_error.params",
      "caller_error.transaction",
      "caller_error.transaction",
      "caller_error.too_large",
    ],
  );
  assert.equal(named("method_unsupported"), "caller_error.unsupported");
  for (const category of ["rate_limit", "auth", "timeout", "server", "pruned", "unknown"])
    assert.equal(named(category), "failed.provider_error", category);
  assert.equal(named("a category of nobody"), "failed.provider_error");
});

test("attempts that the service ended are no failures of their providers; a wrong answer is", () => {
  for (const category of ["cancelled", "overtaken", "no_connection", "circuit_open", "no_room"])
    assert.equal(isProviderFailure(category), false, category);
  assert.equal(isProviderFailure("integrity"), true);
});

test("results are answered; who leaves has cancelled; what the service breaks off has failed", () => {
  assert.equal(callEndOf({ kind: "result" }), ANSWERED);
  assert.equal(callEndOf({ kind: "stream" }), ANSWERED);
  assert.equal(interruptedEnd("left"), CANCELLED);
  assert.equal(interruptedEnd("cut"), CUT);
  assert.equal(brokenEnd(undefined), CUT, "its provider failed");
  assert.equal(brokenEnd("reader"), CANCELLED, "who does not read counts as having left");
  assert.equal(nameOf(brokenEnd("range")), "refused.size");
  assert.deepEqual(
    [nameOf(ANSWERED), nameOf(CANCELLED), nameOf(CUT)],
    ["answered.", "cancelled.", "failed.cut"],
  );
});

test("ends are numbered once, and agree with the lists of outcomes and reasons", () => {
  for (const [at, end] of CALL_ENDS.entries()) {
    assert.equal(end.index, at);
    assert.equal(CALL_OUTCOMES[end.outcomeIndex], end.outcome);
    const name = end.reason === null ? undefined : nameOf(end);
    assert.equal(CALL_REASONS[end.reasonIndex], name);
    assert.equal(hidesFailures(end), ["answered", "caller_error"].includes(end.outcome));
  }
  const causes = CALL_ENDS.map((end) => `${nameOf(end)} ${end.cause}`);
  assert.equal(new Set(causes).size, causes.length);
  // What earlier versions recorded has no cause of today.
  const earlier = ["caller_error.other", "failed.other"];
  for (const name of CALL_REASONS)
    assert.notEqual(
      CALL_ENDS.some((end) => nameOf(end) === name),
      earlier.includes(name),
      name,
    );
});
