// The type of a row of the contract, and the handler types derived from it: a handler that returns
// an answer its row does not declare fails to compile.
import type { ServerResponse } from "node:http";
import type { z } from "zod";
import type { PurposeKind } from "../../core/billing/payment.ts";
import type { ApiFault, ApiFaultCode } from "../../core/faults/api-fault.ts";
import type { KeyRecord } from "../../hosted/keys/keys.ts";
import type { ManagementToken } from "../../hosted/keys/management-token.ts";
import type { Order, PaidPurchase } from "../../payments/payments.ts";
import type { RequestOrigin } from "../http/request-origin.ts";

/**
 * How a caller may authenticate. `management_token`, `operator`: `Authorization: Bearer`.
 * `rpc_key`: the same, or `X-Svc-Api-Key`. `key_in_path`: the path contains the key.
 * `connection_token`: `Authorization: Bearer`, valid for one connection. `none` in addition to
 * others: the credential is optional.
 */
export type Auth =
  | "none"
  | "management_token"
  | "rpc_key"
  | "key_in_path"
  | "operator"
  | "connection_token";

/** Codes of operations that read a body. */
const BODY = [
  "invalid_request",
  "body_too_large",
  "unsupported_media_type",
  "invalid_field",
  "unknown_field",
] as const;

/** Codes that follow from the ways to authenticate. */
const AUTH_FAULTS = {
  none: [],
  management_token: ["unauthorized", "rate_limited"],
  rpc_key: ["unauthorized", "rate_limited"],
  connection_token: ["unauthorized", "rate_limited"],
  key_in_path: ["not_found", "rate_limited"],
  operator: ["unauthorized"],
} as const satisfies Readonly<Record<Auth, readonly ApiFaultCode[]>>;

/**
 * The codes that an operation may answer with: those that follow from credentials and input, and
 * those that the row names.
 */
export function faultsOf(operation: Operation): readonly ApiFaultCode[] {
  const { endpoint, auth, params, query, body, faults = [] } = operation;
  const takes = (...ways: readonly Auth[]): boolean => ways.some((way) => auth.includes(way));
  const isOfThing = params !== undefined && !("key" in params.shape);
  const rules: readonly (readonly [applies: boolean, codes: readonly ApiFaultCode[]])[] = [
    [body !== undefined, BODY],
    [true, auth.flatMap((way) => AUTH_FAULTS[way])],
    [!endpoint.startsWith("GET ") && takes("management_token", "operator"), ["forbidden"]],
    [isOfThing && !endpoint.startsWith("PUT "), ["not_found"]],
    [isOfThing || query !== undefined, ["invalid_field"]],
    [true, [...faults, "internal", "unavailable"]],
  ];
  return [...new Set(rules.flatMap(([applies, codes]) => (applies ? codes : [])))];
}

/** The same codes as a type. */
type FaultOf<O extends Operation> =
  | ("internal" | "unavailable" | (typeof AUTH_FAULTS)[O["auth"][number]][number])
  | (O extends { readonly body: z.ZodObject } ? (typeof BODY)[number] : never)
  | (O extends { readonly query: z.ZodObject } ? "invalid_field" : never)
  | (O extends { readonly params: z.ZodObject } ? "invalid_field" | "not_found" : never)
  | (O["endpoint"] extends `GET ${string}` ? never : "forbidden")
  | (O extends { readonly faults: readonly (infer Code extends ApiFaultCode)[] } ? Code : never);

/** HTTP methods of operations. `GET` includes `HEAD`. */
export type OperationMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Groups of operations in documents. */
export const TAGS = {
  instance: "The instance itself. No credential.",
  agent: "Anonymous keys, chains and prices. No account.",
  keys: "Keys of an account.",
  accounts: "The account and its agents.",
  profiles: "Custom profiles: your own providers behind this service.",
  operator: "For the operator of the instance.",
  console: "Signing in to the console.",
} as const;
export type OperationTag = keyof typeof TAGS;

/** A declared answer; `schema` null = no body. */
export interface OperationAnswer {
  readonly description: string;
  readonly schema: z.ZodType | null;
  /** Of a body that is no JSON, and is written while the request lasts; absent = JSON, or none. */
  readonly contentType?: string;
}

/** A declared answer. */
export function answer<Schema extends z.ZodType | null>(description: string, schema: Schema) {
  return { description, schema } as const;
}

/** One operation of the HTTP API. Its id is its key in the contract. */
export interface Operation {
  /** Method and path; parameters of the path stand as `{name}`. */
  readonly endpoint: `${OperationMethod} /${string}`;
  readonly tag: OperationTag;
  readonly summary: string;
  readonly description: string;
  /** Accepted ways to authenticate; one suffices. */
  readonly auth: readonly Auth[];
  /** Parameters of the path; omitted = it has none. */
  readonly params?: z.ZodObject;
  /** Omitted = no parameters. Unknown parameters are ignored. */
  readonly query?: z.ZodObject;
  /** Omitted = the body is not read. A body with optional fields only may be omitted. */
  readonly body?: z.ZodObject;
  /** Code for invalid values in the body; omitted = `invalid_field`. */
  readonly wrongBody?: "invalid_config";
  /** Omitted = the limit of the API. */
  readonly maxBodyBytes?: number;
  /** Answers by status. */
  readonly answers: Readonly<
    Partial<Record<200 | 201 | 202 | 204 | 401 | 404 | 503, OperationAnswer>>
  >;
  /** Codes that it may answer with beside those that follow: see `faultsOf`. */
  readonly faults?: readonly ApiFaultCode[];
  /** Whether repeating a request has no further effect; omitted = as HTTP says of its method. */
  readonly idempotent?: true;
  /** What a payment with the request buys; omitted = it takes no payment. */
  readonly pays?: PurposeKind;
}

/** Rows of operations that have in common what they do not say themselves. */
export type OperationRows = Readonly<Record<string, RowOf<Operation>>>;

type Common = Pick<Operation, "tag" | "auth">;
type RowOf<O> = Omit<O, keyof Common> & Partial<Common>;

type Complete<C, Rows> = { readonly [Id in keyof Rows]: Omit<C, keyof Rows[Id]> & Rows[Id] };

/** The operations of rows, with what the rows have in common. */
export function operations<const C extends Common, const Rows extends OperationRows>(
  common: C,
  rows: Rows,
): Complete<C, Rows> {
  // Each row gives one operation of its name.
  const complete = Object.entries(rows).map(([id, row]) => [id, { ...common, ...row }]);
  return Object.fromEntries(complete) as Complete<C, Rows>;
}

/** Whether repeating a request has no further effect. */
export function isIdempotent({ endpoint, idempotent }: Operation): boolean {
  return idempotent ?? !/^(POST|PATCH) /.test(endpoint);
}

/** The operator, and how this one authenticated. */
export interface OperatorCaller {
  readonly kind: "operator";
  /** For the list of actions: the token, or a session by the beginning of its hash. */
  readonly actor: string;
  /** SHA-256 of the id of the session; null = the request carries the token. */
  readonly sessionHash: string | null;
}

/** The authenticated caller of a request. */
export type ApiCaller =
  /** `isSignedIn`: to an account, which opens nothing more than what is not public. */
  | { readonly kind: "anyone"; readonly isSignedIn?: true }
  | OperatorCaller
  | { readonly kind: "agent"; readonly agent: ManagementToken }
  | { readonly kind: "key"; readonly key: KeyRecord }
  | { readonly kind: "connection"; readonly token: string };

interface CallerKinds {
  readonly none: "anyone";
  readonly key_in_path: "key";
  readonly operator: "operator";
  readonly management_token: "agent";
  readonly rpc_key: "key";
  readonly connection_token: "connection";
}

/** The callers that an operation accepts. */
export type CallerOf<O extends Operation> = Extract<
  ApiCaller,
  { readonly kind: CallerKinds[O["auth"][number]] }
>;

/** The value of a part of the request; null = the operation has no such part. */
type Read<O, Part extends "params" | "query" | "body"> = O extends {
  readonly [P in Part]: infer S extends z.ZodType;
}
  ? z.output<S>
  : null;

/** What the input of every handler has. */
export interface RequestInput extends RequestOrigin {
  /** The `If-Match` header; null = absent. */
  readonly ifMatch: string | null;
  /** The `Last-Event-ID` header; null = absent. */
  readonly lastEventId: string | null;
}

/** The validated input of a handler. */
export interface ApiInput<O extends Operation = Operation> extends RequestInput {
  readonly params: Read<O, "params">;
  readonly query: Read<O, "query">;
  readonly body: Read<O, "body">;
  readonly caller: CallerOf<O>;
}

type AnswerBody<A> = A extends { readonly schema: infer S }
  ? S extends z.ZodType
    ? Unchanging<z.output<S>>
    : null
  : never;

/** A value that nobody changes. */
type Unchanging<T> = T extends readonly (infer Item)[]
  ? readonly Unchanging<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: Unchanging<T[K]> }
    : T;

/**
 * Writes a body for as long as the request lasts. `isStillAllowed`: whether the credential of the
 * request is still good.
 */
export type WriteStream = (
  response: ServerResponse,
  isStillAllowed: () => Promise<boolean>,
) => void;

/** What the line of an operator's action says of its result; absent = that it was done. */
export interface NotedResult {
  readonly detail: string;
  readonly isDone: boolean;
}

/** What an answer has beside its status and body. */
export interface AnswerExtras {
  /** Header names and values in turn; absent = none of its own. */
  readonly headers?: readonly string[];
  readonly noted?: NotedResult;
  /** Writes the body as an event stream, after the head; absent = `body` is all of it. */
  readonly stream?: WriteStream;
}

/** A declared answer with its body. */
export type ApiAnswer<O extends Operation> = {
  readonly [S in keyof O["answers"]]: AnswerExtras & {
    readonly kind: "answer";
    readonly status: S;
    readonly body: AnswerBody<O["answers"][S]>;
  };
}[keyof O["answers"]];

/** The result of a handler. */
export type ApiResult<O extends Operation> = ApiAnswer<O> | ApiFault<FaultOf<O>>;

/** Handles one operation with the services of its API. */
export type ApiHandler<O extends Operation, Parts = unknown> = (
  input: ApiInput<O>,
  parts: Parts,
) => ApiResult<O> | Promise<ApiResult<O>>;

/** What a request buys, without the mark of the request. */
export type Terms = Pick<Order, "purpose" | "amountN" | "description">;

/** Handles one operation that requires payment. */
export interface PaidHandler<O extends Operation, Parts> {
  /** Advice for callers if payments are disabled. */
  readonly instead: string;
  /** Requests that need no payment; absent = none. */
  readonly free?: {
    includes(body: ApiInput<O>["body"]): boolean;
    readonly serve: ApiHandler<O, Parts>;
  };
  /** The order of a request, or why it is not sold. Has no effects. */
  order(
    input: ApiInput<O>,
    parts: Parts,
  ): Promise<Terms | ApiFault<FaultOf<O>>> | Terms | ApiFault<FaultOf<O>>;
  /**
   * The answer once the payment has settled, the first time and for each repetition. Does not
   * authenticate the caller again.
   */
  answer(
    paid: PaidPurchase,
    input: Omit<ApiInput<O>, "caller">,
    parts: Parts,
  ): ApiResult<O> | Promise<ApiResult<O>>;
}

/** The handlers that the rows of operations require, over the services of their API. */
export type HandlersOf<Operations extends Readonly<Record<string, Operation>>, Parts> = {
  readonly [Id in keyof Operations]: Operations[Id] extends { readonly pays: PurposeKind }
    ? PaidHandler<Operations[Id], Parts>
    : ApiHandler<Operations[Id], Parts>;
};
