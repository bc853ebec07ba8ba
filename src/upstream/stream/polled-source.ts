// Heads and logs over HTTP, for chains and times without a socket: polls for what a socket would
// push. Every query passes the router, so circuits, rate limits and deadlines apply. The newest
// block of a provider is polled once, however many streams need it. Keeps no continuity.

import type { Provider } from "../../core/provider/profile.ts";
import { SERVICE_CALLER } from "../../core/provider/silence.ts";
import { providerOf } from "../../core/routing/answer-source.ts";
import { NO_BLOCK } from "../../core/rpc/call.ts";
import { methodOf } from "../../core/rpc/method.ts";
import { writeRequest } from "../../core/rpc/wire-request.ts";
import { type Head, inLiveShape, readHead } from "../../core/stream/chain-event.ts";
import type { Runtime } from "../../runtime.ts";
import type { Answer } from "../engine/answer.ts";
import type { RouteRequest } from "../engine/route-request.ts";
import { createRouter, type RoutedCall, type Router, type RouterLimits } from "../engine/router.ts";
import type { RoutingState, Tracker } from "../health/tracker.ts";
import type { Timer, TimerWheel } from "../timer-wheel.ts";
import type { Upstream } from "../transport.ts";
import { BreakerBypass } from "./breaker-bypass.ts";
import type { Polls, Source, SourceEvents } from "./source.ts";

/** Dependencies of polling. */
export interface PollsParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly http: Pick<Upstream, "send">;
  readonly limits: () => RouterLimits;
}

/** Polling interval: `POLLS_PER_BLOCK` polls a block time, within these bounds. */
const LEAST_INTERVAL_MS = 200;
const LONGEST_INTERVAL_MS = 4_000;
const POLLS_PER_BLOCK = 2;
/** Deadline of one query. */
const ASK_MS = 5_000;
const NEWEST = Buffer.from('["latest",false]');

/** Creates polled sources; nothing is polled before the first one opens. */
export function createPolls({ runtime, timerWheel, http, limits }: PollsParts): Polls {
  const router = createRouter({ runtime, timerWheel, limits, upstreams: { http } });
  const polls = new WeakMap<RoutingState, Map<string, HeadPoll>>();
  const breakerBypass = new WeakMap<RoutingState, RoutingState>();

  function bypassOf(strict: RoutingState): RoutingState {
    const tracker = breakerBypass.get(strict) ?? new BreakerBypass(strict);
    breakerBypass.set(strict, tracker);
    return tracker;
  }

  function pollOf(polled: PolledProvider): HeadPoll {
    const byProvider = polls.get(polled.tracker) ?? new Map<string, HeadPoll>();
    polls.set(polled.tracker, byProvider);
    const { id } = polled.provider;
    const known = byProvider.get(id);
    if (known !== undefined) return known;
    const poll = new HeadPoll(polled, timerWheel, () => byProvider.delete(id));
    byProvider.set(id, poll);
    return poll;
  }

  return {
    open(
      { tracker: strict, strategy, pin, avoid, breakerBypass: bypassesBreaker, deadlineMs },
      events,
    ) {
      const tracker = bypassesBreaker ? bypassOf(strict) : strict;
      const polledIn = (bound: Tracker, provider: Provider): PolledProvider => ({
        router,
        tracker: bypassesBreaker ? bypassOf(bound) : bound,
        provider,
      });
      const source = new PolledSource(events, (bound, provider) =>
        source.begin(polledIn(bound, provider), pollOf(polledIn(bound, provider))),
      );
      const query = { method: "eth_getBlockByNumber", params: NEWEST, deadlineMs };
      const opening = ask(
        router,
        { tracker, strategy, pin, avoid },
        query,
        ({ outcome, source: from }, route) => {
          const provider = providerOf(from);
          const isHead =
            outcome.kind === "result" &&
            readHead(outcome.body.subarray(outcome.start, outcome.end)) !== null;
          if (provider === null || !isHead)
            return events.opened({ kind: "refused", outcome, route, lacking: provider });
          const polled = polledIn(strict, provider);
          source.begin(polled, pollOf(polled));
          events.opened({ kind: "open", source: source.of(provider), route });
        },
      );
      return () => {
        opening.cancel();
        source.close();
      };
    },
  };
}

/** One provider and the router that queries it. */
interface PolledProvider {
  readonly router: Router;
  readonly tracker: RoutingState;
  readonly provider: Provider;
}

interface PollQuery {
  readonly method: string;
  /** The JSON array of parameters. */
  readonly params: Buffer;
  readonly deadlineMs: number;
}

type ProviderChoice = Pick<RouteRequest, "tracker" | "strategy" | "pin" | "avoid">;

function ask(
  router: Router,
  choice: ProviderChoice,
  { method, params, deadlineMs }: PollQuery,
  done: (answer: Answer, route: RoutedCall) => void,
): RoutedCall {
  const call = {
    methodName: method,
    method: methodOf(method),
    block: NO_BLOCK,
    ...writeRequest(method, params),
  };
  return router.route(
    { call, ...choice, caller: SERVICE_CALLER, transport: "http", deadlineMs, mayStream: false },
    done,
  );
}

/**
 * Queries one provider. `done` gets the raw JSON of the result, or null when the provider gave
 * none.
 */
function askOne(
  { router, tracker, provider }: PolledProvider,
  query: PollQuery,
  done: (result: Buffer | null) => void,
): RoutedCall {
  return ask(
    router,
    { tracker, strategy: "priority", pin: provider, avoid: null },
    query,
    ({ outcome }) => {
      // Copied: the buffer of an answer is much larger than most results, and results may be kept
      // for a long time.
      done(
        outcome.kind === "result"
          ? Buffer.from(outcome.body.subarray(outcome.start, outcome.end))
          : null,
      );
    },
  );
}

/** One provider as the source of one stream. */
class PolledSource {
  readonly #events: SourceEvents;
  /** Starts again with a provider as it is configured now. */
  readonly #moveTo: Source["follow"];
  readonly #pending = new Set<RoutedCall>();
  #polled: PolledProvider | null = null;
  #leave: () => void = () => {};
  #closed = false;

  constructor(events: SourceEvents, moveTo: Source["follow"]) {
    this.#events = events;
    this.#moveTo = moveTo;
  }

  begin(polled: PolledProvider, poll: HeadPoll): void {
    const leaveLast = this.#leave;
    this.#polled = polled;
    this.#leave = poll.join({
      head: (raw) => this.#events.head(raw),
      lost: () => {
        this.close();
        this.#events.lost("it did not answer a poll");
      },
    });
    leaveLast();
  }

  of(provider: Provider): Source {
    const follow: Source["follow"] = (tracker, now) => {
      if (!this.#closed) this.#moveTo(tracker, now);
    };
    return {
      provider,
      pushesLogs: false,
      ask: (method, params) => this.#ask(method, params),
      follow,
      close: () => this.close(),
    };
  }

  close(): void {
    this.#closed = true;
    this.#leave();
    for (const route of this.#pending) route.cancel();
    this.#pending.clear();
  }

  #ask(method: string, params: string): Promise<Buffer | null> {
    const polled = this.#polled;
    return new Promise((resolve) => {
      if (this.#closed || polled === null) return;
      let route: RoutedCall | null = null;
      let over = false;
      route = askOne(
        polled,
        { method, params: Buffer.from(params), deadlineMs: ASK_MS },
        (result) => {
          over = true;
          if (route !== null) this.#pending.delete(route);
          resolve(result);
        },
      );
      if (!over) this.#pending.add(route);
    });
  }
}

interface PollListener {
  /** A new head, in the shape of pushed headers. */
  head(raw: Buffer): void;
  /** The provider failed to answer; no further call follows. */
  lost(): void;
}

/** Polls the newest block of one provider while it has listeners. */
class HeadPoll {
  readonly #polled: PolledProvider;
  readonly #timerWheel: TimerWheel;
  readonly #over: () => void;
  readonly #listeners = new Set<PollListener>();
  #timer: Timer | null = null;
  #route: RoutedCall | null = null;
  #last = "";

  constructor(polled: PolledProvider, timerWheel: TimerWheel, over: () => void) {
    this.#polled = polled;
    this.#timerWheel = timerWheel;
    this.#over = over;
  }

  join(listener: PollListener): () => void {
    this.#listeners.add(listener);
    if (this.#listeners.size === 1) this.#wait();
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#end();
    };
  }

  #wait(): void {
    const { blockTimeMs } = this.#polled.tracker.set.chain;
    const intervalMs = Math.min(
      LONGEST_INTERVAL_MS,
      Math.max(LEAST_INTERVAL_MS, blockTimeMs / POLLS_PER_BLOCK),
    );
    this.#timer = this.#timerWheel.set(intervalMs, () => this.#poll());
  }

  #poll(): void {
    const query = { method: "eth_getBlockByNumber", params: NEWEST, deadlineMs: ASK_MS };
    let over = false;
    const route = askOne(this.#polled, query, (result) => {
      over = true;
      this.#route = null;
      const head = result === null ? null : readHead(result);
      if (head === null) this.#lose();
      else this.#hear(head);
    });
    if (!over) this.#route = route;
  }

  #hear(head: Head): void {
    this.#wait();
    if (head.hash === this.#last) return;
    this.#last = head.hash;
    const raw = inLiveShape(head.raw, null);
    for (const listener of [...this.#listeners])
      if (this.#listeners.has(listener)) listener.head(raw);
  }

  #lose(): void {
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    this.#end();
    for (const listener of listeners) listener.lost();
  }

  #end(): void {
    this.#timer?.clear();
    this.#route?.cancel();
    this.#over();
  }
}
