// Claims, claim links and connections.

import { z } from "zod";
import { NO_CONTROLS } from "../../core/fields.ts";
import { accountId, instant } from "../../hosted/keys/key-fields.ts";
import { restrictions } from "./accounts.ts";
import { secretParams } from "./keys.ts";
import { answer, type OperationRows, operations } from "./operation.ts";
import { exactly, idOf, is, list, oneOf, record, request, short } from "./shapes.ts";

const connectionId = idOf("con");

const status = oneOf(["pending", "approved", "denied", "expired"]).describe(
  "`approved` = an owner has agreed; `denied` = refused or revoked; `expired` = nobody decided, " +
    "or nobody fetched the token, in time.",
);

/** The path parameter of a connection. */
const connectionParams = record({
  id: connectionId.describe("Id of a connection, as the API returned it."),
});

/** Answer of `claimAgentKey`. */
const claimResult = record({
  account_id: accountId.describe("Who owns the key now."),
  key_prefix: is.text,
  claimed: exactly(true),
}).meta({ id: "ClaimResult", description: "A key that was claimed." });

/** Answer of `createAgentClaimLink` and `createAccountClaimLink`. */
const claimLink = record({
  key_prefix: is.text.describe("How the key begins."),
  balance_cu: is.int.describe("What the link hands over."),
  claim_url: z
    .url()
    .describe(
      "A page for a person: shows what is claimed and asks for their account. Works once. Anyone " +
        "who has the link can claim.",
    ),
  expires_in: is.count.describe("Seconds until the link ends. A later link ends it too."),
}).meta({ id: "ClaimLink", description: "A link with which a person makes an account their own." });

/** Body of `createConnection`. */
const connectionRequest = request({
  name: short(100)
    .regex(NO_CONTROLS)
    .describe("Who asks, as the page shows it: no control characters."),
}).meta({ id: "ConnectionRequest", description: "A wish to manage somebody's account." });

/** Answer of `createConnection`. */
const createdConnection = record({
  id: connectionId,
  token: is.text.describe("Poll with it, as `Authorization: Bearer`. Shown only here."),
  approval_url: z
    .url()
    .describe("A page for the owner of an account, who approves or denies there."),
  expires_in: is.count.describe("Seconds until nobody can approve any more."),
  poll_interval: is.count.describe("Seconds between two polls."),
}).meta({ id: "CreatedConnection", description: "A connection that waits to be approved." });

/** Answer of `getConnection`. */
const polledConnection = record({
  id: connectionId,
  status,
  management_token: is.text
    .optional()
    .describe("`svc_mt_…`. In the first answer that says `approved`, and never again."),
}).meta({ id: "PolledConnection", description: "What became of a connection." });

/** Answer of `listConnections`. */
const connectionList = record({
  connections: list(
    record({
      id: connectionId,
      name: is.text,
      status,
      agent_id: is.textOrNull.describe("Null = its token was not fetched yet."),
      restrictions,
      created_at: instant,
      approved_at: instant.nullable(),
    }).meta({
      id: "Connection",
      description: "Someone who was given a management token of the account.",
    }),
  ),
}).meta({
  id: "ConnectionList",
  description: "The approved connections of an account, oldest first.",
});

const LINK = { 200: answer("The link. The one before has ended.", claimLink) } as const;

/** Operations of claims and connections. */
export const CLAIM_OPERATIONS = operations({ tag: "accounts", auth: ["management_token"] }, {
  claimAgentKey: {
    tag: "agent",
    endpoint: "POST /api/v1/agent/keys/{key}/claim",
    summary: "Make an anonymous key part of an account",
    description:
      "The key in the path goes on working; its balance moves to the account, once. Send a key " +
      "of the account as `X-Svc-Api-Key`; the claimed key reaches no further than that one.",
    auth: ["rpc_key"],
    params: secretParams,
    answers: { 200: answer("It belongs to the account now.", claimResult) },
    faults: ["not_found", "key_limit"],
  },
  createAgentClaimLink: {
    tag: "agent",
    endpoint: "POST /api/v1/agent/keys/{key}/claim-link",
    summary: "Make a claim link for an anonymous key",
    description:
      "For a person to open. Only for keys that nobody has claimed: links of other accounts are " +
      "made with their management token.",
    auth: ["key_in_path"],
    params: secretParams,
    answers: LINK,
    faults: ["already_claimed"],
  },
  createAccountClaimLink: {
    endpoint: "POST /api/v1/accounts/current/claim-link",
    summary: "Make a claim link for the account",
    description:
      "For a person to open, who makes the keys and the balance part of an account of their own. " +
      "Needs a management token without restrictions; the RPC key is enough where it is " +
      "anonymous.",
    auth: ["management_token", "rpc_key"],
    answers: LINK,
    faults: ["already_claimed", "key_revoked"],
  },
  createConnection: {
    auth: ["none"],
    endpoint: "POST /api/v1/connections",
    summary: "Ask the owner of an account for a management token",
    description: "Show the owner `approval_url`, then poll. Needs no credential.",
    body: connectionRequest,
    answers: { 201: answer("It waits to be approved.", createdConnection) },
    faults: ["rate_limited"],
  },
  listConnections: {
    endpoint: "GET /api/v1/connections",
    summary: "List the approved connections of the account",
    description: "Without their tokens.",
    answers: { 200: answer("The connections.", connectionList) },
  },
  getConnection: {
    endpoint: "GET /api/v1/connections/{id}",
    summary: "Poll a connection",
    description:
      "With the connection's own token, every 5 seconds at most. The first answer that says " +
      "`approved` holds the management token.",
    auth: ["connection_token"],
    params: connectionParams,
    answers: { 200: answer("How it stands.", polledConnection) },
  },
  deleteConnection: {
    endpoint: "DELETE /api/v1/connections/{id}",
    summary: "Revoke a connection",
    description: "Its management token stops working at once.",
    params: connectionParams,
    answers: { 204: answer("It does not work any more.", null) },
  },
} as const satisfies OperationRows);
