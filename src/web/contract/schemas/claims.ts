// Schemas of claims and connections: requests and answers. Their operations are rows of
// `claims.ts`.

import { z } from "zod";
import { NO_CONTROLS } from "../../../core/patterns.ts";

const instant = z.iso.datetime();
const accountId = z.string().regex(/^acc_[0-9a-z]{20}$/);
const connectionId = z.string().regex(/^con_[0-9a-z]{20}$/);
const seconds = z.int().min(0);
const status = z
  .enum(["pending", "approved", "denied", "expired"])
  .describe(
    "`approved` = an owner has agreed; `denied` = refused or revoked; `expired` = nobody " +
      "decided, or nobody fetched the token, in time.",
  );
const restrictions = z.object({
  profiles: z.array(z.string()).nullable().describe("Only keys of these profiles; null = all."),
  read_only: z.boolean(),
  expires_at: instant.nullable(),
});

/** The path parameter of a connection. */
export const connectionParams = z.object({
  id: connectionId.describe("Id of a connection, as the API returned it."),
});

/** Answer of `claimAgentKey`. */
export const claimResult = z
  .object({
    account_id: accountId.describe("Who owns the key now."),
    key_prefix: z.string(),
    claimed: z.literal(true),
  })
  .meta({ id: "ClaimResult", description: "A key that was claimed." });

/** Answer of `createAgentClaimLink` and `createAccountClaimLink`. */
export const claimLink = z
  .object({
    key_prefix: z.string().describe("How the key begins."),
    balance_cu: z.int().describe("What the link hands over."),
    claim_url: z
      .url()
      .describe(
        "A page for a person: shows what is claimed and asks for their account. Works once. " +
          "Anyone who has the link can claim.",
      ),
    expires_in: seconds.describe("Seconds until the link ends. A later link ends it too."),
  })
  .meta({ id: "ClaimLink", description: "A link with which a person makes an account their own." });

/** Body of `createConnection`. */
export const connectionRequest = z
  .strictObject({
    name: z
      .string()
      .min(1)
      .max(100)
      .regex(NO_CONTROLS)
      .describe("Who asks, as the page shows it: no control characters."),
  })
  .meta({ id: "ConnectionRequest", description: "A wish to manage somebody's account." });

/** Answer of `createConnection`. */
export const createdConnection = z
  .object({
    id: connectionId,
    token: z.string().describe("Poll with it, as `Authorization: Bearer`. Shown only here."),
    approval_url: z
      .url()
      .describe("A page for the owner of an account, who approves or denies there."),
    expires_in: seconds.describe("Seconds until nobody can approve any more."),
    poll_interval: seconds.describe("Seconds between two polls."),
  })
  .meta({ id: "CreatedConnection", description: "A connection that waits to be approved." });

/** Answer of `getConnection`. */
export const polledConnection = z
  .object({
    id: connectionId,
    status,
    management_token: z
      .string()
      .optional()
      .describe("`svc_mt_…`. In the first answer that says `approved`, and never again."),
  })
  .meta({ id: "PolledConnection", description: "What became of a connection." });

/** Answer of `listConnections`. */
export const connectionList = z
  .object({
    connections: z.array(
      z
        .object({
          id: connectionId,
          name: z.string(),
          status,
          agent_id: z.string().nullable().describe("Null = its token was not fetched yet."),
          restrictions,
          created_at: instant,
          approved_at: instant.nullable(),
        })
        .meta({
          id: "Connection",
          description: "Someone who was given a management token of the account.",
        }),
    ),
  })
  .meta({
    id: "ConnectionList",
    description: "The approved connections of an account, oldest first.",
  });
