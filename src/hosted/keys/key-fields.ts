// The fields of a key that callers set and see: the shape of each, its column, and how it is shown.
// The contract of the API and its answers derive from here. Knows no operation and no secret.
import { z } from "zod";
import type { ApiFault } from "../../core/faults/api-fault.ts";
import { NO_CONTROLS } from "../../core/fields.ts";
import { CONSISTENCIES, type Consistency } from "../../core/provider/profile.ts";
import type { ApiKeyTable } from "../../shared/store/tables.ts";
import {
  chosenProfiles,
  DEFAULT_PROFILE,
  EVERY_PROFILE,
  type KeyProfiles,
  type ProfileScope,
  slugsText,
} from "./key-profiles.ts";
import type { KeyRecord } from "./keys.ts";

/** A time in answers. */
export const instant = z.iso.datetime().meta({
  id: "Instant",
  description: "A date and time in UTC, ISO 8601.",
  examples: ["2026-01-31T12:00:00.000Z"],
});
/** The slug of a profile in answers. */
export const slug = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/);
/** Ids of keys and of accounts. */
export const keyId = z.string().regex(/^key_[0-9a-z]{20}$/);
export const accountId = z.string().regex(/^acc_[0-9a-z]{20}$/);
/** A label that a caller gives. */
export const keyName = z
  .string()
  .min(1)
  .max(100)
  .regex(NO_CONTROLS)
  .describe("A label, to tell keys apart: no control characters.");

const profileName = z.string().min(1).max(63);
const consistency = z.enum(CONSISTENCIES);

/** The fields that callers set, at creation and later. */
export const keyInput = z.strictObject({
  name: keyName.optional(),
  default_profile: profileName
    .nullable()
    .describe(
      "Profile that serves requests that name none; null = `premium`, or the first allowed one.",
    )
    .optional(),
  allowed_profiles: z
    .array(profileName)
    .min(1)
    .max(50)
    .nullable()
    .describe("Profiles that the key may use; null = every profile of the account.")
    .optional(),
  consistency: consistency
    .nullable()
    .describe(
      "Which view of the chain its calls get where they do not say. `tip` = one newest block for " +
        "all providers; `caller` = as well, none older than in an answer before; `off` = as the " +
        "provider sees it; null = as the profile says.",
    )
    .optional(),
});

/** The fields that callers see. */
export const shownFields = z.object({
  id: keyId,
  account_id: accountId.describe("Who pays."),
  name: z.string(),
  type: z
    .enum(["anonymous", "account"])
    .describe("`anonymous` = nobody but the holder of the key owns its account."),
  key_prefix: z.string().describe("How the newest secret begins."),
  profile: slug.describe("Profile that serves requests that name none."),
  default_profile: slug.nullable().describe("The same as it was set; null = `premium`."),
  allowed_profiles: z
    .array(slug)
    .nullable()
    .describe("Profiles that the key may use; null = every profile of the account."),
  consistency: consistency
    .nullable()
    .describe("Which view of the chain its calls get; null = as the profile says."),
  revision: z.int().min(0).describe("Counts changes of the key."),
  created_at: instant,
  revoked_at: instant.nullable().describe("When it was deleted; null = it works."),
  previous_valid_until: instant
    .nullable()
    .describe("Until when the secret before the last rotation works; null = it does not."),
});

/** A key as callers see it, without what belongs to its account. */
export function shownKey(key: KeyRecord): z.output<typeof shownFields> {
  return {
    id: key.id,
    account_id: key.accountId,
    name: key.name,
    type: key.type,
    key_prefix: key.prefix,
    profile: key.defaultProfile ?? DEFAULT_PROFILE,
    default_profile: key.defaultProfile,
    allowed_profiles: key.allowedProfiles === null ? null : [...key.allowedProfiles],
    consistency: key.consistency,
    revision: key.revision,
    created_at: timeText(key.createdAtMs),
    revoked_at: key.revokedAtMs === null ? null : timeText(key.revokedAtMs),
    previous_valid_until:
      key.previousValidUntilMs === null ? null : timeText(key.previousValidUntilMs),
  };
}

/** What callers have set of a key. */
export interface ChosenFields {
  readonly name: string;
  readonly profiles: KeyProfiles;
  readonly consistency: Consistency | null;
}

/** A new key of which nothing was chosen. */
export const UNCHOSEN: ChosenFields = { name: "", profiles: EVERY_PROFILE, consistency: null };

/** What is set after a caller chose; a field that was left out stays. */
export function choose(
  current: ChosenFields,
  input: z.output<typeof keyInput>,
  scope: ProfileScope,
): ChosenFields | ApiFault<"invalid_field"> {
  const profiles = chosenProfiles(
    current.profiles,
    { defaultProfile: input.default_profile, allowedProfiles: input.allowed_profiles },
    scope,
  );
  if ("kind" in profiles) return profiles;
  const consistency = input.consistency === undefined ? current.consistency : input.consistency;
  return { name: input.name ?? current.name, profiles, consistency };
}

/** The columns of what callers set. */
export function columnsOf({ name, profiles, consistency }: ChosenFields): ChosenColumns {
  return {
    name,
    default_profile: profiles.defaultProfile,
    allowed_profiles: slugsText(profiles.allowedProfiles),
    consistency,
  };
}

type ChosenColumns = Pick<
  ApiKeyTable,
  "name" | "default_profile" | "allowed_profiles" | "consistency"
>;

/** A time in answers. */
export function timeText(wallMs: number): string {
  return new Date(wallMs).toISOString();
}
