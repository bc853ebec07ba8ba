// What the operator gives accounts: days of Custom access, and credit for money that came in.
import { type ApiFault, apiFault } from "../../core/api-fault.ts";
import { parseUsd, usdText } from "../../core/price.ts";
import { accountById } from "../../hosted/accounts.ts";
import { grantCustomAccess } from "../../hosted/custom-access.ts";
import { lockAccount, post } from "../../hosted/ledger.ts";
import type { Store } from "../../hosted/store.ts";
import type { HandlerParts } from "../api/parts.ts";
import type { CONTRACT } from "../contract.ts";
import type { ApiHandlers } from "../contract-types.ts";
import { instant } from "./keys-view.ts";

type GiftHandlers = Pick<ApiHandlers<typeof CONTRACT>, "grantCustomAccess" | "creditAccount">;

/** Handlers of what the operator gives. */
export function operatorAccountHandlers({ world, store, changes }: HandlerParts): GiftHandlers {
  let grants = 0;
  return {
    async grantCustomAccess({ params, body }) {
      const nowMs = world.wallMs();
      const unique = `${Math.floor(nowMs).toString(36)}-${(++grants).toString(36)}-${Math.floor(world.random() * 36 ** 6).toString(36)}`;
      const source = body.reference === undefined ? `operator-once:${unique}` : `operator:${body.reference}`;
      const given = await grantCustomAccess(store, { accountId: params.id, days: body.days, source }, nowMs);
      if (given.kind === "api_fault") return given;
      await changes.account(params.id);
      return { kind: "answer", status: 200, body: { account_id: params.id, from: instant(given.fromMs), until: instant(given.untilMs) } };
    },
    async creditAccount({ params, body }) {
      const nowMs = world.wallMs();
      const posted = await credit(store, { accountId: params.id, idemKey: `operator:${body.reference}`, amountN: parseUsd(body.usd) ?? 0n, atMs: nowMs });
      if (typeof posted !== "boolean") return posted;
      // Also when it was there already: the first answer may have been lost.
      await changes.account(params.id);
      const account = await accountById(store, params.id, nowMs);
      return { kind: "answer", status: 200, body: { account_id: params.id, credited: posted, balance_usd: usdText(account?.balanceN ?? 0n) } };
    },
  };
}

interface Payment {
  readonly accountId: string;
  readonly idemKey: string;
  readonly amountN: bigint;
  readonly atMs: number;
}

/** Credits an account once; false = that had happened before. */
function credit(store: Store, payment: Payment): Promise<boolean | ApiFault<"not_found" | "account_merged" | "invalid_field">> {
  return store.transaction(async (tx) => {
    // A claim at the same time waits, or is seen here.
    await lockAccount(tx, payment.accountId);
    const account = await tx.selectFrom("account").select("merged_into").where("id", "=", payment.accountId).executeTakeFirst();
    if (account === undefined) return apiFault("not_found", "no account has this id");
    if (account.merged_into !== null) return apiFault("account_merged", "the account was merged into another one", { nextAction: "credit that one" });
    if (await post(tx, { kind: "payment", ...payment })) return true;
    const before = await tx
      .selectFrom("ledger_tx")
      .innerJoin("ledger_entry", "ledger_entry.tx_id", "ledger_tx.id")
      .select(["account_id", "amount_n"])
      .where("idem_key", "=", payment.idemKey)
      .where("book", "=", "account")
      .executeTakeFirst();
    if (before?.account_id === payment.accountId && before.amount_n === payment.amountN) return false;
    return apiFault("invalid_field", "this reference was used for another account or amount", { details: ["reference"], nextAction: "use another reference" });
  });
}
