// Reads accounts: balance, included allowance, and the service tier of the next call. Knows no
// secret of a key and changes nothing.

import { smallestPriceN, type Tariff } from "../../core/billing/price.ts";
import { leasedN } from "../../ledger/leased-credit.ts";
import type { Store } from "../../store/store.ts";
import type { AccountKind } from "../../store/tables.ts";
import { monthOf, monthStartMs } from "../credit/usage-month.ts";
import { liveKeys } from "../keys/keys.ts";

/** An account with its balance and allowance. */
export interface AccountRecord {
  readonly id: string;
  readonly kind: AccountKind;
  /** Nano-USD, including credit leased to nodes. */
  readonly balanceN: bigint;
  readonly firstPaidAtMs: number | null;
  readonly exhaustedAtMs: number | null;
  /** Part of the free allowance used this month, in compute units. */
  readonly usedCu: number;
  /** Number of valid keys. */
  readonly keys: number;
  readonly createdAtMs: number;
}

/** An account by its id; null = none. */
export async function accountById(
  store: Store,
  id: string,
  nowMs: number,
): Promise<AccountRecord | null> {
  const row = await store.db
    .selectFrom("account")
    .leftJoin("allowance_month", (join) =>
      join
        .onRef("allowance_month.account_id", "=", "account.id")
        .on("month", "=", BigInt(monthOf(nowMs))),
    )
    .select([
      "account.id",
      "kind",
      "balance_n",
      "first_paid_at",
      "exhausted_at",
      "created_at",
      "used_cu",
    ])
    .select(leasedN.as("leased_n"))
    .where("account.id", "=", id)
    .executeTakeFirst();
  if (row === undefined) return null;
  return {
    id: row.id,
    kind: row.kind,
    balanceN: row.balance_n + row.leased_n,
    firstPaidAtMs: row.first_paid_at === null ? null : Number(row.first_paid_at),
    exhaustedAtMs: row.exhausted_at === null ? null : Number(row.exhausted_at),
    usedCu: Number(row.used_cu ?? 0n),
    keys: await liveKeys(store.db, id),
    createdAtMs: Number(row.created_at),
  };
}

/** The terms that decide how calls of an account are served. */
export interface AccountTerms {
  /** Free compute units per month. */
  readonly freeCuPerMonth: number;
  readonly fallbackMs: number;
  readonly tariff: Tariff;
}

/** How calls of an account are served now. */
export interface AccountView {
  /** `premium` = paid from the balance, `public` = by public providers, `none` = refused. */
  readonly access: "premium" | "public" | "none";
  /**
   * Until when an account without balance is still served because it has paid before; null = it is
   * not.
   */
  readonly fallbackUntilMs: number | null;
  readonly allowanceCu: number;
  readonly resetsAtMs: number;
}

/**
 * How calls of an account are served now, by the same rules as admission. Accounts of anonymous
 * keys have no free allowance.
 */
export function accountViewOf(
  account: AccountRecord,
  { freeCuPerMonth, fallbackMs, tariff }: AccountTerms,
  nowMs: number,
): AccountView {
  const { balanceN, firstPaidAtMs } = account;
  // The time at which a balance ran out is stored with a delay; until then the current time is
  // used. A balance below the price of the cheapest call counts as empty.
  const exhaustedAtMs =
    account.exhaustedAtMs ?? (balanceN < BigInt(smallestPriceN(tariff)) ? nowMs : null);
  const untilMs =
    firstPaidAtMs === null || exhaustedAtMs === null ? null : exhaustedAtMs + fallbackMs;
  const fallbackUntilMs = untilMs !== null && untilMs > nowMs ? untilMs : null;
  const allowanceCu = account.kind === "anonymous" ? 0 : freeCuPerMonth;
  const resetsAtMs = monthStartMs(monthOf(nowMs) + 1);
  const isFree = fallbackUntilMs !== null || account.usedCu < allowanceCu;
  const withoutBalance = isFree ? "public" : "none";
  return {
    access: exhaustedAtMs === null ? "premium" : withoutBalance,
    fallbackUntilMs,
    allowanceCu,
    resetsAtMs,
  };
}
