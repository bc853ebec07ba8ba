// Subscriptions at providers, once for all workers of a service: for each provider set one worker
// subscribes, and sends every event once to each worker that has joined. Where that worker cannot
// serve, a worker subscribes for itself. A lost worker or message ends what was joined, as a lost
// socket would: continuity is for those who joined.
import type { Provider } from "../../core/provider/profile.ts";
import type { Bus, QuestionTopic, WorkerId } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";
import type { ProfileRegistry } from "../registry/profile-registry.ts";
import type { Dispatch, Sockets, SubscriptionListener } from "../transport.ts";

/** Sockets, as far as streams use them. */
export type StreamSockets = Pick<Sockets, "subscribe" | "report">;

/** Dependencies. */
export interface SharedSocketsParts {
  readonly bus: Bus;
  readonly runtime: Pick<Runtime, "after" | "atTurnEnd">;
  /** Those of this worker. */
  readonly sockets: StreamSockets;
  /** The provider sets that this worker serves. */
  readonly registry: Pick<ProfileRegistry, "served" | "trackersByKey">;
}

/** Shares subscriptions with the other workers on a bus. */
export function shareSockets(parts: SharedSocketsParts): StreamSockets {
  const feeds = new JoinedFeeds(parts);
  const keys = new WeakMap<Provider, string>();
  serveFeeds(parts);

  /** The set of a provider, as all workers name it; null = it is not served any more. */
  function keyOf(provider: Provider): string | null {
    const known = keys.get(provider);
    if (known !== undefined) return known;
    for (const [key, { set }] of parts.registry.trackersByKey())
      if (set.providers.includes(provider)) keys.set(provider, key);
    return keys.get(provider) ?? null;
  }

  return {
    report: (provider) => parts.sockets.report(provider),
    subscribe(provider, params, listener) {
      const key = keyOf(provider);
      const owner = key === null ? parts.bus.self : parts.bus.ownerOf(key);
      return key === null || owner === parts.bus.self
        ? parts.sockets.subscribe(provider, params, listener)
        : feeds.join(owner, { key, provider, params }, listener);
    },
  };
}

/** How long the other worker may take to subscribe, and to take events. */
const JOIN_MS = 10_000;
const EVENTS_MS = 5_000;
/** How often a worker asks whether what it joined is still there. */
const CHECK_MS = 10_000;
/** Most subscriptions of one worker at another, and most events that wait for a slow worker. */
const MAX_FEEDS = 20_000;
const MAX_WAITING = 20_000;
const MAX_WAITING_BYTES = 33_554_432;

/** A provider of a set that is served here; null = there is none of that id with a socket. */
function providerOf(
  { registry }: SharedSocketsParts,
  { key, provider: id }: JoinMessage,
): Provider | null {
  const at = key.lastIndexOf(" ");
  const tracker = registry.served(key.slice(0, at))?.trackers.get(key.slice(at + 1));
  const found = tracker?.set.providers.find((provider) => provider.id === id);
  return found === undefined || found.wsUrl === null ? null : found;
}

/** A subscription at a provider of a set. */
type FeedPlace = Pick<JoinMessage, "key" | "params"> & { readonly provider: Provider };

interface JoinedFeed {
  readonly owner: WorkerId;
  readonly listener: SubscriptionListener;
  isStarted: boolean;
}

/** What this worker has joined at others. */
class JoinedFeeds {
  readonly #parts: SharedSocketsParts;
  readonly #feeds = new Map<number, JoinedFeed>();
  #last = 0;
  #isChecking = false;

  constructor(parts: SharedSocketsParts) {
    this.#parts = parts;
    parts.bus.serve(EVENTS, (message, from) => this.#receive(message, from));
    parts.bus.onWorkers(() => this.#workersChanged());
  }

  /** Joins at the owner of the set; where that cannot serve, this worker subscribes itself. */
  join(owner: WorkerId, at: FeedPlace, listener: SubscriptionListener): Dispatch {
    const { provider, params } = at;
    const id = ++this.#last;
    const feed: JoinedFeed = { owner, listener, isStarted: false };
    this.#feeds.set(id, feed);
    let here: Dispatch | null = null;
    const message = { ...at, provider: provider.id, feed: id };
    void this.#request(owner, JOIN, message, JOIN_MS).then((isJoined) => {
      if (this.#feeds.get(id) !== feed) return;
      if (isJoined === true) return this.#start(feed);
      this.#feeds.delete(id);
      if (feed.isStarted) listener.lost("the worker that is subscribed does not answer");
      else here = this.#parts.sockets.subscribe(provider, params, listener);
    });
    return {
      sent: true,
      cancel: () => {
        here?.cancel();
        if (this.#feeds.delete(id)) void this.#request(owner, LEAVE, id, EVENTS_MS);
      },
    };
  }

  #start(feed: JoinedFeed): void {
    if (feed.isStarted) return;
    feed.isStarted = true;
    this.#checkLater();
    feed.listener.started();
  }

  /** Takes events; returns the feeds that are not known here. */
  #receive({ events, lost }: EventsMessage, from: WorkerId): readonly number[] {
    const unknown = new Set<number>();
    for (const [id, raw] of events) {
      const feed = this.#feeds.get(id);
      if (feed?.owner !== from) {
        unknown.add(id);
        continue;
      }
      this.#start(feed);
      // It may have been left when it began.
      // Copied: an event may be kept for long, and would keep the whole message.
      if (this.#feeds.has(id)) feed.listener.event(Buffer.from(raw));
    }
    for (const id of lost) {
      const feed = this.#feeds.get(id);
      // Its end may be handled before the answer that it has begun.
      if (feed?.owner === from) this.#start(feed);
      this.#lose(id, from, "the provider was lost");
    }
    return [...unknown];
  }

  #lose(id: number, owner: WorkerId, reason: string): void {
    const feed = this.#feeds.get(id);
    // One that has not begun hears the answer to its question.
    if (feed?.owner !== owner || !feed.isStarted) return;
    this.#feeds.delete(id);
    feed.listener.lost(reason);
  }

  #workersChanged(): void {
    const serving = this.#parts.bus.workers();
    for (const [id, { owner }] of [...this.#feeds])
      if (!serving.includes(owner)) this.#lose(id, owner, "the worker that was subscribed is gone");
    // Others may have passed over this one while it did not answer.
    this.#check();
  }

  #checkLater(): void {
    if (this.#isChecking) return;
    this.#isChecking = true;
    this.#parts.runtime.after(CHECK_MS, () => {
      this.#isChecking = false;
      if (this.#feeds.size === 0) return;
      this.#checkLater();
      this.#check();
    });
  }

  #check(): void {
    const byOwner = Map.groupBy(
      [...this.#feeds].filter(([, { isStarted }]) => isStarted),
      ([, { owner }]) => owner,
    );
    for (const [owner, feeds] of byOwner) {
      const ids = feeds.map(([id]) => id);
      void this.#request(owner, CHECK, ids, EVENTS_MS).then((gone) => {
        for (const id of gone ?? []) this.#lose(id, owner, "the subscription ended elsewhere");
      });
    }
  }

  async #request<M, R>(
    to: WorkerId,
    topic: QuestionTopic<M, R>,
    message: M,
    timeoutMs: number,
  ): Promise<R | null> {
    const reply = await this.#parts.bus.request(to, { topic, message, timeoutMs });
    return reply.ok ? reply.value : null;
  }
}

/** Subscribes for other workers. */
function serveFeeds(parts: SharedSocketsParts): void {
  const { bus } = parts;
  const outlets = new Map<WorkerId, Outlet>();

  bus.serve(JOIN, (message, from) => {
    const outlet = outlets.get(from) ?? new Outlet(parts, from, () => outlets.delete(from));
    outlets.set(from, outlet);
    return outlet.join(message);
  });
  bus.serve(LEAVE, (feed, from) => {
    outlets.get(from)?.leave(feed);
    return true;
  });
  bus.serve(CHECK, (feeds, from) => feeds.filter((id) => outlets.get(from)?.has(id) !== true));
  bus.onWorkers(() => {
    const serving = bus.workers();
    for (const [id, outlet] of [...outlets]) if (!serving.includes(id)) outlet.close();
  });
}

/** The subscriptions of another worker, and the events that wait to be sent there. */
class Outlet {
  readonly #parts: SharedSocketsParts;
  readonly #worker: WorkerId;
  readonly #onClose: () => void;
  readonly #feeds = new Map<number, { dispatch: Dispatch | null; readonly refuse: () => void }>();
  #events: (readonly [feed: number, raw: Buffer])[] = [];
  #bytes = 0;
  #lost: number[] = [];
  #isSending = false;
  #isClosed = false;

  constructor(parts: SharedSocketsParts, worker: WorkerId, onClose: () => void) {
    this.#parts = parts;
    this.#worker = worker;
    this.#onClose = onClose;
  }

  has(feed: number): boolean {
    return this.#feeds.has(feed);
  }

  /** Resolves with whether the worker has joined. */
  join(message: JoinMessage): Promise<boolean> {
    const { feed, params } = message;
    const provider = providerOf(this.#parts, message);
    if (provider === null || this.#feeds.size >= MAX_FEEDS || this.#feeds.has(feed))
      return Promise.resolve(false);
    return new Promise((resolve) => {
      const joined = { dispatch: null as Dispatch | null, refuse: () => resolve(false) };
      this.#feeds.set(feed, joined);
      joined.dispatch = this.#parts.sockets.subscribe(provider, params, {
        started: () => resolve(true),
        refused: () => {
          this.#feeds.delete(feed);
          resolve(false);
        },
        event: (raw) => this.#put(feed, raw),
        lost: () => this.#lose(feed),
      });
      if (!this.#feeds.has(feed)) joined.dispatch.cancel();
    });
  }

  leave(feed: number): void {
    const joined = this.#feeds.get(feed);
    this.#feeds.delete(feed);
    joined?.dispatch?.cancel();
    joined?.refuse();
  }

  /** Ends all subscriptions of the worker. */
  close(): void {
    this.#isClosed = true;
    this.#drop();
    this.#onClose();
  }

  #put(feed: number, raw: Buffer): void {
    this.#events.push([feed, raw]);
    this.#bytes += raw.length;
    if (this.#events.length > MAX_WAITING || this.#bytes > MAX_WAITING_BYTES) {
      this.#lost.push(...this.#feeds.keys());
      this.#drop();
    }
    this.#sendSoon();
  }

  #lose(feed: number): void {
    if (!this.#feeds.delete(feed)) return;
    this.#lost.push(feed);
    this.#sendSoon();
  }

  #drop(): void {
    for (const feed of [...this.#feeds.keys()]) this.leave(feed);
    this.#events = [];
    this.#bytes = 0;
  }

  #sendSoon(): void {
    if (this.#isSending || this.#isClosed) return;
    this.#isSending = true;
    this.#parts.runtime.atTurnEnd(() => void this.#send());
  }

  /** Sends what waits; the next message follows once this one was taken. */
  async #send(): Promise<void> {
    const message = { events: this.#events, lost: this.#lost };
    this.#events = [];
    this.#bytes = 0;
    this.#lost = [];
    const request = { topic: EVENTS, message, timeoutMs: EVENTS_MS };
    const reply = await this.#parts.bus.request(this.#worker, request);
    this.#isSending = false;
    // The worker finds that its subscriptions are gone when it asks.
    if (!reply.ok) return this.close();
    for (const feed of reply.value) this.leave(feed);
    if (this.#events.length + this.#lost.length > 0) this.#sendSoon();
  }
}

// Messages between workers about subscriptions that one worker has at providers. A feed is one of
// these subscriptions, numbered by the worker that joined.

/** Asks a worker to subscribe at a provider and to send the events. */
interface JoinMessage {
  readonly feed: number;
  /** Profile id and chain name. */
  readonly key: string;
  /** Id of the provider. */
  readonly provider: string;
  /** The JSON array of `eth_subscribe`. */
  readonly params: string;
}

/** Events in order, and feeds that have ended after them. */
interface EventsMessage {
  readonly events: readonly (readonly [feed: number, raw: Buffer])[];
  readonly lost: readonly number[];
}

/** Answered with whether the subscription is there. */
const JOIN: QuestionTopic<JoinMessage, boolean> = { name: "feed.join" };

const LEAVE: QuestionTopic<number, true> = { name: "feed.leave" };

/** Answered with the feeds that are not known there. */
const EVENTS: QuestionTopic<EventsMessage, readonly number[]> = { name: "feed.events" };

/** Answered with those that are not known there. */
const CHECK: QuestionTopic<readonly number[], readonly number[]> = { name: "feed.check" };
