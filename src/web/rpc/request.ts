// The RPC surface for HTTP: takes a complete request body, sends it through the pipeline once or
// once per batch item, and answers the caller.
import { isUtf8 } from "node:buffer";
import type { Interruption } from "../../core/billing/charging.ts";
import { withErrorType } from "../../core/faults/legacy-form.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { CallerIdentity } from "../../core/provider/silence.ts";
import { endOf, isJson, OPEN_ARRAY, type Span, skipSpace } from "../../core/rpc/json.ts";
import { WIRE_ID_BYTES } from "../../core/rpc/wire-request.ts";
import type { KeyContext } from "../../hosted/keys/key-context.ts";
import { SHORT_REQUEST_BYTES } from "../../upstream/memory-budget.ts";
import type { Timer } from "../../upstream/timer-wheel.ts";
import {
  type AnswerStream,
  FREE_BYTES,
  type Room,
  type StreamSink,
} from "../../upstream/transport.ts";
import { closing, renderFault } from "../http/render-fault.ts";
import { type Headers, headersOf, retryAfter } from "../http/respond.ts";
import { type CallPayment, callPaymentOf, KEYLESS } from "../payment/call-payment.ts";
import { type Authenticated, authenticate } from "./authenticate.ts";
import { planBatch, type RpcBatch, runBatch } from "./batch.ts";
import { addBilling, addMeta, addTo, type Bill } from "./billing-headers.ts";
import { type Borrowed, type HttpExchange, isPlain } from "./caller.ts";
import { RequestCaller } from "./caller-identity.ts";
import {
  addEncoding,
  type BodySink,
  type CompressedBody,
  type CompressionJob,
  MIN_COMPRESSED_BYTES,
} from "./compression.ts";
import { addLegacyBilling, isLegacy } from "./legacy-forms.ts";
import { refusalOfSession, serveSession } from "./paid/session.ts";
import type { SessionAnswer } from "./paid/session-answer.ts";
import type { RpcParts } from "./parts.ts";
import {
  type DeliveryCallback,
  evidenceOfReply,
  type PipelineRequest,
  type Reply,
  runPipeline,
} from "./pipeline.ts";
import { renderReply, renderStreamHead } from "./render-reply.ts";
import type { Target } from "./target.ts";

/** Bytes that may wait for a slow reader before its upstream is paused. */
const UNSENT_BYTES = 524_288;
/** Answers up to this size are not worth counting while they wait to be read. */
const SHORT_BYTES = 16_384;
/** An answer that neither side moves for this long is cut. */
export const STALL_MS = 30_000;

/** One RPC request on its way from a caller to its answer. */
export class RpcRequest implements StreamSink, Room {
  readonly #parts: RpcParts;
  readonly #caller: HttpExchange;
  /** Null until it is known where the request is bound for. */
  #address: Target | null = null;
  /** Null = a caller without a key. */
  #keyContext: KeyContext | null = null;
  #payment: CallPayment = KEYLESS;
  /** Nobody, until it is known. */
  #identity: CallerIdentity = { key: "unknown" };
  /** A body that waits until its caller has been looked up. */
  #held: Buffer | null = null;
  #cancel: ((why: Interruption) => void) | null = null;
  /** Settles the answer that is under way; null = there is none, or it is settled. */
  #settle: DeliveryCallback | null = null;
  #stream: {
    readonly source: AnswerStream;
    readonly reply: Reply;
    readonly verbatim: boolean;
  } | null = null;
  #stall: Timer | null = null;
  #progress = 0;
  /** Where the bytes of a streamed answer go. */
  #out: BodySink;
  /** The same, while it is compressed. */
  #compressed: CompressedBody | null = null;
  #paused = false;
  /** Held for all callers together: a short body, and what a slow reader leaves lying. */
  #reserved = 0;
  /** Held of a body in somebody's share, and whose that is. */
  #bodyBytes = 0;
  #bodyOf: string | null = null;
  /**
   * What is gathered of its answers, and whose share that is: a key may come to another account
   * meanwhile.
   */
  #gathered = 0;
  #shareOf = "";
  #over = false;
  /** The request is over: nothing is counted for it any more. */
  #isReleased = false;
  /** Those who wait to hear whether the answer was written to its end; null = nobody does. */
  #writing: ((written: boolean) => void)[] | null = null;
  /** Told beside a refusal, names and values in turn; null = nothing is. */
  #offers: readonly string[] | null = null;

  constructor(parts: RpcParts, caller: HttpExchange) {
    this.#parts = parts;
    this.#caller = caller;
    this.#out = caller;
  }

  /** Reads who calls, and where to; false = it has been refused. */
  accept(): boolean {
    if (isPlain(this.#caller))
      this.#cancel = authenticate(this.#parts, this.#caller, (it) => this.#arrived(it));
    else this.refuse(fault("unsupported_media_type", "the body is compressed"));
    return !this.#over;
  }

  /** Serves a complete body. */
  serve(bytes: Buffer): void {
    if (this.#over) return;
    if (this.#address === null) {
      this.#held = bytes;
      return;
    }
    try {
      this.#serve(bytes, this.#address);
    } catch (error) {
      this.fail(error);
    }
  }

  #arrived(it: Authenticated | Fault): void {
    this.#cancel = null;
    const held = this.#held;
    this.#held = null;
    if (this.#over) return;
    if (it.kind === "fault") return this.refuse(it);
    const { old } = it.address;
    const gone =
      refusalOfSession(this.#parts.payPerCall, it) ??
      (old === null ? null : this.#parts.legacyForms.used(old));
    if (gone !== null) return this.refuse(gone);
    this.#address = it.address;
    this.#keyContext = it.keyContext;
    this.#payment = callPaymentOf(this.#parts.admission, it.keyContext);
    this.#identity = it.caller;
    if (held !== null) this.serve(held);
  }

  #serve(bytes: Buffer, address: Target): void {
    if (address.payPerCall) return this.#payPerCall(bytes, address);
    if (!isUtf8(bytes) || !isJson(bytes))
      return this.refuse(fault("parse_error", "the body is not valid JSON"));
    const start = skipSpace(bytes, 0, bytes.length);
    if (bytes[start] === OPEN_ARRAY) return this.#batch(bytes, start, address);
    const span: Span = { start, end: endOf(bytes) };
    const { requestId } = this.#caller;
    const incoming: PipelineRequest = {
      bytes,
      span,
      address,
      payment: this.#payment,
      caller: this.#identity,
      requestId,
      mayStream: true,
      settlesLater: false,
      transport: "http",
      subscriptionMethods: null,
      postpone: null,
      room: this,
      freeBytes: FREE_BYTES,
    };
    const cancel = runPipeline(this.#parts, incoming, (reply) => this.#reply(reply, bytes));
    if (!this.#over && this.#stream === null) this.#cancel = cancel;
  }

  /** Takes room for bytes of the answer until the request is over; false = there is none. */
  take(bytes: number): boolean {
    if (this.#gathered === 0) this.#shareOf = this.#identity.key;
    if (this.#isReleased || !this.#parts.budget.take(this.#shareOf, bytes)) return false;
    this.#gathered += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    const back = Math.min(bytes, this.#gathered);
    if (back === 0) return;
    this.#gathered -= back;
    this.#parts.budget.giveBack(this.#shareOf, back);
  }

  /** Takes room for a body that is here whole, until the request is over; false = there is none. */
  reserve(bytes: number): boolean {
    if (bytes > SHORT_REQUEST_BYTES) return this.reserveMore(bytes);
    if (!this.#parts.budget.takeForAll(bytes)) return false;
    this.#reserved += bytes;
    return true;
  }

  /**
   * The same for a body that comes piece by piece: each counts in the share of its caller, or of
   * the address while its caller is unknown.
   */
  reserveMore(bytes: number): boolean {
    const { budget, proxies } = this.#parts;
    const caller =
      this.#address === null ? new RequestCaller(this.#caller, null, proxies) : this.#identity;
    this.#bodyOf ??= caller.key;
    if (!budget.take(this.#bodyOf, bytes)) return false;
    this.#bodyBytes += bytes;
    return true;
  }

  /**
   * Refuses the request before it is bound for a chain. `offers`: names and values in turn, told
   * beside that; `id`: the one to answer to, as JSON.
   */
  refuse(why: Fault, offers: readonly string[] | null = null, id = "null"): void {
    this.#over = true;
    this.#offers = offers;
    this.#release();
    this.#parts.observer.refused(why.code);
    this.#caller.send(why.status, this.#headers(why, null), [
      renderFault(isLegacy(this.#address, this.#caller) ? withErrorType(why) : why, id),
    ]);
  }

  /**
   * The caller has its answer; otherwise `why` tells how it ended before. Heard again it changes
   * nothing.
   */
  closed(why: Interruption): void {
    this.#over = true;
    this.#release();
    this.#stall?.clear();
    this.#compressed?.abandon();
    this.#cancel?.(why);
    this.#cancel = null;
    const { delivered } = this.#caller;
    this.#settled(delivered || why === "left");
    this.#written(delivered);
  }

  /** Calls back once it is known whether the answer was written to its end. */
  #whenWritten(run: ((written: boolean) => void) | null): void {
    if (run === null) return;
    this.#writing ??= [];
    this.#writing.push(run);
  }

  #written(written: boolean): void {
    const writing = this.#writing;
    this.#writing = null;
    for (const run of writing ?? []) run(written);
  }

  /** Says once what became of an answer that is charged at its end. */
  #settled(delivered: boolean): void {
    const settle = this.#settle;
    this.#settle = null;
    settle?.(delivered);
  }

  data(chunk: Buffer, lent: boolean): boolean {
    const stream = this.#stream;
    this.#progress++;
    if (stream === null || chunk.length === 0) return true;
    let kept = false;
    const unsent = this.#out.write(chunk, () => {
      this.#progress++;
      if (kept && lent) stream.source.recycle(chunk);
    });
    if (unsent > UNSENT_BYTES) this.#pause(stream.source);
    kept = unsent > 0;
    return !kept;
  }

  end(last: Buffer, valueBytes: number, lent: boolean): void {
    const stream = this.#stream;
    if (stream === null) return;
    const written = lent ? () => stream.source.recycle(last) : nothing;
    if (this.#compressed === null) this.#caller.cork();
    const meta =
      stream.reply.address.meta === "body"
        ? evidenceOfReply(stream.reply, this.#parts.runtime.now())
        : null;
    this.#out.write(stream.verbatim ? last : last.subarray(0, valueBytes), written);
    if (!stream.verbatim) this.#out.write(closing(meta), nothing);
    this.#cancel = null;
    // What is compressed has yet to be read: `closed` ends the watch.
    if (this.#compressed === null) this.#stall?.clear();
    this.#out.end();
  }

  /**
   * The answer is cut off: nobody pays for half of one, unless it was held up by its reader, who
   * has left it then.
   */
  broken(message: string, byReader = false): void {
    this.#settled(byReader);
    this.#parts.observer.log.warn(
      { request_id: this.#caller.requestId, reason: message },
      "answer cut off",
    );
    this.#caller.destroy();
  }

  #batch(bytes: Buffer, start: number, address: Target): void {
    const plan = planBatch(this.#parts, bytes, start, this.#keyContext);
    if (plan.kind === "fault") return this.refuse(plan);
    let bill: Bill | null = null;
    const heard = ({ billing, written }: Reply, shown: boolean): void => {
      if (billing !== null) bill = addTo(bill, billing);
      if (written !== null) this.#whenWritten((whole) => written(whole && shown));
    };
    const batch: RpcBatch = {
      ...plan,
      bytes,
      address,
      payment: this.#payment,
      caller: this.#identity,
      requestId: this.#caller.requestId,
      room: this,
      transport: "http",
      subscriptionMethods: null,
      heard,
    };
    const cancel = runBatch(this.#parts, batch, (body, settle) => {
      this.#over = true;
      this.#cancel = null;
      this.#settle = settle;
      this.#send(body === null ? 204 : 200, this.#headers(null, bill), body);
    });
    if (!this.#over) this.#cancel = cancel;
  }

  /** A request that is paid for by itself. */
  #payPerCall(bytes: Buffer, address: Target): void {
    const { payPerCall } = this.#parts;
    if (payPerCall === null) return;
    const whenWritten = (run: (written: boolean) => void): void => this.#whenWritten(run);
    const request = {
      caller: this.#caller,
      identity: this.#identity,
      bytes,
      address,
      room: this,
      whenWritten,
    };
    const sink = {
      answered: (it: SessionAnswer) => this.#answer(it),
      failed: (error: unknown) => this.fail(error),
    };
    this.#cancel = serveSession({ ...this.#parts, payPerCall }, request, sink);
  }

  #answer({ status, fault: why, headers, body }: SessionAnswer): void {
    this.#over = true;
    this.#cancel = null;
    this.#caller.send(status, [...this.#headers(why, null), ...headers], body);
  }

  #reply(reply: Reply, body: Buffer): void {
    const { outcome } = reply;
    this.#settle = reply.settle;
    try {
      if (
        outcome.kind === "fault" &&
        outcome.fault.code === "balance_exhausted" &&
        reply.id !== null
      )
        this.#exhausted(reply, outcome.fault, body);
      else this.#write(reply);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Nothing is left to pay for the call: what it can be paid with is told beside that. */
  #exhausted(reply: Reply, why: Fault, body: Buffer): void {
    const { rpcPaywall } = this.#parts;
    if (rpcPaywall === null || this.#keyContext === null) return this.#write(reply);
    this.#cancel = null;
    const { paid } = this.#caller;
    rpcPaywall
      .exhausted({ letter: this.#caller, keyContext: this.#keyContext, body, why, paid })
      .then(
        ({ fault: refusal, headers }) => {
          if (this.#over) return;
          this.#offers = headers;
          this.#write({ ...reply, outcome: { kind: "fault", fault: refusal } });
        },
        (error: unknown) => this.fail(error),
      );
  }

  /** A throw is a bug: it is logged and costs this request, nothing else. */
  fail(error: unknown): void {
    this.#parts.observer.log.error({ request_id: this.#caller.requestId, err: error }, "bug");
    this.#settled(false);
    this.#written(false);
    if (this.#over || this.#stream !== null) this.#caller.destroy();
    else this.refuse(fault("internal", "the service failed to serve this request"));
  }

  #write(reply: Reply): void {
    const { outcome, address, billing } = reply;
    this.#cancel = null;
    if (reply.id === null) reply.written?.(false);
    else this.#whenWritten(reply.written);
    const headers = this.#headers(
      outcome.kind === "fault" ? outcome.fault : null,
      billing === null ? null : addTo(null, billing),
    );
    if (reply.id === null) {
      this.#over = true;
      if (outcome.kind === "stream") outcome.stream.cut();
      if (outcome.kind === "result") outcome.lender?.recycle(outcome.body);
      this.#settled(true);
      return this.#caller.send(204, headers, null);
    }
    const meta = address.meta === "none" ? null : evidenceOfReply(reply, this.#parts.runtime.now());
    if (address.meta === "headers" && meta !== null) addMeta(headers, meta);
    if (outcome.kind === "stream") return this.#start(reply, outcome.stream, headers);
    this.#over = true;
    const { lender, body } = outcome.kind === "result" ? outcome : NOT_LENT;
    const borrowed =
      lender === undefined
        ? undefined
        : { headroomBytes: lender.headroomBytes, sent: () => lender.recycle(body) };
    this.#send(
      outcome.kind === "fault" ? outcome.fault.status : 200,
      headers,
      renderReply(reply, address.meta === "body" ? meta : null, lender !== undefined),
      borrowed,
    );
    if (outcome.kind === "result" && outcome.body.length > SHORT_BYTES) this.#countUnsent();
  }

  #countUnsent(): void {
    this.keeps(this.#caller.unsent);
  }

  /**
   * Counts what a slow reader leaves lying until the request is over: there is no way back, so it
   * is not refused.
   */
  keeps(bytes: number): void {
    if (this.#isReleased || bytes === 0) return;
    this.#reserved += bytes;
    this.#parts.budget.used += bytes;
  }

  #start(reply: Reply, source: AnswerStream, headers: Headers): void {
    const verbatim = reply.address.meta !== "body";
    const id = Buffer.from(reply.id ?? "null");
    this.#stream = { source, reply, verbatim };
    this.#cancel = () => source.cut();
    const sizeBytes =
      verbatim && source.bodyBytes !== null ? source.bodyBytes - WIRE_ID_BYTES + id.length : null;
    const job = this.#mayCompress(source.bodyBytes ?? Number.POSITIVE_INFINITY)
      ? this.#compressionJob(headers)
      : null;
    if (job !== null) this.#out = this.#compressed = job.body(this.#caller, () => this.#progress++);
    this.#caller.begin(headers, job === null ? sizeBytes : null);
    this.#out.write(renderStreamHead(id, verbatim ? source : null), nothing);
    this.#watchStall();
    source.flow(this);
  }

  /** Sends a whole answer; a long one compressed, where its caller takes that. */
  #send(
    status: number,
    headers: Headers,
    body: readonly Buffer[] | null,
    borrowed?: Borrowed,
  ): void {
    let bytes = 0;
    if (body !== null) for (const piece of body) bytes += piece.length;
    const job = status === 200 && this.#mayCompress(bytes) ? this.#compressionJob(headers) : null;
    if (job === null || body === null) return this.#caller.send(status, headers, body, borrowed);
    void job.whole(body).then((compressed) => {
      borrowed?.sent();
      if (!this.#caller.open) return;
      // Its headers say that it is compressed by now.
      if (compressed === null) return this.#cutWhole();
      this.#caller.send(status, headers, compressed);
      this.#countUnsent();
    });
  }

  /** A whole answer cannot be sent after all: the service cuts it. */
  #cutWhole(): void {
    this.#settled(false);
    this.#caller.destroy();
  }

  /** What was paid for with the request comes with a receipt, and stays as it is. */
  #mayCompress(bytes: number): boolean {
    return (
      bytes >= MIN_COMPRESSED_BYTES &&
      this.#caller.paid === null &&
      this.#offers === null &&
      this.#parts.compression?.concerns(this.#caller) === true
    );
  }

  #compressionJob(headers: Headers): CompressionJob | null {
    const job = this.#parts.compression?.take(this.#caller) ?? null;
    addEncoding(headers, job?.encoding ?? null);
    return job;
  }

  #pause(source: AnswerStream): void {
    source.pause();
    if (this.#paused) return;
    this.#paused = true;
    this.#out.drained(() => {
      this.#paused = false;
      source.resume();
    });
  }

  #watchStall(): void {
    const before = this.#progress;
    this.#stall = this.#parts.timerWheel.set(STALL_MS, () => {
      if (!this.#caller.open) return;
      // That a provider gets on is watched where it is read.
      const isWaited = this.#compressed === null && !this.#paused && this.#caller.unsent === 0;
      if (isWaited || this.#progress !== before) return this.#watchStall();
      this.#cancel?.("cut");
      // Who does not read what lies ready has left: otherwise all but the end of an answer would be
      // free.
      this.broken("no progress", this.#paused || this.#caller.unsent > 0);
    });
  }

  #release(): void {
    this.#isReleased = true;
    this.#parts.budget.used -= this.#reserved;
    this.#reserved = 0;
    if (this.#bodyOf !== null) this.#parts.budget.giveBack(this.#bodyOf, this.#bodyBytes);
    this.#bodyOf = null;
    this.#bodyBytes = 0;
    this.giveBack(this.#gathered);
  }

  #headers(why: Fault | null, bill: Bill | null): Headers {
    const headers = headersOf(this.#caller.requestId, this.#caller.header("x-request-id"));
    if (bill !== null && this.#parts.admission !== null)
      addBilling(headers, this.#parts.admission, bill);
    if (why !== null && why.retryAfterMs !== null)
      headers.push("Retry-After", retryAfter(why.retryAfterMs));
    if (this.#offers !== null) headers.push(...this.#offers, "Cache-Control", "no-store");
    if (isLegacy(this.#address, this.#caller)) {
      this.#parts.legacyForms.announce(headers);
      addLegacyBilling(headers, this.#parts.admission, { address: this.#address, bill });
    }
    return headers;
  }
}

const NOT_LENT = { lender: undefined, body: Buffer.alloc(0) };

function nothing(): void {}
