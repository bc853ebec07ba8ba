// History in memory: what is counted in which step, that several processes add up to one, that it
// keeps within its bytes and says what it dropped, and that nothing unknown is shown as 0. What of
// it is kept for 90 days is in `hour-history.test.ts`.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ANSWERED, CANCELLED, CUT, callEndOf } from "../../src/core/call-end.ts";
import type { Attempt } from "../../src/core/provider/attempt.ts";
import {
  ERROR_CATEGORIES,
  ERROR_GROUPS,
  errorGroupOf,
} from "../../src/core/provider-errors/category.ts";
import { methodOf } from "../../src/core/rpc/method.ts";
import { History } from "../../src/observe/history/history.ts";
import { type ChainSample, HistoryCounts } from "../../src/observe/history/history-counts.ts";
import {
  type HistorySpan,
  historyColumns,
  historyInterval,
  historyRange,
  historyReport,
  type SeriesReport,
} from "../../src/observe/history/history-report.ts";
import { fakeProvider, verdict } from "../fakes/providers.ts";
import { type SimulatedWorld, simulatedWorld } from "../fakes/runtime.ts";

const BALANCE = methodOf("eth_getBalance");
const TRACE = methodOf("debug_traceTransaction");
const STEP_MS = 10_000;
const REFUSED = callEndOf({ kind: "fault", fault: { code: "rate_limit_exceeded" } });
const P0 = fakeProvider(0);
const P1 = fakeProvider(1);

function attempt(provider = P0, latencyMs = 25, category: string | null = null): Attempt {
  const failed = category === null ? null : { ...verdict({ kind: "ignored" }), category };
  return { provider, transport: "http", latencyMs, verdict: failed, code: null };
}

/** A process that counts, with the steps that it passes on. */
function counting(runtime: SimulatedWorld, history = new History(runtime.wallMs())) {
  const counts = new HistoryCounts();
  let beganMs = runtime.wallMs();
  return {
    history,
    chain: counts.chain("team", "test"),
    flush(samples: readonly ChainSample[] = []): void {
      history.add({ atMs: beganMs, rows: counts.take(samples) });
      beganMs = runtime.wallMs();
      history.advance(beganMs);
    },
  };
}

function report(
  history: History,
  wallMs: number,
  { points = 360, provider = null as string | null, span = "hour" as HistorySpan } = {},
): readonly SeriesReport[] {
  const chain = { profile: "team", chain: "test" };
  const range = historyRange(span, points, wallMs);
  return historyReport(history, { ...range, chain, provider, classes: true }).series();
}

test("calls, attempts, errors and latencies are counted in their step", () => {
  const runtime = simulatedWorld(1);
  const { history, chain, flush } = counting(runtime);
  for (let n = 0; n < 100; n++) {
    const made = attempt(n % 4 === 0 ? P1 : P0, 25);
    chain.attempted(made, BALANCE);
    chain.ended(ANSWERED);
    chain.answered([{ attempt: made, failure: null }], 25.15);
  }
  chain.attempted(attempt(P1, 5, "rate_limit"), TRACE);
  chain.ended(REFUSED);
  chain.ended(CANCELLED);
  chain.ended(callEndOf({ kind: "error", category: "revert" }));
  chain.ended(CUT);
  chain.unanswered();
  chain.hidden(2);
  const state = { provider: P0, lagBlocks: 3, circuit: "open" } as const;
  flush([{ profile: "team", chain: "test", providers: [state] }]);
  const [whole, first, second, ...classes] = historyColumns(report(history, runtime.wallMs()));
  assert.deepEqual(classes, [], "classes are told of one provider only");
  assert.equal(whole?.kind, "chain");
  assert.equal(whole?.calls.at(-1), 104);
  assert.equal(whole?.calls.at(-2), null, "nothing is known before the start, not even 0");
  const last = (columns: Readonly<Record<string, readonly (number | null)[]>> | null | undefined) =>
    Object.fromEntries(Object.entries(columns ?? {}).map(([name, of]) => [name, of.at(-1)]));
  const ends = { answered: 100, caller_error: 1, failed: 1, refused: 1, cancelled: 1 };
  assert.deepEqual(last(whole?.outcomes), ends);
  const reasons = { "caller_error.revert": 1, "failed.cut": 1, "refused.rate_limit": 1 };
  assert.deepEqual(last(whole?.reasons), reasons);
  assert.deepEqual([whole?.unanswered?.at(-1), whole?.hidden_failures?.at(-1)], [1, 2]);
  assert.deepEqual([whole?.errors, first?.outcomes, first?.reasons], [{}, null, {}]);
  const p50 = whole?.p50_ms.at(-1) ?? 0;
  assert.ok(p50 > 20 && p50 <= 30, `25.15 ms lie in the column up to 30 ms: ${p50}`);
  const added = whole?.added_p50_ms?.at(-1) ?? 0;
  assert.ok(added > 0.1 && added <= 0.2, `0.15 ms were added: ${added}`);
  assert.deepEqual(
    [first?.provider, first?.calls.at(-1), first?.share?.at(-1)],
    ["p0", 75, 0.7426],
  );
  assert.deepEqual([first?.lag_blocks?.at(-1), first?.circuit?.at(-1)], [3, "open"]);
  assert.deepEqual(
    [second?.calls.at(-1), second?.errors],
    [26, { rate_limit: [...Array(359).fill(null), 1] }],
  );
  assert.equal(second?.lag_blocks?.at(-1), null, "its heads are not known");
  const of = historyColumns(report(history, runtime.wallMs(), { provider: "p1" }));
  const shown = of.map(({ kind, class: name, calls }) => [kind, name, calls.at(-1)]);
  assert.deepEqual(shown, [
    ["chain", null, 104],
    ["provider", null, 26],
    ["class", BALANCE.deadline, 25],
    ["class", TRACE.deadline, 1],
  ]);
});

test("steps follow the clock, an hour in 10 s and a day in minutes; joined steps add up", () => {
  const runtime = simulatedWorld(2);
  const { history, chain, flush } = counting(runtime);
  runtime.advance(STEP_MS - (runtime.wallMs() % STEP_MS));
  flush();
  for (let step = 0; step < 400; step++) {
    for (let n = 0; n < step; n++) chain.ended(CANCELLED);
    runtime.advance(STEP_MS);
    flush();
  }
  const [hour] = historyColumns(report(history, runtime.wallMs()));
  assert.deepEqual(hour?.calls, [...Array.from({ length: 359 }, (_, n) => n + 41), 0]);
  const [joined] = historyColumns(report(history, runtime.wallMs(), { points: 60 }));
  const sum = (calls: readonly (number | null)[]) =>
    calls.reduce<number>((total, each) => total + (each ?? 0), 0);
  assert.equal(joined?.calls.length, 60);
  assert.ok(sum(joined?.calls ?? []) >= sum(hour?.calls ?? []) - 5 * 400);
  const [day] = historyColumns(report(history, runtime.wallMs(), { span: "day", points: 1_440 }));
  assert.equal(sum(day?.calls ?? []), (399 * 400) / 2, "the day has all of them");
  runtime.jump(-7_200_000);
  flush();
  chain.ended(CANCELLED);
  flush();
  const [back] = historyColumns(report(history, runtime.wallMs()));
  assert.equal(back?.calls.at(-1), 1, "a clock that was set back begins anew");
  runtime.jump(7_200_000 * 3);
  flush();
  const [later] = historyColumns(report(history, runtime.wallMs()));
  assert.equal(sum(later?.calls ?? []), 0, "what is older than an hour is gone");
});

test("what two processes count adds up to what one would that served everything", () => {
  const runtime = simulatedWorld(3);
  const whole = counting(runtime);
  const left = counting(runtime);
  const right = counting(runtime, left.history);
  for (let n = 0; n < 500; n++) {
    const provider = n % 3 === 0 ? P1 : P0;
    const failed = n % 7 === 0 ? (ERROR_CATEGORIES[n % ERROR_CATEGORIES.length] ?? null) : null;
    const made = attempt(provider, (n * 37) % 4_000, failed);
    for (const { chain } of [whole, n % 2 === 0 ? left : right]) {
      chain.attempted(made, n % 5 === 0 ? TRACE : BALANCE);
      chain.ended(callEndOf({ kind: "error", category: failed ?? "revert" }));
      chain.answered([{ attempt: made, failure: null }], n);
    }
    if (n % 50 === 0) runtime.advance(STEP_MS);
    for (const { flush } of [whole, left, right]) flush();
  }
  for (const provider of [null, "p1"]) {
    const of = ({ history }: typeof whole) =>
      historyColumns(report(history, runtime.wallMs(), { points: 12, provider }));
    assert.deepEqual(of(left), of(whole));
  }
});

test("beyond its bytes classes of methods go first, then the day, then new providers", () => {
  const runtime = simulatedWorld(4);
  const maxBytes = 3_000_000;
  const { history, chain, flush } = counting(runtime, new History(runtime.wallMs(), maxBytes));
  const dropped: string[] = [];
  for (let index = 0; index < 80; index++) {
    chain.attempted(attempt(fakeProvider(index)), BALANCE);
    chain.attempted(attempt(fakeProvider(index)), TRACE);
    flush();
    const { bytes, methodClasses, day, providers } = history.use();
    assert.ok(bytes <= maxBytes, `${bytes} bytes with ${index + 1} providers`);
    const now = `${methodClasses ? "classes " : ""}${day ? "day " : ""}${providers ? "all" : ""}`;
    if (dropped.at(-1) !== now) dropped.push(now);
  }
  assert.deepEqual(dropped, ["classes day all", "day all", "all", ""]);
  const kept = historyColumns(report(history, runtime.wallMs()));
  const known = kept.filter(({ kind, calls }) => kind === "provider" && calls.at(-1) === 2);
  assert.ok(known.length > 40, `${known.length} providers are kept in the hour`);
  assert.ok(
    kept.every(({ calls }) => calls.at(-1) === 2 || calls.at(-1) == null || calls.at(-1) === 0),
  );
  runtime.advance(25 * 3_600_000);
  flush();
  runtime.advance(STEP_MS);
  flush();
  assert.equal(
    history.use().providerCount,
    0,
    "providers that are configured no more are forgotten",
  );
  assert.ok(history.use().bytes < 100_000, "and their memory with them");
});

test("users' own providers have no history, and a provider has the alias that callers see", () => {
  const runtime = simulatedWorld(5);
  const { history, chain, flush } = counting(runtime);
  chain.attempted(attempt(fakeProvider(0, { guarded: true })), BALANCE);
  chain.attempted(attempt(P1), BALANCE);
  flush();
  assert.deepEqual(
    report(history, runtime.wallMs()).map(({ kind, provider, alias }) => [kind, provider, alias]),
    [
      ["chain", null, null],
      ["provider", "p1", "a1"],
    ],
  );
});

test("every category belongs to a group", () => {
  for (const category of ERROR_CATEGORIES) assert.ok(ERROR_GROUPS.includes(errorGroupOf(category)));
  assert.equal(errorGroupOf("overtaken"), "cut");
});

test("an interval is read in the finest steps that are kept of it, whole and within its points", () => {
  const wallMs = Date.parse("2026-01-10T12:34:56Z");
  const HOUR_MS = 3_600_000;
  const ago = (fromMs: number, toMs: number, points = 360) =>
    historyInterval({ fromMs: wallMs - fromMs, toMs: wallMs - toMs }, points, wallMs);
  assert.equal(ago(HOUR_MS / 2, 0)?.span, "hour");
  assert.equal(ago(5 * HOUR_MS, 4 * HOUR_MS)?.span, "day");
  assert.equal(ago(48 * HOUR_MS, 47 * HOUR_MS)?.span, "90d");
  assert.equal(ago(0, HOUR_MS), null);
  assert.equal(ago(-HOUR_MS, -2 * HOUR_MS), null);
  const steps: Record<HistorySpan, number> = { hour: 10_000, day: 60_000, "90d": HOUR_MS };
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 89 * 24 * HOUR_MS }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      fc.integer({ min: 10, max: 1_440 }),
      (backMs, share, points) => {
        const fromMs = wallMs - backMs;
        const toMs = wallMs - Math.floor(backMs * share);
        const range = historyInterval({ fromMs, toMs }, points, wallMs);
        assert.ok(range !== null);
        const { span, firstStep, joined, count } = range;
        const shownMs = steps[span] * joined;
        const beginMs = firstStep * steps[span];
        assert.ok(beginMs <= fromMs && beginMs + count * shownMs >= toMs, "all of it is read");
        assert.ok(fromMs - beginMs < shownMs && beginMs + (count - 1) * shownMs < toMs, "no more");
        assert.ok(count <= points && firstStep % joined === 0);
      },
    ),
  );
});
