// The price of a pay-per-call request: the sum over its calls, each rounded up to whole base units
// of the token; and the voucher that pays for them. Reads envelopes only.

import { chargedParts, chargeKindOf } from "../../../core/billing/charging.ts";
import { cachedCuOf, cuOf, type Tariff } from "../../../core/billing/price.ts";
import { type Fault, fault } from "../../../core/faults/rpc-fault.ts";
import type { SourceKind } from "../../../core/routing/answer-source.ts";
import type { Strategy } from "../../../core/routing/strategy.ts";
import { type Envelope, type InvalidRequest, readRequest } from "../../../core/rpc/envelope.ts";
import { OPEN_ARRAY, skipSpace } from "../../../core/rpc/json.ts";
import type { Method } from "../../../core/rpc/method.ts";
import type { MethodTable } from "../../../core/rpc/method-table.ts";
import type { AdmissionRequest } from "../../../hosted/admission/admission.ts";
import { unitsFor } from "../../../payments/session/sessions.ts";
import type { CallPayment, VoucherGrant } from "../../payment/call-payment.ts";
import { itemsOfBatch } from "../calls/batch.ts";

/** A request with its price. */
export interface PricedRequest {
  readonly kind: "priced";
  readonly items: readonly (Envelope | InvalidRequest)[];
  readonly isBatch: boolean;
  /** The price of all items, in base units. */
  readonly units: bigint;
  /** The parts of those that are asked for in several. */
  readonly parts: PartsByStart;
  /** Tokens of the rate limit: one per call and one per further part of a split call. */
  readonly tokens: number;
  readonly cu: number;
  /** The id of the call as JSON text; "null" for batches and notifications. */
  readonly id: string;
}

/** Parts of calls over ranges of blocks, by where the calls begin in their request. */
export type PartsByStart = ReadonlyMap<number, number>;

/** An invalid request: it is refused and costs nothing. */
export interface RefusedRequest {
  readonly kind: "refused";
  readonly fault: Fault;
  readonly id: string;
}

/** Prices and bounds of requests. */
export interface Pricing {
  readonly tariff: Tariff;
  readonly methods: MethodTable;
  readonly strategy: Strategy;
  /** True = the calls are pinned to a provider, so none is answered from the configuration. */
  readonly pinned: boolean;
  readonly maxBatchItems: number;
  /** In how many parts a call is planned to be asked for. */
  readonly partsOf: (envelope: Envelope, method: Method) => number;
}

/** Prices a body that is known to be valid JSON. */
export function pricedRequest(bytes: Buffer, pricing: Pricing): PricedRequest | RefusedRequest {
  const start = skipSpace(bytes, 0, bytes.length);
  const isBatch = bytes[start] === OPEN_ARRAY;
  const items = isBatch
    ? itemsOfBatch(bytes, start, pricing)
    : [readRequest(bytes, start, bytes.length)];
  if ("kind" in items) return { kind: "refused", fault: items, id: "null" };
  let [units, cu, tokens, id] = [0n, 0, items.length, "null"];
  let invalid: string | null = null;
  const parts = new Map<number, number>();
  for (const envelope of items) {
    if (!isBatch) id = envelope.id ?? "null";
    if (envelope.kind === "invalid") {
      invalid = envelope.message;
      continue;
    }
    const method = pricing.methods.of(envelope.method);
    const count = pricing.partsOf(envelope, method);
    const price = priceOf(method, pricing, count);
    parts.set(envelope.start, count);
    units += price.units;
    cu += price.cu;
    tokens += count - 1;
  }
  if (parts.size > 0) return { kind: "priced", items, isBatch, units, parts, tokens, cu, id };
  const message = isBatch ? "the batch holds no valid request" : (invalid ?? "");
  return { kind: "refused", fault: fault("invalid_request", message), id };
}

/**
 * The price of one call in base units; 0 = no provider is asked, because the method is refused or
 * answered from the configuration.
 */
function priceOf(
  method: Method,
  { tariff, strategy, pinned }: Pick<Pricing, "tariff" | "strategy" | "pinned">,
  parts = 1,
): { readonly units: bigint; readonly cu: number } {
  const cu = parts * cuOf(tariff, method, strategy);
  return { units: isSold(method, pinned) ? unitsOf(tariff, cu) : 0n, cu };
}

/** Compute units in base units, rounded up. */
function unitsOf({ nanoPerCu }: Pick<Tariff, "nanoPerCu">, cu: number): bigint {
  return unitsFor(cu * nanoPerCu);
}

/** Whether the method is paid for: a provider or a filter answers it. */
function isSold({ handling }: Method, pinned: boolean): boolean {
  switch (handling) {
    case "route":
    case "filter":
      return true;
    case "local":
      return pinned;
    case "blocked":
    case "socket_only":
      return false;
  }
}

/** Pays for the calls of one request. */
export class VoucherPayment implements CallPayment {
  readonly countsParts = false;
  readonly #pricing: Pick<Pricing, "tariff" | "strategy" | "pinned">;
  readonly #parts: PartsByStart;
  /** The price of all calls settled as charged, in base units. */
  chargedUnits = 0n;
  /** Compute units that calls cost less than was held: from the cache, or for parts not sent. */
  savedCu = 0;

  constructor(
    pricing: Pick<Pricing, "tariff" | "strategy" | "pinned">,
    parts: PartsByStart = new Map(),
  ) {
    this.#pricing = pricing;
    this.#parts = parts;
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
        const kind = chargeKindOf(source);
        if (kind === "none") return null;
        const { tariff } = this.#pricing;
        const sent = priceOf(method, this.#pricing, chargedParts(parts, partsSent));
        const cu = kind === "full" ? sent.cu : cachedCuOf(tariff, sent.cu);
        this.chargedUnits += kind === "full" ? sent.units : unitsOf(tariff, cu);
        this.savedCu += held.cu - cu;
        return null;
      },
      release: () => null,
    };
  }
}
