// The parts of one session rail that all work on its channels shares, and the change of a channel
// that none of its calls asks for.
import type { Logger } from "pino";
import type { Runtime } from "../../runtime.ts";
import type { Tx } from "../../shared/ledger/ledger.ts";
import type { Store } from "../../shared/store/store.ts";
import type { SessionRailSettings } from "../rails/rail-kind.ts";
import type { Escrow } from "./chain/escrow.ts";
import type { Settler } from "./chain/settlement-wallet.ts";
import type { TransactionRecord } from "./chain/transaction-record.ts";
import type { ChannelRecord, SessionChannel } from "./channel-record.ts";
import type { ChannelWriter } from "./channel-writer.ts";
import type { Hex } from "./descriptor.ts";
import type { LiveChannels } from "./live-channels.ts";
import type { SessionTerms } from "./terms.ts";
import type { VoucherChecker } from "./voucher-checker.ts";

/** When what is owed is settled, and how often the chain is read. */
export interface SettlePolicy {
  /** Settles at this amount owed, in base units, or after this time. */
  readonly settleUnits: bigint;
  readonly settleMs: number;
  /** Between two checks of a channel that owes something. */
  readonly watchMs: number;
}

/** The parts of a rail. */
export interface SessionRail {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  readonly settings: Pick<SessionRailSettings, "local">;
  readonly terms: SessionTerms;
  readonly policy: SettlePolicy;
  readonly escrow: Pick<Escrow, keyof Escrow>;
  readonly settler: Pick<Settler, "address" | "sign">;
  readonly vouchers: Pick<VoucherChecker, "isSigned">;
  readonly channels: ChannelRecord;
  readonly transactions: TransactionRecord;
  readonly live: LiveChannels;
  readonly writer: ChannelWriter;
  /** How long a request waits for its chain before its caller is told to repeat it. */
  readonly waitMs: number;
}

/**
 * Changes a channel under the lock of its row, and then in memory. `change` returns the channel
 * after it, or null = nothing was changed. Null also if there is no such channel.
 */
export async function changeChannel(
  { store, channels, live }: Pick<SessionRail, "store" | "channels" | "live">,
  id: Hex,
  change: (tx: Tx, channel: SessionChannel) => Promise<SessionChannel | null>,
): Promise<SessionChannel | null> {
  const changed = await store.transaction(async (tx) => {
    const channel = await channels.lock(tx, id);
    return channel === null ? null : change(tx, channel);
  });
  if (changed !== null) live.note(changed);
  return changed;
}
