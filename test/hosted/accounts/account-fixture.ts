// Accounts for tests of the store: made and read without the room that makes them for callers.
import { post } from "../../../src/shared/ledger/ledger.ts";
import type { Store } from "../../../src/shared/store/store.ts";
import type { AccountTable } from "../../../src/shared/store/tables.ts";

/** Makes an account without money. */
export async function createAccount(
  store: Store,
  id: string,
  given: Partial<AccountTable> = {},
): Promise<void> {
  const empty = {
    kind: "account",
    balance_n: 0n,
    funded_n: 0n,
    first_paid_at: null,
    exhausted_at: null,
    merged_into: null,
    created_at: 1n,
  } as const;
  await store.db
    .insertInto("account")
    .values({ id, ...empty, ...given })
    .execute();
}

/** Makes an account that has paid. */
export async function createPaid(store: Store, id: string, amountN: bigint): Promise<void> {
  await createAccount(store, id);
  await credit(store, id, { idemKey: `first:${id}`, amountN });
}

/** A payment to an account; false = it came before. */
export function credit(
  store: Store,
  accountId: string,
  { idemKey, amountN }: { readonly idemKey: string; readonly amountN: bigint },
): Promise<boolean> {
  return store.transaction((tx) =>
    post(tx, { kind: "payment", idemKey, accountId, amountN, atMs: 1 }),
  );
}

/** What the money of an account looks like. */
export function accountOf(
  store: Store,
  id: string,
): Promise<Pick<AccountTable, "balance_n" | "funded_n" | "first_paid_at" | "exhausted_at">> {
  return store.db
    .selectFrom("account")
    .select(["balance_n", "funded_n", "first_paid_at", "exhausted_at"])
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
}

/** What of an account's money no node holds. */
export async function balanceOf(store: Store, id: string): Promise<bigint> {
  return (await accountOf(store, id)).balance_n;
}
