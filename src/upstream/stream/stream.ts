// One subscription and its subscribers. Uses one provider at a time, moves to another when that
// fails, and ends when none is found in time. The continuity decides which events are delivered
// after a move.
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import {
  isLate,
  isSilentBehind,
  type Overtaken,
  overtakenBy,
  quietMs,
} from "../../core/provider/blocks/head.ts";
import type { Provider } from "../../core/provider/profile.ts";
import type { Block } from "../../core/stream/chain-event.ts";
import type { Unconfirmed } from "../../core/stream/log-verification.ts";
import { windowFor } from "../../core/stream/recent-blocks.ts";
import {
  eventsSince,
  type MarkDifference,
  type StreamMark,
  stateAt,
} from "../../core/stream/stream-mark.ts";
import { POLLED_KINDS } from "../../core/stream/subscription.ts";
import type { Outcome } from "../engine/answer.ts";
import type { RoutedCall } from "../engine/router.ts";
import type { ServedView } from "../health/served-view.ts";
import type { Tracker } from "../health/tracker.ts";
import type { Timer } from "../timer-wheel.ts";
import { ChainContinuity } from "./chain-continuity.ts";
import type { LogChecks } from "./checks/log-checks.ts";
import { BestEffortContinuity, type Continuity, type SourceFailure } from "./continuity.ts";
import type { Polls } from "./polled-source.ts";
import {
  openSource,
  type Source,
  type SourceEvents,
  type SourceOpening,
  type SourceRequest,
  type StreamParts,
} from "./source.ts";
import type { FailoverReason, SubscribeRequest, Subscriber } from "./subscriber.ts";
import { type EventBlock, type HeldResults, TipBuffer } from "./tip-buffer.ts";

/** What one stream works with. */
interface OneStreamParts extends StreamParts {
  /** Polls heads and logs when no socket is available; null = never. */
  readonly polls: Polls | null;
}

/** The registry of streams, as a stream sees it. */
export interface StreamOwner {
  /** The stream has no subscribers and no provider any more. */
  over(): void;
  /** The last subscriber has left. Returns how long (ms) the stream is kept. */
  idle(): number;
  /** The stream has a subscriber again. */
  used(): void;
  failedOver(reason: FailoverReason): void;
  /** The stream could not be continued for its subscribers. */
  ended(): void;
}

/** A period without a provider. */
class Outage {
  /** Ids of providers that are not tried again in this round. */
  readonly avoid = new Set<string>();
  /** Ids of providers that left logs out: tried only if there is no other. */
  penalised: ReadonlySet<string>;
  /** Those of `avoid` of which only the socket failed: they may still be polled. */
  readonly socketless = new Set<string>();
  /** No socket is available in this round: heads and logs are polled. */
  polled = false;
  /** The most telling refusal of this round since polling began; null = none. */
  refusal: Refusal | null = null;
  /** Some provider is further ahead than may be backfilled. */
  far = false;
  /** How often all providers were tried. */
  attempts = 0;
  readonly timer: Timer | null;
  readonly reason: FailoverReason | null;

  constructor(reason: FailoverReason | null, timer: Timer | null, penalised: ReadonlySet<string>) {
    this.reason = reason;
    this.timer = timer;
    this.penalised = penalised;
  }
}

interface Refusal {
  readonly outcome: Outcome;
  readonly route: RoutedCall;
}

interface Waiter {
  /** It goes on where the stream does; others hear only what follows. */
  readonly resumes: boolean;
  readonly timer: Timer;
}

const RETRY_MS = 250;
const LONGEST_RETRY_MS = 2_000;
const OPEN_MS = 10_000;
const ROUNDS_OF_SOCKETS = 3;
/** Wait before a polled stream tries a socket again; doubled each time. */
const SOCKET_AGAIN_MS = 10_000;
const LONGEST_SOCKET_AGAIN_MS = 600_000;
/** Interval at which a possibly silent source is checked. */
const SHORTEST_LOOK_MS = 1_000;
const LOOKS_PER_QUIET = 4;
/**
 * Least time between two moves because of missing logs. With a single provider, only subscribing
 * again may help.
 */
const LEAVE_AGAIN_MS = 10_000;
const ALONE_AGAIN_MS = 60_000;
/**
 * Pause after leaving a late source; doubled each time its successor is late too, since the height
 * known elsewhere may be false.
 */
const LATE_AGAIN_MS = 10_000;
const LONGEST_LATE_AGAIN_MS = 600_000;
/** Weight of the newest delivery in the average lag. */
const LAG_WEIGHT = 0.1;
const REMOVALS_UNKNOWN = "logs have left the chain that are no longer held";

/** A subscription at one provider at a time, shared by its subscribers. */
export class Stream {
  readonly #parts: OneStreamParts;
  readonly #owner: StreamOwner;
  readonly #checks: LogChecks;
  readonly #continuity: Continuity;
  /** What the continuity has emitted passes it before it is delivered. */
  readonly #tipBuffer: TipBuffer;
  #request: SubscribeRequest;
  readonly #subscribers = new Set<Subscriber>();
  readonly #waiters = new Map<Subscriber, Waiter>();
  #outbox: Buffer[] = [];
  #source: Source | null = null;
  #outage: Outage | null;
  /**
   * False = no provider has served it yet, and a failed search is reported to the waiters. Later
   * the search is repeated instead.
   */
  #everLive = false;
  #over = false;
  #cancel: () => void = () => {};
  #attempts = 0;
  /** A search for a provider is in progress. */
  #seeking = false;
  #stale: Timer | null = null;
  #socketAgain: Timer | null = null;
  #socketAgainMs = SOCKET_AGAIN_MS;
  #linger: Timer | null = null;
  /**
   * The height that others have and the source lacks, and the height for which a silent source was
   * last left.
   */
  #overtaken: Overtaken | null = null;
  #movedFor = -1;
  /** Until when no source is left for lateness, and how long that pause was. */
  #mayBeLateUntilMs = Number.NEGATIVE_INFINITY;
  #latePauseMs = LATE_AGAIN_MS;
  /** When a provider was last left because of missing logs (ms). */
  #leftAtMs = Number.NEGATIVE_INFINITY;
  #failovers = 0;
  #events = 0;
  /** When the first event arrived since events were last delivered; null = none has. */
  #heardAtMs: number | null = null;
  /** Average time from the provider's event to its delivery; null = unknown. */
  #lagMs: number | null = null;

  /** `checks` are the log checks of its profile and chain. */
  constructor(
    parts: OneStreamParts,
    request: SubscribeRequest,
    checks: LogChecks,
    owner: StreamOwner,
  ) {
    this.#parts = parts;
    this.#request = request;
    this.#owner = owner;
    this.#checks = checks;
    const { runtime, timerWheel } = parts;
    const eventSink = {
      expect: (number: number) => this.#tipBuffer.expect(number),
      emit: (results: readonly Buffer[], block: EventBlock | null) => this.#emit(results, block),
      unconfirmed: (block: Block, why: Unconfirmed) => {
        for (const subscriber of this.#subscribers) subscriber.unconfirmed?.(block, why);
      },
      failed: (why: SourceFailure) => this.#sourceFailed(why),
    };
    const { subscription, resume = null } = request;
    const tip = (): number | null => this.#tipBuffer.tip;
    const stream = () => this.#request;
    const ofContinuity = { runtime, timerWheel, subscription, checks, resume, tip, stream };
    const { kind } = subscription;
    this.#continuity =
      kind === "newHeads" || kind === "logs"
        ? new ChainContinuity(ofContinuity, kind, eventSink)
        : new BestEffortContinuity(kind, eventSink);
    this.#tipBuffer = new TipBuffer({
      runtime,
      timerWheel,
      view: () => this.#viewToKeep(),
      blockTimeMs: () => this.#request.tracker.set.chain.blockTimeMs,
      areHeads: subscription.kind === "newHeads",
      mark: () => this.#continuity.mark(),
      deliver: (held) => this.#deliverHeld(held),
    });
    this.#outage = new Outage(null, null, this.#penalised());
  }

  get height(): number | null {
    return this.#tipBuffer.isHolding
      ? (this.#tipBuffer.mark?.blocks.at(-1)?.number ?? null)
      : this.#continuity.height;
  }

  /**
   * Where it stands: everything up to there has been delivered, and nothing that is held back. A
   * subscriber that goes on elsewhere from a mark with held events would never be told them; if
   * they were let through for the mark, every poll of a filter would tell blocks above the tip.
   */
  mark(): StreamMark | null {
    this.#flush();
    return this.#tipBuffer.isHolding ? this.#tipBuffer.mark : this.#continuity.mark();
  }

  /** What a subscriber at a mark misses of what was delivered; held events come to it later. */
  since(mark: StreamMark): MarkDifference {
    if (this.#outage !== null) return { kind: "behind" };
    this.#flush();
    if (!this.#tipBuffer.isHolding) return this.#continuity.since(mark);
    const delivered = this.#tipBuffer.mark;
    const { maxBackfillBlocks } = this.#request.tracker.set;
    return delivered === null
      ? { kind: "behind" }
      : eventsSince(stateAt(delivered, windowFor(maxBackfillBlocks)), mark);
  }

  /**
   * Adds a subscriber; the first one starts the stream. `resumes`: it is told what the stream
   * missed before it began. Returns the function that leaves.
   */
  join(subscriber: Subscriber, deadlineMs: number, resumes = false): () => void {
    if (this.#linger !== null) this.#owner.used();
    this.#linger?.clear();
    this.#linger = null;
    const fresh = this.#waiters.size === 0 && !this.#everLive;
    if (this.#outage === null) this.#start(subscriber, null);
    else this.#wait(subscriber, deadlineMs, resumes);
    if (fresh) this.#seek();
    return () => this.#leave(subscriber);
  }

  /** Continues with another set of providers; `pin` is the pinned provider in it. */
  rebind(tracker: Tracker, pin: Provider | null): void {
    const current = this.#source?.provider ?? null;
    const isCordoned = current !== null && tracker.cordonOf(current) !== null;
    // Its set has not changed.
    if (tracker === this.#request.tracker) return isCordoned ? this.#fail("removed") : undefined;
    this.#request = { ...this.#request, tracker, pin };
    this.#tipBuffer.rebind();
    const source = this.#source;
    if (source === null) return this.#seekAnew();
    const { provider, pushesLogs } = source;
    const isSame = (other: Provider): boolean =>
      other.id === provider.id &&
      (pushesLogs ? other.wsUrl === provider.wsUrl : other.url === provider.url);
    const now = tracker.set.providers.find(isSame);
    if (now === undefined || isCordoned) this.#fail("removed");
    else source.follow(tracker, now);
  }

  /** Restarts the search among the current providers: those being tried may have been removed. */
  #seekAnew(): void {
    if (!this.#seeking) return;
    this.#cancel();
    this.#seek();
  }

  get isJoined(): boolean {
    return this.#subscribers.size + this.#waiters.size > 0;
  }

  /** Its state, for display. */
  report() {
    const stateInOutage = this.#everLive ? ("recovering" as const) : ("opening" as const);
    const state = this.#outage === null ? ("live" as const) : stateInOutage;
    const { height } = this;
    const known = height === null ? null : this.#request.tracker.head();
    return {
      state,
      provider: this.#source?.provider ?? null,
      subscribers: this.#subscribers.size + this.#waiters.size,
      /** Height of the newest delivered block; null = not applicable. */
      height,
      /** How many blocks providers have beyond that height; null = unknown. */
      behind: height === null || known === null ? null : Math.max(0, known - height),
      /** Number of backfilled blocks. */
      filledBlocks: this.#continuity.filledBlocks,
      failovers: this.#failovers,
      events: this.#events,
      lagMs: this.#lagMs,
    };
  }

  /** Ends the stream for all subscribers. */
  end(reason: string): void {
    if (this.#over) return;
    const [subscribers, waiters] = [[...this.#subscribers], [...this.#waiters.keys()]];
    this.#close();
    if (subscribers.length > 0) this.#owner.ended();
    for (const subscriber of subscribers) subscriber.ended(reason);
    const { outcome } = reason === REMOVALS_UNKNOWN ? CANNOT_RESUME : unavailable(reason);
    for (const subscriber of waiters) subscriber.refused(outcome, null);
  }

  #wait(subscriber: Subscriber, deadlineMs: number, resumes: boolean): void {
    const timer = this.#parts.timerWheel.set(deadlineMs, () => {
      this.#leave(subscriber);
      subscriber.refused(unavailable("no provider could be subscribed in time").outcome, null);
    });
    this.#waiters.set(subscriber, { resumes, timer });
  }

  #leave(subscriber: Subscriber): void {
    this.#subscribers.delete(subscriber);
    this.#waiters.get(subscriber)?.timer.clear();
    this.#waiters.delete(subscriber);
    if (this.#over || this.#subscribers.size + this.#waiters.size > 0 || this.#linger !== null)
      return;
    if (this.#outage === null)
      this.#linger = this.#parts.timerWheel.set(this.#owner.idle(), () => this.#close());
    else this.#close();
  }

  /** Ends the stream if it has no subscribers. */
  endIfIdle(): void {
    if (this.#linger !== null) this.#close();
  }

  #start(subscriber: Subscriber, route: RoutedCall | null): void {
    this.#subscribers.add(subscriber);
    subscriber.started(route, this);
  }

  /** Searches among the providers that have not failed in this outage. */
  #seek(): void {
    const outage = this.#outage;
    if (outage === null || this.#over) return;
    const { tracker, subscription, strategy, pin } = this.#request;
    const attempt = ++this.#attempts;
    this.#seeking = true;
    const avoid = outage.avoid.union(outage.penalised);
    const counts = this.#everLive ? "answers" : "all";
    const whom = { tracker, strategy, pin, avoid, counts } as const;
    const request: SourceRequest = { ...whom, subscription, deadlineMs: OPEN_MS };
    const events: SourceEvents = {
      opened: (opened) => this.#opened(outage, opened),
      event: (raw) => {
        this.#heardAtMs ??= this.#parts.runtime.now();
        this.#continuity.hear(raw, subscription.kind === "newHeads");
      },
      head: (raw) => this.#continuity.hear(raw, true),
      lost: () => this.#fail("lost"),
    };
    const { polls } = this.#parts;
    const cancel =
      outage.polled && polls !== null
        ? polls.open(request, events)
        : openSource(this.#parts, request, events);
    // A provider that answered synchronously has already advanced the stream.
    if (this.#attempts === attempt) this.#cancel = cancel;
  }

  #opened(outage: Outage, opened: SourceOpening): void {
    this.#seeking = false;
    if (opened.kind === "open") return this.#attach(outage, opened.source, opened.route);
    const { lacking, outcome, route } = opened;
    if (outage.polled) outage.refusal = moreTelling(outage.refusal, { outcome, route });
    const tried =
      lacking === null ? route.traces.map((trace) => trace.attempt.provider) : [lacking];
    if (!outage.polled) for (const { id } of tried) outage.socketless.add(id);
    // A route tries only a few providers: the others are next, and those it tried wait for the next
    // round.
    if (lacking !== null || (this.#everLive && tried.length > 0))
      return this.#avoid(outage, ...tried);
    if (outage.penalised.size > 0) return this.#forgive(outage);
    if (!outage.polled && this.#mayBePolled(outage)) return this.#poll(outage, { outcome, route });
    const refusal = outage.refusal ?? { outcome, route };
    if (!this.#everLive)
      return this.#refuse(outage.far ? { ...refusal, ...CANNOT_RESUME } : refusal);
    if (outage.far) return this.end("too many blocks were missed");
    outage.avoid.clear();
    outage.socketless.clear();
    outage.polled = false;
    const pauseMs = Math.min(LONGEST_RETRY_MS, RETRY_MS * 2 ** outage.attempts++);
    this.#parts.runtime.after(
      pauseMs * (1 + this.#parts.runtime.random()),
      () => this.#outage === outage && this.#seek(),
    );
  }

  /** No other provider is available: those that left logs out may serve again, and are checked. */
  #forgive(outage: Outage): void {
    outage.penalised = new Set();
    this.#seek();
  }

  #penalised(): ReadonlySet<string> {
    const { subscription, pin } = this.#request;
    return subscription.kind === "logs" && pin === null
      ? new Set(this.#checks.penalised())
      : new Set();
  }

  /**
   * Whether polling may begin. A stream that lost its sockets first tries some more rounds: pushed
   * events arrive sooner and cost less than polling.
   */
  #mayBePolled({ attempts }: Outage): boolean {
    const { subscription, tracker } = this.#request;
    if (this.#parts.polls === null || !POLLED_KINDS.includes(subscription.kind)) return false;
    return (
      !this.#everLive ||
      attempts >= ROUNDS_OF_SOCKETS ||
      tracker.set.providers.every((provider) => provider.wsUrl === null)
    );
  }

  /** Polls the providers that answer over HTTP, including those whose socket failed. */
  #poll(outage: Outage, refusal: Refusal): void {
    outage.polled = true;
    outage.refusal = refusal;
    for (const id of outage.socketless) outage.avoid.delete(id);
    this.#seek();
  }

  #attach(outage: Outage, source: Source, route: RoutedCall): void {
    this.#source = source;
    void this.#continuity.attach(source, outage.attempts).then((failure) => {
      if (this.#source !== source || this.#over) return;
      if (failure === null) return this.#live(route);
      if (failure === "forgotten") return this.end(REMOVALS_UNKNOWN);
      outage.far ||= failure === "far";
      outage.socketless.delete(source.provider.id);
      this.#avoid(outage, source.provider);
    });
  }

  #avoid(outage: Outage, ...providers: readonly Provider[]): void {
    this.#drop();
    for (const { id } of providers) outage.avoid.add(id);
    this.#seek();
  }

  #live(route: RoutedCall): void {
    this.#outage?.timer?.clear();
    if (this.#outage?.reason) {
      this.#failovers++;
      this.#owner.failedOver(this.#outage.reason);
    }
    this.#outage = null;
    this.#everLive = true;
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const [, { timer }] of waiters) timer.clear();
    for (const [subscriber, { resumes }] of waiters) if (resumes) this.#start(subscriber, route);
    this.#flush();
    for (const [subscriber, { resumes }] of waiters) if (!resumes) this.#start(subscriber, route);
    this.#continuity.release();
    if (this.#outage !== null) return;
    if (this.#source?.pushesLogs === true) this.#socketAgainMs = SOCKET_AGAIN_MS;
    this.#watchForSocket();
    this.#watchHeads();
  }

  #refuse({ outcome, route }: Refusal): void {
    const waiters = [...this.#waiters.keys()];
    this.#close();
    for (const subscriber of waiters) subscriber.refused(outcome, route);
  }

  #sourceFailed(why: SourceFailure): void {
    if (this.#source === null) return;
    if (why === "forgotten") this.end(REMOVALS_UNKNOWN);
    else if (why !== "missing_logs" || this.#mayLeaveAgain()) this.#fail(why);
  }

  /**
   * Whether the source may be left for missing logs again. Those logs were delivered from
   * elsewhere, so a stream does not move every few blocks, least of all when there is no other
   * provider.
   */
  #mayLeaveAgain(): boolean {
    const { pin, tracker } = this.#request;
    const alone = pin !== null || tracker.set.providers.length < 2;
    const nowMs = this.#parts.runtime.now();
    if (nowMs - this.#leftAtMs < (alone ? ALONE_AGAIN_MS : LEAVE_AGAIN_MS)) return false;
    this.#leftAtMs = nowMs;
    return true;
  }

  /**
   * Leaves a provider that is lost or cannot serve any longer. Another one continues from where it
   * stopped; those in `behind` only if there is no other.
   */
  #fail(reason: FailoverReason, behind: readonly Provider[] = []): void {
    if (this.#over) return;
    const failed = this.#source;
    // Events of another provider may differ in meaning, so missed events cannot be found.
    if (this.#everLive && this.#request.subscription.kind === "vendor")
      return this.end("the provider of the subscription is gone");
    this.#drop();
    if (this.#everLive && this.#subscribers.size + this.#waiters.size === 0) return this.#close();
    const outage = this.#outage ?? this.#beginOutage(reason);
    outage.far ||= reason === "far";
    for (const { id } of behind) outage.avoid.add(id);
    if (failed !== null) {
      outage.avoid.add(failed.provider.id);
      if (reason === "lost" && failed.pushesLogs) outage.socketless.add(failed.provider.id);
    }
    this.#seek();
  }

  #beginOutage(reason: FailoverReason | null): Outage {
    const { backfillTimeoutMs } = this.#request.tracker.set;
    const timer = this.#parts.timerWheel.set(backfillTimeoutMs, () =>
      this.end("no provider could go on in time"),
    );
    this.#outage = new Outage(reason, timer, this.#penalised());
    return this.#outage;
  }

  /** Makes a polled stream try a socket again, later each time. */
  #watchForSocket(): void {
    const { sockets, timerWheel } = this.#parts;
    if (this.#source?.pushesLogs !== false) return;
    this.#socketAgain = timerWheel.set(this.#socketAgainMs, () => {
      const { tracker, pin } = this.#request;
      const mayTry = ({ id, wsUrl }: Provider): boolean =>
        wsUrl !== null && (pin === null || pin.id === id);
      const isThere = (provider: Provider): boolean =>
        ["open", "idle"].includes(sockets.report(provider).state);
      if (!tracker.set.providers.some((provider) => mayTry(provider) && isThere(provider)))
        return this.#watchForSocket();
      this.#socketAgainMs = Math.min(LONGEST_SOCKET_AGAIN_MS, this.#socketAgainMs * 2);
      this.#drop();
      this.#beginOutage(null);
      this.#seek();
    });
  }

  /** Releases the provider. */
  #drop(): void {
    this.#seeking = false;
    this.#cancel();
    this.#source?.close();
    this.#source = null;
    this.#stale?.clear();
    this.#stale = null;
    this.#socketAgain?.clear();
    this.#socketAgain = null;
    this.#overtaken = null;
    this.#continuity.detach();
  }

  #close(): void {
    if (this.#over) return;
    this.#over = true;
    this.#drop();
    this.#tipBuffer.close();
    this.#outage?.timer?.clear();
    this.#linger?.clear();
    for (const { timer } of this.#waiters.values()) timer.clear();
    this.#waiters.clear();
    this.#subscribers.clear();
    this.#owner.over();
  }

  /**
   * Leaves a provider that has pushed no head for too long although its socket is open; sooner if
   * other providers have newer blocks.
   */
  #watchHeads(): void {
    const { tracker } = this.#request;
    const { lastHeadAtMs } = this.#continuity;
    if (lastHeadAtMs === null) return;
    const quiet = quietMs(tracker.set.chain);
    const silentMs = this.#parts.runtime.now() - lastHeadAtMs;
    const restMs = tracker.set.newHeadsTimeoutMs - silentMs;
    if (restMs > 0 && !this.#isOvertaken(silentMs)) {
      const lookMs = Math.max(SHORTEST_LOOK_MS, quiet / LOOKS_PER_QUIET);
      this.#stale = this.#parts.timerWheel.set(Math.min(restMs, lookMs), () => this.#watchHeads());
      return;
    }
    const source = this.#source;
    if (source === null) return;
    if (source.pushesLogs)
      tracker.recordSocket(source.provider, {
        category: "stale_heads",
        step: "next",
        effect: { kind: "lag" },
      });
    this.#fail("stale_heads", this.#behind());
  }

  /** Providers known to lack the same block as the source. */
  #behind(): readonly Provider[] {
    const { pin, tracker } = this.#request;
    const overtaken = this.#overtaken;
    if (overtaken === null || pin !== null) return [];
    return tracker.set.providers.filter(
      (provider) =>
        (tracker.health(provider, provider.wsUrl === null ? "http" : "ws").height ??
          overtaken.height) < overtaken.height,
    );
  }

  /**
   * Whether others have had a newer block for a while that the source has not reported. One block
   * moves a stream only once.
   */
  #isOvertaken(silentMs: number): boolean {
    const { tracker } = this.#request;
    const { chain } = tracker.set;
    const before = this.#overtaken;
    const known = tracker.head();
    const nowMs = this.#parts.runtime.now();
    this.#overtaken = overtakenBy(before, known, this.#continuity.height, nowMs);
    // The source reached in time what others had: their height was true.
    if (before !== null && this.#overtaken !== before && !isLate(before, chain, nowMs))
      this.#latePauseMs = LATE_AGAIN_MS;
    if (this.#overtaken === null || known === null || known <= this.#movedFor) return false;
    if (
      !isSilentBehind(this.#overtaken, silentMs, chain, nowMs) &&
      !(isLate(this.#overtaken, chain, nowMs) && this.#mayLeaveLate(nowMs))
    )
      return false;
    this.#movedFor = known;
    return true;
  }

  /**
   * Whether a late source that still reports heads may be left: only if there is another, and not
   * repeatedly, since all may be late against a false height.
   */
  #mayLeaveLate(nowMs: number): boolean {
    const { pin, tracker } = this.#request;
    if (pin !== null || tracker.set.providers.length < 2 || nowMs < this.#mayBeLateUntilMs)
      return false;
    this.#mayBeLateUntilMs = nowMs + this.#latePauseMs;
    this.#latePauseMs = Math.min(LONGEST_LATE_AGAIN_MS, this.#latePauseMs * 2);
    return true;
  }

  #emit(results: readonly Buffer[], block: EventBlock | null): void {
    const heardAtMs = this.#heardAtMs ?? this.#parts.runtime.now();
    if (!this.#tipBuffer.take({ results, block, heardAtMs })) return this.#deliver(results);
    if (this.#outbox.length === 0) this.#heardAtMs = null;
  }

  #deliver(results: readonly Buffer[]): void {
    if (this.#outbox.length === 0) queueMicrotask(() => this.#flush());
    this.#outbox.push(...results);
  }

  /** Delivers what was held back. */
  #deliverHeld({ results, heardAtMs }: HeldResults): void {
    this.#deliver(results);
    this.#heardAtMs = Math.min(this.#heardAtMs ?? heardAtMs, heardAtMs);
  }

  /** The view above whose tip nothing is delivered; null = none, as for a pinned stream. */
  #viewToKeep(): ServedView | null {
    const { tracker, pin } = this.#request;
    const { consistency = this.#parts.consistency?.() ?? "off" } = tracker.set;
    return pin !== null || consistency === "off" ? null : tracker.blocks.view;
  }

  /** Events that are held back count from the arrival of the first. */
  #noteLag(): void {
    if (this.#heardAtMs === null) return;
    const lagMs = Math.max(0, this.#parts.runtime.now() - this.#heardAtMs);
    this.#heardAtMs = null;
    this.#lagMs = this.#lagMs === null ? lagMs : this.#lagMs + (lagMs - this.#lagMs) * LAG_WEIGHT;
  }

  /**
   * Delivers the events of this turn together. Events from before the stream began go only to
   * subscribers that wait for its beginning.
   */
  #flush(): void {
    const results = this.#outbox;
    if (results.length === 0 || !this.#everLive) return;
    this.#outbox = [];
    this.#events += results.length;
    this.#noteLag();
    for (const subscriber of this.#subscribers) subscriber.events(results);
  }
}

function unavailable(reason: string): { readonly outcome: Outcome } {
  const why: Fault = fault("unavailable", reason, { status: 200 });
  return { outcome: { kind: "fault", fault: why } };
}

/** What a provider failed with says more than that nobody could be asked; of equals the later. */
function moreTelling(known: Refusal | null, next: Refusal): Refusal {
  return known !== null && tellsOf(known) > tellsOf(next) ? known : next;
}

function tellsOf({ outcome, route }: Refusal): number {
  if (route !== null && route.traces.length > 0) return 2;
  return outcome.kind === "fault" && outcome.fault.retryable ? 1 : 0;
}

/** The refusal of a subscriber that cannot go on where it stood. */
export const CANNOT_RESUME: { readonly outcome: Outcome } = {
  outcome: { kind: "fault", fault: fault("filter_not_found", "filter not found") },
};
