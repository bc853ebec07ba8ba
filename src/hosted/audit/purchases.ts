// Compares purchases with the ledger: a settled purchase is booked once, to the beneficiary in its
// row. Only adds up, with a bounded number of rows per statement.
import { type Kysely, sql } from "kysely";
import { type IdColumn, type IdRange, isWithin, rowsOf } from "../../store/scan.ts";
import type { Tables } from "../../store/tables.ts";

/** Columns that contain purchase ids. */
export const PURCHASE_IDS: readonly IdColumn[] = [{ table: "purchase", column: "id" }];

/**
 * A purchase whose row and ledger entries differ, or a ledger event of a purchase that has not
 * settled. Nano-USD.
 */
export interface UnequalPurchase {
  readonly id: string;
  readonly is_n: bigint;
  readonly should_n: bigint;
}

/**
 * The purchases of a range (its end included) that differ from the ledger. For a settled purchase
 * the full amount must be booked as incoming. With a fulfilment it must be credited to an account
 * or booked as revenue; without one it must be held. Reports the incoming amount if that differs,
 * else the credited amount.
 */
export function unequalPurchases(
  db: Kysely<Tables>,
  range: IdRange,
): Promise<readonly UnequalPurchase[]> {
  return rowsOf(
    db,
    sql<UnequalPurchase>`select id,
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
export function strayPayments(
  db: Kysely<Tables>,
  range: IdRange,
): Promise<readonly UnequalPurchase[]> {
  return rowsOf(
    db,
    sql<UnequalPurchase>`select ledger_tx.id as id, cast(coalesce((
        select sum(amount_n) from ledger_entry where tx_id = ledger_tx.id and amount_n > 0
      ), 0) as bigint) as is_n, cast(0 as bigint) as should_n
    from ledger_tx
    where ${isWithin("ledger_tx.id", range)}
      and (substr(idem_key, 1, 9) = 'purchase:' or kind in ('access', 'hold', 'release', 'release_access'))
      and not exists (
        select 1 from purchase where state = 'settled'
          and (idem_key = 'purchase:' || purchase.id or idem_key = 'purchase:' || purchase.id || ':released')
          and purchase.id = substr(idem_key, 10, ${ID_CHARS})
      )
    order by ledger_tx.id`,
  );
}

/** `pur_`, nine characters of time and eleven random ones. */
const ID_CHARS = sql.lit(24);
