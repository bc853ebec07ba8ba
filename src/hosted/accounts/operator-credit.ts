// Credit that the operator gives an account for money received elsewhere: once for each reference.
// Knows no operation of the API.
import { recordChange } from "../../cluster/change-log.ts";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import { lockAccount, post } from "../../ledger/ledger.ts";
import type { Store } from "../../store/store.ts";

/** Money received for an account outside of this service. */
export interface ReceivedCredit {
  readonly accountId: string;
  readonly idemKey: string;
  readonly amountN: bigint;
  readonly atMs: number;
}

/** Credits an account once; false = it was credited before. */
export function creditAccountOnce(
  store: Store,
  payment: ReceivedCredit,
): Promise<boolean | ApiFault<"not_found" | "account_merged" | "invalid_field">> {
  return store.transaction(async (tx) => {
    // A concurrent claim waits, or is seen here.
    await lockAccount(tx, payment.accountId);
    const account = await tx
      .selectFrom("account")
      .select("merged_into")
      .where("id", "=", payment.accountId)
      .executeTakeFirst();
    if (account === undefined) return apiFault("not_found", "no account has this id");
    if (account.merged_into !== null)
      return apiFault("account_merged", "the account was merged into another one", {
        nextAction: "credit that one",
      });
    if (await post(tx, { kind: "payment", ...payment })) {
      await recordChange(tx, { topic: "account", ref: payment.accountId });
      return true;
    }
    const before = await tx
      .selectFrom("ledger_tx")
      .innerJoin("ledger_entry", "ledger_entry.tx_id", "ledger_tx.id")
      .select(["account_id", "amount_n"])
      .where("idem_key", "=", payment.idemKey)
      .where("book", "=", "account")
      .executeTakeFirst();
    if (before?.account_id === payment.accountId && before.amount_n === payment.amountN)
      return false;
    return apiFault("invalid_field", "this reference was used for another account or amount", {
      details: ["reference"],
      nextAction: "use another reference",
    });
  });
}
