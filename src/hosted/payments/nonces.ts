// The nonces of our wallets: each is taken once, in the transaction that writes down what is sent with it, and none is left out. Signs and sends nothing.
import type { Tx } from "../ledger.ts";
import { isEmbedded } from "../ledger.ts";

/** A wallet, and what its chain says. */
export interface WalletNonce {
  /** `<chain id>:<address>:<network>` */
  readonly walletId: string;
  /** Its next nonce, as the chain says. */
  readonly chainNonce: bigint;
  /** Whether something that was sent from it may have to be sent again. Asked after the wallet was taken for this transaction. */
  readonly isAnyOpen: () => Promise<boolean>;
}

/** Takes the next nonce of a wallet. Where nothing is open the chain's own number counts: whatever was counted here is over then. */
export async function takeNonce(tx: Tx, { walletId, chainNonce, isAnyOpen }: WalletNonce): Promise<bigint> {
  await tx
    .insertInto("settlement_wallet")
    .values({ id: walletId, next_nonce: chainNonce })
    .onConflict((it) => it.doNothing())
    .execute();
  const { next_nonce } = await tx
    .selectFrom("settlement_wallet")
    .select("next_nonce")
    .where("id", "=", walletId)
    .$if(!isEmbedded(tx), (it) => it.forUpdate())
    .executeTakeFirstOrThrow();
  const nonce = chainNonce > next_nonce || !(await isAnyOpen()) ? chainNonce : next_nonce;
  await tx
    .updateTable("settlement_wallet")
    .set({ next_nonce: nonce + 1n })
    .where("id", "=", walletId)
    .execute();
  return nonce;
}
