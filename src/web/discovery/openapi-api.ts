// The operations of the contract as OpenAPI: parameters, bodies, answers and refusals. Adds no
// facts of its own.

import { errorEnvelope } from "../contract/instance.ts";
import { isIdempotent } from "../contract/operation.ts";
import { errorUrl, managementError } from "./errors.ts";
import { fieldsOf, type Schemas } from "./json-schema.ts";
import {
  headersOf,
  type Json,
  type Refusals,
  refusalResponses,
  type SharedAnswers,
  securityOf,
} from "./openapi-parts.ts";
import type { ServedOperation } from "./operations.ts";
import { type PaymentTerms, paymentInfo } from "./payment-terms.ts";

/** Collects the components of a document. */
export interface Components {
  readonly schemas: Schemas;
  readonly answers: SharedAnswers;
}

/** The parts of an instance on which its operations depend. */
export interface Instance {
  readonly baseUrl: string;
  readonly payments: PaymentTerms | null;
}

/** The path items of operations. */
export function apiPaths(
  operations: readonly ServedOperation[],
  components: Components,
  { baseUrl, payments }: Instance,
): Readonly<Record<string, Json>> {
  const refusals = managementRefusals(baseUrl);
  const paths: Record<string, Json> = {};
  if (operations.some((operation) => operation.faults.length > 0))
    components.schemas.of(errorEnvelope);
  for (const operation of operations)
    paths[operation.path] = {
      ...paths[operation.path],
      [operation.method.toLowerCase()]: {
        ...operationOf(operation, components, refusals),
        ...infoOf(operation, payments),
      },
    };
  return paths;
}

function infoOf({ pays }: ServedOperation, payments: PaymentTerms | null): Json {
  const info = pays === undefined ? null : paymentInfo(payments, pays);
  return info === null ? {} : { "x-payment-info": info };
}

function managementRefusals(baseUrl: string): Refusals {
  return {
    prefix: "Api",
    envelope: "Error",
    narrow: (codes) => ({
      type: "object",
      properties: { error: { type: "object", properties: { code: codes } } },
    }),
    example: ({ code, meaning, nextAction }) => ({
      error: { code, message: meaning, next_action: nextAction, docs_url: errorUrl(baseUrl, code) },
    }),
    headers: [],
  };
}

function operationOf(operation: ServedOperation, components: Components, refusals: Refusals): Json {
  const { schemas } = components;
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    description: operation.description,
    security: securityOf(operation.auth, operation.pays),
    "x-idempotent": isIdempotent(operation),
    ...parametersOf(operation, schemas),
    ...(operation.body === undefined ? {} : { requestBody: bodyOf(schemas, operation.body) }),
    responses: responsesOf(operation, components, refusals),
  };
}

const IF_MATCH: Json = {
  name: "If-Match",
  in: "header",
  required: false,
  description:
    "The revision that is to be changed, or `*` for any that exists; another one is refused " +
    "with `revision_conflict`.",
  schema: { type: "string", examples: ['"3"'] },
};

function parametersOf({ params, query, faults }: ServedOperation, schemas: Schemas): Json {
  const places = [
    ["path", params],
    ["query", query],
  ] as const;
  const parameters = places.flatMap(([place, shape]) => {
    if (shape === undefined) return [];
    return fieldsOf(schemas.of(shape)).map(
      ({ name, schema: { description, ...schema }, required }) => {
        return {
          name,
          in: place,
          required: place === "path" || required,
          ...(description === undefined ? {} : { description }),
          schema,
        };
      },
    );
  });
  const all = faults.includes("revision_conflict") ? [...parameters, IF_MATCH] : parameters;
  return all.length === 0 ? {} : { parameters: all };
}

function bodyOf(schemas: Schemas, shape: NonNullable<ServedOperation["body"]>): Json {
  const required = Object.values(shape.shape).some((field) => !field.safeParse(undefined).success);
  return { required, content: { "application/json": { schema: schemas.of(shape) } } };
}

function responsesOf(
  { answers, faults, pays }: ServedOperation,
  { schemas, answers: shared }: Components,
  refusals: Refusals,
): Json {
  const good = Object.entries(answers).map(
    ([status, { description, schema }]): readonly [string, Json] => {
      const receipts = pays === undefined ? [] : (["Receipt", "PaymentResponse"] as const);
      const headers = headersOf([
        "RequestId",
        ...(status === "503" ? (["RetryAfter"] as const) : []),
        ...receipts,
      ]);
      return [
        status,
        {
          description,
          headers,
          ...(schema === null
            ? {}
            : { content: { "application/json": { schema: schemas.of(schema) } } }),
        },
      ];
    },
  );
  return {
    ...Object.fromEntries(good),
    ...refusalResponses([...new Set(faults)].map(managementError), refusals, shared),
  };
}
