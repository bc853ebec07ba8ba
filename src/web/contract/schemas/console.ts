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
