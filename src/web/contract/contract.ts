// The contract of the HTTP API beside JSON-RPC, one row per operation. Validation, handler types,
// OpenAPI and documents derive from it. The key of a row is the operation's id, and it never
// changes.
import { CLAIM_OPERATIONS } from "./claims.ts";
import { CONSOLE_OPERATIONS } from "./console.ts";
import { FEEDBACK_OPERATIONS } from "./feedback.ts";
import { LIVE_OPERATIONS } from "./live.ts";
import type { Operation } from "./operation.ts";
import { OPERATOR_MONEY_OPERATIONS } from "./operator-money.ts";
import { PAYING, PAYMENT_OPERATIONS } from "./payments.ts";
import { PROFILE_OPERATIONS } from "./profiles.ts";
import { chainMetrics } from "./schemas/chain-metrics.ts";
import * as open from "./schemas/instance.ts";
import * as shape from "./schemas/keys.ts";

const NOTHING = { params: null, query: null, body: null } as const;
/** Faults of every operation that reads the store. */
const ANY = ["internal", "unavailable"] as const;
const BODY = [
  "invalid_request",
  "body_too_large",
  "unsupported_media_type",
  "invalid_field",
  "unknown_field",
] as const;
/** Faults of operations that look a credential up. */
const KNOWN = ["unauthorized", "rate_limited"] as const;

const INSTANCE = {
  ...NOTHING,
  method: "GET",
  tag: "instance",
  auth: ["none"],
  servedBy: "pages",
  faults: [],
  idempotent: true,
} as const;
const AGENT = { ...NOTHING, tag: "agent", auth: ["none"], servedBy: "api" } as const;
const KEYS = { ...NOTHING, tag: "keys", auth: ["management_token"], servedBy: "api" } as const;
const ACCOUNTS = {
  ...NOTHING,
  method: "GET",
  tag: "accounts",
  auth: ["management_token"],
  servedBy: "api",
  idempotent: true,
} as const;
const OPERATOR = {
  ...NOTHING,
  method: "GET",
  tag: "operator",
  auth: ["operator"],
  servedBy: "api",
  idempotent: true,
} as const;

/** All operations. */
export const CONTRACT = {
  listChains: {
    ...INSTANCE,
    path: "/api/chains",
    summary: "List the configured chains",
    description: "The list comes from the configuration and does not change until restart.",
    answers: { 200: { description: "The chains.", schema: open.instanceChains } },
  },
  getHealth: {
    ...INSTANCE,
    path: "/api/health",
    summary: "Ask whether the instance is alive",
    description: "Reads memory only and answers at once.",
    answers: { 200: { description: "It is.", schema: open.health } },
  },
  getReadiness: {
    ...INSTANCE,
    path: "/api/ready",
    query: open.readinessQuery,
    summary: "Ask whether the instance can serve calls",
    description:
      "Ready once a provider of some chain has answered, while nothing is being drained and, with " +
      "keys, the database answers. With `?for=traffic`: as long as any call can be served.",
    answers: {
      200: { description: "It can.", schema: open.readiness },
      503: { description: "It cannot; `reasons` says why.", schema: open.readiness },
    },
  },
  getChainMetrics: {
    ...INSTANCE,
    path: "/api/metrics/{chain}",
    summary: "Read how the providers of a chain do",
    description:
      "Every profile that serves the chain. Managed providers are shown by alias. With the " +
      "operator token also samples of provider errors that no rule knows.",
    params: shape.chainParams,
    answers: {
      200: { description: "The figures.", schema: chainMetrics },
      401: {
        description: "With `console.public: false`: the caller has not signed in.",
        schema: open.rpcError,
      },
      404: { description: "No such chain.", schema: open.rpcError },
    },
  },
  listAgentChains: {
    ...AGENT,
    method: "GET",
    path: "/api/v1/agent/chains",
    summary: "List chains and strategies",
    description: "What can be put into `/rpc/k/{key}/{strategy}/{chain}`.",
    answers: { 200: { description: "The chains.", schema: open.agentChains } },
    faults: ANY,
    idempotent: true,
  },
  createAgentKey: {
    ...AGENT,
    method: "POST",
    path: "/api/v1/agent/keys",
    summary: "Create an anonymous key with a free grant, or one that is paid for",
    description:
      "Needs no credential. The key is shown once. Repeating it creates another key; with " +
      "`initial_fund_usd` and the same payment, the same key is shown again for 7 days.",
    body: shape.agentKeyRequest,
    answers: {
      201: {
        description: "The key and a URL that is ready to use.",
        schema: shape.createdAgentKey,
      },
    },
    faults: [...BODY, "rate_limited", ...PAYING, ...ANY],
    idempotent: false,
    pays: "create_key",
  },
  getAgentKey: {
    ...AGENT,
    method: "GET",
    path: "/api/v1/agent/keys/{key}",
    summary: "Read a key by its secret",
    description: "Balance and profile of the key in the path.",
    auth: ["key_in_path"],
    params: shape.secretParams,
    answers: { 200: { description: "The key.", schema: shape.key } },
    faults: ["not_found", "rate_limited", ...ANY],
    idempotent: true,
  },
  getPricing: {
    ...AGENT,
    method: "GET",
    path: "/api/v1/agent/pricing",
    summary: "Read the pricing catalogue",
    description: "Compute units and price of every method by strategy.",
    answers: { 200: { description: "The catalogue.", schema: open.pricing } },
    faults: ANY,
    idempotent: true,
  },
  createKey: {
    ...KEYS,
    method: "POST",
    path: "/api/v1/keys",
    summary: "Create a key, and without a token an account for it",
    description: "Secrets are shown once. Repeating it creates another key.",
    auth: ["none", "management_token"],
    body: shape.keyRequest,
    answers: {
      201: {
        description: "The key; with a new account its management token too.",
        schema: shape.createdKey,
      },
    },
    faults: [...BODY, ...KNOWN, "forbidden", "key_limit", "already_claimed", ...ANY],
    idempotent: false,
  },
  listKeys: {
    ...KEYS,
    method: "GET",
    path: "/api/v1/keys",
    summary: "List the keys of the account",
    description: "Keys that work, oldest first, by pages.",
    query: shape.keyListQuery,
    answers: { 200: { description: "The keys.", schema: shape.keyList } },
    faults: [...KNOWN, "invalid_field", ...ANY],
    idempotent: true,
  },
  getCurrentKey: {
    ...KEYS,
    method: "GET",
    path: "/api/v1/keys/current",
    summary: "Read the key that the request carries",
    description: "With the RPC key itself as credential.",
    auth: ["rpc_key"],
    answers: { 200: { description: "The key.", schema: shape.key } },
    faults: [...KNOWN, ...ANY],
    idempotent: true,
  },
  getKey: {
    ...KEYS,
    method: "GET",
    path: "/api/v1/keys/{id}",
    summary: "Read a key",
    description: "Deleted keys too, with `revoked_at`.",
    params: shape.keyIdParams,
    answers: { 200: { description: "The key.", schema: shape.key } },
    faults: [...KNOWN, "not_found", "invalid_field", ...ANY],
    idempotent: true,
  },
  updateKey: {
    ...KEYS,
    method: "PATCH",
    path: "/api/v1/keys/{id}",
    summary: "Change the name or profiles of a key",
    description: "Fields that are left out stay.",
    params: shape.keyIdParams,
    body: shape.keyPatch,
    answers: { 200: { description: "The key as it is now.", schema: shape.key } },
    faults: [...BODY, ...KNOWN, "forbidden", "not_found", "key_revoked", ...ANY],
    idempotent: true,
  },
  deleteKey: {
    ...KEYS,
    method: "DELETE",
    path: "/api/v1/keys/{id}",
    summary: "Delete a key",
    description: "Its secrets stop working at once and its sockets are closed. Cannot be undone.",
    params: shape.keyIdParams,
    answers: { 204: { description: "It does not work any more.", schema: null } },
    faults: [...KNOWN, "forbidden", "not_found", "invalid_field", ...ANY],
    idempotent: true,
  },
  rotateKey: {
    ...KEYS,
    method: "POST",
    path: "/api/v1/keys/{id}/rotate",
    summary: "Replace the secret of a key",
    description:
      "The present secret stays valid for `grace_seconds`. One that is still valid from the " +
      "rotation before ends at once.",
    params: shape.keyIdParams,
    body: shape.rotateRequest,
    answers: { 200: { description: "The new secret.", schema: shape.rotatedKey } },
    faults: [...BODY, ...KNOWN, "forbidden", "not_found", "key_revoked", ...ANY],
    idempotent: false,
  },
  getCurrentAccount: {
    ...ACCOUNTS,
    path: "/api/v1/accounts/current",
    summary: "Read the account of the credential",
    description:
      "The authoritative balance, how calls are served now, and until when they are for having " +
      "paid before. An RPC key does not open it: GET /api/v1/keys/current tells what the key " +
      "has.",
    auth: ["management_token"],
    answers: { 200: { description: "The account.", schema: shape.account } },
    faults: [...KNOWN, ...ANY],
  },
  getUsage: {
    ...ACCOUNTS,
    path: "/api/v1/usage",
    summary: "Read what the account or the key has used",
    description:
      "By day, method and key. With a management token the keys that it may see; with an RPC key " +
      "that key alone.",
    auth: ["management_token", "rpc_key"],
    query: shape.ownUsageQuery,
    answers: { 200: { description: "The usage.", schema: shape.ownUsage } },
    faults: [...KNOWN, "invalid_field", ...ANY],
  },
  getAccount: {
    ...ACCOUNTS,
    path: "/api/v1/accounts/{id}",
    summary: "Read an account by its id",
    description: "Only the account of the token.",
    params: shape.accountIdParams,
    answers: { 200: { description: "The account.", schema: shape.account } },
    faults: [...KNOWN, "not_found", "invalid_field", ...ANY],
  },
  getCurrentAgent: {
    ...ACCOUNTS,
    path: "/api/v1/agents/current",
    summary: "Read what the management token may do",
    description: "Whom it stands for, and its restrictions.",
    answers: { 200: { description: "The agent.", schema: shape.agent } },
    faults: [...KNOWN, ...ANY],
  },
  ...PAYMENT_OPERATIONS,
  ...CLAIM_OPERATIONS,
  ...PROFILE_OPERATIONS,
  getOperatorUsage: {
    ...OPERATOR,
    path: "/api/v1/operator/usage",
    summary: "Read what was used, by method, key and hour",
    description: "For the operator of the instance: needs the configured operator token.",
    query: shape.usageQuery,
    answers: { 200: { description: "The usage.", schema: open.operatorUsage } },
    faults: ["unauthorized", "invalid_field", ...ANY],
  },
  ...FEEDBACK_OPERATIONS,
  ...CONSOLE_OPERATIONS,
  ...OPERATOR_MONEY_OPERATIONS,
  purgeCache: {
    ...OPERATOR,
    method: "DELETE",
    servedBy: "instance",
    path: "/api/v1/operator/cache",
    summary: "Remove kept answers",
    description:
      "Of a profile, a chain, a provider or a method, or of all of them together; without any, " +
      "everything. Holds for all workers and, in a cluster of hosted nodes, for all nodes, there " +
      "within seconds; other nodes are asked one by one. The second tier (`cache.redis_url`) " +
      "knows profiles and chains only and loses all that it has of them.",
    query: open.purgeQuery,
    answers: { 200: { description: "What was removed.", schema: open.purgedCache } },
    faults: ["unauthorized", "forbidden", "not_found", "unknown_field", "invalid_field", ...ANY],
  },
  ...LIVE_OPERATIONS,
  getOperatorAudit: {
    ...OPERATOR,
    path: "/api/v1/operator/audit",
    summary: "Check the books",
    description:
      "Compares ledger, balances, leased credit and usage with each other, and what was " +
      "recorded with what the payment chains say: what `svc audit` does. Where reading the " +
      "chains takes longer than a request may it goes on, and the answer is 503 `unavailable` " +
      "until it is done. Needs the configured operator token.",
    answers: { 200: { description: "What was found.", schema: open.operatorAudit } },
    faults: ["unauthorized", ...ANY],
  },
} as const satisfies Readonly<Record<string, Operation>>;

/** The ids of all operations. */
export type OperationId = keyof typeof CONTRACT;

/** All operations with their ids. */
export const OPERATIONS: readonly (Operation & { readonly id: OperationId })[] = Object.entries(
  CONTRACT,
).map(([id, operation]) => ({ ...operation, id: parseId(id) }));

/** `Object.entries` widens keys to strings; this restores the type. */
function parseId(id: string): OperationId {
  return id as OperationId;
}
