// Subscribes to the heads of every provider with a socket, and reports heights and socket failures
// to the trackers. Asks for the newest block when it begins to listen; and whether anybody is there
// when the provider's circuit opens or others have newer blocks: a socket on which nothing is
// answered is renewed, so that subscriptions leave it.

import { quietMs } from "../../core/provider/blocks/head.ts";
import type { Consistency, Provider } from "../../core/provider/profile.ts";
import type { Failure } from "../../core/rpc/failure.ts";
import { type Head, inLiveShape, readHead } from "../../core/stream/chain-event.ts";
import type { Runtime } from "../../runtime.ts";
import { rpcCall, verdictOn } from "../rpc-call.ts";
import type { Timer, TimerWheel } from "../timer-wheel.ts";
import type { Sockets } from "../transport.ts";
import type { FactListener } from "./health-messages.ts";
import type { Tracker } from "./tracker.ts";

/** Dependencies. */
export interface HeadWatchParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly sockets: Sockets;
  /** Hears of heads, and of subscriptions to them that start or end; absent = nobody does. */
  readonly tell?: FactListener;
  /** Which view callers get of sets that say nothing of it; absent = `off`. */
  readonly consistency?: () => Consistency;
}

/** A socket that closes within this time counts as failed, however it was closed. */
const SHORT_LIFE_MS = 5_000;
const RESUBSCRIBE_MS = 30_000;
/** Wait before an unanswered subscription is requested again: shorter than for a refused one. */
const UNANSWERED_MS = 2_000;
/**
 * Least silence before a connection is dropped: longer than for a stream, because other calls use
 * it too.
 */
const SHORTEST_SILENCE_MS = 10_000;
const SILENT_QUIETS = 2;
/** Time to answer whether anybody is there. */
const ANYBODY_MS = 2_000;
const HEADS = '["newHeads"]';
/** Time to answer what the newest block is, and the longest answer that is read. */
const NEWEST_MS = 5_000;
const MAX_BLOCK_BYTES = 1_048_576;

/** Watches the heads of providers until closed. */
export class HeadWatch {
  readonly #parts: HeadWatchParts;
  #watched: ReadonlyMap<Tracker, readonly Listening[]> = new Map();

  constructor(parts: HeadWatchParts) {
    this.#parts = parts;
  }

  /**
   * Watches the providers of these trackers, and no others, from now on; known trackers are not
   * disturbed.
   */
  watch(trackers: readonly Tracker[]): void {
    const before = this.#watched;
    this.#watched = new Map(
      trackers.map((tracker) => [tracker, before.get(tracker) ?? this.#listenTo(tracker)]),
    );
    // Old listeners leave after new ones have joined, so that no socket closes in between.
    for (const [tracker, listeners] of before)
      if (!this.#watched.has(tracker)) for (const listener of listeners) listener.close();
  }

  close(): void {
    this.watch([]);
  }

  #listenTo(tracker: Tracker): readonly Listening[] {
    return tracker.set.providers
      .filter((provider) => provider.wsUrl !== null)
      .map((provider) => new Listening(this.#parts, tracker, provider));
  }
}

/** Watches the heads of one provider. */
class Listening {
  readonly #parts: HeadWatchParts;
  readonly #tracker: Tracker;
  readonly #provider: Provider;
  readonly #release: () => void;
  #leave: () => void = () => {};
  #stale: Timer | null = null;
  #again: Timer | null = null;
  #height = 0;
  #cancelNewest = (): void => {};
  /** Null = it is not in doubt. */
  #cancelDoubt: (() => void) | null = null;
  readonly #stopAttending: () => void;
  #closed = false;

  constructor(parts: HeadWatchParts, tracker: Tracker, provider: Provider) {
    this.#parts = parts;
    this.#tracker = tracker;
    this.#provider = provider;
    this.#stopAttending = tracker.attend({
      changed: (change) => {
        if (change.event === "circuit_opened" && change.provider.id === provider.id) this.#doubt();
      },
    });
    this.#release = parts.sockets.keep(provider, {
      up: () => this.#subscribe(),
      down: (failure, livedMs) => this.#down(failure, livedMs),
    });
  }

  close(): void {
    this.#closed = true;
    this.#stale?.clear();
    this.#again?.clear();
    this.#cancelNewest();
    this.#believe();
    this.#stopAttending();
    this.#setListening(false);
    this.#leave();
    this.#release();
  }

  #subscribe(): void {
    if (this.#closed || !this.#tracker.set.socketHeads) return;
    this.#again?.clear();
    this.#leave();
    const dispatch = this.#parts.sockets.subscribe(this.#provider, HEADS, {
      started: () => {
        this.#setListening(true);
        // The provider need not push heads that were known before it was subscribed.
        this.#height = this.#tracker.head() ?? 0;
        this.#watchStale();
        this.#askNewest();
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

  /**
   * Asks for the newest block, so that the tip is known before the next block comes. A head that is
   * pushed meanwhile is newer.
   */
  #askNewest(): void {
    this.#cancelNewest();
    const { sockets, timerWheel, consistency } = this.#parts;
    if ((this.#tracker.set.consistency ?? consistency?.() ?? "off") === "off") return;
    const call = {
      upstream: sockets,
      provider: this.#provider,
      method: "eth_getBlockByNumber",
      params: '["latest",false]',
      timeoutMs: NEWEST_MS,
      isProbe: true,
    } as const;
    this.#cancelNewest = rpcCall(timerWheel, call, {
      // Without its transactions it is as short as a pushed head, and is passed on to workers.
      result: (raw) => {
        if (raw.length > MAX_BLOCK_BYTES) return;
        const head = readHead(inLiveShape(raw, null));
        const pushed = this.#tracker.blocks.pushedTip(this.#provider);
        if (head !== null && (pushed === null || pushed <= head.number)) this.#take(head);
      },
      failed() {},
    });
  }

  #hear(raw: Buffer): void {
    const head = readHead(raw);
    if (head === null) return;
    this.#cancelNewest();
    this.#take(head);
  }

  #take(head: Head): void {
    this.#height = head.number;
    this.#tracker.recordHead(this.#provider, head.number, head);
    this.#parts.tell?.(this.#tracker, this.#provider, {
      kind: "head",
      height: head.number,
      head,
    });
    this.#watchStale();
  }

  /** Doubts, and later renews, a socket that has pushed nothing while others have newer blocks. */
  #watchStale(): void {
    this.#stale?.clear();
    const { newHeadsTimeoutMs, chain } = this.#tracker.set;
    const quiet = Math.min(newHeadsTimeoutMs, quietMs(chain));
    const silence = Math.max(SHORTEST_SILENCE_MS, SILENT_QUIETS * quiet);
    const isBehind = (): boolean => (this.#tracker.head() ?? 0) > this.#height;
    this.#stale = this.#parts.timerWheel.set(quiet, () => {
      if (isBehind()) this.#doubt();
      this.#stale = this.#parts.timerWheel.set(Math.min(newHeadsTimeoutMs, silence) - quiet, () => {
        if (isBehind()) this.#parts.sockets.renew(this.#provider);
        else this.#watchStale();
      });
    });
  }

  /** Renews an open socket on which a call is not answered: its provider hangs. */
  #doubt(): void {
    const { sockets, timerWheel } = this.#parts;
    const isOpen = sockets.report(this.#provider).state === "open";
    if (this.#closed || this.#cancelDoubt !== null || !isOpen) return;
    const call = {
      upstream: sockets,
      provider: this.#provider,
      method: "eth_chainId",
      params: "[]",
      timeoutMs: ANYBODY_MS,
      isProbe: true,
    } as const;
    // A socket that cannot send says so synchronously.
    this.#cancelDoubt = () => {};
    const cancel = rpcCall(timerWheel, call, {
      result: () => this.#believe(),
      failed: ({ kind }) => {
        this.#believe();
        if (kind === "timeout") sockets.renew(this.#provider);
      },
    });
    if (this.#cancelDoubt !== null) this.#cancelDoubt = cancel;
  }

  #believe(): void {
    this.#cancelDoubt?.();
    this.#cancelDoubt = null;
  }

  #setListening(listening: boolean): void {
    this.#tracker.listen(this.#provider, listening);
    this.#parts.tell?.(this.#tracker, this.#provider, { kind: "listening", listening });
  }

  #down(failure: Failure, livedMs: number | null): void {
    this.#stale?.clear();
    this.#cancelNewest();
    this.#setListening(false);
    if (livedMs !== null && livedMs >= SHORT_LIFE_MS) return;
    // A socket that closes at once counts like one that never opened.
    const found: Failure = livedMs === null ? failure : { ...failure, kind: "unsent" };
    const about = { provider: this.#provider, method: "eth_subscribe" };
    const verdict = verdictOn(found, about, this.#parts.runtime);
    this.#tracker.recordSocket(this.#provider, verdict, failure.incident);
  }
}
