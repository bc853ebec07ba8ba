// The purchases of all accounts for the operator, newest first, by pages, with the transactions
// that were sent for them. Changes nothing.
import { type Kysely, type RawBuilder, type SelectQueryBuilder, sql } from "kysely";
import type { PurchaseState } from "../../core/billing/payment.ts";
import { isPostgres } from "../../shared/store/engine.ts";
import type { Store } from "../../shared/store/store.ts";
import type { Tables } from "../../shared/store/tables.ts";
import type { PaymentGauges, PurchaseView } from "../payments.ts";
import { viewOf } from "./record.ts";

/** Selects purchases. */
export interface PurchaseListQuery extends PurchasePage {
  /** Null = every state. */
  readonly state: PurchaseState | null;
  /** Null = of all accounts. */
  readonly accountId: string | null;
}

const MAX_TRANSACTIONS = 1_000;

/** Reads a page, and counts the purchases of each state. */
export async function allPurchases(
  { db }: Store,
  { state, accountId, limit, after }: PurchaseListQuery,
) {
  const named =
    accountId === null ? db.selectFrom("purchase").selectAll() : purchasesNaming(db, accountId);
  const { purchases: page, next } = await pageOf(
    state === null ? named : named.where("state", "=", state),
    { limit, after },
  );
  const ids = page.map(({ id }) => id);
  const sent = Map.groupBy(await transactionsOf(db, ids), (row) => row.purchase_id);
  const counts = await countsOf(db.selectFrom("purchase"));
  return {
    purchases: page.map((purchase) => ({
      ...purchase,
      transactions: (sent.get(purchase.id) ?? []).map(({ tx_hash, created_at }) => ({
        tx_hash,
        at: new Date(Number(created_at)).toISOString(),
      })),
    })),
    counts,
    next,
  };
}

/** In the order in which they were sent. */
async function transactionsOf(db: Store["db"], ids: readonly string[]) {
  if (ids.length === 0) return [];
  return db
    .selectFrom("purchase_submission")
    .select(["purchase_id", "tx_hash", "created_at"])
    .where("purchase_id", "in", ids)
    .orderBy("purchase_id")
    .orderBy("position")
    .limit(MAX_TRANSACTIONS)
    .execute();
}

/** A part of the list. */
export interface PurchasePage {
  readonly limit: number;
  /** The last id of the page before. */
  readonly after?: string | null | undefined;
}

/** The purchases of an account; `next` null = these are the first ones that it made. */
export function purchasesOfAccount(
  db: Kysely<Tables>,
  accountId: string,
  part: PurchasePage,
): Promise<{ readonly purchases: readonly PurchaseView[]; readonly next: string | null }> {
  return pageOf(purchasesNaming(db, accountId), part);
}

async function pageOf(
  query: ReturnType<typeof purchasesNaming>,
  { limit, after = null }: PurchasePage,
): Promise<{ readonly purchases: readonly PurchaseView[]; readonly next: string | null }> {
  const older = after === null ? query : query.where("id", "<", after);
  const rows = await older
    .orderBy("id", "desc")
    .limit(limit + 1)
    .execute();
  const purchases = rows.slice(0, limit).map(viewOf);
  return { purchases, next: rows.length > limit ? (purchases.at(-1)?.id ?? null) : null };
}

/** Selects the purchases of an account and of the accounts merged into it. */
function purchasesNaming(db: Kysely<Tables>, accountId: string) {
  return db
    .selectFrom("purchase")
    .selectAll()
    .where(purchaseAccount(db), "in", accountsOf(db, accountId));
}

/** The account that a purchase names, as SQL; null = it made a key of nobody's. Indexed so. */
function purchaseAccount(db: Pick<Kysely<unknown>, "getExecutor">): RawBuilder<string | null> {
  return isPostgres(db)
    ? sql<string | null>`(purpose::jsonb ->> 'accountId')`
    : sql<string | null>`json_extract(purpose, '$.accountId')`;
}

function accountsOf(db: Kysely<Tables>, accountId: string) {
  return db
    .selectFrom("account")
    .select("account.id")
    .where((account) =>
      account.or([account("id", "=", accountId), account("merged_into", "=", accountId)]),
    );
}

/** The counts of purchases among the gauges. */
export type PurchaseCounts = Omit<PaymentGauges, "wallets">;

/** The counts before the first count. */
export const NO_PURCHASES: PurchaseCounts = { accepted: 0, submitted: 0, held: 0 };

/** Counts purchases that are under way, and those whose money is held. */
export async function countPurchases({ db }: Pick<Store, "db">): Promise<PurchaseCounts> {
  const open = db.selectFrom("purchase").where("ended_at", "is", null);
  const held = db.selectFrom("purchase").where("fulfilment", "is", null);
  const { accepted, submitted } = await countsOf(open);
  const { settled } = await countsOf(held.where("state", "=", "settled"));
  return { accepted, submitted, held: settled };
}

async function countsOf(
  purchases: SelectQueryBuilder<Tables, "purchase", object>,
): Promise<Readonly<Record<PurchaseState, number>>> {
  const rows = await purchases
    .select(["state", (columns) => columns.fn.countAll<bigint>().as("count")])
    .groupBy("state")
    .execute();
  const none = { accepted: 0, submitted: 0, settled: 0, failed: 0 };
  return { ...none, ...Object.fromEntries(rows.map((row) => [row.state, Number(row.count)])) };
}
