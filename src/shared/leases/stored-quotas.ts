// The credits of providers that several nodes spend, as rows of a store: what is handed out is
// written first, and counts as spent until it comes back. The credits of a process that died return
// only at the end of their day and month, since nobody knows how many it spent.
import { sql, type Transaction } from "kysely";
import {
  added,
  creditsLeft,
  type QuotaLimits,
  type QuotaRecord,
  recordAt,
  returned,
  spent,
} from "../../core/provider/budget/quota.ts";
import { databaseNow } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import type { Tables } from "../store/tables.ts";

/** A request for credits of one provider. */
export interface CreditsRequest {
  /** The provider, its profile and chain. */
  readonly key: string;
  readonly limits: QuotaLimits;
  readonly credits: number;
}

/** Credits that were handed out, and what is handed out with them. */
export interface CreditsGranted extends QuotaRecord {
  readonly credits: number;
}

/** Hands out as many credits as asked for, or what is left. Days are those of the database. */
export function leaseCredits(
  store: Pick<Store, "transaction">,
  { key, limits, credits }: CreditsRequest,
): Promise<CreditsGranted> {
  return store.transaction(async (tx) => {
    const { record, nowMs } = await lockedRecord(tx, key);
    const current = recordAt(record, nowMs, limits.resetsOn);
    const granted = Math.min(credits, creditsLeft(current, limits));
    const after = spent(current, granted);
    if (granted > 0) await writeRecord(tx, key, after);
    return { ...after, credits: granted };
  });
}

/** Takes back what was not spent. */
export function returnCredits(
  store: Pick<Store, "transaction">,
  key: string,
  unspent: CreditsGranted,
): Promise<void> {
  return store.transaction(async (tx) => {
    const { record } = await lockedRecord(tx, key);
    await writeRecord(tx, key, returned(record, unspent.credits, unspent));
  });
}

/** Adds what a process spent before it handed out of the store. */
export async function addCredits(
  tx: Transaction<Tables>,
  key: string,
  own: QuotaRecord,
): Promise<void> {
  const { record } = await lockedRecord(tx, key);
  await writeRecord(tx, key, added(record, own));
}

interface LockedRow {
  readonly day_at: bigint;
  readonly day_spent: bigint;
  readonly month_at: bigint;
  readonly month_spent: bigint;
  readonly now: bigint;
}

/** The record of a provider, which nobody else changes until the transaction ends. */
async function lockedRecord(
  tx: Transaction<Tables>,
  key: string,
): Promise<{ readonly record: QuotaRecord; readonly nowMs: number }> {
  const { rows } = await sql<LockedRow>`insert into provider_quota
    (scope, day_at, day_spent, month_at, month_spent) values (${key}, 0, 0, 0, 0)
    on conflict (scope) do update set scope = excluded.scope
    returning day_at, day_spent, month_at, month_spent, ${databaseNow(tx)} as now`.execute(tx);
  const [row] = rows;
  if (row === undefined) throw new Error("the store did not return the credits of a provider");
  return {
    record: {
      dayMs: Number(row.day_at),
      daySpent: Number(row.day_spent),
      monthMs: Number(row.month_at),
      monthSpent: Number(row.month_spent),
    },
    nowMs: Number(row.now),
  };
}

async function writeRecord(
  tx: Transaction<Tables>,
  key: string,
  record: QuotaRecord,
): Promise<void> {
  await tx
    .updateTable("provider_quota")
    .set({
      day_at: BigInt(record.dayMs),
      day_spent: BigInt(record.daySpent),
      month_at: BigInt(record.monthMs),
      month_spent: BigInt(record.monthSpent),
    })
    .where("scope", "=", key)
    .execute();
}
