// What settled money does, in the transaction that records the settlement: adds credit, creates a
// key, or extends Custom access. If the beneficiary is gone, the money is held for it. Knows no
// chain and no rail.

import type { Purpose } from "../../core/billing/payment.ts";
import { recordChange } from "../../shared/changes/change-log.ts";
import { leasedN } from "../../shared/ledger/leased-credit.ts";
import { lockAccounts, post, type Tx } from "../../shared/ledger/ledger.ts";
import { mergedInto } from "../../shared/ledger/merged-accounts.ts";
import type { Fulfilment } from "../payments.ts";

/** Money that has arrived, and what it is for. */
export interface SettledMoney {
  readonly purchaseId: string;
  readonly purpose: Purpose;
  readonly amountN: bigint;
  readonly atMs: number;
  /** `chain` = it has just arrived; `held` = it was held because its beneficiary was gone. */
  readonly from: "chain" | "held";
}

/** Merges of accounts that are followed in a row while the account is looked up. */
const MAX_MERGES = 3;

/**
 * Gives money to its beneficiary; null = the beneficiary is gone, and the money is (still) held.
 */
export async function fulfil(
  tx: Tx,
  money: SettledMoney,
  to: Beneficiaries,
): Promise<Fulfilment | null> {
  const done = await give(tx, money, to);
  if (done !== null && done.kind !== "create_key")
    await recordChange(tx, { topic: "account", ref: done.accountId });
  if (done === null && money.from === "chain") await postOnce(tx, money, { kind: "hold" });
  return done;
}

async function give(tx: Tx, money: SettledMoney, to: Beneficiaries): Promise<Fulfilment | null> {
  const { purpose } = money;
  switch (purpose.kind) {
    case "fund_key":
    case "credit_account": {
      const accountId =
        purpose.kind === "fund_key"
          ? await accountOfKey(tx, purpose.keyId)
          : await livingAccount(tx, purpose.accountId);
      return accountId === null
        ? null
        : { kind: purpose.kind, accountId, ...(await credit(tx, money, accountId)) };
    }
    case "create_key": {
      const created = await to.createKey(tx, purpose.name, money.atMs);
      const { id: keyId, accountId, secret, prefix } = created;
      const { balanceN } = await credit(tx, money, accountId);
      return { kind: "create_key", accountId, keyId, secret, prefix, balanceN };
    }
    case "custom_access":
      return giveAccess(tx, money, { ...purpose, to });
  }
}

async function giveAccess(
  tx: Tx,
  money: SettledMoney,
  { keyId, days, to, ...given }: AccessPurpose & { readonly to: Beneficiaries },
): Promise<Fulfilment | null> {
  const accountId = await livingAccount(tx, given.accountId);
  if (accountId === null) return null;
  const source = `purchase:${money.purchaseId}`;
  const period = await to.grantAccess(tx, { accountId, days, source }, money.atMs);
  await postOnce(tx, money, { kind: money.from === "chain" ? "access" : "release_access" });
  const { fromMs, untilMs } = period;
  return { kind: "custom_access", accountId, keyId, days, fromMs, untilMs };
}

type AccessPurpose = Purpose & { readonly kind: "custom_access" };

async function credit(
  tx: Tx,
  money: SettledMoney,
  accountId: string,
): Promise<{ readonly balanceN: bigint; readonly fundedN: bigint }> {
  await postOnce(tx, money, { kind: money.from === "chain" ? "payment" : "release", accountId });
  const row = await tx
    .selectFrom("account")
    .select(["balance_n", "funded_n"])
    .select(leasedN.as("leased_n"))
    .where("account.id", "=", accountId)
    .executeTakeFirstOrThrow();
  return { balanceN: row.balance_n + row.leased_n, fundedN: row.funded_n };
}

/** Under a ledger key of its own the money comes in, under another it leaves the held book. */
async function postOnce(
  tx: Tx,
  { purchaseId, amountN, atMs, from }: SettledMoney,
  event:
    | { readonly kind: "payment" | "release"; readonly accountId: string }
    | { readonly kind: "hold" | "access" | "release_access" },
): Promise<void> {
  const idemKey = `purchase:${purchaseId}${from === "chain" ? "" : ":released"}`;
  if (!(await post(tx, { ...event, idemKey, amountN, atMs })))
    throw new Error(`${idemKey} is in the ledger, and its purchase does not say so`);
}

/**
 * The account that owns a key now, locked for this transaction; null = the key is gone, and nobody
 * else manages its account.
 */
async function accountOfKey(tx: Tx, keyId: string): Promise<string | null> {
  const key = await tx
    .selectFrom("api_key")
    .select(["account_id", "revoked_at"])
    .where("id", "=", keyId)
    .executeTakeFirst();
  if (key === undefined) return null;
  const accountId = await livingAccount(tx, key.account_id);
  if (accountId === null || key.revoked_at === null) return accountId;
  const account = await tx
    .selectFrom("account")
    .select("kind")
    .where("id", "=", accountId)
    .executeTakeFirst();
  return account?.kind === "account" ? accountId : null;
}

/**
 * The account itself, or the one that it was merged into, locked for this transaction; null = there
 * is none.
 */
async function livingAccount(tx: Tx, accountId: string): Promise<string | null> {
  let id = accountId;
  for (let merges = 0; merges <= MAX_MERGES; merges++) {
    await lockAccounts(tx, id);
    const target = await mergedInto(tx, id);
    if (target === undefined) return null;
    if (target === null) return id;
    id = target;
  }
  throw new Error(`account ${accountId} became part of others more often than can be followed`);
}

/** Days of Custom access that a payment buys. */
export interface BoughtAccess {
  readonly accountId: string;
  readonly days: number;
  /** Idempotency key. */
  readonly source: string;
}

/** What payments need of keys and access. */
export interface Beneficiaries {
  /** Creates an anonymous key with an account of its own. */
  createKey(
    tx: Tx,
    name: string,
    atMs: number,
  ): Promise<{
    readonly id: string;
    readonly accountId: string;
    readonly secret: string;
    readonly prefix: string;
  }>;
  /** Extends the access of an existing account; throws where that is impossible. */
  grantAccess(
    tx: Tx,
    access: BoughtAccess,
    atMs: number,
  ): Promise<{ readonly fromMs: number; readonly untilMs: number }>;
}
