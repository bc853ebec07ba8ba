// One provider's socket: opened when needed, reopened while a listener keeps it, closed when
// unused. Requests are in `pending-calls.ts`, subscriptions in `subscriptions.ts`; this file parses
// no JSON.

import { isUtf8 } from "node:buffer";
import type { Socket } from "node:net";
import { WebSocket } from "ws";
import { type Failure, plainFailure } from "../../core/rpc/failure.ts";
import { readSocketMessage } from "../../core/rpc/socket-message.ts";
import { type WireRequest, withWireId } from "../../core/rpc/wire-request.ts";
import type { Timer } from "../timer-wheel.ts";
import type { MemoryShare, SocketListener, SocketReport } from "../transport.ts";
import { ArrivingMessage } from "./arriving-message.ts";
import { dial, nameOf, type SocketEndpoint } from "./dial.ts";
import { Heartbeat, type HeartbeatSample } from "./heartbeat.ts";
import { type CallListener, type PendingCall, PendingCalls } from "./pending-calls.ts";
import { SocketSubscriptions, type SocketSubscriptionsParts } from "./subscriptions.ts";

/** Dependencies of a socket. */
export interface ProviderSocketParts extends SocketSubscriptionsParts {
  /** The room that an arriving message counts toward until it is complete. */
  readonly room: MemoryShare;
}

/** The socket to one address, across its connections. */
export class ProviderSocket {
  readonly feeds: SocketSubscriptions;
  readonly #address: SocketEndpoint;
  readonly #parts: ProviderSocketParts;
  readonly #calls: PendingCalls;
  readonly #arriving: ArrivingMessage;
  readonly #listeners = new Set<{ readonly socketListener: SocketListener }>();
  #state: SocketReport["state"] = "idle";
  /** Null = it is in service. */
  #drainedSinceMs: number | null = null;
  #ws: WebSocket | null = null;
  #cancelDial: () => void = nothing;
  #timer: Timer | null = null;
  #failure = plainFailure("unsent", "not connected");
  /** Consecutive failed attempts. */
  #failures = 0;
  #triedAtMs = Number.NEGATIVE_INFINITY;
  #openedAtMs = 0;
  #opened = 0;
  #strayFrames = 0;
  #straysInARow = 0;

  constructor(address: SocketEndpoint, parts: ProviderSocketParts) {
    this.#address = address;
    this.#parts = parts;
    this.#calls = new PendingCalls(parts.runtime.wireId);
    this.#arriving = new ArrivingMessage(parts.room, parts.limits);
    this.feeds = new SocketSubscriptions(this, parts);
  }

  get report(): SocketReport {
    return {
      state: this.#state,
      subscriptions: this.feeds.live,
      opened: this.#opened,
      strayFrames: this.#strayFrames,
    };
  }

  /** Whether it is draining and has nothing left to do. */
  get done(): boolean {
    return this.#drainedSinceMs !== null && this.#state === "idle";
  }

  keep(socketListener: SocketListener): () => void {
    const kept = { socketListener };
    this.#listeners.add(kept);
    if (this.#state === "open") socketListener.up();
    else this.#ensureOpen();
    return () => void this.#listeners.delete(kept);
  }

  /** Whether a request would be sent at once, or would open the socket. */
  get isFree(): boolean {
    return (
      this.#state === "idle" ||
      (this.#state === "open" && this.#calls.size < this.#parts.limits.maxPending)
    );
  }

  /**
   * Sends a request, or queues it until the socket is open. Null = refused; the listener was told
   * why.
   */
  send(request: WireRequest, listener: CallListener): PendingCall | null {
    const obstacle = this.#ensureOpen() ?? this.#crowded();
    if (obstacle !== null) {
      listener.failed(obstacle, null);
      return null;
    }
    const call = this.#calls.begin(request, listener);
    if (this.#state === "open") this.#write(call);
    return call;
  }

  abandon(call: PendingCall, late: CallListener): void {
    this.#calls.abandon(call, late);
  }

  /** Drops the connection as if it had failed. */
  renew(): void {
    if (this.#ws !== null) this.#drop(this.#ws, "open, but nothing comes");
  }

  /** Drains the socket: subscriptions end, calls in flight may still be answered. */
  drain(): void {
    this.#drainedSinceMs = this.#parts.runtime.now();
    this.#listeners.clear();
    if (this.#calls.size === 0) return this.#end(REMOVED);
    for (const feed of this.feeds.detach())
      feed.tellLast((listener) => listener.lost(REMOVED.message));
  }

  /** Closes the socket at once; resolves when the connection is gone. */
  async close(): Promise<void> {
    this.#drainedSinceMs = this.#parts.runtime.now();
    this.#listeners.clear();
    const ws = this.#ws;
    const gone =
      ws === null ? null : new Promise<void>((resolve) => ws.once("close", () => resolve()));
    this.#end(CLOSING);
    await gone;
  }

  /**
   * Opens the socket if necessary. Returns why it cannot be opened now; null = it is open or
   * opening.
   */
  #ensureOpen(): Failure | null {
    if (this.#state === "open" || this.#state === "connecting") return null;
    if (this.#drainedSinceMs !== null) return { ...REMOVED, kind: "unsent" };
    const { runtime, limits } = this.#parts;
    if (this.#failures > 0 && runtime.now() - this.#triedAtMs < limits.hurryMs)
      return { ...this.#failure, kind: "unsent" };
    this.#connect();
    return null;
  }

  #crowded(): Failure | null {
    const { maxPending, maxWaiting } = this.#parts.limits;
    if (this.#calls.size < (this.#state === "open" ? maxPending : maxWaiting)) return null;
    return { ...plainFailure("unsent", "too many requests wait on this socket"), crowded: true };
  }

  #write(call: PendingCall): void {
    const ws = this.#ws;
    if (ws === null || ws.readyState !== WebSocket.OPEN)
      return this.#calls.fail(call, plainFailure("unsent", "the socket is closing"));
    if (ws.bufferedAmount > this.#parts.limits.maxBufferedBytes)
      return this.#calls.fail(call, plainFailure("unsent", "the socket is backed up"));
    call.sent = true;
    // Written only now: a waiting call holds no second copy of its request.
    ws.send(withWireId(call.request, call.id), AS_TEXT);
  }

  #connect(): void {
    const { runtime, timerWheel, limits } = this.#parts;
    this.#timer?.clear();
    this.#state = "connecting";
    this.#triedAtMs = runtime.now();
    this.#cancelDial = dial(this.#address, limits, timerWheel, {
      opened: (ws, wire) => this.#open(ws, wire),
      refused: (failure) => {
        this.#triedAtMs = runtime.now();
        this.#disconnected(failure, null);
      },
    });
  }

  #open(ws: WebSocket, wire: Socket): void {
    this.#state = "open";
    this.#ws = ws;
    this.#opened++;
    this.#openedAtMs = this.#parts.runtime.now();
    this.#straysInARow = 0;
    this.#arriving.done();
    const { runtime } = this.#parts;
    // Runs before the library reads the bytes: a message that they complete resets the count.
    wire.prependListener("data", (chunk: Buffer) => {
      if (this.#ws === ws && !this.#arriving.add(chunk.length, runtime.now()))
        this.#drop(ws, "there is no room in memory for what it sends");
    });
    for (const event of ["message", "ping", "pong"])
      ws.prependListener(event, () => this.#arriving.done());
    ws.on("message", (data, isBinary) => {
      if (this.#ws === ws && Buffer.isBuffer(data)) this.#hear(data, isBinary);
    });
    ws.on("error", (error) => this.#drop(ws, nameOf(error)));
    ws.on("close", (code) => this.#drop(ws, `closed ${code}`));
    const watch = new Heartbeat(this.#parts.limits, this.#seen(wire));
    this.#checkLater(ws, () => watch.judge(this.#seen(wire)));
    for (const call of this.#calls.unsent()) this.#write(call);
    for (const { socketListener } of [...this.#listeners]) if (this.#ws === ws) socketListener.up();
  }

  #hear(bytes: Buffer, isBinary: boolean): void {
    // `ws` has validated text frames; callers are promised UTF-8, so binary frames are validated
    // here.
    if (isBinary && !isUtf8(bytes)) return this.#stray();
    const frame = readSocketMessage(bytes);
    const known =
      (frame.kind === "answer" && this.#calls.answer(frame.id, bytes)) ||
      (frame.kind === "notification" &&
        this.feeds.notify(frame.subscription, Buffer.from(bytes.subarray(frame.start, frame.end))));
    if (known) this.#straysInARow = 0;
    else this.#stray();
  }

  #stray(): void {
    this.#strayFrames++;
    this.#straysInARow++;
    if (this.#straysInARow > this.#parts.limits.maxStrays && this.#ws !== null)
      this.#drop(this.#ws, "too many frames that belong to nothing");
  }

  /** Discards the connection `ws`. */
  #drop(ws: WebSocket, message: string): void {
    if (this.#ws !== ws) return;
    this.#ws = null;
    ws.terminate();
    this.#disconnected(
      plainFailure("network", message),
      this.#parts.runtime.now() - this.#openedAtMs,
    );
  }

  /**
   * Handles the loss of the connection, or a failed attempt: notifies everybody, and waits before
   * the next attempt.
   */
  #disconnected(why: Failure, livedMs: number | null): void {
    const { timerWheel, limits } = this.#parts;
    // All failures share this event, so that it counts once.
    const failure: Failure = { ...why, incident: why };
    this.#timer?.clear();
    this.#failure = failure;
    if (livedMs !== null && livedMs >= limits.steadyMs) this.#failures = 0;
    this.#state = this.#drainedSinceMs === null ? "waiting" : "idle";
    if (this.#drainedSinceMs === null)
      this.#timer = timerWheel.set(this.#backoffMs(failure), () => this.#again());
    this.#failures++;
    this.#failAll(failure, () => {
      for (const { socketListener } of [...this.#listeners]) socketListener.down(failure, livedMs);
    });
  }

  /**
   * Fails every call and subscription of the connection, after `tellListeners`, so that retries
   * find this socket marked as down.
   */
  #failAll(failure: Failure, tellListeners: () => void): void {
    this.#arriving.done();
    const calls = this.#calls.detach();
    const feeds = this.feeds.detach();
    tellListeners();
    for (const feed of feeds) feed.tellLast((listener) => listener.lost(failure.message));
    for (const call of calls)
      this.#calls.fail(call, { ...failure, kind: call.sent ? "network" : "unsent" });
  }

  #backoffMs({ httpStatus }: Failure): number {
    const { backoffMs, maxBackoffMs, authBackoffMs } = this.#parts.limits;
    const ms =
      httpStatus === 401 || httpStatus === 402 || httpStatus === 403
        ? authBackoffMs
        : Math.min(maxBackoffMs, backoffMs * 2 ** this.#failures);
    return ms * (1 + JITTER * (2 * this.#parts.runtime.random() - 1));
  }

  #again(): void {
    if (this.#listeners.size > 0) this.#connect();
    else this.#state = "idle";
  }

  #seen(wire: Socket): HeartbeatSample {
    const needed = this.#listeners.size > 0 || this.#calls.size > 0 || this.feeds.size > 0;
    return {
      nowMs: this.#parts.runtime.now(),
      bytesRead: wire.bytesRead,
      begun: this.#calls.begun,
      needed,
    };
  }

  #checkLater(ws: WebSocket, judge: () => ReturnType<Heartbeat["judge"]>): void {
    this.#timer = this.#parts.timerWheel.set(this.#parts.limits.checkEveryMs, () => {
      const found = judge();
      if (this.#arriving.isTooSlow(this.#parts.runtime.now()))
        return this.#drop(ws, "a message that does not get on");
      if (found === "dead") return this.#drop(ws, "silent");
      if (found === "idle") return this.#end(NOT_NEEDED);
      if (this.#retirementOver) return this.#end(REMOVED);
      if (found === "ping") ws.ping();
      this.#checkLater(ws, judge);
    });
  }

  get #retirementOver(): boolean {
    const { runtime, limits } = this.#parts;
    return (
      this.#drainedSinceMs !== null &&
      (this.#calls.size === 0 || runtime.now() - this.#drainedSinceMs >= limits.idleMs)
    );
  }

  /** Closes the connection on purpose, with a closing handshake. */
  #end(failure: Failure): void {
    const ws = this.#ws;
    this.#ws = null;
    this.#state = "idle";
    this.#timer?.clear();
    this.#cancelDial();
    ws?.close(GOING_AWAY);
    this.#failAll(failure, nothing);
  }
}

const AS_TEXT = { binary: false };
const GOING_AWAY = 1001;
const JITTER = 0.2;
const REMOVED = plainFailure("network", "the provider was removed");
const CLOSING = plainFailure("network", "the service is closing");
const NOT_NEEDED = plainFailure("network", "not needed any more");

function nothing(): void {}
