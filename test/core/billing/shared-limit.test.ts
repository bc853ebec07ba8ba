// A rate limit that nodes share, in simulated time: nodes take, and hear of each other every
// quarter of a second, a little late.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RateLimitSize } from "../../../src/core/billing/gcra.ts";
import {
  type RateLimitOwner,
  rateLimitStatusOf,
  takeToken,
} from "../../../src/core/billing/rate-limit.ts";
import { type OwnDemand, SharedLimit } from "../../../src/core/billing/shared-limit.ts";
import { seededRandom } from "../../fakes/runtime.ts";

const SIZE: RateLimitSize = { perSecond: 50, burst: 100 };
const SYNC_MS = 250;
const LATE_MS = 20;

interface SimulatedNode {
  readonly owner: RateLimitOwner;
  readonly limits: SharedLimit[];
  told: OwnDemand | null;
  toldAtMs: number;
  served: number;
}

/** What nodes serve of a limit; `rates` = calls a second at each, which may change with time. */
function served(
  seconds: number,
  rates: (nowMs: number) => readonly number[],
  seed: number,
  size = SIZE,
): readonly number[] {
  const random = seededRandom(seed);
  const nodes = rates(0).map((): SimulatedNode => {
    const limits: SharedLimit[] = [];
    return { owner: ownerOf(), limits, told: null, toldAtMs: 0, served: 0 };
  });
  const sharingOf = (node: SimulatedNode) => ({
    nodes: nodes.length,
    begin(_: string, of: RateLimitSize, start: { readonly debt: number; readonly nowMs: number }) {
      const limit = new SharedLimit({ size: of, sharing: this, onStale: () => {} }, start);
      node.limits.push(limit);
      return limit;
    },
  });
  for (let nowMs = 0; nowMs < seconds * 1_000; nowMs++) {
    for (const [at, node] of nodes.entries()) {
      // Nodes tell and hear at times of their own.
      if ((nowMs + at * 83) % SYNC_MS === 0) tell(node, nowMs);
      if ((nowMs + at * 83) % SYNC_MS === LATE_MS) hear(nodes, at, nowMs);
      const calls = (rates(nowMs)[at] ?? 0) / 1_000;
      for (let n = Math.floor(calls) + (random() < calls % 1 ? 1 : 0); n > 0; n--)
        if (takeToken(node.owner, LIMIT, { size, nowMs, sharing: sharingOf(node) }) === null)
          node.served++;
    }
  }
  return nodes.map((node) => node.served);
}

const LIMIT = { name: "managed", size: "managed" } as const;

function ownerOf(): RateLimitOwner {
  return { fullAtMs: null, shared: null, id: "acc_1" };
}

function tell(node: SimulatedNode, nowMs: number): void {
  const [limit] = node.limits;
  if (limit?.isDue(nowMs) !== true) return;
  node.told = limit.own(nowMs);
  node.toldAtMs = nowMs;
}

function hear(nodes: readonly SimulatedNode[], at: number, nowMs: number): void {
  const [limit] = nodes[at]?.limits ?? [];
  if (nodes[at]?.toldAtMs !== nowMs - LATE_MS) return;
  limit?.hear(
    nodes.flatMap(({ told, toldAtMs }, other) =>
      other === at || told === null
        ? []
        : [{ nodeId: `n${other}`, ...told, ageMs: nowMs - toldAtMs }],
    ),
    nowMs,
  );
}

const SECONDS = 40;
const ALLOWED = SIZE.burst + SIZE.perSecond * SECONDS;

test("skewed nodes serve a limit together within 5 %, however the calls are spread", () => {
  for (const rates of [
    [200, 0, 0],
    [180, 15, 5],
    [67, 67, 66],
    [500, 40, 1],
    [30, 30, 30, 30, 30, 30],
  ])
    for (const seed of [1, 2, 3]) {
      const each = served(SECONDS, () => rates, seed);
      const all = each.reduce((sum, count) => sum + count, 0);
      assert.ok(all <= ALLOWED * 1.05, `${rates}: ${each} is more than ${ALLOWED}`);
      assert.ok(all >= ALLOWED * 0.95, `${rates}: ${each} is less than ${ALLOWED}`);
    }
});

test("calls that move from node to node earn nothing by it, and lose little", () => {
  const each = served(
    SECONDS,
    (nowMs) => [0, 1, 2].map((at) => (Math.floor(nowMs / 3_000) % 3 === at ? 150 : 0)),
    7,
  );
  const all = each.reduce((sum, count) => sum + count, 0);
  assert.ok(all <= ALLOWED * 1.05, `${each} is more than ${ALLOWED}`);
  assert.ok(all >= ALLOWED * 0.85, `${each} is less than ${ALLOWED}`);
});

test("a caller below its limit is never refused for long", () => {
  const each = served(SECONDS, () => [15, 15, 10], 5);
  const all = each.reduce((sum, count) => sum + count, 0);
  assert.ok(all > 40 * SECONDS * 0.9, `${each}`);
});

test("a limit of few tokens is served to the last one", () => {
  const size = { perSecond: 10 / 3_600, burst: 10 };
  const each = served(10, () => [3, 3, 3], 3, size);
  const all = each.reduce((sum, count) => sum + count, 0);
  assert.ok(all >= 10 && all <= 13, `${each}`);
});

test("what is left and when it is full again are told of the limit that is shared", () => {
  const owner = ownerOf();
  const sharing = {
    nodes: 3,
    begin: (
      _: string,
      size: RateLimitSize,
      start: { readonly debt: number; readonly nowMs: number },
    ) => new SharedLimit({ size, sharing: { nodes: 3 }, onStale: () => {} }, start),
  };
  let taken = 0;
  while (takeToken(owner, LIMIT, { size: SIZE, nowMs: 0, sharing }) === null) taken++;
  assert.ok(taken >= 30 && taken < 60, `${taken} of 100 before anything was heard of two others`);
  owner.shared?.get("managed")?.own(0);
  owner.shared?.get("managed")?.hear([], 0);
  while (takeToken(owner, LIMIT, { size: SIZE, nowMs: 0, sharing }) === null) taken++;
  assert.ok(taken >= 100 && taken <= 101, `${taken}`);
  const status = rateLimitStatusOf(owner, LIMIT, { size: SIZE, nowMs: 1_000 });
  assert.deepEqual([status.burst, status.resetS], [100, 1]);
  assert.ok(Math.abs(status.remaining - 50) <= 1);
  const refused = takeToken(owner, LIMIT, { size: SIZE, nowMs: 0, sharing });
  assert.equal(refused?.code, "rate_limit_exceeded");
  assert.ok((refused?.retryAfterMs ?? 0) >= 1 && (refused?.retryAfterMs ?? 0) <= 100);
});
