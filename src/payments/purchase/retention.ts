// What sealed fields of purchases keep: removes the secrets of keys after a time. Changes no state
// and no money.
import type { Sealer } from "../../secrets/sealer.ts";
import type { Store } from "../../shared/store/store.ts";
import { openFulfilment, sealFulfilment } from "./record.ts";

const PAGE = 100;

/**
 * Removes the secrets of keys from purchases that settled long enough ago, at most a page at a
 * time.
 */
export async function blankSecrets(
  { store, sealer }: { readonly store: Store; readonly sealer: Sealer },
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
