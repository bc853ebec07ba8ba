// How a caller with a key may be served: which funding sources may pay for a call, in which order,
// and with which access and rate limit. Knows no balance and no clock.

/** Where a call is served: the managed pools or a Custom profile. */
export type Access = "premium" | "public" | "custom";

/** Why a call is served elsewhere than where it asked to be. */
export type Fallback = "payment" | "free" | "profile";

/**
 * What may pay for a call. `balance`: credit. `payment`: the grace period after paid credit ran
 * out. `free`: the free allowance. `custom`: days of Custom access.
 */
export type FundingSource = "balance" | "payment" | "free" | "custom";

/** The rate limit that applies: the name shown to the caller, and its size. */
export interface RateLimit {
  /** `managed`, `public`, or the slug of a Custom profile. */
  readonly name: string;
  readonly size: "managed" | "reduced" | "public" | "custom";
}

/** How a call is served if a funding source pays for it. */
export interface ServiceTier {
  readonly access: Access;
  readonly fallback: Fallback | null;
  /** Slug of the profile that serves. */
  readonly profile: string;
  readonly rateLimit: RateLimit;
  readonly funding: FundingSource;
}

/** The managed profiles: available to everyone, so their names are reserved. */
export type ManagedSlug = "premium" | "public";

/**
 * The ways to serve a call to a managed profile, best first. Calls to `public` use the free
 * allowance before credit.
 */
export function serviceTiersOf(named: ManagedSlug): readonly ServiceTier[] {
  return named === "premium" ? PREMIUM : PUBLIC;
}

/**
 * How a call to a Custom profile is served while its account has Custom access: by that profile
 * only, and uncharged.
 */
export function customServiceTiers(slug: string): readonly ServiceTier[] {
  return [
    {
      access: "custom",
      fallback: null,
      profile: slug,
      rateLimit: { name: slug, size: "custom" },
      funding: "custom",
    },
  ];
}

const reduced: RateLimit = { name: "managed", size: "reduced" };
/** A managed profile serves under its own name. */
const managed = (
  access: ManagedSlug,
  fallback: Fallback | null,
  funding: FundingSource,
  rateLimit: RateLimit,
): ServiceTier => ({ access, fallback, profile: access, rateLimit, funding });

const PREMIUM: readonly ServiceTier[] = [
  managed("premium", null, "balance", { name: "managed", size: "managed" }),
  managed("public", "payment", "payment", reduced),
  managed("public", "free", "free", reduced),
];
const PUBLIC: readonly ServiceTier[] = (["free", "balance", "payment"] as const).map((funding) =>
  managed("public", null, funding, { name: "public", size: "public" }),
);

/**
 * How a call to a Custom profile is served after the profile was deleted or the Custom access of
 * its account ended: as `premium`, reported to the caller as a fallback.
 */
export const LAPSED: readonly ServiceTier[] = PREMIUM.map((tier) =>
  tier.fallback === null ? { ...tier, fallback: "profile" } : tier,
);
