// The audit: whether the books agree with each other, to the unit. Reads only; each check is one statement, so that it sees one moment.
import { sql } from "kysely";
import type { Store } from "./store.ts";

/** Something that does not add up. */
export interface Difference {
  readonly check: "event" | "balance" | "usage" | "lease";
  /** Id of the ledger event or account. */
  readonly id: string;
  /** What it is and what it should be, in nano-USD. */
  readonly isN: bigint;
  readonly shouldN: bigint;
}

/** Differences that one check lists at most. */
const MAX_DIFFERENCES = 100;

/** Adds everything up; an empty list = the books agree. */
export async function audit(store: Store): Promise<readonly Difference[]> {
  return [...(await events(store)), ...(await balances(store)), ...(await usage(store)), ...(await leases(store))];
}

/** The lines of an event sum to zero, and there are some. */
async function events({ db }: Store): Promise<readonly Difference[]> {
  const { rows } = await sql<{ readonly id: string; readonly total: bigint | null }>`
    select t.id, cast(sum(e.amount_n) as bigint) as total
    from ledger_tx t left join ledger_entry e on e.tx_id = t.id
    group by t.id having count(e.tx_id) < 2 or sum(e.amount_n) <> 0
    order by t.id limit ${MAX_DIFFERENCES}`.execute(db);
  return rows.map(({ id, total }) => ({ check: "event", id, isN: total ?? 0n, shouldN: 0n }));
}

interface Sums {
  readonly id: string;
  readonly is_n: bigint;
  readonly should_n: bigint;
}

/** What the ledger says of an account is its balance and what nodes hold of it. */
async function balances({ db }: Store): Promise<readonly Difference[]> {
  const { rows } = await sql<Sums>`
    select id, is_n, should_n from (
      select a.id,
        cast(a.balance_n + coalesce(l.granted, 0) as bigint) as is_n,
        cast(coalesce(e.total, 0) as bigint) as should_n
      from account a
      left join (select account_id, sum(granted_n) as granted from credit_lease group by account_id) l on l.account_id = a.id
      left join (select account_id, sum(amount_n) as total from ledger_entry where account_id is not null group by account_id) e on e.account_id = a.id
    ) sums where is_n <> should_n order by id limit ${MAX_DIFFERENCES}`.execute(db);
  return rows.map((row) => ({ check: "balance", id: row.id, isN: row.is_n, shouldN: row.should_n }));
}

/** What was counted as charged is what was taken: settled in the ledger, or spent of an open lease. */
async function usage({ db }: Store): Promise<readonly Difference[]> {
  const { rows } = await sql<Sums>`
    select id, is_n, should_n from (
      select account_id as id, cast(sum(counted) as bigint) as is_n, cast(sum(taken) as bigint) as should_n from (
        select account_id, charge_n as counted, 0 as taken from usage_hour
        union all select account_id, 0, spent_n from credit_lease
        union all select e.account_id, 0, -e.amount_n from ledger_entry e
          join ledger_tx t on t.id = e.tx_id where t.kind = 'usage' and e.account_id is not null
      ) lines group by account_id
    ) sums where is_n <> should_n order by id limit ${MAX_DIFFERENCES}`.execute(db);
  return rows.map((row) => ({ check: "usage", id: row.id, isN: row.is_n, shouldN: row.should_n }));
}

/** No lease is overspent and no balance below zero, whatever the engine enforces. */
async function leases({ db }: Store): Promise<readonly Difference[]> {
  const { rows } = await sql<Sums>`
    select account_id as id, spent_n as is_n, granted_n as should_n from credit_lease where spent_n < 0 or spent_n > granted_n
    union all select id, balance_n, 0 from account where balance_n < 0
    limit ${MAX_DIFFERENCES}`.execute(db);
  return rows.map((row) => ({ check: "lease", id: row.id, isN: row.is_n, shouldN: row.should_n }));
}
