// Filters that other nodes recorded, as records that this version cannot read: a poll and a reading
// of logs are answered, and nothing is thrown where nobody would hear of it.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { pino } from "pino";
import { METHODS } from "../../../src/core/rpc/method.ts";
import type { FilterRecord } from "../../../src/core/stream/filter-record.ts";
import { NO_SHARED_HOLDINGS } from "../../../src/core/workers/shared-holdings.ts";
import { Observer } from "../../../src/observe/observer.ts";
import type { FilterClaims } from "../../../src/upstream/filter/filter-claims.ts";
import { Filters } from "../../../src/upstream/filter/filters.ts";
import { MemoryBudget } from "../../../src/upstream/memory-budget.ts";
import { ProfileRegistry } from "../../../src/upstream/registry/profile-registry.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import { FilterMethods } from "../../../src/web/rpc/filter-methods.ts";
import type { MethodCall } from "../../../src/web/rpc/service-methods.ts";
import { TargetResolver } from "../../../src/web/rpc/target.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { configOf } from "../../fakes/service.ts";

const ID = `0x${"0".repeat(34)}`;
const providers = [{ id: "alpha", url: "http://alpha.test" }];
const config = configOf(
  JSON.stringify({
    chains: { ethereum: { chain_id: 1, block_time_ms: 12_000 } },
    profiles: { public: { chains: { ethereum: { providers } } } },
  }),
);
const world = simulatedWorld(1);
const registry = new ProfileRegistry(config.chains, config.profiles, world, config.selection);

/** A log filter of another node whose record has these parameters. */
function recorded(params: string): FilterRecord {
  const place = { profile: "public", named: "public", chain: "ethereum", pin: null } as const;
  const kept = { node: "other", claim: 1, isAnswering: false, mark: null, idleMs: 0 } as const;
  const created = {
    id: ID,
    owner: "",
    method: "eth_newFilter",
    strategy: "load-balanced",
  } as const;
  return { ...place, ...kept, ...created, params };
}

/** The methods of a node that finds such a record; `revived` has what it would go on with. */
function methodsOver(record: FilterRecord) {
  const revived: unknown[] = [];
  const claims: Pick<FilterClaims, "created" | "poll" | "read" | "uninstall"> = {
    created: () => Promise.resolve(),
    async poll(_, { request }) {
      revived.push(request(record));
      return { kind: "none" };
    },
    read: () => Promise.resolve({ kind: "found", value: record }),
    uninstall: () => Promise.resolve({ kind: "none" }),
  };
  const { limits } = config;
  const filters = new Filters({
    budget: MemoryBudget.unbounded(),
    runtime: world,
    timerWheel: new TimerWheel(world),
    subscriptions: { open: () => assert.fail("nothing is subscribed to") },
    limits: () => limits,
    secret: randomBytes,
    callers: NO_SHARED_HOLDINGS,
  });
  const parts = { filters, claims, registry, admission: null };
  const methods = new FilterMethods({ ...parts, deadlineMs: () => 1_000, limits: () => limits });
  return { methods, revived };
}

function callOf(methodName: string): MethodCall {
  const resolver = new TargetResolver(registry, new Observer(pino({ level: "silent" }), world));
  const target = resolver.resolve(
    {
      url: "/rpc/ethereum",
      defaultProfile: null,
      within: null,
      provider: undefined,
      strategy: undefined,
    },
    null,
  );
  const method = METHODS.find(({ name }) => name === methodName);
  assert.ok(target.kind === "target" && method !== undefined);
  const params = JSON.stringify([ID]);
  return {
    methodName,
    method,
    params,
    target,
    answered: true,
    notify: false,
    grant: null,
    caller: { key: "a" },
  };
}

const UNREADABLE = ["", "{", "null", "7", '[{"topics":7}]'];

test("a record whose parameters cannot be read is not gone on with", async () => {
  for (const params of UNREADABLE) {
    const { methods, revived } = methodsOver(recorded(params));
    const answer = await new Promise((resolve) =>
      methods.serve(callOf("eth_getFilterChanges"), resolve),
    );
    assert.deepEqual(revived, [null], params);
    assert.match(JSON.stringify(answer), /filter not found/);
  }
});

test("logs of a record whose parameters cannot be read are not found", async () => {
  for (const params of UNREADABLE) {
    const { methods } = methodsOver(recorded(params));
    const logs = await new Promise((resolve) => methods.logs(callOf("eth_getFilterLogs"), resolve));
    assert.match(JSON.stringify(logs), /filter not found/, params);
  }
});

test("a record that can be read goes on", async () => {
  const { methods, revived } = methodsOver(recorded("[{}]"));
  await new Promise((resolve) => methods.serve(callOf("eth_getFilterChanges"), resolve));
  assert.ok(revived[0] !== null);
});
