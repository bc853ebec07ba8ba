// Subscriptions on one provider's socket. Equal ones share one upstream subscription (a feed). They
// end with the connection: a lost subscription is not renewed here, since only the listener knows
// which events are missing.

import { keepNewest } from "../../core/newest.ts";
import { type Failure, plainFailure } from "../../core/rpc/failure.ts";
import { readSubscriptionId } from "../../core/rpc/socket-message.ts";
import { type WireRequest, writeRequest } from "../../core/rpc/wire-request.ts";
import type { Runtime } from "../../runtime.ts";
import type { Timer, TimerWheel } from "../timer-wheel.ts";
import type { Dispatch, SubscriptionListener } from "../transport.ts";
import type { CallListener, PendingCall } from "./pending-calls.ts";
import type { SocketLimits } from "./socket-limits.ts";

/** The socket, as its subscriptions use it. */
export interface SocketRequester {
  /** Sends a request; null = refused, and the listener was told why. */
  send(requestOf: WireRequest, listener: CallListener): PendingCall | null;
  /** Abandons a call; a late answer goes to `late`. */
  abandon(call: PendingCall, late: CallListener): void;
}

/** Dependencies of the subscriptions of one socket. */
export interface SocketSubscriptionsParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly limits: SocketLimits;
}

/** The subscriptions of one socket. */
export class SocketSubscriptions {
  readonly #requester: SocketRequester;
  readonly #parts: SocketSubscriptionsParts;
  readonly #byParams = new Map<string, Feed>();
  readonly #byId = new Map<string, Feed>();
  /**
   * Ids of ended subscriptions until the provider confirms the end: last notifications may still
   * arrive. Oldest first.
   */
  readonly #left = new Set<string>();
  #held: EarlyNotification[] = [];
  #heldBytes = 0;

  constructor(requester: SocketRequester, parts: SocketSubscriptionsParts) {
    this.#requester = requester;
    this.#parts = parts;
  }

  /** Number of wanted subscriptions. */
  get size(): number {
    return this.#byParams.size;
  }
  get live(): number {
    return this.#byId.size;
  }

  join(params: string, listener: SubscriptionListener): Dispatch {
    const known = this.#byParams.get(params);
    const feed = known ?? new Feed(params);
    const dispatch: Dispatch = {
      get sent() {
        return feed.call?.sent ?? false;
      },
      cancel: () => this.#leave(feed, dispatch),
    };
    if (known === undefined && this.size >= this.#parts.limits.maxFeeds) {
      listener.refused(plainFailure("unsent", "too many subscriptions on this socket"), null);
      return dispatch;
    }
    feed.listeners.set(dispatch, listener);
    if (known === undefined) this.#subscribe(feed);
    else if (feed.id !== null) listener.started();
    return dispatch;
  }

  #leave(feed: Feed, dispatch: Dispatch): void {
    const isLast = feed.listeners.delete(dispatch) && feed.listeners.size === 0;
    if (!isLast || this.#byParams.get(feed.params) !== feed) return;
    this.#forget(feed);
    if (feed.id !== null) this.#unsubscribe(feed.id, feed.rawId);
  }

  /** Delivers a notification. False = it belongs to nothing. */
  notify(subscription: string, result: Buffer): boolean {
    const feed = this.#byId.get(subscription);
    if (feed !== undefined) {
      feed.tell((listener) => listener.event(result));
      return true;
    }
    if (this.#left.has(subscription)) return true;
    if (this.#byParams.size === this.#byId.size) return false;
    this.#hold(subscription, result);
    return true;
  }

  /**
   * Ends all subscriptions after the connection was lost. Returns those whose listeners have to
   * hear of it; unacknowledged subscriptions fail as calls.
   */
  detach(): readonly Pick<Feed, "tellLast">[] {
    const feeds = [...this.#byId.values()];
    for (const feed of feeds) this.#forget(feed);
    this.#left.clear();
    this.#dropHeld();
    return feeds;
  }

  #subscribe(feed: Feed): void {
    this.#byParams.set(feed.params, feed);
    this.#send(feed);
    if (this.#byParams.get(feed.params) === feed && feed.id === null) this.#watch(feed, 0);
  }

  #send(feed: Feed): void {
    let call: PendingCall | null = null;
    let over = false;
    const end = (): void => {
      over = true;
      if (call !== null) feed.calls.delete(call);
    };
    call = this.#requester.send(requestOf("eth_subscribe", feed.params), {
      result: (body, { start, end: stop }) => {
        end();
        this.#acknowledged(feed, body, start, stop);
      },
      failed: (failure, raw) => {
        end();
        // Another request for the same subscription may still be answered.
        if (feed.calls.size === 0) this.#refused(feed, failure, raw);
      },
    });
    if (call === null || over) return;
    feed.call ??= call;
    feed.calls.add(call);
  }

  /** Watches for a lost answer: an unanswered request is sent again, and finally given up. */
  #watch(feed: Feed, silentMs: number): void {
    const { askAgainMs, acknowledgeMs } = this.#parts.limits;
    feed.timer = this.#parts.timerWheel.set(askAgainMs, () => {
      if (feed.call?.sent !== true) return this.#watch(feed, 0);
      const totalMs = silentMs + askAgainMs;
      if (totalMs >= acknowledgeMs)
        return this.#fail(feed, "timeout", "the subscription was not acknowledged in time");
      if (feed.asked < MAX_ASKED) {
        feed.asked++;
        this.#send(feed);
      }
      if (this.#byParams.get(feed.params) === feed && feed.id === null) this.#watch(feed, totalMs);
    });
  }

  #acknowledged(feed: Feed, body: Buffer, start: number, end: number): void {
    const id = readSubscriptionId(body, start, end);
    if (id === null) return this.#fail(feed, "body", "the provider gave no subscription id");
    if (this.#byId.has(id))
      return this.#fail(feed, "body", "the provider gave one subscription id twice");
    feed.id = id;
    this.#settle(feed);
    feed.rawId = body.toString("utf8", start, end);
    this.#byId.set(id, feed);
    this.#left.delete(id);
    const early = this.#takeHeld(id);
    feed.tell((listener) => listener.started());
    for (const result of early) feed.tell((listener) => listener.event(result));
  }

  #fail(feed: Feed, kind: Failure["kind"], message: string): void {
    this.#refused(feed, plainFailure(kind, message), null);
  }

  #refused(feed: Feed, failure: Failure, raw: Buffer | null): void {
    this.#forget(feed);
    feed.tellLast((listener) => listener.refused(failure, raw));
  }

  /** Handles an acknowledgement that arrived after its subscription was left. */
  #release(body: Buffer, start: number, end: number): void {
    const id = readSubscriptionId(body, start, end);
    if (id !== null && !this.#byId.has(id))
      this.#unsubscribe(id, body.toString("utf8", start, end));
  }

  #unsubscribe(id: string, rawId: string): void {
    this.#left.add(id);
    keepNewest(this.#left, MAX_LEFT);
    const done = (): void => void this.#left.delete(id);
    this.#requester.send(requestOf("eth_unsubscribe", `[${rawId}]`), {
      result: done,
      failed: done,
    });
  }

  /** Abandons all requests of a feed; late subscriptions are ended. */
  #settle(feed: Feed): void {
    feed.timer?.clear();
    feed.timer = null;
    for (const call of feed.calls)
      this.#requester.abandon(call, {
        result: (body, { start, end }) => this.#release(body, start, end),
        failed() {},
      });
    feed.calls.clear();
  }

  #forget(feed: Feed): void {
    this.#settle(feed);
    if (this.#byParams.get(feed.params) === feed) this.#byParams.delete(feed.params);
    if (feed.id !== null) this.#byId.delete(feed.id);
    if (this.#byParams.size === this.#byId.size) this.#dropHeld();
  }

  /**
   * Holds a notification that may have arrived before its acknowledgement. The oldest are dropped
   * first, so that what is delivered later has no gap inside.
   */
  #hold(subscription: string, result: Buffer): void {
    const { maxHeldFrames, maxHeldBytes } = this.#parts.limits;
    this.#held.push({ subscription, result, atMs: this.#parts.runtime.now() });
    this.#heldBytes += result.length;
    while (this.#held.length > maxHeldFrames || this.#heldBytes > maxHeldBytes)
      this.#heldBytes -= this.#held.shift()?.result.length ?? 0;
  }

  #takeHeld(subscription: string): readonly Buffer[] {
    if (this.#held.length === 0) return [];
    const sinceMs = this.#parts.runtime.now() - this.#parts.limits.maxHeldMs;
    const taken = this.#held.filter(
      (held) => held.subscription === subscription && held.atMs >= sinceMs,
    );
    this.#held = this.#held.filter(
      (held) => held.subscription !== subscription && held.atMs >= sinceMs,
    );
    this.#heldBytes = this.#held.reduce((sum, held) => sum + held.result.length, 0);
    return taken.map((held) => held.result);
  }

  #dropHeld(): void {
    this.#held = [];
    this.#heldBytes = 0;
  }
}

const MAX_LEFT = 1_000;
/** Most requests for one subscription. */
const MAX_ASKED = 3;

interface EarlyNotification {
  readonly subscription: string;
  readonly result: Buffer;
  readonly atMs: number;
}

/** One upstream subscription. */
class Feed {
  readonly params: string;
  /** Null = not yet acknowledged. */
  id: string | null = null;
  /** The raw JSON of the id. */
  rawId = "";
  /** The first request for it, and all unanswered ones. */
  call: PendingCall | null = null;
  readonly calls = new Set<PendingCall>();
  asked = 1;
  timer: Timer | null = null;
  /** By what each can leave with. */
  readonly listeners = new Map<Dispatch, SubscriptionListener>();

  constructor(params: string) {
    this.params = params;
  }

  /** Tells all listeners, except those that leave meanwhile. */
  tell(say: (listener: SubscriptionListener) => void): void {
    for (const [dispatch, listener] of [...this.listeners])
      if (this.listeners.has(dispatch)) say(listener);
  }

  /** The same; the listeners hear nothing more. */
  tellLast(say: (listener: SubscriptionListener) => void): void {
    for (const [dispatch, listener] of [...this.listeners])
      if (this.listeners.delete(dispatch)) say(listener);
  }
}

function requestOf(method: string, params: string): WireRequest {
  return writeRequest(method, Buffer.from(params));
}
