// What has to be true after whatever happened to payments: money moved is money credited, once, to
// the unit; one who repeats a payment gets its first result; no nonce of the wallet is left out;
// nothing secret was logged.
import assert from "node:assert/strict";
import { NANO_PER_UNIT } from "../../../src/core/billing/payment.ts";
import { audit } from "../../../src/hosted/audit/audit.ts";
import type {
  PaidPurchase,
  PaymentDeclined,
  PaymentHeaders,
} from "../../../src/payments/payments.ts";
import { wordOf } from "../payment-fixture.ts";
import type { MatrixFixture } from "./chain-fixture.ts";
import { bring, type Payer } from "./payers.ts";
import type { Life } from "./process-fixture.ts";

/** Money as it stands at one moment. */
export interface Totals {
  readonly movedUnits: bigint;
  readonly creditedN: bigint;
}

/** How much has moved to the recipient, and how much the ledger says has come in. */
export async function totalsOf(fixture: MatrixFixture): Promise<Totals> {
  const lines = await fixture.store.db
    .selectFrom("ledger_entry")
    .select("amount_n")
    .where("book", "=", "payments")
    .execute();
  return {
    movedUnits: await fixture.received(),
    creditedN: lines.reduce((sum, it) => sum - it.amount_n, 0n),
  };
}

/** A payment, and what it came to first. */
export interface Bought {
  readonly payer: Payer;
  readonly first: PaidPurchase | PaymentDeclined;
}

const MAX_REST_MS = 600_000;
const LOOK_MS = 500;

/**
 * Waits for the worker to have nothing left, then adds up. `life` is a process that remembers
 * nothing.
 */
export async function reckon(
  fixture: MatrixFixture,
  { life, all, before, note }: { life: Life; all: readonly Bought[]; before: Totals; note: string },
): Promise<void> {
  await rest(fixture, note);
  const { movedUnits, creditedN } = await totalsOf(fixture);
  const moved = movedUnits - before.movedUnits;
  assert.equal(
    creditedN - before.creditedN,
    moved * NANO_PER_UNIT,
    `${note}: money credited is money moved`,
  );
  const paid = all.flatMap(({ payer, first }) => (first.kind === "paid" ? [payer.wish.units] : []));
  assert.equal(
    moved,
    paid.reduce((sum, it) => sum + it, 0n),
    `${note}: what was paid for has moved, and nothing else`,
  );
  for (const it of all) await assertRepeats(fixture, life, it);
  const { evm, settlement } = fixture.chains;
  const used = BigInt(
    String(await fixture.ask(evm, "eth_getTransactionCount", settlement.address, "latest")),
  );
  const wallet = await fixture.store.db
    .selectFrom("settlement_wallet")
    .select("next_nonce")
    .executeTakeFirst();
  if (wallet !== undefined) assert.equal(used, wallet.next_nonce, `${note}: every nonce was used`);
}

/** One who brings the same payment again gets what it came to first. */
export async function assertRepeats(
  fixture: MatrixFixture,
  life: Life,
  { payer: { given, wish, way }, first }: Bought,
): Promise<void> {
  assert.ok(given !== undefined);
  const again = await fixture.run(bring(life, given, wish));
  assert.deepEqual(
    resultOf(again),
    resultOf(first),
    `${wish.request} by ${way}: the first result again`,
  );
  assert.equal(again.kind === "paid" ? again.repeated : true, true);
}

/** The books of the whole store agree, and the log told nobody what it may not. */
export async function checkBooks(
  fixture: MatrixFixture,
  given: readonly (PaymentHeaders | undefined)[],
): Promise<void> {
  assert.deepEqual(await audit(fixture.store), []);
  const log = fixture.log();
  const { settlement, evm } = fixture.chains;
  const signatures = given.flatMap((it) => (it === undefined ? [] : [it.text.slice(-64)]));
  for (const secret of [
    settlement.key,
    settlement.key.slice(2),
    "key-in-the-url",
    evm.rpcUrl,
    ...signatures,
  ])
    assert.equal(log.includes(secret), false, `logged: ${secret}`);
}

async function rest({ store, run, pass }: MatrixFixture, note: string): Promise<void> {
  for (let restedMs = 0; restedMs < MAX_REST_MS; restedMs += LOOK_MS) {
    const open = await run(
      store.db.selectFrom("purchase").select("id").where("ended_at", "is", null).execute(),
    );
    const query = store.db
      .selectFrom("purchase_submission")
      .select("nonce")
      .where("wallet_id", "is not", null)
      .where("passed_at", "is", null);
    if (open.length === 0 && (await query.execute()).length === 0) return;
    await pass(LOOK_MS);
  }
  assert.fail(`${note}: something stays under way for ever`);
}

function resultOf(taken: PaidPurchase | PaymentDeclined | { readonly kind: "refused" }): unknown {
  if (taken.kind !== "paid")
    return { word: wordOf(taken), purchase: taken.kind === "declined" ? taken.purchaseId : null };
  return {
    purchase: taken.purchase.id,
    txHash: taken.purchase.txHash,
    fulfilment: taken.fulfilment,
    headers: taken.headers,
  };
}
