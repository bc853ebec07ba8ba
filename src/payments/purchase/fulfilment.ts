// What settled money does, in the transaction that records the settlement: adds credit, creates a
// key, or extends Custom access. If the beneficiary is gone, the money is held for it. Knows no
// chain and no rail.

import type { Purpose } from "../../core/billing/payment.ts";
import { recordChange } from "../../shared/changes/change-log.ts";
import { leasedN } from "../../shared/ledger/leased-credit.ts";
import { type LedgerEvent, lockAccounts, post, type Tx } from "../../shared/ledger/ledger.ts";
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
  if (done === null && money.from === "chain")
    await postOnce(tx, {
      kind: "hold",
      idemKey: ledgerKey(money),
      amountN: money.amountN,
      atMs: money.atMs,
    });
  return done;
}

/**
 * The ledger key of a purchase: under the first name its money comes in, under the second one it
 * leaves the held book.
 */
function ledgerKey({ purchaseId, from }: Pick<SettledMoney, "purchaseId" | "from">): string {
  return from === "chain" ? `purchase:${purchaseId}` : `purchase:${purchaseId}:released`;
}

async function give(tx: Tx, money: SettledMoney, to: Beneficiaries): Promise<Fulfilment | null> {
  const { purpose } = money;
  switch (purpose.kind) {
    case "fund_key": {
      const accountId = await accountOfKey(tx, purpose.keyId);
      return accountId === null
        ? null
        : { kind: "fund_key", accountId, ...(await credit(tx, money, accountId)) };
    }
    case "credit_account": {
      const accountId = await livingAccount(tx, purpose.accountId);
      return accountId === null
        ? null
        : { kind: "credit_account", accountId, ...(await credit(tx, money, accountId)) };
    }
    case "create_key": {
      const {
        id: keyId,
        accountId,
        secret,
        prefix,
      } = await to.createKey(tx, purpose.name, money.atMs);
      const { balanceN } = await credit(tx, money, accountId);
      return { kind: "create_key", accountId, keyId, secret, prefix, balanceN };
    }
    case "custom_access":
      return giveAccess(tx, { money, purpose, to });
  }
}

interface AccessGift {
  readonly money: SettledMoney;
  readonly purpose: Purpose & { readonly kind: "custom_access" };
  readonly to: Beneficiaries;
}

async function giveAccess(tx: Tx, { money, purpose, to }: AccessGift): Promise<Fulfilment | null> {
  const accountId = await livingAccount(tx, purpose.accountId);
  if (accountId === null) return null;
  const given = await to.grantAccess(
    tx,
    { accountId, days: purpose.days, source: `purchase:${money.purchaseId}` },
    money.atMs,
  );
  const { amountN, atMs, from } = money;
  await postOnce(tx, {
    kind: from === "chain" ? "access" : "release_access",
    idemKey: ledgerKey(money),
    amountN,
    atMs,
  });
  return {
    kind: "custom_access",
    accountId,
    keyId: purpose.keyId,
    days: purpose.days,
    fromMs: given.fromMs,
    untilMs: given.untilMs,
  };
}

async function credit(
  tx: Tx,
  money: SettledMoney,
  accountId: string,
): Promise<{ readonly balanceN: bigint; readonly fundedN: bigint }> {
  const { amountN, atMs, from } = money;
  await postOnce(tx, {
    kind: from === "chain" ? "payment" : "release",
    idemKey: ledgerKey(money),
    accountId,
    amountN,
    atMs,
  });
  const row = await tx
    .selectFrom("account")
    .select(["balance_n", "funded_n"])
    .select(leasedN.as("leased_n"))
    .where("account.id", "=", accountId)
    .executeTakeFirstOrThrow();
  return { balanceN: row.balance_n + row.leased_n, fundedN: row.funded_n };
}

async function postOnce(tx: Tx, event: LedgerEvent): Promise<void> {
  if (!(await post(tx, event)))
    throw new Error(`${event.idemKey} is in the ledger, and its purchase does not say so`);
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
