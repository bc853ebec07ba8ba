// What follows a failed attempt, and which error the caller hears at the end: bounded, never -32601
// unless all said so, and always a real one.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Effect, Step } from "../../../src/core/provider/attempt.ts";
import {
  bestError,
  type FailedAttempt,
  haveProvidersFailed,
  nextMove,
} from "../../../src/core/routing/failover.ts";
import type { Failure } from "../../../src/core/rpc/failure.ts";
import { fakeProvider, verdict } from "../../fakes/providers.ts";

const STEPS: readonly Step[] = ["return", "next", "next_once", "stop", "known", "verify", "range"];
const EFFECTS: readonly Effect[] = [
  { kind: "ignored" },
  { kind: "failure", cause: "server" },
  { kind: "failure", cause: "network" },
  { kind: "failure", cause: "timeout" },
  { kind: "failure", cause: "auth" },
  { kind: "cooldown", ms: 1_000 },
  { kind: "cordon", reason: "auth" },
  { kind: "learn", what: "method" },
  { kind: "lag" },
];

interface Shape {
  readonly step?: Step;
  readonly effect?: Effect;
  readonly code?: number | null;
  readonly raw?: string | null;
  readonly category?: string;
  readonly kind?: Failure["kind"];
  readonly operator?: string;
}

function failed({
  step = "next",
  effect = { kind: "ignored" },
  code = -32000,
  raw = "{}",
  category,
  kind = "error",
  operator = "p0.test",
}: Shape): FailedAttempt {
  const failure: Failure = {
    kind,
    httpStatus: 200,
    retryAfter: null,
    code,
    message: "",
    data: null,
  };
  const judged = { ...verdict(effect, step), ...(category === undefined ? {} : { category }) };
  const attempt = {
    provider: fakeProvider(0, { operator }),
    transport: "http" as const,
    latencyMs: 1,
    verdict: judged,
    code,
  };
  return { attempt, verdict: judged, failure, raw: raw === null ? null : Buffer.from(raw) };
}

const moveAfter = (steps: readonly Step[], maxAttempts = 3) =>
  nextMove({ maxAttempts, failed: steps.map((step) => failed({ step })) });

const anyFailed = fc
  .record({
    step: fc.constantFrom(...STEPS),
    effect: fc.constantFrom(...EFFECTS),
    code: fc.constantFrom(-32601, -32000, 3, null),
    hasRaw: fc.boolean(),
  })
  .map(({ hasRaw, ...shape }) => failed({ ...shape, raw: hasRaw ? "{}" : null }));

test("a failure that another provider may not have leads to it, until the attempts are used up", () => {
  assert.deepEqual(
    [moveAfter(["next"]), moveAfter(["next", "range"]), moveAfter(["next", "next", "next"])],
    ["next", "next", "exhausted"],
  );
  assert.deepEqual(
    [moveAfter(["next"], 1), moveAfter(["range"], 1), moveAfter(["next_once"], 1)],
    ["exhausted", "exhausted", "exhausted"],
  );
});

test(
  "the caller's own mistake, an unknown outcome and the steps of transactions end the search " +
    "at once",
  () => {
    for (const step of ["return", "stop", "known", "verify"] as const)
      for (const before of STEPS) assert.equal(moveAfter([before, step]), step);
  },
);

test("a doubtful error is tried at one other provider only", () => {
  assert.equal(moveAfter(["next_once"]), "next");
  assert.equal(moveAfter(["next_once", "next_once"]), "return");
  assert.equal(moveAfter(["next_once", "next", "next_once"], 9), "return");
});

test("what certainly was not sent costs no attempt, and without a bound all are asked", () => {
  const unsent = failed({ kind: "unsent", raw: null, code: null });
  const sent = failed({});
  const move = (all: readonly FailedAttempt[], maxAttempts: number): string =>
    nextMove({ maxAttempts, failed: all });
  assert.equal(move([unsent, unsent, unsent, unsent], 1), "next");
  assert.equal(move([unsent, sent, unsent], 2), "next");
  assert.equal(move([unsent, sent, unsent, sent], 2), "exhausted");
  assert.equal(move(new Array(99).fill(sent), Number.POSITIVE_INFINITY), "next");
});

test("an error that cannot be classified is the answer once two operators give it with one code", () => {
  const odd = (about: Shape): FailedAttempt =>
    failed({ category: "unknown", code: -32050, ...about });
  const move = (...all: readonly FailedAttempt[]): string =>
    nextMove({ maxAttempts: 9, failed: all });
  const other = odd({ operator: "p1.test" });
  assert.equal(move(odd({})), "next");
  assert.equal(move(odd({}), other), "return");
  assert.equal(move(odd({}), failed({}), other), "return", "not only one after the other");
  assert.equal(move(odd({}), odd({})), "next", "one operator errs as one");
  assert.equal(move(odd({}), odd({ operator: "p1.test", code: -32051 })), "next");
  assert.equal(move(odd({ code: null }), odd({ operator: "p1.test", code: null })), "next");
  assert.equal(
    move(odd({}), odd({ operator: "p1.test", raw: null })),
    "next",
    "of another request",
  );
  assert.equal(
    move(failed({}), failed({ operator: "p1.test" })),
    "next",
    "it is known what it means",
  );
});

test("those that lag are asked after failures of providers only", () => {
  const down = failed({ effect: { kind: "failure", cause: "network" } });
  const busy = failed({ effect: { kind: "cooldown", ms: 1 } });
  assert.equal(haveProvidersFailed([]), true);
  assert.equal(haveProvidersFailed([down, busy]), true);
  assert.equal(haveProvidersFailed([down, failed({})]), false);
  assert.equal(haveProvidersFailed([failed({ effect: { kind: "lag" } })]), false);
});

test("nothing tried means nobody could", () => assert.equal(moveAfter([]), "exhausted"));

test("the search is bounded whatever the providers say", () => {
  fc.assert(
    fc.property(
      fc.array(anyFailed, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 10 }),
      (all, maxAttempts) => {
        if (all.length >= maxAttempts)
          assert.notEqual(nextMove({ maxAttempts, failed: all }), "next");
      },
    ),
  );
});

test("method not found is told only when every provider said so", () => {
  const unknown = failed({ code: -32601, effect: { kind: "learn", what: "method" } });
  const busy = failed({ code: -32005, effect: { kind: "cooldown", ms: 1 } });
  const silent = failed({ code: null, raw: null, effect: { kind: "failure", cause: "timeout" } });
  assert.deepEqual(bestError([unknown, unknown]), { kind: "error", best: unknown });
  assert.deepEqual(bestError([unknown, busy]), { kind: "error", best: busy });
  assert.deepEqual(bestError([unknown, silent]), { kind: "none" });
});

test(
  "the most informative error is told: the request's fault, then what the node lacks, then " +
    "busy, broken, and refusing us",
  () => {
    const ranking: readonly FailedAttempt[] = [
      failed({ step: "range" }),
      failed({ effect: { kind: "ignored" } }),
      failed({ effect: { kind: "learn", what: "pruned" } }),
      failed({ effect: { kind: "cooldown", ms: 1 } }),
      failed({ effect: { kind: "failure", cause: "server" } }),
      failed({ effect: { kind: "failure", cause: "auth" } }),
      failed({ effect: { kind: "cordon", reason: "wrong_chain" } }),
    ];
    for (const [at, better] of ranking.entries())
      for (const worse of ranking.slice(at + 1)) {
        assert.deepEqual(bestError([better, worse]), { kind: "error", best: better });
        assert.deepEqual(bestError([worse, better]), { kind: "error", best: better });
      }
  },
);

test("of two errors that say as much, the first one is told", () => {
  const [first, second] = [failed({ raw: '{"a":1}' }), failed({ raw: '{"a":2}' })];
  assert.deepEqual(bestError([first, second]), { kind: "error", best: first });
});

test(
  "too large for every provider is one refusal of its own, and for only some of them a " +
    "provider's error",
  () => {
    const [first, second] = [failed({ step: "range" }), failed({ step: "range" })];
    assert.deepEqual(bestError([first, second]), { kind: "range", worst: second });
    const other = failed({ effect: { kind: "cooldown", ms: 1 } });
    assert.deepEqual(bestError([first, other]), { kind: "error", best: first });
  },
);

test("only what a provider really sent is ever told", () => {
  assert.deepEqual(bestError([]), { kind: "none" });
  fc.assert(
    fc.property(fc.array(anyFailed, { maxLength: 6 }), (all) => {
      const told = bestError(all);
      if (told.kind === "error") assert.ok(all.includes(told.best) && told.best.raw !== null);
      if (told.kind === "none")
        assert.ok(
          all.every(
            (it) =>
              it.raw === null ||
              (it.failure.code === -32601 && all.some((that) => that.failure.code !== -32601)),
          ),
        );
    }),
    { numRuns: 2_000 },
  );
});
