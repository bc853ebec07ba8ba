// What nodes do when a balance is dry while other nodes hold idle credit of it: the node without
// credit asks, and other nodes return idle credit. Statements and decisions; knows no timer.
import { sql } from "kysely";
import { recordChange } from "../../shared/changes/change-log.ts";
import { lockAccounts, type Tx } from "../../shared/ledger/ledger.ts";
import { moveOn, withTargets } from "../../shared/ledger/merged-accounts.ts";
import type { Epoch } from "../../shared/nodes/node-rows.ts";
import { valueRows } from "../../shared/store/engine.ts";
import { addToBalances, type LeaseRequest } from "./lease.ts";
import type { Wallet } from "./wallet.ts";

/** For how long a dry wallet waits for what was called back. */
export const RECALL_MS = 500;
/** An account is called back no sooner than this after the last time. */
const RECALL_EVERY_MS = 5_000;
/** A wallet that was used within this time keeps half of what it has. */
const IN_USE_MS = 1_000;
/** A node returns something of an account no sooner than this after the last time. */
const RETURN_EVERY_MS = 250;

/** Whether a dry wallet may call back now. */
export function mayRecall({ recalledAtMs }: Wallet, nowMs: number): boolean {
  return nowMs - recalledAtMs >= RECALL_EVERY_MS;
}

/**
 * Has the calls of a dry wallet, for which this was requested in vain, wait for what was called
 * back; after some time they do not.
 */
export function awaitRecall(wallet: Wallet, request: LeaseRequest, nowMs: number): void {
  if (mayRecall(wallet, nowMs)) wallet.recalledAtMs = nowMs;
  if (nowMs - wallet.recalledAtMs >= RECALL_MS) return;
  wallet.isRecalling = true;
  wallet.state = "unknown";
  wallet.shortN += request.shortN;
  wallet.needN = Math.max(wallet.needN, request.needN);
}

/**
 * The amount that a wallet can spare for another node. Null = not known yet: the wallet waits for
 * the store, or has just returned credit.
 */
export function spareN(wallet: Wallet, nowMs: number): number | null {
  if (wallet.isRecalling) return 0;
  if (wallet.isClosing || wallet.isRefilling) return null;
  if (wallet.grantedN === 0) return 0;
  if (nowMs - wallet.returnedAtMs < RETURN_EVERY_MS) return null;
  return nowMs - wallet.usedAtMs < IN_USE_MS
    ? Math.floor(wallet.availableN / 2)
    : wallet.availableN;
}

/**
 * Takes what is to be returned out of a wallet, before the store is told: whether that arrived or
 * not, the next refill learns what was granted in all.
 */
export function setAside(wallet: Wallet, amountN: number, nowMs: number): void {
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
}

/** What a node returns of several accounts. */
export interface ReturnedCredits {
  readonly returns: readonly ReturnedCredit[];
  readonly atMs: number;
}

/**
 * Moves parts of leases back to their balances, and tells the other nodes. Returns the accounts of
 * which that was done; of the others there is no such lease any more.
 */
export async function returnCredit(
  tx: Tx,
  { nodeId, epoch }: Epoch,
  { returns, atMs }: ReturnedCredits,
): Promise<readonly string[]> {
  const accountIds = returns.map(({ accountId }) => accountId).sort();
  await lockAccounts(tx, ...(await withTargets(tx, accountIds)));
  const rows = returns.map(({ accountId, amountN }) => [accountId, BigInt(amountN)] as const);
  const taken = await sql<{ readonly account_id: string }>`
    update credit_lease set granted_n = granted_n - change.column2
    from (values ${valueRows(rows)}) as change
    where account_id = change.column1 and node_id = ${nodeId} and epoch = ${epoch}
      and granted_n - spent_n >= change.column2
    returning account_id`.execute(tx);
  const returned = new Set(taken.rows.map(({ account_id }) => account_id));
  const done = returns.filter(({ accountId }) => returned.has(accountId));
  if (done.length === 0) return [];
  await addToBalances(
    tx,
    done.map(({ accountId, amountN }) => [accountId, BigInt(amountN)]),
  );
  await moveOn(tx, new Map(done.map(({ accountId, name }) => [accountId, name])), atMs);
  await recordChange(
    tx,
    ...done.map(({ accountId: ref }) => ({ topic: "returned", ref }) as const),
  );
  return done.map(({ accountId }) => accountId);
}
