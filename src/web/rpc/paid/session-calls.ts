// Makes the calls of a request paid with a voucher, through the pipeline, alone or as a batch.
// Gathers the whole answer, because it is stored with its charge. Knows no channel and no hold.
import {
  type ChargeKind,
  chargedParts,
  chargeKindOf,
  type Interruption,
  isCharged,
} from "../../../core/billing/charging.ts";
import { cachedCuOf } from "../../../core/billing/price.ts";
import type { Fault } from "../../../core/faults/rpc-fault.ts";
import type { CallerIdentity } from "../../../core/provider/silence.ts";
import type { SourceKind } from "../../../core/routing/answer-source.ts";
import { readRequest } from "../../../core/rpc/envelope.ts";
import type { Span } from "../../../core/rpc/json.ts";
import type { AdmissionRequest } from "../../../hosted/admission/admission.ts";
import { noRoom } from "../../../upstream/engine/refusal.ts";
import { FREE_BYTES, type MemoryShare } from "../../../upstream/transport.ts";
import { renderFault } from "../../http/render-fault.ts";
import type { Headers } from "../../http/respond.ts";
import type { CallPayment, VoucherGrant } from "../../payment/call-payment.ts";
import { addMeta } from "../answers/answer-headers.ts";
import { renderReply } from "../answers/render-reply.ts";
import {
  evidenceOfReply,
  type Reply,
  type WriteListener,
  WriteListeners,
} from "../answers/reply.ts";
import type { CallerView } from "../caller-view.ts";
import { runBatch } from "../calls/batch.ts";
import { runPipeline } from "../calls/pipeline.ts";
import type { Cancel, PipelineParts } from "../calls/pipeline-request.ts";
import type { RpcLimits } from "../limits.ts";
import type { Target } from "../target.ts";
import {
  type PartsByStart,
  type PricedRequest,
  type Pricing,
  priceOf,
  type UnitPrice,
  unitsOf,
} from "./session-price.ts";

/** What calls are made with. */
export interface SessionCallsParts extends PipelineParts {
  readonly limits: RpcLimits;
}

/** The request with its calls. */
export interface SessionCallsRequest {
  readonly bytes: Buffer;
  readonly target: Target;
  readonly identity: CallerIdentity;
  readonly view: CallerView;
  readonly requestId: string;
  /** True = a provider is asked for these very calls. */
  readonly fresh?: boolean;
  /** Memory budget for gathered answers, and for the answer until it is sent. */
  readonly room: MemoryShare;
}

/** The answer to the calls, not charged yet. */
export interface SessionCallsAnswer {
  readonly status: number;
  /** Null = the request was served. */
  readonly fault: Fault | null;
  readonly headers: Headers;
  /** Null = every call was a notification. */
  readonly body: Buffer | null;
}

const NO_CONTENT = 204;

/** Makes the calls of one request, once. */
export class SessionCalls {
  readonly #parts: SessionCallsParts;
  readonly #request: SessionCallsRequest;
  readonly #payment: VoucherPayment;
  readonly #listeners = new WriteListeners();
  #cancel: Cancel | null = null;
  #over = false;

  constructor(parts: SessionCallsParts, request: SessionCallsRequest, payment: VoucherPayment) {
    this.#parts = parts;
    this.#request = request;
    this.#payment = payment;
  }

  /** The price of all charged calls that have ended, in base units. */
  get chargedUnits(): bigint {
    return this.#payment.chargedUnits;
  }

  /** Compute units by which the calls that have ended cost less than their price. */
  get savedCu(): number {
    return this.#payment.savedCu;
  }

  /**
   * Makes the calls. Calls back once, or never after a cancel. Returns whether calls are still
   * under way.
   */
  make(
    { items, isBatch }: Pick<PricedRequest, "items" | "isBatch">,
    done: (answer: SessionCallsAnswer) => void,
  ): boolean {
    const end = (answer: SessionCallsAnswer): void => {
      this.#over = true;
      this.#cancel = null;
      done(answer);
    };
    const [only] = items;
    if (isBatch) this.#batch(items, end);
    else if (only !== undefined) this.#single(only, end);
    return !this.#over;
  }

  /**
   * Cancels the calls under way. Afterwards `chargedUnits` includes those charged without an
   * answer.
   */
  cancel(why: Interruption): void {
    const cancel = this.#cancel;
    this.#cancel = null;
    cancel?.(why);
    this.written(false);
  }

  /** Reports to the listeners whether the answer was written completely. */
  written: WriteListener = (written) => this.#listeners.notify(written);

  #single(span: Span, end: (answer: SessionCallsAnswer) => void): void {
    const { bytes, target, identity, requestId, room, view } = this.#request;
    const incoming = {
      bytes,
      envelope: readRequest(bytes, span.start, span.end),
      target,
      payment: this.#payment,
      caller: identity,
      view,
      requestId,
      ...(this.#request.fresh === true ? { fresh: true } : {}),
      mayStream: false,
      settlesLater: false,
      transport: "http" as const,
      subscriptionMethods: null,
      postpone: null,
      room,
      freeBytes: FREE_BYTES,
    };
    const cancel = runPipeline(this.#parts, incoming, (reply) => end(this.#rendered(reply)));
    if (!this.#over) this.#cancel = cancel;
  }

  #batch(spans: readonly Span[], end: (answer: SessionCallsAnswer) => void): void {
    const { bytes, target, identity, requestId, room, view } = this.#request;
    const batch = {
      bytes,
      spans,
      concurrency: this.#parts.limits.batchConcurrency,
      pacer: null,
      target,
      payment: this.#payment,
      caller: identity,
      view: view.forBatch(),
      requestId,
      room,
      transport: "http" as const,
      subscriptionMethods: null,
      heard: (reply: Reply, shown: boolean) => this.#listen(reply, shown),
    };
    const cancel = runBatch(this.#parts, batch, (body, settle) => {
      // Settled early: the price must be known before the answer is charged and written.
      settle(true);
      const status = body === null ? NO_CONTENT : 200;
      end({ status, fault: null, headers: [], body: body === null ? null : Buffer.concat(body) });
    });
    if (!this.#over) this.#cancel = cancel;
  }

  #listen({ written }: Reply, shown: boolean): void {
    if (written !== null) this.#listeners.add((whole) => written(whole && shown));
  }

  #rendered(reply: Reply): SessionCallsAnswer {
    const { target, room } = this.#request;
    const headers: Headers = [];
    const meta = target.meta === "none" ? null : evidenceOfReply(reply, this.#parts);
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

/** Pays for the calls of one request. */
export class VoucherPayment implements CallPayment {
  readonly countsParts = false;
  readonly #pricing: Pick<Pricing, "tariff" | "strategy" | "pinned">;
  readonly #parts: PartsByStart;
  #chargedUnits = 0n;
  #savedCu = 0;

  constructor(
    pricing: Pick<Pricing, "tariff" | "strategy" | "pinned">,
    parts: PartsByStart = new Map(),
  ) {
    this.#pricing = pricing;
    this.#parts = parts;
  }

  /** The price of all calls settled as charged, in base units. */
  get chargedUnits(): bigint {
    return this.#chargedUnits;
  }

  /** Compute units that calls cost less than was held: from the cache, or for parts not sent. */
  get savedCu(): number {
    return this.#savedCu;
  }

  /** As they were planned when the price was held; what is known by now changes nothing. */
  partsOf(start: number): number {
    return this.#parts.get(start) ?? 1;
  }

  admit({ method, parts = 1 }: AdmissionRequest): VoucherGrant {
    const held = priceOf(method, this.#pricing, parts);
    return {
      kind: "voucher",
      // The range of a filter is not known when the price is held.
      maxParts: method.handling === "filter" ? 1 : undefined,
      settle: (source: SourceKind, partsSent: number | null = null) => {
        const sent = priceOf(method, this.#pricing, chargedParts(parts, partsSent));
        const kind = chargeKindOf(source);
        if (kind !== "none") this.#savedCu += held.cu - sent.cu;
        this.#charge(sent, kind);
        return null;
      },
      release: () => null,
    };
  }

  #charge({ units, cu }: UnitPrice, kind: ChargeKind): void {
    const { tariff } = this.#pricing;
    switch (kind) {
      case "full":
        this.#chargedUnits += units;
        break;
      case "cached": {
        const cachedCu = cachedCuOf(tariff, cu);
        this.#chargedUnits += unitsOf(tariff, cachedCu);
        this.#savedCu += cu - cachedCu;
        break;
      }
      case "none":
        break;
    }
  }
}
