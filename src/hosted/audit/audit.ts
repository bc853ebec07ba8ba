// The audit of the books: checks that they agree with each other exactly. Reads only, in pages, so
// that a large ledger delays nobody. Corrects nothing.
import { type Kysely, sql } from "kysely";
import {
  type IdColumn,
  type IdRange,
  isWithin,
  rangesOf,
  rowsOf,
} from "../../shared/store/scan.ts";
import type { Store } from "../../shared/store/store.ts";
import type { Tables } from "../../shared/store/tables.ts";
import {
  ACCOUNT_IDS,
  type Books,
  booksOf,
  CHANNEL_IDS,
  excesses,
  PURCHASE_IDS,
  strayPayments,
  straySettlements,
  type Unequal,
  unequalBooks,
  unequalChannels,
  unequalPurchases,
} from "./books.ts";

/**
 * What is checked. `event`: every event has entries, which sum to zero. `balance`: the entries of
 * an account sum to its balance and leases. `usage`: counted charges equal the money taken.
 * `lease`: no lease is overspent and no balance negative, even though the engine enforces both.
 * `purchase`, `channel`: what was settled is booked once, and nothing else.
 */
const CHECKS = ["event", "balance", "usage", "lease", "purchase", "channel"] as const;

type Check = (typeof CHECKS)[number];

/** A sum that does not agree, or money recorded for an event or account that does not exist. */
export interface BookDifference {
  readonly check: Check;
  /** Id of the ledger event, account, purchase or channel. */
  readonly id: string;
  /** The amount and what it should be, in nano-USD. */
  readonly isN: bigint;
  readonly shouldN: bigint;
}

/** Money of a transaction on a payment chain that differs from its record, in base units. */
export interface TransferDifference {
  readonly chainId: number;
  readonly txHash: string;
  readonly movedUnits: bigint;
  readonly recordedUnits: bigint;
}

/** A payment chain that could not be compared. */
export interface UnreadChain {
  readonly chainId: number;
  readonly reason: string;
}

/** The findings of an audit of a running service. */
export interface AuditFindings {
  readonly books: readonly BookDifference[];
  readonly money: readonly TransferDifference[];
  readonly unread: readonly UnreadChain[];
}

/** Largest number of differences that one check lists. */
export const DIFFERENCES_PER_CHECK = 250;

/**
 * Runs all checks; an empty list = the books agree. Concurrent postings cause no differences,
 * because amounts are compared within one snapshot.
 */
export async function audit(store: Store): Promise<readonly BookDifference[]> {
  const found = new Map(CHECKS.map((check) => [check, [] as BookDifference[]]));
  const isFull = (...checks: readonly Check[]): boolean =>
    checks.every((check) => (found.get(check)?.length ?? 0) >= DIFFERENCES_PER_CHECK);
  const add = (more: readonly BookDifference[]): void => {
    for (const difference of more)
      if (!isFull(difference.check)) found.get(difference.check)?.push(difference);
  };
  for await (const range of rangesOf(store.db, EVENT_IDS)) {
    add(await events(store.db, range));
    add(differences("purchase", await strayPayments(store.db, range)));
    add(differences("channel", await straySettlements(store.db, range)));
    if (isFull("event", "purchase", "channel")) break;
  }
  for await (const range of rangesOf(store.db, ACCOUNT_IDS)) {
    add(await accounts(store.db, range));
    if (range.end !== null) add(await account(store, range.end));
    if (isFull("balance", "usage", "lease")) break;
  }
  for await (const range of rangesOf(store.db, PURCHASE_IDS)) {
    add(differences("purchase", await unequalPurchases(store.db, range)));
    if (isFull("purchase")) break;
  }
  for await (const range of rangesOf(store.db, CHANNEL_IDS)) {
    add(differences("channel", await unequalChannels(store.db, range)));
    if (isFull("channel")) break;
  }
  return [...found.values()].flat();
}

const EVENT_IDS: readonly IdColumn[] = [
  { table: "ledger_tx", column: "id" },
  { table: "ledger_entry", column: "tx_id" },
];

/** The end of the range is included, since an event has few entries. */
async function events(db: Kysely<Tables>, range: IdRange): Promise<readonly BookDifference[]> {
  const rows = await rowsOf(
    db,
    sql<Unequal>`select id, cast(sum(amount_n) as bigint) as is_n, cast(0 as bigint) as should_n from (
      select id, 1 as events, 0 as lines, 0 as amount_n from ledger_tx where ${isWithin("id", range)}
      union all select tx_id, 0, 1, amount_n from ledger_entry where ${isWithin("tx_id", range)}
    ) parts group by id having sum(events) = 0 or sum(lines) < 2 or sum(amount_n) <> 0 order by id`,
  );
  return differences("event", rows);
}

/** Checks the accounts strictly between the ends of a range. */
async function accounts(db: Kysely<Tables>, range: IdRange): Promise<readonly BookDifference[]> {
  const books = await unequalBooks(db, range);
  return [...books.flatMap(differencesOf), ...differences("lease", await excesses(db, range))];
}

/**
 * Checks one account with any number of rows. Reads it in several statements first; only if a
 * difference appears, reads it again in one snapshot, which blocks other transactions on the
 * embedded engine.
 */
async function account(store: Store, id: string): Promise<readonly BookDifference[]> {
  const seen = await accountIn(store.db, id);
  if (seen.length === 0) return seen;
  return store.transaction(async (tx) => {
    if (store.engine === "postgres")
      await sql`set transaction isolation level repeatable read, read only`.execute(tx);
    return accountIn(tx, id);
  });
}

async function accountIn(db: Kysely<Tables>, id: string): Promise<readonly BookDifference[]> {
  const { books, over } = await booksOf(db, id);
  return [...differencesOf(books), ...differences("lease", over)];
}

function differencesOf(books: Books): readonly BookDifference[] {
  const { id, accounts, claims, held_n, booked_n, counted_n, taken_n } = books;
  const found: BookDifference[] = [];
  if (held_n !== booked_n || (accounts === 0n && claims > 0n))
    found.push({ check: "balance", id, isN: held_n, shouldN: booked_n });
  if (counted_n !== taken_n) found.push({ check: "usage", id, isN: counted_n, shouldN: taken_n });
  return found;
}

function differences(check: Check, rows: readonly Unequal[]): readonly BookDifference[] {
  return rows.map(({ id, is_n, should_n }) => ({ check, id, isN: is_n, shouldN: should_n }));
}
