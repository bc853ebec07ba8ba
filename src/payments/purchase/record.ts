// The record of a purchase as values: its row, the sealed fields in it, and the view that callers
// get. Changes nothing.
import type { Selectable } from "kysely";
import { z } from "zod";
import type { Purpose } from "../../core/billing/payment.ts";
import type { Sealer } from "../../secrets/sealer.ts";
import type { SealedColumn } from "../../shared/nodes/resealing.ts";
import type { PurchaseSubmissionTable, PurchaseTable } from "../../shared/store/tables-payments.ts";
import { type Fulfilment, fulfilmentShape, type PurchaseView } from "../payments.ts";
import type { RailPurchase, Submission } from "../rails/rail.ts";

/** A row of a purchase. */
export type PurchaseRow = Selectable<PurchaseTable>;

/** A row of a transaction that was submitted for a purchase. */
export type SubmissionRow = Selectable<PurchaseSubmissionTable>;

const purpose = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("fund_key"), accountId: z.string(), keyId: z.string() }),
  z.strictObject({ kind: z.literal("create_key"), name: z.string() }),
  z.strictObject({ kind: z.literal("credit_account"), accountId: z.string() }),
  z.strictObject({
    kind: z.literal("custom_access"),
    accountId: z.string(),
    keyId: z.string(),
    days: z.int().positive(),
  }),
]);

/** The purpose of a purchase as text for its row. */
export function purposeText(purpose: Purpose): string {
  return JSON.stringify(purpose);
}

/** Reads the purpose in a row. */
export function parsePurpose(text: string): Purpose {
  return purpose.parse(JSON.parse(text));
}

/** The fulfilment of a purchase as text for its row: sealed, since it may hold a key's secret. */
export function sealFulfilment(sealer: Sealer, id: string, fulfilment: Fulfilment): string {
  return sealer.seal(
    JSON.stringify(fulfilment, (_, value: unknown) =>
      typeof value === "bigint" ? String(value) : value,
    ),
    contextOf("fulfilment", id),
  );
}

/**
 * Reads the fulfilment in a row; null = it was sealed with a secret that is not configured any
 * more.
 */
export function openFulfilment(sealer: Sealer, id: string, sealed: string): Fulfilment | null {
  const text = sealer.open(sealed, contextOf("fulfilment", id));
  return text === null ? null : fulfilmentShape.parse(JSON.parse(text));
}

/** The sealed fields of purchases. */
export const SEALED_PURCHASES: readonly SealedColumn[] = [
  sealedColumn("purchase", "material", ["id"]),
  sealedColumn("purchase", "fulfilment", ["id"]),
  sealedColumn("purchase_submission", "raw", ["purchase_id", "position"]),
];

function sealedColumn(
  table: SealedColumn["table"],
  column: Parameters<typeof contextOf>[0],
  key: readonly string[],
): SealedColumn {
  return { table, column, key, contextOf: (id = "") => contextOf(column, id) };
}

/** The context that a sealed field is bound to. */
export function contextOf(what: "material" | "raw" | "fulfilment", id: string): string {
  return `purchase ${what}:${id}`;
}

/**
 * A purchase as its rail sees it; null = it was sealed with a secret that is not configured any
 * more.
 */
export function railPurchaseOf(
  sealer: Sealer,
  row: PurchaseRow,
  rows: readonly SubmissionRow[],
): RailPurchase | null {
  const material = sealer.open(row.material, contextOf("material", row.id));
  const submissions = rows.map((row) => submissionOf(sealer, row));
  if (material === null || submissions.includes(null)) return null;
  return {
    id: row.id,
    payment: {
      key: row.payment_key,
      payer: row.payer,
      units: row.units,
      validUntilMs: row.valid_until === null ? null : Number(row.valid_until),
      isSent: row.is_sent === 1n,
      material,
    },
    submissions: submissions.filter((submission) => submission !== null),
  };
}

function submissionOf(sealer: Sealer, row: SubmissionRow): Submission | null {
  const raw = row.raw === null ? null : sealer.open(row.raw, contextOf("raw", row.purchase_id));
  return row.raw !== null && raw === null ? null : { txHash: row.tx_hash, raw, nonce: row.nonce };
}

/** A purchase as callers see it. */
export function viewOf(row: PurchaseRow): PurchaseView {
  return {
    id: row.id,
    state: row.state,
    purpose: parsePurpose(row.purpose),
    amountN: row.amount_n,
    rail: row.rail,
    protocol: row.protocol,
    chainId: Number(row.chain_id),
    payer: row.payer,
    txHash: row.tx_hash,
    reason: row.reason,
    createdAtMs: Number(row.created_at),
    endedAtMs: row.ended_at === null ? null : Number(row.ended_at),
  };
}
