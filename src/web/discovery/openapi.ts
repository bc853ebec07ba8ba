// `/openapi.json`: the API of an instance as OpenAPI 3.1. A pure function of its facts and base
// URL.

import { SUBSCRIPTION_KINDS } from "../../core/stream/subscription.ts";
import { type ErrorEntry, errorEntries, errorUrl } from "./errors.ts";
import type { DocumentFacts } from "./facts.ts";
import { Schemas } from "./json-schema.ts";
import { apiPaths } from "./openapi-api.ts";
import { headerComponents, type Json, SharedAnswers, securitySchemes } from "./openapi-parts.ts";
import { rpcPaths } from "./openapi-rpc.ts";
import { DOCUMENT_PATHS, rpcForms, servedOperations } from "./operations.ts";
import type { Site } from "./site.ts";

/** Version of the API. */
export const INTERFACE_VERSION = "1.0.0";

/** The document. */
export function openApiDocument(facts: DocumentFacts, { baseUrl, socketUrl }: Site): Json {
  const schemas = new Schemas();
  const answers = new SharedAnswers();
  const components = { schemas, answers };
  const operations = servedOperations(facts);
  const paths = {
    ...apiPaths(operations, components, { baseUrl, payments: facts.hosted?.payments ?? null }),
    ...rpcPaths(facts, components),
  };
  const tags = new Set(["rpc", ...operations.map((operation) => operation.tag)]);
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
    tags: [...tags].map((name) => ({ name, description: TAGS[name] })),
    paths,
    components: {
      schemas: schemas.components,
      responses: answers.components,
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

const TAGS: Readonly<Record<string, string>> = {
  rpc: "JSON-RPC over HTTP.",
  instance: "The instance itself. No credential.",
  agent: "Anonymous keys, chains and prices. No account.",
  keys: "Keys of an account.",
  accounts: "The account and its agents.",
  profiles: "Custom profiles: your own providers behind this service.",
  operator: "For the operator of the instance.",
  console: "Signing in to the console.",
};
