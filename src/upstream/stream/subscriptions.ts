// Subscriptions as callers see them: one stream per profile, chain, kind and filter, shared by any
// number of subscribers. Knows no provider and no frame.
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { type Provider, publicLabel } from "../../core/provider/profile.ts";
import { type Head, readLog } from "../../core/stream/chain-event.ts";
import type { StreamMark } from "../../core/stream/stream-mark.ts";
import { type BlockBounds, isWithin } from "../../core/stream/subscription.ts";
import { type Holdings, NO_SHARED_HOLDINGS } from "../../core/workers/shared-holdings.ts";
import type { Tracker } from "../health/tracker.ts";
import type { ProfileRegistry } from "../registry/profile-registry.ts";
import type { Timer } from "../timer-wheel.ts";
import { LogCheckRegistry } from "./checks/log-checks.ts";
import { CountsByChain, zeros } from "./counts-by-chain.ts";
import { FilterQuota, MAX_CALLER_CHARS, SHORT_CHARS } from "./filter-quota.ts";
import { Polls } from "./polled-source.ts";
import type { StreamParts } from "./source.ts";
import { CANNOT_RESUME, Stream } from "./stream.ts";
import {
  FAILOVER_REASONS,
  type FailoverReason,
  type StreamCaller,
  type SubscribeRequest,
  type Subscriber,
} from "./subscriber.ts";

/** The state of one stream, for display. */
export type SubscriptionReport = ReturnType<Stream["report"]> & ReturnType<typeof shown>;

/** Counts of the subscriptions of one profile on one chain since the start. */
const noCounts = () => ({
  failovers: zeros(FAILOVER_REASONS),
  /** Of ended streams; those of live ones are in their reports. */
  filledBlocks: 0,
  /** Number of streams that could not be continued. */
  ended: 0,
});

/** Most streams of a service at one time, and most of a worker without subscribers. */
const MAX_STREAMS = 10_000;
const MAX_IDLE = 1_000;
/** Most characters of all long filters of a worker at one time. */
const MAX_CHARS = 4 * MAX_CALLER_CHARS;
/**
 * How long a stream is kept after its last subscriber has left; shorter when many streams are open.
 */
const LINGER_MS = 60_000;
const PRESSED_LINGER_MS = 5_000;
/** How long a shared stream may be behind a mark, and the interval of the checks whether it is. */
const BEHIND_MS = 3_000;
const BEHIND_CHECK_MS = 50;

interface Entry {
  readonly stream: Stream;
  readonly request: SubscribeRequest;
}

/**
 * Dependencies of streams. Heads and logs are polled while no socket is available, if the router
 * reaches providers over HTTP.
 */
export interface SubscriptionParts extends StreamParts {
  /** The log filters that callers have at all workers; absent = this process is alone. */
  readonly logFilters?: Holdings<readonly string[]>;
  /** Number of workers that divide the bounds of the service; absent = 1. */
  readonly workers?: number;
  /** Called for each subscription that moved to another provider. */
  readonly onMove?: (move: StreamMove) => void;
}

/** A subscription that moved to another provider. */
export interface StreamMove extends Pick<SubscriptionReport, "profile" | "chain" | "kind"> {
  /** Id of the new provider. */
  readonly to: string | null;
  readonly reason: FailoverReason;
}

/** Joins subscribers to streams. These are bounded: for a new one the longest idle one ends. */
export class Subscriptions {
  readonly #parts: SubscriptionParts;
  readonly #polls: Polls | null;
  readonly #counted = new CountsByChain(noCounts);
  readonly #filterQuota: FilterQuota;
  readonly #checks: LogCheckRegistry;
  readonly #maxStreams: number;
  readonly #entries = new Map<string, Entry>();
  /** Streams without subscribers, longest idle first. */
  readonly #idle = new Map<string, Stream>();
  /** Of all long filters. */
  #chars = 0;
  /** Streams that were begun for one subscriber alone. */
  #ownStreams = 0;

  constructor(parts: SubscriptionParts) {
    this.#parts = parts;
    this.#polls = parts.router.reaches("http") ? new Polls(parts) : null;
    this.#filterQuota = new FilterQuota(parts.logFilters ?? NO_SHARED_HOLDINGS);
    this.#checks = new LogCheckRegistry(parts);
    this.#maxStreams = Math.floor(MAX_STREAMS / (parts.workers ?? 1));
  }

  /**
   * Opens a subscription. Returns the function that leaves; after it the subscriber hears nothing.
   */
  open(request: SubscribeRequest, subscriber: Subscriber): () => void {
    const key = keyOf(request);
    const { caller, subscription, resume } = request;
    const { kind, bounds } = subscription;
    // A caller could ask for any number of different filters of these kinds.
    const bounded = kind === "logs" || kind === "vendor" ? caller : null;
    // A resumed subscription was within the bound where it began.
    if (bounded !== null && resume === undefined && !this.#filterQuota.allows(bounded, key))
      return refuse(subscriber, tooManyFilters(bounded));
    const listener = bounds === null ? subscriber : withinBounds(bounds, subscriber);
    return bounded === null
      ? this.#join(key, request, listener)
      : this.#filterQuota.hold(bounded, key, listener, (held) => this.#join(key, request, held));
  }

  /** Moves every stream to the profiles that the registry serves now. */
  rebind(registry: ProfileRegistry): void {
    for (const { stream, request } of [...this.#entries.values()]) {
      const served = servedNow(registry, request);
      if (served === null) stream.end("the configuration no longer serves it");
      else {
        this.#checks.of(request.profile, served.tracker);
        stream.rebind(served.tracker, served.pin);
      }
    }
  }

  reports(): readonly SubscriptionReport[] {
    return Array.from(this.#entries.values(), ({ stream, request }) => ({
      ...stream.report(),
      ...shown(request),
    }));
  }

  /** The chains with a stream that somebody has joined. */
  subscribedChains(): ReadonlySet<string> {
    const joined = [...this.#entries.values()].filter(({ stream }) => stream.isJoined);
    return new Set(joined.map(({ request }) => request.tracker.set.chain.chainName));
  }

  counts() {
    return this.#counted.all();
  }

  /** Counts of the log checks. */
  checks() {
    return this.#checks.counts();
  }

  /** Forgets what was counted and learned of chains that are served no more. */
  forgetChains(names: ReadonlySet<string>): void {
    this.#counted.forgetChains(names);
    this.#checks.forgetChains(names);
  }

  /** Records a head that a provider pushed, on any subscription. */
  headSeen(tracker: Tracker, provider: Provider, head: Head): void {
    this.#checks.see(tracker, provider, head);
  }

  close(): void {
    for (const { stream } of [...this.#entries.values()]) stream.end("the service stops");
  }

  #join(key: string, request: SubscribeRequest, subscriber: Subscriber): () => void {
    const { resume, deadlineMs } = request;
    if (resume !== undefined) return this.#joinAt(resume, key, request, subscriber);
    const stream = this.#entries.get(key)?.stream ?? this.#begin(key, request, true);
    return stream === null ? refuse(subscriber, FULL) : stream.join(subscriber, deadlineMs);
  }

  /**
   * Joins a subscriber that goes on from what it was told at another node: joins the shared stream
   * if that has everything the subscriber missed, begins the shared stream if there is none, and
   * else begins a separate stream.
   */
  #joinAt(
    mark: StreamMark,
    key: string,
    request: SubscribeRequest,
    subscriber: Subscriber,
  ): () => void {
    const { runtime, timerWheel } = this.#parts;
    const untilMs = runtime.now() + BEHIND_MS;
    let again: Timer | null = null;
    let leave = (): void => again?.clear();
    const begin = (ownKey: string, isShared: boolean): void => {
      const stream = this.#begin(ownKey, request, isShared);
      if (stream === null) refuse(subscriber, FULL);
      else leave = stream.join(subscriber, request.deadlineMs, true);
    };
    const join = (): void => {
      const stream = this.#entries.get(key)?.stream;
      if (stream === undefined) return begin(key, true);
      const difference = stream.since(mark);
      if (difference.kind === "events") {
        leave = stream.join(subscriber, request.deadlineMs);
        if (difference.events.length > 0) subscriber.events(difference.events);
      } else if (difference.kind === "behind" && runtime.now() < untilMs)
        again = timerWheel.set(BEHIND_CHECK_MS, join);
      else if (difference.kind === "forgotten") subscriber.refused(CANNOT_RESUME.outcome, null);
      else begin(`${key} ${++this.#ownStreams}`, false);
    };
    join();
    return () => leave();
  }

  /**
   * Begins a stream; one that nobody else can join ends with its last subscriber. Null = too many
   * streams are open, or too long ones.
   */
  #begin(key: string, request: SubscribeRequest, isShared: boolean): Stream | null {
    if (!this.#makeRoom(key)) return null;
    const { profile, tracker } = request;
    const counts = this.#counted.of(profile, tracker);
    const parts = { ...this.#parts, polls: this.#polls };
    const stream: Stream = new Stream(parts, request, this.#checks.of(profile, tracker), {
      over: () => {
        this.#idle.delete(key);
        counts.filledBlocks += stream.report().filledBlocks;
        if (this.#entries.delete(key)) this.#chars -= longChars(key);
      },
      idle: () => {
        if (this.#idle.size >= MAX_IDLE) this.#endLongestIdle();
        this.#idle.set(key, stream);
        if (!isShared) return 0;
        return this.#entries.size > this.#maxStreams / 2 ? PRESSED_LINGER_MS : LINGER_MS;
      },
      used: () => void this.#idle.delete(key),
      failedOver: (reason) => {
        counts.failovers[reason]++;
        const to = stream.report().provider?.id ?? null;
        this.#parts.onMove?.({ ...shown(request), to, reason });
      },
      ended: () => void counts.ended++,
    });
    this.#entries.set(key, { stream, request });
    this.#chars += longChars(key);
    return stream;
  }

  #makeRoom(key: string): boolean {
    const most = MAX_CHARS - longChars(key);
    if (this.#entries.size >= this.#maxStreams) this.#endLongestIdle();
    for (const stream of [...this.#idle.values()]) if (this.#chars > most) stream.endIfIdle();
    return this.#entries.size < this.#maxStreams && (this.#chars <= most || longChars(key) === 0);
  }

  #endLongestIdle(): void {
    const [longest] = this.#idle.values();
    longest?.endIfIdle();
  }
}

function longChars(key: string): number {
  return key.length > SHORT_CHARS ? key.length : 0;
}

/** The current tracker and pinned provider of a stream; null = its profile or pin is gone. */
function servedNow(
  registry: ProfileRegistry,
  { profile, tracker: before, pin: pinBefore }: SubscribeRequest,
): Pick<SubscribeRequest, "tracker" | "pin"> | null {
  const tracker = registry.served(profile)?.trackers.get(before.set.chain.chainName);
  const pin = tracker?.set.providers.find((provider) => provider.id === pinBefore?.id) ?? null;
  return tracker === undefined || (pinBefore !== null && pin === null) ? null : { tracker, pin };
}

const FULL = fault("unavailable", "too many different subscriptions are open", { status: 200 });

function tooManyFilters({ maxLogFilters }: StreamCaller): Fault {
  const nextAction = "unsubscribe from a filter, or put several addresses or topics into one";
  const why = `${maxLogFilters} different filters, or very long ones, are open`;
  return fault("rate_limit_exceeded", why, { status: 200, nextAction });
}

function refuse(subscriber: Subscriber, why: Fault): () => void {
  subscriber.refused({ kind: "fault", fault: why }, null);
  return () => {};
}

function shown({ profile, tracker, subscription, pin }: SubscribeRequest) {
  return {
    /** Slug of a configured profile; `custom` for all profiles of accounts, as in the counts. */
    profile: publicLabel(profile),
    chain: tracker.set.chain.chainName,
    kind: subscription.kind,
    pinned: pin !== null,
  };
}

function keyOf({ profile, tracker, subscription, pin }: SubscribeRequest): string {
  const { chainName } = tracker.set.chain;
  return JSON.stringify([profile, chainName, pin?.id ?? null, subscription.params]);
}

// Block bounds of a log subscriber. The stream itself has no bounds, so that equal filters share
// it.

/** Wraps a subscriber so that it receives only logs of blocks within the bounds. */
function withinBounds(bounds: BlockBounds, subscriber: Subscriber): Subscriber {
  const isWanted = (raw: Buffer): boolean => {
    const log = readLog(raw);
    return log !== null && isWithin(bounds, log.blockNumber);
  };
  return {
    started: (route, position) => subscriber.started(route, position),
    refused: (outcome, route) => subscriber.refused(outcome, route),
    ended: (reason) => subscriber.ended(reason),
    unconfirmed(block, why) {
      if (isWithin(bounds, block.number)) subscriber.unconfirmed?.(block, why);
    },
    events(results) {
      const wanted = results.filter(isWanted);
      if (wanted.length > 0) subscriber.events(wanted);
    },
  };
}
