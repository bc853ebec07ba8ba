// Subscriptions over three simulated providers, and subscribers that hold what they hear against
// the chain. Knows no test.
import assert from "node:assert/strict";
import type { Provider, ProviderSet } from "../../src/core/provider/profile.ts";
import type { Strategy } from "../../src/core/routing/strategy.ts";
import { readSubscription } from "../../src/core/stream/subscription.ts";
import type { Outcome } from "../../src/upstream/engine/answer.ts";
import { Router } from "../../src/upstream/engine/router.ts";
import { Tracker } from "../../src/upstream/health/tracker.ts";
import type { StreamCaller } from "../../src/upstream/stream/subscriber.ts";
import { Subscriptions } from "../../src/upstream/stream/subscriptions.ts";
import { TimerWheel } from "../../src/upstream/timer-wheel.ts";
import { type Audience, chainAudience } from "../fakes/audience.ts";
import { type ChainBlock, type FakeChain, fakeChain } from "../fakes/chain.ts";
import { fakeProvider, fakeSet, SELECTION } from "../fakes/providers.ts";
import { type SimulatedWorld, seededRandom, simulatedWorld } from "../fakes/runtime.ts";
import { type FakeNode, fakeSockets } from "../fakes/sockets.ts";

export interface StreamFixture {
  readonly runtime: SimulatedWorld;
  readonly chain: FakeChain;
  readonly nodes: readonly [FakeNode, FakeNode, FakeNode];
  readonly providers: readonly [Provider, Provider, Provider];
  readonly set: ProviderSet;
  readonly tracker: Tracker;
  readonly subscriptions: Subscriptions;
  /** Mines, and every node follows. */
  mine(blocks?: number): ChainBlock;
  pass(ms: number): Promise<void>;
  open(params: unknown, options?: OpenOptions): Ear;
}

export interface OpenOptions {
  readonly pin?: Provider;
  readonly deadlineMs?: number;
  /** What it is told is not held against the chain. */
  readonly unchecked?: boolean;
  readonly caller?: StreamCaller | null;
  readonly strategy?: Strategy;
}

/** What one subscriber has heard. */
export interface Ear {
  readonly audience: Audience;
  state: "waiting" | "started" | "refused" | "ended" | "left";
  outcome: Outcome | null;
  reason: string;
  events: number;
  /** Blocks, by their hashes, of which it heard that nobody had confirmed their logs, and why. */
  readonly unconfirmed: Map<string, string>;
  leave(): void;
}

/**
 * Three providers of falling priority; `polls` = they may be polled over HTTP, which lives and dies
 * with their sockets here.
 */
export function createStreamFixture(
  overrides: Partial<ProviderSet> = {},
  polls = false,
  warn: (line: string) => void = () => {},
): StreamFixture {
  const runtime = simulatedWorld(1);
  const timerWheel = new TimerWheel(runtime);
  const chain = fakeChain(seededRandom(2));
  const providers = [
    fakeProvider(0, { priority: 0 }),
    fakeProvider(1, { priority: 1 }),
    fakeProvider(2, { priority: 2 }),
  ] as const;
  const sockets = fakeSockets(runtime, chain, providers);
  const nodes = [
    sockets.node(providers[0]),
    sockets.node(providers[1]),
    sockets.node(providers[2]),
  ] as const;
  const about = { chainId: 1, chainName: "sim", name: "Sim", aliases: [], blockTimeMs: 1_000 };
  const set = fakeSet(providers, {
    chain: about,
    newHeadsTimeoutMs: 600_000,
    maxBackfillBlocks: 10,
    backfillTimeoutMs: 20_000,
    ...overrides,
  });
  const tracker = new Tracker(set, runtime, SELECTION);
  const router = new Router({
    runtime,
    timerWheel,
    upstreams: polls ? { ws: sockets, http: sockets } : { ws: sockets },
    limits: () => ({ maxAttempts: 3, firstAttemptShare: 0.5 }),
    hedge: () => null,
  });
  const subscriptions = new Subscriptions({
    runtime,
    timerWheel,
    router,
    sockets,
    log: { warn: (_, line) => warn(line) },
  });
  return {
    runtime,
    chain,
    nodes,
    providers,
    set,
    tracker,
    subscriptions,
    mine(blocks = 1) {
      for (let n = 0; n < blocks; n++) {
        chain.mine();
        for (const node of nodes) node.follow(chain.tip());
      }
      return chain.tip();
    },
    async pass(ms) {
      for (const endMs = runtime.now() + ms; runtime.now() < endMs; ) {
        runtime.advance(Math.min(10, endMs - runtime.now()));
        await new Promise(setImmediate);
      }
    },
    open: (params, options = {}) => listen({ chain, tracker, subscriptions }, params, options),
  };
}

function listen(
  { chain, tracker, subscriptions }: Pick<StreamFixture, "chain" | "tracker" | "subscriptions">,
  params: unknown,
  { pin, deadlineMs = 5_000, unchecked = false, caller = null, strategy = "priority" }: OpenOptions,
): Ear {
  const subscription = readSubscription(params);
  assert.ok(subscription.kind !== "invalid");
  const height = (): number =>
    subscriptions
      .reports()
      .find(
        ({ kind, pinned, height: known }) =>
          kind === subscription.kind && pinned === (pin !== undefined) && known !== null,
      )?.height ?? 0;
  const audience = chainAudience({
    chain,
    subscription,
    height,
    fail: (what) => assert.fail(what),
  });
  const ear: Ear = {
    audience,
    state: "waiting",
    outcome: null,
    reason: "",
    events: 0,
    unconfirmed: new Map(),
    leave: () => {},
  };
  const left = subscriptions.open(
    {
      profile: "team",
      tracker,
      subscription,
      strategy,
      pin: pin ?? null,
      caller,
      deadlineMs,
    },
    {
      started() {
        ear.state = "started";
        audience.started();
      },
      refused(outcome) {
        ear.state = "refused";
        ear.outcome = outcome;
      },
      unconfirmed({ hash }, why) {
        ear.unconfirmed.set(hash, why);
      },
      events(results) {
        ear.events += results.length;
        if (!unchecked) audience.events(results);
      },
      ended(reason) {
        ear.state = "ended";
        ear.reason = reason;
        audience.over();
      },
    },
  );
  ear.leave = () => {
    ear.state = "left";
    audience.over();
    left();
  };
  return ear;
}
