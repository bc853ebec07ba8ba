// Makes the calls of a request paid with a voucher, through the pipeline, alone or as a batch.
// Gathers the whole answer, because it is stored with its charge. Knows no channel and no hold.
import { type Interruption, isCharged } from "../../../core/billing/charging.ts";
import type { Fault } from "../../../core/faults/rpc-fault.ts";
import { noRoom } from "../../../upstream/engine/refusal.ts";
import { renderFault } from "../../http/render-fault.ts";
import type { Headers } from "../../http/respond.ts";
import { addMeta } from "../answers/answer-headers.ts";
import { evidenceOf } from "../answers/evidence.ts";
import { renderReply } from "../answers/render-reply.ts";
import type { Reply, WriteListener } from "../answers/reply.ts";
import { runBatch } from "../calls/batch.ts";
import { runPipeline } from "../calls/pipeline.ts";
import type { CallerMessage, Cancel, PipelineParts } from "../calls/pipeline-request.ts";
import type { RpcLimits } from "../limits.ts";
import type { PricedRequest, VoucherPayment } from "./session-price.ts";

/** What calls are made with. */
export interface SessionCallsParts extends PipelineParts {
  readonly limits: RpcLimits;
}

/** A whole answer. */
export interface SessionAnswer {
  readonly status: number;
  /** Null = the request was served. */
  readonly fault: Fault | null;
  readonly headers: Headers;
  /** Null = every call was a notification. */
  readonly body: Buffer | null;
}

/** Status of an answer without a body. */
export const NO_CONTENT = 204;

/** The calls of one request; they are made once. */
export class SessionCalls {
  readonly priced: PricedRequest;
  readonly #parts: SessionCallsParts;
  readonly #message: CallerMessage;
  readonly #payment: VoucherPayment;
  readonly #listeners: WriteListener[] = [];
  #cancel: Cancel | null = null;
  #over = false;

  constructor(
    parts: SessionCallsParts,
    message: CallerMessage,
    priced: PricedRequest,
    payment: VoucherPayment,
  ) {
    this.priced = priced;
    this.#parts = parts;
    this.#message = { ...message, payment };
    this.#payment = payment;
  }

  /** The price of all charged calls that have ended, in base units. */
  get units(): bigint {
    return this.#payment.chargedUnits;
  }

  /** Compute units of all calls: those that have ended at what they cost. */
  get cu(): number {
    return this.priced.cu - this.#payment.savedCu;
  }

  /**
   * Makes the calls. Calls back once, or never after a cancel, with an answer that is not charged
   * yet. Returns whether calls are still under way.
   */
  make(done: (answer: SessionAnswer) => void): boolean {
    const end = (answer: SessionAnswer): void => {
      this.#over = true;
      this.#cancel = null;
      done(answer);
    };
    const cancel = this.priced.isBatch ? this.#batch(end) : this.#single(end);
    if (!this.#over) this.#cancel = cancel;
    return !this.#over;
  }

  /** Cancels the calls under way. Afterwards `units` includes those charged without an answer. */
  cancel(why: Interruption): void {
    const cancel = this.#cancel;
    this.#cancel = null;
    cancel?.(why);
    this.written(false);
  }

  /** Reports to the listeners whether the answer was written completely. */
  readonly written: WriteListener = (written) => {
    for (const listener of this.#listeners.splice(0)) listener(written);
  };

  #single(end: (answer: SessionAnswer) => void): Cancel | null {
    const [envelope] = this.priced.items;
    if (envelope === undefined) return null;
    const request = { ...this.#message, envelope, delivery: "whole" as const, postpone: null };
    return runPipeline(this.#parts, request, (reply) => end(this.#rendered(reply)));
  }

  #batch(end: (answer: SessionAnswer) => void): Cancel {
    const batch = {
      ...this.#message,
      items: this.priced.items,
      concurrency: this.#parts.limits.batchConcurrency,
      pacer: null,
      heard: (reply: Reply, shown: boolean) => this.#listen(reply, shown),
    };
    return runBatch(this.#parts, batch, (body, settle) => {
      // Settled early: the price must be known before the answer is charged and written.
      settle(true);
      const status = body === null ? NO_CONTENT : 200;
      end({ status, fault: null, headers: [], body: body === null ? null : Buffer.concat(body) });
    });
  }

  #listen({ written }: Reply, shown: boolean): void {
    if (written !== null) this.#listeners.push((whole) => written(whole && shown));
  }

  #rendered(reply: Reply): SessionAnswer {
    const { target, room } = this.#message;
    const headers: Headers = [];
    const meta = target.meta === "none" ? null : evidenceOf(reply, this.#parts);
    if (target.meta === "headers" && meta !== null) addMeta(headers, meta);
    this.#listen(reply, reply.id !== null);
    if (reply.id === null) return { status: NO_CONTENT, fault: null, headers, body: null };
    const body = Buffer.concat(renderReply(reply, target.meta === "body" ? meta : null));
    if (!room.take(body.length) && !isCharged(reply.source)) {
      this.written(false);
      const why = noRoom();
      return { status: why.status, fault: why, headers, body: renderFault(why, reply.id) };
    }
    const { outcome } = reply;
    const why = outcome.kind === "fault" ? outcome.fault : null;
    return { status: why?.status ?? 200, fault: why, headers, body };
  }
}
