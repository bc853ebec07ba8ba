// The port of payments: offers for an order, acceptance of a payment, look-up of purchases. The
// implementation is loaded only where rails are configured.
import { z } from "zod";
import type { PaymentProtocol, PurchaseState, Purpose } from "../core/billing/payment.ts";
import type { ApiFault } from "../core/faults/api-fault.ts";
import type { PaymentSettings } from "./rails/rails.ts";

/** Identifies the request that an order came with: its payment buys nothing else. */
export interface RequestMark {
  /** SHA-256 of method, path and body, base64url: the path itself may hold a key. */
  readonly fingerprint: string;
  /** `Content-Digest` of the body, as MPP's `digest`: `sha-256=<base64>`. */
  readonly digest: string;
  /** URL of the request for x402's `resource`, without secrets. */
  readonly resourceUrl: string;
}

/** Goods to be paid for. */
export interface Order {
  readonly purpose: Purpose;
  /** Nano-USD: whole base units of six-decimal tokens, within the configured range. */
  readonly amountN: bigint;
  readonly request: RequestMark;
  /** One line, shown to the payer. */
  readonly description: string;
  /** True = `Authorization` holds another credential, and the payment has its own header. */
  readonly keepsAuthorization: boolean;
}

/** The headers of a 402 response. */
export interface PaymentChallenge {
  /**
   * Names and values in turn: `WWW-Authenticate: Payment …` for each offer, `PAYMENT-REQUIRED`
   * where x402 is offered.
   */
  readonly headers: readonly string[];
}

/** The payment in a request, as unchecked text. Secret. */
export interface PaymentHeaders {
  readonly protocol: PaymentProtocol;
  readonly text: string;
}

const digits = z
  .string()
  .regex(/^\d{1,40}$/)
  .transform(BigInt);

/** A `Fulfilment` as it is written. */
export const fulfilmentShape = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.enum(["fund_key", "credit_account"]),
    accountId: z.string(),
    balanceN: digits,
    fundedN: digits,
  }),
  z.strictObject({
    kind: z.literal("create_key"),
    accountId: z.string(),
    keyId: z.string(),
    /**
     * Also returned when the payment is repeated; empty once 7 days have passed since it settled.
     */
    secret: z.string(),
    prefix: z.string(),
    balanceN: digits,
  }),
  z.strictObject({
    kind: z.literal("custom_access"),
    accountId: z.string(),
    keyId: z.string(),
    days: z.int().positive(),
    fromMs: z.number(),
    untilMs: z.number(),
  }),
]);

/**
 * What settled money did. Balance of the account and all that was ever credited to it in nano-USD,
 * as they were right after the credit.
 */
export type Fulfilment = z.output<typeof fulfilmentShape>;

/** A purchase without its secrets and signatures. */
export interface PurchaseView {
  readonly id: string;
  readonly state: PurchaseState;
  readonly purpose: Purpose;
  readonly amountN: bigint;
  readonly rail: string;
  readonly protocol: PaymentProtocol;
  readonly chainId: number;
  readonly payer: string;
  /** Null until a transaction was sent. */
  readonly txHash: string | null;
  /** Why it failed; null = it did not. */
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

/** A payment that has bought nothing, or nothing yet. */
export interface PaymentDeclined {
  readonly kind: "declined";
  readonly fault: ApiFault<
    | "payment_invalid"
    | "payment_conflict"
    | "payment_failed"
    | "payment_pending"
    | "beneficiary_conflict"
    | "unavailable"
    | "rate_limited"
  >;
  /** The purchase; null = none was recorded, so nothing was paid. */
  readonly purchaseId: string | null;
  /** Last part of MPP's problem type. */
  readonly problem: string;
}

/** What one purchase may cost, and what a day of Custom access does. */
export type PaymentRange = Pick<PaymentSettings, "minN" | "maxN" | "customDayN" | "maxCustomDays">;

/** Counts for metrics, as of some seconds ago. */
export interface PaymentGauges {
  /** Purchases under way, of every instance that shares the store. */
  readonly accepted: number;
  readonly submitted: number;
  /** Purchases whose money has arrived and whose beneficiary is gone. */
  readonly held: number;
  /** Wallets that pay for gas. */
  readonly wallets: readonly {
    readonly chainId: number;
    readonly low: boolean;
    readonly empty: boolean;
  }[];
}

/** A wallet of a rail that pays for gas, as it was last seen. */
export interface WalletReport {
  readonly rail: string;
  readonly chainId: number;
  /** Where payments go. */
  readonly recipient: string;
  readonly token: string;
  /** Null = the rail has no wallet, or its chain was not reached yet. */
  readonly wallet: {
    readonly address: string;
    readonly balanceWei: bigint;
    readonly low: boolean;
    readonly empty: boolean;
    readonly dear: boolean;
  } | null;
}

/** Takes payments. */
export interface Payments {
  readonly range: PaymentRange;
  /** Every offer for an order; null = it cannot be offered now (no rail reaches its chain). */
  challenge(order: Order): Promise<PaymentChallenge | null>;
  /**
   * Accepts a payment for its request. `order` is called only for a new payment: a repeated one
   * gets its first result, even if it could not be ordered now. Throws only where the store does.
   */
  take<F>(
    given: PaymentHeaders,
    request: RequestMark,
    order: () => Promise<Order | F>,
  ): Promise<PaidPurchase | PaymentDeclined | F>;
  /** Null = no such purchase. */
  purchase(id: string): Promise<PurchaseView | null>;
  /** Reads memory only. */
  gauges(): PaymentGauges;
  /** Every rail with its wallet. Reads memory only. */
  wallets(): readonly WalletReport[];
  /** Ends the work of this process; open purchases stay recorded. */
  close(): Promise<void>;
}
