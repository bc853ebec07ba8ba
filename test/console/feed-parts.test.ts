// The pure parts of what the live feed tells: sentences for changes, and columns of history.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  busiest,
  errorRates,
  errorShare,
  type HistorySeries,
  latest,
  perSecond,
  total,
  trimHistory,
} from "../../console/health/series.ts";
import { changeOf, changesIn, withChange } from "../../console/pages/overview/change-text.ts";

test("changes are told in sentences, and anything else is no change", () => {
  const said = (name: string, fields: object): string | undefined =>
    changeOf({ name, data: JSON.stringify(fields) })?.text;
  const provider = "<b>a</b>";
  assert.equal(
    said("circuit", { provider, state: "open", cause: "rate_limited" }),
    "Circuit of <b>a</b> opened (rate limited)",
  );
  assert.equal(said("circuit", { provider, state: "closed" }), "Circuit of <b>a</b> closed");
  assert.equal(
    said("head", { provider, behind: true, lag_blocks: 12 }),
    "<b>a</b> fell behind by 12 blocks",
  );
  assert.equal(said("stream", { kind: "logs", to: null }), "A stream of logs found no provider");
  assert.equal(said("node", { node: "n1", change: "left" }), "n1 left");
  assert.equal(said("call", {}), undefined);
  assert.equal(changeOf({ name: "circuit", data: "no json" })?.tone, "good");
});

test("what the service remembers and what comes live is one list, with nothing twice", () => {
  const event = (at: string, provider: string, worker: string) => ({
    type: "circuit" as const,
    at,
    data: { at, worker, profile: "team", chain: "test", provider, state: "open", cause: "" },
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
      ["09:00", "Circuit of b opened"],
      ["05:02", "Circuit of b opened"],
      ["00:00", "Circuit of a opened"],
    ],
  );
});

test("a circuit that opens again within seconds is told again", () => {
  const circuit = (at: string, state: string) => {
    const data = {
      at,
      worker: "1",
      profile: "team",
      chain: "test",
      provider: "b",
      state,
      cause: "",
    };
    return changeOf({ name: "circuit", data: JSON.stringify(data) }) ?? assert.fail(at);
  };
  const told = [
    circuit("2026-11-23T10:05:00.000Z", "open"),
    circuit("2026-11-23T10:05:03.000Z", "closed"),
    circuit("2026-11-23T10:05:06.000Z", "open"),
    circuit("2026-11-23T10:05:03.200Z", "closed"),
  ].reduce<ReturnType<typeof changesIn>>((list, change) => withChange(list, change, 10), []);
  assert.deepEqual(
    told.map(({ tone }) => tone),
    ["bad", "good", "bad"],
  );
});

test("history is added up without taking unknown for 0", () => {
  const series = (provider: string, calls: readonly (number | null)[]): HistorySeries => ({
    ...{ kind: "provider", profile: "p", chain: "c", class: null, provider, calls: [...calls] },
    errors: { timeout: calls.map((n) => (n === null ? null : 1)), rejected: [5, 5, 5] },
    ...{ p50_ms: [], p95_ms: [], p99_ms: [], added_p50_ms: null, added_p95_ms: null },
    ...{ share: null, lag_blocks: null, circuit: null },
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
  // Rejections are the right answer to a wrong call.
  assert.equal(errorShare(many), 2 / 40);
  assert.equal(errorShare(series("idle", [null])), null);
  const [first] = errorRates({ times: [0, 1, 2], step_s: 1 }, [few, many], 1);
  assert.deepEqual(first, { label: "wrong calls and reverts", values: [10, 10, 10] });
});

test("the last step, which is not over, is left out: half of it would look like a fall", () => {
  const times = Array.from({ length: 20 }, (_, at) => at * 10);
  const history: Parameters<typeof trimHistory>[0] = {
    ...{ range: "hour", step_s: 10, from: "", to: "", times, series: [] },
    kept: {
      ...{ bytes: 0, max_bytes: 0, bytes_per_provider: null, method_classes: true, day: true },
      ...{ providers: true, stored: false, hours: null },
    },
  };
  assert.equal(trimHistory(history).times.at(-1), 180);
  assert.deepEqual(trimHistory({ ...history, times: [] }).times, []);
});
