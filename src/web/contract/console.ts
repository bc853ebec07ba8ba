// Sessions in the console, and what operators do with providers and kept answers.

import { z } from "zod";
import { instant } from "../../hosted/keys/key-fields.ts";
import { answer, type OperationRows, operations } from "./operation.ts";
import { is, list, next, oneOf, paged, pattern, record, request, rows, short } from "./shapes.ts";

/** Body of `signIn`. */
const signInRequest = request({
  token: short(200).describe(
    "The operator token, the management token of an account, or the code of a sign-in link.",
  ),
}).meta({ id: "SignInRequest", description: "What proves who signs in." });

/** Answer of `getSession` and `signIn`. */
export const consoleSession = record({
  role: oneOf(["none", "operator", "account"]).describe("`none` = nobody is signed in."),
  ended: is.flag.describe("Whether the request carried a cookie whose session has ended."),
  account_id: is.textOrNull.describe("Of role `account`."),
  read_only: is.flag.describe("Whether the management token may only read."),
  signed_in_at: instant.nullable(),
  expires_at: instant.nullable(),
  server_time: instant,
  instance: record({
    version: is.text,
    hosted: is.flag.describe("Whether there are accounts, keys and money."),
    operator_sign_in: is.flag.describe("Whether an operator can sign in."),
    account_sign_in: is.flag.describe("Whether management tokens can sign in."),
    devnet: is.flag,
    public: is.flag.describe("Whether status pages are open to everyone."),
    node: is.textOrNull.describe("This node by its alias; null = it serves alone."),
  }),
}).meta({ id: "ConsoleSession", description: "Who is signed in, and to what." });

const name = short(500);

/** A provider of a profile on a chain. */
const providerRef = {
  profile: name.describe("The id of the profile; of an account `<account>/<slug>`."),
  chain: name.describe("The name of the chain."),
  provider: name.describe("The real id of the provider."),
};

/** Body of operations on a provider. */
const providerRequest = request(providerRef).meta({
  id: "ProviderRequest",
  description: "Which provider it is about.",
});

/** How long a provider may be taken out of use, if that is to end by itself. */
export const MAX_CORDON_DAYS = 30;

const cordonTerms = {
  reason: is.text
    .max(200)
    .regex(/^[^\p{Cc}]*$/u)
    .optional()
    .describe("For other operators."),
  until: instant
    .optional()
    .describe(
      `When it comes back by itself: ${MAX_CORDON_DAYS} days ahead at most. Left out = never.`,
    ),
};

/** Body of `cordonProvider`. */
const cordonRequest = request({ ...providerRef, ...cordonTerms }).meta({
  id: "CordonRequest",
  description: "Which provider is taken out of use, why, and until when.",
});

/** Body of `cordonEverywhere`. */
const cordonEverywhereRequest = request({ provider: providerRef.provider, ...cordonTerms }).meta({
  id: "CordonEverywhereRequest",
  description: "Which provider is taken out of use everywhere, why, and until when.",
});

const cordon = record({
  profile: is.text,
  chain: is.text,
  provider: is.text,
  reason: is.textOrNull,
  by: is.text.describe("`operator token`, or a session by the beginning of its hash."),
  at: instant,
  until: instant.nullable().describe("When it ends by itself; null = never."),
}).meta({ id: "OperatorCordon", description: "A provider that is out of use." });

/** Answer of `listCordons`. */
const cordonList = record({ cordons: list(cordon) }).meta({
  id: "CordonList",
  description: "The providers that are out of use.",
});

const transport = oneOf(["http", "ws"]);

const circuit = oneOf(["closed", "open", "half_open"]);

/** Answer of `endProviderWait`. */
export const endedWaits = record({
  transports: rows({ transport, was: circuit, now: circuit }),
}).meta({ id: "EndedWaits", description: "The circuits of a provider before and after." });

const shownError = record({
  category: is.text.describe("As the service judges it."),
  code: is.intOrNull.describe("JSON-RPC error code."),
  http_status: is.intOrNull,
  message: is.text.describe("Without what looked like a secret."),
}).meta({ id: "ShownProviderError", description: "An error of a provider." });

/** Answer of `testProvider`. */
export const providerTest = record({
  results: rows({
    transport,
    ok: is.flag,
    latency_ms: is.amount,
    chain_id: is.intOrNull,
    block_height: is.intOrNull,
    error: shownError.nullable(),
  }),
}).meta({ id: "ProviderTest", description: "What a provider answered, by transport." });

/** Body of `compareProviders`. */
const compareRequest = request({
  profile: providerRef.profile,
  chain: providerRef.chain,
  method: short(200),
  params: list(is.anything).default([]),
}).meta({ id: "CompareRequest", description: "A call, and the providers that it is asked of." });

/** Answer of `compareProviders`. */
const comparison = record({
  profile: is.text,
  chain: is.text,
  method: is.text,
  results: rows({
    provider: is.text,
    alias: is.text,
    transport,
    outcome: oneOf(["answer", "error", "skipped"]),
    skipped: is.textOrNull.describe(
      "Why it was not asked: `cordoned_by_operator`, `out_of_scope`, `limit` or `time`.",
    ),
    latency_ms: is.amountOrNull,
    bytes: is.intOrNull.describe("Of the result."),
    result: is.anything.describe("null where there is none, or it is truncated."),
    truncated: is.flag.describe("Whether the result is left out for its length."),
    digest: is.textOrNull.describe(
      "Of the result with its fields in order: equal ones say the same.",
    ),
    error: shownError.nullable(),
  }).describe("In the order of the profile."),
}).meta({ id: "Comparison", description: "What each provider answered to the same call." });

/** Answer of `reloadConfiguration`. */
export const reloaded = record({
  reloaded: is.flag,
  problem: is.textOrNull.describe("Why the running configuration stays."),
  revision: is.textOrNull.describe(
    "Of the file: the first digits of its SHA-256; null = it could not be read.",
  ),
  node: is.textOrNull.describe("Where this was done; null = the service is one node."),
  others_asked: is.flag.describe(
    "Whether other nodes were asked to reload; each writes a line of its own.",
  ),
}).meta({ id: "Reloaded", description: "Whether the configuration is a new one." });

const actionId = pattern(/^act_\w{20}$/).describe("`act_…`");

/** Answer of `listActions`. */
const actionList = record({
  actions: rows({
    id: actionId,
    at: instant,
    actor: is.text.describe("`operator token`, or a session."),
    address: is.text,
    action: is.text.describe("The id of the operation."),
    target: is.textOrNull,
    detail: is.textOrNull,
    outcome: oneOf(["done", "refused"]),
    node: is.textOrNull.describe("null = the service is one node."),
  }).describe("The newest first."),
  next: next(actionId),
}).meta({ id: "ActionList", description: "What operators did." });

const purgedName = short(200).optional();

/** Query of `purgeCache`: a mistyped name must not remove more than was meant. */
const purgeQuery = request({
  profile: purgedName.describe("By slug; of an account by `<account>/<slug>`."),
  chain: z
    .union([is.int.min(1), short(200)])
    .optional()
    .describe("By id, name or alias."),
  provider: purgedName.describe("By id: what it has answered."),
  method: purgedName,
});

/** Answer of `purgeCache`. */
export const purgedCache = record({
  profile: is.textOrNull.describe("`null` = of all profiles."),
  chain: is.textOrNull.describe("By name; `null` = of all chains."),
  provider: is.textOrNull,
  method: is.textOrNull,
  complete: is.flag.describe(
    "False: a worker has not confirmed it within 3 s. Repeat the request.",
  ),
  redis: oneOf(["none", "purged", "pending"]).describe(
    "The second tier. `pending`: its server cannot be reached; this process uses nothing of what " +
      "it has until that is removed.",
  ),
}).meta({ id: "PurgedCache", description: "Which kept answers were removed." });

/** Operations of sessions in the console. */
export const SESSION_OPERATIONS = operations({ tag: "console", auth: ["none"] }, {
  getSession: {
    endpoint: "GET /api/v1/console/session",
    summary: "Ask who is signed in",
    description:
      "By the cookie of the request. A cookie whose session has ended is taken away. Also tells " +
      "what the instance offers to those who sign in.",
    answers: { 200: answer("The session, or none.", consoleSession) },
  },
  signIn: {
    endpoint: "POST /api/v1/console/session",
    summary: "Sign in to the console",
    description:
      "Sets a cookie for 12 hours that scripts cannot read: `__Host-svc` over https, " +
      "`svc-session` over http on this machine; elsewhere nobody can sign in. The session ends " +
      "with its token. From pages of this service only, ten tries a minute and address. The " +
      "cookie opens what the token opens under /api/v1, and no calls; with it, changes need " +
      "`Content-Type: application/json` and a browser that says `Sec-Fetch-Site: same-origin`, " +
      "or an `Origin` that is this service.",
    body: signInRequest,
    answers: { 201: answer("The session.", consoleSession) },
    faults: ["unauthorized", "forbidden", "rate_limited"],
  },
  signOut: {
    endpoint: "DELETE /api/v1/console/session",
    summary: "Sign out of the console",
    description: "Ends the session of the cookie, if there is one, and takes the cookie away.",
    answers: { 204: answer("Nobody is signed in.", null) },
    faults: ["forbidden"],
  },
} as const satisfies OperationRows);

/** Operations of the console. */
export const CONSOLE_OPERATIONS = operations({ tag: "operator", auth: ["operator"] }, {
  listCordons: {
    endpoint: "GET /api/v1/operator/cordons",
    summary: "List the providers that operators took out of use",
    description: "Also those that the configuration does not have any more.",
    answers: { 200: answer("The cordons.", cordonList) },
  },
  cordonProvider: {
    endpoint: "POST /api/v1/operator/cordons",
    summary: "Take a provider out of use",
    description:
      "Nothing but probes is sent to it, not even by a pin, until it is put back; calls under " +
      "way finish, subscriptions move. Holds at every worker and node, and over reloads and " +
      "restarts, until its end if it has one. Again: replaces reason and end.",
    body: cordonRequest,
    answers: { 200: answer("It is out of use.", cordon) },
    faults: ["not_found"],
    idempotent: true,
  },
  uncordonProvider: {
    endpoint: "DELETE /api/v1/operator/cordons",
    summary: "Put a provider back to use",
    description: "Also one that is in use, or unknown: then nothing changes.",
    query: request(providerRef),
    answers: { 204: answer("It is in use.", null) },
    faults: ["unknown_field"],
  },
  cordonEverywhere: {
    endpoint: "POST /api/v1/operator/cordons/everywhere",
    summary: "Take a provider out of use in every profile and chain",
    description:
      "As `cordonProvider`, in each configured profile and chain in which a provider of this id " +
      "stands now, or comes to stand by a reload, until it is put back to use anywhere. Profiles " +
      "of accounts have providers of their own.",
    body: cordonEverywhereRequest,
    answers: { 200: answer("It is out of use.", cordonList) },
    faults: ["not_found"],
    idempotent: true,
  },
  uncordonEverywhere: {
    endpoint: "DELETE /api/v1/operator/cordons/everywhere",
    summary: "Put a provider back to use in every profile and chain",
    description: "Also where it was taken out of use alone.",
    query: request({ provider: providerRef.provider }),
    answers: { 204: answer("It is in use.", null) },
    faults: ["unknown_field"],
  },
  endProviderWait: {
    endpoint: "POST /api/v1/operator/waits/end",
    summary: "End the waits of a provider",
    description:
      "An open circuit is half-open now, and what refusals of the provider began (limits of its " +
      "rate, credentials, quota) no longer holds. Holds at every worker and node.",
    body: providerRequest,
    answers: { 200: answer("The circuits.", endedWaits) },
    faults: ["not_found"],
    idempotent: true,
  },
  testProvider: {
    endpoint: "POST /api/v1/operator/tests",
    summary: "Test a provider now",
    description:
      "Asks it for chain id and height on each transport, within its limits; a good answer " +
      "counts as a probe. Ten a minute.",
    body: providerRequest,
    answers: { 200: answer("What it answered.", providerTest) },
    faults: ["not_found", "rate_limited"],
    idempotent: true,
  },
  compareProviders: {
    endpoint: "POST /api/v1/operator/compare",
    summary: "Ask every provider the same",
    description:
      "Sends one read to every provider of a profile on a chain, within their limits. Ten a " +
      "minute; each has ten seconds, and a result of more than 64 KiB is told by its digest.",
    body: compareRequest,
    answers: { 200: answer("The answers.", comparison) },
    faults: ["not_found", "rate_limited"],
    idempotent: true,
  },
  reloadConfiguration: {
    endpoint: "POST /api/v1/operator/reload",
    summary: "Reload the configuration",
    description:
      "As `SIGHUP` does. Where it succeeds, the other nodes of a cluster reload as well, each " +
      "its own file; `GET /api/v1/operator/actions` has a line of each, with the revision.",
    answers: { 200: answer("Whether it was reloaded.", reloaded) },
    idempotent: true,
  },
  listActions: {
    endpoint: "GET /api/v1/operator/actions",
    summary: "Read what operators did",
    description:
      "A line for each change and sign-in, the newest first; 10,000 are kept in the store, 1,000 " +
      "without one.",
    query: record(paged(actionId, 100, 50, "actions")),
    answers: { 200: answer("The actions.", actionList) },
  },
  purgeCache: {
    endpoint: "DELETE /api/v1/operator/cache",
    summary: "Remove kept answers",
    description:
      "Of a profile, a chain, a provider or a method, or of all of them together; without any, " +
      "everything. Holds for all workers and, in a cluster of hosted nodes, for all nodes, " +
      "there within seconds; other nodes are asked one by one. The second tier " +
      "(`cache.redis_url`) knows profiles and chains only and loses all that it has of them.",
    query: purgeQuery,
    answers: { 200: answer("What was removed.", purgedCache) },
    faults: ["not_found", "unknown_field"],
  },
} as const satisfies OperationRows);
