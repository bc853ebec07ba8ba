// Custom profiles: one definition for the validation of documents, the JSON Schema for callers, and
// the answers.

import type { z } from "zod";
import { CONSISTENCIES } from "../../core/provider/profile.ts";
import { instant } from "../../hosted/keys/key-fields.ts";
import { HIDDEN, profileDocument } from "../../hosted/profiles/document.ts";
import { MAX_REVISIONS } from "../../hosted/profiles/revisions.ts";
import { answer, type OperationRows, operations } from "./operation.ts";
import { is, list, map, oneOf, pattern, record, recordOrNull, rows } from "./shapes.ts";

/** Largest document accepted. */
export const MAX_DOCUMENT_BYTES = 262_144;

const slugText = pattern(/^[a-z0-9][a-z0-9-]{1,62}$/);

const consistency = oneOf(CONSISTENCIES);

/** The path parameter of a profile. */
const profileParams = record({
  slug: slugText.describe(
    "Name of a Custom profile in URLs: 2 to 63 lower-case letters, digits and hyphens, beginning " +
      "with a letter or digit.",
  ),
});

/** The path parameters of a revision of a profile. */
const revisionParams = profileParams.extend({
  revision: pattern(/^\d{1,15}$/).describe("Number of a revision."),
});

/** Query of `putProfile`. */
const putProfileQuery = record({
  dry_run: oneOf(["true", "false"])
    .default("false")
    .describe("`true` = checks everything, providers too, and stores nothing."),
  keep_hidden: oneOf(["true", "false"])
    .default("false")
    .describe(
      `\`true\` = an address or header value sent as it is shown (with \`${HIDDEN}\`) stands for ` +
        "the saved one of the provider of this name on this chain. Header values are kept only " +
        "where all addresses of the provider are.",
    ),
});

const hiddenProvider = record({
  name: is.text,
  url: is.textOrNull.describe(
    `Its host only, as in \`https://eth.example.com/${HIDDEN}\`; null = it has none.`,
  ),
  ws_url: is.textOrNull.describe("The same for WebSockets."),
  headers: list(is.text).describe("Names only."),
  region: is.textOrNull.describe("null = not stated."),
  limits: record({
    archival: is.flag,
    logs_span: is.intOrNull,
    methods_blocked: list(is.text),
  }),
});

const shownProvider = hiddenProvider
  .extend({
    status: oneOf(["verified", "verifying", "failed"]).describe(
      "`verified` = it answered as it should when it was last asked; `verifying` = it is being " +
        "asked; `failed` = it does not serve now.",
    ),
  })
  .meta({ id: "ShownProvider", description: "An endpoint without its secrets." });

const shownConsistency = consistency.nullable().describe("null = as the service says.");

const chainsOf = <Provider extends z.ZodType>(shown: Provider) =>
  map(
    record({ max_lag_blocks: is.count, block_protection: is.flag, providers: list(shown) }),
  ).describe("By chain name.");

/** A Custom profile as its owner sees it. */
export const profile = record({
  slug: is.text,
  name: is.textOrNull,
  consistency: shownConsistency,
  revision: is.count
    .nullable()
    .describe("Counts changes; send it as `If-Match`. null = not stored."),
  state: oneOf(["active", "suspended", "unreadable"]).describe(
    "`suspended` = Custom access has ended, and `premium` serves its callers; `unreadable` = " +
      "send it again.",
  ),
  chains: chainsOf(shownProvider),
  created_at: instant.nullable(),
  updated_at: instant.nullable(),
}).meta({ id: "Profile", description: "A Custom profile, without addresses and header values." });

/** Answer of `listProfileRevisions`. */
const revisionList = record({
  slug: is.text,
  revisions: rows({ revision: is.count, saved_at: instant }).describe("The present one first."),
}).meta({ id: "RevisionList", description: "The latest revisions of a Custom profile." });

/** Answer of `getProfileRevision`. */
export const revision = record({
  slug: is.text,
  revision: is.count,
  saved_at: instant,
  name: is.textOrNull,
  consistency: shownConsistency,
  chains: chainsOf(hiddenProvider),
}).meta({ id: "Revision", description: "What a Custom profile was, without its secrets." });

/** Answer of `listProfiles`. */
const profileList = record({
  profiles: list(profile),
  custom_access: recordOrNull({ until: instant }).describe(
    "Until when Custom profiles are served; null = they are not.",
  ),
  max_profiles: is.count,
}).meta({ id: "ProfileList", description: "The Custom profiles of an account, by name." });

/** Answer of `getConfigurationSchema`. */
export const configurationSchema = record({
  schema: map(is.anything).describe(
    "JSON Schema 2020-12 of the document that `PUT /api/v1/profiles/{slug}` takes.",
  ),
  limits: record({
    max_profiles: is.count,
    max_chains: is.count,
    max_providers_per_chain: is.count,
    max_providers: is.count,
    max_document_bytes: is.count,
    requests_per_second: is.number,
    reserved_slugs: list(is.text),
  }),
  chains: rows({ name: is.text, chain_id: is.int }),
  workload_recipes: rows({
    id: is.text,
    purpose: is.text,
    strategy: is.text.describe("What to put into the URL."),
    advice: is.text,
    document: map(is.anything).describe(
      "A document to start from; put your own addresses into it.",
    ),
  }).describe("Documents for common workloads."),
}).meta({ id: "ConfigurationSchema", description: "How Custom profiles are written." });

/** Operations of Custom profiles. */
export const PROFILE_OPERATIONS = operations({ tag: "profiles", auth: ["management_token"] }, {
  listProfiles: {
    endpoint: "GET /api/v1/profiles",
    summary: "List the Custom profiles of the account",
    description: "Without addresses and header values.",
    answers: { 200: answer("The profiles.", profileList) },
  },
  getProfile: {
    endpoint: "GET /api/v1/profiles/{slug}",
    summary: "Read a Custom profile",
    description:
      "Without addresses and header values, with its revision and how each provider does.",
    params: profileParams,
    answers: { 200: answer("The profile.", profile) },
  },
  putProfile: {
    endpoint: "PUT /api/v1/profiles/{slug}",
    summary: "Write a Custom profile",
    description:
      "Every provider is asked for its chain id, height, a call and logs before the profile is " +
      "accepted; until then, and when it is refused, the revision before goes on serving. With " +
      "`If-Match: <revision>` only that revision is replaced. What changes takes effect before " +
      "the answer, without a failed request. With `keep_hidden` what is shown of a profile can " +
      "be sent back without its secrets.",
    params: profileParams,
    query: putProfileQuery,
    body: profileDocument,
    wrongBody: "invalid_config",
    maxBodyBytes: MAX_DOCUMENT_BYTES,
    answers: { 200: answer("The profile as it serves now; with `dry_run`, as it would.", profile) },
    faults: [
      ...["invalid_config", "unknown_chain", "provider_check_failed", "custom_access_required"],
      ...["profile_suspended", "profile_limit", "revision_conflict", "account_merged"],
    ],
  },
  listProfileRevisions: {
    endpoint: "GET /api/v1/profiles/{slug}/revisions",
    summary: "List the revisions of a Custom profile",
    description: `The latest ${MAX_REVISIONS}; older ones are forgotten, all with the profile.`,
    params: profileParams,
    answers: { 200: answer("The revisions.", revisionList) },
  },
  getProfileRevision: {
    endpoint: "GET /api/v1/profiles/{slug}/revisions/{revision}",
    summary: "Read a revision of a Custom profile",
    description:
      "Without addresses and header values: of earlier revisions they are not kept. To restore " +
      "one, write it with `keep_hidden`; what the present revision does not have as well is to " +
      "be sent again.",
    params: revisionParams,
    answers: { 200: answer("The revision.", revision) },
  },
  deleteProfile: {
    endpoint: "DELETE /api/v1/profiles/{slug}",
    summary: "Delete a Custom profile",
    description:
      "Its callers are served as `premium` from then on, with `x-svc-fallback: profile`. " +
      "`If-Match` as for writing.",
    params: profileParams,
    answers: { 204: answer("It is deleted.", null) },
    faults: ["revision_conflict"],
  },
  getConfigurationSchema: {
    endpoint: "GET /api/v1/configuration-schema",
    summary: "Read how Custom profiles are written",
    description:
      "JSON Schema of the document, limits, and documents for common workloads. Needs no " +
      "credential.",
    auth: ["none"],
    answers: { 200: answer("The schema.", configurationSchema) },
  },
} as const satisfies OperationRows);
