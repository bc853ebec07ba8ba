// The ledger: double-entry, append-only, each event exactly once. Balances change only here and in
// lease statements. Knows no reason for an event except its kind.
import { createHash } from "node:crypto";
import { SqliteAdapter, sql, type Transaction } from "kysely";
import { valueRows } from "../store/engine.ts";
import type { LedgerEntryTable, Tables } from "../store/tables.ts";

/** An event of the ledger. */
export type LedgerEvent = {
  /** Idempotency key: an event with a known key is a repetition. */
  readonly idemKey: string;
  /** Nano-USD, positive. */
  readonly amountN: bigint;
  readonly atMs: number;
} & (
  | {
      /**
       * `grant` = credit by the operator, `payment` = incoming money, `usage` = calls, `release` =
       * money that was held for a beneficiary.
       */
      readonly kind: "grant" | "payment" | "usage" | "release";
      readonly accountId: string;
    }
  /**
   * Money of no account. `access` = incoming, for Custom access; `hold` = incoming, for a
   * beneficiary that no longer exists; `release_access` = held before, for Custom access; `session`
   * = paid out by a payment channel for calls.
   */
  | { readonly kind: "access" | "hold" | "release_access" | "session" }
  | { readonly kind: "move"; readonly fromId: string; readonly toId: string }
);

/** An open transaction of the store. */
export type Tx = Transaction<Tables>;

/** Rows per statement: far below the parameter limits of both engines. */
export const ROWS_PER_STATEMENT = 200;

/**
 * Posts an event and changes the balances it concerns; false = a repetition, nothing changed.
 * Throws if a balance would become negative.
 */
export async function post(tx: Tx, event: LedgerEvent): Promise<boolean> {
  return (await postAll(tx, [event])) === 1;
}

/** Posts several events; returns how many were new. */
export async function postAll(tx: Tx, events: readonly LedgerEvent[]): Promise<number> {
  let newEvents = 0;
  for (const part of chunks(events)) {
    const fresh = await append(tx, part);
    newEvents += fresh.length;
    await changeBalances(tx, fresh);
  }
  return newEvents;
}

/**
 * Locks rows of accounts for this transaction, always in the same order to avoid deadlocks. Rows
 * with foreign keys to an account are not blocked.
 */
export async function lockAccounts(tx: Tx, ...ids: readonly string[]): Promise<void> {
  if (isEmbedded(tx) || ids.length === 0) return;
  await tx
    .selectFrom("account")
    .select("id")
    .where("id", "in", ids)
    .orderBy("id")
    .forNoKeyUpdate()
    .execute();
}

/**
 * Whether a transaction runs on the embedded engine, which runs one transaction at a time and has
 * no row locks.
 */
export function isEmbedded(tx: Tx): boolean {
  return tx.getExecutor().adapter instanceof SqliteAdapter;
}

/** Splits a list into parts that fit into one statement each. */
export function chunks<T>(list: readonly T[]): readonly (readonly T[])[] {
  const count = Math.ceil(list.length / ROWS_PER_STATEMENT);
  return Array.from({ length: count }, (_, index) =>
    list.slice(index * ROWS_PER_STATEMENT, (index + 1) * ROWS_PER_STATEMENT),
  );
}

/**
 * Runs a statement for each part of a list and yields to the event loop in between, because the
 * embedded engine blocks it.
 */
export async function inParts<T>(
  list: readonly T[],
  run: (part: readonly T[]) => Promise<void>,
): Promise<void> {
  for (const [index, part] of chunks(list).entries()) {
    if (index > 0) await new Promise(setImmediate);
    await run(part);
  }
}

/** Inserts the events that are new, and returns them. */
async function append(tx: Tx, events: readonly LedgerEvent[]): Promise<readonly LedgerEvent[]> {
  for (const event of events)
    if (event.amountN <= 0n)
      throw new RangeError(`event ${event.idemKey} moves ${event.amountN} nano-USD`);
  const rows = events.map(({ idemKey, kind, atMs }) => ({
    id: idOf(idemKey),
    idem_key: idemKey,
    kind,
    created_at: BigInt(Math.floor(atMs)),
  }));
  const inserted = await tx
    .insertInto("ledger_tx")
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .returning("idem_key")
    .execute();
  const fresh = new Set(inserted.map((row) => row.idem_key));
  const written = events.filter(({ idemKey }) => fresh.delete(idemKey));
  for (const part of chunks(written.flatMap(entriesOf)))
    await tx.insertInto("ledger_entry").values(part).execute();
  return written;
}

/** An id derived from the event, so that the same event always has the same id. */
function idOf(idemKey: string): string {
  return `ltx_${createHash("sha256").update(idemKey).digest("base64url").slice(0, 24)}`;
}

type Book = LedgerEntryTable["book"];

/** Which book gains by an event, and which one loses; a move is between accounts. */
const BOOKS: Readonly<Record<LedgerEvent["kind"], readonly [gains: Book, loses: Book]>> = {
  grant: ["account", "grants"],
  payment: ["account", "payments"],
  usage: ["revenue", "account"],
  access: ["revenue", "payments"],
  session: ["revenue", "payments"],
  hold: ["held", "payments"],
  release: ["account", "held"],
  release_access: ["revenue", "held"],
  move: ["account", "account"],
};

/** The two entries of an event, that of an account first. */
function entriesOf(event: LedgerEvent): readonly LedgerEntryTable[] {
  const { amountN } = event;
  const [gains, loses] = BOOKS[event.kind];
  const accountId = "accountId" in event ? event.accountId : null;
  const [toId, fromId] =
    event.kind === "move" ? [event.toId, event.fromId] : [accountId, accountId];
  const sides = [
    { book: gains, account_id: gains === "account" ? toId : null, amount_n: amountN },
    { book: loses, account_id: loses === "account" ? fromId : null, amount_n: -amountN },
  ];
  const inOrder = loses === "account" ? sides.toReversed() : sides;
  const tx_id = idOf(event.idemKey);
  return inOrder.map((side, position) => ({ tx_id, position: BigInt(position), ...side }));
}

interface Change {
  balanceN: bigint;
  fundedN: bigint;
  paidAt: bigint | null;
}

async function changeBalances(tx: Tx, events: readonly LedgerEvent[]): Promise<void> {
  if (events.length === 0) return;
  const changes = changesOf(events);
  if (changes.size === 0) return;
  const ids = [...changes.keys()].sort();
  // The update locks a single row by itself.
  if (ids.length > 1) await lockAccounts(tx, ...ids);
  const rows = Array.from(
    changes,
    ([id, change]) => [id, change.balanceN, change.fundedN, change.paidAt] as const,
  );
  const { numAffectedRows } = await sql`
    update account set
      balance_n = balance_n + change.column2,
      funded_n = funded_n + change.column3,
      first_paid_at = coalesce(first_paid_at, change.column4),
      exhausted_at = case when change.column2 > 0 then null else exhausted_at end
    from (values ${valueRows(rows)}) as change
    where id = change.column1`.execute(tx);
  if (numAffectedRows !== BigInt(changes.size))
    throw new Error(`not every account of ${ids.join(", ")} exists`);
}

function changesOf(events: readonly LedgerEvent[]): ReadonlyMap<string, Change> {
  const changes = new Map<string, Change>();
  const of = (id: string): Change => {
    const change = changes.get(id) ?? { balanceN: 0n, fundedN: 0n, paidAt: null };
    changes.set(id, change);
    return change;
  };
  for (const event of events) {
    for (const { account_id, amount_n } of entriesOf(event))
      if (account_id !== null) of(account_id).balanceN += amount_n;
    if (event.kind !== "grant" && event.kind !== "payment" && event.kind !== "release") continue;
    const change = of(event.accountId);
    change.fundedN += event.amountN;
    if (event.kind !== "grant") change.paidAt ??= BigInt(Math.floor(event.atMs));
  }
  return changes;
}
