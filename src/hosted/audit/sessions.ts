// Compares pay-per-call channels with the ledger: everything paid out of a channel is booked once,
// and nothing else is. Only adds up, with a bounded number of rows per statement.
import { type Kysely, sql } from "kysely";
import { type IdColumn, type IdRange, isWithin, rowsOf } from "../../store/scan.ts";
import type { Tables } from "../../store/tables.ts";

/** Columns that contain channel ids. */
export const CHANNEL_IDS: readonly IdColumn[] = [{ table: "session_channel", column: "id" }];

/**
 * A channel whose row and ledger entries differ, or a ledger event of an unknown channel. Nano-USD.
 */
export interface UnequalChannel {
  readonly id: string;
  readonly is_n: bigint;
  readonly should_n: bigint;
}

/**
 * The channels of a range (its end included) whose booked money differs from what was paid out of
 * them.
 */
export function unequalChannels(
  db: Kysely<Tables>,
  range: IdRange,
): Promise<readonly UnequalChannel[]> {
  return rowsOf(
    db,
    sql<UnequalChannel>`select id, cast(booked_n as bigint) as is_n, cast(settled_units * 1000 as bigint) as should_n from (
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
export function straySettlements(
  db: Kysely<Tables>,
  range: IdRange,
): Promise<readonly UnequalChannel[]> {
  return rowsOf(
    db,
    sql<UnequalChannel>`select ledger_tx.id as id, cast(coalesce((
        select sum(amount_n) from ledger_entry where tx_id = ledger_tx.id and amount_n > 0
      ), 0) as bigint) as is_n, cast(0 as bigint) as should_n
    from ledger_tx
    where ${isWithin("ledger_tx.id", range)} and (kind = 'session' or substr(idem_key, 1, 8) = 'session:')
      and not exists (select 1 from session_channel where session_channel.id = substr(idem_key, 9, ${ID_CHARS}) and kind = 'session')
    order by ledger_tx.id`,
  );
}

/** `0x` and 64 hex digits. */
const ID_CHARS = sql.lit(66);
