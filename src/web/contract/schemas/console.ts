// Schemas of the console: sessions, and what operators do with providers.
import { z } from "zod";

const instant = z.iso.datetime();

/** Body of `signIn`. */
export const signInRequest = z
  .strictObject({
    token: z
      .string()
      .min(1)
      .max(200)
      .describe(
        "The operator token, the management token of an account, or the code of a sign-in link.",
      ),
  })
  .meta({ id: "SignInRequest", description: "What proves who signs in." });

/** Answer of `getSession` and `signIn`. */
export const consoleSession = z
  .object({
    role: z.enum(["none", "operator", "account"]).describe("`none` = nobody is signed in."),
    ended: z.boolean().describe("Whether the request carried a cookie whose session has ended."),
    account_id: z.string().nullable().describe("Of role `account`."),
    read_only: z.boolean().describe("Whether the management token may only read."),
    signed_in_at: instant.nullable(),
    expires_at: instant.nullable(),
    server_time: instant,
    instance: z.object({
      version: z.string(),
      hosted: z.boolean().describe("Whether there are accounts, keys and money."),
      operator_sign_in: z.boolean().describe("Whether an operator can sign in."),
      account_sign_in: z.boolean().describe("Whether management tokens can sign in."),
      devnet: z.boolean(),
      public: z.boolean().describe("Whether status pages are open to everyone."),
      node: z.string().nullable().describe("This node by its alias; null = it serves alone."),
    }),
  })
  .meta({ id: "ConsoleSession", description: "Who is signed in, and to what." });

const name = z.string().min(1).max(500);
/** A provider of a profile on a chain. */
const providerRef = {
  profile: name.describe("The id of the profile; of an account `<account>/<slug>`."),
  chain: name.describe("The name of the chain."),
  provider: name.describe("The real id of the provider."),
};

/** Body of operations on a provider. */
export const providerRequest = z
  .strictObject(providerRef)
  .meta({ id: "ProviderRequest", description: "Which provider it is about." });

/** Body of `cordonProvider`. */
export const cordonRequest = z
  .strictObject({
    ...providerRef,
    reason: z
      .string()
      .max(200)
      .regex(/^[^\p{Cc}]*$/u)
      .optional()
      .describe("For other operators."),
  })
  .meta({ id: "CordonRequest", description: "Which provider is taken out of use, and why." });

/** Query of `uncordonProvider`. */
export const cordonQuery = z.strictObject(providerRef);

const cordon = z
  .object({
    profile: z.string(),
    chain: z.string(),
    provider: z.string(),
    reason: z.string().nullable(),
    by: z.string().describe("`operator token`, or a session by the beginning of its hash."),
    at: instant,
  })
  .meta({ id: "OperatorCordon", description: "A provider that is out of use." });

/** Answer of `cordonProvider`. */
export const operatorCordon = cordon;

/** Answer of `listCordons`. */
export const cordonList = z
  .object({ cordons: z.array(cordon) })
  .meta({ id: "CordonList", description: "The providers that are out of use." });

const transport = z.enum(["http", "ws"]);
const circuit = z.enum(["closed", "open", "half_open"]);

/** Answer of `endProviderWait`. */
export const endedWaits = z
  .object({ transports: z.array(z.object({ transport, was: circuit, now: circuit })) })
  .meta({ id: "EndedWaits", description: "The circuits of a provider before and after." });

const shownError = z
  .object({
    category: z.string().describe("As the service judges it."),
    code: z.int().nullable().describe("JSON-RPC error code."),
    http_status: z.int().nullable(),
    message: z.string().describe("Without what looked like a secret."),
  })
  .meta({ id: "ShownProviderError", description: "An error of a provider." });
const milliseconds = z.number().min(0);

/** Answer of `testProvider`. */
export const providerTest = z
  .object({
    results: z.array(
      z.object({
        transport,
        ok: z.boolean(),
        latency_ms: milliseconds,
        chain_id: z.int().nullable(),
        block_height: z.int().nullable(),
        error: shownError.nullable(),
      }),
    ),
  })
  .meta({ id: "ProviderTest", description: "What a provider answered, by transport." });

/** Body of `compareProviders`. */
export const compareRequest = z
  .strictObject({
    profile: providerRef.profile,
    chain: providerRef.chain,
    method: z.string().min(1).max(200),
    params: z.array(z.unknown()).default([]),
  })
  .meta({ id: "CompareRequest", description: "A call, and the providers that it is asked of." });

/** Answer of `compareProviders`. */
export const comparison = z
  .object({
    profile: z.string(),
    chain: z.string(),
    method: z.string(),
    results: z
      .array(
        z.object({
          provider: z.string(),
          alias: z.string(),
          transport,
          outcome: z.enum(["answer", "error", "skipped"]),
          skipped: z
            .string()
            .nullable()
            .describe("Why it was not asked: `cordoned_by_operator`, `limit` or `time`."),
          latency_ms: milliseconds.nullable(),
          bytes: z.int().nullable().describe("Of the result."),
          result: z.unknown().describe("null where there is none, or it is truncated."),
          truncated: z.boolean().describe("Whether the result is left out for its length."),
          digest: z
            .string()
            .nullable()
            .describe("Of the result with its fields in order: equal ones say the same."),
          error: shownError.nullable(),
        }),
      )
      .describe("In the order of the profile."),
  })
  .meta({ id: "Comparison", description: "What each provider answered to the same call." });

/** Answer of `reloadConfiguration`. */
export const reloaded = z
  .object({
    reloaded: z.boolean(),
    problem: z.string().nullable().describe("Why the running configuration stays."),
    revision: z
      .string()
      .nullable()
      .describe("Of the file: the first digits of its SHA-256; null = it could not be read."),
    node: z.string().nullable().describe("Where this was done; null = the service is one node."),
    others_asked: z
      .boolean()
      .describe("Whether other nodes were asked to reload; each writes a line of its own."),
  })
  .meta({ id: "Reloaded", description: "Whether the configuration is a new one." });

const actionId = z
  .string()
  .regex(/^act_\w{20}$/)
  .describe("`act_…`");

/** Query of `listActions`. */
export const actionQuery = z.object({
  limit: z.int().min(1).max(100).default(50).describe("Most actions in one answer."),
  after: actionId.optional().describe("`next` of the answer before."),
});

/** Answer of `listActions`. */
export const actionList = z
  .object({
    actions: z
      .array(
        z.object({
          id: actionId,
          at: instant,
          actor: z.string().describe("`operator token`, or a session."),
          address: z.string(),
          action: z.string().describe("The id of the operation."),
          target: z.string().nullable(),
          detail: z.string().nullable(),
          outcome: z.enum(["done", "refused"]),
          node: z.string().nullable().describe("null = the service is one node."),
        }),
      )
      .describe("The newest first."),
    next: actionId.nullable().describe("Pass it as `after` to read on; null = that was all."),
  })
  .meta({ id: "ActionList", description: "What operators did." });
