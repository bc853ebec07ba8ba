// Usage for the operator: calls, compute units and money by method, by key and by hour. Reads what
// the flushes have written; knows no price.
import { type Kysely, type SelectQueryBuilder, sql } from "kysely";
import { usdText } from "../../core/billing/price.ts";
import type { Store } from "../../shared/store/store.ts";
import type { Tables, UsageHourTable } from "../../shared/store/tables.ts";
import { USED_COLUMNS } from "../credit/usage-buffer.ts";
import { timeText } from "../keys/key-fields.ts";
import { type KeyScope, visibleKeys } from "../keys/keys.ts";
import type { HourRange } from "./hour-range.ts";

/** An amount of usage. */
export interface Used {
  readonly calls: number;
  readonly cu: number;
  readonly chargeN: bigint;
  /** Of these, calls that were answered from the cache, and their compute units. */
  readonly cachedCalls: number;
  readonly cachedCu: number;
}

/** No usage. */
export const NOTHING_USED: Used = {
  calls: 0,
  cu: 0,
  chargeN: 0n,
  cachedCalls: 0,
  cachedCu: 0,
};

/** Two amounts of usage together. */
export function sumOf(left: Used, right: Used): Used {
  return {
    calls: left.calls + right.calls,
    cu: left.cu + right.cu,
    chargeN: left.chargeN + right.chargeN,
    cachedCalls: left.cachedCalls + right.cachedCalls,
    cachedCu: left.cachedCu + right.cachedCu,
  };
}

/** An amount of usage, as answers show it. */
export function usedView({ calls, cu, chargeN, cachedCalls, cachedCu }: Used) {
  const cached = { cached_calls: cachedCalls, cached_cu: cachedCu };
  return { calls, cu, usd: usdText(chargeN), ...cached };
}

/** Selects usage. */
export interface UsageQuery {
  readonly range: HourRange;
  /** Null = all. */
  readonly accountId: string | null;
}

const HOUR_MS = 3_600_000;
const HOURS_OF_DAY = 24;
const MAX_METHODS = 500;
const MAX_KEYS = 500;
/** Keys that are looked through for those which a restricted token may see. */
const MAX_LOOKED_THROUGH = 10_000;

/** The usage of some hours for the operator: that of a key before it was claimed apart. */
export function usageReport({ db }: Store, { range, accountId }: UsageQuery) {
  const { firstHour, endHour } = range;
  const rows = db
    .selectFrom("usage_hour")
    .where("usage_hour.hour", "<", BigInt(endHour))
    .$if(accountId !== null, (query) => query.where("usage_hour.account_id", "=", accountId ?? ""));
  const time = { first: firstHour, count: endHour - firstHour, hours: 1 };
  return reportOf(rows, time, "usage_hour.account_id");
}

/** Whose usage: of one key, or of the keys that a management token may see. */
export type UsageScope =
  | { readonly kind: "key"; readonly keyId: string }
  | { readonly kind: "account"; readonly scope: KeyScope };

/** The usage of the last days, the one of `nowMs` included. */
export async function accountUsage(
  { db }: Pick<Store, "db">,
  usage: UsageScope,
  { days, nowMs }: { readonly days: number; readonly nowMs: number },
) {
  const rows = await withinScope(db, db.selectFrom("usage_hour"), usage);
  const firstDay = Math.floor(nowMs / HOUR_MS / HOURS_OF_DAY) - days + 1;
  const time = { first: firstDay, count: days + 1, hours: HOURS_OF_DAY };
  const report = await reportOf(rows, time, "api_key.account_id");
  return { ...report, recent: await recentCharges(rows, nowMs) };
}

/** What was charged since the beginning of the hour before, and of the hour a day before. */
async function recentCharges(rows: UsageRows, nowMs: number) {
  const sums = await rows
    .select(recentSums(nowMs))
    .where("usage_hour.hour", ">=", BigInt(recentHours(nowMs).day))
    .executeTakeFirst();
  return recentView(sums, nowMs);
}

/** The hours in which the last hour and the last day begin: an hour just begun tells too little. */
export function recentHours(nowMs: number) {
  const hour = Math.floor(nowMs / HOUR_MS);
  return { hour: hour - 1, day: hour - HOURS_OF_DAY };
}

/** Sums over rows of the last day. */
export function recentSums(nowMs: number) {
  const { hour } = recentHours(nowMs);
  return [
    sql<bigint>`cast(coalesce(sum(case when usage_hour.hour >= ${sql.lit(hour)}
      then usage_hour.charge_n else 0 end), 0) as bigint)`.as("hour_n"),
    sql<bigint>`cast(coalesce(sum(usage_hour.charge_n), 0) as bigint)`.as("day_n"),
  ] as const;
}

/** These sums as answers show them; undefined = nothing was used. */
export function recentView(
  sums: { readonly hour_n: bigint; readonly day_n: bigint } | undefined,
  nowMs: number,
) {
  const { hour, day } = recentHours(nowMs);
  return {
    hour: { from: timeText(hour * HOUR_MS), usd: usdText(sums?.hour_n ?? 0n) },
    day: { from: timeText(day * HOUR_MS), usd: usdText(sums?.day_n ?? 0n) },
  };
}

type UsageRows = SelectQueryBuilder<Tables, "usage_hour", object>;

/** Parts of time of so many hours each. */
interface ReportedTime {
  readonly first: number;
  readonly count: number;
  readonly hours: number;
}

async function reportOf(
  all: UsageRows,
  { first, count, hours }: ReportedTime,
  accountId: "usage_hour.account_id" | "api_key.account_id",
) {
  const partMs = hours * HOUR_MS;
  const rows = all.where("usage_hour.hour", ">=", BigInt(first * hours));
  const part = sql<bigint>`cast(usage_hour.hour / ${sql.lit(hours)} as bigint)`;
  const byTime = await rows
    .select([part.as("part"), ...usageSums])
    .groupBy(part)
    .orderBy(part)
    .limit(count)
    .execute();
  const byMethod = await rows
    .select(["usage_hour.method", ...usageSums])
    .groupBy("usage_hour.method")
    .orderBy("cu", "desc")
    .orderBy("usage_hour.method")
    .limit(MAX_METHODS)
    .execute();
  return {
    from: timeText(first * partMs),
    to: timeText((first + count) * partMs),
    totals: usedView(byTime.map(usedOf).reduce(sumOf, NOTHING_USED)),
    /** Hours or days (UTC) in which anything was used, oldest first. */
    by_time: byTime.map((row) => ({
      at: timeText(Number(row.part) * partMs),
      ...usedView(usedOf(row)),
    })),
    /** Most compute units first. */
    by_method: byMethod.map((row) => ({ method: row.method, ...usedView(usedOf(row)) })),
    by_key: await usageByKey(rows, accountId),
  };
}

/** Most compute units first, deleted keys included. */
async function usageByKey(
  rows: UsageRows,
  accountId: "usage_hour.account_id" | "api_key.account_id",
) {
  const key = ["api_key.id", "api_key.name", "api_key.prefix", "api_key.revoked_at"] as const;
  const byKey = await rows
    .innerJoin("api_key", "api_key.id", "usage_hour.key_id")
    .select([...key, accountId, ...usageSums, sql<bigint>`max(usage_hour.hour)`.as("last_hour")])
    .groupBy([...key, accountId])
    .orderBy("cu", "desc")
    .orderBy("api_key.id")
    .limit(MAX_KEYS)
    .execute();
  return byKey.map((row) => ({
    key_id: row.id,
    account_id: row.account_id,
    name: row.name,
    key_prefix: row.prefix,
    revoked: row.revoked_at !== null,
    last_used: timeText(Number(row.last_hour) * HOUR_MS),
    ...usedView(usedOf(row)),
  }));
}

/** Sums as integers: PostgreSQL would make them decimals. */
export const usageSums = USED_COLUMNS.map((column) =>
  sql<bigint>`cast(sum(${sql.ref(`usage_hour.${column}`)}) as bigint)`.as(column),
);

/** Sums as an amount of usage; null and nothing at all = there was none. */
export function usedOf(
  row: Readonly<Partial<Record<(typeof USED_COLUMNS)[number], bigint | null>>>,
): Used {
  return {
    calls: Number(row.calls ?? 0n),
    cu: Number(row.cu ?? 0n),
    chargeN: row.charge_n ?? 0n,
    cachedCalls: Number(row.cached_calls ?? 0n),
    cachedCu: Number(row.cached_cu ?? 0n),
  };
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
  const visible = await visibleKeys(db, usage.scope, { id: null, limit: MAX_LOOKED_THROUGH });
  return rows.where("usage_hour.key_id", "in", [NO_KEY, ...visible]);
}

/** SQL has no empty list. */
const NO_KEY: UsageHourTable["key_id"] = "";
