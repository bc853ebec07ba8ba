// Keys as they are read: by id, by secret, by account. Knows keys and their accounts, not who may
// read them; `change.ts` changes them.
import { type Kysely, sql } from "kysely";
import type { Consistency } from "../../core/provider/profile.ts";
import { hashOf } from "../../secrets/secret.ts";
import { leasedN } from "../../shared/ledger/leased-credit.ts";
import type { Store } from "../../shared/store/store.ts";
import type { AccountKind, Tables } from "../../shared/store/tables.ts";
import { isWithin, type KeyProfiles, parseSlugs } from "./key-profiles.ts";

/** A key with what its account has. */
export interface KeyRecord extends KeyProfiles {
  readonly id: string;
  readonly accountId: string;
  readonly type: AccountKind;
  readonly name: string;
  readonly prefix: string;
  /** Which view of the chain its callers get; null = as the profile says. */
  readonly consistency: Consistency | null;
  readonly revision: number;
  readonly createdAtMs: number;
  readonly revokedAtMs: number | null;
  /** Until when the secret before the last rotation works; null = it does not. */
  readonly previousValidUntilMs: number | null;
  /** Nano-USD, credit leased to nodes included. */
  readonly balanceN: bigint;
  readonly fundedN: bigint;
}

/** Whose keys, and which of them: what a management token may see. */
export interface KeyScope {
  readonly accountId: string;
  /** Slugs; null = all. */
  readonly profiles: readonly string[] | null;
}

/** A key by its id, also a deleted one; null = there is none within the scope. */
export async function keyById(
  db: Kysely<Tables>,
  id: string,
  scope: KeyScope,
  nowMs: number,
): Promise<KeyRecord | null> {
  const row = await keyRows(db, nowMs)
    .where("api_key.id", "=", id)
    .where("api_key.account_id", "=", scope.accountId)
    .executeTakeFirst();
  const key = row === undefined ? null : keyOf(row);
  return key !== null && isWithin(key, scope.profiles) ? key : null;
}

/** The key of a secret; null = it opens nothing (any more). */
export async function keyBySecret(
  { db }: Pick<Store, "db">,
  secret: string,
  nowMs: number,
): Promise<KeyRecord | null> {
  const row = await rowsOfSecret(db, secret, nowMs)
    .where("api_key.revoked_at", "is", null)
    .where(({ eb, or }) =>
      or([
        eb("key_secret.valid_until", "is", null),
        eb("key_secret.valid_until", ">", BigInt(nowMs)),
      ]),
    )
    .executeTakeFirst();
  return row === undefined ? null : keyOf(row);
}

/**
 * The same of a secret that may have ended, or whose key was deleted: for money that was paid for
 * it.
 */
export async function endedKeyBySecret(
  { db }: Pick<Store, "db">,
  secret: string,
  nowMs: number,
): Promise<KeyRecord | null> {
  const row = await rowsOfSecret(db, secret, nowMs).executeTakeFirst();
  return row === undefined ? null : keyOf(row);
}

function rowsOfSecret(db: Kysely<Tables>, secret: string, nowMs: number) {
  return keyRows(db, nowMs)
    .innerJoin("key_secret", "key_secret.key_id", "api_key.id")
    .where("key_secret.secret_hash", "=", hashOf(secret));
}

/** A part of a list of keys. */
export interface KeyPage {
  readonly limit: number;
  /** The last id of the page before. */
  readonly after?: string | undefined;
}

/** Keys that work, oldest first; `next` null = these are the last ones. */
export async function listKeys(
  store: Store,
  scope: KeyScope,
  { limit, after }: KeyPage,
  nowMs: number,
): Promise<{ readonly keys: readonly KeyRecord[]; readonly next: string | null }> {
  const rows = await keyRows(store.db, nowMs)
    .where("api_key.account_id", "=", scope.accountId)
    .where("api_key.revoked_at", "is", null)
    .where("api_key.id", ">", after ?? "")
    .orderBy("api_key.id")
    .limit(limit + 1)
    .execute();
  const page = rows.slice(0, limit);
  const keys = page.map(keyOf).filter((key) => isWithin(key, scope.profiles));
  return { keys, next: rows.length > limit ? (page.at(-1)?.id ?? null) : null };
}

/** The ids of keys that a management token may see, also of deleted ones, the newest first. */
export async function visibleKeys(
  db: Kysely<Tables>,
  { accountId, profiles }: KeyScope,
  /** `id` null = all. */
  { id, limit }: { readonly id: string | null; readonly limit: number },
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom("api_key")
    .select(["id", "default_profile", "allowed_profiles"])
    .where("account_id", "=", accountId)
    .$if(id !== null, (query) => query.where("id", "=", id ?? ""))
    .orderBy("id", "desc")
    .limit(limit)
    .execute();
  return rows.flatMap((row) => {
    const allowedProfiles = parseSlugs(row.allowed_profiles);
    return isWithin({ defaultProfile: row.default_profile, allowedProfiles }, profiles)
      ? [row.id]
      : [];
  });
}

/** How many keys of an account work. */
export async function liveKeys(db: Kysely<Tables>, accountId: string): Promise<number> {
  const row = await db
    .selectFrom("api_key")
    .select(({ fn }) => fn.countAll<bigint>().as("keys"))
    .where("account_id", "=", accountId)
    .where("revoked_at", "is", null)
    .executeTakeFirst();
  return Number(row?.keys ?? 0n);
}

function keyRows(db: Kysely<Tables>, nowMs: number) {
  const previous = sql<bigint | null>`(
    select max(old_secret.valid_until) from key_secret as old_secret
    where old_secret.key_id = api_key.id and old_secret.valid_until > ${BigInt(nowMs)})`;
  return db
    .selectFrom("api_key")
    .innerJoin("account", "account.id", "api_key.account_id")
    .select([
      "api_key.id",
      "api_key.account_id",
      "api_key.name",
      "api_key.prefix",
      "api_key.default_profile",
      "api_key.allowed_profiles",
      "api_key.consistency",
      "api_key.revision",
      "api_key.created_at",
      "api_key.revoked_at",
      "account.kind",
      "account.balance_n",
      "account.funded_n",
    ])
    .select([leasedN.as("leased_n"), previous.as("previous_valid_until")]);
}

type KeyRow = Awaited<ReturnType<ReturnType<typeof keyRows>["execute"]>>[number];

function keyOf(row: KeyRow): KeyRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    type: row.kind,
    name: row.name,
    prefix: row.prefix,
    defaultProfile: row.default_profile,
    allowedProfiles: parseSlugs(row.allowed_profiles),
    consistency: row.consistency,
    revision: Number(row.revision),
    createdAtMs: Number(row.created_at),
    revokedAtMs: row.revoked_at === null ? null : Number(row.revoked_at),
    previousValidUntilMs:
      row.revoked_at !== null || row.previous_valid_until === null
        ? null
        : Number(row.previous_valid_until),
    balanceN: row.balance_n + row.leased_n,
    fundedN: row.funded_n,
  };
}
