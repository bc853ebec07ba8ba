// Subscribes to the heads of every provider that has a socket, and reports heights and failures of
// sockets to the trackers. Makes no other calls.

import { quietMs } from "../../core/provider/head.ts";
import type { Provider } from "../../core/provider/profile.ts";
import { classify } from "../../core/provider-errors/classify.ts";
import type { Failure } from "../../core/rpc/failure.ts";
import { methodOf } from "../../core/rpc/method.ts";
import { type Head, readHead } from "../../core/stream/chain-event.ts";
import type { Runtime } from "../../runtime.ts";
import type { Timer, TimerWheel } from "../timer-wheel.ts";
import type { Sockets } from "../transport.ts";
import type { Tracker } from "./tracker.ts";

/** Listens until told otherwise. */
export interface HeadWatch {
  /**
   * Listens to the providers of these trackers from now on, and no others; those of trackers it
   * knows already go on undisturbed.
   */
  watch(trackers: readonly Tracker[]): void;
  close(): void;
}

/** What listening works with. */
export interface HeadWatchParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly sockets: Sockets;
  /** Hears every head; left out = nobody does. */
  readonly headSeen?: (tracker: Tracker, provider: Provider, head: Head) => void;
}

/** A socket that is accepted and dropped within this has failed, however politely. */
const SHORT_LIFE_MS = 5_000;
const RESUBSCRIBE_MS = 30_000;
/** A subscription that was not answered is asked for again sooner than one that was refused. */
const UNANSWERED_MS = 2_000;
/** A connection is given up later than a stream leaves it: other calls are under way on it. */
const SHORTEST_SILENCE_MS = 10_000;
const SILENT_QUIETS = 2;
const HEADS = '["newHeads"]';

/** A watch over nothing yet. */
export function createHeadWatch(parts: HeadWatchParts): HeadWatch {
  let watched: ReadonlyMap<Tracker, readonly Listening[]> = new Map();

  function watch(trackers: readonly Tracker[]): void {
    const before = watched;
    watched = new Map(
      trackers.map((tracker) => [tracker, before.get(tracker) ?? listenTo(tracker)]),
    );
    // The old ones leave after the new ones have joined, so that no socket is closed in between.
    for (const [tracker, listeners] of before)
      if (!watched.has(tracker)) for (const listener of listeners) listener.close();
  }

  function listenTo(tracker: Tracker): readonly Listening[] {
    return tracker.set.providers
      .filter((provider) => provider.wsUrl !== null)
      .map((provider) => new Listening(parts, tracker, provider));
  }

  return { watch, close: () => watch([]) };
}

/** Listens to the heads of one provider. */
class Listening {
  readonly #parts: HeadWatchParts;
  readonly #tracker: Tracker;
  readonly #provider: Provider;
  readonly #release: () => void;
  #leave: () => void = () => {};
  #stale: Timer | null = null;
  #again: Timer | null = null;
  #height = 0;
  #closed = false;

  constructor(parts: HeadWatchParts, tracker: Tracker, provider: Provider) {
    this.#parts = parts;
    this.#tracker = tracker;
    this.#provider = provider;
    this.#release = parts.sockets.keep(provider, {
      up: () => this.#subscribe(),
      down: (failure, livedMs) => this.#down(failure, livedMs),
    });
  }

  close(): void {
    this.#closed = true;
    this.#stale?.clear();
    this.#again?.clear();
    this.#tracker.listen(this.#provider, false);
    this.#leave();
    this.#release();
  }

  #subscribe(): void {
    if (this.#closed || !this.#tracker.set.socketHeads) return;
    this.#again?.clear();
    this.#leave();
    const dispatch = this.#parts.sockets.subscribe(this.#provider, HEADS, {
      started: () => {
        this.#tracker.listen(this.#provider, true);
        // The provider need not push heads that were known before it was subscribed.
        this.#height = this.#tracker.head() ?? 0;
        this.#watchStale();
      },
      refused: ({ kind }) => this.#subscribeIn(kind === "timeout" ? UNANSWERED_MS : RESUBSCRIBE_MS),
      event: (raw) => this.#hear(raw),
      lost: () => this.#stale?.clear(),
    });
    this.#leave = () => dispatch.cancel();
  }

  #subscribeIn(ms: number): void {
    this.#again?.clear();
    this.#again = this.#parts.timerWheel.set(ms, () => this.#subscribe());
  }

  #hear(raw: Buffer): void {
    const head = readHead(raw);
    if (head === null) return;
    this.#height = head.number;
    this.#tracker.recordHead(this.#provider, head.number);
    this.#parts.headSeen?.(this.#tracker, this.#provider, head);
    this.#watchStale();
  }

  /**
   * Renews a socket that has pushed nothing while other providers have newer blocks.
   */
  #watchStale(): void {
    this.#stale?.clear();
    const { newHeadsTimeoutMs, chain } = this.#tracker.set;
    this.#stale = this.#parts.timerWheel.set(
      Math.min(newHeadsTimeoutMs, Math.max(SHORTEST_SILENCE_MS, SILENT_QUIETS * quietMs(chain))),
      () => {
        if ((this.#tracker.head() ?? 0) > this.#height) this.#parts.sockets.renew(this.#provider);
        else this.#watchStale();
      },
    );
  }

  #down(failure: Failure, livedMs: number | null): void {
    this.#stale?.clear();
    this.#tracker.listen(this.#provider, false);
    if (livedMs !== null && livedMs >= SHORT_LIFE_MS) return;
    const method = methodOf("eth_subscribe");
    // A socket that is dropped at once is as bad as one that never opened.
    const found: Failure = livedMs === null ? failure : { ...failure, kind: "unsent" };
    const verdict = classify(found, method, {
      methodName: method.name,
      rules: this.#provider.errorRules,
      wallMs: this.#parts.runtime.wallMs(),
    });
    this.#tracker.recordSocket(this.#provider, verdict, failure.incident);
  }
}
