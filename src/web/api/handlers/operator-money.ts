// Handlers of what the operator reads of accounts and money.
import { usdText } from "../../../core/billing/price.ts";
import { apiFault } from "../../../core/faults/api-fault.ts";
import { NOTHING_USED, sumOf, type Used } from "../../../hosted/accounts/usage.ts";
import {
  type ListedAccount,
  listAccountKeys,
  listAccounts,
  parseAccountCursor,
} from "../../../hosted/operator/account-list.ts";
import { type RevenueDay, revenueByDay } from "../../../hosted/operator/revenue.ts";
import type { WalletReport } from "../../../payments/payments.ts";
import { allPurchases } from "../../../payments/purchase/all-purchases.ts";
import type { Handlers } from "../../contract/contract.ts";
import type { HandlerParts } from "../parts.ts";
import { cachedView } from "./accounts.ts";
import { purchaseBody } from "./purchases.ts";
import { instant, instantOrNull, ok } from "./views.ts";

type MoneyHandlers = Handlers<
  "listAccounts" | "listAccountKeys" | "listAllPurchases" | "listWallets" | "getRevenue"
>;

const DAY_MS = 86_400_000;

/** Creates the handlers. */
export function operatorMoneyHandlers(parts: HandlerParts): MoneyHandlers {
  return { ...accountHandlers(parts), ...incomeHandlers(parts) };
}

function accountHandlers({
  store,
  runtime,
}: HandlerParts): Pick<MoneyHandlers, "listAccounts" | "listAccountKeys"> {
  return {
    async listAccounts({ query: { search = null, after = null, ...query } }) {
      if (after !== null && parseAccountCursor(after) === null)
        return apiFault("invalid_field", "`after` is no `next` of this list", {
          details: ["after"],
        });
      const nowMs = runtime.wallMs();
      const page = await listAccounts(store, { ...query, search, after, nowMs });
      return ok({
        from: instant(page.fromMs),
        to: instant(page.toMs),
        accounts: page.accounts.map(accountView),
        next: page.next,
      });
    },
    async listAccountKeys({ params: { id }, query: { after = null, ...query } }) {
      const nowMs = runtime.wallMs();
      const page = await listAccountKeys(store, { ...query, after, accountId: id, nowMs });
      if (page === null) return apiFault("not_found", "no account has this id");
      const keys = page.keys.map((key) => ({
        id: key.id,
        name: key.name,
        prefix: key.prefix,
        default_profile: key.defaultProfile,
        created_at: instant(key.createdAtMs),
        revoked_at: instantOrNull(key.revokedAtMs),
        ...usedView(key),
      }));
      return ok({ keys, next: page.next });
    },
  };
}

function incomeHandlers({
  store,
  runtime,
  payments,
}: HandlerParts): Pick<MoneyHandlers, "listAllPurchases" | "listWallets" | "getRevenue"> {
  return {
    async listAllPurchases({ query: { state = null, account = null, limit, after = null } }) {
      const page = await allPurchases(store, { state, accountId: account, limit, after });
      const purchases = page.purchases.map(({ transactions, ...purchase }) => ({
        ...purchaseBody(purchase),
        transactions: transactions.map(({ txHash, atMs }) => ({
          tx_hash: txHash,
          at: instant(atMs),
        })),
      }));
      const { counts, next } = page;
      return ok({ purchases, counts, next });
    },
    async listWallets() {
      const wallets = (payments?.wallets() ?? []).map(({ wallet, chainId, ...rail }) => ({
        ...rail,
        chain_id: chainId,
        wallet: wallet === null ? null : walletView(wallet),
      }));
      return ok({ wallets });
    },
    async getRevenue({ query: { days: count } }) {
      const days = await revenueByDay(store, { days: count, nowMs: runtime.wallMs() });
      const [first, last] = [days[0]?.dayMs ?? 0, days.at(-1)?.dayMs ?? 0];
      return ok({
        from: instant(first),
        to: instant(last + DAY_MS),
        days: days.map((day) => ({ day: instant(day.dayMs).slice(0, 10), ...moneyView(day) })),
        totals: moneyView(days.reduce(sum, NOTHING)),
      });
    },
  };
}

function accountView(account: ListedAccount) {
  return {
    id: account.id,
    kind: account.kind,
    balance_usd: usdText(account.balanceN),
    funded_usd: usdText(account.fundedN),
    keys: account.keys,
    ...usedView(account),
    created_at: instant(account.createdAtMs),
    merged_into: account.mergedInto,
  };
}

function usedView(used: Used) {
  const { calls, cu, chargeN } = used;
  return { calls, cu, spent_usd: usdText(chargeN), ...cachedView(used) };
}

function walletView({ balanceWei, ...wallet }: NonNullable<WalletReport["wallet"]>) {
  return { ...wallet, balance_wei: String(balanceWei) };
}

type Money = Omit<RevenueDay, "dayMs">;

const NOTHING: Money = { ...NOTHING_USED, paidInN: 0n, grantedN: 0n };

function sum(a: Money, b: Money): Money {
  return {
    ...sumOf(a, b),
    paidInN: a.paidInN + b.paidInN,
    grantedN: a.grantedN + b.grantedN,
  };
}

function moneyView(money: Money) {
  return {
    calls: money.calls,
    cu: money.cu,
    ...cachedView(money),
    charged_usd: usdText(money.chargeN),
    paid_in_usd: usdText(money.paidInN),
    granted_usd: usdText(money.grantedN),
  };
}
