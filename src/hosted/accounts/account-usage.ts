// Usage as the holder of a key or of a management token sees it: by day, by method and by key.
// Reads what the flushes have written; knows no price.
import type { Kysely, SelectQueryBuilder } from "kysely";
import { sql } from "kysely";
import type { Store } from "../../store/store.ts";
import type { Tables, UsageHourTable } from "../../store/tables.ts";
import { isWithin, parseSlugs } from "../keys/key-profiles.ts";
import type { KeyScope } from "../keys/keys.ts";
import { type Used, usageSums, usedOf } from "./usage.ts";

/** Whose usage: of one key, or of the keys that a management token may see. */
export type UsageScope =
  | { readonly kind: "key"; readonly keyId: string }
  | { readonly kind: "account"; readonly scope: KeyScope };

/** The usage of some days, in UTC. */
export interface AccountUsage {
  readonly fromMs: number;
  /** Days in which anything was used, oldest first. */
  readonly byDay: readonly (Used & { readonly dayMs: number })[];
  /** Most compute units first. */
  readonly byMethod: readonly (Used & { readonly method: string })[];
  /** Most compute units first, deleted keys included. */
  readonly byKey: readonly (Used & {
    readonly keyId: string;
    readonly name: string;
    readonly prefix: string;
    readonly isRevoked: boolean;
  })[];
}

const DAY_MS = 86_400_000;
const HOURS_OF_DAY = 24;
const MAX_METHODS = 500;
const MAX_KEYS = 500;
/** Keys that are looked through for those which a restricted token may see. */
const MAX_LOOKED_THROUGH = 10_000;

/** The usage of the last days, the one of `nowMs` included. */
export async function accountUsage(
  { db }: Pick<Store, "db">,
  usage: UsageScope,
  { days, nowMs }: { readonly days: number; readonly nowMs: number },
): Promise<AccountUsage> {
  const firstDay = Math.floor(nowMs / DAY_MS) - days + 1;
  const all = db
    .selectFrom("usage_hour")
    .where("usage_hour.hour", ">=", BigInt(firstDay * HOURS_OF_DAY));
  const rows = await withinScope(db, all, usage);
  const day = sql<bigint>`cast(usage_hour.hour / ${sql.lit(HOURS_OF_DAY)} as bigint)`;
  const byDay = await rows
    .select([day.as("day"), ...usageSums])
    .groupBy(day)
    .orderBy(day)
    .limit(days + 1)
    .execute();
  const byMethod = await rows
    .select(["usage_hour.method", ...usageSums])
    .groupBy("usage_hour.method")
    .orderBy("cu", "desc")
    .orderBy("usage_hour.method")
    .limit(MAX_METHODS)
    .execute();
  return {
    fromMs: firstDay * DAY_MS,
    byDay: byDay.map((row) => ({ ...usedOf(row), dayMs: Number(row.day) * DAY_MS })),
    byMethod: byMethod.map((row) => ({ ...usedOf(row), method: row.method })),
    byKey: await usageByKey(rows),
  };
}

type UsageRows = SelectQueryBuilder<Tables, "usage_hour", object>;

async function usageByKey(rows: UsageRows): Promise<AccountUsage["byKey"]> {
  const byKey = await rows
    .innerJoin("api_key", "api_key.id", "usage_hour.key_id")
    .select(["api_key.id", "api_key.name", "api_key.prefix", "api_key.revoked_at", ...usageSums])
    .groupBy(["api_key.id", "api_key.name", "api_key.prefix", "api_key.revoked_at"])
    .orderBy("cu", "desc")
    .orderBy("api_key.id")
    .limit(MAX_KEYS)
    .execute();
  return byKey.map((row) => ({
    ...usedOf(row),
    keyId: row.id,
    name: row.name,
    prefix: row.prefix,
    isRevoked: row.revoked_at !== null,
  }));
}

/** By key and not by account: what a key used before it was claimed is its owner's to see. */
async function withinScope(
  db: Kysely<Tables>,
  rows: UsageRows,
  usage: UsageScope,
): Promise<UsageRows> {
  if (usage.kind === "key") return rows.where("usage_hour.key_id", "=", usage.keyId);
  const { accountId, profiles } = usage.scope;
  const keys = db.selectFrom("api_key").where("account_id", "=", accountId);
  if (profiles === null) return rows.where("usage_hour.key_id", "in", keys.select("id"));
  const looked = await keys
    .select(["id", "default_profile", "allowed_profiles"])
    .orderBy("id")
    .limit(MAX_LOOKED_THROUGH)
    .execute();
  const visible = looked.flatMap((row) => {
    const key = {
      defaultProfile: row.default_profile,
      allowedProfiles: parseSlugs(row.allowed_profiles),
    };
    return isWithin(key, profiles) ? [row.id] : [];
  });
  return rows.where("usage_hour.key_id", "in", [NO_KEY, ...visible]);
}

/** SQL has no empty list. */
const NO_KEY: UsageHourTable["key_id"] = "";
