// What sealed fields of purchases keep: removes the secrets of keys after a time, and seals
// everything anew after a change of the service's secret. Changes no state and no money.
import type { Sealer } from "../../secrets/sealer.ts";
import type { Store } from "../../shared/store/store.ts";
import { contextOf, openFulfilment, sealFulfilment } from "./record.ts";
import { locked, submissionsOf } from "./rows.ts";

export interface RetentionParts {
  readonly store: Store;
  readonly sealer: Sealer;
}

const PAGE = 100;

/**
 * Removes the secrets of keys from purchases that settled long enough ago, at most a page at a
 * time.
 */
export async function blankSecrets(
  { store, sealer }: RetentionParts,
  nowMs: number,
): Promise<void> {
  const query = store.db
    .selectFrom("purchase")
    .select(["id", "fulfilment"])
    .where("blank_at", "<=", BigInt(Math.floor(nowMs)));
  for (const { id, fulfilment } of await query.orderBy("blank_at").limit(PAGE).execute()) {
    const given = fulfilment === null ? null : openFulfilment(sealer, id, fulfilment);
    const blank =
      given?.kind === "create_key"
        ? { fulfilment: sealFulfilment(sealer, id, { ...given, secret: "" }) }
        : {};
    await store.db
      .updateTable("purchase")
      .set({ ...blank, blank_at: null })
      .where("id", "=", id)
      .execute();
  }
}

/**
 * Seals with the present secret what was sealed with the previous one. Returns the number of
 * purchases that changed.
 */
export async function resealPurchases(parts: RetentionParts): Promise<number> {
  const { store, sealer } = parts;
  const isOld = (sealed: string | null) => sealed !== null && !sealer.isCurrent(sealed);
  let resealed = 0;
  for (let after = ""; ; ) {
    const rows = await store.db
      .selectFrom("purchase")
      .select(["id", "material", "fulfilment"])
      .where("id", ">", after)
      .orderBy("id")
      .limit(PAGE)
      .execute();
    for (const { id, material, fulfilment } of rows)
      if ((isOld(material) || isOld(fulfilment)) && (await resealPurchase(parts, id))) resealed++;
    if (rows.length < PAGE) return resealed;
    after = rows.at(-1)?.id ?? after;
  }
}

/** False = a secret that it was sealed with is not known any more. */
function resealPurchase({ store, sealer }: RetentionParts, id: string): Promise<boolean> {
  const again = (sealed: string, what: Parameters<typeof contextOf>[0]): string => {
    const text = sealer.open(sealed, contextOf(what, id));
    return text === null ? sealed : sealer.seal(text, contextOf(what, id));
  };
  return store.transaction(async (tx) => {
    const { material: before, fulfilment: given } = await locked(tx, id);
    const material = again(before, "material");
    const fulfilment = given === null ? null : again(given, "fulfilment");
    const purchase = tx.updateTable("purchase").set({ material, fulfilment });
    await purchase.where("id", "=", id).execute();
    for (const { position, raw } of await submissionsOf(tx, id))
      if (raw !== null)
        await tx
          .updateTable("purchase_submission")
          .set({ raw: again(raw, "raw") })
          .where("purchase_id", "=", id)
          .where("position", "=", position)
          .execute();
    return material !== before || fulfilment !== given;
  });
}
