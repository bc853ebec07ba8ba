// The nonces of our wallets: each is taken once, in the transaction that records what is sent with
// it, and none is skipped. Signs and sends nothing.
import type { Tx } from "../../ledger/ledger.ts";
import { isEmbedded } from "../../ledger/ledger.ts";

/** A wallet and its next nonce on the chain. */
export interface WalletNonce {
  /** `<chain id>:<address>:<network>` */
  readonly walletId: string;
  /** The next nonce that the chain reports. */
  readonly chainNonce: bigint;
  /**
   * The first nonce at or after `nonce` that no submission uses that may have to be sent again.
   * Called with the wallet's row locked.
   */
  readonly freeFrom: (nonce: bigint) => Promise<bigint>;
}

/**
 * Takes the lowest free nonce of a wallet: at or above the chain's own, and used by no open
 * submission. An earlier count is no lower bound: if a node once reported a wrong nonce, or a
 * transaction got lost, it would skip a nonce for ever, and every later transaction would wait for
 * that one.
 */
export async function takeNonce(
  tx: Tx,
  { walletId, chainNonce, freeFrom }: WalletNonce,
): Promise<bigint> {
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
  const nonce = await freeFrom(chainNonce);
  await tx
    .updateTable("settlement_wallet")
    .set({ next_nonce: await freeFrom(nonce + 1n) })
    .where("id", "=", walletId)
    .execute();
  return nonce;
}
