// Keys of an account. Each schema with an id is a component of the OpenAPI document.

import { accountId, instant, keyId, keyInput, shownFields } from "../../hosted/keys/key-fields.ts";
import { answer, type OperationRows, operations } from "./operation.ts";
import { is, list, next, paged, pattern, record, request, whole } from "./shapes.ts";

export const usd = pattern(/^-?\d+(\.\d{1,9})?$/).meta({
  id: "Usd",
  description: "An amount in US dollars: a plain decimal without trailing zeros.",
  examples: ["0.025"],
});

export const cu = is.int.meta({
  id: "ComputeUnits",
  description: "An amount of compute units (CU).",
});

/** The path parameter of a key by its id. */
const keyIdParams = record({ id: keyId.describe("Id of a key, as the API returned it.") });

/** The path parameter of a key by its secret. */
export const secretParams = record({ key: is.text.describe("The full key, `svc_ak_…`.") });

/** Body of `createKey`. */
const keyRequest = keyInput.meta({ id: "KeyRequest", description: "A key to create." });

/** Body of `updateKey`. */
const keyPatch = keyInput.meta({
  id: "KeyPatch",
  description: "What to change about a key. Fields that are left out stay.",
});

/** Body of `rotateKey`. */
const rotateRequest = request({
  grace_seconds: whole(0, 86_400, 3_600).describe(
    "For how long the present secret stays valid beside the new one.",
  ),
}).meta({ id: "RotateRequest", description: "How to replace a key's secret." });

export const estimatedRequests = record({
  cheap_reads: is.count.describe("Calls of 1 CU."),
  standard_reads: is.count.describe("Calls of 3 CU."),
  heavy_reads: is.count.describe("Calls of 15 CU."),
}).meta({
  id: "EstimatedRequests",
  description: "How many calls a balance pays for, at load-balanced.",
});

/** A key without its secret. */
export const key = record({
  ...shownFields.shape,
  total_funded_cu: cu.describe("All that was ever credited to the account, grants included."),
  balance_cu: cu.describe("What the account has left."),
  balance_usd: usd.describe("What the account has left."),
  estimated_requests: estimatedRequests,
}).meta({
  id: "Key",
  description:
    "A key for RPC calls, without its secret. All keys of an account draw on its one balance.",
});

/** Answer of `listKeys`. */
const keyList = record({
  keys: list(key),
  next: next(keyId),
}).meta({ id: "KeyList", description: "The keys of an account that work, oldest first." });

export const secret = is.text.describe("The full key, `svc_ak_…`. Shown only here.");

export const rpcUrl = is.text.describe("Ready to use: POST JSON-RPC here. Holds the key.");

const wsUrl = is.text.describe("The same for WebSockets. Holds the key.");

/** Answer of `createKey`. */
const createdKey = record({
  id: keyId,
  key: secret,
  key_prefix: is.text,
  rpc_url: rpcUrl,
  ws_url: wsUrl,
  management_token: is.text
    .optional()
    .describe(
      "Manages the account, `svc_mt_…`. Only when an account was created; shown only here.",
    ),
  account_id: accountId,
  balance_usd: usd,
}).meta({ id: "CreatedKey", description: "A new key of an account." });

/** Answer of `rotateKey`. */
const rotatedKey = record({
  key: secret,
  key_prefix: is.text,
  rpc_url: rpcUrl,
  ws_url: wsUrl,
  previous_valid_until: instant.describe("Until when the secret before this one works."),
}).meta({ id: "RotatedKey", description: "A key's new secret." });

/** Operations of keys. */
export const KEY_OPERATIONS = operations({ tag: "keys", auth: ["management_token"] }, {
  createKey: {
    endpoint: "POST /api/v1/keys",
    summary: "Create a key, and without a token an account for it",
    description: "Secrets are shown once. Repeating it creates another key.",
    auth: ["none", "management_token"],
    body: keyRequest,
    answers: { 201: answer("The key; with a new account its management token too.", createdKey) },
    faults: ["key_limit", "already_claimed"],
  },
  listKeys: {
    endpoint: "GET /api/v1/keys",
    summary: "List the keys of the account",
    description: "Keys that work, oldest first, by pages.",
    query: record(paged(keyId, 1_000, 1_000, "keys")),
    answers: { 200: answer("The keys.", keyList) },
  },
  getCurrentKey: {
    endpoint: "GET /api/v1/keys/current",
    summary: "Read the key that the request carries",
    description: "With the RPC key itself as credential.",
    auth: ["rpc_key"],
    answers: { 200: answer("The key.", key) },
  },
  getKey: {
    endpoint: "GET /api/v1/keys/{id}",
    summary: "Read a key",
    description: "Deleted keys too, with `revoked_at`.",
    params: keyIdParams,
    answers: { 200: answer("The key.", key) },
  },
  updateKey: {
    endpoint: "PATCH /api/v1/keys/{id}",
    summary: "Change the name or profiles of a key",
    description: "Fields that are left out stay.",
    params: keyIdParams,
    body: keyPatch,
    answers: { 200: answer("The key as it is now.", key) },
    faults: ["key_revoked"],
    idempotent: true,
  },
  deleteKey: {
    endpoint: "DELETE /api/v1/keys/{id}",
    summary: "Delete a key",
    description: "Its secrets stop working at once and its sockets are closed. Cannot be undone.",
    params: keyIdParams,
    answers: { 204: answer("It does not work any more.", null) },
  },
  rotateKey: {
    endpoint: "POST /api/v1/keys/{id}/rotate",
    summary: "Replace the secret of a key",
    description:
      "The present secret stays valid for `grace_seconds`. One that is still valid from the " +
      "rotation before ends at once.",
    params: keyIdParams,
    body: rotateRequest,
    answers: { 200: answer("The new secret.", rotatedKey) },
    faults: ["key_revoked"],
  },
} as const satisfies OperationRows);
