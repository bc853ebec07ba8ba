// Rows of the contract: Custom profiles, and what the operator grants to accounts.
import { MAX_REVISIONS } from "../../hosted/profiles/revisions.ts";
import type { Operation } from "./operation.ts";
import { accountIdParams } from "./schemas/keys.ts";
import * as shape from "./schemas/profiles.ts";

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
const PROFILES = {
  ...NOTHING,
  tag: "profiles",
  servedBy: "api",
  auth: ["management_token"],
  idempotent: true,
} as const;
const OPERATOR = {
  ...NOTHING,
  method: "POST",
  tag: "operator",
  servedBy: "api",
  auth: ["operator"],
  params: accountIdParams,
} as const;

/** Operations of Custom profiles. */
export const PROFILE_OPERATIONS = {
  listProfiles: {
    ...PROFILES,
    method: "GET",
    path: "/api/v1/profiles",
    summary: "List the Custom profiles of the account",
    description: "Without addresses and header values.",
    answers: { 200: { description: "The profiles.", schema: shape.profileList } },
    faults: [...KNOWN, ...ANY],
  },
  getProfile: {
    ...PROFILES,
    method: "GET",
    path: "/api/v1/profiles/{slug}",
    summary: "Read a Custom profile",
    description:
      "Without addresses and header values, with its revision and how each provider does.",
    params: shape.profileParams,
    answers: { 200: { description: "The profile.", schema: shape.profile } },
    faults: [...KNOWN, "not_found", "invalid_field", ...ANY],
  },
  putProfile: {
    ...PROFILES,
    method: "PUT",
    path: "/api/v1/profiles/{slug}",
    summary: "Write a Custom profile",
    description:
      "Every provider is asked for its chain id, height, a call and logs before the profile is " +
      "accepted; until then, and when it is refused, the revision before goes on serving. With " +
      "`If-Match: <revision>` only that revision is replaced. What changes takes effect before " +
      "the answer, without a failed request. With `keep_hidden` what is shown of a profile can " +
      "be sent back without its secrets.",
    params: shape.profileParams,
    query: shape.putProfileQuery,
    body: shape.profileDocument,
    wrongBody: "invalid_config",
    maxBodyBytes: shape.MAX_DOCUMENT_BYTES,
    answers: {
      200: {
        description: "The profile as it serves now; with `dry_run`, as it would.",
        schema: shape.profile,
      },
    },
    faults: [
      ...BODY,
      ...KNOWN,
      ...[
        "invalid_config",
        "unknown_chain",
        "provider_check_failed",
        "forbidden",
        "custom_access_required",
      ],
      ...["profile_suspended", "profile_limit", "revision_conflict", "account_merged"],
      ...ANY,
    ],
  },
  listProfileRevisions: {
    ...PROFILES,
    method: "GET",
    path: "/api/v1/profiles/{slug}/revisions",
    summary: "List the revisions of a Custom profile",
    description: `The latest ${MAX_REVISIONS}; older ones are forgotten, all with the profile.`,
    params: shape.profileParams,
    answers: { 200: { description: "The revisions.", schema: shape.revisionList } },
    faults: [...KNOWN, "not_found", "invalid_field", ...ANY],
  },
  getProfileRevision: {
    ...PROFILES,
    method: "GET",
    path: "/api/v1/profiles/{slug}/revisions/{revision}",
    summary: "Read a revision of a Custom profile",
    description:
      "Without addresses and header values: of earlier revisions they are not kept. To restore " +
      "one, write it with `keep_hidden`; what the present revision does not have as well is to " +
      "be sent again.",
    params: shape.revisionParams,
    answers: { 200: { description: "The revision.", schema: shape.revision } },
    faults: [...KNOWN, "not_found", "invalid_field", ...ANY],
  },
  deleteProfile: {
    ...PROFILES,
    method: "DELETE",
    path: "/api/v1/profiles/{slug}",
    summary: "Delete a Custom profile",
    description:
      "Its callers are served as `premium` from then on, with `x-svc-fallback: profile`. " +
      "`If-Match` as for writing.",
    params: shape.profileParams,
    answers: { 204: { description: "It is deleted.", schema: null } },
    faults: [...KNOWN, "forbidden", "not_found", "invalid_field", "revision_conflict", ...ANY],
  },
  getConfigurationSchema: {
    ...PROFILES,
    method: "GET",
    path: "/api/v1/configuration-schema",
    summary: "Read how Custom profiles are written",
    description:
      "JSON Schema of the document, limits, and documents for common workloads. Needs no " +
      "credential.",
    auth: ["none"],
    answers: { 200: { description: "The schema.", schema: shape.configurationSchema } },
    faults: ANY,
  },
  grantCustomAccess: {
    ...OPERATOR,
    path: "/api/v1/operator/accounts/{id}/custom-access",
    summary: "Give an account days of Custom access",
    description:
      "For the operator of the instance. With a `reference`, repeating it gives nothing more.",
    body: shape.customAccessRequest,
    answers: { 200: { description: "The time that was given.", schema: shape.customAccess } },
    faults: [...BODY, "unauthorized", "forbidden", "not_found", "account_merged", ...ANY],
    idempotent: false,
  },
  creditAccount: {
    ...OPERATOR,
    path: "/api/v1/operator/accounts/{id}/credit",
    summary: "Credit an account with money that came in",
    description: "For the operator of the instance. Once for each `reference`.",
    body: shape.creditRequest,
    answers: { 200: { description: "The account's balance.", schema: shape.credited } },
    faults: [...BODY, "unauthorized", "forbidden", "not_found", "account_merged", ...ANY],
    idempotent: true,
  },
} as const satisfies Readonly<Record<string, Operation>>;
