// The types of requests and answers of the HTTP API, derived from the contract. Types only: nothing
// of the service gets into the console.
import type { z } from "zod";
import type { CONTRACT, OperationId } from "../../src/web/contract/contract.ts";

type Contract = typeof CONTRACT;

/** Method and path of an operation, as `GET /api/chains`. */
export type Endpoint = Contract[OperationId]["endpoint"];

/** The row of the contract at an endpoint. */
type RowAt<E extends Endpoint> = {
  readonly [Id in OperationId]: E extends Contract[Id]["endpoint"] ? Contract[Id] : never;
}[OperationId];

/** The schema of a part of the request; null = the operation has no such part. */
type SchemaOf<Row, Name extends string> = [Row] extends [{ readonly [N in Name]: infer S }]
  ? S
  : null;

type Given<Name extends string, S> = S extends z.ZodType
  ? { readonly [N in Name]: z.input<S> }
  : { readonly [N in Name]?: undefined };

/** What a request to an endpoint holds: parameters of the path, query, body, where it has them. */
export type RequestOf<E extends Endpoint> = Given<"params", SchemaOf<RowAt<E>, "params">> &
  Partial<Given<"query", SchemaOf<RowAt<E>, "query">>> &
  Given<"body", SchemaOf<RowAt<E>, "body">>;

type BodyOf<Answer> = Answer extends { readonly schema: infer S }
  ? S extends z.ZodType
    ? z.output<S>
    : null
  : never;

type AnswersOf<E extends Endpoint> = RowAt<E>["answers"];

/** The body of an answer that tells of success. */
export type AnswerOf<E extends Endpoint> = BodyOf<
  AnswersOf<E>[Extract<keyof AnswersOf<E>, 200 | 201 | 202 | 204>]
>;
