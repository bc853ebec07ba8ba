// One step of a purchase: reads the chain's status of its payment and acts on it. Every act is
// recorded before it is carried out, so that another process, also after a crash, continues from
// the record. Takes no leases and does not wait.
import type { Logger } from "pino";
import type { Invalidations } from "../../core/billing/invalidations.ts";
import type { Runtime } from "../../runtime.ts";
import type { RailCalls, RailResult } from "../rail-call.ts";
import { ChainFailure } from "../rails/chain.ts";
import {
  type ChainStatus,
  isSameAddress,
  type Rail,
  type RailPurchase,
  type Submission,
} from "../rails/rail.ts";
import { openFulfilment, type PurchaseRow, railPurchaseOf, type SubmissionRow } from "./record.ts";
import { LEASE_MS, submissionsOf } from "./rows.ts";
import { fail, MAX_SUBMISSIONS, type SettleParts, settle, submit } from "./transitions.ts";

/** What advancing a purchase needs. */
export interface AdvanceParts extends SettleParts {
  readonly runtime: Runtime;
  readonly log: Pick<Logger, "error" | "warn" | "info">;
  readonly rails: readonly Rail[];
  readonly railCalls: RailCalls;
  readonly changes: Invalidations;
  /** Logs something that the operator has to act on, once for each topic. */
  readonly notice: (topic: string, text: string) => void;
}

/** A purchase under way, with its rail and its submissions. */
interface OpenPurchase {
  readonly rail: Rail;
  readonly row: PurchaseRow;
  readonly purchase: RailPurchase;
  readonly rows: readonly SubmissionRow[];
}

/**
 * Takes one step with a purchase and returns its row after it. Throws only where the store does.
 */
export async function advance(parts: AdvanceParts, row: PurchaseRow): Promise<PurchaseRow> {
  const { store, sealer, railCalls, runtime, notice } = parts;
  const rail = railOf(parts, row);
  if (rail === undefined) {
    notice(
      `rail ${row.rail} ${row.chain_id}`,
      `purchases by ${row.rail} on chain ${row.chain_id} to ${row.recipient} are under way, ` +
        "and no such rail is configured: configure it again until they have ended",
    );
    return row;
  }
  const network = await railCalls.call(rail, () => rail.network());
  if (network.kind === "unavailable") return row;
  if (network.value !== row.network) return onOtherNetwork(parts, rail, row);
  const rows = await submissionsOf(store.db, row.id);
  const purchase = railPurchaseOf(sealer, row, rows);
  if (purchase === null) {
    notice(
      "sealed",
      "purchases are under way that were sealed with a secret which is not known any more: " +
        "start with it as SVC_SECRET_PREVIOUS",
    );
    return row;
  }
  const status = await look(parts, rail, purchase);
  return status.kind === "unavailable"
    ? row
    : act(parts, { rail, row, purchase, rows }, { status: status.value, nowMs: runtime.wallMs() });
}

/**
 * Checks a failed purchase once more: a transaction that can expire only by its nonce may be
 * included in a block after the purchase was given up, and its money has moved then. Sends nothing;
 * returns the row after the check. Throws only where the store does.
 */
export async function recheck(parts: AdvanceParts, row: PurchaseRow): Promise<PurchaseRow> {
  const { store, sealer, railCalls, runtime } = parts;
  const rail = railOf(parts, row);
  if (rail === undefined || railCalls.isUnreachable(rail)) return row;
  const network = await railCalls.call(rail, () => rail.network());
  if (network.kind === "unavailable" || network.value !== row.network) return row;
  const purchase = railPurchaseOf(sealer, row, await submissionsOf(store.db, row.id));
  const status = purchase === null ? null : await look(parts, rail, purchase);
  if (status?.kind !== "result" || status.value.kind !== "settled") return row;
  return settled(parts, row, { status: status.value, nowMs: runtime.wallMs() });
}

/** The rail that a purchase was paid by; undefined = it is not configured any more. */
export function railOf({ rails }: Pick<AdvanceParts, "rails">, row: PurchaseRow): Rail | undefined {
  return rails.find((candidate) => isRailOf(candidate, row));
}

async function settled(
  parts: AdvanceParts,
  row: PurchaseRow,
  when: Parameters<typeof settle>[2],
): Promise<PurchaseRow> {
  const after = await settle(parts, row.id, when);
  await announce(parts, after);
  return after;
}

/** A look may take many RPC calls; all of them together end before the purchase's lease does. */
const MAX_LOOK_MS = (LEASE_MS * 2) / 3;

function look(
  { railCalls, runtime }: AdvanceParts,
  rail: Rail,
  purchase: RailPurchase,
): Promise<RailResult<ChainStatus>> {
  return railCalls.call(
    rail,
    () =>
      new Promise<ChainStatus>((resolve, reject) => {
        const late = () =>
          reject(
            new ChainFailure(
              `The payment chain did not say within ${MAX_LOOK_MS} ms what became of a payment`,
            ),
          );
        const cancel = runtime.after(MAX_LOOK_MS, late);
        void rail.look(purchase).then(resolve, reject).finally(cancel);
      }),
  );
}

/** Whether a purchase was paid by this rail, with the same token and recipient. */
export function isRailOf(rail: Rail, row: PurchaseRow): boolean {
  return (
    rail.method === row.rail &&
    BigInt(rail.chainId) === row.chain_id &&
    isSameAddress(rail.token, row.token) &&
    isSameAddress(rail.recipient, row.recipient)
  );
}

async function onOtherNetwork(
  parts: AdvanceParts,
  rail: Rail,
  row: PurchaseRow,
): Promise<PurchaseRow> {
  if (rail.local)
    return fail(parts, row.id, {
      reason: "the local chain that it was paid on is gone: it was started anew",
      nowMs: parts.runtime.wallMs(),
    });
  parts.notice(
    `network ${rail.method} ${rail.chainId}`,
    `purchases by ${rail.method} are under way on another chain ${rail.chainId} than the one ` +
      "that is reached now: check rpc_url",
  );
  return row;
}

async function act(
  parts: AdvanceParts,
  open: OpenPurchase,
  { status, nowMs }: { readonly status: ChainStatus; readonly nowMs: number },
): Promise<PurchaseRow> {
  const { row } = open;
  switch (status.kind) {
    case "settled":
      return settled(parts, row, { status, nowMs });
    case "failed":
      return fail(parts, row.id, { reason: status.reason, nowMs });
    case "open": {
      const newest = open.rows.at(-1);
      if (newest === undefined) await sendNext(parts, open, null);
      else if (status.resend) await resend(parts, open, newest);
      else if (status.replace && newest.wallet_id !== null) await sendNext(parts, open, newest);
      return row;
    }
  }
}

/**
 * Refreshes the account in memory after it was given money or days. An account whose refresh fails
 * is read again later.
 */
export async function announce(
  { sealer, changes, log }: Pick<AdvanceParts, "sealer" | "changes" | "log">,
  row: PurchaseRow,
): Promise<void> {
  const given = row.fulfilment === null ? null : openFulfilment(sealer, row.id, row.fulfilment);
  if (given === null || given.kind === "create_key") return;
  try {
    await changes.account(given.accountId);
  } catch (error) {
    log.warn(
      { purchase: row.id, problem: error instanceof Error ? error.name : "unknown" },
      "an account was credited, and its callers feel it later",
    );
  }
}

/** Sends the newest submission again, or a new one if another transaction has used its nonce. */
async function resend(
  parts: AdvanceParts,
  open: OpenPurchase,
  newest: SubmissionRow,
): Promise<void> {
  const { rail, purchase } = open;
  const last = purchase.submissions.at(-1);
  if (last === undefined || last.raw === null) return;
  if (newest.nonce !== null) {
    const wallet = await parts.railCalls.call(rail, () => rail.wallet());
    if (wallet.kind === "unavailable") return;
    if (wallet.value !== null && wallet.value.nonce > newest.nonce) return sendAnew(parts, open);
  }
  await send(parts, rail, last);
}

/**
 * The nonce is used up for good. If the payment was still not carried out, it is submitted once
 * more, provided that the chain would accept it now.
 */
async function sendAnew(parts: AdvanceParts, open: OpenPurchase): Promise<void> {
  const { rail, purchase } = open;
  const status = await look(parts, rail, purchase);
  if (status.kind === "unavailable" || status.value.kind !== "open") return;
  const bad = await parts.railCalls.call(rail, () => rail.check(purchase.payment));
  if (bad.kind === "result" && bad.value === null) await sendNext(parts, open, null);
}

/**
 * Drafts a submission, records it and sends it; `replaces` = the submission whose nonce it uses.
 */
export async function sendNext(
  parts: AdvanceParts,
  { rail, row, purchase, rows }: OpenPurchase,
  replaces: SubmissionRow | null,
): Promise<void> {
  if (rows.length >= MAX_SUBMISSIONS) return;
  const draft = await parts.railCalls.call(rail, () => rail.draft(purchase));
  if (draft.kind === "unavailable" || draft.value === null) return;
  const next = {
    id: row.id,
    position: rows.length,
    draft: draft.value,
    replaces,
    nowMs: parts.runtime.wallMs(),
  };
  const submission = await submit(parts, next);
  if (submission !== null) await send(parts, rail, submission);
}

/** Sends a recorded submission; the next look at the chain shows whether it arrived. */
export async function send(
  { railCalls }: Pick<AdvanceParts, "railCalls">,
  rail: Rail,
  submission: Submission,
): Promise<void> {
  if (submission.raw !== null) await railCalls.call(rail, () => rail.send(submission));
}
