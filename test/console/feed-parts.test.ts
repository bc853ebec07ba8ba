// The pure parts of what the live feed tells: sentences for changes, and columns of history.
import assert from "node:assert/strict";
import { test } from "node:test";
import { withRange } from "../../console/app/router.ts";
import { endText, isFailure, OUTCOMES, reasonText } from "../../console/health/outcomes.ts";
import { knownSince, rangeIn } from "../../console/health/ranges.ts";
import {
  busiest,
  errorRates,
  type HistorySeries,
  latest,
  outcomeRates,
  outcomeShare,
  perSecond,
  shareOfEnds,
  sparkPath,
  topReasons,
  total,
  trimHistory,
} from "../../console/health/series.ts";
import { changeOf, changesIn, withChange } from "../../console/pages/overview/change-text.ts";
import { CALL_OUTCOMES, CALL_REASONS, callEndOf } from "../../src/core/call-end.ts";
import { ERROR_CATEGORIES, errorGroupOf } from "../../src/core/provider-errors/category.ts";

test("changes are told in sentences, and anything else is no change", () => {
  const said = (name: string, fields: object): string | undefined =>
    changeOf({ name, data: JSON.stringify(fields) })?.text;
  const provider = "<b>a</b>";
  const incident = { provider, words: "70 % HTTP 502", started_at: "2026-11-23T10:00:00.000Z" };
  assert.equal(said("incident", { ...incident, change: "opened" }), "<b>a</b>: 70 % HTTP 502");
  assert.equal(
    said("incident", { ...incident, change: "closed", ended_at: "2026-11-23T10:12:00.000Z" }),
    "<b>a</b> is good again after 12 min: 70 % HTTP 502",
  );
  assert.equal(
    said("incident", { words: "no new block", change: "opened" }),
    "The chain: no new block",
  );
  assert.equal(
    said("cordon", { provider, cordoned: true, cause: "operator" }),
    "<b>a</b> was cordoned by the operator",
  );
  for (const part of ["circuit", "head", "stream"])
    assert.equal(said(part, { provider }), undefined, "it is part of an incident, or of none");
  assert.equal(said("cordon", { provider, cordoned: true, cause: "auth" }), undefined);
  assert.equal(said("node", { node: "n1", change: "left" }), "n1 left");
  assert.equal(said("call", {}), undefined);
  assert.equal(changeOf({ name: "config", data: "no json" })?.tone, "idle");
});

test("what the service remembers and what comes live is one list, with nothing twice", () => {
  const event = (at: string, provider: string, worker: string) => ({
    type: "cordon" as const,
    at,
    data: {
      ...{ at, worker, profile: "team", chain: "test", provider },
      cordoned: true,
      cause: "operator",
    },
  });
  const remembered = changesIn({
    changes: [
      event("2026-11-23T10:05:00.000Z", "b", "1"),
      event("2026-11-23T10:00:00.000Z", "a", "1"),
    ],
  });
  const live = event("2026-11-23T10:05:02.000Z", "b", "2");
  const again = event("2026-11-23T10:09:00.000Z", "b", "2");
  const heard = [live, again].flatMap(
    ({ type, data }) => changeOf({ name: type, data: JSON.stringify(data) }) ?? [],
  );
  const all = [...heard, ...remembered].reduce<readonly (typeof remembered)[number][]>(
    (list, change) => withChange(list, change, 3),
    [],
  );
  assert.deepEqual(
    all.map(({ at, text }) => [at.slice(14, 19), text]),
    [
      ["09:00", "b was cordoned by the operator"],
      ["05:02", "b was cordoned by the operator"],
      ["00:00", "a was cordoned by the operator"],
    ],
  );
});

test("a provider that is cordoned again within seconds is told again", () => {
  const cordon = (at: string, cordoned: boolean) => {
    const about = { at, worker: "1", profile: "team", chain: "test", provider: "b" };
    const data = JSON.stringify({ ...about, cordoned, cause: "operator" });
    return changeOf({ name: "cordon", data }) ?? assert.fail(at);
  };
  const told = [
    cordon("2026-11-23T10:05:00.000Z", true),
    cordon("2026-11-23T10:05:03.000Z", false),
    cordon("2026-11-23T10:05:06.000Z", true),
    cordon("2026-11-23T10:05:03.200Z", false),
  ].reduce<ReturnType<typeof changesIn>>((list, change) => withChange(list, change, 10), []);
  assert.deepEqual(
    told.map(({ tone }) => tone),
    ["warn", "good", "warn"],
  );
});

test("what a provider does wrong in two profiles at once is told once", () => {
  const incident = (profile: string, change: string, words: string) => {
    const at = "2026-11-23T10:05:00.000Z";
    const about = { at, profile, chain: "test", provider: "b", cause: "failing", change, words };
    const data = JSON.stringify({ ...about, started_at: at, ended_at: at });
    return changeOf({ name: "incident", data }) ?? assert.fail(words);
  };
  const told = [
    incident("premium", "opened", "70 % HTTP 502"),
    incident("public", "opened", "68 % HTTP 502"),
    incident("premium", "closed", "70 % HTTP 502"),
  ].reduce<ReturnType<typeof changesIn>>((list, change) => withChange(list, change, 10), []);
  assert.deepEqual(told.map(({ tone }) => tone).toSorted(), ["bad", "good"]);
});

test("history is added up without taking unknown for 0", () => {
  const series = (provider: string, calls: readonly (number | null)[]): HistorySeries => ({
    ...{ kind: "provider", profile: "p", chain: "c", class: null, provider, calls: [...calls] },
    errors: { timeout: calls.map((n) => (n === null ? null : 1)), rejected: [5, 5, 5] },
    ...{ p50_ms: [], p95_ms: [], p99_ms: [], added_p50_ms: null, added_p95_ms: null },
    ...{ share: null, lag_blocks: null, circuit: null },
    ...{ outcomes: null, reasons: {}, unanswered: null, hidden_failures: null },
  });
  const few = series("few", [null, 1, null]);
  const many = series("many", [null, 10, 30]);
  assert.deepEqual(perSecond([null, 10], 10), [null, 1]);
  assert.equal(total([null, null]), null);
  assert.deepEqual(latest([1, 2, null]), { value: 2, step: 1 });
  assert.equal(latest([null]), null);
  assert.equal(latest(null), null);
  assert.deepEqual(
    busiest([few, many], 1).map(({ provider }) => provider),
    ["many"],
  );
  // Failures first and red, whatever is more frequent; the right answer to a wrong call is grey.
  assert.deepEqual(errorRates({ times: [0, 1, 2], step_s: 1 }, [few, many], 2), [
    { label: "timeout", values: [null, 2, 1], color: "--bad" },
    { label: "the call was wrong", values: [10, 10, 10], color: "--muted" },
  ]);
});

test("calls that were not answered are told by outcome and by their most frequent reasons", () => {
  const service: HistorySeries = {
    ...{ kind: "service", profile: null, chain: null, class: null, provider: null },
    calls: [null, 100, 100],
    outcomes: {
      answered: [null, 90, 50],
      caller_error: [null, 6, 0],
      failed: [null, 0, 10],
      refused: [null, 4, 40],
      cancelled: [null, 0, 0],
    },
    reasons: {
      "refused.balance": [null, 1, 40],
      "refused.access": [null, 3, 0],
      "failed.unavailable": [null, 0, 10],
    },
    ...{ unanswered: [null, 0, 0], hidden_failures: [null, 2, 0], errors: {} },
    ...{ p50_ms: [], p95_ms: [], p99_ms: [], added_p50_ms: null, added_p95_ms: null },
    ...{ share: null, lag_blocks: null, circuit: null },
  };
  assert.equal(outcomeShare(service, "refused"), 44 / 200);
  assert.equal(outcomeShare(service, "failed"), 10 / 200);
  assert.equal(outcomeShare({ ...service, calls: [null] }, "failed"), null);
  assert.deepEqual(topReasons(service, "refused", 1), [{ text: "balance exhausted", calls: 41 }]);
  assert.deepEqual(
    outcomeRates({ step_s: 10 }, service).map(({ label, color }) => [label, color]),
    [
      ["Failed", "--bad"],
      ["Refused", "--warn"],
      ["Caller's own error", "--muted"],
    ],
  );
});

test("the words of the console judge as the service does", () => {
  assert.deepEqual(Object.keys(OUTCOMES).sort(), [...CALL_OUTCOMES].sort());
  for (const category of ERROR_CATEGORIES) {
    const { outcome } = callEndOf({ kind: "error", category });
    const group = errorGroupOf(category);
    assert.equal(isFailure(group), outcome === "failed" && group !== "cut", category);
  }
  assert.equal(OUTCOMES.failed.tone, "bad");
  assert.equal(OUTCOMES.refused.tone, "warn");
  for (const name of CALL_REASONS) assert.match(reasonText(name), /^[a-z ,']+$/, name);
  const refused = { outcome: "refused", reason: "balance", notification: false } as const;
  assert.equal(endText(refused), "Refused: balance exhausted");
  const noted = { outcome: "answered", reason: null, notification: true } as const;
  assert.equal(endText(noted), "Answered (notification)");
});

test("the last step, which is not over, is left out: half of it would look like a fall", () => {
  const times = Array.from({ length: 20 }, (_, at) => at * 10);
  const history: Parameters<typeof trimHistory>[0] = {
    ...{ range: "hour", step_s: 10, from: "", to: "", times, series: [], chains: null },
    kept: {
      ...{ bytes: 0, max_bytes: 0, bytes_per_provider: null, method_classes: true, day: true },
      ...{ providers: true, stored: false, hours: null },
    },
  };
  assert.equal(trimHistory(history).times.at(-1), 180);
  assert.deepEqual(trimHistory({ ...history, times: [] }).times, []);
});

test("a small line leaves out what is not known and the step that runs; parts of nothing are unknown", () => {
  assert.equal(sparkPath([null, 0, 4, null, 2, 9], 30, 8), "M0.0,8.0L10.0,0.0M30.0,4.0");
  assert.equal(sparkPath([null, 1, 9], 30, 8), "");
  assert.equal(sparkPath([], 30, 8), "");
  const many = Array.from({ length: 361 }, () => 1);
  assert.equal(sparkPath(many, 59, 8).match(/L/g)?.length, 59);
  const ends = { answered: 6, caller_error: 1, failed: 2, refused: 1, cancelled: 0 };
  assert.equal(shareOfEnds(ends, "failed"), 0.2);
  assert.equal(shareOfEnds(null, "failed"), null);
  assert.equal(
    shareOfEnds({ ...ends, answered: 0, caller_error: 0, failed: 0, refused: 0 }, "failed"),
    null,
  );
});

test("a range stands in an address, stays on other pages, and one that is none is the last hour", () => {
  assert.deepEqual(rangeIn({}), { range: "hour" });
  assert.deepEqual(rangeIn({ range: "constructor" }), { range: "hour" });
  assert.deepEqual(rangeIn({ range: "7d" }), { range: "7d" });
  const between = { from: "2026-01-01T10:00:00.000Z", to: "2026-01-01T11:00:00.000Z" };
  assert.deepEqual(rangeIn({ ...between, range: "day" }), between);
  assert.deepEqual(rangeIn({ from: between.to, to: between.from }), { range: "hour" });
  assert.equal(
    withRange("/requests?chain=base", { range: "day", method: "x" }),
    "/requests?chain=base&range=day",
  );
  assert.equal(withRange("/requests?range=hour", between), "/requests?range=hour");
  assert.equal(withRange("/errors", {}), "/errors");
});

test("what is not known of the beginning of a range is said", () => {
  const series = (calls: readonly (number | null)[]) =>
    [{ calls }] as unknown as Parameters<typeof knownSince>[0]["series"];
  assert.equal(knownSince({ times: [0, 10, 20], series: series([null, 3, 4]) }), 10_000);
  assert.equal(knownSince({ times: [0, 10], series: series([0, 3]) }), null);
  assert.equal(knownSince({ times: [0, 10], series: series([null, null]) }), null);
});
