// The live feed of one process: takes some of the calls at their end, keeps them as decisions, and
// passes them on with all changes of state while somebody watches. Filters choose before calls are
// left out, so that rare ones are not missed. On the path of a call nothing is written: a call that
// is taken costs one record, any other a few comparisons. Knows no reader and no other process.
import type { Runtime } from "../../runtime.ts";
import type { PlanRecording } from "../../upstream/engine/attempts/attempt.ts";
import type { RouteRequest } from "../../upstream/engine/call-context.ts";
import type { RoutedCall } from "../../upstream/engine/router.ts";
import {
  ANY_CALL,
  type CallFilter,
  CallSample,
  type CallWorth,
  type FilteredCall,
  matches,
} from "./call-filter.ts";
import {
  callEventOf,
  type DecisionOrigin,
  decisionId,
  decisionOf,
  type EndedCall,
  filteredCallOf,
  type RoutingDecision,
  SLOW_MS,
} from "./decision.ts";
import { type ChangeEvent, type FeedEvent, isRemembered } from "./feed-event.ts";
import { type DecisionUse, KeptDecisions } from "./kept-decisions.ts";
import { MAX_CHANGES } from "./recent-changes.ts";

/** Calls a second of the whole service that the readers of one filter see. */
export const WATCHED_PER_S = 200;
/** Calls a second that are kept where nobody watches, so that there is something to look at. */
export const UNWATCHED_PER_S = 10;
/** Different filters at a time, of readers at all workers. */
export const MAX_FILTERS = 64;
/** How long events are gathered before they are passed on. */
const GATHER_MS = 200;
const WINDOW_MS = 1_000;

/** One event, and who receives it. */
export interface FeedItem {
  readonly event: FeedEvent;
  /** Keys of the filters that it passed; null = it is for all readers. */
  readonly filters: readonly string[] | null;
}

/** Events that were gathered, and how many calls there were meanwhile. */
export interface FeedBatch {
  readonly events: readonly FeedItem[];
  /** How many calls passed each filter, and how many of these are among the events. */
  readonly counts: readonly { filter: string; shown: number; matched: number }[];
  /** Calls that ended. */
  readonly ended: number;
}

/** What a feed works with. */
export interface FeedParts {
  readonly runtime: Pick<Runtime, "now" | "wallMs" | "random" | "after">;
  /** This worker, and among how many the calls a second are divided. */
  readonly worker: string;
  readonly workers: number;
}

type Unplaced<E> = E extends { readonly type: infer T; readonly data: infer D }
  ? { readonly type: T; readonly data: Omit<D, "at" | "worker"> }
  : never;

/** An event without its time and worker. */
export type UnplacedEvent = Unplaced<Exclude<FeedEvent, { readonly type: "call" }>>;

/** A call that waits to be passed on. */
interface PendingCall {
  readonly decision: RoutingDecision;
  readonly filters: readonly string[];
}

/** The feed of this process. */
export class EventFeed implements PlanRecording {
  readonly worker: string;
  readonly #parts: FeedParts;
  readonly #origin: DecisionOrigin;
  readonly #kept = new KeptDecisions();
  /** Keeps some calls, also while nobody watches. */
  readonly #base: CallSample;
  /** That one, and one for each filter of a reader. */
  #samples: readonly CallSample[];
  #lastNumber = 0;
  #receive: ((batch: FeedBatch) => void) | null = null;
  #windowStartMs = Number.NEGATIVE_INFINITY;
  #pendingCalls: PendingCall[] = [];
  #pendingChanges: FeedItem[] = [];
  #changes: ChangeEvent[] = [];
  #ended = 0;
  #cancelGather: () => void = () => {};

  constructor(parts: FeedParts) {
    const { runtime, worker } = parts;
    const chance = Math.floor(runtime.random() * 36 ** 4).toString(36);
    const start = Math.floor(runtime.wallMs() / 1_000).toString(36);
    this.worker = worker;
    this.#parts = parts;
    this.#origin = { worker, idPrefix: `${worker}-${start}${chance}-` };
    this.#base = new CallSample(ANY_CALL, this.#limitOf(UNWATCHED_PER_S));
    this.#samples = [this.#base];
  }

  /**
   * Passes events on from now on, and calls that pass one of the filters, which are by their keys:
   * `MAX_FILTERS` at most. Null = no more.
   */
  watch(
    filters: ReadonlyMap<string, CallFilter>,
    receive: ((batch: FeedBatch) => void) | null,
  ): void {
    const before = this.#receive;
    this.#receive = receive;
    const known = new Map(this.#samples.slice(1).map((sample) => [sample.key, sample]));
    const watched = Array.from(
      filters,
      ([key, filter]) => known.get(key) ?? new CallSample(filter, this.#limitOf(WATCHED_PER_S)),
    );
    this.#samples = [this.#base, ...watched];
    if (receive === null) return this.#rest();
    if (before !== null) return;
    // Calls that ended while nobody watched are of no second that is told of.
    this.#ended = 0;
    this.#gather();
  }

  takes(request: RouteRequest, nowMs: number): boolean {
    if (nowMs - this.#windowStartMs >= WINDOW_MS) this.#newSecond(nowMs);
    let isRecorded = false;
    for (const sample of this.#samples) if (sample.records(request)) isRecorded = true;
    return isRecorded;
  }

  /** Hears of every call at its end, at `nowMs`. */
  ended(call: EndedCall, nowMs: number): void {
    this.#ended++;
    const ageMs = nowMs - this.#windowStartMs;
    if (ageMs >= WINDOW_MS || ageMs < 0) this.#newSecond(nowMs);
    const samples = this.#samples;
    let isTaken = false;
    let isChosen = false;
    let filters: readonly string[] | null = null;
    let facts: FilteredCall | null = null;
    let worth: CallWorth | null = null;
    for (const sample of samples) {
      if (sample.isFiltered) {
        facts ??= filteredCallOf(call, nowMs);
        if (!matches(sample.filter, facts)) continue;
      }
      sample.matched++;
      if (sample.isFull) continue;
      worth ??= worthOf(call, nowMs);
      if (!sample.takes(worth)) continue;
      isTaken = true;
      if (sample === this.#base) continue;
      isChosen ||= sample.isFiltered;
      filters = [...(filters ?? []), sample.key];
    }
    if (!isTaken) return;
    const number = ++this.#lastNumber;
    const wallMs = this.#parts.runtime.wallMs();
    const decision = decisionOf(call, { origin: this.#origin, number, wallMs, nowMs });
    this.#kept.add(decision, isChosen);
    if (filters !== null) this.#pendingCalls.push({ decision, filters });
  }

  /** Keeps a change that is remembered until it is taken, and passes it on if somebody watches. */
  emit(event: UnplacedEvent): void {
    const at = new Date(this.#parts.runtime.wallMs()).toISOString();
    const { worker } = this;
    const change = { type: event.type, data: { at, worker, ...event.data } } as ChangeEvent;
    if (isRemembered(change)) {
      if (this.#changes.length >= MAX_CHANGES) this.#changes.shift();
      this.#changes.push(change);
    }
    if (this.#receive === null) return;
    if (this.#pendingChanges.length >= MAX_CHANGES) this.#pendingChanges.shift();
    this.#pendingChanges.push({ event: change, filters: null });
  }

  /** The latest of these changes since they were taken. */
  takeChanges(): readonly ChangeEvent[] {
    const changes = this.#changes;
    this.#changes = [];
    return changes;
  }

  /** A decision that is still kept. */
  decision(id: string): RoutingDecision | null {
    return this.#kept.all().find((decision) => decisionId(decision) === id) ?? null;
  }

  /** The decisions that are kept, latest first. */
  decisions(): readonly RoutingDecision[] {
    return this.#kept.all();
  }

  /** How many decisions are kept, and since when. */
  use(): DecisionUse {
    return this.#kept.use();
  }

  #limitOf(perS: number): number {
    return Math.max(1, Math.ceil(perS / this.#parts.workers));
  }

  #newSecond(nowMs: number): void {
    this.#windowStartMs = nowMs;
    for (const sample of this.#samples) sample.newSecond();
  }

  #gather(): void {
    this.#cancelGather = this.#parts.runtime.after(GATHER_MS, () => {
      this.#gather();
      const batch = this.#batch();
      if (batch.ended > 0 || batch.events.length > 0) this.#receive?.(batch);
    });
  }

  /** What has come together; calls are put into words here, away from their path. */
  #batch(): FeedBatch {
    const calls = this.#pendingCalls.map(({ decision, filters }): FeedItem => {
      return { event: { type: "call", data: callEventOf(decision) }, filters };
    });
    const events = [...this.#pendingChanges, ...calls];
    const counts = this.#samples.slice(1).map((sample) => {
      const { key, matched, taken } = sample;
      sample.matched = 0;
      sample.taken = 0;
      return { filter: key, shown: taken, matched };
    });
    const ended = this.#ended;
    this.#pendingCalls = [];
    this.#pendingChanges = [];
    this.#ended = 0;
    return { events, counts, ended };
  }

  #rest(): void {
    this.#cancelGather();
    this.#batch();
  }
}

/** What there is to say of a call. */
function worthOf({ route, end: { outcome }, ms }: EndedCall, nowMs: number): CallWorth {
  if (outcome === "failed" || outcome === "cancelled") return "notable";
  if (route === null) return "explained";
  if (route.traces.length > 1 || (ms ?? nowMs - route.startedAtMs) >= SLOW_MS) return "notable";
  return hasNoMore(route) ? "explained" : "plain";
}

/** Whether more of its plan would not be known if it had been recorded. */
function hasNoMore({ plan, traces, request }: RoutedCall): boolean {
  return plan.inputs !== undefined || traces.length === 0 || request.pin !== null;
}
