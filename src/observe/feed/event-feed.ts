// The live feed of one process: takes some of the calls at their end, keeps the latest as
// decisions, and passes them on with all changes of state while somebody watches. A call that is
// not taken costs a few comparisons. Knows no reader and no other process.

import type { Runtime } from "../../runtime.ts";
import type { Outcome } from "../../upstream/engine/answer.ts";
import type { PlanRecording } from "../../upstream/engine/failover.ts";
import type { RoutedCall } from "../../upstream/engine/router.ts";
import { callEventOf, decisionOf, type RoutingDecision } from "./decision.ts";
import type { FeedEvent } from "./feed-event.ts";

/** Calls a second that are taken of the whole service while somebody watches. */
export const WATCHED_PER_S = 200;
/** The same while nobody does, so that there is something to look at. */
const UNWATCHED_PER_S = 10;
/** Of these, the share of calls that went well: the rest is for those that did not. */
const GOOD_SHARE = 0.8;
/** Decisions that are kept. */
export const MAX_DECISIONS = 512;
/** Events that wait to be passed on. */
const MAX_PENDING = 500;
/** How long events are gathered before they are passed on. */
const GATHER_MS = 100;
const WINDOW_MS = 1_000;

/** Events that were gathered, and how many calls there were meanwhile. */
export interface FeedBatch {
  readonly events: readonly FeedEvent[];
  /** Calls among the events. */
  readonly shown: number;
  /** Calls that ended. */
  readonly ended: number;
}

/** A routed call that has ended. */
export interface EndedCall {
  readonly route: RoutedCall;
  /** Null = its caller left. */
  readonly outcome: Outcome | null;
  readonly requestId: string;
  readonly series: { readonly profile: string; readonly chain: string };
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

/** The feed of this process. */
export class EventFeed implements PlanRecording {
  readonly #parts: FeedParts;
  /** Begins the ids of this process. */
  readonly #prefix: string;
  readonly #decisions: RoutingDecision[] = [];
  #lastId = 0;
  #receive: ((batch: FeedBatch) => void) | null = null;
  #limit: number;
  #recordable: number;
  /** In the present second. */
  #recorded = 0;
  #taken = 0;
  #windowStartMs = Number.NEGATIVE_INFINITY;
  #pending: FeedEvent[] = [];
  #ended = 0;
  #shown = 0;
  #gathering = false;

  constructor(parts: FeedParts) {
    const { runtime, worker } = parts;
    const chance = Math.floor(runtime.random() * 36 ** 4).toString(36);
    this.#parts = parts;
    this.#prefix = `${worker}-${Math.floor(runtime.wallMs() / 1_000).toString(36)}${chance}-`;
    this.#limit = this.#limitOf(UNWATCHED_PER_S);
    this.#recordable = Math.ceil(this.#limit * GOOD_SHARE);
  }

  get worker(): string {
    return this.#parts.worker;
  }

  /** Passes events on from now on; null = nobody watches any more. */
  watch(receive: ((batch: FeedBatch) => void) | null): void {
    this.#receive = receive;
    this.#limit = this.#limitOf(receive === null ? UNWATCHED_PER_S : WATCHED_PER_S);
    this.#recordable = Math.ceil(this.#limit * GOOD_SHARE);
    if (receive !== null) return;
    this.#pending = [];
    this.#ended = 0;
    this.#shown = 0;
  }

  takes(): boolean {
    if (this.#recorded >= this.#recordable) return false;
    this.#recorded++;
    return true;
  }

  /** Hears of every routed call at its end, at `nowMs`. */
  ended(call: EndedCall, nowMs: number): void {
    this.#ended++;
    const ageMs = nowMs - this.#windowStartMs;
    if (ageMs >= WINDOW_MS || ageMs < 0) {
      this.#windowStartMs = nowMs;
      this.#recorded = 0;
      this.#taken = 0;
    }
    if (this.#taken < this.#limit && this.#isTaken(call)) this.#take(call, nowMs);
  }

  /** Passes a change of state on, if somebody watches. */
  emit(event: UnplacedEvent): void {
    if (this.#receive === null) return;
    const at = new Date(this.#parts.runtime.wallMs()).toISOString();
    const { worker } = this.#parts;
    this.#add({ type: event.type, data: { at, worker, ...event.data } } as FeedEvent);
  }

  /** A decision that is still kept. */
  decision(id: string): RoutingDecision | null {
    return this.#decisions.find((decision) => decision.id === id) ?? null;
  }

  /** The decisions that are kept, latest first. */
  decisions(): readonly RoutingDecision[] {
    return this.#decisions.toReversed();
  }

  #limitOf(perS: number): number {
    return Math.max(1, Math.ceil(perS / this.#parts.workers));
  }

  /**
   * Those whose inputs were recorded, those that did not go well, and some of those that needed no
   * plan.
   */
  #isTaken({ route, outcome }: EndedCall): boolean {
    if (route.plan.inputs !== undefined) return true;
    if (outcome === null || outcome.kind === "fault" || route.traces.length > 1) return true;
    return route.traces.length === 0 && this.#taken < this.#recordable;
  }

  #take({ route, outcome, requestId, series }: EndedCall, nowMs: number): void {
    const { runtime, worker } = this.#parts;
    this.#taken++;
    const decision = decisionOf(route, {
      id: this.#prefix + (++this.#lastId).toString(36),
      worker,
      wallMs: runtime.wallMs(),
      nowMs,
      requestId,
      profile: series.profile,
      chain: series.chain,
      outcome,
    });
    this.#decisions.push(decision);
    if (this.#decisions.length > MAX_DECISIONS) this.#decisions.shift();
    if (this.#receive === null) return;
    this.#shown++;
    this.#add({ type: "call", data: callEventOf(decision) });
  }

  #add(event: FeedEvent): void {
    if (this.#pending.length >= MAX_PENDING) this.#pending.shift();
    this.#pending.push(event);
    if (this.#gathering) return;
    this.#gathering = true;
    this.#parts.runtime.after(GATHER_MS, () => {
      this.#gathering = false;
      this.#pass();
    });
  }

  #pass(): void {
    const batch = { events: this.#pending, shown: this.#shown, ended: this.#ended };
    this.#pending = [];
    this.#shown = 0;
    this.#ended = 0;
    if (batch.events.length > 0) this.#receive?.(batch);
  }
}
