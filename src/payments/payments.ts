// Payments as the rest of the service sees them: offers for an order, a payment taken once and for
// all, purchases to look up. This is the port; what is behind it is loaded only where rails are
// configured.

import type {
  PaymentProtocol,
  PaymentSettings,
  PurchaseState,
  Purpose,
} from "../core/billing/payment.ts";
import type { ApiFault } from "../core/faults/api-fault.ts";

/**
 * The request that an order came with: a payment buys what this one asked for, and nothing else.
 */
export interface RequestMark {
  /**
   * SHA-256 of method, path and body, base64url. Never holds what the path holds: that may be a
   * key.
   */
  readonly fingerprint: string;
  /** `Content-Digest` of the body, as MPP's `digest`: `sha-256=<base64>`. */
  readonly digest: string;
  /** URL of the request for x402's `resource`, without secrets. */
  readonly resourceUrl: string;
}

/** What is to be paid for. */
export interface Order {
  readonly purpose: Purpose;
  /** Nano-USD: whole base units of six-decimal tokens, within the configured range. */
  readonly amountN: bigint;
  readonly request: RequestMark;
  /** For the payer's eyes, one line. */
  readonly description: string;
  /**
   * True where `Authorization` has to keep another credential, so that the payment comes in a
   * header of its own.
   */
  readonly keepsAuthorization: boolean;
}

/** What a caller gets with a 402. */
export interface PaymentChallenge {
  /**
   * Names and values in turn: `WWW-Authenticate: Payment …` for each offer, `PAYMENT-REQUIRED`
   * where x402 is offered.
   */
  readonly headers: readonly string[];
}

/** What a request carries to pay with, as text: nothing of it is checked. Secret. */
export interface PaymentHeaders {
  readonly protocol: PaymentProtocol;
  readonly text: string;
}

/**
 * What settled money did. Balance of the account and all that was ever credited to it in nano-USD,
 * as they were right after the credit.
 */
export type Fulfilment =
  | {
      readonly kind: "fund_key" | "credit_account";
      readonly accountId: string;
      readonly balanceN: bigint;
      readonly fundedN: bigint;
    }
  | {
      readonly kind: "create_key";
      readonly accountId: string;
      readonly keyId: string;
      /**
       * Shown to whoever brings the payment again; empty 7 days after it settled: it is not kept
       * any longer.
       */
      readonly secret: string;
      readonly prefix: string;
      readonly balanceN: bigint;
    }
  | {
      readonly kind: "custom_access";
      readonly accountId: string;
      readonly keyId: string;
      readonly days: number;
      readonly fromMs: number;
      readonly untilMs: number;
    };

/** A purchase as it may be shown: no secret and no signature in it. */
export interface PurchaseView {
  readonly id: string;
  readonly state: PurchaseState;
  readonly purpose: Purpose;
  readonly amountN: bigint;
  readonly rail: string;
  readonly protocol: PaymentProtocol;
  readonly chainId: number;
  readonly payer: string;
  /** Null until something was sent. */
  readonly txHash: string | null;
  /** Why it failed; null otherwise. */
  readonly reason: string | null;
  readonly createdAtMs: number;
  /** When it settled or failed; null = it is under way. */
  readonly endedAtMs: number | null;
}

/** A payment that has settled. */
export interface PaidPurchase {
  readonly kind: "paid";
  readonly purchase: PurchaseView;
  readonly fulfilment: Fulfilment;
  /** True when this payment had been seen before: this is its first result again. */
  readonly repeated: boolean;
  /** Names and values in turn: `Payment-Receipt`, or `PAYMENT-RESPONSE`. */
  readonly headers: readonly string[];
}

/** A payment that did not buy anything, or not yet. */
export interface PaymentDeclined {
  readonly kind: "unpaid";
  readonly fault: ApiFault<
    | "payment_invalid"
    | "payment_conflict"
    | "payment_failed"
    | "payment_pending"
    | "beneficiary_conflict"
    | "unavailable"
    | "rate_limited"
  >;
  /** Purchase that it is about; null = none was recorded, so nothing was paid. */
  readonly purchaseId: string | null;
  /** Last part of MPP's problem type. */
  readonly problem: string;
}

/** What one purchase may cost, and what a day of Custom access does. */
export type PaymentRange = Pick<PaymentSettings, "minN" | "maxN" | "customDayN" | "maxCustomDays">;

/** How payments stand, for metrics: as of some seconds ago. */
export interface PaymentGauges {
  /** Purchases that are under way, of every instance that shares the store. */
  readonly accepted: number;
  readonly submitted: number;
  /** Purchases whose money has arrived and could not be given to whom it was for. */
  readonly held: number;
  /** Wallets that pay for gas. */
  readonly wallets: readonly {
    readonly chainId: number;
    readonly low: boolean;
    readonly empty: boolean;
  }[];
}

/** Takes payments. */
export interface Payments {
  readonly range: PaymentRange;
  /** Every offer for an order; null = it cannot be offered now (no rail reaches its chain). */
  challenge(order: Order): Promise<PaymentChallenge | null>;
  /**
   * Takes a payment for the request that brought it. `order` is asked only where the payment was
   * not seen before: whoever repeats a payment gets its first result, whatever the order would say
   * by now. Throws only where the store does.
   */
  take<F>(
    given: PaymentHeaders,
    request: RequestMark,
    order: () => Promise<Order | F>,
  ): Promise<PaidPurchase | PaymentDeclined | F>;
  /** Null = there is none. */
  purchase(id: string): Promise<PurchaseView | null>;
  /** Asks nobody. */
  gauges(): PaymentGauges;
  /** Ends what is under way in this process; open purchases stay as they are written. */
  close(): Promise<void>;
}
