// Types of one request to an operation: its input, its caller, its handler and its result, for code
// that serves any operation.
import type { IncomingMessage } from "node:http";
import type { z } from "zod";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import type { PaidPurchase } from "../../payments/payments.ts";
import type { NamedOperation } from "../contract/contract.ts";
import type {
  AnswerExtras,
  ApiCaller,
  Operation,
  RequestInput,
  Terms,
} from "../contract/operation.ts";
import { parseBody } from "../http/body.ts";
import type { RequestOrigin } from "../http/request-origin.ts";
import type { PaymentRefusal } from "../payment/purchase-paywall.ts";
import { checkFields, queryOf } from "./check-fields.ts";

/** A request to an operation. */
export interface OperationRequest extends RequestOrigin {
  readonly operation: NamedOperation;
  readonly request: IncomingMessage;
  /** Decoded path parameters; null = malformed percent-encoding. */
  readonly params: Readonly<Record<string, string>> | null;
  readonly bytes: Buffer;
}

/** An answer. `receipt`: if it was paid for, header names and values in turn. */
interface AnyAnswer extends AnswerExtras {
  readonly kind: "answer";
  readonly status: number;
  readonly body: unknown;
  readonly receipt?: readonly string[];
}

/** The result of a request. */
export type AnyResult = AnyAnswer | ApiFault | PaymentRefusal;

/** The validated input of an operation, without its caller. */
export interface AnyInput extends RequestInput {
  readonly kind: "input";
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

/** The same with its caller. */
export interface AnyCall extends AnyInput {
  readonly caller: ApiCaller;
}

/** Handles an operation. */
export type AnyHandler<Parts> = (call: AnyCall, parts: Parts) => AnyResult | Promise<AnyResult>;

/** Handles an operation that requires payment. */
export interface AnyPaidHandler<Parts> {
  readonly instead: string;
  readonly free?: { includes(body: unknown): boolean; readonly serve: AnyHandler<Parts> };
  order(call: AnyCall, parts: Parts): Terms | ApiFault | Promise<Terms | ApiFault>;
  answer(paid: PaidPurchase, input: AnyInput, parts: Parts): AnyResult | Promise<AnyResult>;
}

/**
 * The handler of each operation. Their types were checked against the contract where they were
 * defined.
 */
export function parseHandlers<Parts>(
  handlers: object,
): (operation: NamedOperation) => AnyHandler<Parts> | AnyPaidHandler<Parts> {
  type Any = AnyHandler<Parts> | AnyPaidHandler<Parts>;
  const byId = new Map(Object.entries(handlers) as [string, Any][]);
  return ({ id }) => {
    const handler = byId.get(id);
    if (handler === undefined) throw new Error(`no handler serves ${id}`);
    return handler;
  };
}

/** The validated input of an operation, or its faults. */
export function inputOf(asked: OperationRequest): AnyInput | ApiFault {
  const { operation, request, bytes, address, baseUrl, isLocal, cookie } = asked;
  const params = checked(operation.params, asked.params ?? {});
  if (params.kind === "api_fault") return wrongPath(operation, params);
  const query = checked(operation.query, queryOf(request.url ?? "/"));
  if (query.kind === "api_fault") return query;
  const object = operation.body === undefined ? NOTHING : parseBody(bytes, request);
  if (object.kind === "api_fault") return object;
  const body = checked(operation.body, object.value, operation.wrongBody);
  if (body.kind === "api_fault") return body;
  const { "if-match": ifMatch = null, "last-event-id": lastId } = request.headers;
  return {
    kind: "input",
    params: params.value,
    query: query.value,
    body: body.value,
    ifMatch,
    lastEventId: typeof lastId === "string" ? lastId : null,
    address,
    baseUrl,
    isLocal,
    cookie,
  };
}

const NOTHING = { kind: "object", value: {} } as const;

/** Null where the operation has no such part. */
function checked(schema: z.ZodObject | undefined, given: object, wrong?: Operation["wrongBody"]) {
  return schema === undefined
    ? ({ kind: "checked", value: null } as const)
    : checkFields(schema, given, wrong);
}

function wrongPath(operation: Operation, { details }: ApiFault): ApiFault<"invalid_field"> {
  const names = Object.keys(operation.params?.shape ?? {}).map((name) => `{${name}}`);
  return apiFault("invalid_field", `${names.join(", ")} in the path is no id`, {
    details,
    nextAction: `replace ${names.join(", ")} with an id that the API returned`,
  });
}
