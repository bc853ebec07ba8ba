// The profiles of a key: what was requested, within the profiles of its account and of the token
// that requests it. Pure; knows no table.
import type { ManagedSlug } from "../../core/billing/access.ts";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";

/** The profile of a key that names none. */
export const DEFAULT_PROFILE = "premium" satisfies ManagedSlug;

/** The profiles of a key. */
export interface KeyProfiles {
  /** Null = `premium`. */
  readonly defaultProfile: string | null;
  /** Null = every profile of its account. */
  readonly allowedProfiles: readonly string[] | null;
}

/** The requested profiles; undefined = unchanged. */
export type ProfileChoice = { readonly [K in keyof KeyProfiles]?: KeyProfiles[K] | undefined };

/** The profiles that may be requested. */
export interface ProfileScope {
  /** Slugs that exist for the account. */
  readonly known: readonly string[];
  /** Slugs that the token is restricted to; null = all. */
  readonly restriction: readonly string[] | null;
}

/** The profiles of a key without a choice. */
export const EVERY_PROFILE: KeyProfiles = { defaultProfile: null, allowedProfiles: null };

/** The profiles of a key after a choice, or what is wrong with it. */
export function chosenProfiles(
  current: KeyProfiles,
  choice: ProfileChoice,
  { known, restriction }: ProfileScope,
): KeyProfiles | ApiFault<"invalid_field"> {
  const allowed = restriction === null ? known : known.filter((slug) => restriction.includes(slug));
  const unknown = (choice.allowedProfiles ?? []).flatMap((slug, i) =>
    allowed.includes(slug) ? [] : [`allowed_profiles[${i}]`],
  );
  if (choice.defaultProfile != null && !allowed.includes(choice.defaultProfile))
    unknown.push("default_profile");
  if (unknown.length > 0)
    return apiFault(
      "invalid_field",
      `no profile of the account has this slug: ${unknown.join(", ")}`,
      advice(unknown, allowed),
    );
  const requested =
    choice.allowedProfiles === undefined ? current.allowedProfiles : choice.allowedProfiles;
  const widest = restriction === null ? null : allowed;
  const allowedProfiles = requested === null ? widest : [...new Set(requested)];
  const defaultProfile =
    choice.defaultProfile === undefined ? current.defaultProfile : choice.defaultProfile;
  if (allowedProfiles === null || allowedProfiles.includes(defaultProfile ?? DEFAULT_PROFILE))
    return { defaultProfile, allowedProfiles };
  if (choice.defaultProfile != null)
    return apiFault(
      "invalid_field",
      "default_profile is not one of allowed_profiles",
      advice(["default_profile"], allowedProfiles),
    );
  return { defaultProfile: allowedProfiles[0] ?? null, allowedProfiles };
}

/** Whether a token may see a key: everything that the key reaches is within its restriction. */
export function isWithin(
  { defaultProfile, allowedProfiles }: KeyProfiles,
  restriction: readonly string[] | null,
): boolean {
  if (restriction === null) return true;
  if (allowedProfiles === null) return false;
  return [defaultProfile ?? DEFAULT_PROFILE, ...allowedProfiles].every((slug) =>
    restriction.includes(slug),
  );
}

/** A list of slugs as a column keeps it. */
export function slugsText(slugs: readonly string[] | null): string | null {
  return slugs === null ? null : JSON.stringify(slugs);
}

/** A list of slugs from its column. */
export function parseSlugs(text: string | null): readonly string[] | null {
  return text === null ? null : (JSON.parse(text) as readonly string[]);
}

function advice(details: readonly string[], allowed: readonly string[]) {
  return {
    details,
    nextAction: allowed.length === 0 ? "leave the field out" : `use one of: ${allowed.join(", ")}`,
  };
}
