// One caller's WebSocket as a connection: messages in, frames out straight to the connection, how
// much may wait on either side, signs of life, and its end. Knows nothing of what the messages say.
import type { Socket } from "node:net";
import { WebSocket } from "ws";
import type { Interruption } from "../../core/billing/charging.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import { SHORT_REQUEST_BYTES } from "../../upstream/memory-budget.ts";
import type { Authenticated } from "../rpc/authenticate.ts";
import type { DeliveryCallback } from "../rpc/reply.ts";
import { type CallParts, type ClientConnection, SocketCalls } from "./calls.ts";
import { writeText } from "./frame.ts";
import type { FrameEncoder } from "./notification.ts";

/** What sockets work with. */
export interface ClientSocketParts extends CallParts {
  readonly frameEncoder: FrameEncoder;
}

/** A WebSocket whose handshake is done. */
export interface OpenedSocket {
  readonly ws: WebSocket;
  /** The connection under it. */
  readonly socket: Socket;
  readonly authenticated: Authenticated;
  /** Hears the end, once. */
  readonly left: () => void;
}

/** While more than this waits to be sent, nothing more is read. */
const UNSENT_BYTES = 1_048_576;
/** While more than this waits to be sent, pings are not answered. */
const MUCH_UNSENT_BYTES = 65_536;
/** Head and mask of a caller's control frame. */
const CONTROL_BYTES = 6;
const MISSED_PONGS = 2;
/**
 * A client that was too slow may take this long without reading until it is cut off, others a
 * second; nobody longer than half a minute in all.
 */
const SLOW_CODE = 1013;
const SLOW_PATIENCE_MS = 5_000;
const LOOK_MS = 1_000;
const LONGEST_FAREWELL_MS = 30_000;
/** Policy violation: the reason says which. */
const END_CODE = 1008;
/** Internal error, and service restart. Every other code is for what the caller or its key did. */
const OUR_FAULT: ReadonlySet<number> = new Set([1011, 1012]);
const PING = "\x89\x00";

/** How a close that the service began is going. */
interface Farewell {
  /** Without reading anything. */
  readonly patienceMs: number;
  /** Bytes that waited to be sent when it was last looked at. */
  readonly unsentBytes: number;
  readonly silentMs: number;
  readonly totalMs: number;
}

/** One caller's socket, from the end of its handshake on. */
export class ClientSocket implements ClientConnection {
  readonly #parts: ClientSocketParts;
  readonly #ws: WebSocket;
  readonly #socket: Socket;
  readonly #left: () => void;
  readonly #caller: CallerIdentity;
  readonly #calls: SocketCalls;
  readonly #unregister: (() => void) | null;
  /** Bytes received of a message that is not whole yet. */
  #partial = 0;
  /**
   * What of that counts in the shared budget, and in whose share: a key may come to another account
   * meanwhile.
   */
  #partialHeld = 0;
  #partialOf = "";
  /** What counts there of what waits to be sent. */
  #queueHeld = 0;
  #paused = false;
  #missedPongs = 0;
  #unsentAtPing = 0;
  /** The code with which this side closed it; null = it has not. */
  #closeCode: number | null = null;
  #over = false;
  /** The service ended it, for a reason that is not its caller's. */
  #isCut = false;
  #cancelTermination: () => void = nothing;

  constructor(parts: ClientSocketParts, { ws, socket, authenticated, left }: OpenedSocket) {
    this.#parts = parts;
    this.#ws = ws;
    this.#socket = socket;
    this.#left = left;
    this.#caller = authenticated.caller;
    this.#calls = new SocketCalls(parts, this, authenticated);
    const { keyContext } = authenticated;
    this.#unregister =
      keyContext === null
        ? null
        : (parts.rpc.admission?.watchKey(keyContext, authenticated.target.named, (reason) =>
            this.close(END_CODE, reason),
          ) ?? null);
    parts.rpc.observer.socketOpened();
    ws.on("message", (data: Buffer, binary: boolean) => this.#message(data, binary));
    ws.on("ping", (data: Buffer) => this.#ping(data));
    ws.on("pong", (data: Buffer) => this.#pong(data));
    ws.on("close", (code: number) => this.#closed(code));
    ws.on("error", nothing);
    // Before `ws` reads the bytes: a message that they complete sets the count back.
    socket.prependListener("data", (chunk: Buffer) => this.#hold(this.#partial + chunk.length));
    socket.on("drain", () => this.#drained());
  }

  send(pieces: readonly Buffer[], settle?: DeliveryCallback): boolean {
    if (!this.#takesMore()) {
      settle?.(!this.#isCut);
      return false;
    }
    writeText(
      this.#socket,
      pieces,
      settle === undefined ? undefined : (error) => settle(!error || !this.#isCut),
    );
    this.#settle();
    return true;
  }

  notify(id: string, results: readonly Buffer[]): boolean {
    if (!this.#takesMore()) return false;
    this.#parts.frameEncoder.write(this.#socket, id, results);
    this.#settle();
    return true;
  }

  /**
   * To be called at every ping time: asks for a sign of life, or ends it when the last two stayed
   * away.
   */
  ping(): void {
    if (this.#over) return;
    const unsentBytes = this.#socket.writableLength;
    // While nothing is read its pongs cannot be seen: that it goes on taking what waits is its sign
    // of life.
    if (this.#paused && unsentBytes < this.#unsentAtPing) this.#missedPongs = 0;
    this.#unsentAtPing = unsentBytes;
    if (this.#missedPongs >= MISSED_PONGS) return this.close(1002, "no pong came");
    this.#missedPongs++;
    if (this.#ws.readyState === WebSocket.OPEN) this.#socket.write(PING, "latin1");
  }

  /**
   * Ends everything under way and says why. A client that does not answer is cut off, but not while
   * it still reads what comes before the reason.
   */
  close(
    code: number,
    reason: string,
    why: Interruption = OUR_FAULT.has(code) ? "cut" : "left",
  ): void {
    if (this.#over) return;
    this.#closeCode = code;
    this.#release(why);
    if (this.#ws.readyState !== WebSocket.OPEN) return this.#ws.terminate();
    this.#ws.close(code, reason);
    this.#ws.resume();
    this.#terminateLater({
      patienceMs: code === SLOW_CODE ? SLOW_PATIENCE_MS : LOOK_MS,
      unsentBytes: this.#socket.writableLength,
      silentMs: 0,
      totalMs: 0,
    });
  }

  #terminateLater({ patienceMs, unsentBytes, silentMs, totalMs }: Farewell): void {
    this.#cancelTermination = this.#parts.rpc.runtime.after(LOOK_MS, () => {
      const left = this.#socket.writableLength;
      const quietMs = left < unsentBytes ? 0 : silentMs + LOOK_MS;
      // Once all is out it had at least a second to answer.
      const enough = left === 0 ? unsentBytes === 0 : quietMs >= patienceMs;
      if (enough || totalMs + LOOK_MS >= LONGEST_FAREWELL_MS) this.#ws.terminate();
      else
        this.#terminateLater({
          patienceMs,
          unsentBytes: left,
          silentMs: quietMs,
          totalMs: totalMs + LOOK_MS,
        });
    });
  }

  /** Cuts it off, since the service ends. */
  destroy(): void {
    this.#release("cut");
    this.#ws.terminate();
  }

  #message(bytes: Buffer, binary: boolean): void {
    this.#hold(0);
    if (!this.#over) this.#calls.serve(bytes, binary);
  }

  #ping(data: Buffer): void {
    this.#hold(Math.max(0, this.#partial - data.length - CONTROL_BYTES));
    if (!this.#over && this.#socket.writableLength < MUCH_UNSENT_BYTES) this.#ws.pong(data);
  }

  #pong(data: Buffer): void {
    this.#missedPongs = 0;
    this.#hold(Math.max(0, this.#partial - data.length - CONTROL_BYTES));
  }

  /** Counts what has come of a message that is not whole. */
  #hold(partial: number): void {
    this.#partial = partial;
    const held = partial > SHORT_REQUEST_BYTES ? partial : 0;
    const more = held - this.#partialHeld;
    if (more === 0 || this.#over) return;
    const { budget, limits } = this.#parts.rpc;
    if (this.#partialHeld === 0) this.#partialOf = this.#caller.key;
    if (more < 0) budget.giveBack(this.#partialOf, -more);
    else if (!budget.take(this.#partialOf, more)) {
      // What fills its caller's share is that caller's doing.
      const why = budget.used + more > limits.maxInFlightBytes ? "cut" : "left";
      return this.close(1013, "too many request bytes are in flight; try again later", why);
    }
    this.#partialHeld = held;
  }

  /** False when it is over, or its reader is too slow for one more message. */
  #takesMore(): boolean {
    if (this.#over || this.#ws.readyState !== WebSocket.OPEN) return false;
    if (this.#socket.writableLength <= this.#parts.rpc.limits.maxSocketQueueBytes) return true;
    this.close(1013, "too slow");
    return false;
  }

  /** Counts what waits to be sent. */
  #settle(): void {
    const socket = this.#socket;
    const queued = socket.writableNeedDrain ? socket.writableLength : 0;
    if (queued === this.#queueHeld || this.#over) return;
    const { budget, limits } = this.#parts.rpc;
    budget.used += queued - this.#queueHeld;
    const more = queued > this.#queueHeld;
    this.#queueHeld = queued;
    if (more && budget.used > limits.maxInFlightBytes)
      return this.close(1013, "too slow, and too many bytes are in flight", "cut");
    if (queued <= UNSENT_BYTES || this.#paused) return;
    this.#paused = true;
    this.#ws.pause();
  }

  #drained(): void {
    this.#settle();
    if (!this.#paused) return;
    this.#paused = false;
    this.#ws.resume();
  }

  #closed(code: number): void {
    this.#release("left");
    this.#cancelTermination();
    this.#parts.rpc.budget.used -= this.#queueHeld;
    this.#parts.rpc.observer.socketClosed(this.#closeCode ?? code);
    this.#left();
  }

  #release(why: Interruption): void {
    if (this.#over) return;
    this.#over = true;
    this.#isCut = why === "cut";
    this.#unregister?.();
    this.#calls.close(why);
    this.#parts.rpc.budget.giveBack(this.#partialOf, this.#partialHeld);
  }
}

function nothing(): void {}
