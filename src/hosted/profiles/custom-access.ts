// Custom access: the names of an account's Custom profiles, and until when it may use them. Read
// from the store for the hot path; days are added here. Knows no document of a profile.

import {
  customServiceTiers,
  lapsedServiceTiers,
  type ServiceTier,
} from "../../core/billing/access.ts";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import { lockAccount, type Tx } from "../../ledger/ledger.ts";
import type { Store } from "../../store/store.ts";

/** The Custom profiles of an account, as the hot path sees them. Replaced when they change. */
export interface OwnProfiles {
  /** Slugs that exist now. */
  readonly slugs: readonly string[];
  /** How a call to a profile is served; undefined = the account never had one of this slug. */
  servicesOf(slug: string): readonly ServiceTier[] | undefined;
}

/** Deleted profiles that are still known by name; those deleted before are forgotten. */
export const MAX_DELETED = 100;

/** Reads what an account has; null = it never had a Custom profile. `wallMs` = the clock. */
export async function ownProfiles(
  { db }: Pick<Store, "db">,
  accountId: string,
  wallMs: () => number,
): Promise<OwnProfiles | null> {
  const rows = await db
    .selectFrom("profile")
    .select(["slug", "sealed"])
    .where("account_id", "=", accountId)
    .limit(MAX_ROWS)
    .execute();
  if (rows.length === 0) return null;
  const untilMs = await customUntilMs(db, accountId);
  const services = new Map(
    rows.map(({ slug, sealed }) => [slug, sealed === null ? null : customServiceTiers(slug)]),
  );
  return {
    slugs: rows.flatMap(({ slug, sealed }) => (sealed === null ? [] : [slug])),
    servicesOf(slug) {
      const own = services.get(slug);
      if (own === undefined) return undefined;
      const hasAccess = untilMs !== null && wallMs() < untilMs;
      return own === null || !hasAccess ? lapsedServiceTiers() : own;
    },
  };
}

/** Until when an account has Custom access, on the wall clock; null = it never had. */
export async function customUntilMs(
  db: Pick<Store["db"], "selectFrom">,
  accountId: string,
): Promise<number | null> {
  const row = await db
    .selectFrom("custom_access")
    .select((eb) => eb.fn.max("until_at").as("until_at"))
    .where("account_id", "=", accountId)
    .executeTakeFirst();
  return row?.until_at == null ? null : Number(row.until_at);
}

/**
 * Whether the operator has given an account Custom access that covers this moment: it need not buy
 * days.
 */
export async function isSubscribed(
  db: Pick<Store["db"], "selectFrom">,
  accountId: string,
  nowMs: number,
): Promise<boolean> {
  const now = BigInt(Math.floor(nowMs));
  const row = await db
    .selectFrom("custom_access")
    .select("source")
    .where("account_id", "=", accountId)
    .where("source", "like", "operator%")
    .where("from_at", "<=", now)
    .where("until_at", ">", now)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Days to give. */
export interface CustomDays {
  readonly accountId: string;
  readonly days: number;
  /** What makes a repetition the same. */
  readonly source: string;
}

/** What days were given, or had been given before from the same source. */
export interface CustomTime {
  readonly kind: "custom_time";
  readonly fromMs: number;
  readonly untilMs: number;
}

/** Gives an account days of Custom access, from now or after those that it has. */
export function grantCustomAccess(
  store: Store,
  days: CustomDays,
  nowMs: number,
): Promise<CustomTime | ApiFault<"not_found" | "account_merged">> {
  return store.transaction((tx) => grantCustomAccessIn(tx, days, nowMs));
}

/** Gives days within a transaction of the caller. */
export async function grantCustomAccessIn(
  tx: Tx,
  { accountId, days, source }: CustomDays,
  nowMs: number,
): Promise<CustomTime | ApiFault<"not_found" | "account_merged">> {
  // Two that are given at once wait for each other here, so that they follow each other.
  await lockAccount(tx, accountId);
  const account = await tx
    .selectFrom("account")
    .select("merged_into")
    .where("id", "=", accountId)
    .executeTakeFirst();
  if (account === undefined) return apiFault("not_found", "no account has this id");
  if (account.merged_into !== null)
    return apiFault("account_merged", "the account was merged into another one");
  const before = await tx
    .selectFrom("custom_access")
    .selectAll()
    .where("account_id", "=", accountId)
    .where("source", "=", source)
    .executeTakeFirst();
  if (before !== undefined)
    return {
      kind: "custom_time",
      fromMs: Number(before.from_at),
      untilMs: Number(before.until_at),
    };
  const fromMs = Math.max(Math.floor(nowMs), (await customUntilMs(tx, accountId)) ?? 0);
  const untilMs = fromMs + days * DAY_MS;
  await tx
    .insertInto("custom_access")
    .values({ account_id: accountId, source, from_at: BigInt(fromMs), until_at: BigInt(untilMs) })
    .execute();
  return { kind: "custom_time", fromMs, untilMs };
}

const DAY_MS = 86_400_000;
/** Far more than an account can have. */
const MAX_ROWS = 10_000;
