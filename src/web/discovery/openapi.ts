// `/openapi.json`: the API of an instance as OpenAPI 3.1. A pure function of its facts and base
// URL.

import { SUBSCRIPTION_KINDS } from "../../core/stream/subscription.ts";
import type { NamedOperation } from "../contract/contract.ts";
import { errorEnvelope } from "../contract/instance.ts";
import { isIdempotent, TAGS } from "../contract/operation.ts";
import { type ErrorEntry, errorEntries, errorUrl, managementError } from "./errors.ts";
import { type DocumentFacts, rpcForms, type Site, servedOperations } from "./facts.ts";
import {
  Components,
  headerComponents,
  headersOf,
  type Refusals,
  refusalResponses,
  securityOf,
  securitySchemes,
} from "./openapi-parts.ts";
import { rpcPaths } from "./openapi-rpc.ts";
import { DOCUMENT_PATHS } from "./paths.ts";
import { paymentInfo } from "./pay.ts";
import { fieldsOf, type Schemas } from "./schema-text.ts";
import type { Json } from "./sections.ts";

/** Version of the API. */
export const INTERFACE_VERSION = "1.0.0";

/** The document. */
export function openApiDocument(facts: DocumentFacts, { baseUrl, socketUrl }: Site): Json {
  const components = new Components();
  const operations = servedOperations(facts);
  const paths = { ...apiPaths(facts, baseUrl, components), ...rpcPaths(facts, components) };
  const tags = new Set(["rpc" as const, ...operations.map((operation) => operation.tag)]);
  return {
    openapi: "3.1.0",
    info: {
      title: "svc",
      version: INTERFACE_VERSION,
      summary: "JSON-RPC for EVM chains, routed over several providers.",
      description: DESCRIPTION,
    },
    servers: [{ url: baseUrl }],
    externalDocs: { description: "A guide for agents", url: baseUrl + DOCUMENT_PATHS.skill },
    tags: [...tags].map((name) => ({ name, description: ALL_TAGS[name] })),
    paths,
    components: {
      schemas: components.schemas.components,
      responses: components.responses,
      headers: headerComponents(facts.hosted !== null),
      securitySchemes: securitySchemes(facts),
    },
    "x-websocket": {
      forms: rpcForms(facts).map((form) => `${socketUrl}/ws${form}`),
      subscriptions: SUBSCRIPTION_KINDS,
    },
    "x-error-catalog": errorCatalog(facts, baseUrl),
  };
}

/** Every error code with its remedy, as JSON. */
function errorCatalog({ hosted }: DocumentFacts, baseUrl: string): readonly Json[] {
  return errorEntries(hosted !== null).map((entry: ErrorEntry) => ({
    code: entry.code,
    surface: entry.surface,
    http_status: entry.status,
    json_rpc_code: entry.rpcCode,
    retryable: entry.retryable,
    meaning: entry.meaning,
    next_action: entry.nextAction,
    docs_url: errorUrl(baseUrl, entry.code),
  }));
}

const DESCRIPTION =
  "Every operation has a stable `operationId`. Errors of the service carry a code and " +
  "`next_action`, those of calls also whether to retry; `x-error-catalog` lists them all. " +
  "Unknown query parameters are ignored. Fields may be added to answers.";

const ALL_TAGS = { rpc: "JSON-RPC over HTTP.", ...TAGS } as const;

/** The path items of operations. */
function apiPaths(facts: DocumentFacts, baseUrl: string, components: Components): Json {
  const refusals: Refusals = {
    prefix: "Api",
    envelope: "Error",
    codeAt: ["error", "code"],
    example: ({ code, meaning, nextAction }) => ({
      error: { code, message: meaning, next_action: nextAction, docs_url: errorUrl(baseUrl, code) },
    }),
    headers: [],
  };
  const operations = servedOperations(facts);
  if (operations.some(({ faults }) => faults.length > 0)) components.schemas.of(errorEnvelope);
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    const { path, method, pays } = operation;
    const info = pays === undefined ? null : paymentInfo(facts.hosted?.payments ?? null, pays);
    const item = operationOf(operation, components, refusals);
    paths[path] = {
      ...paths[path],
      [method.toLowerCase()]: info === null ? item : { ...item, "x-payment-info": info },
    };
  }
  return paths;
}

function operationOf(operation: NamedOperation, components: Components, refusals: Refusals): Json {
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

function parametersOf({ params, query, faults }: NamedOperation, schemas: Schemas): Json {
  const places = [
    ["path", params],
    ["query", query],
  ] as const;
  const parameters = places.flatMap(([place, shape]) =>
    (shape === undefined ? [] : fieldsOf(schemas.of(shape))).map(
      ({ name, schema: { description, ...schema }, required }) => ({
        name,
        in: place,
        required: place === "path" || required,
        ...(description === undefined ? {} : { description }),
        schema,
      }),
    ),
  );
  const all = faults.includes("revision_conflict") ? [...parameters, IF_MATCH] : parameters;
  return all.length === 0 ? {} : { parameters: all };
}

function bodyOf(schemas: Schemas, shape: NonNullable<NamedOperation["body"]>): Json {
  const required = Object.values(shape.shape).some((field) => !field.safeParse(undefined).success);
  return { required, content: { "application/json": { schema: schemas.of(shape) } } };
}

function responsesOf(
  { answers, faults, pays }: NamedOperation,
  components: Components,
  refusals: Refusals,
): Json {
  const good = Object.entries(answers).map(([status, { description, schema }]) => {
    const headers = headersOf([
      "RequestId",
      ...(status === "503" ? (["RetryAfter"] as const) : []),
      ...(pays === undefined ? [] : (["Receipt", "PaymentResponse"] as const)),
    ]);
    if (schema === null) return [status, { description, headers }];
    const content = { "application/json": { schema: components.schemas.of(schema) } };
    return [status, { description, headers, content }];
  });
  return {
    ...Object.fromEntries(good),
    ...refusalResponses([...new Set(faults)].map(managementError), refusals, components),
  };
}
