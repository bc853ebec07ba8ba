// One subscription and its subscribers: has one provider at a time, finds another when that fails, and ends when that cannot be done in time. What a change
// of providers means for the events is continuity's business.
import { type Fault, fault } from "../../core/fault.ts";
import type { Provider } from "../../core/profile.ts";
import type { Outcome, Route } from "../router.ts";
import type { Tracker } from "../tracker.ts";
import type { Alarm } from "../wheel.ts";
import { ChainContinuity } from "./chain-continuity.ts";
import type { Continuity, ContinuityParts, Teller, Trouble } from "./continuity.ts";
import { LooseContinuity } from "./loose-continuity.ts";
import { type Opened, openSource, type Source, type SourceParts } from "./source.ts";
import type { FailoverReason, StreamReport, SubscribeRequest, Subscriber } from "./subscriber.ts";

/** What a stream tells its registry. */
export interface StreamOwner {
  /** It has no subscribers and no provider any more. */
  over(): void;
  failedOver(reason: FailoverReason): void;
  /** It could not be continued for those who had it. */
  ended(): void;
}

/** A time without a provider. */
interface Outage {
  /** Ids of providers that are not tried again in this round. */
  readonly avoid: Set<string>;
  /** Some provider's chain lies further ahead than may be filled. */
  far: boolean;
  /** Times that everybody was tried. */
  rounds: number;
  readonly alarm: Alarm | null;
  readonly reason: FailoverReason | null;
}

interface Waiting {
  readonly subscriber: Subscriber;
  readonly alarm: Alarm;
}

/** How long a provider is kept after the last subscriber has left. */
const LINGER_MS = 60_000;
const RETRY_MS = 250;
const LONGEST_RETRY_MS = 2_000;
const OPEN_MS = 10_000;
const FORGOTTEN = "logs have left the chain that are no longer held";

/** One stream. */
export class Stream {
  readonly #parts: SourceParts;
  readonly #owner: StreamOwner;
  readonly #continuity: Continuity;
  #request: SubscribeRequest;
  readonly #subscribers = new Set<Subscriber>();
  readonly #waiting = new Set<Waiting>();
  #outbox: Buffer[] = [];
  #source: Source | null = null;
  #outage: Outage | null;
  /** Why nobody could be subscribed the first time is told to those who wait; later it is tried again. */
  #everLive = false;
  #over = false;
  #cancel: () => void = () => {};
  #attempts = 0;
  #stale: Alarm | null = null;
  #linger: Alarm | null = null;
  #failovers = 0;
  #events = 0;

  constructor(parts: SourceParts, request: SubscribeRequest, owner: StreamOwner) {
    this.#parts = parts;
    this.#request = request;
    this.#owner = owner;
    const { world, wheel } = parts;
    const teller = { tell: (results: readonly Buffer[]) => this.#tell(results), trouble: (why: Trouble) => this.#trouble(why) };
    this.#continuity = continuityOf({ world, wheel, subscription: request.subscription, set: () => this.#request.tracker.set }, teller);
    this.#outage = { avoid: new Set(), far: false, rounds: 0, alarm: null, reason: null };
  }

  /** Joins; the first one to join begins the stream. Returns the way to leave. */
  join(subscriber: Subscriber, deadlineMs: number): () => void {
    this.#linger?.clear();
    this.#linger = null;
    const fresh = this.#waiting.size === 0 && !this.#everLive;
    if (this.#outage === null) this.#start(subscriber, null);
    else this.#wait(subscriber, deadlineMs);
    if (fresh) this.#seek();
    return () => this.#leave(subscriber);
  }

  /** Goes on with another set of providers; `pin` is the pinned provider in it. */
  rebind(tracker: Tracker, pin: Provider | null): void {
    this.#request = { ...this.#request, tracker, pin };
    const provider = this.#source?.provider;
    if (provider === undefined || tracker.set.providers.some((it) => it.id === provider.id && it.wsUrl === provider.wsUrl)) return;
    this.#fail("removed");
  }

  report(): StreamReport {
    const state = this.#outage === null ? "live" : this.#everLive ? "recovering" : "opening";
    const { height, filledBlocks } = this.#continuity;
    const subscribers = this.#subscribers.size + this.#waiting.size;
    return { state, provider: this.#source?.provider ?? null, subscribers, height, filledBlocks, failovers: this.#failovers, events: this.#events };
  }

  /** Ends it for everybody. */
  end(reason: string): void {
    if (this.#over) return;
    const [subscribers, waiting] = [[...this.#subscribers], [...this.#waiting]];
    this.#close();
    if (subscribers.length > 0) this.#owner.ended();
    for (const it of subscribers) it.ended(reason);
    for (const it of waiting) it.subscriber.refused({ kind: "fault", fault: unavailable(reason) }, null);
  }

  #wait(subscriber: Subscriber, deadlineMs: number): void {
    const alarm = this.#parts.wheel.set(deadlineMs, () => {
      this.#waiting.delete(it);
      this.#leave(subscriber);
      subscriber.refused({ kind: "fault", fault: unavailable("no provider could be subscribed in time") }, null);
    });
    const it: Waiting = { subscriber, alarm };
    this.#waiting.add(it);
  }

  #leave(subscriber: Subscriber): void {
    this.#subscribers.delete(subscriber);
    for (const it of this.#waiting) {
      if (it.subscriber !== subscriber) continue;
      it.alarm.clear();
      this.#waiting.delete(it);
    }
    if (this.#over || this.#subscribers.size + this.#waiting.size > 0 || this.#linger !== null) return;
    if (this.#outage === null) this.#linger = this.#parts.wheel.set(LINGER_MS, () => this.#close());
    else this.#close();
  }

  #start(subscriber: Subscriber, route: Route | null): void {
    this.#subscribers.add(subscriber);
    subscriber.started(route);
  }

  /** Finds a provider among those that have not failed in this outage. */
  #seek(): void {
    const outage = this.#outage;
    if (outage === null || this.#over) return;
    const { tracker, subscription, strategy, pin } = this.#request;
    const attempt = ++this.#attempts;
    const cancel = openSource(
      this.#parts,
      { tracker, subscription, strategy, pin, avoid: outage.avoid, lenient: this.#everLive, deadlineMs: OPEN_MS },
      {
        opened: (opened) => this.#opened(outage, opened),
        event: (raw) => this.#continuity.hear(raw, subscription.kind === "newHeads"),
        head: (raw) => this.#continuity.hear(raw, true),
        lost: () => this.#fail("lost"),
      },
    );
    // A provider that answers at once has already moved this stream on.
    if (this.#attempts === attempt) this.#cancel = cancel;
  }

  #opened(outage: Outage, opened: Opened): void {
    if (opened.kind === "open") return this.#attach(outage, opened.source, opened.route);
    const { lacking, outcome, route } = opened;
    if (lacking !== null) return this.#avoid(outage, lacking);
    if (!this.#everLive) return this.#refuse(outcome, route);
    // A route asks only a few: the others are next, and those it asked wait for the next round.
    if (route.traces.length > 0) return this.#avoid(outage, ...route.traces.map((it) => it.attempt.provider));
    if (outage.far) return this.end("too many blocks were missed");
    outage.avoid.clear();
    const pauseMs = Math.min(LONGEST_RETRY_MS, RETRY_MS * 2 ** outage.rounds++);
    this.#parts.world.after(pauseMs * (1 + this.#parts.world.random()), () => this.#outage === outage && this.#seek());
  }

  #attach(outage: Outage, source: Source, route: Route): void {
    this.#source = source;
    void this.#continuity.attach(source, outage.rounds).then((trouble) => {
      if (this.#source !== source || this.#over) return;
      if (trouble === null) return this.#live(route);
      if (trouble === "forgotten") return this.end(FORGOTTEN);
      outage.far ||= trouble === "far";
      this.#avoid(outage, source.provider);
    });
  }

  #avoid(outage: Outage, ...providers: readonly Provider[]): void {
    this.#drop();
    for (const { id } of providers) outage.avoid.add(id);
    this.#seek();
  }

  #live(route: Route): void {
    this.#outage?.alarm?.clear();
    if (this.#outage?.reason) {
      this.#failovers++;
      this.#owner.failedOver(this.#outage.reason);
    }
    this.#outage = null;
    this.#everLive = true;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const it of waiting) it.alarm.clear();
    for (const it of waiting) this.#start(it.subscriber, route);
    this.#continuity.release();
    if (this.#outage === null) this.#watchHeads();
  }

  #refuse(outcome: Outcome, route: Route): void {
    const waiting = [...this.#waiting];
    this.#close();
    for (const it of waiting) it.subscriber.refused(outcome, route);
  }

  #trouble(why: Trouble): void {
    if (this.#source === null) return;
    if (why === "forgotten") this.end(FORGOTTEN);
    else this.#fail(why);
  }

  /** The provider is lost or cannot serve any longer: another one goes on from where it stopped. */
  #fail(reason: FailoverReason): void {
    if (this.#over) return;
    const failed = this.#source?.provider;
    this.#drop();
    if (this.#everLive && this.#subscribers.size + this.#waiting.size === 0) return this.#close();
    const outage = this.#outage ?? this.#beginOutage(reason);
    outage.far ||= reason === "far";
    if (failed !== undefined) outage.avoid.add(failed.id);
    this.#seek();
  }

  #beginOutage(reason: FailoverReason): Outage {
    const { backfillTimeoutMs } = this.#request.tracker.set;
    const alarm = this.#parts.wheel.set(backfillTimeoutMs, () => this.end("no provider could go on in time"));
    this.#outage = { avoid: new Set(), far: false, rounds: 0, alarm, reason };
    return this.#outage;
  }

  /** Lets go of the provider. */
  #drop(): void {
    this.#cancel();
    this.#source?.close();
    this.#source = null;
    this.#stale?.clear();
    this.#stale = null;
    this.#continuity.detach();
  }

  #close(): void {
    if (this.#over) return;
    this.#over = true;
    this.#drop();
    this.#outage?.alarm?.clear();
    this.#linger?.clear();
    for (const it of this.#waiting) it.alarm.clear();
    this.#waiting.clear();
    this.#subscribers.clear();
    this.#owner.over();
  }

  /** A provider that tells of no head for too long has stopped, whatever its socket says. */
  #watchHeads(): void {
    const { tracker } = this.#request;
    const { lastHeadAtMs } = this.#continuity;
    if (lastHeadAtMs === null) return;
    const restMs = tracker.set.newHeadsTimeoutMs - (this.#parts.world.now() - lastHeadAtMs);
    if (restMs > 0) {
      this.#stale = this.#parts.wheel.set(restMs, () => this.#watchHeads());
      return;
    }
    const provider = this.#source?.provider;
    if (provider === undefined) return;
    tracker.recordSocket(provider, { category: "stale_heads", step: "next", effect: { kind: "lag" } });
    this.#fail("stale_heads");
  }

  #tell(results: readonly Buffer[]): void {
    if (this.#outbox.length === 0) queueMicrotask(() => this.#flush());
    this.#outbox.push(...results);
  }

  /** What came together goes out together. */
  #flush(): void {
    const results = this.#outbox;
    this.#outbox = [];
    this.#events += results.length;
    for (const it of this.#subscribers) it.events(results);
  }
}

function continuityOf(parts: ContinuityParts, teller: Teller): Continuity {
  const { kind } = parts.subscription;
  return kind === "newHeads" || kind === "logs" ? new ChainContinuity(parts, kind, teller) : new LooseContinuity(kind, teller);
}

function unavailable(reason: string): Fault {
  return fault("unavailable", reason, { status: 200 });
}
