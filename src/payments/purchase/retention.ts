// What sealed fields of purchases keep: removes the secrets of keys after a time, and seals
// everything anew after a change of the service's secret. Changes no state and no money.
import type { Sealer } from "../../secrets/sealer.ts";
import type { Store } from "../../shared/store/store.ts";
import { contextOf, openFulfilment, sealFulfilment } from "./record.ts";

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
export async function resealPurchases({ store, sealer }: RetentionParts): Promise<number> {
  let resealed = 0;
  for (let after = ""; ; ) {
    const rows = await store.db
      .selectFrom("purchase")
      .select(["id", "material", "fulfilment"])
      .where("id", ">", after)
      .orderBy("id")
      .limit(PAGE)
      .execute();
    for (const row of rows) if (await resealPurchase({ store, sealer }, row)) resealed++;
    if (rows.length < PAGE) return resealed;
    after = rows.at(-1)?.id ?? after;
  }
}

async function resealPurchase(
  { store, sealer }: RetentionParts,
  {
    id,
    material,
    fulfilment,
  }: { readonly id: string; readonly material: string; readonly fulfilment: string | null },
): Promise<boolean> {
  const again = (sealed: string, context: string): string | null => {
    const text = sealer.isCurrent(sealed) ? null : sealer.open(sealed, context);
    return text === null ? null : sealer.seal(text, context);
  };
  const newMaterial = again(material, contextOf("material", id));
  const newFulfilment = fulfilment === null ? null : again(fulfilment, contextOf("fulfilment", id));
  if (newMaterial === null && newFulfilment === null) return false;
  const sent = await store.db
    .selectFrom("purchase_submission")
    .select(["position", "raw"])
    .where("purchase_id", "=", id)
    .execute();
  await store.transaction(async (tx) => {
    for (const { position, raw } of sent) {
      const newRaw = raw === null ? null : again(raw, contextOf("raw", id));
      if (newRaw !== null)
        await tx
          .updateTable("purchase_submission")
          .set({ raw: newRaw })
          .where("purchase_id", "=", id)
          .where("position", "=", position)
          .execute();
    }
    if (newMaterial !== null)
      await tx
        .updateTable("purchase")
        .set({ material: newMaterial })
        .where("id", "=", id)
        .where("material", "=", material)
        .execute();
    if (newFulfilment !== null)
      await tx
        .updateTable("purchase")
        .set({ fulfilment: newFulfilment })
        .where("id", "=", id)
        .where("fulfilment", "=", fulfilment)
        .execute();
  });
  return true;
}
