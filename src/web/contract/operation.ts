// What a row of the contract is, and the types of handlers that follow from it: a handler that
// answers what its row does not declare does not compile.
import type { z } from "zod";
import type { PurposeKind } from "../../core/billing/payment.ts";
import type { ApiFault, ApiFaultCode } from "../../core/faults/api-fault.ts";
import type { KeyRecord } from "../../hosted/keys/keys.ts";
import type { ManagementToken } from "../../hosted/keys/management-token.ts";
import type { Order, PaidPurchase } from "../../payments/payments.ts";

/**
 * How a caller may show who it is. `management_token`, `operator`: `Authorization: Bearer`.
 * `rpc_key`: the same, or `X-Svc-Api-Key`. `key_in_path`: the path holds the key.
 * `connection_token`: `Authorization: Bearer`, of one connection. `none` beside others: the
 * credential may be left out.
 */
export type Auth =
  | "none"
  | "management_token"
  | "rpc_key"
  | "key_in_path"
  | "operator"
  | "connection_token";

/** HTTP methods that operations have. `GET` serves `HEAD` too. */
export type OperationMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Groups of operations. */
export type OperationTag = "instance" | "agent" | "keys" | "accounts" | "profiles" | "operator";

/** A declared answer; `schema` null = no body. */
export interface OperationAnswer {
  readonly description: string;
  readonly schema: z.ZodType | null;
}

/** One operation of the HTTP API. Its id is its key in the contract. */
export interface Operation {
  readonly method: OperationMethod;
  /** With parameters as `{name}`. */
  readonly path: string;
  readonly tag: OperationTag;
  readonly summary: string;
  readonly description: string;
  /** Any one of them. */
  readonly auth: readonly Auth[];
  /** `pages`: documented here, answered by `pages.ts`. */
  readonly servedBy: "api" | "pages";
  readonly params: z.ZodObject | null;
  /** Unknown parameters are ignored. */
  readonly query: z.ZodObject | null;
  /** Null = none is read. A body whose fields are all optional may be left out. */
  readonly body: z.ZodObject | null;
  /** What a value in the body is refused with that is not allowed; left out = `invalid_field`. */
  readonly wrongBody?: "invalid_config";
  /** Left out = what the API reads of every body. */
  readonly maxBodyBytes?: number;
  /** By status. */
  readonly answers: Readonly<Partial<Record<200 | 201 | 202 | 204 | 404 | 503, OperationAnswer>>>;
  /** Codes of the management error table that it may answer with. */
  readonly faults: readonly ApiFaultCode[];
  /** Whether sending it again changes nothing more. */
  readonly idempotent: boolean;
  /** What a payment with it buys; left out = it takes none. */
  readonly pays?: PurposeKind;
}

/** Who sent a request. */
export type ApiCaller =
  | { readonly kind: "anyone" }
  | { readonly kind: "operator" }
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

/** Who may have sent a request of an operation. */
export type CallerOf<O extends Operation> = Extract<
  ApiCaller,
  { readonly kind: CallerKinds[O["auth"][number]] }
>;

type Read<S> = S extends z.ZodType ? z.output<S> : null;

/** What a handler is given: everything is checked already. */
export interface ApiInput<O extends Operation = Operation> {
  readonly params: Read<O["params"]>;
  readonly query: Read<O["query"]>;
  readonly body: Read<O["body"]>;
  readonly caller: CallerOf<O>;
  /** Header `If-Match`; null = there is none. */
  readonly ifMatch: string | null;
  /** IP address of the caller. */
  readonly address: string;
  /** Base URL of this service as the caller knows it, without a slash at the end. */
  readonly baseUrl: string;
  /** Sent from this machine, and not for a page of another site. */
  readonly isLocal: boolean;
}

type AnswerBody<A> = A extends { readonly schema: infer S }
  ? S extends z.ZodType
    ? z.output<S>
    : null
  : never;

/** A declared answer with its body. */
export type ApiAnswer<O extends Operation> = {
  readonly [S in keyof O["answers"]]: {
    readonly kind: "answer";
    readonly status: S;
    readonly body: AnswerBody<O["answers"][S]>;
  };
}[keyof O["answers"]];

/** What a handler may return. */
export type ApiResult<O extends Operation> = ApiAnswer<O> | ApiFault<O["faults"][number]>;

/** Serves one operation. */
export type ApiHandler<O extends Operation> = (
  input: ApiInput<O>,
) => ApiResult<O> | Promise<ApiResult<O>>;

/** What is to be paid for, but for the request that says so. */
export type Terms = Pick<Order, "purpose" | "amountN" | "description">;

/** Serves one operation that is paid for. */
export interface PaidHandler<O extends Operation> {
  /** What to do where payments are not taken. */
  readonly instead: string;
  /** Requests that need no payment; null = each of them does. */
  readonly free: {
    includes(body: ApiInput<O>["body"]): boolean;
    readonly serve: ApiHandler<O>;
  } | null;
  /** What is to be paid for, or why that is not sold. Gives nothing away. */
  order(
    input: ApiInput<O>,
  ): Promise<Terms | ApiFault<O["faults"][number]>> | Terms | ApiFault<O["faults"][number]>;
  /**
   * What a payment that has settled is answered, the first time and again. Whose request it was is
   * not asked any more.
   */
  answer(
    paid: PaidPurchase,
    input: Omit<ApiInput<O>, "caller">,
  ): ApiResult<O> | Promise<ApiResult<O>>;
}

/** Serves an operation in the way that its row asks for. */
export type HandlerOf<O extends Operation> = O extends { readonly pays: PurposeKind }
  ? PaidHandler<O>
  : ApiHandler<O>;

/** Handlers of every operation of a contract that the API serves itself. */
export type ApiHandlers<Contract extends Readonly<Record<string, Operation>>> = {
  readonly [Id in keyof Contract as Contract[Id]["servedBy"] extends "api" ? Id : never]: HandlerOf<
    Contract[Id]
  >;
};
