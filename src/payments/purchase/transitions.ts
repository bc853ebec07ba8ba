// The steps of a purchase: accepted → submitted → settled | failed, and from failed to settled
// where its money has moved after all. Each is one transaction, written before the act that it
// names; a step that was taken meanwhile is not taken twice. Talks to no chain.
import type { Tx } from "../../ledger/ledger.ts";
import type { Beneficiaries } from "../beneficiaries.ts";
import type { ChainStatus, Draft, Submission } from "../rails/rail.ts";
import { fulfil } from "./fulfilment.ts";
import { takeNonce } from "./nonces.ts";
import {
  contextOf,
  type PurchaseRow,
  parsePurpose,
  type SubmissionRow,
  sealFulfilment,
} from "./record.ts";
import { locked, type RowParts, submissionsOf } from "./rows.ts";

/** Transactions that are sent for one purchase at most. */
export const MAX_SUBMISSIONS = 16;

/** How long a repeated payment gets the key that it bought. */
const SECRET_MS = 7 * 86_400_000;

/** What is to be sent next for a purchase. */
export interface NextSubmission {
  readonly id: string;
  /** How many were written before, as far as the one who drafted knew. */
  readonly position: number;
  readonly draft: Draft;
  /** The submission that it replaces, whose nonce it has; null = it takes a nonce of its own. */
  readonly replaces: SubmissionRow | null;
  readonly nowMs: number;
}

/**
 * Signs a transaction and writes it down; only then may it be sent. Null = somebody else went on
 * with the purchase meanwhile, or it has to wait.
 */
export function submit(
  { store, sealer }: RowParts,
  { id, position, draft, replaces, nowMs }: NextSubmission,
): Promise<Submission | null> {
  return store.transaction(async (tx) => {
    const row = await locked(tx, id);
    if (row.ended_at !== null && replaces === null) return null;
    if ((await submissionsOf(tx, id)).length !== position || position >= MAX_SUBMISSIONS)
      return null;
    const walletId =
      draft.wallet === null
        ? null
        : (replaces?.wallet_id ?? walletIdOf(draft.wallet.id, row.network));
    const nonce =
      draft.wallet === null || walletId === null
        ? null
        : (replaces?.nonce ?? (await newNonce(tx, walletId, draft.wallet.chainNonce)));
    // Only now: a concurrent sender for the same payer has waited for the wallet.
    if (
      draft.heldUnits !== undefined &&
      replaces === null &&
      !(await isCovered(tx, row, draft.heldUnits))
    )
      return null;
    const submission = await draft.sign(nonce);
    const at = BigInt(Math.floor(nowMs));
    const raw = submission.raw === null ? null : sealer.seal(submission.raw, contextOf("raw", id));
    const place = {
      purchase_id: id,
      position: BigInt(position),
      wallet_id: walletId,
      nonce,
      passed_at: null,
    };
    await tx
      .insertInto("purchase_submission")
      .values({ ...place, tx_hash: submission.txHash, raw, created_at: at })
      .execute();
    if (row.ended_at === null)
      await tx
        .updateTable("purchase")
        .set({ state: "submitted", tx_hash: submission.txHash })
        .where("id", "=", id)
        .execute();
    return submission;
  });
}

/** Names a wallet on one chain, also where a chain with the same number was there before. */
export function walletIdOf(wallet: string, network: string): string {
  return `${wallet}:${network}`;
}

function newNonce(tx: Tx, walletId: string, chainNonce: bigint): Promise<bigint> {
  return takeNonce(tx, {
    walletId,
    chainNonce,
    freeFrom: (nonce) => freeFrom(tx, walletId, nonce),
  });
}

/** Counted in pages: a wallet has few that are open, and mostly none. */
async function freeFrom(tx: Tx, walletId: string, from: bigint): Promise<bigint> {
  for (let free = from; ; ) {
    const query = tx
      .selectFrom("purchase_submission")
      .select("nonce")
      .distinct()
      .where("wallet_id", "=", walletId)
      .where("passed_at", "is", null);
    const rows = await query
      .where("nonce", ">=", free)
      .orderBy("nonce")
      .limit(NONCES_PER_PAGE)
      .execute();
    const first = free;
    for (const { nonce } of rows) if (nonce === free) free++;
    if (free - first < BigInt(NONCES_PER_PAGE)) return free;
  }
}

const NONCES_PER_PAGE = 200;

/**
 * Whether the payer holds enough for this payment beside those that were sent for it and have not
 * ended. Asked after the wallet was taken.
 */
async function isCovered(
  tx: Tx,
  { id, payer, chain_id, network, token, units }: PurchaseRow,
  heldUnits: bigint,
): Promise<boolean> {
  const { sent } = await tx
    .selectFrom("purchase")
    .select((columns) => columns.fn.sum<bigint | string | null>("units").as("sent"))
    .where("payer", "=", payer)
    .where("chain_id", "=", chain_id)
    .where("network", "=", network)
    .where("token", "=", token)
    .where("state", "=", "submitted")
    .where("ended_at", "is", null)
    .where("id", "!=", id)
    .executeTakeFirstOrThrow();
  return units + BigInt(sent ?? 0n) <= heldUnits;
}

/** What settled money is given away with. */
export interface SettleParts extends RowParts {
  readonly beneficiaries: Beneficiaries;
}

/**
 * The money has moved, be it after all: what it was for happens in the same transaction. Returns
 * the row as it is then.
 */
export function settle(
  { store, sealer, beneficiaries }: SettleParts,
  id: string,
  {
    status,
    nowMs,
  }: { readonly status: ChainStatus & { readonly kind: "settled" }; readonly nowMs: number },
) {
  return store.transaction(async (tx): Promise<PurchaseRow> => {
    const row = await locked(tx, id);
    if (row.state === "settled") return row;
    const settledRef = `${row.chain_id}:${row.network}:${status.txHash.toLowerCase()}:${status.logIndex}`;
    const other = await tx
      .selectFrom("purchase")
      .select("id")
      .where("settled_ref", "=", settledRef)
      .executeTakeFirst();
    if (other !== undefined && row.state === "failed") return row;
    if (other !== undefined)
      return ended(
        tx,
        id,
        {
          state: "failed",
          reason: `this transfer has paid for ${other.id} already`,
          offer_claim: null,
        },
        nowMs,
      );
    const money = {
      purchaseId: id,
      purpose: parsePurpose(row.purpose),
      amountN: row.amount_n,
      atMs: nowMs,
      from: "chain",
    } as const;
    const fulfilment = await fulfil(tx, money, beneficiaries);
    const given =
      fulfilment === null
        ? NOTHING
        : givenAs(sealFulfilment(sealer, id, fulfilment), fulfilment.kind === "create_key", nowMs);
    return ended(
      tx,
      id,
      { state: "settled", reason: null, settled_ref: settledRef, tx_hash: status.txHash, ...given },
      nowMs,
    );
  });
}

const NOTHING = { fulfilment: null, blank_at: null } as const;

function givenAs(
  fulfilment: string,
  isSecret: boolean,
  nowMs: number,
): Pick<PurchaseRow, "fulfilment" | "blank_at"> {
  return { fulfilment, blank_at: isSecret ? BigInt(Math.floor(nowMs) + SECRET_MS) : null };
}

/**
 * The money will never move; its offer may be taken up by another payment. Returns the row as it is
 * then.
 */
export function fail(
  { store }: RowParts,
  id: string,
  { reason, nowMs }: { readonly reason: string; readonly nowMs: number },
): Promise<PurchaseRow> {
  return store.transaction(async (tx) => {
    const row = await locked(tx, id);
    return row.ended_at === null
      ? ended(tx, id, { state: "failed", reason, offer_claim: null }, nowMs)
      : row;
  });
}

function ended(
  tx: Tx,
  id: string,
  change: Partial<PurchaseRow>,
  nowMs: number,
): Promise<PurchaseRow> {
  return tx
    .updateTable("purchase")
    .set({ ...change, ended_at: BigInt(Math.floor(nowMs)), lease_node: null, lease_until: null })
    .where("id", "=", id)
    .returningAll()
    .executeTakeFirstOrThrow();
}

/**
 * Gives money that is held to whom it was for, where that is possible by now. Returns the row as it
 * is then.
 */
export function giveHeld(
  { store, sealer, beneficiaries }: SettleParts,
  id: string,
  nowMs: number,
): Promise<PurchaseRow> {
  return store.transaction(async (tx) => {
    const row = await locked(tx, id);
    if (row.state !== "settled" || row.fulfilment !== null) return row;
    const money = {
      purchaseId: id,
      purpose: parsePurpose(row.purpose),
      amountN: row.amount_n,
      atMs: nowMs,
      from: "held",
    } as const;
    const fulfilment = await fulfil(tx, money, beneficiaries);
    if (fulfilment === null) return row;
    const given = givenAs(
      sealFulfilment(sealer, id, fulfilment),
      fulfilment.kind === "create_key",
      nowMs,
    );
    return tx
      .updateTable("purchase")
      .set(given)
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirstOrThrow();
  });
}

/**
 * Notes how far a wallet's chain has come: what was sent with nonces below need not be sent again.
 * What has those from there on has to be, also where it was there before: the chain has gone back
 * further than it should, and whatever follows waits for it.
 */
export async function markPassed(
  { store }: Pick<RowParts, "store">,
  walletId: string,
  { below, nowMs }: { readonly below: bigint; readonly nowMs: number },
) {
  const ofWallet = () =>
    store.db.updateTable("purchase_submission").where("wallet_id", "=", walletId);
  const passed = ofWallet().set({ passed_at: BigInt(Math.floor(nowMs)) });
  await passed.where("nonce", "<", below).where("passed_at", "is", null).execute();
  await ofWallet()
    .set({ passed_at: null })
    .where("nonce", ">=", below)
    .where("passed_at", "is not", null)
    .execute();
}
