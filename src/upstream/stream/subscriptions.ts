// Subscriptions as callers see them: one stream per profile, chain, kind and filter, shared by any
// number of subscribers. Knows no provider and no frame.

import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { type Provider, publicLabel } from "../../core/provider/profile.ts";
import type { Head } from "../../core/stream/chain-event.ts";
import type { SubscriptionKind } from "../../core/stream/subscription.ts";
import { type Holdings, NO_SHARED_HOLDINGS } from "../../core/workers/shared-holdings.ts";
import type { Tracker } from "../health/tracker.ts";
import type { ProfileRegistry } from "../registry/profile-registry.ts";
import { withinBounds } from "./block-bounds.ts";
import { FilterQuota, MAX_CALLER_CHARS, SHORT_CHARS } from "./filter-quota.ts";
import { LogCheckRegistry } from "./log-check-registry.ts";
import type { CheckCounts, StreamLog } from "./log-checks.ts";
import type { BlockLogsQueryParts } from "./log-query.ts";
import { createPolls } from "./polled-source.ts";
import { joinAtMark, type ResumableStreams } from "./resumed-subscription.ts";
import type { SourceParts } from "./source.ts";
import { Stream, type StreamOwner } from "./stream.ts";
import type {
  FailoverReason,
  StreamCaller,
  StreamReport,
  SubscribeRequest,
  Subscriber,
} from "./subscriber.ts";

/** The state of one stream, for display. */
export interface SubscriptionReport extends StreamReport {
  /** Slug of a configured profile; `custom` for all profiles of accounts, as in the counts. */
  readonly profile: string;
  readonly chain: string;
  readonly kind: SubscriptionKind;
  readonly pinned: boolean;
}

/** Counts of the subscriptions of one profile on one chain since the start. */
export interface SubscriptionCounts {
  readonly profile: string;
  readonly chain: string;
  readonly failovers: Record<FailoverReason, number>;
  /** Of ended streams; those of live ones are in their reports. */
  filledBlocks: number;
  /** Number of streams that could not be continued. */
  ended: number;
}

/** Joins subscribers to streams. */
export interface Subscriptions {
  /**
   * Opens a subscription. Returns the function that leaves; after it the subscriber hears nothing.
   */
  open(request: SubscribeRequest, subscriber: Subscriber): () => void;
  /** Moves every stream to the profiles that the registry serves now. */
  rebind(registry: ProfileRegistry): void;
  reports(): readonly SubscriptionReport[];
  counts(): readonly SubscriptionCounts[];
  /** Counts of the log checks. */
  checks(): readonly CheckCounts[];
  /** Records a head that a provider pushed, on any subscription. */
  headSeen(tracker: Tracker, provider: Provider, head: Head): void;
  close(): void;
}

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

interface Entry {
  readonly stream: Stream;
  readonly request: SubscribeRequest;
}

/**
 * Dependencies of streams. Heads and logs are polled while no socket is available, if the router
 * reaches providers over HTTP.
 */
export interface SubscriptionParts
  extends Omit<SourceParts, "polls">,
    Pick<BlockLogsQueryParts, "shares"> {
  /** The log filters that callers have at all workers; absent = this process is alone. */
  readonly logFilters?: Holdings;
  /** Number of workers that divide the bounds of the service; absent = 1. */
  readonly workers?: number;
  /** Called for each subscription that moved to another provider. */
  readonly onMove?: (move: StreamMove) => void;
  /** Absent = no log. */
  readonly log?: StreamLog;
}

/** A subscription that moved to another provider. */
export interface StreamMove extends Pick<SubscriptionReport, "profile" | "chain" | "kind"> {
  /** Id of the new provider. */
  readonly to: string | null;
  readonly reason: FailoverReason;
}

/** Creates an empty table of streams. */
export function createSubscriptions({ onMove, log, ...rest }: SubscriptionParts): Subscriptions {
  const parts: SourceParts = {
    ...rest,
    polls: rest.router.reaches("http") ? createPolls(rest) : null,
  };
  const counted = new Map<string, SubscriptionCounts>();
  const filterQuota = new FilterQuota(rest.logFilters ?? NO_SHARED_HOLDINGS);
  const checks = new LogCheckRegistry(rest, log ?? null);
  const table = createStreamTable({
    counted,
    onMove,
    maxStreams: Math.floor(MAX_STREAMS / (rest.workers ?? 1)),
    newStream: (request, owner) =>
      new Stream(parts, request, checks.of(request.profile, request.tracker), owner),
  });
  const { entries } = table;

  const join = joinerOf(table, rest);

  return {
    open(request, subscriber) {
      const key = keyOf(request);
      const { caller, subscription, resume } = request;
      const { bounds } = subscription;
      // Of these any number of different ones could be asked for.
      const isFiltered = subscription.kind === "logs" || subscription.kind === "vendor";
      const bounded = isFiltered ? caller : null;
      // One that goes on was within the bound where it began.
      if (bounded !== null && resume === undefined && !filterQuota.allows(bounded, key))
        return refuse(subscriber, tooManyFilters(bounded));
      const listener = bounds === null ? subscriber : withinBounds(bounds, subscriber);
      return bounded === null
        ? join(key, request, listener)
        : filterQuota.hold(bounded, key, listener, (held) => join(key, request, held));
    },
    rebind(registry) {
      for (const { stream, request } of [...entries.values()]) {
        const served = servedNow(registry, request);
        if (served === null) stream.end("the configuration no longer serves it");
        else {
          checks.of(request.profile, served.tracker);
          stream.rebind(served.tracker, served.pin);
        }
      }
    },
    reports: () =>
      [...entries.values()].map(({ stream, request }) => ({
        ...stream.report(),
        ...shown(request),
      })),
    counts: () => [...counted.values()],
    checks: () => checks.counts(),
    headSeen: (tracker, provider, head) => checks.see(tracker, provider, head),
    close() {
      for (const { stream } of [...entries.values()]) stream.end("the service stops");
    },
  };
}

/** Joins subscribers to the streams of a table. */
function joinerOf(
  { entries, begin, makeRoom }: StreamTable,
  parts: Pick<SubscriptionParts, "runtime" | "timerWheel">,
) {
  let ownStreams = 0;
  return (key: string, request: SubscribeRequest, subscriber: Subscriber): (() => void) => {
    const { resume, deadlineMs } = request;
    const beginOne = (own: string, isShared: boolean): Stream | null =>
      makeRoom(own) ? begin(own, request, isShared) : null;
    if (resume === undefined) {
      const stream = entries.get(key)?.stream ?? beginOne(key, true);
      return stream === null ? refuse(subscriber, FULL) : stream.join(subscriber, deadlineMs);
    }
    const streams: ResumableStreams = {
      shared: () => entries.get(key)?.stream ?? null,
      beginShared: () => beginOne(key, true),
      beginOwn: () => beginOne(`${key} ${++ownStreams}`, false),
    };
    return joinAtMark({ ...parts, streams, deadlineMs, full: FULL }, resume, subscriber);
  };
}

/** The open streams by key. */
interface StreamTable {
  readonly entries: ReadonlyMap<string, Entry>;
  /** Begins a stream; one that nobody else can join ends with its last subscriber. */
  begin(key: string, request: SubscribeRequest, isShared?: boolean): Stream;
  /** Room for a stream with this key; false = too many are open, or too long ones. */
  makeRoom(key: string): boolean;
}

interface StreamTableParts {
  readonly onMove: SubscriptionParts["onMove"] | undefined;
  readonly counted: Map<string, SubscriptionCounts>;
  readonly maxStreams: number;
  readonly newStream: (request: SubscribeRequest, owner: StreamOwner) => Stream;
}

/**
 * Creates the bounded table of open streams by key; when room is needed, the longest idle one ends.
 */
function createStreamTable({
  counted,
  onMove,
  maxStreams,
  newStream,
}: StreamTableParts): StreamTable {
  const entries = new Map<string, Entry>();
  /** Streams without subscribers, longest idle first. */
  const idle = new Map<string, Stream>();
  let chars = 0;

  function begin(key: string, request: SubscribeRequest, isShared = true): Stream {
    const counts = countsIn(counted, request);
    const stream = newStream(request, {
      over() {
        idle.delete(key);
        counts.filledBlocks += stream.report().filledBlocks;
        if (entries.delete(key)) chars -= longChars(key);
      },
      idle() {
        if (idle.size >= MAX_IDLE) endLongestIdle();
        idle.set(key, stream);
        if (!isShared) return 0;
        return entries.size > maxStreams / 2 ? PRESSED_LINGER_MS : LINGER_MS;
      },
      used: () => void idle.delete(key),
      failedOver(reason) {
        counts.failovers[reason]++;
        onMove?.({ ...shown(request), to: stream.report().provider?.id ?? null, reason });
      },
      ended() {
        counts.ended++;
      },
    });
    entries.set(key, { stream, request });
    chars += longChars(key);
    return stream;
  }

  function endLongestIdle(): void {
    const longest = idle.values().next();
    if (longest.done !== true) longest.value.endIfIdle();
  }

  function makeRoom(key: string): boolean {
    const most = MAX_CHARS - longChars(key);
    if (entries.size >= maxStreams) endLongestIdle();
    for (const stream of [...idle.values()]) if (chars > most) stream.endIfIdle();
    return entries.size < maxStreams && (chars <= most || longChars(key) === 0);
  }

  return { entries, begin, makeRoom };
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

function countsIn(
  counted: Map<string, SubscriptionCounts>,
  { profile: id, tracker }: SubscribeRequest,
): SubscriptionCounts {
  const profile = publicLabel(id);
  const chain = tracker.set.chain.chainName;
  const key = `${profile} ${chain}`;
  const counts = counted.get(key) ?? noCounts(profile, chain);
  counted.set(key, counts);
  return counts;
}

function noCounts(profile: string, chain: string): SubscriptionCounts {
  return {
    profile,
    chain,
    failovers: {
      lost: 0,
      stale_heads: 0,
      far: 0,
      unanswered: 0,
      backlog: 0,
      removed: 0,
      missing_logs: 0,
    },
    filledBlocks: 0,
    ended: 0,
  };
}

const FULL = fault("unavailable", "too many different subscriptions are open", { status: 200 });

function tooManyFilters({ maxLogFilters }: StreamCaller): Fault {
  const nextAction = "unsubscribe from a filter, or put several addresses or topics into one";
  return fault(
    "rate_limit_exceeded",
    `${maxLogFilters} different filters, or very long ones, are open`,
    {
      status: 200,
      nextAction,
    },
  );
}

function refuse(subscriber: Subscriber, why: Fault): () => void {
  subscriber.refused({ kind: "fault", fault: why }, null);
  return () => {};
}

function shown({
  profile,
  tracker,
  subscription,
  pin,
}: SubscribeRequest): Pick<SubscriptionReport, "profile" | "chain" | "kind" | "pinned"> {
  return {
    profile: publicLabel(profile),
    chain: tracker.set.chain.chainName,
    kind: subscription.kind,
    pinned: pin !== null,
  };
}

function keyOf({ profile, tracker, subscription, pin }: SubscribeRequest): string {
  return JSON.stringify([
    profile,
    tracker.set.chain.chainName,
    pin?.id ?? null,
    subscription.params,
  ]);
}
