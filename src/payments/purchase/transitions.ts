// The states of a purchase: accepted → submitted → settled | failed, and from failed to settled if
// its money has moved after all. Each transition is one transaction of the store, written before
// the act that it names; a transition that happened meanwhile is not repeated. Talks to no chain.
import { isEmbedded, type Tx } from "../../shared/ledger/ledger.ts";
import type { ChainStatus, Draft, Submission } from "../rails/rail.ts";
import { type Beneficiaries, fulfil } from "./fulfilment.ts";
import {
  contextOf,
  type PurchaseRow,
  parsePurpose,
  type SubmissionRow,
  sealFulfilment,
} from "./record.ts";
import { locked, type RowParts, submissionsOf } from "./rows.ts";

/** Submissions of one purchase, at most. */
export const MAX_SUBMISSIONS = 16;

/** How long a repeated payment is answered with the secret of the key that it bought. */
const SECRET_MS = 7 * 86_400_000;

/** The next submission of a purchase. */
export interface NextSubmission {
  readonly id: string;
  /** Submissions that were recorded when this one was drafted. */
  readonly position: number;
  readonly draft: Draft;
  /** The submission whose nonce it uses again; null = it takes a nonce of its own. */
  readonly replaces: SubmissionRow | null;
  readonly nowMs: number;
}

/**
 * Signs a submission and records it; only then may it be sent. Null = another process went on with
 * the purchase meanwhile, or it has to wait.
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
        : (replaces?.nonce ?? (await takeNonce(tx, walletId, draft.wallet.chainNonce)));
    // Checked only now: a concurrent submission for the same payer has waited for the wallet's
    // lock.
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

/** The id of a wallet on one chain, distinct from an earlier chain with the same number. */
export function walletIdOf(wallet: string, network: string): string {
  return `${wallet}:${network}`;
}

/**
 * The first nonce at or after `from` that no submission uses that may have to be sent again. Called
 * with the wallet's row locked. Read in pages: a wallet has few open submissions, and mostly none.
 */
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
 * Whether the payer holds enough for this payment and for those already sent that have not ended.
 * Called with the wallet's row locked.
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

/** What settling a purchase needs. */
export interface SettleParts extends RowParts {
  readonly beneficiaries: Beneficiaries;
}

/**
 * Settles a purchase whose money has moved, also one that had failed: its fulfilment happens in the
 * same transaction. Returns the row after it.
 */
export function settle(
  parts: SettleParts,
  id: string,
  {
    status,
    nowMs,
  }: { readonly status: ChainStatus & { readonly kind: "settled" }; readonly nowMs: number },
) {
  return parts.store.transaction(async (tx): Promise<PurchaseRow> => {
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
      return ended(tx, id, failure(`this transfer has paid for ${other.id} already`), nowMs);
    const given = await give(parts, tx, { row, from: "chain", nowMs });
    const settled = { state: "settled", reason: null, settled_ref: settledRef } as const;
    return ended(tx, id, { ...settled, tx_hash: status.txHash, ...given }, nowMs);
  });
}

/** The columns of what money gives; null in them = its beneficiary is gone, and it is held. */
async function give(
  { sealer, beneficiaries }: SettleParts,
  tx: Tx,
  {
    row,
    from,
    nowMs,
  }: { readonly row: PurchaseRow; readonly from: "chain" | "held"; readonly nowMs: number },
): Promise<Pick<PurchaseRow, "fulfilment" | "blank_at">> {
  const { id, amount_n: amountN } = row;
  const purpose = parsePurpose(row.purpose);
  const money = { purchaseId: id, purpose, amountN, atMs: nowMs, from };
  const fulfilment = await fulfil(tx, money, beneficiaries);
  if (fulfilment === null) return { fulfilment: null, blank_at: null };
  const isSecret = fulfilment.kind === "create_key";
  return {
    fulfilment: sealFulfilment(sealer, id, fulfilment),
    blank_at: isSecret ? BigInt(Math.floor(nowMs) + SECRET_MS) : null,
  };
}

/**
 * Fails a purchase whose money will never move; another payment may use its offer. Returns the row
 * after it.
 */
export function fail(
  { store }: RowParts,
  id: string,
  { reason, nowMs }: { readonly reason: string; readonly nowMs: number },
): Promise<PurchaseRow> {
  return store.transaction(async (tx) => {
    const row = await locked(tx, id);
    return row.ended_at === null ? ended(tx, id, failure(reason), nowMs) : row;
  });
}

function failure(reason: string): Partial<PurchaseRow> {
  return { state: "failed", reason, offer_claim: null };
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

/** Gives held money to its beneficiary, if there is one by now. Returns the row after it. */
export function giveHeld(parts: SettleParts, id: string, nowMs: number): Promise<PurchaseRow> {
  return parts.store.transaction(async (tx) => {
    const row = await locked(tx, id);
    if (row.state !== "settled" || row.fulfilment !== null) return row;
    const given = await give(parts, tx, { row, from: "held", nowMs });
    if (given.fulfilment === null) return row;
    return tx
      .updateTable("purchase")
      .set(given)
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirstOrThrow();
  });
}

/**
 * Records the next nonce that a wallet's chain reports: submissions with lower nonces need not be
 * sent again. Transactions with higher nonces must be sent again, even if they were on the chain
 * before: the chain was reorganised deeper than expected, and all later nonces wait for them.
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

/**
 * Takes the lowest free nonce of a wallet: at or above the chain's own, and used by no open
 * submission. An earlier count is no lower bound: if a node once reported a wrong nonce, or a
 * transaction got lost, it would skip a nonce for ever, and every later transaction would wait for
 * that one.
 */
async function takeNonce(tx: Tx, walletId: string, chainNonce: bigint): Promise<bigint> {
  await tx
    .insertInto("settlement_wallet")
    .values({ id: walletId, next_nonce: chainNonce })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await tx
    .selectFrom("settlement_wallet")
    .select("id")
    .where("id", "=", walletId)
    .$if(!isEmbedded(tx), (query) => query.forUpdate())
    .executeTakeFirstOrThrow();
  const nonce = await freeFrom(tx, walletId, chainNonce);
  await tx
    .updateTable("settlement_wallet")
    .set({ next_nonce: await freeFrom(tx, walletId, nonce + 1n) })
    .where("id", "=", walletId)
    .execute();
  return nonce;
}
