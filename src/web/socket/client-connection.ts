// One client WebSocket as a connection: reads messages, writes frames straight to the socket,
// bounds what waits in both directions, pings, and closes. Knows nothing of the contents of
// messages.
import type { Socket } from "node:net";
import { WebSocket } from "ws";
import type { Interruption } from "../../core/billing/charging.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import { SHORT_REQUEST_BYTES } from "../../upstream/memory-budget.ts";
import type { DeliveryCallback } from "../rpc/answers/reply.ts";
import type { Authenticated } from "../rpc/authenticate.ts";
import { type CallParts, type ClientConnection, SocketCalls } from "./calls.ts";
import { type FrameEncoder, writeText } from "./notification.ts";
import type { SlowReader, SlowReaders } from "./slow-readers.ts";

export interface ClientSocketParts extends CallParts {
  readonly frameEncoder: FrameEncoder;
  /** All sockets whose clients are behind. */
  readonly slowReaders: SlowReaders;
}

/** Hears what `ws` says of one connection. */
interface WebSocketListener {
  onMessage(bytes: Buffer, binary: boolean): void;
  onPing(data: Buffer): void;
  onPong(data: Buffer): void;
  onClosed(code: number): void;
}

/**
 * A connection of `ws` with one listener for all its events: listeners of its own for each event
 * would take half a kilobyte of every idle socket.
 */
export class CallerWebSocket extends WebSocket {
  listener: WebSocketListener | null = null;

  // Errors are followed by a close.
  override emit(event: string | symbol, ...[first, second]: readonly unknown[]): boolean {
    const { listener } = this;
    if (event === "close") listener?.onClosed(Number(first));
    else if (!Buffer.isBuffer(first)) return false;
    else if (event === "message") listener?.onMessage(first, second === true);
    else if (event === "ping") listener?.onPing(first);
    else if (event === "pong") listener?.onPong(first);
    return listener !== null;
  }
}

/** A WebSocket after its handshake. */
export interface OpenedSocket {
  readonly ws: CallerWebSocket;
  /** The TCP or TLS connection below it. */
  readonly socket: Socket;
  readonly authenticated: Authenticated;
  /** Called once when it has ended. */
  readonly left: (socket: ClientSocket) => void;
}

/** Reading pauses while more than this waits to be sent. */
const UNSENT_BYTES = 1_048_576;
/** Memory of one write that waits to be sent, beside its bytes. */
const WRITE_OVERHEAD_BYTES = 512;
/** Pings are not answered while more than this waits to be sent. */
const MUCH_UNSENT_BYTES = 65_536;
/** Header and mask of a client's control frame. */
const CONTROL_BYTES = 6;
const MISSED_PONGS = 2;
/**
 * Time without reading after which a closing client is cut off: longer for one that was too slow, a
 * second for others, never more than half a minute in total.
 */
const SLOW_CODE = 1013;
const SLOW_PATIENCE_MS = 5_000;
const LOOK_MS = 1_000;
const LONGEST_FAREWELL_MS = 30_000;
/** Policy violation; the reason says which. */
const END_CODE = 1008;
/** Internal error and service restart. All other codes are caused by the caller or its key. */
const OUR_FAULT: ReadonlySet<number> = new Set([1011, 1012]);
const PING = "\x89\x00";

/** One client WebSocket after its handshake. */
export class ClientSocket implements ClientConnection, SlowReader, WebSocketListener {
  readonly #parts: ClientSocketParts;
  readonly #ws: CallerWebSocket;
  readonly #socket: Socket;
  readonly #left: (socket: ClientSocket) => void;
  readonly #caller: CallerIdentity;
  readonly calls: SocketCalls;
  readonly #unregister: (() => void) | null;
  /** Bytes received of an incomplete message. */
  #partial = 0;
  /**
   * The part of them counted in the memory budget, and the caller in whose share. Remembered,
   * because the key may move to another account.
   */
  #partialHeld = 0;
  #partialOf = "";
  /** What was written since everything had been sent. */
  #writes = 0;
  #writtenBytes = 0;
  /** Much waits to be sent: nothing is read, and no waiting request is started. */
  #isBehind = false;
  /** Requests hold as much memory as those of a socket may: nothing is read. */
  #isFull = false;
  #missedPongs = 0;
  #unsentAtPing = 0;
  /** Close code sent by this side; null = not closed by it. */
  #closeCode: number | null = null;
  #over = false;
  /** True if the service ended the socket for a reason of its own. */
  #isCut = false;
  #cancelTermination: () => void = nothing;

  constructor(parts: ClientSocketParts, { ws, socket, authenticated, left }: OpenedSocket) {
    this.#parts = parts;
    this.#ws = ws;
    this.#socket = socket;
    this.#left = left;
    this.#caller = authenticated.caller;
    this.calls = new SocketCalls(parts, this, authenticated);
    const { keyContext } = authenticated;
    this.#unregister =
      keyContext === null
        ? null
        : (parts.rpc.admission?.watchKey(keyContext, authenticated.target.named, (reason) =>
            this.close(END_CODE, reason),
          ) ?? null);
    parts.rpc.observer.socketOpened();
    ws.listener = this;
    // Runs before `ws` reads the bytes: a message that they complete resets the count.
    socket.prependListener("data", (chunk: Buffer) => this.#hold(this.#partial + chunk.length));
    socket.on("drain", () => this.#drained());
  }

  /** The name of its chain. */
  get chainName(): string {
    return this.calls.chainName;
  }

  send(pieces: readonly Buffer[], settle?: DeliveryCallback): boolean {
    if (!this.#takesMore()) {
      settle?.(!this.#isCut);
      return false;
    }
    const bytes = writeText(
      this.#socket,
      pieces,
      settle === undefined ? undefined : (error) => settle(!error || !this.#isCut),
    );
    this.#wrote(pieces.length, bytes);
    return true;
  }

  notify(id: string, results: readonly Buffer[]): boolean {
    if (!this.#takesMore()) return false;
    const { writes, bytes } = this.#parts.frameEncoder.write(this.#socket, id, results);
    this.#wrote(writes, bytes);
    return true;
  }

  get isBehind(): boolean {
    return this.#isBehind;
  }

  holdReading(isFull: boolean): void {
    this.#isFull = isFull;
    // Pongs that came meanwhile were not seen.
    if (!isFull) this.#missedPongs = 0;
    this.#readOrPause();
  }

  /**
   * Called at every ping interval: pings the client, or disconnects it if the last two pings were
   * not answered.
   */
  ping(): void {
    if (this.#over) return;
    const unsentBytes = this.#socket.writableLength;
    // While reading is paused, pongs cannot be seen: draining the send queue counts as a sign of
    // life. A full socket reads again when its requests have ended, at the latest by their
    // deadlines.
    if (this.#isFull || (this.#isBehind && unsentBytes < this.#unsentAtPing)) this.#missedPongs = 0;
    this.#unsentAtPing = unsentBytes;
    if (this.#missedPongs >= MISSED_PONGS) return this.close(1002, "no pong came");
    this.#missedPongs++;
    if (this.#ws.readyState === WebSocket.OPEN) this.#socket.write(PING, "latin1");
  }

  /**
   * Ends all requests and closes with a reason. A client that does not answer the close is cut off,
   * but not while it still reads what was sent before.
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
    this.#terminateLater(code === SLOW_CODE ? SLOW_PATIENCE_MS : LOOK_MS);
  }

  /** Cuts off a closing client once it has not read for `patienceMs`, or after the longest time. */
  #terminateLater(patienceMs: number): void {
    let [unsentBytes, silentMs, totalMs] = [this.#socket.writableLength, 0, 0];
    const look = (): void => {
      const left = this.#socket.writableLength;
      silentMs = left < unsentBytes ? 0 : silentMs + LOOK_MS;
      totalMs += LOOK_MS;
      // Once everything was sent, the client still has at least a second to answer.
      const enough = left === 0 ? unsentBytes === 0 : silentMs >= patienceMs;
      unsentBytes = left;
      if (enough || totalMs >= LONGEST_FAREWELL_MS) this.#ws.terminate();
      else this.#cancelTermination = this.#parts.rpc.runtime.after(LOOK_MS, look);
    };
    this.#cancelTermination = this.#parts.rpc.runtime.after(LOOK_MS, look);
  }

  /** Cuts the connection at the end of the service. */
  destroy(): void {
    this.#release("cut");
    this.#ws.terminate();
  }

  onMessage(bytes: Buffer, binary: boolean): void {
    this.#hold(0);
    if (!this.#over) this.calls.serve(bytes, binary);
  }

  onPing(data: Buffer): void {
    this.#hold(Math.max(0, this.#partial - data.length - CONTROL_BYTES));
    if (!this.#over && this.#socket.writableLength < MUCH_UNSENT_BYTES) this.#ws.pong(data);
  }

  onPong(data: Buffer): void {
    this.#missedPongs = 0;
    this.#hold(Math.max(0, this.#partial - data.length - CONTROL_BYTES));
  }

  /** Counts the bytes of an incomplete message. */
  #hold(partial: number): void {
    this.#partial = partial;
    const held = partial > SHORT_REQUEST_BYTES ? partial : 0;
    const more = held - this.#partialHeld;
    if (more === 0 || this.#over) return;
    const { budget, limits } = this.#parts.rpc;
    if (this.#partialHeld === 0) this.#partialOf = this.#caller.key;
    if (more < 0) budget.giveBack(this.#partialOf, -more);
    else if (!budget.take(this.#partialOf, more)) {
      // If the share of the caller is used up, the caller is the cause; otherwise the service is.
      const why = budget.used + more > limits.maxInFlightBytes ? "cut" : "left";
      return this.close(1013, "too many request bytes are in flight; try again later", why);
    }
    this.#partialHeld = held;
  }

  /** False if the socket has ended, or its reader is too slow for another message. */
  #takesMore(): boolean {
    if (this.#over || this.#ws.readyState !== WebSocket.OPEN) return false;
    if (this.#socket.writableLength <= this.#parts.rpc.limits.maxSocketQueueBytes) return true;
    this.close(1013, "too slow");
    return false;
  }

  tellTooSlow(): void {
    this.close(SLOW_CODE, "too slow, as others are: too many bytes wait to be read", "cut");
  }

  cutOff(): void {
    this.#closeCode ??= SLOW_CODE;
    this.destroy();
    this.#parts.slowReaders.count(this, 0);
  }

  #wrote(writes: number, bytes: number): void {
    this.#writes += writes;
    this.#writtenBytes += bytes;
    this.#settle();
  }

  /** Updates the count of bytes waiting to be sent. */
  #settle(): void {
    const socket = this.#socket;
    const unsent = socket.writableNeedDrain ? socket.writableLength : 0;
    if (unsent === 0) this.#writes = this.#writtenBytes = 0;
    const unsentWrites = unsent === 0 ? 0 : (unsent / this.#writtenBytes) * this.#writes;
    this.#parts.slowReaders.count(this, unsent + Math.ceil(unsentWrites * WRITE_OVERHEAD_BYTES));
    if (unsent <= UNSENT_BYTES || this.#isBehind || this.#over) return;
    this.#isBehind = true;
    this.#readOrPause();
  }

  #drained(): void {
    this.#settle();
    if (!this.#isBehind) return;
    this.#isBehind = false;
    this.#readOrPause();
    this.calls.resume();
  }

  /** Reads unless there is a reason not to. */
  #readOrPause(): void {
    if (this.#isBehind || this.#isFull) this.#ws.pause();
    else this.#ws.resume();
  }

  onClosed(code: number): void {
    this.#release("left");
    this.#cancelTermination();
    this.#parts.slowReaders.count(this, 0);
    this.#parts.rpc.observer.socketClosed(this.#closeCode ?? code);
    this.#left(this);
  }

  #release(why: Interruption): void {
    if (this.#over) return;
    this.#over = true;
    this.#isCut = why === "cut";
    this.#parts.slowReaders.closing(this);
    this.#unregister?.();
    this.calls.close(why);
    this.#parts.rpc.budget.giveBack(this.#partialOf, this.#partialHeld);
  }
}

function nothing(): void {}
