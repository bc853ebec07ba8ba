// Errors of calls by shape: of all providers and processes, with whom they hit and when; bounded,
// and nothing that is no longer told apart is lost from the sums.
import assert from "node:assert/strict";
import { test } from "node:test";
import { deserialize, serialize } from "node:v8";
import { callEndOf } from "../../src/core/call-end.ts";
import { fault } from "../../src/core/faults/rpc-fault.ts";
import { NO_SOURCE } from "../../src/core/routing/answer-source.ts";
import { ErrorBook } from "../../src/observe/error-book.ts";
import { errorReport } from "../../src/observe/error-report.ts";
import type { EndedCall } from "../../src/observe/feed/decision.ts";
import { fakeProvider, verdict } from "../fakes/providers.ts";

const STEP_MS = 120_000;
const START_MS = 1_000 * STEP_MS;
const REFUSAL = fault("unavailable", "every provider that was tried failed");

interface Failed {
  readonly provider?: number;
  readonly guarded?: boolean;
  readonly category?: string;
  readonly code?: number | null;
  readonly status?: number;
  readonly message?: string;
}

function traceOf({ category = "server", code = null, status = 502, ...more }: Failed) {
  const { provider = 0, guarded = false, message = "bad gateway" } = more;
  const effect = verdict({ kind: "failure", cause: "server" });
  return {
    attempt: { provider: fakeProvider(provider, { guarded }), verdict: { ...effect, category } },
    failure: { kind: "body", httpStatus: status, code, message },
  };
}

interface Made {
  readonly traces?: readonly ReturnType<typeof traceOf>[];
  readonly method?: string;
  readonly key?: string | null;
  readonly address?: string;
  /** Category of the error that was passed on; left out = the service answered. */
  readonly passed?: string;
}

/** A call that ended with an error. */
function callOf(made: Made): EndedCall {
  const { traces = [], method = "eth_call", key = null, address = "a", passed } = made;
  const answer =
    passed === undefined
      ? { outcome: { kind: "fault", fault: REFUSAL }, source: NO_SOURCE }
      : {
          outcome: { kind: "error", category: passed, raw: Buffer.from('{"code":3}') },
          source: NO_SOURCE,
        };
  const request = { call: { methodName: method }, caller: { key: address, keyId: key } };
  return {
    series: { profile: "team", chain: "test" },
    route: { traces, request },
    answer,
    end: callEndOf(answer.outcome as never),
  } as unknown as EndedCall;
}

function newBook() {
  const clock = { nowMs: START_MS };
  const book = new ErrorBook({ wallMs: () => clock.nowMs });
  const hide = (failed: Failed, made: Made = {}) =>
    book.hid(callOf(made), traceOf(failed) as never);
  return { clock, book, hide, report: () => errorReport([own(book)], clock.nowMs) };
}

const own = (book: ErrorBook) => ({ totals: book.totals, shapes: book.shapes() });

test("errors alike at several providers are one shape; each count belongs to what it names", () => {
  const { hide, report } = newBook();
  const at = "request 5f3c-77aa at host.example.com failed";
  hide({ provider: 0, message: at }, { method: "eth_call", key: "key_1" });
  hide({ provider: 1, message: at.replace("5f3c", "9") }, { method: "eth_call", key: "key_1" });
  hide({ provider: 1, message: at }, { method: "eth_getLogs", address: "b" });
  hide({ provider: 1, message: at, status: 503 });
  hide({ provider: 2, guarded: true, message: "a secret of its user" });
  const { hidden, totals, seen } = report();
  assert.deepEqual([totals.hidden, seen.length, hidden.length], [5, 0, 3]);
  const [first] = hidden;
  assert.deepEqual(first?.methods, [
    { method: "eth_call", count: 2 },
    { method: "eth_getLogs", count: 1 },
  ]);
  const place = { profile: "team", chain: "test" };
  assert.deepEqual(first?.providers, [
    { ...place, provider: "p1", count: 2 },
    { ...place, provider: "p0", count: 1 },
  ]);
  assert.deepEqual([first?.count, first?.users, first?.http_status], [3, 2, 502]);
  assert.deepEqual(first?.keys, [{ key_id: "key_1", count: 2 }]);
  assert.deepEqual([first?.outcome, first?.reason], ["failed", "provider_error"]);
  assert.doesNotMatch(JSON.stringify(hidden), /secret of its user/);
});

test("what users saw: failed before their own mistakes, with the failure behind a refusal", () => {
  const { book, report } = newBook();
  const failed = [traceOf({ provider: 0 }), traceOf({ provider: 1 })];
  const wrong = traceOf({ category: "revert", code: 3, status: 200, message: "reverted: no" });
  for (let n = 0; n < 3; n++)
    book.answered(callOf({ passed: "revert", traces: [wrong] }), "caller_error");
  book.answered(callOf({ traces: failed }), "failed");
  book.answered(callOf({ passed: "revert" }), "caller_error");
  const odd = traceOf({ category: "unknown", code: -7, status: 200, message: "flux is warm" });
  book.answered(callOf({ passed: "unknown", traces: [odd] }), "failed");
  const { seen, totals, others } = report();
  assert.deepEqual(totals, { failed: 2, caller_error: 4, hidden: 0 });
  assert.deepEqual(others, { failed: 0, caller_error: 0, hidden: 0 });
  assert.deepEqual(
    seen.map(({ category, code, http_status: status, count }) => [category, code, status, count]),
    [
      ["unknown", -7, null, 1],
      ["unavailable", -32_002, null, 1],
      ["revert", 3, null, 3],
      ["revert", 3, null, 1],
    ],
  );
  assert.match(seen[0]?.rule?.yaml ?? "", /code: -7/);
  const { behind, providers } = seen[1] ?? {};
  assert.deepEqual([behind?.category, behind?.http_status], ["server", 502]);
  assert.deepEqual(
    providers?.map(({ provider, count }) => [provider, count]),
    [
      ["p0", 1],
      ["p1", 1],
    ],
  );
});

test("shapes, methods, providers and callers are bounded, and the sums stay whole", () => {
  const { book, hide, report } = newBook();
  for (let n = 0; n < 3; n++) hide({ message: "comes again" });
  // No digits, which would make them alike.
  const word = (n: number): string => String.fromCodePoint(0x4e00 + n);
  for (let n = 0; n < 5_000; n++) hide({ message: word(n) });
  for (let n = 0; n < 300; n++)
    hide({ message: "comes again", provider: n }, { method: `m${n}`, key: `key_${n}` });
  const { hidden, totals, others } = report();
  assert.equal(hidden.length, 100);
  assert.equal(book.shapes().length, 100);
  const kept = hidden.reduce((sum, { count }) => sum + count, 0);
  assert.deepEqual([totals.hidden, others.hidden], [5_303, 5_303 - kept]);
  const [again] = hidden;
  assert.deepEqual([again?.sample, again?.count, again?.users], ["comes again", 303, 100]);
  assert.deepEqual([again?.keys.length, again?.more_keys], [10, 89]);
  for (const [rows, rest] of [
    [again?.providers, again?.others.providers],
    [again?.methods, again?.others.methods],
  ] as const)
    assert.equal(
      (rows ?? []).reduce((sum, { count }) => sum + count, rest ?? 0),
      303,
    );
});

test("the trend is that of the last hour, whatever the clock does", () => {
  const { clock, hide, report } = newBook();
  hide({});
  clock.nowMs += STEP_MS;
  for (let n = 0; n < 2; n++) hide({});
  clock.nowMs += 3 * STEP_MS;
  hide({});
  const trend = () => report().hidden[0]?.trend ?? [];
  assert.deepEqual(trend().slice(-6), [0, 1, 2, 0, 0, 1]);
  assert.equal(trend().length, 30);
  clock.nowMs += 26 * STEP_MS;
  assert.deepEqual([trend()[0], trend()[3]], [2, 1]);
  clock.nowMs += 100 * STEP_MS;
  assert.deepEqual(new Set(trend()), new Set([0]));
  clock.nowMs = START_MS;
  hide({});
  assert.deepEqual([trend().at(-1), trend().at(-2)], [2, 0]);
});

test("shapes of several processes are one, as they arrive from other processes", () => {
  const books = [newBook(), newBook()];
  books[0]?.hide({ provider: 0 }, { key: "key_1" });
  for (const each of books) each.clock.nowMs += STEP_MS;
  books[1]?.hide({ provider: 1 }, { key: "key_1" });
  books[1]?.hide({ provider: 0 }, { key: "key_2" });
  books[1]?.hide({ provider: 0, status: 503 });
  const told = books.map(({ book }) => deserialize(serialize(own(book))));
  const { hidden, totals } = errorReport(told, START_MS + STEP_MS);
  assert.deepEqual([totals.hidden, hidden.length], [4, 2]);
  const [first] = hidden;
  assert.deepEqual([first?.count, first?.users, first?.trend.slice(-2)], [3, 2, [1, 2]]);
  assert.deepEqual(first?.keys, [
    { key_id: "key_1", count: 2 },
    { key_id: "key_2", count: 1 },
  ]);
  assert.equal(first?.first_seen, new Date(START_MS).toISOString());
  assert.equal(first?.last_seen, new Date(START_MS + STEP_MS).toISOString());
});
