// Custom access: an account's Custom profiles by name, and until when it may use them. Read from
// the store for the hot path; extended here. Knows no profile document.

import { customServiceTiers, LAPSED, type ServiceTier } from "../../core/billing/access.ts";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import { recordChange } from "../../shared/changes/change-log.ts";
import { lockAccounts, type Tx } from "../../shared/ledger/ledger.ts";
import { mergedInto } from "../../shared/ledger/merged-accounts.ts";
import type { Store } from "../../shared/store/store.ts";

/** The Custom profiles of an account on the hot path. Immutable; replaced after a change. */
export interface OwnProfiles {
  /** Slugs of existing profiles. */
  readonly slugs: readonly string[];
  /**
   * The service tiers of calls to a profile; undefined = the account never had a profile with this
   * slug.
   */
  servicesOf(slug: string): readonly ServiceTier[] | undefined;
}

/** Number of deleted profiles whose names are kept; older ones are forgotten. */
export const MAX_DELETED = 100;

/**
 * Reads the Custom profiles of an account; null = it never had one. `wallMs` is the current time.
 */
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
      return own === null || !hasAccess ? LAPSED : own;
    },
  };
}

/**
 * Until when an account has Custom access, in wall-clock milliseconds; null = it never had access.
 */
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

/** Whether a grant of the operator covers this moment, so that the account need not buy days. */
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

/** A grant of days. */
export interface CustomDays {
  readonly accountId: string;
  readonly days: number;
  /** Idempotency key of the grant. */
  readonly source: string;
}

/** The period added by a grant, or earlier by the same grant. */
export interface CustomTime {
  readonly kind: "custom_time";
  readonly fromMs: number;
  readonly untilMs: number;
}

/** Adds days of Custom access, from now or from the end of the current access. */
export function grantCustomAccess(
  store: Store,
  days: CustomDays,
  nowMs: number,
): Promise<CustomTime | ApiFault<"not_found" | "account_merged">> {
  return store.transaction((tx) => grantCustomAccessIn(tx, days, nowMs));
}

/** Adds days within the caller's transaction. */
export async function grantCustomAccessIn(
  tx: Tx,
  { accountId, days, source }: CustomDays,
  nowMs: number,
): Promise<CustomTime | ApiFault<"not_found" | "account_merged">> {
  // Serialises concurrent grants, so that their periods do not overlap.
  await lockAccounts(tx, accountId);
  const target = await mergedInto(tx, accountId);
  if (target === undefined) return apiFault("not_found", "no account has this id");
  if (target !== null) return apiFault("account_merged", "the account was merged into another one");
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
  await recordChange(tx, { topic: "account", ref: accountId });
  return { kind: "custom_time", fromMs, untilMs };
}

const DAY_MS = 86_400_000;
/** Far more rows than an account can have. */
const MAX_ROWS = 10_000;
