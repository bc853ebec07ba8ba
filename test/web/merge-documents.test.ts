// The documents of several workers as one: sums, worst states, averages by calls, and what is left
// of workers that are gone.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addCounts,
  mergeChainDocuments,
  mergeReadyDocuments,
} from "../../src/web/pages/merge-documents.ts";

function documentOf(calls: number, over: Record<string, unknown> = {}) {
  const transport = {
    transport: "http",
    circuit_breaker_state: "closed",
    circuit_opened: { failures: 1 },
    half_open_in_ms: null,
    rate_limited_methods: [`eth_${calls}`],
    cordoned: null,
    block_height: 100 + calls,
    calls,
    outcomes: { delivered: calls, failed: 0 },
    learned: {
      unsupported_methods: [],
      max_block_range: null,
      pruned: false,
      pruned_resources: [],
    },
    share: 1,
    success_rate: calls > 0 ? 1 : null,
    latency_ms: { average: calls > 0 ? calls * 10 : null, p50: null },
    methods: calls > 0 ? [{ method: "eth_call", calls, success_rate: 1, latency_ms: 5 }] : [],
    ...over,
  };
  return {
    chain_id: "1",
    open_sockets: 2,
    profiles: [
      {
        profile: "team",
        head_block: 100 + calls,
        max_lag_blocks: 5,
        calls,
        subscriptions: { open: 1, failovers: { silence: 1 }, streams: [{ kind: "newHeads" }] },
        providers: [{ id: "a", name: "A", transports: [transport] }],
      },
    ],
  };
}

function transportOf(document: Readonly<Record<string, unknown>>): Record<string, unknown> {
  // biome-ignore lint/suspicious/noExplicitAny: looks into a document of known shape
  return (document as any).profiles[0].providers[0].transports[0];
}

test("counts are added up, states are the worst, latencies are averaged by calls", () => {
  const merged = mergeChainDocuments(
    [documentOf(1), documentOf(3, { circuit_breaker_state: "half_open", half_open_in_ms: 7 })],
    null,
  );
  assert.deepEqual(transportOf(merged), {
    transport: "http",
    circuit_breaker_state: "half_open",
    circuit_opened: { failures: 2 },
    half_open_in_ms: 7,
    rate_limited_methods: ["eth_1", "eth_3"],
    cordoned: null,
    block_height: 103,
    calls: 4,
    outcomes: { delivered: 4, failed: 0 },
    learned: {
      unsupported_methods: [],
      max_block_range: null,
      pruned: false,
      pruned_resources: [],
    },
    share: 1,
    success_rate: 1,
    latency_ms: { average: 25, p50: null },
    methods: [{ method: "eth_call", calls: 4, success_rate: 1, latency_ms: 5 }],
  });
  assert.equal(merged["open_sockets"], 4);
  assert.deepEqual(merged["chain_id"], "1");
});

test("one document stays as it is", () => {
  assert.deepEqual(mergeChainDocuments([documentOf(2)], null), documentOf(2));
});

test("of workers that are gone the counts stay, for what is still there", () => {
  const died = documentOf(5, { cordoned: "wrong_chain" });
  const removed = { ...died.profiles[0], profile: "removed" };
  const gone = addCounts(null, { ...died, profiles: [...died.profiles, removed] });
  const merged = mergeChainDocuments([documentOf(1)], addCounts(gone, documentOf(2)));
  const transport = transportOf(merged);
  assert.deepEqual(
    [transport["calls"], transport["outcomes"], transport["circuit_opened"]],
    [8, { delivered: 8, failed: 0 }, { failures: 3 }],
  );
  assert.deepEqual(
    [transport["cordoned"], transport["block_height"], transport["latency_ms"]],
    [null, 101, { average: 10, p50: null }],
  );
  assert.equal(merged["open_sockets"], 2);
  // biome-ignore lint/suspicious/noExplicitAny: looks into a document of known shape
  const profiles = merged["profiles"] as any[];
  assert.deepEqual(
    profiles.map(({ profile, subscriptions }) => [profile, subscriptions]),
    [["team", { open: 1, failovers: { silence: 3 }, streams: [{ kind: "newHeads" }] }]],
  );
});

test("a service is ready if one worker is, and not while one drains", () => {
  const chain = { profile: "team", chain: "ethereum", providers_total: 2 };
  const usable = { ...chain, ready: true, providers_usable: 2 };
  const unusable = { ...chain, ready: false, providers_usable: 0 };
  const ready = { ready: true, traffic: true, reasons: [], chains: [usable] };
  const unready = {
    ready: false,
    traffic: false,
    reasons: ["no provider has answered yet"],
    chains: [unusable],
  };
  assert.deepEqual(mergeReadyDocuments([unready, ready]), ready);
  assert.deepEqual(mergeReadyDocuments([unready, unready]), unready);
  const draining = { ready: false, traffic: false, reasons: ["draining"], chains: [usable] };
  assert.deepEqual(mergeReadyDocuments([ready, draining]), draining);
});
