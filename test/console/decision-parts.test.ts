// The sentence on a decision: every shape of a call, and nothing that its record does not hold.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Decision,
  decisionSentence,
  lacksReasons,
} from "../../console/pages/requests/decision-sentence.ts";

type Attempt = Decision["timeline"][number];
type Candidate = Decision["candidates"][number];

const CALL: Decision = {
  ...{ id: "1", at: "2026-01-01T00:00:00.000Z", worker: "0", request_id: null },
  ...{ profile: "team", chain: "ethereum", method: "eth_call", strategy: "load-balanced" },
  ...{ key_id: null, request_bytes: 1, answer_bytes: 1, notification: false },
  ...{ total_ms: 1, upstream_ms: 1, added_ms: 0, outcome: "answered", reason: null, cause: null },
  ...{ source: "provider", provider: null, attempts: 1, failovers: 0, hedged: false },
  ...{ pinned: false, panic: false, error: null, what_if: true, order: [], candidates: [] },
  ...{ excluded: [], timeline: [], cache: null, coalesced: false, hedge_over_budget: false },
  ...{ lag_waived: false, rechecked: null, strategies: [] },
};

const attempt = (provider: string, ms: number, more: Partial<Attempt> = {}): Attempt => ({
  ...{ provider, transport: "http", started_ms: null, latency_ms: ms, outcome: "success" },
  ...{ category: null, provider_failed: false, step: null, effect: null, code: null },
  ...{ message: null, hedged_after_ms: null, batched: null },
  ...more,
});

const failed = (provider: string, ms: number, category: string, more: Partial<Attempt> = {}) =>
  attempt(provider, ms, { outcome: "error", category, ...more });

const candidate = (provider: string, more: Partial<Candidate> = {}): Candidate => ({
  ...{ provider, transport: "http", tier: 1, circuit: "closed", limited: false, stalled: false },
  ...{ backup: false, weight: 1, priority: 1, price: null, region_rank: 0, reading: null },
  ...{ latency_weight: null, probe_ms: null, decided_by: "random, weight 1 of 2" },
  ...more,
});

/** Of a call with these candidates in this order. */
const planned = (candidates: readonly Candidate[], more: Partial<Decision> = {}): string =>
  decisionSentence({
    ...CALL,
    order: candidates.map(({ provider }) => provider),
    candidates: [...candidates],
    ...more,
  });

const told = (more: Partial<Decision>): string => decisionSentence({ ...CALL, ...more });

const A = candidate("drpc");
const B = candidate("infura");

test("who was asked first, and why, as far as it was recorded", () => {
  const timeline = [attempt("drpc", 99)];
  const cases: readonly (readonly [string, Candidate, Candidate, Partial<Decision>?])[] = [
    [" by a weighted draw (weight 1 of 2)", A, B],
    [" as its recovery trial", { ...A, tier: 3, circuit: "half_open" }, B],
    [
      " as the best candidate (next was infura: backup)",
      A,
      { ...B, tier: 21, decided_by: "backup" },
    ],
    [" by a weighted draw", { ...A, tier: 2 }, { ...B, tier: 2 }],
    [" by its priority 1", A, { ...B, priority: 2 }, { strategy: "priority" }],
    ["", { ...A, priority: 2 }, B, { strategy: "priority" }],
    [
      " as the cheapest (price 1)",
      { ...A, price: 1, decided_by: "price 1" },
      B,
      { strategy: "cheapest" },
    ],
    ["", A, B, { strategy: "cheapest" }],
    [
      " as the fastest (probe 4.0 ms)",
      { ...A, probe_ms: 4, decided_by: "probe 4.0 ms" },
      B,
      { strategy: "fastest" },
    ],
    [", to which the caller had pinned the call,", A, B, { pinned: true }],
    [" while every circuit was open", A, B, { panic: true }],
    ["", A, B, { lag_waived: true }],
    ["", A, B, { candidates: [] }],
    ["", A, B, { strategy: null }],
    ["", B, A],
  ];
  for (const [why, first, second, more = {}] of cases)
    assert.equal(
      planned([first, second], { timeline, ...more }),
      `drpc was asked${why} and answered in 99 ms.`,
    );
  assert.equal(
    planned([A], { timeline }),
    "drpc was asked as the only candidate and answered in 99 ms.",
  );
});

test("how each attempt ended, in the order in which they began", () => {
  assert.equal(
    planned([{ ...A, circuit: "half_open", tier: 3 }, B], {
      timeline: [failed("drpc", 120, "server", { code: 502 }), attempt("infura", 99)],
    }),
    "drpc was tried first as its recovery trial and answered 502 after 120 ms; " +
      "infura answered in 99 ms.",
  );
  const many = ["a", "b", "c", "d", "e"].map((name) => failed(name, 10, "timeout"));
  assert.equal(
    told({ timeline: [...many, attempt("f", 5)] }),
    "a was tried first and did not answer in time after 10 ms; b did not answer in time after " +
      "10 ms; c did not answer in time after 10 ms; and 2 more failed; f answered in 5.0 ms.",
  );
  assert.equal(
    told({
      timeline: [failed("a", 1, "unsent"), failed("b", 20, "unknown", { code: -32_000 })],
      ...{ outcome: "failed", reason: "unavailable", cause: "unavailable", source: "none" },
    }),
    "a was tried first and could not be reached after 1.0 ms; b answered with error -32000 " +
      "(unknown) after 20 ms; the call failed: no provider could answer (unavailable).",
  );
  assert.equal(
    told({
      timeline: [failed("a", 20, "revert", { code: 3 })],
      ...{ outcome: "caller_error", reason: "revert", cause: "revert" },
    }),
    "a was asked and answered with error 3 (revert) after 20 ms; the caller got this error as " +
      "its own: revert.",
  );
});

test("a hedge says who won, and one over its budget that it was wanted", () => {
  const slow = failed("drpc", 120, "overtaken", { started_ms: 0 });
  const hedge = attempt("infura", 40, { started_ms: 80, hedged_after_ms: 80 });
  assert.equal(
    told({ hedged: true, timeline: [hedge, slow] }),
    "drpc was tried first and was given up after 120 ms; infura, asked beside it after 80 ms, " +
      "answered in 40 ms.",
  );
  assert.equal(
    told({ hedged: true, timeline: [{ ...hedge, started_ms: null }, slow] }),
    "infura, asked beside it after 80 ms, answered in 40 ms; drpc was given up after 120 ms.",
    "who was first is not known",
  );
  const late = failed("infura", 10, "overtaken", { started_ms: 80, hedged_after_ms: 80 });
  assert.equal(
    told({ timeline: [attempt("drpc", 90, { started_ms: 0 }), late] }),
    "drpc was tried first and answered in 90 ms; infura, asked beside it after 80 ms, was given " +
      "up after 10 ms.",
  );
  assert.equal(
    told({ timeline: [attempt("drpc", 900)], hedge_over_budget: true }),
    "drpc was asked and answered in 900 ms; a hedge was wanted, and over its budget.",
  );
});

test("answers that no provider gave to this call", () => {
  const cache = { result: "hit", age_ms: 1200, class: "head" } as const;
  const cases: readonly (readonly [Partial<Decision>, string])[] = [
    [
      { source: "cache", provider: "drpc", cache },
      "The cache held an answer of drpc, 1,200 ms old.",
    ],
    [{ source: "cache" }, "The cache held an answer."],
    [
      { source: "shared", provider: "drpc", coalesced: true },
      "An answer of drpc to another call or subscription was shared with this one.",
    ],
    [
      { source: "heads" },
      "The service answered by itself, from what providers tell of their heads.",
    ],
    [{ source: "local" }, "The service answered by itself, from its configuration."],
    [{ source: "none" }, "The call was answered, and no attempt is recorded."],
    [
      { source: "merged", timeline: [attempt("a", 5), failed("a", 5, "server"), attempt("b", 9)] },
      "The answer was joined from parts: 3 attempts, of which 1 failed, at a, b.",
    ],
  ];
  for (const [more, text] of cases) assert.equal(told(more), text);
});

test("refused, left, and no provider that could be asked", () => {
  const refused = { outcome: "refused", source: "none" } as const;
  assert.equal(
    told({ ...refused, reason: "balance", cause: "balance_exhausted" }),
    "The service refused the call without asking a provider: balance exhausted.",
  );
  assert.equal(
    told({
      ...{ ...refused, source: "refused", reason: "size", cause: "log_range_limit" },
      timeline: [failed("a", 5, "block_range", { code: -32_005 })],
    }),
    "a was asked and answered with error -32005 (block range) after 5.0 ms; the service refused " +
      "the call: too large (log range limit).",
  );
  const left = { outcome: "cancelled", source: "none" } as const;
  assert.equal(told(left), "No attempt at a provider is recorded; the caller left.");
  assert.equal(
    told({ ...left, timeline: [failed("a", 30, "cancelled")] }),
    "a was asked and was given up after 30 ms; the caller left.",
  );
  const excluded = ["a", "b", "c", "d"].map((provider) => {
    return { provider, reason: "circuit_open", transport: null, circuit: null };
  });
  assert.equal(
    told({
      ...{ outcome: "failed", source: "none", reason: "unavailable", cause: "unavailable" },
      excluded,
    }),
    "No provider on ethereum could be asked: a (circuit open), b (circuit open), c (circuit " +
      "open) and 1 more; the call failed: no provider could answer (unavailable).",
  );
});

test("a call whose order was not recorded says so; one that needs no reason does not", () => {
  assert.equal(lacksReasons({ what_if: false, attempts: 1, pinned: false }), true);
  assert.equal(lacksReasons({ what_if: true, attempts: 1, pinned: false }), false);
  assert.equal(lacksReasons({ what_if: false, attempts: 0, pinned: false }), false);
  assert.equal(lacksReasons({ what_if: false, attempts: 1, pinned: true }), false);
});
