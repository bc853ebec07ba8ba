// Which profiles a key may use, and how each of them is served. Knows no price and no balance.
import { type ManagedSlug, type ServiceTier, serviceTiersOf } from "../../core/billing/access.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { AccountState, KeyContext } from "../keys/key-context.ts";

/** How a call of an account to a profile may be served, the best first. */
export function serviceTiersFor({ own }: AccountState, profile: string): readonly ServiceTier[] {
  return own?.servicesOf(profile) ?? serviceTiersOf(profile === "public" ? "public" : "premium");
}

/** Whether a Custom profile of the account serves this name now. */
export function isCustom({ own }: AccountState, profile: string): boolean {
  return own?.servicesOf(profile)?.[0]?.access === "custom";
}

/** Why a key may not name a profile; null = it may. */
export function mayName({ bounds, account }: KeyContext, profile: string): Fault | null {
  const { allowed } = bounds;
  const known = NAMES.has(profile) || account.own?.servicesOf(profile) !== undefined;
  if (!known)
    return fault("forbidden", "this profile is not one of the account's", {
      nextAction: nextProfiles(["premium", "public", ...(account.own?.slugs ?? [])]),
    });
  if (allowed === null || allowed.includes(profile)) return null;
  return fault("forbidden", "this key may not use this profile", {
    nextAction: nextProfiles(allowed),
  });
}

const NAMES: ReadonlySet<string> = new Set<ManagedSlug>(["premium", "public"]);

function nextProfiles(slugs: readonly string[]): string {
  return `use one of: ${slugs.join(", ")}`;
}
