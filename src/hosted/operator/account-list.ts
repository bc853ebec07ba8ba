// Accounts and their keys for the operator, by pages: what they spent, have and bought. Reads what
// the flushes have written; changes nothing.
import { sql } from "kysely";
import { usdText } from "../../core/billing/price.ts";
import { leasedN } from "../../shared/ledger/leased-credit.ts";
import type { Store } from "../../shared/store/store.ts";
import { type HourRange, rangeView } from "../accounts/hour-range.ts";
import {
  recentHours,
  recentSums,
  recentView,
  usageSums,
  usedOf,
  usedView,
} from "../accounts/usage.ts";
import { USED_COLUMNS } from "../credit/usage-buffer.ts";
import { timeText } from "../keys/key-fields.ts";

/** What accounts are ordered by, the most first. */
export type AccountOrder = "spend" | "balance" | "created";

/** Selects accounts. */
export interface AccountListQuery {
  /** Of which usage is added up. */
  readonly range: HourRange;
  readonly nowMs: number;
  readonly sort: AccountOrder;
  /** The beginning of an id of an account or key, or of a key's name or prefix; null = all. */
  readonly search: string | null;
  readonly limit: number;
  /** `next` of the page before; null = the first page. */
  readonly after: string | null;
}

/** Reads a page of accounts, as the operator is shown them. */
export async function listAccounts(
  { db }: Store,
  { range, nowMs, sort, search, limit, after }: AccountListQuery,
) {
  const used = db
    .selectFrom("usage_hour")
    .where("hour", ">=", BigInt(range.firstHour))
    .where("hour", "<", BigInt(range.endHour))
    .groupBy("account_id")
    .select(["account_id", ...usageSums]);
  const value = ORDERS[sort];
  const cursor = after === null ? null : parseAccountCursor(after);
  const rows = await db
    .selectFrom("account")
    .leftJoin(used.as("used"), "used.account_id", "account.id")
    .select(["account.id", "kind", "balance_n", "funded_n", "merged_into", "created_at"])
    .select(USED)
    .select([leasedN.as("leased_n"), keyCount.as("keys"), value.as("value")])
    .$if(search !== null, (query) => query.where(matching(search ?? "")))
    .$if(cursor !== null, (query) => query.where(beyond(value, cursor ?? FIRST)))
    .orderBy("value", "desc")
    .orderBy("account.id")
    .limit(limit + 1)
    .execute();
  const page = rows.slice(0, limit);
  const last = rows.length > limit ? page.at(-1) : undefined;
  const recentOf = await recentByAccount(db, page, nowMs);
  return {
    ...rangeView(range),
    accounts: page.map((row) => ({
      id: row.id,
      kind: row.kind,
      // With credit that is leased to nodes.
      balance_usd: usdText(row.balance_n + row.leased_n),
      funded_usd: usdText(row.funded_n),
      keys: Number(row.keys),
      ...spentOf(row),
      recent: recentView(recentOf.get(row.id), nowMs),
      created_at: timeText(Number(row.created_at)),
      merged_into: row.merged_into,
    })),
    next: last === undefined ? null : `${last.value}.${last.id}`,
  };
}

/** What the accounts of a page were charged lately. */
async function recentByAccount(
  db: Store["db"],
  page: readonly { readonly id: string }[],
  nowMs: number,
) {
  if (page.length === 0) return new Map<string, undefined>();
  const rows = await db
    .selectFrom("usage_hour")
    .select(["account_id", ...recentSums(nowMs)])
    .where("hour", ">=", BigInt(recentHours(nowMs).day))
    .where(
      "account_id",
      "in",
      page.map(({ id }) => id),
    )
    .groupBy("account_id")
    .execute();
  return new Map(rows.map((row) => [row.account_id, row]));
}

/** Where a page begins: after an account, by its value and id. */
interface AccountCursor {
  readonly value: bigint;
  readonly id: string;
}

const FIRST: AccountCursor = { value: 0n, id: "" };

/** Null = not a `next` of a page of accounts. */
export function parseAccountCursor(text: string): AccountCursor | null {
  const [, value = "", id = ""] = /^(\d{1,18})\.(acc_\w{1,40})$/.exec(text) ?? [];
  return id === "" ? null : { value: BigInt(value), id };
}

const ORDERS = {
  spend: sql<bigint>`cast(coalesce(used.charge_n, 0) as bigint)`,
  balance: sql<bigint>`cast(account.balance_n as bigint)`,
  created: sql<bigint>`cast(account.created_at as bigint)`,
} as const;

const keyCount = sql<bigint>`(select cast(count(*) as bigint) from api_key
  where api_key.account_id = account.id and api_key.revoked_at is null)`;

function beyond(value: (typeof ORDERS)[AccountOrder], { value: last, id }: AccountCursor) {
  return sql<boolean>`(${value} < ${last} or (${value} = ${last} and account.id > ${id}))`;
}

/** `substr` instead of `like`: nothing in a search is a wildcard. */
function matching(search: string) {
  const length = search.length;
  const begins = (column: string) =>
    sql`lower(substr(${sql.ref(column)}, 1, ${sql.lit(length)})) = ${search.toLowerCase()}`;
  return sql<boolean>`(${begins("account.id")} or account.id in (select api_key.account_id
    from api_key where ${begins("api_key.id")} or ${begins("api_key.name")}
    or ${begins("api_key.prefix")}))`;
}

const USED = USED_COLUMNS.map((column) => `used.${column}` as const);

/** Selects keys. */
export interface KeyPageQuery extends Pick<AccountListQuery, "range" | "limit"> {
  readonly accountId: string;
  /** The last id of the page before; null = the first page. */
  readonly after: string | null;
}

/**
 * Reads a page of the keys of an account, as the operator is shown them, also those that were
 * deleted; null = no such account.
 */
export async function listAccountKeys(
  { db }: Store,
  { accountId, range, limit, after }: KeyPageQuery,
) {
  const account = await db
    .selectFrom("account")
    .select("id")
    .where("id", "=", accountId)
    .executeTakeFirst();
  if (account === undefined) return null;
  const used = db
    .selectFrom("usage_hour")
    .where("hour", ">=", BigInt(range.firstHour))
    .where("hour", "<", BigInt(range.endHour))
    .where("account_id", "=", accountId)
    .groupBy("key_id")
    .select(["key_id", ...usageSums]);
  const rows = await db
    .selectFrom("api_key")
    .leftJoin(used.as("used"), "used.key_id", "api_key.id")
    .select(["api_key.id", "name", "prefix", "default_profile", "created_at", "revoked_at"])
    .select(USED)
    .where("api_key.account_id", "=", accountId)
    .$if(after !== null, (query) => query.where("api_key.id", ">", after ?? ""))
    .orderBy("api_key.id")
    .limit(limit + 1)
    .execute();
  const keys = rows.slice(0, limit).map((row) => ({
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    default_profile: row.default_profile,
    created_at: timeText(Number(row.created_at)),
    revoked_at: row.revoked_at === null ? null : timeText(Number(row.revoked_at)),
    ...spentOf(row),
  }));
  return { keys, next: rows.length > limit ? (keys.at(-1)?.id ?? null) : null };
}

/** What was used in the hours that are asked for. */
function spentOf(row: Parameters<typeof usedOf>[0]) {
  const { usd: spent_usd, ...used } = usedView(usedOf(row));
  return { ...used, spent_usd };
}
