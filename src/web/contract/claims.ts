// Rows of the contract: claims, claim links and connections.
import type { Operation } from "./operation.ts";
import * as shape from "./schemas/claims.ts";
import { secretParams } from "./schemas/keys.ts";

const NOTHING = { params: null, query: null, body: null } as const;
const ANY = ["internal", "unavailable"] as const;
const BODY = [
  "invalid_request",
  "body_too_large",
  "unsupported_media_type",
  "invalid_field",
  "unknown_field",
] as const;
const KNOWN = ["unauthorized", "rate_limited"] as const;
const POST = { ...NOTHING, method: "POST", servedBy: "api", idempotent: false } as const;
const CONNECTIONS = {
  ...NOTHING,
  tag: "accounts",
  servedBy: "api",
  auth: ["management_token"],
} as const;

const LINK = {
  200: { description: "The link. The one before has ended.", schema: shape.claimLink },
} as const;

/** Operations of claims and connections. */
export const CLAIM_OPERATIONS = {
  claimAgentKey: {
    ...POST,
    tag: "agent",
    path: "/api/v1/agent/keys/{key}/claim",
    summary: "Make an anonymous key part of an account",
    description:
      "The key in the path goes on working; its balance moves to the account, once. Send a key " +
      "of the account as `X-Svc-Api-Key`; the claimed key reaches no further than that one.",
    auth: ["rpc_key"],
    params: secretParams,
    answers: { 200: { description: "It belongs to the account now.", schema: shape.claimResult } },
    faults: [...KNOWN, "not_found", "key_limit", ...ANY],
  },
  createAgentClaimLink: {
    ...POST,
    tag: "agent",
    path: "/api/v1/agent/keys/{key}/claim-link",
    summary: "Make a claim link for an anonymous key",
    description:
      "For a person to open. Only for keys that nobody has claimed: links of other accounts " +
      "are made with their management token.",
    auth: ["key_in_path"],
    params: secretParams,
    answers: LINK,
    faults: ["not_found", "rate_limited", "already_claimed", ...ANY],
  },
  createAccountClaimLink: {
    ...POST,
    tag: "accounts",
    path: "/api/v1/accounts/current/claim-link",
    summary: "Make a claim link for the account",
    description:
      "For a person to open, who makes the keys and the balance part of an account of their " +
      "own. Needs a management token without restrictions; the RPC key is enough where it is " +
      "anonymous.",
    auth: ["management_token", "rpc_key"],
    answers: LINK,
    faults: [...KNOWN, "forbidden", "already_claimed", "key_revoked", ...ANY],
  },
  createConnection: {
    ...POST,
    ...{ tag: "accounts", auth: ["none"] },
    path: "/api/v1/connections",
    summary: "Ask the owner of an account for a management token",
    description: "Show the owner `approval_url`, then poll. Needs no credential.",
    body: shape.connectionRequest,
    answers: { 201: { description: "It waits to be approved.", schema: shape.createdConnection } },
    faults: [...BODY, "rate_limited", ...ANY],
  },
  listConnections: {
    ...CONNECTIONS,
    method: "GET",
    path: "/api/v1/connections",
    summary: "List the approved connections of the account",
    description: "Without their tokens.",
    answers: { 200: { description: "The connections.", schema: shape.connectionList } },
    faults: [...KNOWN, ...ANY],
    idempotent: true,
  },
  getConnection: {
    ...CONNECTIONS,
    method: "GET",
    path: "/api/v1/connections/{id}",
    summary: "Poll a connection",
    description:
      "With the connection's own token, every 5 seconds at most. The first answer that says " +
      "`approved` holds the management token.",
    auth: ["connection_token"],
    params: shape.connectionParams,
    answers: { 200: { description: "How it stands.", schema: shape.polledConnection } },
    faults: [...KNOWN, "not_found", "invalid_field", ...ANY],
    idempotent: true,
  },
  deleteConnection: {
    ...CONNECTIONS,
    method: "DELETE",
    path: "/api/v1/connections/{id}",
    summary: "Revoke a connection",
    description: "Its management token stops working at once.",
    params: shape.connectionParams,
    answers: { 204: { description: "It does not work any more.", schema: null } },
    faults: [...KNOWN, "forbidden", "not_found", "invalid_field", ...ANY],
    idempotent: true,
  },
} as const satisfies Readonly<Record<string, Operation>>;
