// The money of accounts as each table records it, side by side. Only adds up, with a bounded number
// of rows per statement; does not decide which side is right.
import { type Kysely, sql } from "kysely";
import {
  type IdColumn,
  type IdRange,
  isBetween,
  isWithin,
  pagesOf,
  ROWS_PER_PAGE,
  rowsOf,
} from "../../shared/store/scan.ts";
import type {
  AccountTable,
  CreditLeaseTable,
  LedgerEntryTable,
  LedgerTxTable,
  Tables,
  UsageHourTable,
} from "../../shared/store/tables.ts";

/** Columns that contain account ids. */
export const ACCOUNT_IDS: readonly IdColumn[] = [
  { table: "account", column: "id" },
  { table: "credit_lease", column: "account_id" },
  { table: "usage_hour", column: "account_id" },
  { table: "ledger_entry", column: "account_id" },
];

/** The money of one account according to each table. */
export interface Books {
  readonly id: string;
  /** Number of accounts with the id, and of leases and ledger entries that name it. */
  readonly accounts: bigint;
  readonly claims: bigint;
  /** Balance and leases, to be compared with the ledger. */
  readonly held_n: bigint;
  readonly booked_n: bigint;
  /** Counted charges, to be compared with those settled in the ledger or spent from a lease. */
  readonly counted_n: bigint;
  readonly taken_n: bigint;
}

/** Money under an id that is not what it should be, in nano-USD. */
export interface Unequal {
  readonly id: string;
  readonly is_n: bigint;
  readonly should_n: bigint;
}

/** The books of accounts in a range that may not agree; one statement, so one snapshot. */
export function unequalBooks(db: Kysely<Tables>, range: IdRange): Promise<readonly Books[]> {
  return rowsOf(
    db,
    sql<Books>`select id, cast(sum(accounts) as bigint) as accounts, cast(sum(claims) as bigint) as claims,
      cast(sum(held_n) as bigint) as held_n, cast(sum(booked_n) as bigint) as booked_n,
      cast(sum(counted_n) as bigint) as counted_n, cast(sum(taken_n) as bigint) as taken_n
    from (
      select id, 1 as accounts, 0 as claims, balance_n as held_n, 0 as booked_n, 0 as counted_n, 0 as taken_n
        from account where ${isBetween("id", range)}
      union all select account_id, 0, 1, granted_n, 0, 0, spent_n from credit_lease where ${isBetween("account_id", range)}
      union all select account_id, 0, 0, 0, 0, charge_n, 0 from usage_hour where ${isBetween("account_id", range)}
      union all select account_id, 0, 1, 0, amount_n, 0,
          case when (select kind from ledger_tx where ledger_tx.id = ledger_entry.tx_id) = 'usage' then -amount_n else 0 end
        from ledger_entry where ${isBetween("account_id", range)}
    ) lines group by id
    having (sum(accounts) = 0 and sum(claims) > 0) or sum(held_n) <> sum(booked_n) or sum(counted_n) <> sum(taken_n)
    order by id`,
  );
}

/** Overspent leases and negative balances in a range. */
export function excesses(db: Kysely<Tables>, range: IdRange): Promise<readonly Unequal[]> {
  return rowsOf(
    db,
    sql<Unequal>`select account_id as id, spent_n as is_n, granted_n as should_n from credit_lease
      where ${isBetween("account_id", range)} and (spent_n < 0 or spent_n > granted_n)
    union all select id, balance_n, 0 from account where ${isBetween("id", range)} and balance_n < 0
    order by id`,
  );
}

/**
 * The books of one account with any number of rows, and its excesses. Uses several statements: `db`
 * must be a transaction with a snapshot for a consistent view.
 */
export async function booksOf(
  db: Kysely<Tables>,
  id: string,
): Promise<{ readonly books: Books; readonly over: readonly Unequal[] }> {
  const books = {
    id,
    accounts: 0n,
    claims: 0n,
    held_n: 0n,
    booked_n: 0n,
    counted_n: 0n,
    taken_n: 0n,
  };
  const over: Unequal[] = [];
  for await (const leases of pagesOf(db, (last: LeaseRow | null) => leasesAfter(id, last))) {
    for (const { granted_n, spent_n } of leases) {
      books.claims += 1n;
      books.held_n += granted_n;
      books.taken_n += spent_n;
      if (spent_n < 0n || spent_n > granted_n)
        over.push({ id, is_n: spent_n, should_n: granted_n });
    }
  }
  for (const { balance_n } of await rowsOf(
    db,
    sql<Pick<AccountTable, "balance_n">>`select balance_n from account where id = ${id}`,
  )) {
    books.accounts += 1n;
    books.held_n += balance_n;
    if (balance_n < 0n) over.push({ id, is_n: balance_n, should_n: 0n });
  }
  for await (const hours of pagesOf(db, (last: HourRow | null) => hoursAfter(id, last))) {
    for (const { charge_n } of hours) books.counted_n += charge_n;
  }
  for await (const entries of pagesOf(db, (last: EntryRow | null) => entriesAfter(id, last))) {
    for (const { amount_n, kind } of entries) {
      books.claims += 1n;
      books.booked_n += amount_n;
      if (kind === "usage") books.taken_n -= amount_n;
    }
  }
  return { books, over };
}

type LeaseRow = Omit<CreditLeaseTable, "account_id">;
type HourRow = Pick<UsageHourTable, "hour" | "key_id" | "method" | "charge_n">;
type EntryRow = Pick<LedgerEntryTable, "tx_id" | "position" | "amount_n"> & {
  readonly kind: LedgerTxTable["kind"] | null;
};

function leasesAfter(id: string, last: LeaseRow | null) {
  const after =
    last === null ? sql`` : sql`and (node_id, epoch) > (${last.node_id}, ${last.epoch})`;
  return sql<LeaseRow>`select node_id, epoch, granted_n, spent_n from credit_lease
    where account_id = ${id} ${after} order by node_id, epoch limit ${ROWS_PER_PAGE}`;
}

function hoursAfter(id: string, last: HourRow | null) {
  const after =
    last === null
      ? sql``
      : sql`and (hour, key_id, method) > (${last.hour}, ${last.key_id}, ${last.method})`;
  return sql<HourRow>`select hour, key_id, method, charge_n from usage_hour
    where account_id = ${id} ${after} order by hour, key_id, method limit ${ROWS_PER_PAGE}`;
}

function entriesAfter(id: string, last: EntryRow | null) {
  const after =
    last === null ? sql`` : sql`and (tx_id, position) > (${last.tx_id}, ${last.position})`;
  return sql<EntryRow>`select tx_id, position, amount_n, (select kind from ledger_tx where ledger_tx.id = ledger_entry.tx_id) as kind from ledger_entry
    where account_id = ${id} ${after} order by tx_id, position limit ${ROWS_PER_PAGE}`;
}

/** Columns that contain channel ids. */
export const CHANNEL_IDS: readonly IdColumn[] = [{ table: "session_channel", column: "id" }];

/**
 * The channels of a range (its end included) whose booked money differs from what was paid out of
 * them.
 */
export function unequalChannels(db: Kysely<Tables>, range: IdRange): Promise<readonly Unequal[]> {
  return rowsOf(
    db,
    sql<Unequal>`select id, cast(booked_n as bigint) as is_n, cast(settled_units * 1000 as bigint) as should_n from (
      select session_channel.id as id, settled_units, coalesce((
        select sum(ledger_entry.amount_n) from ledger_tx join ledger_entry on tx_id = ledger_tx.id
        where kind = 'session' and book = 'revenue'
          and idem_key >= 'session:' || session_channel.id || ':' and idem_key < 'session:' || session_channel.id || ';'
      ), 0) as booked_n
      from session_channel where ${isWithin("session_channel.id", range)}
    ) books where booked_n <> settled_units * 1000 order by id`,
  );
}

/** The ledger events of a range (its end included) of unknown channels. */
export function straySettlements(db: Kysely<Tables>, range: IdRange): Promise<readonly Unequal[]> {
  return rowsOf(
    db,
    sql<Unequal>`select ledger_tx.id as id, cast(coalesce((
        select sum(amount_n) from ledger_entry where tx_id = ledger_tx.id and amount_n > 0
      ), 0) as bigint) as is_n, cast(0 as bigint) as should_n
    from ledger_tx
    where ${isWithin("ledger_tx.id", range)} and (kind = 'session' or substr(idem_key, 1, 8) = 'session:')
      and not exists (select 1 from session_channel where session_channel.id = substr(idem_key, 9, ${CHANNEL_ID_CHARS}) and kind = 'session')
    order by ledger_tx.id`,
  );
}

/** `0x` and 64 hex digits. */
const CHANNEL_ID_CHARS = sql.lit(66);

/** Columns that contain purchase ids. */
export const PURCHASE_IDS: readonly IdColumn[] = [{ table: "purchase", column: "id" }];

/**
 * The purchases of a range (its end included) that differ from the ledger. For a settled purchase
 * the full amount must be booked as incoming. With a fulfilment it must be credited to an account
 * or booked as revenue; without one it must be held. Reports the incoming amount if that differs,
 * else the credited amount.
 */
export function unequalPurchases(db: Kysely<Tables>, range: IdRange): Promise<readonly Unequal[]> {
  return rowsOf(
    db,
    sql<Unequal>`select id,
      cast(case when taken_n <> due_n then taken_n else given_n end as bigint) as is_n,
      cast(case when taken_n <> due_n then due_n else due_n - kept_n end as bigint) as should_n
    from (
      select purchase.id as id,
        case when purchase.state = 'settled' then purchase.amount_n else 0 end as due_n,
        case when purchase.state = 'settled' and purchase.fulfilment is null then purchase.amount_n else 0 end as kept_n,
        coalesce(sum(case when book = 'payments' then -ledger_entry.amount_n else 0 end), 0) as taken_n,
        coalesce(sum(case when book = 'held' then ledger_entry.amount_n else 0 end), 0) as held_n,
        coalesce(sum(case when book in ('account', 'revenue') then ledger_entry.amount_n else 0 end), 0) as given_n
      from purchase
      left join ledger_tx on idem_key in ('purchase:' || purchase.id, 'purchase:' || purchase.id || ':released')
        and kind in ('payment', 'access', 'hold', 'release', 'release_access')
      left join ledger_entry on tx_id = ledger_tx.id
      where ${isWithin("purchase.id", range)}
      group by purchase.id, purchase.state, purchase.amount_n, purchase.fulfilment
    ) books
    where taken_n <> due_n or held_n <> kept_n or given_n <> due_n - kept_n
    order by id`,
  );
}

/**
 * The ledger events of a range (its end included) of purchases that have not settled or do not
 * exist.
 */
export function strayPayments(db: Kysely<Tables>, range: IdRange): Promise<readonly Unequal[]> {
  return rowsOf(
    db,
    sql<Unequal>`select ledger_tx.id as id, cast(coalesce((
        select sum(amount_n) from ledger_entry where tx_id = ledger_tx.id and amount_n > 0
      ), 0) as bigint) as is_n, cast(0 as bigint) as should_n
    from ledger_tx
    where ${isWithin("ledger_tx.id", range)}
      and (substr(idem_key, 1, 9) = 'purchase:' or kind in ('access', 'hold', 'release', 'release_access'))
      and not exists (
        select 1 from purchase where state = 'settled'
          and (idem_key = 'purchase:' || purchase.id or idem_key = 'purchase:' || purchase.id || ':released')
          and purchase.id = substr(idem_key, 10, ${PURCHASE_ID_CHARS})
      )
    order by ledger_tx.id`,
  );
}

/** `pur_`, nine characters of time and eleven random ones. */
const PURCHASE_ID_CHARS = sql.lit(24);
