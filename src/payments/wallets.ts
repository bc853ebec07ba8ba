// Watches the wallets that pay for gas: whether they hold enough, and whether every nonce taken was
// sent, even after its purchase ended, since later nonces wait for it. Credits no account.
import { type AdvanceParts, isRailOf, send, sendNext } from "./purchase/advance.ts";
import { railPurchaseOf, type SubmissionRow } from "./purchase/record.ts";
import { byId, submissionsOf } from "./purchase/rows.ts";
import { markPassed, walletIdOf } from "./purchase/transitions.ts";
import type { Rail, WalletState } from "./rails/rail.ts";

/** Ended purchases that one sweep sends for. */
const MAX_LEFT = 16;
/** After this time a transaction is replaced by one with a higher fee. */
const REPLACE_MS = 60_000;

/** Watches the chains and wallets of rails. */
export class Wallets {
  readonly #parts: AdvanceParts;
  readonly #states = new Map<Rail, WalletState>();

  constructor(parts: AdvanceParts) {
    this.#parts = parts;
  }

  /** Last known states by rail; none for a rail without a wallet or never reached. */
  get states(): ReadonlyMap<Rail, WalletState> {
    return this.#states;
  }

  /** Whether a rail's wallet can pay for a settlement, by its last known state. */
  canSettle(rail: Rail): boolean {
    const state = this.#states.get(rail);
    return state === undefined || !(state.empty || state.dear);
  }

  /**
   * Checks a rail's chain and wallet, and sends the unsent transactions of ended purchases again.
   * Throws only where the store does.
   */
  async sweep(rail: Rail): Promise<void> {
    const { railCalls, runtime } = this.#parts;
    if (!(await railCalls.checkReachable(rail))) return;
    const state = await railCalls.call(rail, () => rail.wallet());
    const network = await railCalls.call(rail, () => rail.network());
    if (state.kind === "unavailable" || network.kind === "unavailable" || state.value === null)
      return;
    logChange(this.#parts, rail, { before: this.#states.get(rail), now: state.value });
    this.#states.set(rail, state.value);
    const walletId = walletIdOf(state.value.id, network.value);
    await markPassed(this.#parts, walletId, { below: state.value.nonce, nowMs: runtime.wallMs() });
    for (const id of await leftOf(this.#parts, walletId)) await sendLeft(this.#parts, rail, id);
  }
}

/** Logs a change of state of a wallet. */
function logChange(
  { log }: Pick<AdvanceParts, "log">,
  rail: Rail,
  { before, now }: { readonly before: WalletState | undefined; readonly now: WalletState },
): void {
  const about = {
    rail: rail.method,
    chainId: rail.chainId,
    wallet: now.id,
    balanceWei: String(now.balanceWei),
  };
  if (now.empty && before?.empty !== true)
    log.error(
      about,
      "the settlement wallet cannot pay for gas: nothing is offered by this rail until it is " +
        "refilled",
    );
  else if (now.low && before?.low !== true)
    log.error(about, "the settlement wallet is low on gas: refill it");
  else if (!now.low && before?.low === true)
    log.info(about, "the settlement wallet has enough gas again");
  if (now.dear && before?.dear !== true)
    log.warn(
      about,
      "gas costs more than max_gas_wei lets a settlement cost: nothing is offered by this rail " +
        "meanwhile",
    );
  else if (!now.dear && before?.dear === true)
    log.info(about, "gas costs no more than a settlement may cost again");
}

/** Ended purchases with transactions that may still have to be sent; lowest nonces first. */
async function leftOf({ store }: AdvanceParts, walletId: string): Promise<readonly string[]> {
  const rows = await store.db
    .selectFrom("purchase_submission")
    .innerJoin("purchase", "purchase.id", "purchase_submission.purchase_id")
    .select("purchase.id")
    .where("wallet_id", "=", walletId)
    .where("passed_at", "is", null)
    .where("purchase.ended_at", "is not", null)
    .groupBy("purchase.id")
    .orderBy(({ fn }) => fn.min("nonce"))
    .limit(MAX_LEFT)
    .execute();
  return rows.map(({ id }) => id);
}

async function sendLeft(parts: AdvanceParts, rail: Rail, id: string): Promise<void> {
  const { store, sealer, runtime } = parts;
  const row = await byId(store, id);
  const rows = await submissionsOf(store.db, id);
  const newest = rows.at(-1);
  if (row === null || newest === undefined) return;
  const purchase = railPurchaseOf(sealer, row, rows);
  const last = purchase?.submissions.at(-1);
  if (purchase === null || last === undefined) return;
  if (isRailOf(rail, row) && isOld(newest, runtime.wallMs()))
    await sendNext(parts, { rail, row, purchase, rows }, newest);
  await send(parts, rail, last);
}

function isOld({ created_at }: SubmissionRow, nowMs: number): boolean {
  return nowMs - Number(created_at) > REPLACE_MS;
}
