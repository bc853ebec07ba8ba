// The port of pay-per-call: challenges for a price, a credential taken, a call held and then
// charged. The implementation is loaded only where a session rail is configured. Amounts are base
// units of six-decimal tokens.

import { NANO_PER_UNIT } from "../../core/billing/payment.ts";
import type { RateLimitStatus } from "../../core/billing/rate-limit.ts";
import type { Fault } from "../../core/faults/rpc-fault.ts";
import type { PaymentHeaders } from "../payments.ts";

/** A request with a price: one call, or the calls of a batch. */
export interface PricedCall {
  /** The price if every call is delivered. */
  readonly units: bigint;
  /** Number of calls. */
  readonly calls: number;
  /** Tokens of the rate limit that they take; absent = one each. */
  readonly tokens?: number;
  /** SHA-256 of URL and body: equal for equal requests. */
  readonly fingerprint: string;
}

/** The end of a request whose price was held. */
export interface PaidCallEnd {
  /** Price of the calls that are charged; 0 = nothing is charged. */
  readonly units: bigint;
  /** Compute units of all calls of the request, as they were answered. */
  readonly cu: number;
  /** HTTP status and body of the answer. */
  readonly status: number;
  readonly body: Buffer | null;
  /** True = its caller left before the answer: once charged, it may be repeated once for free. */
  readonly abandoned: boolean;
}

/** The cost of a request, for the headers of its answer. */
export interface CallBill {
  readonly kind: "bill";
  readonly cu: number;
  readonly chargedUnits: bigint;
  /** The deposit less everything that was spent of it. */
  readonly leftUnits: bigint;
  readonly rateLimitStatus: RateLimitStatus;
  /** Names and values in turn: the receipt. */
  readonly headers: readonly string[];
}

/** The price of a request, held in its channel. Ends once: settled or released. */
export interface Hold<Refusal = SessionRefusal> {
  readonly kind: "hold";
  /**
   * Charges the request and keeps its answer. Anything but a bill is sent instead of the answer:
   * then nothing was charged.
   */
  settle(end: PaidCallEnd): Promise<CallBill | RecordedAnswer | Refusal>;
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

/** A credential that changed its channel and came without a call. */
export interface Managed {
  readonly kind: "managed";
  /** Names and values in turn: the receipt. */
  readonly headers: readonly string[];
}

/** A refused request. */
export interface SessionRefusal {
  readonly kind: "refusal";
  readonly fault: Fault;
  /** Names and values in turn: with a 402 a fresh challenge for each way to pay. */
  readonly headers: readonly string[];
  /** True = the credential is wrong, and does not prove that its sender has a channel. */
  readonly isWrong: boolean;
}

/** The result of a credential. */
export type SessionTaken = Hold | RecordedAnswer | Managed | SessionRefusal;

/** Counts of channels, for metrics. */
export interface SessionGauges {
  /** Channels in memory, and requests that hold an amount. */
  readonly channels: number;
  readonly held: number;
  /** True = the chain was not reached at the last attempt. */
  readonly chainDown: boolean;
  /** True = the wallet that settles could not pay for its next transactions. */
  readonly walletLow: boolean;
}

/** Accepts payments for single calls. */
export interface Sessions {
  /**
   * The 402 of a request without a payment; `call` null = it holds no call. `channelHint`: the
   * channel that the caller names, null = none.
   */
  challenge(call: PricedCall | null, channelHint: string | null): Promise<SessionRefusal>;
  /**
   * Takes a credential; `call` null = it comes without a call. Throws only where the store does.
   */
  take(given: PaymentHeaders, call: PricedCall | null): Promise<SessionTaken>;
  /** Reads memory only. */
  gauges(): SessionGauges;
  /** Ends the work of this process; channels stay as they are written. */
  close(): Promise<void>;
}

/** The price that an empty request is told, and that discovery declares: a usual read. */
export const DECLARED_UNITS = 100n;

/** The price of a call: nano-USD as whole base units, rounded up. */
export function unitsFor(priceN: number): bigint {
  return (BigInt(priceN) + NANO_PER_UNIT - 1n) / NANO_PER_UNIT;
}
