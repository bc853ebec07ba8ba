// What nodes do when a balance is dry though other nodes have some of it idle: the dry one calls it
// back, the others return what they can spare. Statements and decisions; knows no timer.
import { sql } from "kysely";
import { recordChange } from "../../cluster/change-log.ts";
import type { Epoch } from "../../cluster/node-rows.ts";
import { lockAccounts, type Tx } from "../../ledger/ledger.ts";
import { moveOn, withTargets } from "../../ledger/merged-accounts.ts";
import type { LeaseGrant, LeaseRequest } from "./lease.ts";
import type { OpenWallet } from "./wallet.ts";

/** For how long a dry wallet waits for what was called back. */
export const RECALL_MS = 500;
/** An account is called back no sooner than this after the last time. */
const RECALL_EVERY_MS = 5_000;
/** A wallet that was used within this time keeps half of what it has. */
const IN_USE_MS = 1_000;
/** A node returns something of an account no sooner than this after the last time. */
const RETURN_EVERY_MS = 250;

/** Whether a call waits that the answer does not pay for, and other nodes have some of it. */
export function isDryHere(
  { needN, hereN, grantedN }: LeaseRequest,
  { leftN, elsewhereN, ...answer }: LeaseGrant,
): boolean {
  const nowHereN = hereN + answer.grantedN - grantedN;
  return needN > 0 && leftN === 0 && elsewhereN > 0 && nowHereN < needN;
}

/** Whether a dry wallet may call back now. */
export function mayRecall({ recalledAtMs }: OpenWallet, nowMs: number): boolean {
  return nowMs - recalledAtMs >= RECALL_EVERY_MS;
}

/** A wallet that is dry, and what was asked for it in vain. */
export interface DryWallet {
  readonly wallet: OpenWallet;
  readonly request: LeaseRequest;
}

/** Has the calls of a dry wallet wait for what was called back; after some time they do not. */
export function awaitRecall({ wallet, request }: DryWallet, nowMs: number): void {
  if (mayRecall(wallet, nowMs)) wallet.recalledAtMs = nowMs;
  if (nowMs - wallet.recalledAtMs >= RECALL_MS) return;
  wallet.isRecalling = true;
  wallet.state = "unknown";
  wallet.shortN += request.shortN;
  wallet.needN = Math.max(wallet.needN, request.needN);
}

/** Has the other nodes return what they can spare of accounts. */
export async function recall(tx: Tx, accountIds: readonly string[]): Promise<void> {
  await recordChange(tx, ...accountIds.map((ref) => ({ topic: "recall", ref }) as const));
}

/** What a wallet can spare for another node; 0 = nothing, or not now. */
export function spareN(wallet: OpenWallet, nowMs: number): number {
  const isBusy = wallet.isClosing || wallet.isRefilling || wallet.isRecalling;
  if (isBusy || wallet.grantedN === 0 || nowMs - wallet.returnedAtMs < RETURN_EVERY_MS) return 0;
  return nowMs - wallet.usedAtMs < IN_USE_MS
    ? Math.floor(wallet.availableN / 2)
    : wallet.availableN;
}

/**
 * Takes what is to be returned out of a wallet, before the store is told: whether that arrived or
 * not, the next refill learns what was granted in all.
 */
export function setAside(wallet: OpenWallet, amountN: number, nowMs: number): void {
  wallet.isClosing = true;
  wallet.returnedAtMs = nowMs;
  wallet.availableN -= amountN;
  wallet.grantedN -= amountN;
  wallet.topN = wallet.availableN;
  wallet.lowWaterN = 0;
}

/** What a node returns of one account. */
export interface ReturnedCredit {
  readonly accountId: string;
  readonly amountN: number;
  /** Unique to this return. */
  readonly name: string;
  readonly atMs: number;
}

/**
 * Moves a part of a lease back to the balance, and tells the other nodes; false = there is no such
 * lease any more.
 */
export async function returnCredit(
  tx: Tx,
  { nodeId, epoch }: Epoch,
  { accountId, amountN, name, atMs }: ReturnedCredit,
): Promise<boolean> {
  const amount = BigInt(amountN);
  await lockAccounts(tx, await withTargets(tx, [accountId]));
  const { numUpdatedRows } = await tx
    .updateTable("credit_lease")
    .set((eb) => ({ granted_n: eb("granted_n", "-", amount) }))
    .where("account_id", "=", accountId)
    .where("node_id", "=", nodeId)
    .where("epoch", "=", epoch)
    .where(sql<boolean>`granted_n - spent_n >= cast(${amount} as bigint)`)
    .executeTakeFirst();
  if (numUpdatedRows === 0n) return false;
  await tx
    .updateTable("account")
    .set((eb) => ({ balance_n: eb("balance_n", "+", amount) }))
    .where("id", "=", accountId)
    .execute();
  await moveOn(tx, new Map([[accountId, name]]), atMs);
  await recordChange(tx, { topic: "returned", ref: accountId });
  return true;
}
