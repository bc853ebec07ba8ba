// Documents of a service of several workers: any of them tells of all, counts of workers that
// are gone stay, and one that does not answer is shown as it was last.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type MetricFamily,
  serveServiceDocuments,
  workerDocuments,
} from "../../src/app/workers/service-readings.ts";
import { Histogram } from "../../src/core/provider/latency.ts";
import type { ServiceDocuments } from "../../src/core/workers/service-documents.ts";
import { parseFamilies } from "../../src/observe/metric-families.ts";
import { testBus } from "../cluster/bus-fixture.ts";

function sampleOf(
  families: readonly MetricFamily[] | null,
  name: string,
): number | Histogram | null {
  return families?.find((family) => family.name === name)?.samples?.[0]?.[1] ?? null;
}

/** Workers that count requests and have sockets open, and what one of them says of the service. */
function workersThatCount(ids: readonly string[]) {
  const bus = testBus(ids);
  serveServiceDocuments({
    bus: bus.hub,
    runtime: bus.world,
    ownFamilies: () => [{ name: "process_resident_memory_bytes", samples: [[[], 5]] }],
  });
  const workers = new Map(
    ids.map((id) => {
      const state = { requests: 0, sockets: 1, documents: null as ServiceDocuments | null };
      const durations = new Histogram();
      state.documents = workerDocuments(bus.worker(id).bus, ({ kind }) => {
        if (kind === "ready")
          return {
            ready: state.requests > 0,
            traffic: state.requests > 0,
            reasons: state.requests > 0 ? [] : ["no provider has answered yet"],
            chains: [],
          };
        durations.counts[0] = state.requests;
        return [
          { name: "svc_requests_total", samples: [[["p", "c", "m", "answered"], state.requests]] },
          { name: "svc_request_duration_seconds", samples: [[["p", "c"], durations]] },
          { name: "svc_sockets", samples: [[[], state.sockets]] },
          { name: "svc_uptime_seconds", samples: [[[], Number(id)]] },
          { name: "process_resident_memory_bytes", samples: [[[], 10]] },
        ];
      });
      return [id, state];
    }),
  );
  const at = (id: string) => {
    const state = workers.get(id);
    assert.ok(state);
    return state;
  };
  const read = (id: string, kind: "metrics" | "ready" = "metrics"): Promise<unknown> =>
    new Promise((resolve) =>
      at(id).documents?.read(kind === "ready" ? { kind } : { kind, realIds: true }, resolve),
    );
  return { ...bus, at, read, metrics: async (id: string) => parseFamilies(await read(id)) };
}

test("whichever worker is asked adds counters and gauges up, and takes the largest of others", async () => {
  const { at, metrics } = workersThatCount(["1", "2"]);
  at("1").requests = 3;
  at("2").requests = 4;
  for (const id of ["1", "2"]) {
    const families = await metrics(id);
    const histogram = sampleOf(families, "svc_request_duration_seconds");
    assert.deepEqual(
      ["svc_requests_total", "svc_sockets", "svc_uptime_seconds"].map((name) =>
        sampleOf(families, name),
      ),
      [7, 2, 2],
    );
    assert.ok(typeof histogram === "object" && histogram !== null);
    assert.equal(histogram.counts[0], 7);
    assert.equal(sampleOf(families, "process_resident_memory_bytes"), 25);
  }
});

test("what a worker counted stays when it is gone, what it had does not", async () => {
  const { at, metrics, worker } = workersThatCount(["1", "2", "3"]);
  at("1").requests = 3;
  at("2").requests = 4;
  assert.equal(sampleOf(await metrics("1"), "svc_requests_total"), 7);
  worker("2").end();
  const left = await metrics("3");
  assert.equal(sampleOf(left, "svc_requests_total"), 7);
  assert.equal(sampleOf(left, "svc_sockets"), 2);
  worker("3").end();
  assert.equal(sampleOf(await metrics("1"), "svc_requests_total"), 7);
});

test("a worker that dies unasked is counted as it was a few seconds before", async () => {
  const { at, metrics, worker, world } = workersThatCount(["1", "2"]);
  at("2").requests = 4;
  world.advance(5_000);
  // The readings that this began end with the turn.
  await new Promise((resolve) => setImmediate(resolve));
  worker("2").end();
  assert.equal(sampleOf(await metrics("1"), "svc_requests_total"), 4);
});

test("a worker that does not answer in time is shown as it was last", async () => {
  const { at, metrics, worker, world } = workersThatCount(["1", "2"]);
  at("2").requests = 4;
  await metrics("1");
  at("1").requests = 1;
  at("2").requests = 9;
  worker("2").isStuck = true;
  const late = metrics("1");
  await new Promise((resolve) => setImmediate(resolve));
  world.advance(500);
  assert.equal(sampleOf(await late, "svc_requests_total"), 5);
});

test("the service is ready where one worker is", async () => {
  const { at, read } = workersThatCount(["1", "2"]);
  assert.deepEqual(await read("1", "ready"), {
    ready: false,
    traffic: false,
    reasons: ["no provider has answered yet"],
    chains: [],
  });
  at("2").requests = 1;
  assert.deepEqual(await read("1", "ready"), {
    ready: true,
    traffic: true,
    reasons: [],
    chains: [],
  });
});
