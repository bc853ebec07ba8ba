// Handlers of Custom profiles: list, read, write after a live check of the providers, delete.
import { type ApiFault, apiFault } from "../../../core/faults/api-fault.ts";
import type { Profile } from "../../../core/provider/profile.ts";
import { isManagementTokenValid } from "../../../hosted/keys/management-token.ts";
import { customUntilMs } from "../../../hosted/profiles/custom-access.ts";
import {
  namedByChain,
  type ProfileDocument,
  RESERVED_SLUGS,
  readDocument,
} from "../../../hosted/profiles/document.ts";
import {
  deleteProfile,
  type ExpectedRevision,
  listProfiles,
  type ProfileParts,
  type ProfileRef,
  profileBySlug,
  profileRevision,
  profileRevisions,
  saveProfile,
  writeRefusal,
} from "../../../hosted/profiles/profiles.ts";
import { withSavedSecrets } from "../../../hosted/profiles/revisions.ts";
import type { ProviderCheck } from "../../../upstream/provider-check.ts";
import type { ApiCaller, ApiInput } from "../../contract/operation.ts";
import type { PROFILE_OPERATIONS } from "../../contract/profiles.ts";
import type { HandlerParts, StoreHandlers } from "../parts.ts";
import {
  configurationDocument,
  profileView,
  revisionView,
  type ShownFacts,
} from "./profiles-view.ts";
import { instant, NO_CONTENT, ok } from "./views.ts";

type AgentCaller = Extract<ApiCaller, { readonly kind: "agent" }>;

/** The handlers of Custom profiles. */
export const PROFILE_HANDLERS: StoreHandlers<keyof typeof PROFILE_OPERATIONS> = {
  async listProfiles({ caller }, parts) {
    const { accountId } = caller.agent;
    const facts = await factsOf(parts, accountId);
    const { openUntilMs } = facts;
    const shown = (await listProfiles(keptParts(parts), accountId)).filter(
      ({ slug }) => refOf(caller, slug) !== null,
    );
    return ok({
      profiles: shown.map((record) => profileView(record, facts)),
      custom_access: openUntilMs === null ? null : { until: instant(openUntilMs) },
      max_profiles: parts.custom.maxProfiles,
    });
  },
  async getProfile({ params, caller }, parts) {
    const ref = refOf(caller, params.slug);
    const record = ref === null ? null : await profileBySlug(keptParts(parts), ref);
    return record === null
      ? NO_SUCH
      : ok(profileView(record, await factsOf(parts, caller.agent.accountId)));
  },
  async putProfile({ params: { slug }, query, body, caller, ifMatch }, parts) {
    const { store, runtime, custom, profileChecks } = parts;
    const chains = parts.chains();
    const kept = keptParts(parts);
    const ref = refOf(caller, slug);
    if (ref === null)
      return apiFault("forbidden", "the management token is restricted to other profiles");
    if (RESERVED_SLUGS.has(slug))
      return apiFault("invalid_field", "this name is reserved", {
        details: ["slug"],
        nextAction: "choose another name",
      });
    const given = query.keep_hidden === "true" ? await withKeptSecrets(parts, ref, body) : body;
    const profile = readDocument({ chains, rules: custom.rules }, ref, given);
    if ("kind" in profile) return profile;
    const change = { ...ref, expected: expectedOf(ifMatch), nowMs: runtime.wallMs() };
    const refusal =
      (await writeRefusal(kept, change)) ??
      (await profileChecks.run(ref.accountId, () => checkRefusal(custom.check, profile)));
    if (refusal !== null) return refusal;
    if (!(await isManagementTokenValid(store, caller.agent.id, runtime.wallMs())))
      return apiFault(
        "unauthorized",
        "the management token ended while the providers were being asked",
      );
    const document: ProfileDocument = namedByChain(chains, given);
    const facts: ShownFacts = { ...ref, isOpen: true, status: () => "verified" };
    if (query.dry_run === "true") return ok(profileView({ slug, document, ...UNSAVED }, facts));
    const saved = await saveProfile(kept, { ...change, nowMs: runtime.wallMs() }, document);
    if (saved.kind !== "profile") return saved;
    await custom.changed(ref);
    return ok(profileView(saved, facts));
  },
  async deleteProfile({ params, caller, ifMatch }, parts) {
    const ref = refOf(caller, params.slug);
    if (ref === null) return NO_SUCH;
    const change = { ...ref, expected: expectedOf(ifMatch), nowMs: parts.runtime.wallMs() };
    const deleted = await deleteProfile(keptParts(parts), change);
    if (typeof deleted !== "boolean") return deleted;
    if (!deleted) return NO_SUCH;
    await parts.custom.changed(ref);
    return NO_CONTENT;
  },
  async listProfileRevisions({ params: { slug }, caller }, parts) {
    const ref = refOf(caller, slug);
    const found = ref === null ? null : await profileRevisions(keptParts(parts), ref);
    if (found === null) return NO_SUCH;
    const revisions = found.map(({ revision, savedAtMs }) => ({
      revision,
      saved_at: instant(savedAtMs),
    }));
    return ok({ slug, revisions });
  },
  async getProfileRevision({ params: { slug, revision }, caller }, parts) {
    const ref = refOf(caller, slug);
    const found =
      ref === null ? null : await profileRevision(keptParts(parts), ref, Number(revision));
    return found === null ? NO_REVISION : ok(revisionView(slug, found));
  },
  getConfigurationSchema: (_, parts) => ok(configurationDocument(parts)),
};

async function factsOf({ store, runtime, custom }: HandlerParts, accountId: string) {
  const untilMs = await customUntilMs(store.db, accountId);
  const openUntilMs = untilMs !== null && untilMs > runtime.wallMs() ? untilMs : null;
  return { accountId, openUntilMs, isOpen: openUntilMs !== null, status: custom.status };
}

const UNSAVED = { revision: null, createdAtMs: null, updatedAtMs: null };

/** The document, with what is hidden in it as it is saved. */
async function withKeptSecrets(
  parts: HandlerParts,
  ref: ProfileRef,
  document: ProfileDocument,
): Promise<ProfileDocument> {
  const saved = (await profileBySlug(keptParts(parts), ref))?.document ?? null;
  return saved === null ? document : withSavedSecrets(document, saved, parts.chains());
}

const MAX_SHOWN_FAILURES = 5;

/** Why the live check of the providers rejects a profile; null = it passes. */
async function checkRefusal(
  check: (profile: Profile) => Promise<readonly ProviderCheck[]>,
  profile: Profile,
): Promise<ApiFault<"provider_check_failed"> | null> {
  const failed = (await check(profile)).flatMap(({ chain, provider, result }) =>
    result.kind === "failed" ? [{ chain, provider, ...result }] : [],
  );
  if (failed.length === 0) return null;
  const shownFailures = failed
    .slice(0, MAX_SHOWN_FAILURES)
    .map(
      ({ provider, chain, transport, reason, said }) =>
        `${provider} on ${chain} over ${transport} (${reason}): ${said}`,
    );
  const details = failed.map(({ chain, provider }) => {
    const index = profile.chains.get(chain)?.providers.findIndex((row) => row.id === provider) ?? 0;
    return `chains.${chain}.providers[${index}]`;
  });
  return apiFault("provider_check_failed", shownFailures.join("; "), { details });
}

function keptParts({ store, custom }: HandlerParts): ProfileParts {
  return { store, sealer: custom.sealer, maxProfiles: custom.maxProfiles };
}

/** A profile of the account of the caller; null = its token may not see such a one. */
function refOf({ agent }: AgentCaller, slug: string): ProfileRef | null {
  const { accountId, profiles } = agent;
  return profiles === null || profiles.includes(slug) ? { accountId, slug } : null;
}

/** The revision in the `If-Match` header. */
function expectedOf(ifMatch: ApiInput["ifMatch"]): ExpectedRevision {
  if (ifMatch === null) return "none_named";
  if (ifMatch.trim() === "*") return "any";
  const revision = /^(?:W\/)?"?(\d{1,15})"?$/.exec(ifMatch.trim())?.[1];
  return revision === undefined ? "no_such" : Number(revision);
}

const NO_SUCH = apiFault("not_found", "the account has no Custom profile of this name", {
  nextAction: "GET /api/v1/profiles lists those that it has",
});
const NO_REVISION = apiFault("not_found", "the profile has no such revision, or no longer", {
  nextAction: "GET /api/v1/profiles/{slug}/revisions lists those that are known",
});
