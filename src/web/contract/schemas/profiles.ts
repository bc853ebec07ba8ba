// Schemas of Custom profiles: the one definition that documents are validated against, that callers
// get as JSON Schema, and that answers follow. Knows no operation and no account.

import { z } from "zod";
import { NO_CONTROLS } from "../../../core/patterns.ts";
import { CONSISTENCIES } from "../../../core/routing/consistency.ts";
import { HIDDEN } from "../../../hosted/profiles/document.ts";

/** Largest document accepted. */
export const MAX_DOCUMENT_BYTES = 262_144;
/** Chains per profile. */
export const MAX_CHAINS = 20;
/** Providers per chain of a profile. */
export const MAX_CHAIN_PROVIDERS = 16;

const slugText = z.string().regex(/^[a-z0-9][a-z0-9-]{1,62}$/);
const instant = z.iso.datetime();
const count = z.int().min(0);
const consistency = z.enum(CONSISTENCIES);

/** The path parameter of a profile. */
export const profileParams = z.object({
  slug: slugText.describe(
    "Name of a Custom profile in URLs: 2 to 63 lower-case letters, digits and hyphens, " +
      "beginning with a letter or digit.",
  ),
});
/** The path parameters of a revision of a profile. */
export const revisionParams = profileParams.extend({
  revision: z
    .string()
    .regex(/^\d{1,15}$/)
    .describe("Number of a revision."),
});
/** Query of `putProfile`. */
export const putProfileQuery = z.object({
  dry_run: z
    .enum(["true", "false"])
    .default("false")
    .describe("`true` = checks everything, providers too, and stores nothing."),
  keep_hidden: z
    .enum(["true", "false"])
    .default("false")
    .describe(
      `\`true\` = an address or header value sent as it is shown (with \`${HIDDEN}\`) stands for ` +
        "the saved one of the provider of this name on this chain. Header values are kept only " +
        "where all addresses of the provider are.",
    ),
});

const METHOD = z.string().regex(/^[A-Za-z][A-Za-z0-9_]{0,99}$/);
const MANAGED_HEADERS: ReadonlySet<string> = new Set(
  (
    "connection content-length content-type content-encoding accept-encoding expect host " +
    "keep-alive proxy-connection te trailer transfer-encoding upgrade"
  ).split(" "),
);
const headerName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/)
  .refine(
    (name) =>
      !MANAGED_HEADERS.has(name.toLowerCase()) && !name.toLowerCase().startsWith("sec-websocket"),
  );
const headerValue = z
  .string()
  .max(4_096)
  .regex(/^(?:[\t\x20-\x7e\x80-\xff]*|…)$/);

const provider = z
  .strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/)
      .describe(
        "What you call it: unique on its chain, used in pins and shown in `svc_meta`. Letters, " +
          "digits, `-`, `_`, `.`.",
      ),
    url: z
      .string()
      .max(2_048)
      .optional()
      .describe(
        "https:// or http:// address for JSON-RPC over HTTP. Write-only. One of `url` and " +
          "`ws_url` is needed.",
      ),
    ws_url: z
      .string()
      .max(2_048)
      .optional()
      .describe(
        "wss:// or ws:// address for JSON-RPC over WebSocket, for subscriptions. Write-only.",
      ),
    headers: z
      .record(headerName, headerValue)
      .refine((headers) => Object.keys(headers).length <= 20)
      .default({})
      .describe("Sent with every request to this provider, 20 at most. Write-only."),
    region: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/)
      .optional()
      .describe(
        "Where it is: one of `cluster.regions` in `GET /api/health`. Nodes of that region ask it " +
          "first where the strategy has no better reason.",
      ),
    limits: z
      .strictObject({
        archival: z
          .boolean()
          .default(false)
          .describe("Serves state, proofs and traces of any block, however old."),
        logs_span: z
          .int()
          .min(1)
          .max(1_000_000_000)
          .nullable()
          .default(null)
          .describe("Largest block range of `eth_getLogs`; null = not known."),
        methods_blocked: z
          .array(METHOD)
          .max(200)
          .default([])
          .describe("Methods that are not sent to it while another provider serves them."),
      })
      .prefault({})
      .describe("What it cannot do."),
  })
  .meta({ id: "ProfileProvider", description: "One of your own endpoints." });

const chain = z
  .strictObject({
    providers: z
      .array(provider)
      .min(1)
      .max(MAX_CHAIN_PROVIDERS)
      .describe("Your endpoints, the preferred one first: strategy `priority` keeps this order."),
    max_lag_blocks: z
      .int()
      .min(0)
      .max(100_000)
      .default(5)
      .describe("A provider further behind the others than this is left out."),
    block_protection: z
      .boolean()
      .default(false)
      .describe(
        "Leaves out every provider that has not reached the newest block known, regardless of " +
          "`max_lag_blocks`: no read is answered from a block behind while one that has it can be " +
          "asked.",
      ),
  })
  .meta({ id: "ProfileChain", description: "Your endpoints on one chain." });

/** Body of `putProfile`: the document of a Custom profile. */
export const profileDocument = z
  .strictObject({
    name: z.string().min(1).max(100).regex(NO_CONTROLS).optional().describe("A label for you."),
    consistency: consistency
      .optional()
      .describe(
        "Which view of the chain callers get. `tip`: one newest block for all providers, to " +
          "which `latest` is resolved. `caller`: as well, no caller is shown an older block than " +
          "before. `off`: block tags go to the provider as written. Default: as the service says.",
      ),
    chains: z
      .record(z.string().min(1).max(64), chain)
      .refine(
        (chains) => Object.keys(chains).length >= 1 && Object.keys(chains).length <= MAX_CHAINS,
      )
      .describe("By name or decimal id of the chain."),
  })
  .meta({
    id: "ProfileDocument",
    description:
      "A Custom profile: your own providers behind this service's routing, failover and health.",
  });

const hiddenProvider = z.object({
  name: z.string(),
  url: z
    .string()
    .nullable()
    .describe(`Its host only, as in \`https://eth.example.com/${HIDDEN}\`; null = it has none.`),
  ws_url: z.string().nullable().describe("The same for WebSockets."),
  headers: z.array(z.string()).describe("Names only."),
  region: z.string().nullable().describe("null = not stated."),
  limits: z.object({
    archival: z.boolean(),
    logs_span: z.int().nullable(),
    methods_blocked: z.array(z.string()),
  }),
});

const shownProvider = hiddenProvider
  .extend({
    status: z
      .enum(["verified", "verifying", "failed"])
      .describe(
        "`verified` = it answered as it should when it was last asked; `verifying` = it is " +
          "being asked; `failed` = it does not serve now.",
      ),
  })
  .meta({ id: "ShownProvider", description: "An endpoint without its secrets." });

const shownConsistency = consistency.nullable().describe("null = as the service says.");

/** A Custom profile as its owner sees it. */
export const profile = z
  .object({
    slug: z.string(),
    name: z.string().nullable(),
    consistency: shownConsistency,
    revision: count
      .nullable()
      .describe("Counts changes; send it as `If-Match`. null = not stored."),
    state: z
      .enum(["active", "suspended", "unreadable"])
      .describe(
        "`suspended` = Custom access has ended, and `premium` serves its callers; `unreadable` " +
          "= send it again.",
      ),
    chains: z
      .record(
        z.string(),
        z.object({
          max_lag_blocks: count,
          block_protection: z.boolean(),
          providers: z.array(shownProvider),
        }),
      )
      .describe("By chain name."),
    created_at: instant.nullable(),
    updated_at: instant.nullable(),
  })
  .meta({ id: "Profile", description: "A Custom profile, without addresses and header values." });

/** Answer of `listProfileRevisions`. */
export const revisionList = z
  .object({
    slug: z.string(),
    revisions: z
      .array(z.object({ revision: count, saved_at: instant }))
      .describe("The present one first."),
  })
  .meta({ id: "RevisionList", description: "The latest revisions of a Custom profile." });

/** Answer of `getProfileRevision`. */
export const revision = z
  .object({
    slug: z.string(),
    revision: count,
    saved_at: instant,
    name: z.string().nullable(),
    consistency: shownConsistency,
    chains: z
      .record(
        z.string(),
        z.object({
          max_lag_blocks: count,
          block_protection: z.boolean(),
          providers: z.array(hiddenProvider),
        }),
      )
      .describe("By chain name."),
  })
  .meta({ id: "Revision", description: "What a Custom profile was, without its secrets." });

/** Answer of `listProfiles`. */
export const profileList = z
  .object({
    profiles: z.array(profile),
    custom_access: z
      .object({ until: instant })
      .nullable()
      .describe("Until when Custom profiles are served; null = they are not."),
    max_profiles: count,
  })
  .meta({ id: "ProfileList", description: "The Custom profiles of an account, by name." });

/** Answer of `getConfigurationSchema`. */
export const configurationSchema = z
  .object({
    schema: z
      .record(z.string(), z.unknown())
      .describe("JSON Schema 2020-12 of the document that `PUT /api/v1/profiles/{slug}` takes."),
    limits: z.object({
      max_profiles: count,
      max_chains: count,
      max_providers_per_chain: count,
      max_providers: count,
      max_document_bytes: count,
      requests_per_second: z.number(),
      reserved_slugs: z.array(z.string()),
    }),
    chains: z.array(z.object({ name: z.string(), chain_id: z.int() })),
    workload_recipes: z
      .array(
        z.object({
          id: z.string(),
          purpose: z.string(),
          strategy: z.string().describe("What to put into the URL."),
          advice: z.string(),
          document: z
            .record(z.string(), z.unknown())
            .describe("A document to start from; put your own addresses into it."),
        }),
      )
      .describe("Documents for common workloads."),
  })
  .meta({ id: "ConfigurationSchema", description: "How Custom profiles are written." });

/** Body of `grantCustomAccess`. */
export const customAccessRequest = z
  .strictObject({
    days: z
      .int()
      .min(1)
      .max(366)
      .describe("Days to give, from now or after those that the account has."),
    reference: z
      .string()
      .regex(/^[\w.:-]{1,100}$/)
      .optional()
      .describe(
        "The same reference gives the days once only. Letters, digits, `.`, `:`, `-`, `_`.",
      ),
  })
  .meta({ id: "CustomAccessRequest", description: "Days of Custom access to give." });
/** Answer of `grantCustomAccess`. */
export const customAccess = z
  .object({ account_id: z.string(), from: instant, until: instant })
  .meta({ id: "CustomAccess", description: "A time of Custom access." });
/** Body of `creditAccount`. */
export const creditRequest = z
  .strictObject({
    usd: z
      .string()
      .regex(/^\d{1,6}(\.\d{1,9})?$/)
      .refine((text) => /[1-9]/.test(text))
      .describe("An amount in US dollars, as a plain decimal above 0."),
    reference: z
      .string()
      .regex(/^[\w.:-]{1,100}$/)
      .describe(
        "Of the payment: the same reference credits once only. Letters, digits, `.`, `:`, `-`, `_`.",
      ),
  })
  .meta({ id: "CreditRequest", description: "Money that came in for an account." });
/** Answer of `creditAccount`. */
export const credited = z
  .object({
    account_id: z.string(),
    credited: z.boolean().describe("false = this reference was credited before."),
    balance_usd: z.string(),
  })
  .meta({ id: "Credited", description: "An account after a credit." });
