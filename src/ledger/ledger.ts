// The ledger: double-entry, append-only, each event exactly once. Balances change only here and in
// lease statements. Knows no reason for an event except its kind.
import { createHash } from "node:crypto";
import { SqliteAdapter, sql, type Transaction } from "kysely";
import type { LedgerEntryTable, Tables } from "../store/tables.ts";

/** An event of the ledger. Amounts are positive nano-USD. */
export type LedgerEvent =
  | {
      /** Credit to an account: a grant by the operator, or incoming money. */
      readonly kind: "grant" | "payment";
      /** Idempotency key: an event with a known key is a repetition. */
      readonly idemKey: string;
      readonly accountId: string;
      readonly amountN: bigint;
      readonly atMs: number;
    }
  | {
      readonly kind: "usage";
      readonly idemKey: string;
      readonly accountId: string;
      readonly amountN: bigint;
      readonly atMs: number;
    }
  /**
   * Incoming money that belongs to no account: for Custom access, or for a beneficiary that no
   * longer exists.
   */
  | {
      readonly kind: "access" | "hold";
      readonly idemKey: string;
      readonly amountN: bigint;
      readonly atMs: number;
    }
  /**
   * Money held for a beneficiary is released to its purpose: to an account, or for Custom access.
   */
  | {
      readonly kind: "release";
      readonly idemKey: string;
      readonly accountId: string;
      readonly amountN: bigint;
      readonly atMs: number;
    }
  /** Money that a payment channel paid out for calls. */
  | {
      readonly kind: "session";
      readonly idemKey: string;
      readonly amountN: bigint;
      readonly atMs: number;
    }
  | {
      readonly kind: "release_access";
      readonly idemKey: string;
      readonly amountN: bigint;
      readonly atMs: number;
    }
  | {
      readonly kind: "move";
      readonly idemKey: string;
      readonly fromId: string;
      readonly toId: string;
      readonly amountN: bigint;
      readonly atMs: number;
    };

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
export async function lockAccounts(tx: Tx, ids: readonly string[]): Promise<void> {
  if (isEmbedded(tx) || ids.length < 2) return;
  await tx
    .selectFrom("account")
    .select("id")
    .where("id", "in", ids)
    .orderBy("id")
    .forNoKeyUpdate()
    .execute();
}

/** Locks the row of one account for this transaction. */
export async function lockAccount(tx: Tx, id: string): Promise<void> {
  if (isEmbedded(tx)) return;
  await tx.selectFrom("account").select("id").where("id", "=", id).forNoKeyUpdate().execute();
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

/** The two entries of an event: one book's gain is the other's loss. */
function entriesOf(event: LedgerEvent): readonly LedgerEntryTable[] {
  const { amountN } = event;
  const line = (
    position: bigint,
    book: LedgerEntryTable["book"],
    account_id: string | null,
    amount_n: bigint,
  ): LedgerEntryTable => ({
    tx_id: idOf(event.idemKey),
    position,
    book,
    account_id,
    amount_n,
  });
  switch (event.kind) {
    case "grant":
      return [line(0n, "account", event.accountId, amountN), line(1n, "grants", null, -amountN)];
    case "payment":
      return [line(0n, "account", event.accountId, amountN), line(1n, "payments", null, -amountN)];
    case "usage":
      return [line(0n, "account", event.accountId, -amountN), line(1n, "revenue", null, amountN)];
    case "access":
    case "session":
      return [line(0n, "revenue", null, amountN), line(1n, "payments", null, -amountN)];
    case "hold":
      return [line(0n, "held", null, amountN), line(1n, "payments", null, -amountN)];
    case "release":
      return [line(0n, "account", event.accountId, amountN), line(1n, "held", null, -amountN)];
    case "release_access":
      return [line(0n, "revenue", null, amountN), line(1n, "held", null, -amountN)];
    case "move":
      return [
        line(0n, "account", event.fromId, -amountN),
        line(1n, "account", event.toId, amountN),
      ];
  }
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
  await lockAccounts(tx, ids);
  const rows = [...changes].map(
    ([id, change]) =>
      sql`(cast(${id} as text), cast(${change.balanceN} as bigint), cast(${change.fundedN} as bigint), cast(${change.paidAt} as bigint))`,
  );
  const { numAffectedRows } = await sql`
    update account set
      balance_n = balance_n + change.column2,
      funded_n = funded_n + change.column3,
      first_paid_at = coalesce(first_paid_at, change.column4),
      exhausted_at = case when change.column2 > 0 then null else exhausted_at end
    from (values ${sql.join(rows)}) as change
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
    switch (event.kind) {
      case "grant":
      case "payment":
      case "release": {
        const change = of(event.accountId);
        change.balanceN += event.amountN;
        change.fundedN += event.amountN;
        if (event.kind !== "grant") change.paidAt ??= BigInt(Math.floor(event.atMs));
        break;
      }
      case "access":
      case "session":
      case "hold":
      case "release_access":
        break;
      case "usage":
        of(event.accountId).balanceN -= event.amountN;
        break;
      case "move":
        of(event.fromId).balanceN -= event.amountN;
        of(event.toId).balanceN += event.amountN;
    }
  }
  return changes;
}
