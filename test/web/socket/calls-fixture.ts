// The requests of one socket over a router that the test holds in its hand, in simulated time and,
// where the test wants it, under a real rate limit. Knows no connection.
import assert from "node:assert/strict";
import { pino } from "pino";
import { customServiceTiers } from "../../../src/core/billing/access.ts";
import type { RateLimitSize } from "../../../src/core/billing/gcra.ts";
import { takeToken } from "../../../src/core/billing/rate-limit.ts";
import { methodTable } from "../../../src/core/rpc/method-table.ts";
import type { Admission } from "../../../src/hosted/admission/admission.ts";
import { WaitingBatches } from "../../../src/hosted/admission/waiting-batches.ts";
import { type KeyContext, UNBOUND } from "../../../src/hosted/keys/key-context.ts";
import { Observer } from "../../../src/observe/observer.ts";
import type { Router } from "../../../src/upstream/engine/router.ts";
import { MemoryBudget } from "../../../src/upstream/memory-budget.ts";
import { ProfileRegistry } from "../../../src/upstream/registry/profile-registry.ts";
import { TimerWheel } from "../../../src/upstream/timer-wheel.ts";
import { TargetResolver } from "../../../src/web/rpc/target.ts";
import { type CallParts, SocketCalls } from "../../../src/web/socket/calls.ts";
import { NO_WISHES } from "../../fakes/caller-view.ts";
import { NO_FILTERS } from "../../fakes/filters.ts";
import { resultOutcome } from "../../fakes/outcome.ts";
import { WHOLE_RANGES } from "../../fakes/providers.ts";
import { fakeRoutedCall } from "../../fakes/routed-call.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";
import { configOf, configText } from "../../fakes/service.ts";

/** What the socket was told about one request. */
export interface Told {
  readonly id: unknown;
  readonly result?: unknown;
  readonly error?: {
    readonly code: number;
    readonly data: {
      readonly code: string;
      readonly retryable: boolean;
      readonly retry_after_ms?: number;
    };
  };
}

/** A call that was routed, with its parameter. */
export interface HeldCall {
  readonly param: unknown;
  readonly answer: () => void;
  isCancelled: boolean;
}

/** Limits of the socket; the deadline of `eth_gasPrice` is a second, of all others ten. */
export interface CallsSettings {
  readonly limits?: Record<string, unknown>;
  /** The rate of the caller's key; absent = a caller without a key. */
  readonly rate?: RateLimitSize;
}

/** One socket without requests. */
export function callsFixture({ limits = {}, rate }: CallsSettings = {}) {
  const runtime = simulatedWorld(7);
  const timerWheel = new TimerWheel(runtime);
  const config = configOf(configText([{ id: "a", url: "http://a.test" }], { limits }));
  const limitsNow = { ...config.limits };
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
  const budget = new MemoryBudget(() => limitsNow);
  const batches = new WaitingBatches();
  const activity = { active: 0, lastMs: 0, draining: false, ended: false };
  const held: HeldCall[] = [];
  /** Parameters of the calls that were routed, in order, and when. */
  const routed: unknown[] = [];
  const routedAtMs: number[] = [];
  const messages: string[] = [];
  const grants = { given: 0, ended: 0 };
  const state = { isEchoing: false, isFull: false, closed: null as number | null };
  const router: Pick<Router, "route"> = {
    route(request, done) {
      const [param]: readonly unknown[] = JSON.parse(request.call.body.toString()).params;
      routed.push(param);
      routedAtMs.push(runtime.now());
      const route = fakeRoutedCall({
        request,
        startedAtMs: runtime.now(),
        cancel() {
          one.isCancelled = true;
          held.splice(held.indexOf(one), 1);
          return { sent: true, countedAsTimeout: false };
        },
      });
      const one: HeldCall = {
        param,
        isCancelled: false,
        answer() {
          held.splice(held.indexOf(one), 1);
          done({ outcome: resultOutcome(JSON.stringify(param)), source: route.source }, route);
        },
      };
      held.push(one);
      if (state.isEchoing) one.answer();
      return route;
    },
  };
  const [service] = customServiceTiers("team");
  assert.ok(service !== undefined);
  const endGrant = (): null => {
    grants.ended++;
    return null;
  };
  function admit(keyContext: KeyContext, size: RateLimitSize): object {
    assert.ok(service !== undefined);
    const fault = takeToken(keyContext.account, service.rateLimit, { size, nowMs: runtime.now() });
    if (fault !== null) {
      const limit = { bucket: service.rateLimit, tokenMs: 1_000 / size.perSecond };
      return { kind: "refusal", fault, keyContext, limit };
    }
    grants.given++;
    const ends = { settle: endGrant, release: endGrant };
    return { kind: "grant", keyContext, service, strategy: "load-balanced", cu: 1, ...ends };
  }
  const admission =
    rate === undefined
      ? null
      : { batches, admit: (keyContext: KeyContext) => admit(keyContext, rate) };
  const parts = {
    rpc: {
      runtime,
      timerWheel,
      router,
      observer,
      resolver,
      admission: admission as Admission | null,
      budget,
      filters: NO_FILTERS,
      node: null,
      methods: () => methodTable([]),
      logs: () => WHOLE_RANGES,
      deadlineMs: ({ name }: { name: string }) => (name === "eth_gasPrice" ? 1_000 : 10_000),
      limits: limitsNow,
      consistency: () => "off",
    },
    activity,
    requestId: () => "r",
    subscriptions: { open: () => () => {} },
  } as unknown as CallParts;
  const connection = {
    isBehind: false,
    send(pieces: readonly Buffer[], settle?: (delivered: boolean) => void) {
      messages.push(Buffer.concat(pieces).toString());
      settle?.(true);
      return true;
    },
    notify: () => true,
    close(code: number) {
      state.closed = code;
    },
    holdReading(isFull: boolean) {
      state.isFull = isFull;
    },
  };
  const keyContext: KeyContext | null =
    rate === undefined
      ? null
      : {
          kind: "key",
          keyId: "k",
          account: { id: "acc", kind: "account", paid: null, own: null, fullAtMs: null },
          defaultProfile: "team",
          bounds: UNBOUND,
          openSockets: null,
          checked: 0,
          consistency: null,
        };
  const calls = new SocketCalls(parts, connection, {
    kind: "authenticated",
    target,
    keyContext,
    caller: { key: "test" },
    wishes: NO_WISHES,
  });
  return {
    runtime,
    /** The limits in force; a test may change them. */
    limits: limitsNow,
    calls,
    connection,
    activity,
    held,
    routed,
    routedAtMs,
    grants,
    state,
    keyContext,
    batches,
    budget,
    send: (message: unknown) => calls.serve(Buffer.from(JSON.stringify(message)), false),
    /** Every answer so far, those of a batch as one. */
    told: (): readonly (Told | readonly Told[])[] => messages.map((it) => JSON.parse(it)),
    /** What is held of memory, activity and timers. */
    leftovers: () => [budget.used, budget.callers, activity.active, timerWheel.size, batches.size],
  };
}

export const NOTHING_LEFT = [0, 0, 0, 0, 0];

/** A call whose parameter is its id. */
export function numbered(id: number, method = "eth_call") {
  return { jsonrpc: "2.0", id, method, params: [id] };
}
