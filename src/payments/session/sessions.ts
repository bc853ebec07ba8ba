// Pay-per-call as the web side sees it: challenges for a price, a credential taken, a call held and
// then charged. This is the port; what is behind it is loaded only where a session rail is
// configured. Amounts are base units of six-decimal tokens.

import { NANO_PER_UNIT } from "../../core/billing/payment.ts";
import type { RateLimitStatus } from "../../core/billing/rate-limit.ts";
import type { Fault } from "../../core/faults/rpc-fault.ts";
import type { PaymentHeaders } from "../payments.ts";

/** A request that has to be paid for: one call, or the calls of a batch. */
export interface PricedCall {
  /** What it costs if every call of it is delivered. */
  readonly units: bigint;
  /** Calls in it. */
  readonly calls: number;
  /** Of URL and body: the same for the same request. */
  readonly fingerprint: string;
}

/** The sender of a request. */
export interface SessionCaller {
  /** IP address. */
  readonly address: string;
  /** The channel that the caller names; null = none. */
  readonly hint: string | null;
}

/** How a request ended whose price was held. */
export interface CallEnd {
  /** What of it was delivered costs; 0 = nothing was, and nothing is charged. */
  readonly units: bigint;
  /** Compute units of all of it. */
  readonly cu: number;
  /** HTTP status and body of the answer. */
  readonly status: number;
  readonly body: Buffer | null;
  /**
   * True = its caller left before there was an answer: where it is charged, the same request is
   * made once more for nothing.
   */
  readonly abandoned: boolean;
}

/** What a caller is told beside an answer. */
export interface CallBill {
  readonly kind: "bill";
  readonly cu: number;
  readonly chargedUnits: bigint;
  /** What the deposit has left. */
  readonly leftUnits: bigint;
  readonly rateLimitStatus: RateLimitStatus;
  /** Names and values in turn: the receipt. */
  readonly headers: readonly string[];
}

/** The price of a request, held in its channel. Ends once: settled or released. */
export interface Hold {
  readonly kind: "hold";
  /**
   * Charges what was delivered, and keeps the answer. Where that cannot be written the caller gets
   * what comes back instead, and is not charged.
   */
  settle(end: CallEnd): Promise<CallBill | RecordedAnswer | SessionRefusal>;
  /** Charges nothing. */
  release(): void;
}

/** The first answer to a request that was paid for before. */
export interface RecordedAnswer {
  readonly kind: "recorded";
  readonly status: number;
  readonly body: string;
  readonly bill: CallBill;
}

/** A credential that did something to its channel and came without a call. */
export interface Managed {
  readonly kind: "managed";
  /** Names and values in turn: the receipt. */
  readonly headers: readonly string[];
}

/** A request that is not served. */
export interface SessionRefusal {
  readonly kind: "refusal";
  readonly fault: Fault;
  /** Names and values in turn: with a 402 a fresh challenge for each way to pay. */
  readonly headers: readonly string[];
}

/** What became of a credential. */
export type SessionTaken = Hold | RecordedAnswer | Managed | SessionRefusal;

/** How the channels stand, for metrics. */
export interface SessionGauges {
  /** Channels that are in memory, and requests that are held. */
  readonly channels: number;
  readonly held: number;
  /** True = the chain could not be asked at the last attempt. */
  readonly chainDown: boolean;
  /** True = the wallet that settles could not pay for its next transactions. */
  readonly walletLow: boolean;
}

/** Takes payments for single calls. */
export interface Sessions {
  /** Challenges for a request without a payment; `call` null = nothing was asked for. */
  ask(call: PricedCall | null, caller: SessionCaller): Promise<SessionRefusal>;
  /**
   * Takes a credential. `call` null = the request asks for nothing but what the credential does.
   * Throws only where the store does.
   */
  take(
    given: PaymentHeaders,
    call: PricedCall | null,
    caller: SessionCaller,
  ): Promise<SessionTaken>;
  /** Asks nobody. */
  gauges(): SessionGauges;
  /** Ends what is under way in this process; channels stay as they are written. */
  close(): Promise<void>;
}

/**
 * What is asked for a request that says nothing of itself, and what discovery declares: enough for
 * the usual reads.
 */
export const DECLARED_UNITS = 100n;

/** The price of a call: nano-USD as whole base units, rounded up. */
export function unitsFor(priceN: number): bigint {
  return (BigInt(priceN) + NANO_PER_UNIT - 1n) / NANO_PER_UNIT;
}
