// Heads and logs over HTTP, for chains and times without a socket: polls for what a socket would
// push. Every query passes the router, so circuits, rate limits and deadlines apply. The newest
// block of a provider is polled once, however many streams need it. Keeps no continuity.
import { fault } from "../../core/faults/rpc-fault.ts";
import type { Provider } from "../../core/provider/profile.ts";
import { providerOf } from "../../core/routing/answer-source.ts";
import { type Head, inLiveShape, readHead } from "../../core/stream/chain-event.ts";
import type { Outcome } from "../engine/answer.ts";
import type { RoutedCall, Router } from "../engine/router.ts";
import type { Tracker } from "../health/tracker.ts";
import type { Timer } from "../timer-wheel.ts";
import {
  OpenQueries,
  type ProviderQuery,
  queryProvider,
  routeServiceCall,
} from "./service-call.ts";
import type { Source, SourceEvents, SourceRequest, StreamParts } from "./source.ts";

/** What polls work with. */
type PollsParts = Pick<StreamParts, "timerWheel" | "router">;

/** Polling interval: `POLLS_PER_BLOCK` polls a block time, within these bounds. */
const LEAST_INTERVAL_MS = 200;
const LONGEST_INTERVAL_MS = 4_000;
const POLLS_PER_BLOCK = 2;
/** Deadline of one query. */
const ASK_MS = 5_000;
const NEWEST = {
  method: "eth_getBlockByNumber",
  params: '["latest",false]',
  deadlineMs: ASK_MS,
} as const;

/** Opens polled sources; nothing is polled before the first one opens. */
export class Polls {
  readonly #parts: PollsParts;
  readonly #polls = new WeakMap<Tracker, Map<string, HeadPoll>>();

  constructor(parts: PollsParts) {
    this.#parts = parts;
  }

  /**
   * Finds a provider that answers over HTTP. Returns the function that cancels; after it no event
   * follows.
   */
  open({ subscription: _, ...whom }: SourceRequest, events: SourceEvents): () => void {
    const { router } = this.#parts;
    const { tracker, counts } = whom;
    let opened: PolledSource | null = null;
    const opening = routeServiceCall(
      router,
      { ...NEWEST, ...whom, transport: "http" },
      ({ outcome, source: from }, route) => {
        const provider = providerOf(from);
        const isHead =
          outcome.kind === "result" &&
          readHead(outcome.body.subarray(outcome.start, outcome.end)) !== null;
        if (provider === null || !isHead) {
          const refused = { outcome: refusalOf(outcome, route), route, lacking: provider };
          return events.opened({ kind: "refused", ...refused });
        }
        const pollOf = (polled: PolledProvider): HeadPoll => this.#pollOf(polled);
        const channel = { provider, transport: "http" } as const;
        opened = new PolledSource(router, events, pollOf, { tracker, channel, counts });
        events.opened({ kind: "open", source: opened, route });
      },
    );
    return () => {
      opening.cancel();
      opened?.close();
    };
  }

  #pollOf(polled: PolledProvider): HeadPoll {
    const byProvider = this.#polls.get(polled.tracker) ?? new Map<string, HeadPoll>();
    this.#polls.set(polled.tracker, byProvider);
    const id = `${polled.counts} ${polled.channel.provider.id}`;
    const known = byProvider.get(id);
    if (known !== undefined) return known;
    const poll = new HeadPoll(this.#parts, polled, () => byProvider.delete(id));
    byProvider.set(id, poll);
    return poll;
  }
}

/** What a provider said of the newest block is no answer to what the caller asked for. */
function refusalOf(outcome: Outcome, { traces }: RoutedCall): Outcome {
  if (outcome.kind === "fault") return outcome;
  const details = { reason: "all_providers_failed", upstream_attempts: traces.length };
  const message = "no provider could tell its newest block, from which to go on";
  return { kind: "fault", fault: fault("unavailable", message, { status: 200, details }) };
}

/** A provider that is polled, and where its health is kept. */
type PolledProvider = Pick<ProviderQuery, "tracker" | "channel" | "counts">;

/** One provider as the source of one stream. */
class PolledSource implements Source {
  readonly provider: Provider;
  readonly pushesLogs = false;
  readonly #events: SourceEvents;
  readonly #pollOf: (polled: PolledProvider) => HeadPoll;
  readonly #queries: OpenQueries;
  #polled: PolledProvider;
  #leave: () => void;
  #closed = false;

  constructor(
    router: Pick<Router, "route">,
    events: SourceEvents,
    pollOf: (polled: PolledProvider) => HeadPoll,
    polled: PolledProvider,
  ) {
    this.provider = polled.channel.provider;
    this.#queries = new OpenQueries(router);
    this.#events = events;
    this.#pollOf = pollOf;
    this.#polled = polled;
    this.#leave = this.#begin();
  }

  query(method: string, params: string): Promise<Buffer | null> {
    return this.#queries.run({ ...this.#polled, method, params, deadlineMs: ASK_MS });
  }

  follow(tracker: Tracker, provider: Provider): void {
    if (this.#closed) return;
    const leaveLast = this.#leave;
    this.#polled = { ...this.#polled, tracker, channel: { provider, transport: "http" } };
    this.#leave = this.#begin();
    leaveLast();
  }

  #begin(): () => void {
    return this.#pollOf(this.#polled).join({
      head: (raw) => this.#events.head(raw),
      lost: () => {
        this.close();
        this.#events.lost();
      },
    });
  }

  close(): void {
    this.#closed = true;
    this.#leave();
    this.#queries.close();
  }
}

/** Hears a new head, in the shape of pushed headers, and once that the provider did not answer. */
type PollListener = Pick<SourceEvents, "head" | "lost">;

/** Polls the newest block of one provider while it has listeners. */
class HeadPoll {
  readonly #parts: PollsParts;
  readonly #polled: PolledProvider;
  readonly #over: () => void;
  readonly #listeners = new Set<PollListener>();
  #timer: Timer | null = null;
  #route: RoutedCall | null = null;
  #last = "";

  constructor(parts: PollsParts, polled: PolledProvider, over: () => void) {
    this.#parts = parts;
    this.#polled = polled;
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
    this.#timer = this.#parts.timerWheel.set(intervalMs, () => this.#poll());
  }

  #poll(): void {
    let over = false;
    const route = queryProvider(this.#parts.router, { ...this.#polled, ...NEWEST }, (result) => {
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
