// Probes of endpoints with known habits: what is found is what they do, within the bounds of a
// probe, and one request at a time.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { realRuntime } from "../../../src/runtime.ts";
import { PROBE_BOUNDS } from "../../../src/upstream/probe/endpoint-calls.ts";
import { type ProbeFindings, probeEndpoint } from "../../../src/upstream/probe/probe.ts";
import type { TriedMethod } from "../../../src/upstream/probe/served-methods.ts";
import { ProbeTransports } from "../../../src/upstream/probe/transports.ts";
import {
  ARCHIVE,
  allFrom,
  type NodeHabits,
  type ProbedNode,
  probedNode,
} from "../../fakes/probed-node.ts";
import { fakeProvider } from "../../fakes/providers.ts";

const BOUNDS = { ...PROBE_BOUNDS, pauseMs: 0, rateLimitMs: 1, timeoutMs: 60_000, totalMs: 600_000 };
const { head: HEAD } = ARCHIVE;

async function probed(t: TestContext, habits: Partial<NodeHabits>) {
  const node = await probedNode(habits);
  const transports = new ProbeTransports(realRuntime);
  t.after(() => Promise.all([node.close(), transports.close()]));
  const provider = fakeProvider(0, { url: node.url, wsUrl: null });
  const result = await probeEndpoint(transports, provider, BOUNDS);
  return { node, result };
}

async function found(
  t: TestContext,
  habits: Partial<NodeHabits>,
): Promise<{ readonly found: ProbeFindings; readonly node: ProbedNode }> {
  const { node, result } = await probed(t, habits);
  assert.ok(result.kind === "found", JSON.stringify(result));
  assert.ok(node.methods.length <= BOUNDS.maxRequests + 1, `${node.methods.length} calls`);
  assert.equal(node.most(), 1, "one request at a time");
  assert.equal(result.ended, null, `ended after ${result.requests} requests: ${result.ended}`);
  return { found: result, node };
}

function outcomes(methods: readonly TriedMethod[], prefix: string): ReadonlySet<string> {
  return new Set(
    methods.filter(({ method }) => method.startsWith(prefix)).map(({ outcome }) => outcome),
  );
}

test("an archive: everything from the first block, any range, batches, traces", async (t) => {
  const { found: it } = await found(t, {});
  assert.deepEqual(
    [it.chainId, it.head, it.finalized, it.safe, it.batch],
    [1, HEAD, HEAD - 64, HEAD - 32, true],
  );
  assert.match(it.client ?? "", /^Geth\/v1\.16\.4/);
  assert.deepEqual(it.oldest, allFrom(0));
  assert.deepEqual([it.logs.maxBlockRange, it.logs.isUnlimited], [100_000, true]);
  assert.deepEqual(outcomes(it.methods, ""), new Set(["served"]));
  assert.ok(it.latency.p50 <= it.latency.p90 && it.latency.p90 <= it.latency.p99);
});

test("a full node: state of 128 blocks, proofs of fewer, and all blocks and logs", async (t) => {
  const oldest = { state: HEAD - 128, proofs: HEAD - 64, traces: HEAD - 128 };
  const { found: it } = await found(t, { oldest });
  assert.deepEqual(it.oldest, { ...allFrom(0), ...oldest });
});

test("a node without the history before a block: each kind within a part of its window", async (t) => {
  const first = 15_537_394;
  const oldest = { blocks: first, transactions: first, receipts: first, logs: first };
  const { found: it } = await found(t, { oldest });
  assert.equal(it.oldest.state, 0);
  for (const resource of ["blocks", "transactions", "receipts", "logs"] as const) {
    const seen = it.oldest[resource] ?? 0;
    assert.ok(seen >= first && seen - first <= (HEAD - first) / 200, `${resource} ${seen}`);
  }
});

test("transactions whose index begins late, behind blocks that are empty", async (t) => {
  const { found: it } = await found(t, { oldest: { transactions: HEAD - 2_350_000 } });
  const seen = it.oldest.transactions ?? 0;
  assert.ok(Math.abs(seen - (HEAD - 2_350_000)) <= 2_350_000 / 200, String(seen));
  assert.equal(it.oldest.receipts, 0);
});

for (const [rangeError, logRange] of [
  ["block range is too wide", 1_000],
  ["exceed maximum block range: 5000", 5_000],
  ["eth_getLogs is limited to a 10 block range", 10],
] as const)
  test(`logs of at most ${logRange} blocks, refused with "${rangeError}"`, async (t) => {
    const { found: it } = await found(t, { logRange, rangeError, mostLogs: 10_000 });
    assert.deepEqual(it.logs, {
      maxBlockRange: logRange,
      isUnlimited: false,
      mostLogs: logRange < 50 ? 2_200 : 200,
      refusesManyLogs: logRange >= 50,
    });
  });

test("no batches, no debug and trace, no safe and finalized blocks", async (t) => {
  const { found: it } = await found(t, {
    batches: false,
    without: ["debug_", "trace_", "eth_getProof", "txpool_"],
    withoutTags: ["safe", "finalized"],
  });
  assert.equal(it.batch, false);
  assert.deepEqual([it.finalized, it.safe], [null, null]);
  for (const prefix of ["debug_", "trace_", "txpool_", "eth_getProof"])
    assert.deepEqual(outcomes(it.methods, prefix), new Set(["refused"]), prefix);
  assert.deepEqual([it.oldest.traces, it.oldest.proofs, it.oldest.state], [null, null, 0]);
});

test("another chain, behind, that limits the rate: it is asked again after a pause", async (t) => {
  const { found: it } = await found(t, { chainId: 10, head: 5_000, limitEvery: 40 });
  assert.deepEqual([it.chainId, it.head, it.oldest.blocks], [10, 5_000, 0]);
  assert.ok(it.rateLimits > 0);
});

test("an endpoint that refuses nearly all requests is left alone", async (t) => {
  const { node, result } = await probed(t, { limitEvery: 2 });
  assert.ok(result.kind === "found" && result.ended === "it limits the rate of requests");
  assert.ok(node.methods.length < 20, `${node.methods.length} calls were answered`);
});

test("a key that is not accepted, and nobody there", async (t) => {
  const { node, result } = await probed(t, { status: 401 });
  assert.ok(result.kind === "failed" && result.reason === "auth", JSON.stringify(result));
  assert.equal(node.methods.length, 0);
  const transports = new ProbeTransports(realRuntime);
  t.after(() => transports.close());
  const gone = fakeProvider(0, { url: "http://127.0.0.1:9/", wsUrl: null });
  const none = await probeEndpoint(transports, gone, BOUNDS);
  assert.ok(none.kind === "failed" && none.reason === "no answer", JSON.stringify(none));
});
