// Types of one request to an operation: its input, its caller, its handler and its result, for code
// that serves any operation.
import type { IncomingMessage } from "node:http";
import type { ApiFault } from "../../core/faults/api-fault.ts";
import type { PaidPurchase } from "../../payments/payments.ts";
import type { OperationId } from "../contract/contract.ts";
import type {
  ApiCaller,
  NotedResult,
  Operation,
  Terms,
  WriteStream,
} from "../contract/operation.ts";
import type { CookieRequest } from "../http/console-cookie.ts";
import type { PaymentRefusal } from "../payment/purchase-paywall.ts";

/** An operation with its id. */
export type NamedOperation = Operation & { readonly id: OperationId };

/** A request to an operation. */
export interface OperationRequest {
  readonly operation: NamedOperation;
  readonly request: IncomingMessage;
  /** Decoded path parameters; null = malformed percent-encoding. */
  readonly params: Readonly<Record<string, string>> | null;
  readonly bytes: Buffer;
  readonly address: string;
  readonly baseUrl: string;
  readonly isLocal: boolean;
  readonly cookie: CookieRequest;
}

/**
 * The result of a request. `headers` and, if it was paid for, `receipt` hold header names and
 * values in turn.
 */
export type AnyResult =
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly body: unknown;
      readonly receipt?: readonly string[];
      readonly headers?: readonly string[];
      readonly noted?: NotedResult;
      /** Writes the body as an event stream; absent = `body` is all of it. */
      readonly stream?: WriteStream;
    }
  | ApiFault
  | PaymentRefusal;

/** The validated input of an operation, without its caller. */
export interface AnyInput {
  readonly kind: "input";
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly ifMatch: string | null;
  readonly address: string;
  readonly baseUrl: string;
  readonly isLocal: boolean;
  readonly cookie: CookieRequest;
  readonly lastEventId: string | null;
}

/** The same with its caller. */
export interface AnyCall extends AnyInput {
  readonly caller: ApiCaller;
}

/** Handles an operation. */
export type AnyHandler = (call: AnyCall) => AnyResult | Promise<AnyResult>;

/** Handles an operation that requires payment. */
export interface AnyPaidHandler {
  readonly instead: string;
  readonly free: { includes(body: unknown): boolean; readonly serve: AnyHandler } | null;
  order(call: AnyCall): Terms | ApiFault | Promise<Terms | ApiFault>;
  answer(paid: PaidPurchase, input: AnyInput): AnyResult | Promise<AnyResult>;
}
