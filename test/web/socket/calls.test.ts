// What the requests of a socket hear of their answers: one that the socket did not take was not
// told, so that a filter keeps it for the next poll.
import assert from "node:assert/strict";
import { test } from "node:test";
import { pino } from "pino";
import { methodTable } from "../../../src/core/rpc/method-table.ts";
import { Observer } from "../../../src/observe/observer.ts";
import { MemoryBudget } from "../../../src/upstream/memory-budget.ts";
import { ProfileRegistry } from "../../../src/upstream/registry/profile-registry.ts";
import { TargetResolver } from "../../../src/web/rpc/target.ts";
import { type CallParts, SocketCalls } from "../../../src/web/socket/calls.ts";
import { NO_WISHES } from "../../fakes/caller-view.ts";
import { NO_FILTERS } from "../../fakes/filters.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { configOf, configText } from "../../fakes/service.ts";

const config = configOf(configText([{ id: "a", url: "http://a.test" }]));
const runtime = simulatedWorld(1);
const observer = new Observer(pino({ level: "silent" }), runtime);
const resolver = new TargetResolver(
  new ProfileRegistry(config.chains, config.profiles, runtime, config.selection),
  observer,
);
const target = resolver.resolve(
  { url: "/rpc/1", defaultProfile: null, within: null, provider: undefined, strategy: undefined },
  null,
);
assert.ok(target.kind === "target");

/**
 * Polls a filter in a message on a socket that takes messages, or none; tells what the filter
 * heard.
 */
function heardOf(message: unknown, takes: boolean): readonly boolean[] {
  assert.ok(target.kind === "target");
  const heard: boolean[] = [];
  const filters: typeof NO_FILTERS = {
    ...NO_FILTERS,
    serve(_, done) {
      const body = Buffer.from('["0x1"]');
      done({
        outcome: { kind: "result", body, start: 0, end: body.length, idAt: null },
        source: { kind: "shared", provider: null },
        route: null,
        written: (it) => void heard.push(it),
      });
      return null;
    },
  };
  const rpc = {
    runtime,
    observer,
    resolver,
    admission: null,
    filters,
    methods: () => methodTable([]),
    consistency: () => "off",
    limits: config.limits,
    budget: new MemoryBudget(() => config.limits),
  };
  const activity = { active: 0, lastMs: 0, draining: false, ended: false };
  // Only what polls need.
  const parts = {
    rpc,
    activity,
    requestId: () => "r",
    subscriptions: { open: () => () => {} },
  } as unknown as CallParts;
  const outlet = {
    send: () => takes,
    notify: () => takes,
    close: () => {},
    isBehind: false,
    holdReading: () => {},
  };
  const calls = new SocketCalls(parts, outlet, {
    kind: "authenticated",
    target,
    keyContext: null,
    caller: { key: "test" },
    wishes: NO_WISHES,
  });
  calls.serve(Buffer.from(JSON.stringify(message)), false);
  calls.close("left");
  return heard;
}

const POLL = { jsonrpc: "2.0", id: 1, method: "eth_getFilterChanges", params: ["0x1"] };

for (const [name, message] of [
  ["alone", POLL],
  ["in a batch", [POLL, { ...POLL, id: 2 }]],
] as const)
  test(`a poll ${name} was told where the socket took the answer, and not where it did not`, () => {
    const count = Array.isArray(message) ? message.length : 1;
    assert.deepEqual(heardOf(message, true), Array(count).fill(true));
    assert.deepEqual(heardOf(message, false), Array(count).fill(false));
  });
