// Reads accounts: balance, included allowance, and the service tier of the next call. Knows no
// secret of a key and changes nothing.

import { smallestPriceN, type Tariff } from "../../core/billing/price.ts";
import { type ApiFault, apiFault } from "../../core/faults/api-fault.ts";
import { readSecret } from "../../secrets/secret.ts";
import { recordChange } from "../../shared/changes/change-log.ts";
import { leasedN } from "../../shared/ledger/leased-credit.ts";
import { lockAccounts, post } from "../../shared/ledger/ledger.ts";
import { mergedInto } from "../../shared/ledger/merged-accounts.ts";
import type { Store } from "../../shared/store/store.ts";
import type { AccountKind } from "../../shared/store/tables.ts";
import { monthOf, monthStartMs } from "../credit/usage-buffer.ts";
import { keyBySecret, liveKeys } from "../keys/keys.ts";
import { managementTokenBySecret, managementTokenEnd } from "../keys/management-token.ts";

export { mergedInto } from "../../shared/ledger/merged-accounts.ts";

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

/** Credit that the operator gives to an account. */
export interface OperatorCredit {
  /** `payment` = for money that came in elsewhere, `grant` = for nothing. */
  readonly kind: "payment" | "grant";
  readonly accountId: string;
  readonly idemKey: string;
  readonly amountN: bigint;
  readonly atMs: number;
}

/** Credits an account once; false = it was credited before. */
export function creditAccountOnce(
  store: Store,
  credit: OperatorCredit,
): Promise<boolean | ApiFault<"not_found" | "account_merged" | "invalid_field">> {
  return store.transaction(async (tx) => {
    // A concurrent claim waits, or is seen here.
    await lockAccounts(tx, credit.accountId);
    const target = await mergedInto(tx, credit.accountId);
    if (target === undefined) return apiFault("not_found", "no account has this id");
    if (target !== null)
      return apiFault("account_merged", "the account was merged into another one", {
        nextAction: "credit that one",
      });
    if (await post(tx, credit)) {
      await recordChange(tx, { topic: "account", ref: credit.accountId });
      return true;
    }
    const before = await tx
      .selectFrom("ledger_tx")
      .innerJoin("ledger_entry", "ledger_entry.tx_id", "ledger_tx.id")
      .select(["kind", "account_id", "amount_n"])
      .where("idem_key", "=", credit.idemKey)
      .where("book", "=", "account")
      .executeTakeFirst();
    if (
      before?.account_id === credit.accountId &&
      before.amount_n === credit.amountN &&
      before.kind === credit.kind
    )
      return false;
    return apiFault("invalid_field", "this reference was used for other credit", {
      details: ["reference"],
      nextAction: "use another reference",
    });
  });
}

/** A proven owner of an account. */
export interface Owner {
  readonly kind: "owner";
  readonly accountId: string;
  /** Slugs that the secret may use; null = all. */
  readonly profiles: readonly string[] | null;
  /** Whether the secret manages the account; a key may only call. */
  readonly manages: boolean;
  /** When the secret ends; null = it does not. */
  readonly expiresAtMs: number | null;
}

/**
 * Why a secret proves no ownership: not a secret of this service; unknown; ended; its account is
 * anonymous or was merged; read-only.
 */
export type NoOwner = "malformed" | "unknown" | "ended" | "no_account" | "read_only";

/**
 * A key may be known to more people than its account's token: a grant made with a key ends after a
 * day, even if the key stays valid.
 */
const KEY_GRANT_MS = 86_400_000;

/** The owner that a management token or RPC key proves, or why it proves none. */
export async function ownerOf(
  store: Store,
  secret: string,
  nowMs: number,
): Promise<Owner | NoOwner> {
  const kind = readSecret(secret);
  if (kind === "token") return agentOwner(store, secret, nowMs);
  if (kind !== "key") return "malformed";
  const key = await keyBySecret(store, secret, nowMs);
  if (key === null) return "unknown";
  if (key.type !== "account") return "no_account";
  return {
    kind: "owner",
    accountId: key.accountId,
    profiles: key.allowedProfiles,
    manages: false,
    expiresAtMs: nowMs + KEY_GRANT_MS,
  };
}

async function agentOwner(store: Store, token: string, nowMs: number): Promise<Owner | NoOwner> {
  const agent = await managementTokenBySecret(store, token);
  if (agent === null) return "unknown";
  if (managementTokenEnd(agent, nowMs) !== null) return "ended";
  if (agent.readOnly) return "read_only";
  if ((await mergedInto(store.db, agent.accountId)) !== null) return "no_account";
  return {
    kind: "owner",
    accountId: agent.accountId,
    profiles: agent.profiles,
    manages: true,
    expiresAtMs: agent.expiresAtMs,
  };
}
