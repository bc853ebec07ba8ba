// The purchases of one account, newest first, by pages: those that name it, and those that name an
// account which has become part of it. Changes nothing.
import { type Kysely, type RawBuilder, sql } from "kysely";
import { isPostgres } from "../../store/engine.ts";
import type { Tables } from "../../store/tables.ts";
import type { PurchaseView } from "../payments.ts";
import { viewOf } from "./record.ts";

/** A part of the list. */
export interface PurchasePage {
  readonly limit: number;
  /** The last id of the page before. */
  readonly after: string | undefined;
}

/** The purchases of an account; `next` null = these are the first ones that it made. */
export async function purchasesOfAccount(
  db: Kysely<Tables>,
  accountId: string,
  { limit, after }: PurchasePage,
): Promise<{ readonly purchases: readonly PurchaseView[]; readonly next: string | null }> {
  const rows = await purchasesNaming(db, accountId)
    .$if(after !== undefined, (query) => query.where("id", "<", after ?? ""))
    .orderBy("id", "desc")
    .limit(limit + 1)
    .execute();
  const purchases = rows.slice(0, limit).map(viewOf);
  return { purchases, next: rows.length > limit ? (purchases.at(-1)?.id ?? null) : null };
}

/** Selects the purchases that name an account, or one that has become part of it. */
export function purchasesNaming(db: Kysely<Tables>, accountId: string) {
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
