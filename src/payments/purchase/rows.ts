// Rows of purchases: finds them, inserts them, and leases each to one node at a time. Changes of
// state stand in `transitions.ts`.
import type { ExpressionBuilder } from "kysely";
import type { Purpose } from "../../core/billing/payment.ts";
import type { Sealer } from "../../secrets/sealer.ts";
import { newId } from "../../secrets/secret.ts";
import { isEmbedded, type Tx } from "../../shared/ledger/ledger.ts";
import type { Store } from "../../shared/store/store.ts";
import type { Tables } from "../../shared/store/tables.ts";
import type { Payment, Rail } from "../rails/rail.ts";
import { contextOf, type PurchaseRow, purposeText, type SubmissionRow } from "./record.ts";

/** What reading and writing rows needs. */
export interface RowParts {
  readonly store: Store;
  readonly sealer: Sealer;
  /** The id of the node that leases. */
  readonly node: string;
}

/** A payment that is to be recorded. */
export interface NewPurchase {
  readonly payment: Payment;
  readonly rail: Pick<Rail, "method" | "chainId" | "token" | "recipient">;
  readonly network: string;
  readonly protocol: PurchaseRow["protocol"];
  readonly offerId: string;
  readonly fingerprint: string;
  readonly purpose: Purpose;
  readonly amountN: bigint;
}

/**
 * The result of recording a payment: `new`, `there` = it was recorded before, `offer_used` =
 * another payment has used its offer, `too_many` = its payer has too many open purchases.
 */
export type Recorded =
  | { readonly kind: "new"; readonly row: PurchaseRow }
  | { readonly kind: "there"; readonly row: PurchaseRow }
  | { readonly kind: "offer_used"; readonly id: string }
  | { readonly kind: "too_many" };

/**
 * Open purchases of one payer. Payments that the client claims to have sent itself are not counted:
 * nothing proves yet who sent them, and their money moves in any case.
 */
const MAX_OPEN_OF_PAYER = 16;

/** How long a lease lasts without renewal: longer than any call to a chain. */
export const LEASE_MS = 30_000;

/**
 * A time further ahead than this was written by a clock that was set back since, and counts as
 * past. Every purchase is checked more often than this.
 */
const MAX_AHEAD_MS = 120_000n;

/**
 * Records a payment before anything is done with it, leased to this node. Of two concurrent
 * recordings of one payment, one is written.
 */
export function record(
  { store, sealer, node }: RowParts,
  purchase: NewPurchase,
  nowMs: number,
): Promise<Recorded> {
  const { payment, offerId } = purchase;
  return store.transaction(async (tx) => {
    const there = await byKeys({ db: tx }, [payment.key]);
    if (there !== null) return { kind: "there", row: there };
    const used = await usedOffer({ db: tx }, offerId);
    if (used !== null && !payment.isSent) return { kind: "offer_used", id: used };
    if (!payment.isSent && (await openOf(tx, payment.payer)) >= MAX_OPEN_OF_PAYER)
      return { kind: "too_many" };
    const row = await tx
      .insertInto("purchase")
      .values(rowOf(purchase, { sealer, node, nowMs }))
      .onConflict((conflict) => conflict.doNothing())
      .returningAll()
      .executeTakeFirst();
    if (row !== undefined) return { kind: "new", row };
    const first = await byKeys({ db: tx }, [payment.key]);
    if (first !== null) return { kind: "there", row: first };
    const taken = await usedOffer({ db: tx }, offerId);
    if (taken === null) throw new Error("a purchase was neither written nor there");
    return { kind: "offer_used", id: taken };
  });
}

function rowOf(
  purchase: NewPurchase,
  { sealer, node, nowMs }: Pick<RowParts, "sealer" | "node"> & { readonly nowMs: number },
): PurchaseRow {
  const { payment, rail, offerId } = purchase;
  const id = newId("pur", nowMs);
  const now = BigInt(Math.floor(nowMs));
  return {
    id,
    payment_key: payment.key,
    offer_id: offerId,
    offer_claim: payment.isSent ? null : offerId,
    fingerprint: purchase.fingerprint,
    purpose: purposeText(purchase.purpose),
    units: payment.units,
    amount_n: purchase.amountN,
    rail: rail.method,
    protocol: purchase.protocol,
    chain_id: BigInt(rail.chainId),
    network: purchase.network,
    token: rail.token,
    recipient: rail.recipient,
    payer: payment.payer,
    material: sealer.seal(payment.material, contextOf("material", id)),
    is_sent: payment.isSent ? 1n : 0n,
    valid_until: payment.validUntilMs === null ? null : BigInt(Math.floor(payment.validUntilMs)),
    state: "accepted",
    reason: null,
    tx_hash: null,
    settled_ref: null,
    fulfilment: null,
    blank_at: null,
    created_at: now,
    ended_at: null,
    look_at: now,
    looks: 0n,
    lease_node: node,
    lease_until: now + BigInt(LEASE_MS),
  };
}

/** A store, or a transaction of it. */
interface Reader {
  readonly db: Pick<Store["db"], "selectFrom">;
}

/** The purchase that has used an offer; null = none has. */
export async function usedOffer({ db }: Reader, offerId: string): Promise<string | null> {
  const row = await db
    .selectFrom("purchase")
    .select("id")
    .where("offer_id", "=", offerId)
    .where("state", "!=", "failed")
    .orderBy("id")
    .limit(1)
    .executeTakeFirst();
  return row?.id ?? null;
}

async function openOf(tx: Tx, payer: string): Promise<bigint> {
  const { open } = await tx
    .selectFrom("purchase")
    .select((columns) => columns.fn.countAll<bigint>().as("open"))
    .where("payer", "=", payer)
    .where("is_sent", "=", 0n)
    .where("ended_at", "is", null)
    .executeTakeFirstOrThrow();
  return open;
}

/** The purchase that has one of these payment keys; null = there is none. */
export async function byKeys({ db }: Reader, keys: readonly string[]): Promise<PurchaseRow | null> {
  if (keys.length === 0) return null;
  const found = db.selectFrom("purchase").selectAll().where("payment_key", "in", keys);
  return (await found.orderBy("id").limit(1).executeTakeFirst()) ?? null;
}

/** A purchase by its id; null = there is none. */
export async function byId({ db }: Reader, id: string): Promise<PurchaseRow | null> {
  const found = db.selectFrom("purchase").selectAll().where("id", "=", id);
  return (await found.executeTakeFirst()) ?? null;
}

/** A rail by its name and chain. */
type RailName = Pick<Rail, "method" | "chainId">;

/** Purchases of one rail, or of none of these rails. */
export type DueRails =
  | { readonly kind: "of"; readonly rail: RailName }
  | { readonly kind: "of_none"; readonly rails: readonly RailName[] };

/** Selects due purchases. */
export interface DueQuery {
  readonly which: DueRails;
  readonly limit: number;
  readonly nowMs: number;
  /**
   * Ids that this process is working on. Any other purchase leased to its node was left behind,
   * because an answer of the store got lost.
   */
  readonly except: Iterable<string>;
}

/** Due purchases that nobody works on, the longest overdue first. */
export async function due(
  { store, node }: Pick<RowParts, "store" | "node">,
  { which, limit, nowMs, except }: DueQuery,
): Promise<readonly string[]> {
  const now = BigInt(Math.floor(nowMs));
  const own = [...except];
  const rows = await store.db
    .selectFrom("purchase")
    .select("id")
    .where("ended_at", "is", null)
    .where((columns) => isOf(columns, which))
    .where((columns) =>
      columns.or([columns("look_at", "<=", now), columns("look_at", ">", now + MAX_AHEAD_MS)]),
    )
    .where((columns) => columns.or([...isFree(columns, now), columns("lease_node", "=", node)]))
    .$if(own.length > 0, (query) => query.where("id", "not in", own))
    .orderBy("look_at")
    .orderBy("id")
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

function isOf(columns: ExpressionBuilder<Tables, "purchase">, which: DueRails) {
  const isBy = ({ method, chainId }: RailName) =>
    columns.and([columns("rail", "=", method), columns("chain_id", "=", BigInt(chainId))]);
  return which.kind === "of" ? isBy(which.rail) : columns.not(columns.or(which.rails.map(isBy)));
}

/** True for purchases that nobody leases, or whose lease has ended. */
function isFree(columns: ExpressionBuilder<Tables, "purchase">, now: bigint) {
  return [
    columns("lease_until", "is", null),
    columns("lease_until", "<=", now),
    columns("lease_until", ">", now + MAX_AHEAD_MS),
  ];
}

/**
 * Leases a purchase to this node, or renews its lease; null = another node has it, or it has ended.
 */
export async function lease(
  { store, node }: RowParts,
  id: string,
  nowMs: number,
): Promise<PurchaseRow | null> {
  const now = BigInt(Math.floor(nowMs));
  const row = await store.db
    .updateTable("purchase")
    .set({ lease_node: node, lease_until: now + BigInt(LEASE_MS) })
    .where("id", "=", id)
    .where("ended_at", "is", null)
    .where((columns) => columns.or([...isFree(columns, now), columns("lease_node", "=", node)]))
    .returningAll()
    .executeTakeFirst();
  return row ?? null;
}

/** Releases a purchase, due again at a time. */
export async function giveBack(
  { store, node }: RowParts,
  id: string,
  { lookAtMs, looks }: { readonly lookAtMs: number; readonly looks: number },
): Promise<void> {
  await store.db
    .updateTable("purchase")
    .set({
      lease_node: null,
      lease_until: null,
      look_at: BigInt(Math.floor(lookAtMs)),
      looks: BigInt(looks),
    })
    .where("id", "=", id)
    .where("lease_node", "=", node)
    .where("ended_at", "is", null)
    .execute();
}

/**
 * Makes every purchase due that no other node leases. Leases of an earlier start of this node are
 * released, since that process is over.
 */
export async function resumeAll({ store, node }: RowParts, nowMs: number): Promise<void> {
  const now = BigInt(Math.floor(nowMs));
  await store.db
    .updateTable("purchase")
    .set({ lease_node: null, lease_until: null, look_at: now, looks: 0n })
    .where("ended_at", "is", null)
    .where((columns) =>
      columns.or([
        columns("lease_until", "is", null),
        columns("lease_until", "<=", now),
        columns("lease_node", "=", node),
      ]),
    )
    .execute();
}

/** Locks the row of a purchase for this transaction. */
export async function locked(tx: Tx, id: string): Promise<PurchaseRow> {
  return tx
    .selectFrom("purchase")
    .selectAll()
    .where("id", "=", id)
    .$if(!isEmbedded(tx), (query) => query.forUpdate())
    .executeTakeFirstOrThrow();
}

/** The submissions of a purchase, the newest last. */
export function submissionsOf(
  db: Pick<Store["db"], "selectFrom">,
  id: string,
): Promise<readonly SubmissionRow[]> {
  return db
    .selectFrom("purchase_submission")
    .selectAll()
    .where("purchase_id", "=", id)
    .orderBy("position")
    .execute();
}
