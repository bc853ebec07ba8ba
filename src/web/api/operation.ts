// One request of an operation on its way to its handler and back: the types of code that serves
// any operation.
import type { IncomingMessage } from "node:http";
import type { ApiFault } from "../../core/faults/api-fault.ts";
import type { PaidPurchase } from "../../payments/payments.ts";
import type { OperationId } from "../contract/contract.ts";
import type { ApiCaller, Operation, Terms } from "../contract/operation.ts";
import type { PaymentRefusal } from "../payment/purchase-paywall.ts";

/** An operation with its id. */
export type NamedOperation = Operation & { readonly id: OperationId };

/** A request of an operation. */
export interface OperationRequest {
  readonly operation: NamedOperation;
  readonly request: IncomingMessage;
  /** Decoded path parameters; null = one cannot be decoded. */
  readonly params: Readonly<Record<string, string>> | null;
  readonly bytes: Buffer;
  readonly address: string;
  readonly baseUrl: string;
  readonly isLocal: boolean;
}

/**
 * What a request is answered. `receipt`: header names and values in turn, where it was paid for.
 */
export type AnyResult =
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly body: unknown;
      readonly receipt?: readonly string[];
    }
  | ApiFault
  | PaymentRefusal;

/** What an operation reads of a request, checked, but for who sent it. */
export interface AnyInput {
  readonly kind: "input";
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly ifMatch: string | null;
  readonly address: string;
  readonly baseUrl: string;
  readonly isLocal: boolean;
}

/** The same with who sent it. */
export interface AnyCall extends AnyInput {
  readonly caller: ApiCaller;
}

/** Serves an operation. */
export type AnyHandler = (call: AnyCall) => AnyResult | Promise<AnyResult>;

/** Serves an operation that is paid for. */
export interface AnyPaidHandler {
  readonly instead: string;
  readonly free: { includes(body: unknown): boolean; readonly serve: AnyHandler } | null;
  order(call: AnyCall): Terms | ApiFault | Promise<Terms | ApiFault>;
  answer(paid: PaidPurchase, input: AnyInput): AnyResult | Promise<AnyResult>;
}
