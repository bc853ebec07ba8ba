// Schemas of keys, accounts and agents: requests and answers. Each schema with an id is a component
// of the OpenAPI document. Operations are rows of `contract.ts`.

import { z } from "zod";
import {
  accountId,
  instant,
  keyId,
  keyInput,
  keyName,
  shownFields,
  slug,
} from "../../../hosted/keys/key-fields.ts";
import { cachedUsage } from "./cached-usage.ts";
import { amountUsd } from "./payments.ts";

const usd = z
  .string()
  .regex(/^-?\d+(\.\d{1,9})?$/)
  .meta({
    id: "Usd",
    description: "An amount in US dollars: a plain decimal without trailing zeros.",
    examples: ["0.025"],
  });
const cu = z.int().meta({ id: "ComputeUnits", description: "An amount of compute units (CU)." });
const count = z.int().min(0);
/** The path parameter of a key by its id. */
export const keyIdParams = z.object({ id: keyId.describe("Id of a key, as the API returned it.") });
/** The path parameter of an account. */
export const accountIdParams = z.object({
  id: accountId.describe("Id of an account, as the API returned it."),
});
/** The path parameter of a key by its secret. */
export const secretParams = z.object({ key: z.string().describe("The full key, `svc_ak_…`.") });
/** The path parameter of a chain. */
export const chainParams = z.object({
  chain: z.string().describe("A chain's name or decimal id."),
});

/** Body of `createAgentKey`. */
export const agentKeyRequest = z
  .strictObject({
    name: keyName.optional(),
    initial_fund_usd: amountUsd
      .optional()
      .describe(
        "The key is paid for and has this amount, and no free grant. `payments` in /agent.json " +
          "tells the range. Leave it out for the free grant.",
      ),
  })
  .meta({ id: "AgentKeyRequest", description: "An anonymous key to create." });
/** Body of `createKey`. */
export const keyRequest = keyInput.meta({ id: "KeyRequest", description: "A key to create." });
/** Body of `updateKey`. */
export const keyPatch = keyInput.meta({
  id: "KeyPatch",
  description: "What to change about a key. Fields that are left out stay.",
});
/** Body of `rotateKey`. */
export const rotateRequest = z
  .strictObject({
    grace_seconds: z
      .int()
      .min(0)
      .max(86_400)
      .default(3_600)
      .describe("For how long the present secret stays valid beside the new one."),
  })
  .meta({ id: "RotateRequest", description: "How to replace a key's secret." });

/** Query of `listKeys`. */
export const keyListQuery = z.object({
  limit: z.int().min(1).max(1_000).default(1_000).describe("Most keys in one answer."),
  after: keyId.optional().describe("`next` of the answer before."),
});
/** Query of `getOperatorUsage`. */
export const usageQuery = z.object({
  hours: z
    .int()
    .min(1)
    .max(2_160)
    .default(24)
    .describe("How many hours to look back, the one under way included."),
  account: accountId.optional().describe("Only this account."),
});

/** Query of `getUsage`. */
export const ownUsageQuery = z.object({
  days: z
    .int()
    .min(1)
    .max(90)
    .default(30)
    .describe("How many days to look back, in UTC, today included."),
});

const used = {
  calls: count,
  cu,
  usd: usd.describe("Charged, in US dollars."),
  ...cachedUsage,
};

/** Answer of `getUsage`. */
export const ownUsage = z
  .object({
    from: instant.describe("Beginning of the first day."),
    to: instant.describe("When it was read."),
    totals: z.object(used),
    by_day: z
      .array(z.object({ day: z.iso.date(), ...used }))
      .describe("Days in which anything was used, oldest first."),
    by_method: z
      .array(z.object({ method: z.string(), ...used }))
      .describe("Most compute units first, 500 at most."),
    by_key: z
      .array(
        z.object({
          key_id: keyId,
          name: z.string(),
          key_prefix: z.string(),
          revoked: z.boolean().describe("Whether the key was deleted."),
          ...used,
        }),
      )
      .describe("Most compute units first, 500 at most."),
  })
  .meta({
    id: "Usage",
    description: "What keys have used, as far as it is written down: some seconds late.",
  });

const estimatedRequests = z
  .object({
    cheap_reads: count.describe("Calls of 1 CU."),
    standard_reads: count.describe("Calls of 3 CU."),
    heavy_reads: count.describe("Calls of 15 CU."),
  })
  .meta({
    id: "EstimatedRequests",
    description: "How many calls a balance pays for, at load-balanced.",
  });

/** A key without its secret. */
export const key = z
  .object({
    ...shownFields.shape,
    total_funded_cu: cu.describe("All that was ever credited to the account, grants included."),
    balance_cu: cu.describe("What the account has left."),
    balance_usd: usd.describe("What the account has left."),
    estimated_requests: estimatedRequests,
  })
  .meta({
    id: "Key",
    description:
      "A key for RPC calls, without its secret. All keys of an account draw on its one balance.",
  });

/** Answer of `listKeys`. */
export const keyList = z
  .object({
    keys: z.array(key),
    next: keyId.nullable().describe("Pass it as `after` to read on; null = that was all."),
  })
  .meta({ id: "KeyList", description: "The keys of an account that work, oldest first." });

const secret = z.string().describe("The full key, `svc_ak_…`. Shown only here.");
const rpcUrl = z.string().describe("Ready to use: POST JSON-RPC here. Holds the key.");
const wsUrl = z.string().describe("The same for WebSockets. Holds the key.");

/** Answer of `createAgentKey`. */
export const createdAgentKey = z
  .object({
    key: secret,
    endpoint: rpcUrl,
    balance_cu: cu,
    profile: slug,
    key_prefix: z.string(),
    estimated_requests: estimatedRequests,
    balance_usd: usd,
    purchase_id: z.string().optional().describe("The payment that made it."),
  })
  .meta({ id: "CreatedAgentKey", description: "A new anonymous key." });
/** Answer of `createKey`. */
export const createdKey = z
  .object({
    id: keyId,
    key: secret,
    key_prefix: z.string(),
    rpc_url: rpcUrl,
    ws_url: wsUrl,
    management_token: z
      .string()
      .optional()
      .describe(
        "Manages the account, `svc_mt_…`. Only when an account was created; shown only here.",
      ),
    account_id: accountId,
    balance_usd: usd,
  })
  .meta({ id: "CreatedKey", description: "A new key of an account." });
/** Answer of `rotateKey`. */
export const rotatedKey = z
  .object({
    key: secret,
    key_prefix: z.string(),
    rpc_url: rpcUrl,
    ws_url: wsUrl,
    previous_valid_until: instant.describe("Until when the secret before this one works."),
  })
  .meta({ id: "RotatedKey", description: "A key's new secret." });

/** An account as its agents see it. */
export const account = z
  .object({
    id: accountId,
    balance_usd: usd,
    balance_cu: cu,
    managed_access: z
      .enum(["premium", "public", "none"])
      .describe(
        "What serves managed profiles now: `premium` = the balance, `public` = public " +
          "providers by fallback or free allowance, `none` = nothing.",
      ),
    fallback: z
      .object({ until: instant })
      .nullable()
      .describe(
        "Until when an account that has paid before is served on public providers after its " +
          "balance ran out; null = it is not.",
      ),
    included_usage: z
      .object({ allowance_cu: cu, used_cu: cu, resets_at: instant })
      .describe("The free allowance of this month."),
    keys: count.describe("Keys that work."),
    profiles: z.array(slug).describe("Profiles that its keys can reach."),
    created_at: instant,
  })
  .meta({ id: "Account", description: "Who pays for keys." });

/** An agent, which is the holder of a management token. */
export const agent = z
  .object({
    id: z.string(),
    account_id: accountId,
    restrictions: z.object({
      profiles: z.array(slug).nullable().describe("Only keys of these profiles; null = all."),
      read_only: z.boolean(),
      expires_at: instant.nullable(),
    }),
  })
  .meta({ id: "Agent", description: "Whom a management token stands for." });
