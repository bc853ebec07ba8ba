// Serves RPC requests that node's HTTP server has parsed, which are all that the fast path does not
// take. Reads a bounded body and passes it to the RPC surface.
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Fault, fault } from "../../../core/faults/rpc-fault.ts";
import type { Activity } from "../../http/activity.ts";
import { headerOf } from "../../http/client-address.ts";
import { begin, type Headers, type Pieces, write } from "../../http/respond.ts";
import { type GivenPayment, paymentOf } from "../../payment/payment-headers.ts";
import type { Borrowed, HttpExchange } from "../caller.ts";
import { type Directives, readDirectives } from "../directives.ts";
import { NO_ROOM_FOR_REQUEST, STALL_MS } from "../limits.ts";
import type { RpcParts } from "../parts.ts";
import { RpcRequest } from "../request.ts";

/** What such a request is served with. */
export interface HttpRequestParts {
  readonly rpc: RpcParts;
  readonly activity: Pick<Activity, "ended">;
}

/**
 * The body of a refused request is still read, up to this many bytes, so that the client receives
 * the refusal.
 */
const DISCARD_BYTES = 16_000_000;
const LINGER_MS = 1_000;

/** One POST request on an RPC path. */
export class HttpRequest implements HttpExchange {
  readonly requestId: string;
  readonly directives: Directives;
  readonly #parts: RpcParts;
  readonly #activity: Pick<Activity, "ended">;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #rpc: RpcRequest;
  /** False once the request was refused. */
  #wanted = false;
  #chunks: Buffer[] = [];
  #size = 0;

  constructor(
    { rpc: parts, activity }: HttpRequestParts,
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string,
  ) {
    this.#parts = parts;
    this.#activity = activity;
    this.#request = request;
    this.#response = response;
    this.requestId = requestId;
    this.directives = readDirectives(this.url, (name) => this.header(name));
    this.#rpc = new RpcRequest(parts, this);
  }

  get url(): string {
    return this.#request.url ?? "/";
  }

  get open(): boolean {
    return !this.#response.writableFinished && !this.#response.destroyed;
  }

  get connection(): object {
    return this.#request.socket;
  }

  get delivered(): boolean {
    return this.#response.writableFinished;
  }

  get address(): string {
    return this.#request.socket.remoteAddress ?? "";
  }

  get payment(): GivenPayment | null {
    return paymentOf(this.#request.headersDistinct);
  }

  header(name: string): string | undefined {
    return headerOf(this.#request, name);
  }

  send(status: number, headers: Headers, body: Pieces, borrowed: Borrowed | null = null): void {
    write(this.#response, status, headers, body);
    // `close` fires once, also for an answer queued behind another one when the connection ends.
    if (borrowed !== null)
      this.#response.once("close", () => borrowed.pool.recycle(borrowed.bytes));
    this.#boundReading();
  }

  begin(headers: Headers, sizeBytes: number | null, first: Buffer | null): void {
    begin(this.#response, headers, sizeBytes);
    if (first !== null) this.#response.write(first);
  }

  write(chunk: Buffer, written: () => void): number {
    this.#response.write(chunk, written);
    return this.#response.writableLength;
  }

  get unsent(): number {
    return this.#response.writableLength;
  }

  /** Node merges the writes of one turn of the event loop by itself. */
  cork(): void {}

  end(): void {
    this.#response.end();
    this.#boundReading();
  }

  drained(run: () => void): void {
    this.#response.once("drain", run);
  }

  destroy(): void {
    // Behind an answer under way it has no socket yet, and node would leave that open.
    if (this.#response.socket === null) this.#response.once("socket", (socket) => socket.destroy());
    this.#response.destroy();
  }

  /** Reads the body and serves the request. */
  read(): void {
    this.#response.on("close", () => this.#rpc.closed(this.#activity.ended ? "cut" : "left"));
    this.#request.on("error", () => {});
    this.#request.on("data", (chunk: Buffer) => this.#take(chunk));
    this.#request.on("end", () => this.#complete());
    this.#wanted = this.#rpc.accept();
    if (
      this.#wanted &&
      Number(this.header("content-length") ?? 0) > this.#parts.limits.maxBodyBytes
    )
      this.#refuse(this.#tooLarge());
  }

  /**
   * Limits the time in which the client may read a complete answer; node has no limit for that.
   */
  #boundReading(): void {
    const response = this.#response;
    if (response.writableLength > 0) response.setTimeout(STALL_MS, () => response.destroy());
  }

  #take(chunk: Buffer): void {
    this.#size += chunk.length;
    if (!this.#wanted) {
      if (this.#size > DISCARD_BYTES) this.#discarded();
      return;
    }
    this.#chunks.push(chunk);
    if (this.#size > this.#parts.limits.maxBodyBytes) this.#refuse(this.#tooLarge());
    else if (!this.#rpc.memory.takeBodyPart(chunk.length)) this.#refuse(NO_ROOM_FOR_REQUEST);
  }

  /**
   * Stops reading the body of a refused request; closes the connection after the refusal and the
   * answers to earlier requests have been sent.
   */
  #discarded(): void {
    this.#request.pause();
    if (this.#response.writableFinished) this.#leave();
    else this.#response.once("finish", () => this.#leave());
  }

  /**
   * Closes the connection with a delay, so that the client can read the answer: closing a socket
   * with unread input at once could discard it.
   */
  #leave(): void {
    this.#request.socket.end();
    this.#parts.timerWheel.set(LINGER_MS, () => this.#request.destroy());
  }

  #complete(): void {
    const [only] = this.#chunks;
    const bytes =
      this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks);
    this.#chunks = [];
    if (this.#wanted) this.#rpc.serve(bytes);
  }

  #refuse(why: Fault): void {
    this.#wanted = false;
    this.#chunks = [];
    this.#rpc.refuse(why);
  }

  #tooLarge(): Fault {
    return fault(
      "body_too_large",
      `the body is larger than ${this.#parts.limits.maxBodyBytes} bytes`,
    );
  }
}
