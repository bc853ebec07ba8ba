// Merged accounts: locks an account together with its parts, and moves money that returns to a part
// on to the whole. Knows no key.
import type { Store } from "../store/store.ts";
import { postAll, type Tx } from "./ledger.ts";

/** The account that one was merged into; null = it stands alone, undefined = there is none. */
export async function mergedInto(
  db: Pick<Store["db"], "selectFrom">,
  id: string,
): Promise<string | null | undefined> {
  const account = await db
    .selectFrom("account")
    .select("merged_into")
    .where("id", "=", id)
    .executeTakeFirst();
  return account?.merged_into;
}

/**
 * The accounts together with the accounts that they were merged into, in the order in which rows
 * are locked.
 */
export async function withTargets(tx: Tx, ids: readonly string[]): Promise<readonly string[]> {
  const rows = await tx
    .selectFrom("account")
    .select("merged_into")
    .where("id", "in", ids)
    .where("merged_into", "is not", null)
    .execute();
  return [...new Set([...ids, ...rows.flatMap((row) => row.merged_into ?? [])])].sort();
}

/**
 * Moves money that returned to merged accounts on to the accounts they are part of. `names` gives
 * the idempotency key of the event for each account.
 */
export async function moveOn(
  tx: Tx,
  names: ReadonlyMap<string, string>,
  atMs: number,
): Promise<void> {
  if (names.size === 0) return;
  const rows = await tx
    .selectFrom("account")
    .select(["id", "merged_into", "balance_n"])
    .where("id", "in", [...names.keys()])
    .where("merged_into", "is not", null)
    .where("balance_n", ">", 0n)
    .$narrowType<{ merged_into: string }>()
    .execute();
  const events = rows.map(({ id, merged_into: toId, balance_n: amountN }) => {
    const idemKey = `merged:${names.get(id)}`;
    return { kind: "move", idemKey, fromId: id, toId, amountN, atMs } as const;
  });
  if ((await postAll(tx, events)) !== events.length)
    throw new Error("what came back to a merged account was moved on before");
}
