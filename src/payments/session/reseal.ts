// Seals the channels that have not ended with the present secret, so that the previous one can be
// removed. Runs before anything else reads them.
import type { Sealer } from "../../secrets/sealer.ts";
import type { Store } from "../../store/store.ts";
import { createChannelRecord } from "./channel-record.ts";
import { parseHex } from "./descriptor.ts";
import { createTransactionRecord } from "./transaction-record.ts";

const AT_ONCE = 100;

/**
 * Returns how many channels were sealed again. Throws where the store does, and if neither secret
 * opens a channel.
 */
export async function resealChannels(store: Store, sealer: Sealer): Promise<number> {
  const channels = createChannelRecord(sealer);
  const transactions = createTransactionRecord(sealer);
  let resealed = 0;
  for (let after = ""; ; ) {
    const rows = await store.db
      .selectFrom("session_channel")
      .select(["id", "vouchers"])
      .where("ended_at", "is", null)
      .where("id", ">", after)
      .orderBy("id")
      .limit(AT_ONCE)
      .execute();
    for (const { id, vouchers } of rows) {
      after = id;
      const isCurrent = sealer.isCurrent(vouchers);
      await store.transaction(async (tx) => {
        const channel = isCurrent ? null : await channels.lock(tx, parseHex(id));
        if (channel !== null) await channels.write(tx, channel.id, { vouchers: channel.vouchers });
        await transactions.reseal(tx, parseHex(id));
      });
      if (!isCurrent) resealed++;
    }
    if (rows.length < AT_ONCE) return resealed;
  }
}
