// Writes the answer to one RPC request over HTTP, whole or streamed, compressed if the client
// accepts it, and settles its price once the answer was delivered or lost. Makes no calls.
import type { Interruption } from "../../core/billing/charging.ts";
import { callEndOf } from "../../core/call-end.ts";
import { withErrorType } from "../../core/faults/legacy-form.ts";
import type { Fault } from "../../core/faults/rpc-fault.ts";
import type { AnswerStream } from "../../upstream/transport.ts";
import { renderFault } from "../http/render-fault.ts";
import { type Headers, headersOf, type Pieces, retryAfter } from "../http/respond.ts";
import {
  addBilling,
  addLegacyBilling,
  addMeta,
  addNode,
  addTo,
  type Bill,
  isLegacy,
} from "./answers/answer-headers.ts";
import { addEncoding, type CompressionJob, MIN_COMPRESSED_BYTES } from "./answers/compression.ts";
import { evidenceOf } from "./answers/evidence.ts";
import { renderReply } from "./answers/render-reply.ts";
import type { DeliveryCallback, Reply, WriteListener } from "./answers/reply.ts";
import { StreamedAnswer } from "./answers/streamed-answer.ts";
import type { Borrowed, HttpExchange } from "./caller.ts";
import type { SessionAnswer } from "./paid/session-calls.ts";
import type { RpcParts } from "./parts.ts";
import type { RequestMemory } from "./request-memory.ts";
import type { Target } from "./target.ts";

/** Answers up to this size are not counted in the memory budget while they wait to be sent. */
const SHORT_BYTES = 16_384;
/** From this status on, the request was not served. */
const REFUSED = 300;
const NO_CONTENT = 204;
const NOT_BORROWED = { pool: undefined, body: Buffer.alloc(0) };

/** The answer to one request. */
export class AnswerWriter {
  readonly #parts: RpcParts;
  readonly #exchange: HttpExchange;
  readonly #memory: RequestMemory;
  /** Null = the request has no target yet. */
  target: Target | null = null;
  /** Payment offers of a refusal, as header names and values in turn; null = none. */
  offers: readonly string[] | null = null;
  /** Receipt headers of the payment that came with the request; null = there was no payment. */
  receipt: readonly string[] | null = null;
  /** The newest block that the caller has seen, as it is told; null = it is not. */
  seen: string | null = null;
  /** Settles the price once the answer was delivered or lost; null = nothing to settle. */
  settle: DeliveryCallback | null = null;
  #listeners: WriteListener[] | null = null;
  #stream: StreamedAnswer | null = null;
  /** True once an answer was started: no other answer can follow. */
  isBegun = false;

  constructor(parts: RpcParts, exchange: HttpExchange, memory: RequestMemory) {
    this.#parts = parts;
    this.#exchange = exchange;
    this.#memory = memory;
  }

  /** Registers a callback that hears whether the answer was written completely. */
  whenWritten(listener: WriteListener): void {
    this.#listeners ??= [];
    this.#listeners.push(listener);
  }

  /** Refuses the request. `id` is the id of the call as JSON text. */
  refuse(why: Fault, id: string): void {
    this.isBegun = true;
    const end = callEndOf({ kind: "fault", fault: why });
    this.#parts.observer.unread(end, this.target?.series ?? null, this.#exchange.requestId);
    const isOld = isLegacy(this.target, this.#exchange);
    const body = [renderFault(isOld ? withErrorType(why) : why, id)];
    this.#exchange.send(why.status, this.#headers(why.status, why, null), body);
  }

  /** Writes a reply of the pipeline. */
  reply(reply: Reply): void {
    const { outcome, target, billing } = reply;
    if (reply.id === null) {
      reply.written?.(false);
      return this.#acknowledge(reply);
    }
    if (reply.written !== null) this.whenWritten(reply.written);
    const why = outcome.kind === "fault" ? outcome.fault : null;
    const status = why === null ? 200 : why.status;
    const headers = this.#headers(status, why, billing === null ? null : addTo(null, billing));
    const use = reply.route?.cacheUse ?? null;
    if (use !== null) headers.push("x-svc-cache", use.result);
    const meta = target.meta === "none" ? null : evidenceOf(reply, this.#parts);
    if (target.meta === "headers" && meta !== null) addMeta(headers, meta);
    if (target.meta === "body" && meta !== null) addNode(headers, meta);
    if (outcome.kind === "stream") return this.#start(reply, outcome.stream, headers);
    this.isBegun = true;
    const { pool, body } = outcome.kind === "result" ? outcome : NOT_BORROWED;
    const borrowed = pool === undefined ? null : { bytes: body, pool };
    const pieces = renderReply(reply, target.meta === "body" ? meta : null, pool !== undefined);
    this.#send(status, headers, pieces, borrowed);
    if (outcome.kind === "result" && outcome.body.length > SHORT_BYTES) this.#countUnsent();
  }

  /** Writes the answer to a batch; `body` null = every item was a notification. */
  batch(body: Pieces, bill: Bill | null, settle: DeliveryCallback): void {
    this.isBegun = true;
    this.settle = settle;
    const status = body === null ? NO_CONTENT : 200;
    this.#send(status, this.#headers(status, null, bill), body);
  }

  /** Writes a whole answer with its own headers, uncompressed. */
  whole(answer: SessionAnswer): void {
    this.isBegun = true;
    const { status, fault: why, headers, body } = answer;
    const all = [...this.#headers(status, why, null), ...headers];
    this.#exchange.send(status, all, body === null ? null : [body]);
  }

  /** Handles a bug: nothing is charged, and the caller gets a refusal if no answer was started. */
  abandon(): void {
    this.#settleOnce(false);
    this.#notifyListeners(false);
  }

  /** Ends the request. `why` says how it ended if its answer was not delivered. */
  close(why: Interruption): void {
    this.isBegun = true;
    this.#stream?.close(why);
    const { delivered } = this.#exchange;
    if (this.settle !== null) this.#settleOnce(delivered || why === "left");
    if (this.#listeners !== null) this.#notifyListeners(delivered);
  }

  /** The answer to a notification. */
  #acknowledge({ outcome, billing }: Reply): void {
    this.isBegun = true;
    if (outcome.kind === "stream") outcome.stream.cut();
    if (outcome.kind === "result") outcome.pool?.recycle(outcome.body);
    this.#settleOnce(true);
    const why = outcome.kind === "fault" ? outcome.fault : null;
    const bill = billing === null ? null : addTo(null, billing);
    this.#exchange.send(NO_CONTENT, this.#headers(NO_CONTENT, why, bill), null);
  }

  #start(reply: Reply, source: AnswerStream, headers: Headers): void {
    this.isBegun = true;
    this.#stream = new StreamedAnswer(this.#parts, {
      exchange: this.#exchange,
      reply,
      source,
      room: this.#memory,
      settle: (delivered) => this.#settleOnce(delivered),
    });
    const job = this.#mayCompress(source.bodyBytes ?? Number.POSITIVE_INFINITY)
      ? this.#compressionJob(headers)
      : null;
    this.#stream.start(headers, job);
  }

  /** Sends a whole answer; compresses a long one if the client accepts it. */
  #send(status: number, headers: Headers, body: Pieces, borrowed: Borrowed | null = null): void {
    let bytes = 0;
    if (body !== null) for (const piece of body) bytes += piece.length;
    if (body === null || status !== 200 || !this.#mayCompress(bytes))
      return this.#exchange.send(status, headers, body, borrowed);
    const sendPlain = (): void => {
      addEncoding(headers, null);
      this.#exchange.send(status, headers, body, borrowed);
    };
    const job = this.#parts.compression?.take(this.#exchange) ?? null;
    if (job === null) return sendPlain();
    void job.whole(body).then((compressed) => {
      if (!this.#exchange.open) return borrowed?.pool.recycle(borrowed.bytes);
      if (compressed === null) sendPlain();
      else {
        borrowed?.pool.recycle(borrowed.bytes);
        addEncoding(headers, job.encoding);
        this.#exchange.send(status, headers, compressed);
      }
      this.#countUnsent();
    });
  }

  /** Answers with a receipt or payment offers are never compressed. */
  #mayCompress(bytes: number): boolean {
    return (
      bytes >= MIN_COMPRESSED_BYTES &&
      this.receipt === null &&
      this.offers === null &&
      this.#parts.compression?.concerns(this.#exchange) === true
    );
  }

  #compressionJob(headers: Headers): CompressionJob | null {
    const job = this.#parts.compression?.take(this.#exchange) ?? null;
    addEncoding(headers, job?.encoding ?? null);
    return job;
  }

  #countUnsent(): void {
    this.#memory.countUnsent(this.#exchange.unsent);
  }

  #headers(status: number, why: Fault | null, bill: Bill | null): Headers {
    const { admission, legacyForms } = this.#parts;
    const { requestId, directives } = this.#exchange;
    const headers = headersOf(requestId, directives.requestId);
    if (bill !== null && admission !== null) addBilling(headers, admission, bill);
    if (why !== null && why.retryAfterMs !== null)
      headers.push("Retry-After", retryAfter(why.retryAfterMs));
    if (this.offers !== null) headers.push(...this.offers, "Cache-Control", "no-store");
    if (isLegacy(this.target, this.#exchange)) {
      legacyForms.announce(headers);
      addLegacyBilling(headers, admission, this.target, bill);
    }
    if (this.seen !== null) headers.push("X-Svc-Seen", this.seen);
    if (this.receipt !== null && status < REFUSED)
      headers.push(...this.receipt, "Cache-Control", "private");
    return headers;
  }

  #settleOnce(delivered: boolean): void {
    const settle = this.settle;
    this.settle = null;
    settle?.(delivered);
  }

  #notifyListeners(written: boolean): void {
    const listeners = this.#listeners;
    this.#listeners = null;
    for (const listener of listeners ?? []) listener(written);
  }
}
