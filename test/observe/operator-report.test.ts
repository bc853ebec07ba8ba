// What the operator reads of the subscriptions of several workers: one list, and sums that are
// those of all workers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { pino } from "pino";
import { Observer } from "../../src/observe/observer.ts";
import { openReports, STREAMS } from "../../src/observe/operator-report.ts";
import type { SubscriptionReport } from "../../src/upstream/stream/subscriptions.ts";
import { testBus } from "../cluster/bus-fixture.ts";
import { fakeProvider } from "../fakes/providers.ts";

const OF = { profile: "team", chain: "test" };
const FAILOVERS = {
  lost: 2,
  stale_heads: 0,
  far: 1,
  unanswered: 0,
  backlog: 0,
  removed: 0,
  missing_logs: 0,
};

function stream(over: Partial<SubscriptionReport>): SubscriptionReport {
  return {
    ...OF,
    kind: "newHeads",
    pinned: false,
    state: "live",
    provider: fakeProvider(0),
    subscribers: 1,
    height: 100,
    behind: 0,
    failovers: 1,
    filledBlocks: 3,
    events: 10,
    lagMs: 1.234_56,
    ...over,
  };
}

test("streams of all workers are one list with their lag, the most subscribed first, and sums", async () => {
  const { world, worker } = testBus(["1", "2"]);
  const open = (id: string, reports: readonly SubscriptionReport[]) => {
    const { bus } = worker(id);
    const observer = new Observer(pino({ level: "silent" }), world, {
      worker: id,
      workers: 2,
      salt: "",
    });
    const checks = { agreed: 4, missing: 1, surplus: 0, unanswered: 0, givenUp: 2, overBudget: 0 };
    const subscriptions = {
      reports: () => reports,
      counts: () => [{ ...OF, failovers: FAILOVERS, filledBlocks: 5, ended: 1 }],
      checks: () => [{ ...OF, ...checks, calls: 9 }],
    };
    return openReports({ observer, subscriptions }, bus);
  };
  const [first] = [
    open("1", [stream({ subscribers: 2 }), stream({ lagMs: null, provider: null, events: 0 })]),
    open("2", [stream({ subscribers: 7, lagMs: 0 })]),
  ];
  const read = first?.(STREAMS, {});
  world.advance(10);
  const report = await read;
  assert.ok(report != null);
  assert.deepEqual(
    report.streams.map(({ worker: id, subscribers, provider, lag_ms }) => [
      id,
      subscribers,
      provider,
      lag_ms,
    ]),
    [
      ["2", 7, "p0", 0],
      ["1", 2, "p0", 1.23],
      ["1", 1, null, null],
    ],
  );
  const { totals } = report;
  assert.deepEqual(
    [totals.streams, totals.subscribers, totals.events, totals.blocks_filled, totals.ended],
    [3, 10, 20, 2 * 5 + 3 * 3, 2],
  );
  assert.deepEqual([totals.failovers["lost"], totals.failovers["far"]], [4, 2]);
  assert.deepEqual(
    [totals.log_checks["agreed"], totals.log_checks["given_up"], totals.log_checks["missing"]],
    [8, 4, 2],
  );
  assert.equal(report.truncated, false);
});
