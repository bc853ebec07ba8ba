// Counts purchases in the store for metrics, which read the last count. Knows no format of metrics.
import type { Store } from "../../store/store.ts";
import type { PaymentGauges } from "../payments.ts";

/** The counts of purchases among the gauges. */
export type PurchaseCounts = Omit<PaymentGauges, "wallets">;

/** The counts before the first count. */
export const NO_PURCHASES: PurchaseCounts = { accepted: 0, submitted: 0, held: 0 };

/** Counts purchases that are under way, and those whose money is held. */
export async function countPurchases({ db }: Pick<Store, "db">): Promise<PurchaseCounts> {
  const counted = (row: { readonly purchases: bigint } | undefined) => Number(row?.purchases ?? 0n);
  const rows = await db
    .selectFrom("purchase")
    .select(["state", (columns) => columns.fn.countAll<bigint>().as("purchases")])
    .where("ended_at", "is", null)
    .groupBy("state")
    .execute();
  const held = await db
    .selectFrom("purchase")
    .select((columns) => columns.fn.countAll<bigint>().as("purchases"))
    .where("state", "=", "settled")
    .where("fulfilment", "is", null)
    .executeTakeFirst();
  return {
    accepted: counted(rows.find(({ state }) => state === "accepted")),
    submitted: counted(rows.find(({ state }) => state === "submitted")),
    held: counted(held),
  };
}
