// Calls that are paid for one by one, at /rpc/session/{strategy}/{chain}: priced before they are
// made, held, made through the pipeline, and charged for what providers delivered. Knows calls and
// headers; what a credential is worth is said behind the port of sessions.
import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { type Interruption, isCharged } from "../../../core/billing/charging.ts";
import { nanoOf } from "../../../core/billing/payment.ts";
import { type Tariff, usdText } from "../../../core/billing/price.ts";
import { type Fault, fault } from "../../../core/faults/rpc-fault.ts";
import type { CallerIdentity } from "../../../core/provider/silence.ts";
import { isJson, type Span } from "../../../core/rpc/json.ts";
import type {
  CallBill,
  CallEnd,
  Hold,
  Managed,
  RecordedAnswer,
  SessionCaller,
  SessionRefusal,
  Sessions,
} from "../../../payments/session/sessions.ts";
import { isStoreFailure } from "../../../store/store-failure.ts";
import { noRoom } from "../../../upstream/engine/refusal.ts";
import { FREE_BYTES, type Room } from "../../../upstream/transport.ts";
import { addressBehind } from "../../http/client-address.ts";
import { renderFault } from "../../http/render-fault.ts";
import type { Headers } from "../../http/respond.ts";
import { type GivenPayment, paymentOf } from "../../payment/payment-headers.ts";
import type { Authenticated, AuthenticationParts } from "../authenticate.ts";
import { runBatch } from "../batch.ts";
import { addMeta, addQuotaOf } from "../billing-headers.ts";
import type { HttpExchange } from "../caller.ts";
import type { RpcLimits } from "../limits.ts";
import { evidenceOfReply, type PipelineParts, type Reply, runPipeline } from "../pipeline.ts";
import { renderReply } from "../render-reply.ts";
import type { Target } from "../target.ts";
import { type PricedRequest, type Pricing, pricedRequest } from "./session-price.ts";

/** What pay-per-call needs. */
export interface PayPerCall {
  readonly sessions: Sessions;
  readonly tariff: Tariff;
}

/** What it works with. */
export interface SessionServingParts extends PipelineParts, Pick<AuthenticationParts, "proxies"> {
  readonly limits: RpcLimits;
  readonly payPerCall: PayPerCall;
}

/** A request with its whole body. */
export interface SessionRequest {
  readonly caller: HttpExchange;
  readonly identity: CallerIdentity;
  readonly bytes: Buffer;
  readonly address: Target;
  /** For what is gathered, and for the answer until it has been sent. */
  readonly room: Room;
  /** Calls back once it is known whether the answer was written to its end. */
  readonly whenWritten: (run: (written: boolean) => void) => void;
}

/** What is answered. */
export interface SessionAnswer {
  readonly status: number;
  /** Null = it was served. */
  readonly fault: Fault | null;
  readonly headers: Headers;
  readonly body: readonly Buffer[] | null;
}

/** Hears the answer, or what went wrong: one of both, once, or none after a cancel. */
export interface SessionListener {
  answered(answer: SessionAnswer): void;
  failed(error: unknown): void;
}

/**
 * Why a request for a paid call is refused before its body is read; null = it is not, or is no such
 * request.
 */
export function refusalOfSession(
  payPerCall: PayPerCall | null,
  { address, keyContext }: Pick<Authenticated, "address" | "keyContext">,
): Fault | null {
  if (!address.payPerCall) return null;
  if (payPerCall === null)
    return fault("not_found", "calls are not paid for one by one here", {
      nextAction: "create a key with POST /api/v1/agent/keys",
    });
  const nextAction = "send the request to /rpc/session/{strategy}/{chain}, or leave `session` out";
  return keyContext === null
    ? null
    : fault("invalid_request", "a call that is paid for by itself takes no key", { nextAction });
}

/** Serves a request for paid calls. Returns the way to cancel it. */
export function serveSession(
  parts: SessionServingParts,
  request: SessionRequest,
  sink: SessionListener,
): (why: Interruption) => void {
  const paid = new PaidRequest(parts, request, sink);
  paid.serve().catch((error: unknown) => paid.fail(error));
  return (why) => paid.cancel(why);
}

const PAYMENT_REQUIRED = 402;
const REFUSED = 300;
const NO_CONTENT = 204;
/** What the record of a call says that has no answer. */
const CLIENT_CLOSED = 499;

class PaidRequest {
  readonly #parts: SessionServingParts;
  readonly #request: SessionRequest;
  readonly #sink: SessionListener;
  #cancelled = false;
  #writing: ((written: boolean) => void)[] = [];
  #cancelCall: ((why: Interruption) => void) | null = null;

  constructor(parts: SessionServingParts, request: SessionRequest, sink: SessionListener) {
    this.#parts = parts;
    this.#request = request;
    this.#sink = sink;
  }

  async serve(): Promise<void> {
    const { sessions, tariff } = this.#parts.payPerCall;
    const { caller, bytes } = this.#request;
    const isEmpty = bytes.length === 0;
    if (!isEmpty && (!isUtf8(bytes) || !isJson(bytes)))
      return this.#refuse(fault("parse_error", "the body is not valid JSON"), "null");
    const priced = isEmpty ? null : pricedRequest(bytes, this.#pricing(tariff));
    if (priced?.kind === "refused") return this.#refuse(priced.fault, priced.id);
    const payment = paymentIn(caller);
    if (payment?.kind === "unclear")
      return this.#refuse(
        fault("invalid_request", payment.message, {
          nextAction: "send one payment, in one header",
        }),
        idOf(priced),
      );
    if (priced !== null && priced.units === 0n && payment === null) return this.#free(priced);
    const call =
      priced === null
        ? null
        : {
            units: priced.units,
            calls: priced.items.length,
            fingerprint: fingerprintOf(caller.url, bytes),
          };
    const taken =
      payment === null
        ? await sessions.ask(call, this.#caller())
        : await sessions.take(payment.given, call, this.#caller());
    if (this.#cancelled) return void (taken.kind === "hold" && taken.release());
    switch (taken.kind) {
      case "hold":
        return priced === null ? taken.release() : this.#call(priced, taken);
      case "recorded":
        return this.#recorded(taken);
      case "managed":
        return this.#managed(taken);
      case "refusal":
        return this.#refused(taken, idOf(priced));
    }
  }

  /** Ends what is under way. What was delivered, and what its caller left behind, is charged. */
  cancel(why: Interruption): void {
    this.#cancelled = true;
    this.#cancelCall?.(why);
    this.#cancelCall = null;
  }

  fail(error: unknown): void {
    if (this.#cancelled) return;
    if (isStoreFailure(error))
      this.#refuse(fault("unavailable", "channels cannot be looked up right now"), "null");
    else this.#sink.failed(error);
  }

  #pricing(tariff: Tariff): Pricing {
    const { strategy, pin } = this.#request.address;
    return {
      tariff,
      methods: this.#parts.methods(),
      strategy,
      pinned: pin !== null,
      maxItems: this.#parts.limits.maxBatchItems,
    };
  }

  /** Answers what costs nothing and carries no payment: nobody is asked to pay for a refusal. */
  #free(priced: PricedRequest): void {
    const make = priced.isBatch ? this.#batch.bind(this) : this.#single.bind(this);
    this.#cancelCall = make(priced, ({ status, fault: why, headers, body }) => {
      this.#cancelCall = null;
      const cost = ["x-svc-cu", String(priced.cu), "x-svc-usd", "0"];
      this.#sink.answered({
        status,
        fault: why,
        headers: [...headers, ...cost],
        body: body === null ? null : [body],
      });
    });
  }

  #caller(): SessionCaller {
    const { caller } = this.#request;
    const address = addressBehind(
      caller.address,
      caller.header("x-forwarded-for") ?? "",
      this.#parts.proxies,
    );
    return { address, hint: caller.header("payment-session") ?? null };
  }

  /** Makes the calls, then charges for what was delivered. */
  #call(priced: PricedRequest, hold: Hold): void {
    const make = priced.isBatch ? this.#batch.bind(this) : this.#single.bind(this);
    const stop = make(priced, (made) => {
      this.#cancelCall = null;
      this.#end(priced, hold, made).catch((error: unknown) => this.fail(error));
    });
    if (stop !== null) this.#cancelCall = (why) => this.#abandon(priced, hold, stop(why));
  }

  /** The calls have ended before the answer: charges those that are charged all the same. */
  #abandon({ cu }: PricedRequest, hold: Hold, units: bigint): void {
    this.#written(false);
    if (units === 0n) return hold.release();
    hold
      .end({ units, cu, status: CLIENT_CLOSED, body: null, abandoned: true })
      .catch((error: unknown) => {
        this.#parts.observer.log.error(
          { request_id: this.#request.caller.requestId, err: error },
          "bug",
        );
      });
  }

  #single({ items }: PricedRequest, done: (made: Made) => void): Stop | null {
    const { bytes, address, caller, identity, room } = this.#request;
    const [item] = items;
    if (item === undefined) return null;
    let over = false;
    const incoming = {
      bytes,
      span: item.span,
      address,
      keyContext: null,
      caller: identity,
      requestId: caller.requestId,
      mayStream: false,
      settlesLater: false,
      transport: "http" as const,
      subscriptionMethods: null,
      postpone: null,
      room,
      freeBytes: FREE_BYTES,
    };
    const stop = runPipeline(this.#parts, incoming, (reply) => {
      over = true;
      done(this.#rendered(reply, item.units));
    });
    return over || stop === null ? null : (why) => (stop(why) ? item.units : 0n);
  }

  /**
   * What waits to hear whether the answer was written: that is known once the call is charged, and
   * answered so.
   */
  #keepWaiting({ written }: Reply, shown: boolean): void {
    if (written !== null) this.#writing.push((whole) => written(whole && shown));
  }

  #written(written: boolean): void {
    const writing = this.#writing;
    this.#writing = [];
    for (const run of writing) run(written);
  }

  #rendered(reply: Reply, units: bigint): Made {
    const { address } = this.#request;
    const headers: Headers = [];
    const meta = address.meta === "none" ? null : evidenceOfReply(reply, this.#parts.runtime.now());
    if (address.meta === "headers" && meta !== null) addMeta(headers, meta);
    this.#keepWaiting(reply, reply.id !== null);
    if (reply.id === null)
      return {
        status: NO_CONTENT,
        fault: null,
        units: isCharged(reply.source) ? units : 0n,
        headers,
        body: null,
      };
    const inBody = address.meta === "body" ? meta : null;
    const body = Buffer.concat(renderReply(reply, inBody));
    if (!this.#request.room.take(body.length) && !isCharged(reply.source)) {
      this.#written(false);
      const why = noRoom();
      return {
        status: why.status,
        fault: why,
        units: 0n,
        headers,
        body: renderFault(why, reply.id),
      };
    }
    const { outcome } = reply;
    const why = outcome.kind === "fault" ? outcome.fault : null;
    return {
      status: why?.status ?? 200,
      fault: why,
      units: isCharged(reply.source) ? units : 0n,
      headers,
      body,
    };
  }

  #batch({ items }: PricedRequest, done: (made: Made) => void): Stop | null {
    const { bytes, address, caller, identity, room } = this.#request;
    const spans: readonly Span[] = items.map((it) => it.span);
    let units = 0n;
    let over = false;
    const heard = (reply: Reply, shown: boolean, index: number): void => {
      this.#keepWaiting(reply, shown);
      if (isCharged(reply.source) && (shown || reply.id === null))
        units += items[index]?.units ?? 0n;
    };
    const abandoned = (index: number): void => {
      units += items[index]?.units ?? 0n;
    };
    const ways = {
      keyContext: null,
      caller: identity,
      transport: "http" as const,
      subscriptionMethods: null,
      pacer: null,
      heard,
      room,
      abandoned,
    };
    const batch = {
      bytes,
      spans,
      address,
      requestId: caller.requestId,
      concurrency: this.#parts.limits.batchConcurrency,
      ...ways,
    };
    const stop = runBatch(this.#parts, batch, (body) => {
      over = true;
      done({
        status: body === null ? NO_CONTENT : 200,
        fault: null,
        units,
        headers: [],
        body: body === null ? null : Buffer.concat(body),
      });
    });
    if (over) return null;
    return (why) => {
      stop(why);
      // Of a batch that we end ourselves nothing is delivered.
      return why === "left" ? units : 0n;
    };
  }

  async #end(priced: PricedRequest, hold: Hold, made: Made): Promise<void> {
    const end: CallEnd = {
      units: made.units,
      cu: priced.cu,
      status: made.status,
      body: made.body,
      abandoned: false,
    };
    const ended = await hold.end(end).catch((error: unknown) => {
      this.#written(false);
      throw error;
    });
    if (this.#cancelled || ended.kind === "refusal" || ended.kind === "recorded")
      this.#written(false);
    if (this.#cancelled) return;
    if (ended.kind === "refusal") return this.#refused(ended, idOf(priced));
    if (ended.kind === "recorded") return this.#recorded(ended);
    this.#request.whenWritten((written) => this.#written(written));
    const headers = [...made.headers];
    addBill(headers, ended, made.status);
    this.#sink.answered({
      status: made.status,
      fault: made.fault,
      headers,
      body: made.body === null ? null : [made.body],
    });
  }

  #recorded({ status, body, bill }: RecordedAnswer): void {
    const headers: Headers = [];
    addBill(headers, bill, status);
    this.#sink.answered({
      status,
      fault: null,
      headers,
      body: status === NO_CONTENT ? null : [Buffer.from(body)],
    });
  }

  #managed({ headers }: Managed): void {
    this.#sink.answered({
      status: NO_CONTENT,
      fault: null,
      headers: [...headers, "Cache-Control", "private"],
      body: null,
    });
  }

  #refused({ fault: why, headers }: SessionRefusal, id: string): void {
    const noStore = why.status === PAYMENT_REQUIRED ? ["Cache-Control", "no-store"] : [];
    this.#parts.observer.refused(why.code);
    this.#sink.answered({
      status: why.status,
      fault: why,
      headers: [...headers, ...noStore],
      body: [renderFault(why, id)],
    });
  }

  #refuse(why: Fault, id: string): void {
    this.#refused({ kind: "refusal", fault: why, headers: [] }, id);
  }
}

/** Ends calls before their answer; returns what of them is charged all the same, in base units. */
type Stop = (why: Interruption) => bigint;

/** How calls ended, before they are charged. */
interface Made {
  readonly status: number;
  readonly fault: Fault | null;
  /** What was delivered costs. */
  readonly units: bigint;
  readonly headers: Headers;
  readonly body: Buffer | null;
}

function paymentIn(caller: HttpExchange): GivenPayment | null {
  const names = ["authorization", "payment-authorization", "payment-signature"];
  return paymentOf(
    Object.fromEntries(
      names.flatMap((name) =>
        caller.header(name) === undefined ? [] : [[name, [caller.header(name) ?? ""]]],
      ),
    ),
  );
}

function addBill(
  headers: Headers,
  { cu, chargedUnits, leftUnits, quota, headers: receipt }: CallBill,
  status: number,
): void {
  headers.push(
    "x-svc-access",
    "premium",
    "x-svc-cu",
    String(cu),
    "x-svc-usd",
    usdText(nanoOf(chargedUnits)),
    "x-svc-balance-usd",
    usdText(nanoOf(leftUnits)),
  );
  addQuotaOf(headers, quota);
  // Clients take a receipt for a call that was served.
  if (status < REFUSED) headers.push(...receipt);
  headers.push("Cache-Control", "private");
}

/** The same for the same request: method, path without query, body. */
export function fingerprintOf(url: string, body: Buffer): string {
  const [path = ""] = url.split("?", 1);
  return createHash("sha256").update(`POST\n${path}\n\n`).update(body).digest("base64url");
}

function idOf(priced: PricedRequest | null): string {
  return priced?.id ?? "null";
}
