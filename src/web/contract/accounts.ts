// Accounts, what they have used, and the holders of their management tokens.

import { accountId, instant, keyId, slug } from "../../hosted/keys/key-fields.ts";
import { cu, usd } from "./keys.ts";
import { callEvent, callFilters } from "./live.ts";
import { answer, type OperationRows, operations } from "./operation.ts";
import { is, list, oneOf, record, recordOrNull, rows, whole } from "./shapes.ts";

/** The path parameter of an account. */
export const accountIdParams = record({
  id: accountId.describe("Id of an account, as the API returned it."),
});

/** Query of `getUsage`. */
const ownUsageQuery = record({
  days: whole(1, 90, 30).describe("How many days to look back, in UTC, today included."),
});

/** Part of `calls` and of their compute units. */
export const cachedUsage = {
  cached_calls: is.int.min(0).describe("Of the calls those that were answered from the cache."),
  cached_cu: is.int
    .min(0)
    .describe("Of the compute units those of calls that were answered from the cache."),
};

/** What was used, in answers. */
export const ownUsed = {
  calls: is.count,
  cu,
  usd: usd.describe("Charged, in US dollars."),
  ...cachedUsage,
};

const charged = record({ from: instant, usd: usd.describe("Charged since then.") });

/** What was charged lately. */
export const recent = record({
  hour: charged.describe("Since the beginning of the hour before this one."),
  day: charged.describe("Since the beginning of the hour 24 hours before this one."),
}).meta({ id: "RecentCharges", description: "What was charged in the last hour and day." });

const MOST_USED = "Most compute units first, 500 at most.";

/** Answer of `getUsage`. */
const ownUsage = record({
  from: instant.describe("Beginning of the first day."),
  to: instant.describe("When it was read."),
  totals: record(ownUsed),
  by_day: rows({ day: is.day, ...ownUsed }).describe(
    "Days in which anything was used, oldest first.",
  ),
  by_method: rows({ method: is.text, ...ownUsed }).describe(MOST_USED),
  by_key: rows({
    key_id: keyId,
    name: is.text,
    key_prefix: is.text,
    revoked: is.flag.describe("Whether the key was deleted."),
    last_used: instant.describe("Beginning of the last hour in which it was used."),
    ...ownUsed,
  }).describe(MOST_USED),
  recent,
}).meta({
  id: "Usage",
  description: "What keys have used, as far as it is written down: some seconds late.",
});

const { chain, method, outcome } = callFilters;

/** Query of `listOwnCalls`. */
const ownCallsQuery = record({
  key: keyId.optional().describe("Only calls with this key."),
  ...{ chain, method, outcome },
  limit: whole(1, 200, 50).describe("Most calls in one answer."),
});

/** What of an event an account is shown as it is. */
const SHOWN = {
  at: true,
  request_id: true,
  profile: true,
  chain: true,
  method: true,
  strategy: true,
  key_id: true,
  request_bytes: true,
  answer_bytes: true,
  notification: true,
  total_ms: true,
  upstream_ms: true,
  added_ms: true,
  outcome: true,
  reason: true,
  cause: true,
  source: true,
  attempts: true,
  failovers: true,
  pinned: true,
} as const;

/** Answer of `listOwnCalls`. */
const ownCalls = record({
  calls: list(
    callEvent
      .pick(SHOWN)
      .extend({
        provider: is.textOrNull.describe("Whose answer it is, by its alias."),
        error: recordOrNull({ category: is.text, code: is.intOrNull }).describe(
          "Of the last attempt that failed.",
        ),
      })
      .meta({ id: "OwnCall", description: "A call of an account, at its end." }),
  ).describe("Newest first."),
}).meta({ id: "OwnCalls", description: "The latest calls of an account." });

/** An account as its agents see it. */
export const account = record({
  id: accountId,
  balance_usd: usd,
  balance_cu: cu,
  managed_access: oneOf(["premium", "public", "none"]).describe(
    "What serves managed profiles now: `premium` = the balance, `public` = public providers by " +
      "fallback or free allowance, `none` = nothing.",
  ),
  fallback: recordOrNull({ until: instant }).describe(
    "Until when an account that has paid before is served on public providers after its balance " +
      "ran out; null = it is not.",
  ),
  included_usage: record({ allowance_cu: cu, used_cu: cu, resets_at: instant }).describe(
    "The free allowance of this month.",
  ),
  keys: is.count.describe("Keys that work."),
  profiles: list(slug).describe("Profiles that its keys can reach."),
  created_at: instant,
}).meta({ id: "Account", description: "Who pays for keys." });

/** What a management token may do. */
export const restrictions = record({
  profiles: list(slug).nullable().describe("Only keys of these profiles; null = all."),
  read_only: is.flag,
  expires_at: instant.nullable(),
});

/** An agent, which is the holder of a management token. */
const agent = record({
  id: is.text,
  account_id: accountId,
  restrictions,
}).meta({ id: "Agent", description: "Whom a management token stands for." });

/** Operations of accounts. */
export const ACCOUNT_OPERATIONS = operations({ tag: "accounts", auth: ["management_token"] }, {
  getCurrentAccount: {
    endpoint: "GET /api/v1/accounts/current",
    summary: "Read the account of the credential",
    description:
      "The authoritative balance, how calls are served now, and until when they are for having " +
      "paid before. An RPC key does not open it: GET /api/v1/keys/current tells what the key " +
      "has.",
    answers: { 200: answer("The account.", account) },
  },
  getUsage: {
    endpoint: "GET /api/v1/usage",
    summary: "Read what the account or the key has used",
    description:
      "By day, method and key. With a management token the keys that it may see; with an RPC key " +
      "that key alone.",
    auth: ["management_token", "rpc_key"],
    query: ownUsageQuery,
    answers: { 200: answer("The usage.", ownUsage) },
  },
  listOwnCalls: {
    endpoint: "GET /api/v1/calls",
    summary: "List the latest calls of the account",
    description:
      "With the keys that the token may see, newest first, from memory. Where there are many " +
      "calls only some are kept: those that did not go well first. Holds no parameters and no " +
      "results.",
    query: ownCallsQuery,
    answers: { 200: answer("The calls.", ownCalls) },
  },
  getAccount: {
    endpoint: "GET /api/v1/accounts/{id}",
    summary: "Read an account by its id",
    description: "Only the account of the token.",
    params: accountIdParams,
    answers: { 200: answer("The account.", account) },
  },
  getCurrentAgent: {
    endpoint: "GET /api/v1/agents/current",
    summary: "Read what the management token may do",
    description: "Whom it stands for, and its restrictions.",
    answers: { 200: answer("The agent.", agent) },
  },
} as const satisfies OperationRows);
