// Heads and logs over HTTP, for chains and times without a socket: sources that ask for what a
// socket would push. Everything goes through the router, so that circuits, limits and deadlines
// hold; the newest block of a provider is asked for once, however many streams want it. Continuity
// is not kept here.

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

/** What polling works with. */
export interface PollsParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly http: Pick<Upstream, "send">;
  readonly limits: () => RouterLimits;
}

/** Two polls for each block, within these. */
const LEAST_INTERVAL_MS = 200;
const LONGEST_INTERVAL_MS = 4_000;
const POLLS_PER_BLOCK = 2;
/** Longest time for one question. */
const ASK_MS = 5_000;
const NEWEST = Buffer.from('["latest",false]');

/** Polls of nothing yet. */
export function createPolls({ runtime, timerWheel, http, limits }: PollsParts): Polls {
  const router = createRouter({ runtime, timerWheel, limits, upstreams: { http } });
  const polled = new WeakMap<RoutingState, Map<string, HeadPoll>>();
  const breakerBypass = new WeakMap<RoutingState, RoutingState>();

  function bypassOf(strict: RoutingState): RoutingState {
    const tracker = breakerBypass.get(strict) ?? new BreakerBypass(strict);
    breakerBypass.set(strict, tracker);
    return tracker;
  }

  function pollOf(asker: Asker): HeadPoll {
    const byProvider = polled.get(asker.tracker) ?? new Map<string, HeadPoll>();
    polled.set(asker.tracker, byProvider);
    const { id } = asker.provider;
    const known = byProvider.get(id);
    if (known !== undefined) return known;
    const poll = new HeadPoll(asker, timerWheel, () => byProvider.delete(id));
    byProvider.set(id, poll);
    return poll;
  }

  return {
    open(
      { tracker: strict, strategy, pin, avoid, breakerBypass: bypassesBreaker, deadlineMs },
      events,
    ) {
      const tracker = bypassesBreaker ? bypassOf(strict) : strict;
      const askerIn = (bound: Tracker, provider: Provider): Asker => ({
        router,
        tracker: bypassesBreaker ? bypassOf(bound) : bound,
        provider,
      });
      const source = new PolledSource(events, (bound, provider) =>
        source.begin(askerIn(bound, provider), pollOf(askerIn(bound, provider))),
      );
      const question = { method: "eth_getBlockByNumber", params: NEWEST, deadlineMs };
      const opening = ask(
        router,
        { tracker, strategy, pin, avoid },
        question,
        ({ outcome, source: from }, route) => {
          const provider = providerOf(from);
          const isHead =
            outcome.kind === "result" &&
            readHead(outcome.body.subarray(outcome.start, outcome.end)) !== null;
          if (provider === null || !isHead)
            return events.opened({ kind: "refused", outcome, route, lacking: provider });
          const asker = askerIn(strict, provider);
          source.begin(asker, pollOf(asker));
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

/** One provider, and how it is asked. */
interface Asker {
  readonly router: Router;
  readonly tracker: RoutingState;
  readonly provider: Provider;
}

interface Question {
  readonly method: string;
  /** The JSON array of parameters. */
  readonly params: Buffer;
  readonly deadlineMs: number;
}

type Where = Pick<RouteRequest, "tracker" | "strategy" | "pin" | "avoid">;

function ask(
  router: Router,
  where: Where,
  { method, params, deadlineMs }: Question,
  done: (answer: Answer, route: RoutedCall) => void,
): RoutedCall {
  const call = {
    methodName: method,
    method: methodOf(method),
    block: NO_BLOCK,
    ...writeRequest(method, params),
  };
  return router.route(
    { call, ...where, caller: SERVICE_CALLER, transport: "http", deadlineMs, mayStream: false },
    done,
  );
}

/** Asks one provider. `done` hears the raw JSON of the result, or null where there is none. */
function askOne(
  { router, tracker, provider }: Asker,
  question: Question,
  done: (result: Buffer | null) => void,
): RoutedCall {
  return ask(
    router,
    { tracker, strategy: "priority", pin: provider, avoid: null },
    question,
    ({ outcome }) => {
      // Copied: the buffer of an answer is much larger than most results, and results may be kept
      // for long.
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
  /** Begins anew with a provider. */
  readonly #moveTo: Source["follow"];
  readonly #asks = new Set<RoutedCall>();
  #asker: Asker | null = null;
  #leave: () => void = () => {};
  #closed = false;

  constructor(events: SourceEvents, moveTo: Source["follow"]) {
    this.#events = events;
    this.#moveTo = moveTo;
  }

  begin(asker: Asker, poll: HeadPoll): void {
    const leaveLast = this.#leave;
    this.#asker = asker;
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
    for (const route of this.#asks) route.cancel();
    this.#asks.clear();
  }

  #ask(method: string, params: string): Promise<Buffer | null> {
    const asker = this.#asker;
    return new Promise((resolve) => {
      if (this.#closed || asker === null) return;
      let route: RoutedCall | null = null;
      let over = false;
      route = askOne(
        asker,
        { method, params: Buffer.from(params), deadlineMs: ASK_MS },
        (result) => {
          over = true;
          if (route !== null) this.#asks.delete(route);
          resolve(result);
        },
      );
      if (!over) this.#asks.add(route);
    });
  }
}

interface PollListener {
  /** A head in the shape of pushed ones, other than the last. */
  head(raw: Buffer): void;
  /** The provider has failed to answer; nothing more is heard. */
  lost(): void;
}

/** The newest block of one provider, asked for again and again while somebody wants it. */
class HeadPoll {
  readonly #asker: Asker;
  readonly #timerWheel: TimerWheel;
  readonly #over: () => void;
  readonly #listeners = new Set<PollListener>();
  #timer: Timer | null = null;
  #route: RoutedCall | null = null;
  #last = "";

  constructor(asker: Asker, timerWheel: TimerWheel, over: () => void) {
    this.#asker = asker;
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
    const { blockTimeMs } = this.#asker.tracker.set.chain;
    const intervalMs = Math.min(
      LONGEST_INTERVAL_MS,
      Math.max(LEAST_INTERVAL_MS, blockTimeMs / POLLS_PER_BLOCK),
    );
    this.#timer = this.#timerWheel.set(intervalMs, () => this.#poll());
  }

  #poll(): void {
    const question = { method: "eth_getBlockByNumber", params: NEWEST, deadlineMs: ASK_MS };
    let over = false;
    const route = askOne(this.#asker, question, (result) => {
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
