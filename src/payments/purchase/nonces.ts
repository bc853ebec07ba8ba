// The nonces of our wallets: each is taken once, in the transaction that writes down what is sent
// with it, and none is left out. Signs and sends nothing.
import type { Tx } from "../../ledger/ledger.ts";
import { isEmbedded } from "../../ledger/ledger.ts";

/** A wallet, and what its chain says. */
export interface WalletNonce {
  /** `<chain id>:<address>:<network>` */
  readonly walletId: string;
  /** Its next nonce, as the chain says. */
  readonly chainNonce: bigint;
  /**
   * The first nonce from one on that nothing has which may have to be sent again. Asked after the
   * wallet was taken for this transaction.
   */
  readonly freeFrom: (nonce: bigint) => Promise<bigint>;
}

/**
 * Takes the first nonce of a wallet that is free by the chain's own number and by what is open
 * here. What was counted before is no bound: where a node was wrong once, or a transaction got
 * lost, it would leave a nonce out for ever, and everything that comes after that one waits.
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
