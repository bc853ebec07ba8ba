// Subscribes to the heads of a provider with a socket, and reports heights and socket failures to
// its tracker. Asks for the newest block when it begins to listen; and whether anybody is there
// when the provider's circuit opens or others have newer blocks: a socket on which nothing is
// answered is renewed, so that subscriptions leave it.

import { quietMs } from "../../core/provider/blocks/head.ts";
import type { Provider } from "../../core/provider/profile.ts";
import type { Failure } from "../../core/rpc/failure.ts";
import { type Head, inLiveShape, readHead } from "../../core/stream/chain-event.ts";
import { type RpcCallListener, rpcCall, verdictOn } from "../rpc-call.ts";
import type { Timer } from "../timer-wheel.ts";
import type { Sockets } from "../transport.ts";
import type { HealthParts } from "./background-queries.ts";
import type { Tracker } from "./tracker.ts";

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

/** Listens to the heads of one provider until it is closed. */
export class HeadListener {
  readonly #parts: HealthParts;
  readonly #sockets: Sockets;
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

  constructor(parts: HealthParts, sockets: Sockets, tracker: Tracker, provider: Provider) {
    this.#parts = parts;
    this.#sockets = sockets;
    this.#tracker = tracker;
    this.#provider = provider;
    this.#stopAttending = tracker.attend({
      changed: (change) => {
        if (change.event === "circuit_opened" && change.provider.id === provider.id) this.#doubt();
      },
    });
    this.#release = sockets.keep(provider, {
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
    const dispatch = this.#sockets.subscribe(this.#provider, HEADS, {
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
    const { consistency } = this.#parts;
    if ((this.#tracker.set.consistency ?? consistency?.() ?? "off") === "off") return;
    this.#cancelNewest = this.#send("eth_getBlockByNumber", '["latest",false]', NEWEST_MS, {
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
        if (isBehind()) this.#sockets.renew(this.#provider);
        else this.#watchStale();
      });
    });
  }

  /** Renews an open socket on which a call is not answered: its provider hangs. */
  #doubt(): void {
    const isOpen = this.#sockets.report(this.#provider).state === "open";
    if (this.#closed || this.#cancelDoubt !== null || !isOpen) return;
    // A socket that cannot send says so synchronously.
    this.#cancelDoubt = () => {};
    const cancel = this.#send("eth_chainId", "[]", ANYBODY_MS, {
      result: () => this.#believe(),
      failed: ({ kind }) => {
        this.#believe();
        if (kind === "timeout") this.#sockets.renew(this.#provider);
      },
    });
    if (this.#cancelDoubt !== null) this.#cancelDoubt = cancel;
  }

  #send(method: string, params: string, timeoutMs: number, listener: RpcCallListener): () => void {
    const [upstream, provider] = [this.#sockets, this.#provider];
    const call = { upstream, provider, method, params, timeoutMs, isProbe: true } as const;
    return rpcCall(this.#parts.timerWheel, call, listener);
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
