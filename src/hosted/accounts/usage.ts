// Usage for the operator: calls, compute units and money by method, by key and by hour. Reads what
// the flushes have written; knows no price.
import { sql } from "kysely";
import type { Store } from "../../store/store.ts";

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

/** The usage of some hours. */
export interface UsageReport {
  readonly fromMs: number;
  readonly toMs: number;
  readonly byMethod: readonly (Used & { readonly method: string })[];
  readonly byKey: readonly (Used & {
    readonly keyId: string;
    readonly accountId: string;
    readonly name: string;
    readonly prefix: string;
  })[];
  readonly byHour: readonly (Used & { readonly hourMs: number })[];
}

/** Selects usage. */
export interface UsageQuery {
  /** The last hours, including the one of `nowMs`. */
  readonly hours: number;
  /** Null = all. */
  readonly accountId: string | null;
  readonly nowMs: number;
}

const HOUR_MS = 3_600_000;
const MAX_METHODS = 500;
const MAX_KEYS = 500;

/** The usage of the last hours. */
export async function usageReport(
  { db }: Store,
  { hours, accountId, nowMs }: UsageQuery,
): Promise<UsageReport> {
  const lastHour = Math.floor(nowMs / HOUR_MS);
  const firstHour = lastHour - hours + 1;
  const rows = db
    .selectFrom("usage_hour")
    .where("usage_hour.hour", ">=", BigInt(firstHour))
    .where("usage_hour.hour", "<=", BigInt(lastHour))
    .$if(accountId !== null, (query) => query.where("usage_hour.account_id", "=", accountId ?? ""));
  const byMethod = await rows
    .select(["method", ...usageSums])
    .groupBy("method")
    .orderBy("cu", "desc")
    .orderBy("method")
    .limit(MAX_METHODS)
    .execute();
  const byKey = await rows
    .innerJoin("api_key", "api_key.id", "usage_hour.key_id")
    .select([
      "usage_hour.key_id",
      "usage_hour.account_id",
      "api_key.name",
      "api_key.prefix",
      ...usageSums,
    ])
    .groupBy(["usage_hour.key_id", "usage_hour.account_id", "api_key.name", "api_key.prefix"])
    .orderBy("cu", "desc")
    .orderBy("usage_hour.key_id")
    .limit(MAX_KEYS)
    .execute();
  const byHour = await rows
    .select(["hour", ...usageSums])
    .groupBy("hour")
    .orderBy("hour")
    .limit(hours)
    .execute();
  return {
    fromMs: firstHour * HOUR_MS,
    toMs: (lastHour + 1) * HOUR_MS,
    byMethod: byMethod.map((row) => ({ ...usedOf(row), method: row.method })),
    byKey: byKey.map((row) => ({
      ...usedOf(row),
      keyId: row.key_id,
      accountId: row.account_id,
      name: row.name,
      prefix: row.prefix,
    })),
    byHour: byHour.map((row) => ({ ...usedOf(row), hourMs: Number(row.hour) * HOUR_MS })),
  };
}

/** The columns of usage that are added up. */
export const USED_COLUMNS = ["calls", "cu", "charge_n", "cached_calls", "cached_cu"] as const;

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
